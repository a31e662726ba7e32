//! The seed of the executions face, section 13 (what is to be tested) and section 10 (its example), sentence by sentence.
//!
//! Each rule is one body that runs on a SQLite file and in a schema of a PostgreSQL server, under a clock that only the test
//! moves: the whole node with its loops, the server's own routes in process, and agents whose work the test describes. So each
//! name below stands for two tests, `…_on_sqlite` and `…_on_postgres`. `cargo xtask plant seed` breaks the rules one by one and
//! sees whether these tests notice.
//!
//! | The seed says (§13) | The test |
//! | --- | --- |
//! | a) Given a CRON schedule, verify correct future_execution times generated | `planner::given_a_cron_schedule_the_right_times_are_planned` |
//! | a) Given a FIXED_TIMES schedule, verify items for each time | `planner::given_a_fixed_times_schedule_there_is_an_item_for_each_time` |
//! | a) Given an INTERVAL schedule, verify items at correct intervals | `planner::given_an_interval_schedule_items_are_at_the_right_intervals` |
//! | a) Verify version drift cancels stale items | `planner::version_drift_cancels_stale_items` |
//! | a) Verify midnight rebuild clears and regenerates | `planner::the_midnight_rebuild_clears_and_regenerates` |
//! | a) Verify idempotencyKey prevents duplicates on replanner runs | `planner::idempotency_keys_prevent_duplicates_when_the_planner_runs_again` |
//! | a) Verify atomic claim via findAndModify | `executor::a_claim_is_atomic` |
//! | a) Verify RUNNING status set before AgentLoop called | `executor::running_is_set_before_the_agent_is_called` |
//! | a) Verify past_execution inserted on success with correct metrics | `executor::a_success_is_recorded_with_the_right_metrics` |
//! | a) Verify retry logic: attempt++, backoff, FAILED_RETRYABLE | `executor::a_failure_counts_the_attempt_and_backs_off_as_failed_retryable` |
//! | a) Verify max attempts exceeded -> CANCELLED | `executor::max_attempts_exceeded_ends_as_cancelled` |
//! | a) Verify per-agent concurrency cap respected | `executor::the_cap_of_an_agent_is_respected` |
//! | a) Verify stale lease recovery resets stuck items | `executor::stale_lease_recovery_resets_stuck_items` |
//! | a) Verify heartbeat updates leaseUntil every 30s | `heartbeat::a_heartbeat_renews_the_lease_every_third_of_it` |
//! | a) Verify heartbeat stops on cancellation | `heartbeat::the_heartbeat_stops_on_cancellation` |
//! | b) Full cycle: create schedule -> … -> past_execution recorded with SUCCESS | `cycle::full_cycle_from_a_schedule_to_a_recorded_success` |
//! | b) Manual trigger: POST /trigger -> … picked up within 5s -> executed | `cycle::a_manual_trigger_is_picked_up_within_five_seconds` |
//! | b) Schedule update: change times -> planner cancels old, creates new | `cycle::a_schedule_update_cancels_the_old_times_and_creates_the_new` |
//! | b) Failure + retry: … succeeds on attempt 2 | `cycle::a_failure_is_retried_and_succeeds_on_attempt_2` |
//! | b) Concurrent claims: two executor instances race … only one wins | `cycle::of_two_executors_that_race_for_an_item_only_one_wins` |
//! | c) Schedule in America/Denver, server in UTC -> correct scheduledAt | `zones::a_schedule_in_denver_has_the_right_instants_on_a_server_in_utc` |
//! | c) Midnight rebuild at correct local time per timezone | `zones::the_midnight_rebuild_is_at_local_midnight_of_each_zone` |
//! | c) DST transition: … (schedule at 02:30 during DST change) | `zones::at_half_past_two_a_clock_that_goes_forward_is_handled`, `zones::at_half_past_two_a_clock_that_goes_back_is_handled` |
//!
//! Section 10 is `day::the_day_of_the_example_goes_as_it_is_told`. An edit that races with a fire (F80) is `race`: in every order of
//! their calls to the store, on two threads, and over HTTP beside a whole node.
//!
//! `conductor` is the same for the seed of the Conductor face: those of its scenarios in which time decides.
//!
//! Where the seed's numbers differ from the design's, the design's hold, and the test says so.

mod conductor;
mod cycle;
mod day;
mod executor;
mod heartbeat;
mod planner;
mod race;
mod support;
mod zones;

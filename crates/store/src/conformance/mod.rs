//! What every store must do: one suite, in the words of the roles.
//!
//! A store's test file has one line, and one test for each claim:
//!
//! ```
//! use punctual_store::memory::MemoryStore;
//! punctual_store::conformance::suite!(MemoryStore::new());
//! # fn main() {}
//! ```
//!
//! Each claim has a fresh [`Bench`] around a fresh store. Whatever it claims, [`check`] adds what always holds: the journal
//! has no gaps, and the present is what it folds to.

pub mod answers;
pub mod attempts;
pub mod bench;
mod block_on;
pub mod caps;
pub mod claims;
pub mod history;
pub mod hostile;
pub mod journal;
pub mod lanes;
pub mod nodes;
pub mod order;
pub mod output;
pub mod planner;
pub mod planning;
pub mod records;
pub mod runs;
pub mod schedules;
pub mod starts;
pub mod sweep;
pub mod tokens;

pub use bench::Bench;
pub use block_on::block_on;

use crate::Store;

/// Checks one claim on a store, and what always holds.
pub fn check(store: impl Store + 'static, claim: impl FnOnce(&mut Bench)) {
    let mut bench = Bench::new(Box::new(store));
    claim(&mut bench);
    let differences = block_on(bench.store.verify()).expect("the journal can be folded");
    assert!(differences.is_empty(), "the store is not what the journal folds to: {differences:#?}");
    let base = block_on(bench.store.base()).expect("the base can be read").seq;
    let seqs: Vec<u64> = [base].into_iter().chain(bench.entries().iter().map(|entry| entry.seq)).collect();
    assert!(seqs.windows(2).all(|pair| pair[0] + 1 == pair[1]), "the journal has gaps: {seqs:?}");
    assert_eq!(seqs.last().copied(), Some(bench.seq()), "the head is not the last entry");
}

/// One `#[test]` for each claim of the suite, each on the fresh store that the expression makes.
#[macro_export]
#[doc(hidden)]
macro_rules! __conformance_suite {
    ($make:expr) => {
        $crate::__conformance_claims! { $make;
            schedules {
                schedules_are_listed_by_id_page_by_page,
                a_schedule_is_kept_as_it_was_written,
                an_edit_changes_the_terms_of_what_nobody_has_touched_and_nothing_else,
                an_edit_keeps_the_count_of_runs_that_started,
                an_edit_is_a_conflict_for_who_read_the_version_before,
                a_pause_is_an_edit_that_can_be_taken_back,
                deleting_withdraws_what_is_planned_and_lets_the_rest_end,
                a_deleted_schedule_takes_no_more_runs,
                a_run_counts_for_its_schedule_once,
                a_name_belongs_to_one_schedule_of_a_project,
            }
            starts {
                a_start_claims_and_begins_in_one_transaction,
                a_start_begins_nothing_that_admission_does_not_let_in,
                a_start_that_the_node_never_heard_of_is_told_again,
                a_run_whose_older_attempt_still_dies_rests,
                what_a_start_replaces_is_cancelled_with_it,
                who_has_no_lease_starts_nothing,
                a_slot_has_no_record_before_it_is_due_and_starts_in_the_commit_that_records_it,
                a_due_slot_that_finds_no_place_is_recorded_and_waits,
                a_start_decides_no_slot_while_no_node_plans_nor_of_an_outage,
                a_slot_that_was_cancelled_before_its_time_has_no_other_run,
                the_schedule_of_a_slot_is_found_by_the_id_of_its_run,
            }
            hostile {
                a_run_with_a_project_that_cannot_be_kept_lives_and_ends,
                a_dead_node_whose_run_has_such_a_project_is_removed,
                a_skip_of_such_a_project_is_written,
                a_filter_may_name_any_instant,
                a_filter_may_name_any_page,
                the_last_microsecond_of_all_time_is_kept,
            }
            records {
                schedules_are_found_by_everything_that_a_filter_says,
                a_name_belongs_to_one_schedule_of_a_face,
                a_start_is_recorded_from_its_beginning_to_its_end,
                what_was_not_started_is_recorded_with_its_reason,
                records_are_found_by_everything_that_a_filter_says,
                old_records_go_when_a_schedule_has_too_many,
                records_go_with_the_entries_that_they_are_made_from,
            }
            planning {
                planning_twice_from_one_cursor_plans_once,
                a_conflict_changes_nothing,
                each_write_of_a_batch_is_whole_or_not_at_all,
                a_later_write_of_a_batch_sees_the_earlier_ones,
                an_edit_reaches_what_was_planned_just_before_in_the_same_batch,
                a_plan_is_one_transaction_with_its_entries,
                a_withdrawn_slot_may_come_back,
                a_cancelled_slot_lies_behind_the_cursor_and_stays_answered,
                a_slot_that_has_its_run_has_no_other_whatever_it_is_called,
                a_planned_run_moves_and_a_retry_keeps_its_time,
                what_has_been_touched_is_not_withdrawn_and_not_cancelled_with_its_plan,
                what_planning_has_to_do_comes_earliest_first,
                a_new_schedule_is_to_be_planned_at_once,
                a_schedule_at_rest_is_planned_again_when_a_run_starts_or_ends,
                a_task_counts_what_waits_and_what_lives,
                a_subject_has_what_is_planned_and_what_is_at_work_for_slots_ahead,
                a_day_begins_once_in_each_zone,
                a_plan_whose_run_is_claimed_in_between_is_a_conflict,
            }
            runs {
                the_same_key_asks_once,
                an_event_is_known_again_after_its_run_has_ended,
                an_id_belongs_to_its_run_also_when_that_is_over,
                a_run_that_is_over_is_found_as_it_was_carried_out,
                what_is_over_is_answered_as_before,
                runs_that_did_not_succeed_are_listed_alone,
                runs_that_are_not_over_are_counted_by_where_they_are,
                a_request_is_a_run_like_any_other,
                a_request_needs_no_schedule,
                a_run_is_called_off_in_every_state,
                whatever_a_called_off_run_reports_but_success_it_is_cancelled,
                a_run_that_waits_goes_on_with_the_same_attempt,
                a_call_back_ends_a_run_that_waits_for_it,
                runs_are_listed_by_scheduled_time_and_id,
            }
            claims {
                a_run_is_claimed_once,
                every_claim_has_a_new_epoch_and_counts_an_attempt_that_a_hand_back_returns,
                nothing_is_claimed_before_it_is_due,
                runs_of_a_lane_come_by_due_time_and_id_up_to_the_limit,
                a_node_gets_runs_of_its_own_agents_only,
                a_node_without_a_lease_gets_nothing,
                a_claim_brings_the_schedule_as_it_is,
                a_claim_tells_when_to_come_again,
            }
            lanes {
                the_lane_that_waits_longest_goes_first,
                a_level_of_priority_is_worth_ten_minutes,
                a_lane_that_was_served_queues_again,
                who_floods_a_lane_waits_for_itself,
                lanes_of_one_age_take_turns_in_their_own_order,
                priority_lasts_between_turns,
                a_lane_waits_from_when_its_first_run_may_be_claimed,
            }
            caps {
                an_agent_has_its_limit_over_all_projects,
                a_schedule_lets_its_runs_start_only_below_its_own_limit,
                the_smaller_of_the_schedules_and_the_agents_limit_counts,
                a_project_has_its_limit,
                runs_with_one_key_share_its_limit,
                there_is_a_limit_over_all,
                a_limit_of_none_at_all_lets_nothing_start,
                a_full_lane_does_not_stand_in_the_way_of_others,
                what_waits_holds_no_place,
            }
            order {
                in_a_queue_one_runs_and_its_end_lets_the_next_go,
                a_queue_waits_for_what_waits,
                a_retry_queues_by_when_its_rest_is_over,
                what_is_not_due_yet_does_not_hold_up_a_queue,
                in_a_queue_the_earliest_goes_first_whatever_the_priority,
                under_allow_all_run_at_once_and_each_knows_that_it_is_not_alone,
                a_run_is_busy_while_another_waits_or_works_and_not_after,
                a_parked_run_waits_for_the_one_at_work,
                under_skip_a_run_is_answered_when_it_is_due_though_there_is_no_place,
                under_replace_a_run_calls_the_others_off_when_it_is_due,
                under_skip_the_place_of_another_schedule_is_waited_for,
                a_run_that_goes_on_is_not_skipped_for_another,
                under_a_pause_a_run_that_finds_another_at_work_is_skipped_for_the_pause,
                what_follows_another_waits_until_that_has_started,
                what_follows_another_does_not_hold_it_up_in_a_queue,
                in_a_queue_what_waits_for_a_start_stands_in_nobodys_way,
                what_follows_a_run_that_fails_or_goes_may_start,
            }
            attempts {
                admission_is_written_as_it_decided,
                a_stale_epoch_changes_nothing_and_is_told,
                nothing_begins_after_a_pause_even_if_it_was_let_in_before,
                a_run_is_settled_once,
                the_same_report_twice_is_one_report,
                the_same_report_gets_the_same_answer_when_the_run_has_gone_on,
                a_batch_of_reports_is_answered_one_by_one,
                a_node_reports_ends_and_nothing_else,
                a_node_may_lose_its_own_work,
                a_stop_gives_the_attempt_back_and_is_told_as_one,
                what_a_node_has_not_begun_it_may_give_back_or_call_off,
                every_face_counts_tries_the_same_way,
                a_final_error_ends_a_run_at_once,
            }
            sweep {
                a_run_offered_too_late_is_skipped_and_not_claimed,
                a_delay_counts_while_a_run_waits_for_a_place,
                the_day_of_a_run_ends_an_hour_after_midnight,
                a_run_that_waits_in_its_queue_outlives_its_day,
                a_run_that_waits_for_its_agent_outlives_its_day,
                a_run_that_waits_for_its_project_outlives_its_day,
                a_run_that_waits_for_its_key_outlives_its_day,
                a_run_that_waits_for_the_limit_over_all_outlives_its_day,
                a_run_that_waits_for_its_node_outlives_its_day,
                what_has_been_looked_at_is_never_too_late,
                a_hand_back_does_not_stop_the_clock_of_a_delay,
                a_wait_that_is_over_ends_as_its_kind_says,
                a_run_is_given_up_when_nobody_has_had_its_agent_for_ten_minutes,
                who_is_too_late_in_two_ways_is_answered_once,
                an_agent_that_a_living_node_has_is_not_removed,
                an_agent_counts_as_seen_when_its_first_run_is_planned,
                one_claim_answers_so_many_and_comes_again_at_once,
            }
            nodes {
                a_node_lives_by_its_lease,
                a_renewal_tells_what_is_the_nodes_own,
                who_has_renewed_its_lease_is_not_buried,
                a_renewal_tells_the_leases_of_the_others,
                a_node_is_buried_when_its_lease_has_ended_and_not_before,
                a_run_whose_nodes_die_comes_to_an_end,
                a_lost_run_is_taken_over_under_a_new_epoch,
                what_waits_outlives_its_node,
                a_node_that_leaves_gives_back_what_it_has_not_begun,
                on_an_exclusive_store_a_new_server_takes_over_at_once,
                on_a_shared_store_a_node_keeps_its_runs_while_its_lease_lasts,
            }
            planner {
                the_first_planner_finds_no_outage,
                while_nobody_plans_no_slot_that_is_due_runs_as_if_there_was_no_outage,
                one_node_plans,
                the_time_that_nobody_had_the_lease_is_an_outage_of_every_schedule,
                an_outage_joins_one_that_is_not_made_up_for,
                what_waits_already_is_claimed_whatever_planning_does,
                an_outage_concerns_what_has_a_slot_in_it_and_nothing_else,
                a_plan_that_knew_nothing_of_an_outage_does_not_wipe_it_out,
                an_edit_does_not_make_up_for_an_outage,
                a_planner_that_leaves_hands_over_without_an_outage,
                a_planner_that_is_buried_is_followed_at_once,
                who_has_no_lease_does_not_plan,
                an_outage_that_no_lease_shows_can_be_noted,
            }
            journal {
                entries_are_numbered_without_gaps_in_the_order_of_writes,
                the_head_is_the_checksum_over_all_entries,
                the_present_is_what_the_journal_folds_to,
                the_base_is_what_went_and_the_rest_stands_on_it,
                pruning_changes_nothing_of_the_present,
                everything_goes_on_when_all_entries_are_gone,
                history_of_the_kept_part_stays,
                an_empty_store_can_be_pruned,
                a_large_world_is_pruned,
                what_was_asked_for_and_happened_is_found_by_what_it_is_about,
                an_export_has_everything,
            }
            history {
                an_ended_attempt_is_told_with_what_it_said,
                what_ends_without_an_attempt_is_told_too,
                skipped_slots_are_told,
                every_end_of_a_run_is_told,
                history_is_filtered_and_paged_latest_first,
                filters_of_the_history_combine,
                attempts_that_began_are_summed_up,
                sums_are_those_of_the_rows_of_any_days,
                a_run_counts_once_and_its_last_attempt_is_final,
                what_is_called_off_ahead_of_its_time_is_no_news_of_the_future,
                a_skip_keeps_the_pause_that_it_was_for,
                who_asked_is_written_with_what_they_asked_for,
            }
            answers {
                a_request_that_comes_again_changes_nothing_and_is_told_what_it_was_about,
                a_request_that_was_not_carried_out_may_come_again,
                answers_are_forgotten_in_time,
            }
            output {
                what_a_run_prints_is_read_in_its_order,
                of_much_output_the_end_is_kept,
                output_is_forgotten_in_time,
            }
            tokens {
                a_token_is_there_until_it_is_taken_back,
                tokens_outlive_the_journal_that_tells_of_them,
                when_a_token_was_used_is_noted_and_changes_nothing_else,
            }
        }
    };
}

/// Writes the tests.
#[macro_export]
#[doc(hidden)]
macro_rules! __conformance_claims {
    ($make:expr; $($room:ident { $($claim:ident,)* })*) => {
        $($(
            #[test]
            fn $claim() {
                $crate::conformance::check($make, $crate::conformance::$room::$claim);
            }
        )*)*
    };
}

#[doc(inline)]
pub use __conformance_suite as suite;

#[cfg(test)]
mod tests {
    /// A claim that is not in the list would never be tested.
    #[test]
    fn every_claim_is_in_the_suite() {
        let list = include_str!("mod.rs");
        for (room, source) in [
            ("attempts", include_str!("attempts.rs")),
            ("caps", include_str!("caps.rs")),
            ("claims", include_str!("claims.rs")),
            ("history", include_str!("history.rs")),
            ("journal", include_str!("journal.rs")),
            ("lanes", include_str!("lanes.rs")),
            ("nodes", include_str!("nodes.rs")),
            ("order", include_str!("order.rs")),
            ("planner", include_str!("planner.rs")),
            ("planning", include_str!("planning.rs")),
            ("runs", include_str!("runs.rs")),
            ("schedules", include_str!("schedules.rs")),
            ("starts", include_str!("starts.rs")),
            ("sweep", include_str!("sweep.rs")),
        ] {
            let claims = source.lines().filter_map(|line| line.strip_prefix("pub fn ")?.split_once('('));
            for (claim, _) in claims {
                assert!(list.contains(&format!(" {claim},\n")), "{room}::{claim} is not in the list");
            }
        }
    }
}

//! Retries: how often a run is tried, when, and how it ends.

use punctual_core::Elapsed;
use punctual_core::run::{FailureCode, RunEvent, WaitFor};
use serde_json::{Value, json};

use crate::support::{HOUR, MINUTE, SECOND, Way, World, at, minutes, seconds};

/// Runs one slot at 09:00 whose work always goes the same way, for three hours, and says when it was tried and how it ended.
fn check(policy: Value, way: Way, tries: &[&str], end: &str) {
    let mut world = World::at("08:00");
    world.work("reporter", way);
    world.node("a");
    let id = world.create(json!({"trigger": {"at": "2026-01-05T09:00:00Z"}, "policy": policy}));
    world.advance_to("2026-01-05T12:00:00Z");
    let starts: Vec<String> = world.starts(id);
    let tries: Vec<String> = tries.iter().map(|time| format!("09:00 at {time}")).collect();
    assert_eq!((starts, world.story(id)), (tries.clone(), vec![format!("09:00 {end}")]), "{policy}");
    assert_eq!(world.runs(id)[0].state.tally().attempt as usize, tries.len(), "tries are counted at the claim");
    assert_eq!(world.schedule(id).runs_started, 1, "a run counts once, however often it is tried");
    world.every_slot_has_one_answer(id);
}

fn retry(max_attempts: u32, backoff: &str, delay: &str, delay_max: &str) -> Value {
    json!({"retry": {"max_attempts": max_attempts, "backoff": backoff, "delay": delay, "delay_max": delay_max}})
}

#[test]
fn an_execution_is_tried_three_times_a_minute_apart() {
    check(json!({}), Way::Fails, &["09:00", "09:01", "09:02"], "failed(error)");
}

#[test]
fn a_seeded_schedule_is_tried_twice_two_minutes_apart() {
    check(retry(2, "fixed", "120s", "1h"), Way::Fails, &["09:00", "09:02"], "failed(error)");
}

#[test]
fn a_workflow_that_has_its_own_retries_is_started_once() {
    check(retry(1, "fixed", "60s", "1h"), Way::Fails, &["09:00"], "failed(error)");
}

#[test]
fn an_app_waits_twice_as_long_before_each_try() {
    let tries = ["09:00", "09:00:05", "09:00:15", "09:00:35", "09:01:15"];
    check(retry(5, "exponential", "5s", "1h"), Way::Fails, &tries, "failed(error)");
}

#[test]
fn an_intent_gives_up_at_the_third_error_in_a_row() {
    check(retry(3, "exponential", "60s", "1h"), Way::Fails, &["09:00", "09:01", "09:03"], "failed(error)");
}

#[test]
fn no_rest_is_longer_than_an_hour() {
    check(retry(4, "exponential", "40m", "1h"), Way::Fails, &["09:00", "09:40", "10:40", "11:40"], "failed(error)");
}

#[test]
fn the_first_success_is_the_end() {
    check(json!({}), Way::Succeeds, &["09:00"], "succeeded");
}

#[test]
fn an_error_that_no_try_can_help_is_the_end() {
    check(json!({}), Way::FailsForGood, &["09:00"], "failed(error)");
}

#[test]
fn what_the_target_asks_for_is_honoured_even_beyond_the_cap() {
    let way = Way::AsksToWait(Elapsed::from_seconds(5_400));
    check(retry(2, "fixed", "60s", "1h"), way, &["09:00", "10:30"], "failed(error)");
    // A shorter wish does not shorten the rest.
    let way = Way::AsksToWait(Elapsed::from_seconds(5));
    check(retry(2, "fixed", "60s", "1h"), way, &["09:00", "09:01"], "failed(error)");
}

#[test]
fn what_failed_together_does_not_come_back_together() {
    let mut world = World::at("08:59");
    world.work("reporter", Way::Fails);
    world.node("a");
    let policy = json!({"max_concurrent": 100, "retry": {"jitter": "30s"}});
    let ids: Vec<_> = (0..20).map(|_| world.create(json!({"policy": policy}))).collect();
    world.advance_to("09:00");
    let due: std::collections::BTreeSet<_> =
        ids.iter().map(|id| world.run_at(*id, "09:00").planned_for().unwrap()).collect();
    assert!(15 < due.len(), "{due:?}");
    assert!(due.iter().all(|due_at| (at("09:01")..=at("09:01:30")).contains(due_at)), "{due:?}");
}

#[test]
fn a_retry_is_never_too_late_for_its_day() {
    let mut world = World::at("23:58");
    world.work("reporter", Way::Fails);
    world.node("a");
    let id = world.create(json!({
        "trigger": {"at": "2026-01-05T23:59:00Z"},
        "policy": retry(3, "fixed", "50m", "1h"),
    }));
    world.advance(minutes(200));
    assert_eq!(world.starts(id), ["23:59 at 23:59", "23:59 at 00:49", "23:59 at 01:39"]);
    assert_eq!(world.story(id), ["23:59 failed(error)"]);
}

#[test]
fn a_run_that_kills_its_node_each_time_comes_to_an_end() {
    let mut world = World::at("08:59");
    world.work("reporter", Way::Stays);
    let id = world.create(json!({"trigger": {"at": "2026-01-05T09:00:00Z"}}));
    let mut deaths = 0;
    for name in ["a", "b", "c", "d", "e", "f"] {
        world.node(name);
        world.advance(minutes(2));
        if world.node(name).held.is_empty() {
            continue;
        }
        deaths += 1;
        world.kill(name);
    }
    assert_eq!((deaths, world.story(id)), (3, vec!["09:00 failed(owner_lost)".to_owned()]));
    assert_eq!(world.runs(id)[0].state.tally().losses, 3);
    world.every_slot_has_one_answer(id);
}

#[test]
fn the_first_loss_is_tried_again_at_once_and_the_second_after_a_rest() {
    let mut world = World::exclusive_at("08:59");
    world.work("reporter", Way::Stays);
    let id = world.create(json!({
        "trigger": {"at": "2026-01-05T09:00:00Z"},
        "policy": {"retry": {"max_attempts": 5, "delay": "10m"}},
    }));
    world.node("a");
    world.advance_to("09:00");
    world.kill("a");
    world.node("b");
    world.settle();
    assert_eq!(world.starts(id), ["09:00 at 09:00", "09:00 at 09:00"]);
    world.kill("b");
    world.node("c");
    world.advance(minutes(11));
    assert_eq!(world.starts(id), ["09:00 at 09:00", "09:00 at 09:00", "09:00 at 09:10"]);
}

#[test]
fn a_stop_costs_nothing_however_often_the_nodes_are_stopped() {
    let mut world = World::at("08:59");
    world.work("reporter", Way::Stays);
    let id = world.create(json!({
        "trigger": {"at": "2026-01-05T09:00:00Z"},
        "policy": {"retry": {"max_attempts": 1}, "max_delay": {"duration": "1m"}},
    }));
    world.node("a");
    world.advance_to("09:00");
    world.advance(minutes(10));
    world.stop("a");
    for node in ["b", "c"] {
        world.node(node);
        world.settle();
        world.stop(node);
    }
    world.work("reporter", Way::Succeeds);
    world.node("d");
    world.settle();
    assert_eq!(world.starts(id), ["09:00 at 09:00", "09:00 at 09:10", "09:00 at 09:10", "09:00 at 09:10"]);
    assert_eq!(world.story(id), ["09:00 succeeded"]);
}

#[test]
fn what_must_not_be_risked_twice_ends_as_unknown_when_its_node_is_lost() {
    let mut world = World::at("08:59");
    world.work("reporter", Way::Stays);
    let id = world.create(json!({"policy": {"after_loss": "hold"}}));
    world.node("a");
    world.advance_to("09:00");
    world.kill("a");
    world.node("b");
    world.advance(MINUTE);
    assert_eq!(world.story(id)[0], "09:00 unknown");
}

#[test]
fn a_claim_that_dies_before_its_start_is_counted() {
    let mut world = World::at("08:59");
    world.node("a");
    let id = world.create(json!({"trigger": {"at": "2026-01-05T09:00:00Z"}}));
    world.advance_to("08:59:59");
    world.sleep(SECOND);
    // The claim is written, and the node dies before it can say what becomes of it.
    world.claim("a");
    assert_eq!(world.story(id), ["09:00 claimed"]);
    world.kill("a");
    world.node("b");
    world.advance(MINUTE);
    assert_eq!(world.story(id), ["09:00 succeeded"]);
    assert_eq!(world.runs(id)[0].state.tally().attempt, 2);
}

#[test]
fn a_run_whose_claim_or_start_the_node_never_heard_of_begins_with_the_same_attempt() {
    for has_started in [false, true] {
        let mut world = World::at("08:59");
        world.node("a");
        let id = world.create(json!({"trigger": {"at": "2026-01-05T09:00:00Z"}}));
        world.advance_to("08:59:59");
        world.sleep(SECOND);
        if has_started {
            world.door.break_all("start", crate::support::Fault::ReplyLost);
            assert!(world.round("a").is_err());
            world.door.repair();
        } else {
            world.claim("a");
        }
        assert_eq!(world.count_held(), 1, "{has_started}: the store has written the claim");
        world.advance(seconds(10));
        assert_eq!(world.story(id), ["09:00 succeeded"], "{has_started}");
        // What the node has never begun does not count.
        assert_eq!(world.runs(id)[0].state.tally().attempt, 1, "{has_started}");
    }
}

#[test]
fn going_on_after_a_wait_is_the_same_attempt() {
    let mut world = World::at("08:59");
    world.work("reporter", Way::Stays);
    let id = world.create(json!({"trigger": {"at": "2026-01-05T09:00:00Z"}}));
    world.node("a");
    world.advance_to("09:00");
    let run = world.at_work(id);
    world.put_to_wait(run, WaitFor::Approval, HOUR);
    assert_eq!(world.state(run), "waiting");
    world.advance(minutes(30));
    world.let_go_on(run);
    world.settle();
    let tally = world.run(run).state.tally();
    assert_eq!((world.state(run).as_str(), tally.attempt, tally.epoch), ("running", 1, 2));
    world.finish(run);
    assert_eq!(world.state(run), "succeeded");
}

#[test]
fn a_wait_comes_to_its_end() {
    for (on, end) in
        [(WaitFor::Approval, "cancelled"), (WaitFor::Callback, "retry at 10:01"), (WaitFor::Child, "retry at 10:01")]
    {
        let mut world = World::at("08:59");
        world.work("reporter", Way::Stays);
        let id = world.create(json!({"trigger": {"at": "2026-01-05T09:00:00Z"}}));
        world.node("a");
        world.advance_to("09:00");
        let run = world.at_work(id);
        world.put_to_wait(run, on, HOUR);
        world.advance_to("09:59:59");
        assert_eq!(world.state(run), "waiting", "{on:?}");
        world.advance(SECOND);
        assert_eq!(world.state(run), end, "{on:?}");
    }
}

#[test]
fn the_last_try_tells_why_it_failed() {
    for code in [FailureCode::TimedOut, FailureCode::ResourceLimit, FailureCode::NotStarted] {
        let mut world = World::at("08:59");
        world.work("reporter", Way::Stays);
        let id = world.create(json!({"policy": {"retry": {"max_attempts": 1}}}));
        world.node("a");
        world.advance_to("09:00");
        let run = world.at_work(id);
        let (at, is_retryable, retry_after) = (world.now, true, None);
        world.end(run, RunEvent::Failed { at, code, is_retryable, retry_after });
        let word = serde_json::to_value(code).unwrap();
        assert_eq!(world.state(run), format!("failed({})", word.as_str().unwrap()));
    }
}

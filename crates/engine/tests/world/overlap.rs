//! Overlap: what happens when a run is due while another of its schedule is at work.

use punctual_core::run::WaitFor;
use serde_json::json;

use crate::support::{Fault, HOUR, MINUTE, Way, World, minutes, seconds};

/// A schedule every ten minutes whose runs go on until they are stopped, at 09:25: three slots have come.
fn three_slots(overlap: &str) -> (World, punctual_core::ScheduleId) {
    let mut world = World::at("08:59");
    world.node("a");
    world.work("reporter", Way::Stays);
    let id = world.create(json!({
        "trigger": {"cron": [{"expression": "0,10,20 9 * * *"}]},
        "policy": {"overlap": overlap, "max_concurrent": 10},
    }));
    world.advance_to("09:25");
    (world, id)
}

#[test]
fn allow_lets_them_run_side_by_side() {
    let (world, id) = three_slots("allow");
    assert_eq!(world.story(id), ["09:00 running", "09:10 running", "09:20 running"]);
    assert_eq!(world.every_slot_has_one_answer(id), 3);
}

#[test]
fn skip_answers_the_new_one_without_a_try() {
    let (mut world, id) = three_slots("skip");
    assert_eq!(world.story(id), ["09:00 running", "09:10 skipped(overlap)", "09:20 skipped(overlap)"]);
    let run = world.at_work(id);
    world.finish(run);
    assert_eq!(world.starts(id), ["09:00 at 09:00"]);
    assert_eq!(world.every_slot_has_one_answer(id), 3);
}

#[test]
fn queue_lets_them_run_one_after_another_in_order() {
    let (mut world, id) = three_slots("queue");
    assert_eq!(world.story(id), ["09:00 running", "09:10 planned", "09:20 planned"]);
    for minute in [30, 40, 50] {
        world.advance_to(&format!("09:{minute}"));
        let run = world.at_work(id);
        world.finish(run);
    }
    assert_eq!(world.starts(id), ["09:00 at 09:00", "09:10 at 09:30", "09:20 at 09:40"]);
    assert_eq!(world.every_slot_has_one_answer(id), 3);
}

#[test]
fn replace_calls_the_old_one_off_and_runs_the_new_one_when_it_has_stopped() {
    let (world, id) = three_slots("replace");
    assert_eq!(world.story(id), ["09:00 cancelled", "09:10 cancelled", "09:20 running"]);
    // The node hears of it with its next renewal.
    let starts = world.starts(id);
    assert_eq!(starts.len(), 3);
    assert!(starts[1].starts_with("09:10 at 09:10") && starts[2].starts_with("09:20 at 09:20"), "{starts:?}");
    assert_eq!(world.every_slot_has_one_answer(id), 3);
}

#[test]
fn of_several_that_are_due_at_once_the_last_replaces_the_others() {
    let mut world = World::at("08:59");
    world.settings.lease = punctual_core::Elapsed::from_seconds(3_600);
    world.node("a").claims = false;
    world.work("reporter", Way::Stays);
    let id = world.create(json!({
        "trigger": {"cron": [{"expression": "0,10,20 9 * * *"}]},
        "policy": {"overlap": "replace", "max_concurrent": 10},
    }));
    world.advance_to("09:25");
    world.node("a").claims = true;
    world.advance(HOUR);
    assert_eq!(world.story(id), ["09:00 cancelled", "09:10 cancelled", "09:20 running"]);
    assert_eq!(world.starts(id).len(), 1, "what is replaced at once never begins: {:?}", world.starts(id));
    assert_eq!(world.every_slot_has_one_answer(id), 3);
}

#[test]
fn a_replacement_that_fails_half_way_neither_loses_work_nor_the_replacement() {
    // Either the other is at work already, or both become due for a node at once.
    for (verb, is_at_once) in [("start", false), ("start", true)] {
        for fault in [Fault::Refused, Fault::ReplyLost] {
            let mut world = World::at("08:59");
            world.settings.lease = punctual_core::Elapsed::from_seconds(3_600);
            world.node("a").claims = !is_at_once;
            world.work("reporter", Way::Stays);
            world.work("quick", Way::Stays);
            let policy = json!({"overlap": "replace", "max_concurrent": 10, "after_loss": "hold"});
            let id = world.create(json!({"trigger": {"cron": [{"expression": "0,10 9 * * *"}]}, "policy": policy}));
            let work = json!({"agent": {"agent": "quick"}});
            let other =
                world.create(json!({"trigger": {"at": "2026-01-05T09:10:00Z"}, "work": work, "policy": policy}));
            world.advance_to("09:09:59");
            world.sleep(seconds(1));
            world.node("a").claims = true;
            world.door.break_all(verb, fault);
            assert!(world.round("a").is_err(), "{verb} {fault:?}");
            world.door.repair();
            world.advance(HOUR);
            assert_eq!(world.story(id), ["09:00 cancelled", "09:10 running"], "{verb} {fault:?}");
            assert_eq!(world.story(other), ["09:10 running"], "{verb} {fault:?}: what was claimed with it goes on");
        }
    }
}

#[test]
fn a_run_that_waits_in_the_middle_of_its_work_counts_as_at_work() {
    for (overlap, expected) in [("skip", "09:10 skipped(overlap)"), ("queue", "09:10 planned")] {
        let mut world = World::at("08:59");
        world.node("a");
        world.work("reporter", Way::Stays);
        let id = world.create(json!({
            "trigger": {"cron": [{"expression": "0,10 9 * * *"}]},
            "policy": {"overlap": overlap, "max_concurrent": 10},
        }));
        world.advance_to("09:01");
        let run = world.at_work(id);
        world.put_to_wait(run, WaitFor::Approval, HOUR);
        world.advance_to("09:15");
        assert_eq!(world.story(id), ["09:00 waiting", expected], "{overlap}");
    }
}

#[test]
fn a_run_asked_for_keeps_to_the_rule_too() {
    for (overlap, expected) in
        [("allow", "running"), ("skip", "skipped(overlap)"), ("queue", "planned"), ("replace", "running")]
    {
        let mut world = World::at("08:59");
        world.node("a");
        world.work("reporter", Way::Stays);
        let id = world.create(json!({"policy": {"overlap": overlap, "max_concurrent": 10}}));
        world.advance_to("09:05");
        let asked = world.trigger(id);
        world.advance(MINUTE);
        assert_eq!(world.state(asked), expected, "{overlap}");
        assert_eq!(world.every_slot_has_one_answer(id), 1);
    }
}

#[test]
fn one_schedule_never_waits_for_another_under_any_rule() {
    for overlap in ["allow", "skip", "queue", "replace"] {
        let mut world = World::at("08:59");
        world.node("a");
        world.work("reporter", Way::Stays);
        let policy = json!({"overlap": overlap, "max_concurrent": 10});
        let ids = [0; 3].map(|_| world.create(json!({"policy": policy})));
        world.advance_to("09:00");
        ids.iter().for_each(|id| assert_eq!(world.story(*id)[0], "09:00 running", "{overlap}"));
    }
}

#[test]
fn with_one_place_skip_skips_and_replace_replaces() {
    for (overlap, expected) in
        [("skip", ["09:00 running", "09:10 skipped(overlap)"]), ("replace", ["09:00 cancelled", "09:10 running"])]
    {
        let mut world = World::at("08:59");
        world.node("a");
        world.work("reporter", Way::Stays);
        let id = world.create(json!({
            "trigger": {"cron": [{"expression": "0,10 9 * * *"}]},
            "policy": {"overlap": overlap, "max_concurrent": 1},
        }));
        world.advance_to("09:11");
        world.advance(minutes(1));
        assert_eq!(world.story(id), expected, "{overlap}");
    }
}

//! Edits: what becomes of the runs of a schedule that is edited, paused, switched off or deleted.

use punctual_core::journal::Body;
use punctual_core::run::WaitFor;
use punctual_core::{Elapsed, ScheduleId};
use punctual_engine::edit::EditError;
use serde_json::json;

use crate::support::{Fault, HOUR, MINUTE, Way, World, at, clock_time, hours, minutes, seconds};

/// What somebody does to the schedule.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Doing {
    /// Its times are moved to half past: no slot stays.
    MoveTimes,
    /// Its prompt changes, its times do not.
    KeepTimes,
    Pause,
    Disable,
    Delete,
}

/// How far the run of 09:00 has come at 09:05.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Reached {
    /// Due, and no place for it.
    Due,
    Claimed,
    Running,
    /// Waiting for a call back.
    Waiting,
    /// Waiting for its second try, due at 09:10.
    BackingOff,
}

/// A schedule at 09:00 and 10:00, of which the run of 09:00 has come so far, at 09:05.
fn world_with(reached: Reached) -> (World, ScheduleId) {
    let mut world = World::at("08:59");
    world.node("a");
    world.work("reporter", if reached == Reached::BackingOff { Way::Fails } else { Way::Stays });
    if reached == Reached::Due {
        // Another schedule has the agent's one place.
        world.create(json!({"trigger": {"at": "2026-01-05T08:59:00Z"}}));
        world.settle();
    }
    let id = world.create(json!({
        "trigger": {"cron": [{"expression": "0 9,10 * * *"}]},
        "policy": {"retry": {"delay": "10m"}},
    }));
    world.advance_to("08:59:59");
    if reached == Reached::Claimed {
        world.node("a").claims = false;
    }
    world.advance_to("09:05");
    match reached {
        Reached::Due | Reached::Running | Reached::BackingOff => {}
        Reached::Claimed => {
            world.claim("a");
            world.node("a").claims = true;
        }
        Reached::Waiting => {
            let run = world.at_work(id);
            world.put_to_wait(run, WaitFor::Callback, hours(5));
        }
    }
    let expected = match reached {
        Reached::Due => "09:00 planned",
        Reached::Claimed => "09:00 claimed",
        Reached::Running => "09:00 running",
        Reached::Waiting => "09:00 waiting",
        Reached::BackingOff => "09:00 retry at 09:10",
    };
    assert_eq!(world.story(id), [expected, "10:00 planned"]);
    (world, id)
}

/// Does it at 09:05, and says what is left then; then lets everything end, and says how.
fn check(doing: Doing, reached: Reached, then: &[&str], at_last: &[&str]) {
    let (mut world, id) = world_with(reached);
    match doing {
        Doing::MoveTimes => world.edit(id, json!({"trigger": {"cron": [{"expression": "30 9,10 * * *"}]}})),
        Doing::KeepTimes => world.edit(id, json!({"work": {"agent": {"agent": "reporter", "prompt": "new"}}})),
        Doing::Pause => world.pause(id),
        Doing::Disable => world.disable(id),
        Doing::Delete => world.delete(id),
    }
    let case = format!("{doing:?} while the run is {reached:?}");
    assert_eq!(world.story(id), then, "{case}: at once");
    // The place becomes free, what is claimed begins, and everything goes well from here on.
    world.work("reporter", Way::Succeeds);
    let at_work: Vec<_> = world.node("a").held.keys().copied().collect();
    at_work.into_iter().for_each(|run| world.finish(run));
    if reached == Reached::Waiting {
        let run = world.runs(id)[0].id;
        world.let_go_on(run);
    }
    world.advance_to("11:00");
    assert_eq!(world.story(id), at_last, "{case}: at 11:00");
    world.every_slot_has_one_answer(id);
}

#[test]
fn an_edit_of_the_times_takes_back_what_is_planned_and_nothing_else() {
    use Doing::MoveTimes;
    check(MoveTimes, Reached::Due, &["09:30 planned", "10:30 planned"], &["09:30 succeeded", "10:30 succeeded"]);
    let all = ["09:00 succeeded", "09:30 succeeded", "10:30 succeeded"];
    check(MoveTimes, Reached::Claimed, &["09:00 claimed", "09:30 planned", "10:30 planned"], &all);
    check(MoveTimes, Reached::Running, &["09:00 running", "09:30 planned", "10:30 planned"], &all);
    check(MoveTimes, Reached::Waiting, &["09:00 waiting", "09:30 planned", "10:30 planned"], &all);
    check(MoveTimes, Reached::BackingOff, &["09:00 retry at 09:10", "09:30 planned", "10:30 planned"], &all);
}

#[test]
fn an_edit_of_anything_else_leaves_every_run_where_it_is() {
    use Doing::KeepTimes;
    let all = ["09:00 succeeded", "10:00 succeeded"];
    check(KeepTimes, Reached::Due, &["09:00 planned", "10:00 planned"], &all);
    check(KeepTimes, Reached::Claimed, &["09:00 claimed", "10:00 planned"], &all);
    check(KeepTimes, Reached::Running, &["09:00 running", "10:00 planned"], &all);
    check(KeepTimes, Reached::Waiting, &["09:00 waiting", "10:00 planned"], &all);
    check(KeepTimes, Reached::BackingOff, &["09:00 retry at 09:10", "10:00 planned"], &all);
}

#[test]
fn a_pause_takes_back_what_lies_ahead_and_admits_nothing_that_has_not_begun() {
    for (doing, skipped) in [(Doing::Pause, "09:00 skipped(paused)"), (Doing::Disable, "09:00 skipped(disabled)")] {
        check(doing, Reached::Due, &["09:00 planned"], &[skipped]);
        check(doing, Reached::Claimed, &["09:00 claimed"], &[skipped]);
        check(doing, Reached::Running, &["09:00 running"], &["09:00 succeeded"]);
        check(doing, Reached::Waiting, &["09:00 waiting"], &["09:00 succeeded"]);
        check(doing, Reached::BackingOff, &["09:00 retry at 09:10"], &[skipped]);
    }
}

#[test]
fn a_deleted_schedule_tries_nothing_new_and_lets_what_has_begun_go_on() {
    use Doing::Delete;
    check(Delete, Reached::Due, &[], &[]);
    check(Delete, Reached::Claimed, &["09:00 claimed"], &["09:00 succeeded"]);
    check(Delete, Reached::Running, &["09:00 running"], &["09:00 succeeded"]);
    check(Delete, Reached::Waiting, &["09:00 waiting"], &["09:00 succeeded"]);
    check(Delete, Reached::BackingOff, &["09:00 cancelled"], &["09:00 cancelled"]);
}

#[test]
fn what_was_withdrawn_is_named_in_the_journal() {
    let (mut world, id) = world_with(Reached::Due);
    let planned: Vec<_> = world.runs(id).iter().map(|run| run.id).collect();
    world.delete(id);
    let withdrawn = world.entries().into_iter().filter_map(|entry| match entry.body {
        Body::Planned(plan) => Some(plan.withdrawn.into_iter().chain(plan.next_gone)),
        _ => None,
    });
    assert_eq!(withdrawn.flatten().collect::<Vec<_>>(), planned, "the run that is due, and the slot that came next");
}

#[test]
fn a_run_that_a_person_or_an_event_asked_for_is_cancelled_with_its_schedule_not_forgotten() {
    let (mut world, id) = world_with(Reached::Due);
    let asked = world.trigger(id);
    world.delete(id);
    assert_eq!(world.state(asked), "cancelled");
}

#[test]
fn what_nobody_has_taken_is_carried_out_as_the_schedule_is_now() {
    let (mut world, id) = world_with(Reached::Running);
    world.edit(id, json!({"work": {"agent": {"agent": "reporter", "prompt": "new"}}, "policy": {"priority": 9}}));
    let prompts: Vec<(u64, u8)> = world.runs(id).iter().map(|run| (run.version, run.terms.priority.get())).collect();
    assert_eq!(prompts, [(1, 5), (2, 9)]);
}

#[test]
fn an_edit_and_its_undoing_bring_every_slot_back() {
    let mut world = World::at("08:30");
    world.node("a");
    let id = world.create(json!({}));
    world.advance(MINUTE);
    let before = world.story(id);
    world.edit(id, json!({"trigger": {"cron": [{"expression": "15 * * * *"}]}}));
    assert!(world.story(id).iter().all(|line| line.contains(":15")), "{:?}", world.story(id));
    world.edit(id, json!({"trigger": {"cron": [{"expression": "0 * * * *"}]}}));
    assert_eq!(world.story(id), before);
    world.advance_to("12:30");
    assert_eq!(world.every_slot_has_one_answer(id), 4);
}

#[test]
fn an_edit_of_the_zone_makes_new_slots() {
    let mut world = World::at("06:00");
    world.node("a");
    let id = world.create(json!({"trigger": {"cron": [{"expression": "0 9 * * *"}]}, "zone": "Europe/Paris"}));
    world.advance_to("08:30");
    world.edit(id, json!({"zone": "America/New_York"}));
    world.advance_to("14:30");
    // Nine in Paris, then nine in New York: two nominal times, two slots.
    assert_eq!(world.story(id), ["08:00 succeeded", "14:00 succeeded"]);
    assert_eq!(world.every_slot_has_one_answer(id), 2);
}

#[test]
fn a_slot_belongs_to_the_version_in_force_at_its_time() {
    let mut world = World::at("08:59");
    world.node("a");
    let id = world.create(json!({"trigger": {"cron": [{"expression": "* * * * *"}]}}));
    for minute in 0..30 {
        world.advance(minutes(1));
        let expression = if minute % 2 == 0 { "*/2 * * * *" } else { "* * * * *" };
        world.edit(id, json!({"trigger": {"cron": [{"expression": expression}]}}));
    }
    assert!(15 <= world.every_slot_has_one_answer(id));
    assert!(world.story(id).iter().filter(|line| line.contains("succeeded")).count() <= 30);
}

#[test]
fn of_two_editors_the_second_is_told_that_it_saw_an_old_version() {
    let mut world = World::at("08:30");
    let id = world.create(json!({}));
    assert_eq!(world.try_edit(id, Some(1), json!({"name": "first"})).unwrap(), 2);
    let second = world.try_edit(id, Some(1), json!({"name": "second"}));
    assert!(matches!(second, Err(EditError::OtherVersion { found: 2, expected: 1, .. })), "{second:?}");
    assert_eq!(world.schedule(id).name.as_deref(), Some("first"));
}

#[test]
fn an_edit_before_the_recovery_does_not_lose_what_the_outage_has_missed() {
    let cases = [
        ("edit", vec!["11:00 succeeded", "11:30 planned"], vec!["catch_up×2 09:00..10:00"]),
        ("pause", vec!["11:00 skipped(paused)"], vec!["catch_up×2 09:00..10:00"]),
        ("delete", vec![], vec!["catch_up×2 09:00..10:00"]),
    ];
    // Once a node has come and noted the outage; once nobody has, and the edit is the first to see it.
    for (is_noted, (doing, story, skips)) in
        [true, false].into_iter().flat_map(|it| cases.clone().map(|case| (it, case)))
    {
        let mut world = World::at("2026-01-04T12:00:00Z");
        world.node("a");
        let id = world.create(json!({"trigger": {"cron": [{"expression": "0 9-11 * * *"}]}}));
        world.advance(MINUTE);
        world.stop("a");
        // The new day is not planned when somebody edits what should have run on it.
        world.sleep(at("11:10").duration_since(world.now));
        if is_noted {
            world.node("b").claims = false;
            world.door.break_all("to_plan", Fault::Refused);
            assert!(world.round("b").is_err());
            world.door.repair();
        }
        match doing {
            "edit" => world.edit(
                id,
                json!({"trigger": {"cron": [{"expression": "0 9-11 * * *"}, {"expression": "30 11 * * *"}]}}),
            ),
            "pause" => world.pause(id),
            _ => world.delete(id),
        }
        world.node("b").claims = true;
        world.advance(MINUTE);
        assert_eq!((world.story(id), world.skips(id)), (own(&story), own(&skips)), "{doing}, {is_noted}");
        assert_eq!(world.every_slot_has_one_answer(id), 3, "{doing}, {is_noted}");
    }
}

#[test]
fn an_edit_records_the_slots_for_which_there_was_no_room() {
    let mut world = World::at("09:00");
    world.settings.lease = Elapsed::from_seconds(3_600);
    world.node("a");
    world.work("reporter", Way::Stays);
    let id = world.create(json!({"trigger": {"every": {"interval": "1s", "anchor": "2026-01-05T00:00:00Z"}}}));
    world.advance(seconds(30));
    // One is at work, a thousand wait for it, and there is no room for another.
    world.sleep(minutes(20) - seconds(30));
    world.settle();
    world.edit(id, json!({"trigger": {"cron": [{"expression": "0 12 * * *"}]}}));
    assert_eq!(world.skips(id), ["quota×199 09:16:42..09:20"]);
    assert_eq!(world.every_slot_has_one_answer(id), 1_200);
}

fn own(lines: &[&str]) -> Vec<String> {
    lines.iter().map(|line| (*line).to_owned()).collect()
}

#[test]
fn an_edit_while_the_clock_stands_on_a_slot_answers_it_once() {
    for fields in [json!({"name": "x"}), json!({"trigger": {"cron": [{"expression": "*/30 * * * *"}]}})] {
        let mut world = World::at("08:59");
        world.node("a");
        let id = world.create(json!({}));
        world.advance_to("09:00");
        world.edit(id, fields);
        world.advance(HOUR);
        world.every_slot_has_one_answer(id);
        assert_eq!(world.starts(id)[0], format!("{} at 09:00", clock_time(at("09:00"))));
    }
}

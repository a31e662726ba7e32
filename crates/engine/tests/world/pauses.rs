//! Pauses: which slots come back, what is recorded, and what runs all the same.

use jiff::SignedDuration;
use punctual_core::ScheduleId;
use punctual_core::run::SkipReason;
use punctual_core::schedule::{EndReason, ScheduleState};
use serde_json::json;

use crate::support::{HOUR, MINUTE, SECOND, Way, World, at, days, hours, minutes, now_or_never};

#[test]
fn disabled_at_ten_and_enabled_at_eleven_the_slot_of_seventeen_is_there_again() {
    let mut world = World::at("09:00");
    world.node("a");
    let id = world.create(json!({"trigger": {"times": ["17:00"]}}));
    assert_eq!(world.story(id), ["17:00 planned"]);
    world.advance_to("10:00");
    world.disable(id);
    assert!(world.story(id).is_empty());
    world.advance_to("11:00");
    world.resume(id);
    assert_eq!(world.story(id), ["17:00 planned"]);
    world.advance_to("18:00");
    assert_eq!(world.story(id), ["17:00 succeeded"]);
    assert!(world.skips(id).is_empty(), "no slot lay in the pause");
    assert_eq!(world.every_slot_has_one_answer(id), 1);
}

#[test]
fn a_cancelled_slot_stays_away_however_often_the_schedule_is_switched() {
    let mut world = World::at("09:00");
    world.node("a");
    let id = world.create(json!({"trigger": {"times": ["17:00", "18:00"]}}));
    let run = world.run_at(id, "17:00").id;
    world.cancel(run);
    for _ in 0..3 {
        world.advance(MINUTE);
        world.disable(id);
        world.advance(MINUTE);
        world.resume(id);
        world.edit(id, json!({"name": world.now.to_string()}));
        assert_eq!(world.story(id), ["17:00 cancelled", "18:00 planned"]);
    }
    world.advance_to("19:00");
    assert_eq!(world.story(id), ["17:00 cancelled", "18:00 succeeded"]);
    assert_eq!(world.every_slot_has_one_answer(id), 2);
}

#[test]
fn a_cancelled_slot_in_a_pause_is_not_skipped_as_well() {
    for delete in [false, true] {
        let mut world = World::at("09:00");
        world.node("a");
        let id = world.create(json!({"trigger": {"cron": [{"expression": "0 14-18 * * *"}]}}));
        let run = world.run_at(id, "16:00").id;
        world.cancel(run);
        world.advance(MINUTE);
        world.disable(id);
        world.advance_to("19:00");
        if delete {
            world.delete(id);
        } else {
            world.resume(id);
        }
        assert_eq!(world.skips(id), ["disabled×2 14:00..15:00", "disabled×2 17:00..18:00"]);
        assert_eq!(world.every_slot_has_one_answer(id), 5);
    }
}

#[test]
fn the_slots_of_a_pause_are_one_range_at_its_end() {
    for (delete, disable) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut world = World::at("08:30");
        world.node("a");
        let id = world.create(json!({"trigger": {"cron": [{"expression": "*/10 * * * *"}]}}));
        world.advance_to("09:05");
        if disable {
            world.disable(id);
        } else {
            world.pause(id);
        }
        world.advance(days(3));
        assert!(world.skips(id).is_empty(), "nothing is recorded while the pause lasts");
        if delete {
            world.delete(id);
        } else {
            world.resume(id);
        }
        let reason = if disable { SkipReason::Disabled } else { SkipReason::Paused };
        assert_eq!(world.skips(id), [format!("{reason}×432 09:10..09:00")]);
        assert_eq!(world.every_slot_has_one_answer(id), 432 + 3);
    }
}

#[test]
fn a_pause_of_a_paused_schedule_and_an_edit_in_it_keep_its_beginning() {
    let mut world = World::at("08:30");
    world.node("a");
    let id = world.create(json!({}));
    world.advance_to("09:30");
    world.pause(id);
    world.advance_to("11:30");
    world.pause(id);
    world.edit(id, json!({"name": "renamed"}));
    world.advance_to("13:30");
    world.resume(id);
    assert_eq!(world.skips(id), ["paused×4 10:00..13:00"]);
    assert_eq!(world.every_slot_has_one_answer(id), 5);
}

#[test]
fn times_that_change_in_a_pause_are_recorded_as_they_were() {
    let mut world = World::at("08:30");
    world.node("a");
    let id = world.create(json!({}));
    world.advance_to("09:30");
    world.pause(id);
    world.advance_to("11:30");
    world.edit(id, json!({"trigger": {"cron": [{"expression": "15 * * * *"}]}}));
    world.advance_to("13:30");
    world.resume(id);
    assert_eq!(world.skips(id), ["paused×2 10:00..11:00", "paused×2 12:15..13:15"]);
    assert_eq!(world.every_slot_has_one_answer(id), 5);
}

#[test]
fn a_restart_in_a_pause_records_nothing_and_starts_nothing() {
    let mut world = World::at("08:30");
    world.node("a");
    let id = world.create(json!({}));
    world.advance_to("09:30");
    world.pause(id);
    world.advance(MINUTE);
    world.outage(hours(3));
    world.advance(MINUTE);
    assert_eq!((world.story(id), world.skips(id)), (vec!["09:00 succeeded".to_owned()], vec![]));
    world.resume(id);
    assert_eq!(world.skips(id), ["paused×3 10:00..12:00"]);
    world.advance(HOUR);
    assert_eq!(world.every_slot_has_one_answer(id), 5);
}

#[test]
fn a_run_asked_for_in_a_pause_runs_at_once_with_priority_8_and_moves_nothing() {
    let mut world = World::at("08:30");
    world.node("a");
    let id = world.create(json!({}));
    world.advance_to("09:30");
    world.pause(id);
    let before = world.schedule(id).cursor;
    let run = world.trigger(id);
    assert_eq!(world.run(run).terms.priority.get(), 8);
    world.settle();
    assert_eq!(world.state(run), "succeeded");
    assert_eq!(world.schedule(id).cursor, before);
    world.advance_to("10:30");
    world.resume(id);
    assert_eq!(world.skips(id), ["paused×1 10:00..10:00"]);
    world.advance(HOUR);
    assert_eq!(world.every_slot_has_one_answer(id), 3);
}

#[test]
fn a_run_asked_for_beside_a_slot_is_one_more_and_moves_nothing() {
    let mut world = World::at("08:59");
    world.node("a");
    let id = world.create(json!({}));
    let before = world.record(id);
    world.trigger(id);
    assert_eq!(world.record(id).schedule.cursor, before.schedule.cursor);
    assert_eq!(world.record(id).plan_at, before.plan_at);
    world.advance_to("09:00");
    world.trigger(id);
    world.settle();
    assert_eq!(world.story(id)[..3], ["m 08:59 succeeded", "m 09:00 succeeded", "09:00 succeeded"]);
    assert_eq!(world.every_slot_has_one_answer(id), 1);
}

#[test]
fn immediate_fires_at_creation_and_whenever_it_is_enabled_and_at_nothing_else() {
    let mut world = World::at("08:30");
    world.node("a");
    let id = world.create(json!({"trigger": {"immediate": {"at": "2026-01-05T08:30:00Z"}}}));
    world.settle();
    assert_eq!(world.story(id), ["08:30 succeeded"]);
    // Another edit, at that very instant and later.
    world.edit(id, json!({"name": "renamed"}));
    world.advance(MINUTE);
    world.edit(id, json!({"name": "renamed again"}));
    world.advance(MINUTE);
    // A restart, short and long.
    world.outage(SECOND);
    world.outage(days(2));
    world.advance(MINUTE);
    assert_eq!(world.story(id), ["08:30 succeeded"]);
    // A pause is not switching off.
    world.pause(id);
    world.advance(MINUTE);
    world.resume(id);
    world.advance(MINUTE);
    assert_eq!(world.starts(id).len(), 1);
    // Disabled and enabled, twice.
    for count in 2..=3 {
        world.disable(id);
        world.advance(MINUTE);
        assert_eq!(world.starts(id).len(), count - 1);
        world.resume(id);
        world.advance(MINUTE);
        assert_eq!(world.starts(id).len(), count);
        world.edit(id, json!({"name": "again"}));
        world.outage(minutes(5));
        assert_eq!(world.starts(id).len(), count);
    }
    world.every_slot_has_one_answer(id);
}

#[test]
fn immediate_made_while_nobody_is_there_runs_when_somebody_comes() {
    let mut world = World::at("08:30");
    let id = world.create(json!({"trigger": {"immediate": {"at": "2026-01-05T08:30:00Z"}}}));
    world.sleep(minutes(10));
    world.node("a");
    world.settle();
    assert_eq!(world.starts(id), ["08:30 at 08:40"]);
}

#[test]
fn a_one_shot_is_done_when_its_run_is() {
    let mut world = World::at("08:30");
    world.node("a");
    world.work("reporter", Way::Takes(minutes(5)));
    let id = world.create(json!({"trigger": {"at": "2026-01-05T09:00:00Z"}}));
    world.advance_to("09:04");
    assert_eq!(world.schedule(id).state, ScheduleState::Active);
    world.advance_to("09:06");
    assert_eq!(world.schedule(id).state, ScheduleState::Ended(EndReason::Done));
    assert_eq!(world.story(id), ["09:00 succeeded"]);
    world.every_slot_has_one_answer(id);
}

#[test]
fn a_one_shot_that_a_pause_has_missed_is_recorded_and_done() {
    let mut world = World::at("08:30");
    world.node("a");
    let id = world.create(json!({"trigger": {"at": "2026-01-05T09:00:00Z"}}));
    world.advance(MINUTE);
    world.pause(id);
    world.advance_to("10:00");
    world.resume(id);
    world.advance(MINUTE);
    assert_eq!(world.skips(id), ["paused×1 09:00..09:00"]);
    assert_eq!(world.schedule(id).state, ScheduleState::Ended(EndReason::Done));
    world.every_slot_has_one_answer(id);
}

#[test]
fn a_schedule_that_an_edit_leaves_without_a_slot_is_over() {
    let mut world = World::at("08:30");
    world.node("a");
    let past = world.create(json!({"trigger": {"at": "2026-01-05T08:00:00Z"}}));
    let bounded = world.create(json!({}));
    let limited = world.create(json!({}));
    world.advance_to("10:30");
    world.edit(bounded, json!({"bounds": {"end_at": "2026-01-05T09:30:00Z"}}));
    world.edit(limited, json!({"bounds": {"max_runs": 2}}));
    world.advance(MINUTE);
    let states = [past, bounded, limited].map(|id| world.schedule(id).state);
    let ended = |reason| ScheduleState::Ended(reason);
    assert_eq!(states, [ended(EndReason::Done), ended(EndReason::Done), ended(EndReason::MaxRuns)]);
    assert_eq!(world.starts(bounded), ["09:00 at 09:00", "10:00 at 10:00"]);
}

#[test]
fn a_one_shot_that_is_edited_or_resumed_at_its_very_instant_has_one_answer() {
    for way in [Way::Stays, Way::Succeeds] {
        let mut world = World::at("08:30");
        world.node("a");
        world.work("reporter", way);
        let edited = world.create(json!({"trigger": {"at": "2026-01-05T09:00:00Z"}}));
        let paused = world.create(json!({"trigger": {"at": "2026-01-05T09:00:00Z"}}));
        world.pause(paused);
        world.advance_to("09:00");
        world.edit(edited, json!({"name": "renamed"}));
        world.resume(paused);
        world.advance(MINUTE);
        assert_eq!(world.starts(edited), ["09:00 at 09:00"]);
        assert_eq!(world.skips(paused), ["paused×1 09:00..09:00"]);
        [edited, paused].iter().for_each(|id| assert_eq!(world.every_slot_has_one_answer(*id), 1));
    }
}

#[test]
fn a_one_shot_that_an_edit_brings_back_at_its_very_instant_has_its_answer() {
    let nine = json!({"trigger": {"at": "2026-01-05T09:00:00Z"}});
    let daily = json!({"trigger": {"cron": [{"expression": "0 12 * * *"}]}});
    let every = json!({"trigger": {"every": {"interval": "1h", "anchor": "2026-01-05T00:00:00Z"}}});
    for (way, first, edits) in [
        (Way::Succeeds, &nine, vec![&daily, &nine]),
        (Way::Stays, &nine, vec![&daily, &nine]),
        (Way::Succeeds, &every, vec![&nine]),
        (Way::Fails, &every, vec![&daily, &nine]),
    ] {
        let mut world = World::at("08:30");
        world.node("a");
        world.work("reporter", way);
        let id = world.create(first.clone());
        world.advance_to("09:00");
        edits.iter().for_each(|fields| world.edit(id, (*fields).clone()));
        world.settle();
        assert_eq!(world.starts(id), ["09:00 at 09:00"], "{way:?} {first} {edits:?}");
        world.work("reporter", Way::Succeeds);
        if let Some(run) = world.recorded(id).into_iter().find(|run| run.owner().is_some()) {
            world.finish(run.id);
        }
        world.advance(hours(2));
        assert_eq!(world.schedule(id).state, ScheduleState::Ended(EndReason::Done), "{way:?} {first} {edits:?}");
        assert_eq!(world.recorded(id).len(), 1);
    }
}

/// An hourly schedule that makes up for pauses as it does for outages.
fn made_up_for(world: &mut World) -> ScheduleId {
    world.create(json!({
        "trigger": {"cron": [{"expression": "0 9-20 * * *"}]},
        "policy": {
            "catch_up": {"mode": "all", "max": u32::MAX, "covers_pauses": true},
            "max_delay": "none", "overlap": "allow",
        },
    }))
}

#[test]
fn a_pause_that_is_made_up_for_runs_every_slot_when_it_ends() {
    let mut world = World::at("2026-01-05T08:30:00Z");
    world.node("a");
    let id = made_up_for(&mut world);
    world.advance_to("09:30");
    world.pause(id);
    world.advance_to("12:10");
    assert_eq!(world.starts(id).len(), 1, "nothing begins in a pause");
    world.resume(id);
    world.advance_to("13:10");
    assert_eq!(world.starts(id).len(), 5);
    for slot in ["09:00", "10:00", "11:00", "12:00", "13:00"] {
        assert_eq!(world.state(world.run_at(id, slot).id), "succeeded", "{slot}");
    }
    assert_eq!(world.skips(id), Vec::<String>::new());
    world.every_slot_has_one_answer(id);
}

#[test]
fn a_pause_in_the_middle_of_catching_up_loses_nothing() {
    let mut world = World::at("2026-01-05T08:30:00Z");
    world.node("a");
    let id = made_up_for(&mut world);
    world.work("reporter", Way::Stays);
    world.advance(minutes(20));
    world.outage(at("12:10").duration_since(world.now));
    // Of four that were missed, one has begun, and the others wait for their turn.
    world.pause(id);
    let begun = world.starts(id).len();
    assert_eq!(begun, 1);
    world.advance_to("13:30");
    assert_eq!(world.starts(id).len(), begun, "nothing begins in a pause");
    world.work("reporter", Way::Succeeds);
    world.finish(world.at_work(id));
    world.resume(id);
    world.advance_to("14:10");
    world.every_slot_has_one_answer(id);
    assert_eq!(world.skips(id), Vec::<String>::new());
    assert_eq!(world.runs(id).iter().filter(|run| run.has_started).count(), 6, "{:?}", world.story(id));
}

#[test]
fn two_pauses_at_once_and_two_resumes_at_once_are_one_of_each() {
    let mut world = World::at("2026-01-05T08:30:00Z");
    world.node("a");
    let id = made_up_for(&mut world);
    world.advance_to("09:30");
    world.pause(id);
    world.pause(id);
    world.advance_to("11:30");
    world.resume(id);
    world.resume(id);
    world.advance_to("12:10");
    assert_eq!(world.starts(id).len(), 4);
    world.every_slot_has_one_answer(id);
}

#[test]
fn a_schedule_that_is_deleted_in_a_pause_that_would_be_made_up_for_leaves_no_slot_unanswered() {
    let mut world = World::at("2026-01-05T08:30:00Z");
    world.node("a");
    let id = made_up_for(&mut world);
    world.advance_to("09:30");
    world.pause(id);
    world.advance_to("11:30");
    world.delete(id);
    let skipped: Vec<String> = world.skips(id);
    assert_eq!(skipped.len(), 1, "{skipped:?}");
}

#[test]
fn a_pause_that_is_made_up_for_goes_back_to_no_slot_that_is_decided() {
    // Once the clock is set back before the pause; once a slot still waits while a later one has begun.
    for sets_clock in [true, false] {
        let mut world = World::at("2026-01-05T08:30:00Z");
        world.node("a");
        let id = made_up_for(&mut world);
        if sets_clock {
            world.advance_to("10:05");
            world.set_clock(-minutes(20));
        } else {
            world.advance_to("08:59");
            world.node("a").claims = false;
            world.advance_to("10:05");
            let last = world.run_at(id, "10:00").id;
            world.cancel(last);
        }
        world.pause(id);
        world.node("a").claims = true;
        world.advance_to("11:30");
        world.resume(id);
        world.advance_to("12:30");
        for slot in ["11:00", "12:00"] {
            assert_eq!(world.state(world.run_at(id, slot).id), "succeeded", "{slot}");
        }
        let starts = world.starts(id);
        let unique: std::collections::BTreeSet<&str> = starts.iter().map(|start| &start[..5]).collect();
        assert_eq!(starts.len(), unique.len(), "each slot once: {starts:?}");
        assert_eq!(world.record(id).outage, None, "the pause is made up for");
        world.every_slot_has_one_answer(id);
    }
}

#[test]
fn two_resumes_of_one_moment_are_both_carried_out() {
    let mut world = World::at("2026-01-05T08:30:00Z");
    world.node("a");
    let id = made_up_for(&mut world);
    world.pause(id);
    world.sleep(minutes(1));
    // The second looked at the clock before the first did, and comes to the store after it.
    let asked_at = world.now - SignedDuration::from_millis(5);
    world.resume(id);
    now_or_never(world.editor().resume(id, asked_at)).expect("it waits for the first");
    world.settle();
    assert!(world.schedule(id).is_active());
    world.every_slot_has_one_answer(id);
}

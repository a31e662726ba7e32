//! How much is planned ahead, and how often a schedule runs in all.

use jiff::SignedDuration;
use punctual_core::plan::UNSTARTED_MAX;
use punctual_core::schedule::{EndReason, ScheduleState};
use punctual_core::time::Calendar;
use punctual_core::{Elapsed, RunId};
use serde_json::json;

use crate::support::{HOUR, MINUTE, Way, World, minutes, seconds};

#[test]
fn a_schedule_of_every_second_is_topped_up_and_loses_none() {
    let mut world = World::at("09:00");
    world.settings.lease = Elapsed::from_seconds(600);
    world.node("a");
    let id = world.create(json!({
        "trigger": {"every": {"interval": "1s", "anchor": "2026-01-05T00:00:00Z"}},
        "policy": {"overlap": "allow", "max_concurrent": 100},
    }));
    assert_eq!(world.runs(id).len(), UNSTARTED_MAX);
    // Someone looks every ten seconds, for as long as it takes to be topped up several times.
    for _ in 0..240 {
        world.sleep(seconds(10));
        world.settle();
        let runs = world.runs(id);
        let waiting = runs.iter().filter(|run| !run.state.is_final()).count();
        assert!((100..=UNSTARTED_MAX).contains(&waiting), "{waiting} are planned ahead");
        assert!(runs.iter().all(|run| run.state.is_final() || world.now < run.due_at), "what is due has begun");
    }
    assert_eq!(world.every_slot_has_one_answer(id), 2_400);
}

#[test]
fn when_as_many_wait_as_may_the_rest_waits_unplanned_and_comes_later() {
    let mut world = World::at("09:00");
    world.settings.lease = Elapsed::from_seconds(7_200);
    world.node("a").claims = false;
    let id = world.create(json!({
        "trigger": {"every": {"interval": "1s", "anchor": "2026-01-05T00:00:00Z"}},
        "policy": {"overlap": "allow", "max_concurrent": 200, "catch_up": {"mode": "none"}},
    }));
    world.sleep(minutes(30));
    world.settle();
    assert_eq!(world.recorded(id).len(), UNSTARTED_MAX, "nobody takes them");
    world.node("a").claims = true;
    world.advance(minutes(2));
    let done = world.story(id).iter().filter(|line| line.contains("succeeded")).count();
    assert_eq!(done, 32 * 60, "late, and none of them lost: nobody was away");
    assert_eq!(world.every_slot_has_one_answer(id), 32 * 60);
}

#[test]
fn a_schedule_ends_after_exactly_so_many_started_runs() {
    let mut world = World::at("08:59");
    world.node("a");
    let id = world.create(json!({"trigger": {"cron": [{"expression": "* * * * *"}]}, "bounds": {"max_runs": 5}}));
    assert_eq!(world.runs(id).len(), 5, "no more is planned than may run");
    world.advance(HOUR);
    let slots = ["09:00", "09:01", "09:02", "09:03", "09:04"];
    assert_eq!(world.story(id), slots.map(|slot| format!("{slot} succeeded")));
    assert_eq!(world.schedule(id).state, ScheduleState::Ended(EndReason::MaxRuns));
    assert_eq!(world.schedule(id).runs_started, 5);
}

#[test]
fn what_was_skipped_or_cancelled_before_it_began_does_not_count() {
    let mut world = World::at("08:59");
    world.node("a");
    world.work("reporter", Way::Takes(seconds(150)));
    let id = world.create(json!({
        "trigger": {"cron": [{"expression": "* * * * *"}]},
        "policy": {"overlap": "skip", "max_concurrent": 2},
        "bounds": {"max_runs": 3},
    }));
    let first = world.run_at(id, "09:00").id;
    world.cancel(first);
    world.advance(HOUR);
    assert_eq!(world.starts(id), ["09:01 at 09:01", "09:04 at 09:04", "09:07 at 09:07"]);
    assert_eq!(world.schedule(id).state, ScheduleState::Ended(EndReason::MaxRuns));
    let others: Vec<String> = world.story(id).into_iter().filter(|line| !line.contains("succeeded")).collect();
    let skipped = ["09:02", "09:03", "09:05", "09:06"].map(|slot| format!("{slot} skipped(overlap)"));
    let mut expected = vec!["09:00 cancelled".to_owned()];
    expected.extend(skipped);
    assert!(others.starts_with(&expected), "{others:?}");
}

#[test]
fn a_run_counts_once_however_often_it_is_tried() {
    let mut world = World::at("08:59");
    world.node("a");
    world.work("reporter", Way::Fails);
    let id = world.create(json!({
        "trigger": {"cron": [{"expression": "*/10 * * * *"}]},
        "bounds": {"max_runs": 2},
    }));
    world.advance(HOUR);
    assert_eq!(world.starts(id).len(), 6, "two runs, three tries each");
    assert_eq!(world.story(id), ["09:00 failed(error)", "09:10 failed(error)"]);
    assert_eq!(world.schedule(id).state, ScheduleState::Ended(EndReason::MaxRuns));
}

#[test]
fn a_schedule_with_an_end_is_done_behind_its_last_slot() {
    let mut world = World::at("08:59");
    world.node("a");
    let bounds = json!({"start_at": "2026-01-05T10:00:00Z", "end_at": "2026-01-05T12:00:00Z"});
    let id = world.create(json!({"bounds": bounds}));
    world.advance(HOUR * 5);
    assert_eq!(world.story(id), ["10:00 succeeded", "11:00 succeeded", "12:00 succeeded"]);
    assert_eq!(world.schedule(id).state, ScheduleState::Ended(EndReason::Done));
    assert_eq!(world.every_slot_has_one_answer(id), 3);
}

#[test]
fn a_schedule_whose_agent_nobody_has_answers_its_runs_after_ten_minutes() {
    let mut world = World::at("08:55");
    world.node("a");
    let id = world.create(json!({"work": {"agent": {"agent": "nobody"}}}));
    world.advance_to("09:09");
    assert_eq!(world.story(id)[0], "09:00 planned", "its node may be on its way");
    world.advance(minutes(2));
    assert_eq!(world.story(id)[0], "09:00 skipped(agent_removed)");
    world.advance(HOUR);
    assert_eq!(world.story(id)[1], "10:00 skipped(agent_removed)");
    assert_eq!(world.every_slot_has_one_answer(id), 2);
    world.advance(MINUTE);
}

#[test]
fn a_schedule_whose_calendar_is_closed_ends_with_its_last_run() {
    let mut world = World::at("2026-01-05T08:59:00Z");
    world.settings.calendars = [("office".to_owned(), office())].into();
    world.node("a");
    let id = world.create(json!({"calendar": "office", "bounds": {"max_runs": 3}}));
    world.advance_to("11:05");
    assert_eq!(world.story(id), ["09:00 succeeded", "10:00 succeeded", "11:00 succeeded"]);
    assert_eq!(world.schedule(id).state, ScheduleState::Ended(EndReason::MaxRuns));
}

#[test]
fn a_place_that_becomes_free_in_the_morning_is_for_the_first_slot_of_that_day() {
    let mut world = World::at("2026-01-05T10:30:00Z");
    world.settings.calendars = [("office".to_owned(), office())].into();
    world.node("a").claims = false;
    let id = world.create(json!({"calendar": "office", "bounds": {"max_runs": 1}, "policy": {"max_delay": "none"}}));
    world.advance_to("2026-01-06T08:30:00Z");
    let waiting: Vec<RunId> = world.recorded(id).iter().map(|run| run.id).collect();
    assert_eq!(waiting.len(), 1, "it has the only place");
    world.cancel(waiting[0]);
    world.node("a").claims = true;
    world.advance_to("2026-01-06T09:05:00Z");
    assert_eq!(world.starts(id), ["09:00 at 09:00"]);
}

/// Open on two mornings.
fn office() -> Calendar {
    serde_json::from_value(json!({
        "name": "office", "zone": "UTC",
        "weekly": {"mon": ["09:00-12:00"], "tue": ["09:00-12:00"]},
    }))
    .unwrap()
}

#[test]
fn no_start_puts_the_end_of_a_schedule_off() {
    let mut world = World::at("08:59");
    world.node("a");
    let other = world.create(json!({}));
    let id = world.create(json!({"bounds": {"end_at": "2026-01-05T09:30:00Z"}}));
    world.advance_to("09:00");
    // Starts come all the time.
    for _ in 0..20 {
        world.trigger(other);
        world.advance(SignedDuration::from_millis(300));
    }
    assert_eq!(world.schedule(id).state, ScheduleState::Ended(EndReason::Done));
    let entries = world.entries().into_iter().filter(|entry| entry.body.schedule() == Some(id)).count();
    assert!(entries < 12, "{entries} entries");
}

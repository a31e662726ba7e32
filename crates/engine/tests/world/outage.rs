//! Outages: what becomes of the slots of a time in which nobody planned, and what merely waits.

use punctual_core::run::SkipReason;
use serde_json::{Value, json};

use crate::support::{HOUR, MINUTE, SECOND, Way, World, at, hours, minutes, now_or_never, seconds};

/// An hourly schedule misses the slots of 09:00 to 12:00, from 08:59 to 12:10; says what becomes of each.
fn check(catch_up: Value, expected: &[(&str, &str)]) {
    // Once the runs of the day are planned before the outage; once the outage began the day before, and nothing is.
    for from in ["2026-01-05T08:30:00Z", "2026-01-04T20:30:00Z"] {
        let mut world = World::at(from);
        world.node("a");
        let id = world.create(json!({
            "trigger": {"cron": [{"expression": "0 9-20 * * *"}]},
            "policy": {"catch_up": catch_up, "max_delay": "none", "overlap": "allow"},
        }));
        world.advance(minutes(29));
        world.outage(at("12:10").duration_since(world.now));
        let mut found: Vec<(String, String)> = vec![];
        for slot in ["09:00", "10:00", "11:00", "12:00"] {
            let run = world.runs(id).into_iter().find(|run| run.scheduled_at == at(slot));
            let state = run.map_or_else(|| "skipped(catch_up)".to_owned(), |run| world.state(run.id));
            found.push((slot.to_owned(), state));
        }
        let expected: Vec<(String, String)> =
            expected.iter().map(|(slot, state)| ((*slot).to_owned(), (*state).to_owned())).collect();
        assert_eq!(found, expected, "{catch_up}, from {from}");
        world.advance_to("13:30");
        assert_eq!(world.state(world.run_at(id, "13:00").id), "succeeded", "the next slot is on time");
        world.every_slot_has_one_answer(id);
        // Whatever happens later, the outage is made up for once.
        let starts = world.starts(id);
        world.outage(minutes(10));
        world.advance(MINUTE);
        assert_eq!(world.starts(id), starts, "{catch_up}, from {from}");
    }
}

const RUN: &str = "succeeded";
const LET_GO: &str = "skipped(catch_up)";

#[test]
fn none_lets_every_missed_slot_go() {
    check(json!({"mode": "none"}), &[("09:00", LET_GO), ("10:00", LET_GO), ("11:00", LET_GO), ("12:00", LET_GO)]);
}

#[test]
fn first_runs_the_earliest() {
    check(json!({"mode": "first"}), &[("09:00", RUN), ("10:00", LET_GO), ("11:00", LET_GO), ("12:00", LET_GO)]);
}

#[test]
fn latest_runs_the_last() {
    check(json!({"mode": "latest"}), &[("09:00", LET_GO), ("10:00", LET_GO), ("11:00", LET_GO), ("12:00", RUN)]);
}

#[test]
fn all_runs_every_one() {
    check(json!({"mode": "all"}), &[("09:00", RUN), ("10:00", RUN), ("11:00", RUN), ("12:00", RUN)]);
}

#[test]
fn all_runs_at_most_so_many_the_latest() {
    let catch_up = json!({"mode": "all", "max": 3});
    check(catch_up, &[("09:00", LET_GO), ("10:00", RUN), ("11:00", RUN), ("12:00", RUN)]);
}

#[test]
fn what_is_older_than_the_window_is_let_go() {
    let all = json!({"mode": "all", "window": "1h30m"});
    check(all, &[("09:00", LET_GO), ("10:00", LET_GO), ("11:00", RUN), ("12:00", RUN)]);
    let first = json!({"mode": "first", "window": "1h30m"});
    check(first, &[("09:00", LET_GO), ("10:00", LET_GO), ("11:00", RUN), ("12:00", LET_GO)]);
    let latest = json!({"mode": "latest", "window": "5m"});
    check(latest, &[("09:00", LET_GO), ("10:00", LET_GO), ("11:00", LET_GO), ("12:00", LET_GO)]);
}

#[test]
fn all_replays_in_order_each_when_the_one_before_has_started() {
    let mut world = World::at("08:30");
    world.node("a");
    world.work("reporter", Way::Stays);
    let id = world.create(json!({
        "policy": {"catch_up": {"mode": "all"}, "overlap": "allow", "max_concurrent": 2},
    }));
    world.advance(MINUTE);
    world.outage(hours(3));
    // Two places: the third waits for a place, the fourth is not there yet.
    assert_eq!(world.story(id)[..3], ["09:00 running", "10:00 running", "11:00 planned"]);
    let first = world.run_at(id, "09:00").id;
    world.finish(first);
    assert_eq!(world.starts(id), ["09:00 at 11:31", "10:00 at 11:31", "11:00 at 11:31"]);
    world.every_slot_has_one_answer(id);
}

#[test]
fn a_replay_goes_on_behind_a_run_that_was_called_off() {
    let mut world = World::at("08:30");
    world.node("a");
    world.work("reporter", Way::Stays);
    let id = world.create(json!({"policy": {"catch_up": {"mode": "all"}}}));
    world.advance(MINUTE);
    world.outage(hours(3));
    assert_eq!(world.story(id)[..3], ["09:00 running", "10:00 planned", "11:00 planned"]);
    let second = world.run_at(id, "10:00").id;
    world.cancel(second);
    let first = world.at_work(id);
    world.finish(first);
    assert_eq!(world.story(id)[..3], ["09:00 succeeded", "10:00 cancelled", "11:00 running"]);
}

#[test]
fn overdue_outside_an_outage_is_waiting_and_kept() {
    let mut world = World::at("08:30");
    world.node("a");
    world.work("reporter", Way::Stays);
    // A run that never ends has the agent's one place.
    let other = world.create(json!({"trigger": {"at": "2026-01-05T08:30:00Z"}}));
    let policy = json!({"catch_up": {"mode": "none"}, "overlap": "allow"});
    let id = world.create(json!({"trigger": {"cron": [{"expression": "0 9-11 * * *"}]}, "policy": policy}));
    world.advance_to("11:30");
    assert_eq!(world.story(id), ["09:00 planned", "10:00 planned", "11:00 planned"]);
    // An outage later on does not concern them either: they were due before it.
    world.work("reporter", Way::Succeeds);
    world.outage(hours(1));
    assert_eq!(world.state(world.runs(other)[0].id), "succeeded");
    assert_eq!(world.story(id), ["09:00 succeeded", "10:00 succeeded", "11:00 succeeded"]);
    assert_eq!(world.every_slot_has_one_answer(id), 3);
}

#[test]
fn a_restart_within_the_lease_is_no_outage() {
    let mut world = World::exclusive_at("08:59:50");
    world.node("a");
    let id = world.create(json!({"policy": {"catch_up": {"mode": "none"}}}));
    world.advance(SECOND);
    world.kill("a");
    world.sleep(seconds(20));
    world.node("b");
    world.settle();
    assert_eq!(world.starts(id), ["09:00 at 09:00:11"]);
    assert_eq!(world.every_slot_has_one_answer(id), 1);
}

#[test]
fn while_another_node_plans_there_is_no_outage() {
    let mut world = World::at("08:30");
    world.node("a");
    world.node("b");
    let id = world.create(json!({
        "trigger": {"every": {"interval": "10s", "anchor": "2026-01-05T00:00:00Z"}},
        "policy": {"catch_up": {"mode": "none"}},
    }));
    world.advance(MINUTE);
    // The one that plans dies. The other has what was planned, and runs it while nobody plans.
    world.kill("a");
    world.advance(minutes(5));
    let skipped = world.story(id).iter().filter(|line| line.contains("skipped")).count();
    assert_eq!((skipped, world.skips(id)), (0, vec![]));
    assert_eq!(world.every_slot_has_one_answer(id), 36);
}

#[test]
fn a_run_that_had_begun_is_not_caught_up_but_lost() {
    let mut world = World::at("08:59");
    world.node("a");
    world.work("reporter", Way::Stays);
    let id = world.create(json!({"policy": {"catch_up": {"mode": "none"}}}));
    world.advance_to("09:00");
    world.kill("a");
    world.sleep(minutes(30));
    world.work("reporter", Way::Succeeds);
    world.node("b");
    world.advance(MINUTE);
    assert_eq!(world.story(id)[0], "09:00 succeeded");
    assert_eq!(world.run_at(id, "09:00").state.tally().attempt, 2);
}

#[test]
fn what_jitter_puts_behind_the_outage_was_not_missed() {
    let mut world = World::at("08:59");
    world.node("a");
    let policy = json!({"catch_up": {"mode": "none"}, "max_concurrent": 100});
    let ids: Vec<_> = (0..20).map(|_| world.create(json!({"jitter": "10m", "policy": policy}))).collect();
    world.advance(SECOND);
    world.outage(minutes(5));
    let until = world.now;
    world.advance(minutes(10));
    for id in ids {
        let timetable = world.schedule(id).timetable(&world.settings.zones, &world.settings.calendars).unwrap();
        let due_at = timetable.slots(at("08:59")).next().unwrap().due_at;
        let (starts, skips) = if due_at <= until { (0, vec!["catch_up×1 09:00..09:00"]) } else { (1, vec![]) };
        assert_eq!(
            (world.starts(id).len(), world.skips(id)),
            (starts, skips.iter().map(ToString::to_string).collect())
        );
        world.every_slot_has_one_answer(id);
    }
}

#[test]
fn an_outage_of_weeks_is_made_up_for_in_few_steps_and_counted_to_the_last_slot() {
    let mut world = World::at("2025-12-01T00:00:00Z");
    world.node("a");
    let id = world.create(json!({"trigger": {"cron": [{"expression": "* * * * *"}]}}));
    world.advance(SECOND);
    world.outage(hours(24 * 14));
    world.advance(MINUTE);
    assert_eq!(world.every_slot_has_one_answer(id), 24 * 60 * 14 + 1);
    let ended = world.runs(id);
    let caught_up = ended.iter().filter(|run| run.has_started && run.scheduled_at <= world.now - seconds(61)).count();
    assert_eq!(caught_up, 1, "latest is one run");
    let reasons: std::collections::BTreeSet<String> =
        world.skips(id).iter().map(|line| line.split('×').next().unwrap().to_owned()).collect();
    assert_eq!(reasons, [SkipReason::CatchUp.to_string()].into());
}

#[test]
fn what_a_recovery_has_no_place_for_follows_a_second_apart() {
    let mut world = World::at("08:30");
    world.settings.max_recovery_catch_ups = 3;
    world.node("a");
    let ids: Vec<_> = (0..6).map(|_| world.create(json!({"policy": {"max_concurrent": 100}}))).collect();
    world.advance(MINUTE);
    world.outage(HOUR);
    world.advance(seconds(10));
    let mut starts: Vec<String> = ids.iter().flat_map(|id| world.starts(*id)).collect();
    starts.sort();
    let expected = ["09:31", "09:31", "09:31", "09:31:01", "09:31:02", "09:31:03"];
    assert_eq!(starts, expected.map(|time| format!("09:00 at {time}")));
    ids.iter().for_each(|id| assert_eq!(world.every_slot_has_one_answer(*id), 1));
}

#[test]
fn the_places_of_a_recovery_go_round_the_projects() {
    let mut world = World::at("08:30");
    world.settings.max_recovery_catch_ups = 4;
    world.node("a");
    // One project has a schedule with many missed slots and two others; it comes first in every order there is.
    let policy = json!({"catch_up": {"mode": "all"}, "overlap": "allow", "max_concurrent": 100});
    let flood = world.create(json!({
        "project": "a", "trigger": {"cron": [{"expression": "* * * * *"}]}, "policy": policy,
    }));
    let big = [0; 2].map(|_| world.create(json!({"project": "a", "policy": policy})));
    let small = ["b", "c"].map(|project| world.create(json!({"project": project, "policy": policy})));
    world.advance(SECOND);
    world.outage(minutes(40));
    world.settle();
    for id in small {
        assert_eq!(world.starts(id), ["09:00 at 09:10:01"], "a small project does not wait behind a big one");
    }
    let at_once = world.starts(flood).iter().filter(|start| start.ends_with("at 09:10:01")).count();
    assert_eq!(at_once + big.iter().map(|id| world.starts(*id).len()).sum::<usize>(), 2);
    world.advance(minutes(2));
    for id in [flood].iter().chain(&big).chain(&small) {
        world.every_slot_has_one_answer(*id);
        let late = world.runs(*id).iter().filter(|run| run.due_at <= world.now && !run.state.is_final()).count();
        assert_eq!(late, 0, "{:?}", world.story(*id));
    }
}

#[test]
fn a_look_that_took_long_leaves_an_outage_that_ended_after_it_to_the_next() {
    let mut world = World::exclusive_at("08:30");
    world.node("a");
    let id = world.create(json!({"policy": {"catch_up": {"mode": "none"}, "max_delay": "none"}}));
    world.advance(MINUTE);
    let (then, node) = (world.now, world.node("a").id);
    // While the planner waits for its store the clock is set, and the work loop notes what that leaves out.
    world.set_clock(hours(3));
    let (now, store) = (world.now, world.shared());
    now_or_never(store.note_outage(now, node, then)).unwrap();
    let planned = now_or_never(world.node("a").planner.tick(then)).unwrap();
    assert_eq!(world.record(id).outage.map(|outage| outage.until), Some(now), "{planned:?}");
    world.advance(MINUTE);
    assert_eq!(world.skips(id), ["catch_up×3 09:00..11:00"]);
    assert_eq!(world.starts(id), Vec::<String>::new());
    // An edit that took long does not decide it either.
    let (then, noted) = (world.now, world.now + hours(2));
    world.set_clock(hours(2));
    now_or_never(store.note_outage(noted, node, then)).unwrap();
    world.set_clock(-hours(2));
    assert!(world.try_edit(id, None, json!({"name": "renamed"})).is_err());
    world.set_clock(hours(2));
    world.advance(MINUTE);
    world.edit(id, json!({"name": "renamed"}));
    assert_eq!(world.starts(id), Vec::<String>::new());
    world.every_slot_has_one_answer(id);
}

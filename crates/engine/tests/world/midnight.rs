//! Midnight: a new day begins, and what has not begun on the old one ends or waits.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::civil::Date;
use punctual_core::Elapsed;
use punctual_core::journal::Body;
use punctual_engine::roster::{Agents, Roster};
use serde_json::{Value, json};

use crate::support::{HOUR, MINUTE, SECOND, Way, World, at, days, hours, minutes, seconds};

/// Zones, the day that begins, and when: in Cairo and Santiago it begins without a midnight.
const MIDNIGHTS: [(&str, &str, &str); 4] = [
    ("Asia/Kolkata", "2026-01-06", "2026-01-05T18:30:00Z"),
    ("America/New_York", "2026-01-06", "2026-01-06T05:00:00Z"),
    ("Africa/Cairo", "2025-04-25", "2025-04-24T22:00:00Z"),
    ("America/Santiago", "2025-09-07", "2025-09-07T04:00:00Z"),
];

/// A world two hours before a midnight, with nodes.
fn before(midnight: &str) -> World {
    let mut world = World::at(midnight);
    world.now -= hours(2);
    world.node("a");
    world
}

/// A one-shot so long before midnight, or behind it.
fn once(world: &World, zone: &str, midnight: &str, minutes_before: i64, policy: Value) -> Value {
    let at = at(midnight) - minutes(minutes_before);
    assert!(world.now <= at);
    json!({"trigger": {"at": at}, "zone": zone, "policy": policy})
}

#[test]
fn what_is_due_at_midnight_was_planned_before_and_starts_on_time() {
    for (zone, _, midnight) in MIDNIGHTS {
        let mut world = before(midnight);
        let id = world.create(json!({"trigger": {"cron": [{"expression": "0 0 * * *"}]}, "zone": zone}));
        world.advance(hours(2) - SECOND);
        let run = world.runs(id)[0].clone();
        assert_eq!((run.scheduled_at, run.planned_for()), (at(midnight), Some(at(midnight))), "{zone}");
        world.advance(SECOND);
        assert!(world.run(run.id).has_started, "{zone}: {:?}", world.story(id));
        world.advance(days(1));
        assert_eq!(world.every_slot_has_one_answer(id), 2, "{zone}");
    }
}

#[test]
fn a_day_begins_once_per_zone_also_across_restarts() {
    let mut world = World::exclusive_at("2026-01-04T12:00:00Z");
    world.settings.lease = Elapsed::from_seconds(3_600);
    world.node("a");
    for (zone, ..) in MIDNIGHTS {
        for time in ["00:00", "12:00"] {
            world.create(json!({"trigger": {"times": [time]}, "zone": zone}));
        }
    }
    for _ in 0..30 {
        world.advance(hours(2) - seconds(7));
        world.outage(seconds(7));
    }
    let begun: Vec<(String, Date)> = world
        .entries()
        .into_iter()
        .filter_map(|entry| match entry.body {
            Body::DayStarted { zone, date } => Some((zone, date)),
            _ => None,
        })
        .collect();
    let distinct: BTreeSet<_> = begun.iter().cloned().collect();
    assert_eq!(begun.len(), distinct.len(), "{begun:?}");
    let dates: BTreeSet<Date> = begun.iter().map(|(_, date)| *date).collect();
    assert_eq!(dates.len(), 4, "{dates:?}");
    assert!(MIDNIGHTS.iter().all(|(zone, ..)| 3 <= begun.iter().filter(|(name, _)| name == zone).count()));
}

#[test]
fn a_day_begins_when_it_begins_there() {
    for (zone, date, midnight) in MIDNIGHTS {
        let mut world = before(midnight);
        world.create(json!({"zone": zone}));
        world.advance(hours(3));
        let begun = world.entries().into_iter().filter_map(|entry| match entry.body {
            Body::DayStarted { date, .. } => Some((date.to_string(), entry.at)),
            _ => None,
        });
        assert_eq!(begun.last(), Some((date.to_owned(), at(midnight))), "{zone}");
    }
}

#[test]
fn a_run_that_nobody_was_offered_ends_an_hour_behind_its_day() {
    for (zone, _, midnight) in MIDNIGHTS {
        let mut world = before(midnight);
        // A node has the agent, and never asks for work.
        world.settings.roster = Arc::new(Roster::new(Agents::named(["stuck".to_owned()])));
        world.node("b").claims = false;
        let id = world.create(json!({
            "trigger": {"at": at(midnight) - MINUTE}, "zone": zone, "work": {"agent": {"agent": "stuck"}},
        }));
        world.advance(hours(3));
        assert_eq!(world.state(world.runs(id)[0].id), "planned", "{zone}: an hour behind the day it may still start");
        world.advance(SECOND);
        assert_eq!(world.state(world.runs(id)[0].id), "skipped(day_ended)", "{zone}");
        world.every_slot_has_one_answer(id);
    }
}

#[test]
fn a_run_that_waits_for_a_place_survives_midnight() {
    type Full = (&'static str, fn(&mut World), Value);
    let full: [Full; 5] = [
        ("the agent is busy", |_| {}, json!({"overlap": "allow"})),
        (
            "the project is full",
            |world| {
                let projects = [("house".to_owned(), 1)].into();
                world.limit(punctual_core::plan::Limits { projects, ..Default::default() });
            },
            json!({"overlap": "allow", "max_concurrent": 100}),
        ),
        (
            "the key is taken",
            |_| {},
            json!({
                "overlap": "allow", "max_concurrent": 100, "concurrency": {"key": "account", "max": 1},
            }),
        ),
        (
            "all places are taken",
            |world| {
                world.limit(punctual_core::plan::Limits { global: Some(1), ..Default::default() });
            },
            json!({"overlap": "allow", "max_concurrent": 100}),
        ),
        ("the node is full", |world| world.settings.places = 1, json!({"overlap": "allow", "max_concurrent": 100})),
    ];
    for (zone, _, midnight) in MIDNIGHTS {
        for (case, prepare, policy) in &full {
            let mut world = World::at(midnight);
            world.now -= hours(2);
            prepare(&mut world);
            world.node("a");
            world.work("reporter", Way::Stays);
            let fields = |world: &World, minutes_before| {
                let mut fields = once(world, zone, midnight, minutes_before, policy.clone());
                fields["project"] = json!("house");
                fields
            };
            let busy = world.create(fields(&world, 60));
            let id = world.create(fields(&world, 30));
            world.advance(hours(5));
            assert_eq!(world.state(world.runs(id)[0].id), "planned", "{zone}, {case}");
            let at_work = world.at_work(busy);
            world.finish(at_work);
            assert_eq!(world.state(world.runs(id)[0].id), "running", "{zone}, {case}");
            world.every_slot_has_one_answer(id);
        }
    }
}

#[test]
fn a_run_that_queues_behind_its_own_schedule_survives_midnight() {
    for (zone, _, midnight) in MIDNIGHTS {
        let mut world = before(midnight);
        world.work("reporter", Way::Stays);
        let start = at(midnight) - hours(1);
        let id = world.create(json!({
            "trigger": {"every": {"interval": "30m", "anchor": start}},
            "zone": zone,
            "bounds": {"end_at": at(midnight) - minutes(30)},
        }));
        world.advance(hours(6));
        let run = world.at_work(id);
        world.finish(run);
        let waited = world.runs(id)[1].id;
        assert_eq!(world.state(waited), "running", "{zone}");
        assert_eq!(world.every_slot_has_one_answer(id), 2);
    }
}

#[test]
fn a_run_that_waits_for_another_try_survives_midnight() {
    for (zone, _, midnight) in MIDNIGHTS {
        let mut world = before(midnight);
        world.work("reporter", Way::Fails);
        let fields = once(&world, zone, midnight, 10, json!({"retry": {"delay": "50m", "max_attempts": 4}}));
        let id = world.create(fields);
        world.advance(hours(5));
        let run = &world.runs(id)[0];
        assert_eq!((world.state(run.id).as_str(), run.state.tally().attempt), ("failed(error)", 4), "{zone}");
    }
}

#[test]
fn midnight_moves_nothing_that_is_at_work_or_waits_for_something_else() {
    for (zone, _, midnight) in MIDNIGHTS {
        let mut world = before(midnight);
        world.work("reporter", Way::Stays);
        let policy = json!({"max_concurrent": 2});
        let at_work = world.create(once(&world, zone, midnight, 10, policy.clone()));
        let waits = world.create(once(&world, zone, midnight, 10, policy));
        world.advance(hours(2) - minutes(5));
        let run = world.runs(waits)[0].id;
        world.put_to_wait(run, punctual_core::run::WaitFor::Approval, days(1));
        world.advance(hours(5));
        assert_eq!(world.state(world.runs(at_work)[0].id), "running", "{zone}");
        assert_eq!(world.state(run), "waiting", "{zone}");
        world.let_go_on(run);
        world.settle();
        assert_eq!(world.state(run), "running", "{zone}");
    }
}

#[test]
fn a_run_that_may_be_late_by_minutes_is_late_whatever_it_waits_for() {
    let mut world = World::at("08:30");
    world.node("a");
    world.work("reporter", Way::Stays);
    let other = world.create(json!({"trigger": {"at": "2026-01-05T08:30:00Z"}}));
    let policy = json!({"max_delay": {"duration": "5m"}, "overlap": "allow"});
    let id = world.create(json!({"trigger": {"cron": [{"expression": "0 9,10 * * *"}]}, "policy": policy}));
    world.advance_to("09:05");
    assert_eq!(world.story(id)[0], "09:00 planned");
    world.advance(SECOND);
    assert_eq!(world.story(id)[0], "09:00 skipped(late)");
    let busy = world.at_work(other);
    world.advance_to("10:05");
    world.finish(busy);
    assert_eq!(world.story(id)[1], "10:00 running");
    world.advance(HOUR);
    assert_eq!(world.every_slot_has_one_answer(id), 2);
}

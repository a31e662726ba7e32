//! Catch-up: the policy is applied once per outage, and what does not run is recorded.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use proptest::sample::select;
use punctual_core::plan::{
    CatchUpPass, EarlyDecisions, Kept, Outage, Planning, UNSTARTED_MAX, WORK_MAX, catch_up, next_slot, pass,
};
use punctual_core::run::SkipReason;
use punctual_core::schedule::{Cursor, ScheduleState};
use serde_json::{Value, json};

use crate::support::{Generated, Subject, at, expand, generated, show_decisions};

/// An hourly schedule, decided to 01:30, whose slots no node decided until 06:30.
fn recover(policy: Value) -> CatchUpPass {
    let (subject, outage) = (hourly(policy), outage());
    catch_up(&subject.planning(), &Cursor::starting(outage.from), &outage, outage.until)
}

fn hourly(policy: Value) -> Subject {
    let policy = json!({"catch_up": policy});
    Subject::new(json!({"trigger": {"cron": [{"expression": "0 * * * *"}]}, "policy": policy}))
}

fn outage() -> Outage {
    Outage { from: at("2026-01-05T01:30:00Z"), until: at("2026-01-05T06:30:00Z"), kept: None }
}

/// The hours of that morning.
fn hours(hours: std::ops::RangeInclusive<u32>) -> Vec<String> {
    hours.map(|hour| format!("2026-01-05T{hour:02}:00:00Z")).collect()
}

#[test]
fn each_mode_keeps_its_own() {
    let skips = |count: u64| vec![format!("catch_up×{count}")];
    for (policy, expected, is_in_order) in [
        (json!({"mode": "none"}), skips(5), false),
        (json!({"mode": "first"}), [hours(2..=2), skips(4)].concat(), false),
        (json!({"mode": "latest"}), [skips(4), hours(6..=6)].concat(), false),
        (json!({"mode": "all"}), hours(2..=6), true),
        // At most so many, and those the latest.
        (json!({"mode": "all", "max": 4}), [skips(1), hours(3..=6)].concat(), true),
        (json!({"mode": "all", "max": 2}), [skips(3), hours(5..=6)].concat(), true),
        (json!({"mode": "all", "max": 0}), skips(5), true),
        // The window leaves out what is too old. What lies where it begins is not.
        (json!({"mode": "all", "window": "1h30m"}), [skips(3), hours(5..=6)].concat(), true),
        (json!({"mode": "first", "window": "1h30m"}), [skips(3), hours(5..=5), skips(1)].concat(), false),
        (json!({"mode": "first", "window": "2h"}), [skips(3), hours(5..=5), skips(1)].concat(), false),
        (json!({"mode": "latest", "window": "30m"}), [skips(4), hours(6..=6)].concat(), false),
        (json!({"mode": "latest", "window": "10m"}), skips(5), false),
    ] {
        let recovery = recover(policy.clone());
        assert_eq!(show_decisions(&recovery.decisions), expected, "{policy}");
        assert_eq!((recovery.cursor.at, recovery.rest), (at("2026-01-05T06:30:00Z"), None), "{policy}");
        assert_eq!(recovery.is_in_order, is_in_order, "{policy}");
        assert_eq!(recovery.cursor.reached.len(), 1, "{policy}");
    }
}

#[test]
fn slots_that_were_decided_before_the_outage_are_not_its_own() {
    let subject = hourly(json!({"mode": "all"}));
    // The cursor lies inside of the outage: a slot is decided once.
    let cursor = Cursor::starting(at("2026-01-05T03:00:00Z"));
    let recovery = catch_up(&subject.planning_with(2), &cursor, &outage(), outage().until);
    assert_eq!(show_decisions(&recovery.decisions), hours(4..=6));
    // It lies after it: nothing was missed, and the cursor stays.
    let cursor = Cursor::starting(at("2026-01-05T08:00:00Z"));
    let recovery = catch_up(&subject.planning(), &cursor, &outage(), at("2026-01-05T09:00:00Z"));
    assert_eq!((recovery.decisions, recovery.cursor.at, recovery.rest), (vec![], cursor.at, None));
    // It lies before it, where a schedule had no room: these slots are late in the same way.
    let cursor = Cursor::starting(at("2026-01-05T00:30:00Z"));
    let recovery = catch_up(&subject.planning(), &cursor, &outage(), outage().until);
    assert_eq!(show_decisions(&recovery.decisions), hours(1..=6));
}

#[test]
fn slots_that_would_not_have_run_keep_their_own_reason() {
    let policy = json!({"catch_up": {"mode": "latest"}, "dst": {"gap": "skip"}});
    let trigger = json!({"times": ["01:30", "02:30", "03:30"]});
    let subject = Subject::new(json!({"trigger": trigger, "zone": "America/New_York", "policy": policy}));
    let outage = Outage { from: at("2026-03-08T05:00:00Z"), until: at("2026-03-08T12:00:00Z"), kept: None };
    let recovery = catch_up(&subject.planning(), &Cursor::starting(outage.from), &outage, outage.until);
    assert_eq!(show_decisions(&recovery.decisions), ["catch_up×1", "dst_gap×1", "2026-03-08T07:30:00Z"]);
}

#[test]
fn the_most_runs_hold_for_catch_up_as_well() {
    for (max_runs, started, waiting, expected) in [
        (3, 1, 0, [vec!["catch_up×3".to_owned()], hours(5..=6)].concat()),
        // Live runs that have not started count like started ones.
        (4, 0, 2, [vec!["catch_up×3".to_owned()], hours(5..=6)].concat()),
        (4, 2, 2, vec!["catch_up×5".to_owned()]),
    ] {
        let mut subject = hourly(json!({"mode": "all"}));
        subject.schedule.bounds = serde_json::from_value(json!({"max_runs": max_runs})).unwrap();
        subject.schedule.runs_started = started;
        let cursor = Cursor::starting(outage().from);
        let recovery = catch_up(&subject.planning_with(waiting), &cursor, &outage(), outage().until);
        assert_eq!(show_decisions(&recovery.decisions), expected, "{max_runs} {started} {waiting}");
    }
}

#[test]
fn missed_slots_are_decided_whether_there_is_room_or_not() {
    let subject = hourly(json!({"mode": "all"}));
    let cursor = Cursor::starting(outage().from);
    let recovery = catch_up(&subject.planning_with(UNSTARTED_MAX), &cursor, &outage(), outage().until);
    assert_eq!(show_decisions(&recovery.decisions), hours(2..=6));
}

#[test]
fn what_jitter_makes_due_after_the_outage_was_not_missed() {
    let policy = json!({"catch_up": {"mode": "none"}});
    let fields = json!({"trigger": {"cron": [{"expression": "0 * * * *"}]}, "policy": policy, "jitter": "59m"});
    let subject = Subject::new(fields);
    let slot = subject.timetable.slots(at("2026-01-05T05:30:00Z")).next().unwrap();
    let until = slot.due_at - SignedDuration::from_millis(1);
    assert!(slot.scheduled_at < until);
    let outage = Outage { from: at("2026-01-05T03:00:00Z"), until, kept: None };
    let recovery = catch_up(&subject.planning(), &Cursor::starting(outage.from), &outage, until);
    assert_eq!(show_decisions(&recovery.decisions), ["catch_up×2", "2026-01-05T06:00:00Z"]);
}

#[test]
fn what_was_decided_is_kept_to_whatever_the_policy_says_later() {
    let subject = hourly(json!({"mode": "none"}));
    let [from, until] = ["2026-01-05T04:00:00Z", "2026-01-05T05:00:00Z"].map(at);
    let outage = Outage { kept: Some(Kept { from: Some(from), until }), ..outage() };
    let cursor = Cursor::starting(at("2026-01-05T03:00:00Z"));
    let recovery = catch_up(&subject.planning(), &cursor, &outage, outage.until);
    assert_eq!(show_decisions(&recovery.decisions), [hours(4..=5), vec!["catch_up×1".to_owned()]].concat());
}

#[test]
fn two_outages_are_decided_as_one() {
    let earlier = Outage { kept: Some(Kept { from: None, until: outage().until }), ..outage() };
    let later = Outage { from: at("2026-01-05T07:30:00Z"), until: at("2026-01-05T08:30:00Z"), kept: None };
    let both = Outage { from: outage().from, until: later.until, kept: None };
    assert_eq!((earlier.and(later), later.and(earlier)), (both, both));
    // The slot between them was not decided either.
    let recovery =
        catch_up(&hourly(json!({"mode": "all"})).planning(), &Cursor::starting(both.from), &both, both.until);
    assert_eq!(show_decisions(&recovery.decisions), hours(2..=8));
}

#[test]
fn what_is_kept_is_found_across_a_long_closed_stretch() {
    for (mode, runs) in [("first", 1), ("latest", 1), ("all", 100)] {
        // Open on Monday and Tuesday; the outage goes on to the next Sunday, so that 7,000 minutes before its end are closed.
        let policy = json!({"catch_up": {"mode": mode}});
        let trigger = json!({"cron": [{"expression": "* * * * *"}]});
        let subject = Subject::new(json!({"trigger": trigger, "policy": policy, "calendar": "office"}));
        let (start, until) = (at("2026-01-06T12:00:00Z"), at("2026-01-18T00:00:00Z"));
        let (mut cursor, mut ran, mut calls) = (Cursor::starting(start), 0, 0);
        let mut rest = Some(Outage { from: start, until, kept: None });
        while let Some(outage) = rest {
            let recovery = catch_up(&subject.planning(), &cursor, &outage, until);
            ran += recovery.decisions.iter().filter(|decision| decision.run().is_some()).count();
            (cursor, rest, calls) = (recovery.cursor, recovery.rest, calls + 1);
            assert!(calls < 100, "catching up goes round in circles");
        }
        assert_eq!((ran, calls, cursor.at), (runs, 2, until), "{mode}");
    }
}

#[test]
fn an_outage_that_claims_to_end_later_than_now_decides_nothing_ahead() {
    let policy = json!({"catch_up": {"mode": "all"}});
    let subject = Subject::new(json!({"trigger": {"cron": [{"expression": "0 * * * *"}]}, "policy": policy}));
    let now = at("2026-01-05T03:10:00Z");
    let recovery = catch_up(&subject.planning(), &Cursor::starting(outage().from), &outage(), now);
    assert_eq!(show_decisions(&recovery.decisions), ["2026-01-05T02:00:00Z", "2026-01-05T03:00:00Z"]);
    assert_eq!(recovery.cursor.at, now);
}

#[test]
fn a_paused_schedule_catches_nothing_up() {
    let pause = json!({"paused": {"kind": "paused", "at": "2026-01-05T00:00:00Z", "source": "ada"}});
    let subject = Subject::new(json!({"trigger": {"cron": [{"expression": "0 * * * *"}]}, "state": pause}));
    let recovery = catch_up(&subject.planning(), &Cursor::starting(outage().from), &outage(), outage().until);
    assert_eq!((recovery.decisions, recovery.cursor.at), (vec![], outage().from));
}

#[test]
fn what_is_decided_early_is_neither_kept_nor_skipped() {
    let subject = Subject::new(json!({"trigger": {"cron": [{"expression": "0 * * * *"}]}}));
    let mut early = EarlyDecisions::default();
    early.decide(subject.timetable.slots(at("2026-01-05T05:30:00Z")).next().unwrap().key()).unwrap();
    let planning = Planning { answered: early.keys(), ..subject.planning() };
    let recovery = catch_up(&planning, &Cursor::starting(outage().from), &outage(), outage().until);
    assert_eq!(show_decisions(&recovery.decisions), ["catch_up×3", "2026-01-05T05:00:00Z"]);
}

#[test]
fn a_long_outage_is_decided_once_whatever_the_policy_says_meanwhile() {
    for (mode, runs) in [("none", 0), ("first", 1), ("latest", 1), ("all", 100)] {
        let with = |mode: &str| {
            let crons = json!([{"expression": "* * * * * *", "zone": "America/New_York"}, {"expression": "7 0 1 1 *"}]);
            Subject::new(json!({"trigger": {"cron": crons}, "policy": {"catch_up": {"mode": mode}}}))
        };
        let (first, later) = (with(mode), with("first"));
        let start = at("2026-01-05T00:00:00Z");
        let until = at("2026-01-05T12:00:00Z");
        let mut rest = Some(Outage { from: start, until, kept: None });
        let cursor = pass(&first.planning(), &Cursor::starting(start), start).cursor;
        let (mut cursor, mut decided, mut ran, mut calls) = (cursor, 0, 0, 0);
        while let Some(outage) = rest {
            let subject = if calls == 0 { &first } else { &later };
            let recovery = catch_up(&subject.planning(), &cursor, &outage, until);
            assert!(recovery.rest.is_none_or(|rest| rest.kept.is_some()), "{mode}");
            let entries = expand(&recovery.decisions, subject);
            assert!(entries.len() <= WORK_MAX);
            ran += entries.iter().filter(|(_, skipped)| skipped.is_none()).count();
            decided += entries.len();
            (cursor, rest, calls) = (recovery.cursor, recovery.rest, calls + 1);
            let distance = cursor.at.duration_since(cursor.starts_behind(&first.timetable));
            assert!(distance <= SignedDuration::from_secs(1), "the next search starts {distance:?} before the cursor");
            assert!(calls < 100, "catching up goes round in circles");
        }
        assert_eq!((decided, ran, calls), (43_200, runs, 5), "{mode}");
        assert_eq!(cursor.at, until, "{mode}");
    }
}

/// What the policy says, slot by slot: the brute way.
fn by_hand(planning: &Planning<'_>, cursor: &Cursor, outage: &Outage) -> Vec<(String, Option<SkipReason>)> {
    let policy = planning.schedule.policy.catch_up;
    let mut runs_left = planning.schedule.bounds.max_runs().map_or(usize::MAX, |max| max as usize - planning.waiting);
    let slots = planning.timetable.slots(cursor.at).take_while(|slot| slot.scheduled_at <= outage.until);
    let slots: Vec<_> = slots.filter(|slot| !planning.answered.contains(&slot.key())).collect();
    let oldest = policy.window.map_or(Timestamp::MIN, |window| outage.until - window.duration());
    let missed = slots.iter().filter(|slot| slot.skipped.is_none() && slot.due_at <= outage.until);
    let missed: Vec<_> = missed.filter(|slot| oldest <= slot.scheduled_at).map(|slot| slot.key()).collect();
    let mode = serde_json::to_value(policy.mode).unwrap();
    let kept: BTreeSet<_> = match mode.as_str().unwrap() {
        "none" => BTreeSet::new(),
        "first" => missed.into_iter().take(1).collect(),
        "latest" => missed.into_iter().rev().take(1.min(runs_left)).collect(),
        _ => missed.into_iter().rev().take((policy.max as usize).min(runs_left)).collect(),
    };
    let mut decide = |slot: &punctual_core::time::Slot| {
        let runs = kept.contains(&slot.key()) || outage.until < slot.due_at;
        match slot.skipped {
            None if runs && 0 < runs_left => {
                runs_left -= 1;
                None
            }
            None => Some(SkipReason::CatchUp),
            skipped => skipped,
        }
    };
    slots.iter().map(|slot| (slot.key().to_string(), decide(slot))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// What catch-up decides is what the rules give slot by slot.
    #[test]
    fn missed_slots_are_decided_as_by_hand(
        generated in generated(),
        mode in select(vec!["none", "first", "latest", "all"]),
        max in select(vec![0_u32, 1, 3, 100, u32::MAX]),
        window in select(vec![None, Some("5h"), Some("2d")]),
        (max_runs, waiting) in (proptest::option::of(3_u64..8), 0_usize..4),
        (minutes, hours) in (0_i64..3_000, 1_i64..100),
        picked in prop::collection::btree_set(0_usize..20, 0..4),
        is_paused in prop::bool::weighted(0.05),
    ) {
        let Generated { mut subject, start } = generated;
        subject.schedule.policy.catch_up = serde_json::from_value(match window {
            Some(window) => json!({"mode": mode, "max": max, "window": window}),
            None => json!({"mode": mode, "max": max}),
        }).unwrap();
        subject.schedule.bounds = serde_json::from_value(json!({"max_runs": max_runs})).unwrap();
        if is_paused {
            let pause = json!({"paused": {"kind": "paused", "at": start.to_string(), "source": "ada"}});
            subject.schedule.state = serde_json::from_value::<ScheduleState>(pause).unwrap();
        }
        let from = start + SignedDuration::from_mins(minutes);
        let outage = Outage { from, until: from + SignedDuration::from_hours(hours), kept: None };
        let cursor = Cursor::starting(from);
        let mut early = EarlyDecisions::default();
        for (_, slot) in subject.timetable.slots(from).take(20).enumerate().filter(|(place, _)| picked.contains(place)) {
            early.decide(slot.key()).unwrap();
        }
        let planning = Planning { answered: early.keys(), ..subject.planning_with(waiting) };
        let recovery = catch_up(&planning, &cursor, &outage, outage.until);
        prop_assert_eq!((recovery.is_in_order, recovery.rest), (mode == "all", None));
        if is_paused {
            prop_assert_eq!((recovery.decisions, recovery.cursor), (vec![], cursor));
        } else {
            prop_assert_eq!(recovery.cursor.at, outage.until);
            prop_assert_eq!(expand(&recovery.decisions, &subject), by_hand(&planning, &cursor, &outage));
            // What follows lies after the outage.
            let upcoming = next_slot(&planning, &recovery.cursor);
            prop_assert!(upcoming.next.open().is_none_or(|slot| outage.until < slot.scheduled_at));
        }
    }
}

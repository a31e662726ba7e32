//! Catch-up over computed slots: the same answers as with planned rows, decided once.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use proptest::sample::select;
use punctual_core::plan::{
    CatchUpPass, EarlyDecisions, Outage, Planning, WORK_MAX, catch_up, catch_up_slots, next_slot, pass,
};
use punctual_core::run::SkipReason;
use punctual_core::schedule::{Cursor, ScheduleState};
use serde_json::{Value, json};

use crate::support::{Generated, Subject, at, expand, generated, show_decisions};

/// An hourly schedule, decided to 01:30, that nobody looked after until 06:30.
fn recover(policy: Value) -> CatchUpPass {
    let policy = json!({"catch_up": policy});
    let subject = Subject::new(json!({"trigger": {"cron": [{"expression": "0 * * * *"}]}, "policy": policy}));
    let outage = outage();
    catch_up_slots(&subject.planning(), &Cursor::starting(outage.from), &outage, outage.until)
}

fn outage() -> Outage {
    Outage { from: at("2026-01-05T01:30:00Z"), until: at("2026-01-05T06:30:00Z"), kept: None }
}

#[test]
fn each_mode_keeps_its_own() {
    for (policy, expected, is_in_order) in [
        (json!({"mode": "none"}), vec!["catch_up×5"], false),
        (json!({"mode": "first"}), vec!["2026-01-05T02:00:00Z", "catch_up×4"], false),
        (json!({"mode": "latest"}), vec!["catch_up×4", "2026-01-05T06:00:00Z"], false),
        (json!({"mode": "all", "max": 2}), vec!["catch_up×3", "2026-01-05T05:00:00Z", "2026-01-05T06:00:00Z"], true),
        (json!({"mode": "first", "window": "2h"}), vec!["catch_up×3", "2026-01-05T05:00:00Z", "catch_up×1"], false),
    ] {
        let recovery = recover(policy.clone());
        assert_eq!(show_decisions(&recovery.decisions), expected, "{policy}");
        assert_eq!((recovery.cursor.at, recovery.rest), (at("2026-01-05T06:30:00Z"), None), "{policy}");
        assert_eq!(recovery.is_in_order, is_in_order, "{policy}");
        assert_eq!(recovery.cursor.reached.len(), 1, "{policy}");
    }
}

#[test]
fn an_outage_that_claims_to_end_later_than_now_decides_nothing_ahead() {
    let policy = json!({"catch_up": {"mode": "all"}});
    let subject = Subject::new(json!({"trigger": {"cron": [{"expression": "0 * * * *"}]}, "policy": policy}));
    let now = at("2026-01-05T03:10:00Z");
    let recovery = catch_up_slots(&subject.planning(), &Cursor::starting(outage().from), &outage(), now);
    assert_eq!(show_decisions(&recovery.decisions), ["2026-01-05T02:00:00Z", "2026-01-05T03:00:00Z"]);
    assert_eq!(recovery.cursor.at, now);
}

#[test]
fn a_paused_schedule_catches_nothing_up() {
    let pause = json!({"paused": {"kind": "paused", "at": "2026-01-05T00:00:00Z", "source": "ada"}});
    let subject = Subject::new(json!({"trigger": {"cron": [{"expression": "0 * * * *"}]}, "state": pause}));
    let recovery = catch_up_slots(&subject.planning(), &Cursor::starting(outage().from), &outage(), outage().until);
    assert_eq!((recovery.decisions, recovery.cursor.at), (vec![], outage().from));
}

#[test]
fn what_is_decided_early_is_neither_kept_nor_skipped() {
    let subject = Subject::new(json!({"trigger": {"cron": [{"expression": "0 * * * *"}]}}));
    let mut early = EarlyDecisions::default();
    early.decide(subject.timetable.slots(at("2026-01-05T05:30:00Z")).next().unwrap().key()).unwrap();
    let planning = Planning { answered: early.keys(), ..subject.planning() };
    let recovery = catch_up_slots(&planning, &Cursor::starting(outage().from), &outage(), outage().until);
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
            let recovery = catch_up_slots(&subject.planning(), &cursor, &outage, until);
            let entries = expand(&recovery.decisions, subject);
            assert!(entries.len() <= WORK_MAX);
            ran += entries.iter().filter(|(_, skipped)| skipped.is_none()).count();
            decided += entries.len();
            (cursor, rest, calls) = (recovery.cursor, recovery.rest, calls + 1);
            let behind = cursor.at.duration_since(cursor.starts_behind(&first.timetable));
            assert!(behind <= SignedDuration::from_secs(1), "the next search starts {behind:?} before the cursor");
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

    /// The same answers as where rows were planned ahead, none of them in the outage, and those that the rules give by hand.
    #[test]
    fn computed_slots_are_caught_up_as_planned_ones_were(
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
        let recovery = catch_up_slots(&planning, &cursor, &outage, outage.until);
        let planned = catch_up(&planning, &cursor, &outage, &[]);
        prop_assert_eq!(&recovery.decisions, &planned.plan.answers);
        prop_assert_eq!(&recovery.cursor, &planned.plan.cursor);
        prop_assert_eq!((recovery.is_in_order, recovery.rest), (planned.is_in_order, planned.rest));
        if !is_paused {
            prop_assert_eq!(expand(&recovery.decisions, &subject), by_hand(&planning, &cursor, &outage));
            // What follows lies after the outage.
            let upcoming = next_slot(&planning, &recovery.cursor);
            prop_assert!(upcoming.next.open().is_none_or(|slot| outage.until < slot.scheduled_at));
        }
    }
}

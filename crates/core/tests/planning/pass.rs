//! Passing: every slot up to now is decided exactly once, whatever the bounds.

use std::collections::BTreeSet;

use jiff::SignedDuration;
use proptest::prelude::*;
use punctual_core::plan::{Answer, EarlyDecisions, NextSlot, Pass, Planning, UNSTARTED_MAX, WORK_MAX, next_slot, pass};
use punctual_core::schedule::Cursor;
use serde_json::json;

use crate::support::{Generated, Subject, at, expand, generated, next_at, show};

fn pass_between(subject: &Subject, after: &str, now: &str) -> Pass {
    pass(&subject.planning(), &Cursor::starting(at(after)), at(now))
}

#[test]
fn slots_up_to_now_are_decided_and_the_next_is_named() {
    let subject =
        Subject::new(json!({"trigger": {"times": ["10:00", "11:00", "18:00", "19:00"]}, "calendar": "office"}));
    let passed = pass_between(&subject, "2026-01-05T09:00:00Z", "2026-01-05T11:00:00Z");
    assert_eq!(show(&passed), ["2026-01-05T10:00:00Z", "2026-01-05T11:00:00Z"]);
    assert_eq!((passed.cursor.at, passed.is_cut), (at("2026-01-05T11:00:00Z"), false));
    // What is closed ahead is only told: it is recorded with the next decision.
    assert_eq!(next_at(&passed), Some(at("2026-01-06T10:00:00Z")));
    assert_eq!(passed.upcoming.closed[0].count, 2);
    let tomorrow = pass(&subject.planning(), &passed.cursor, at("2026-01-06T10:30:00Z"));
    assert_eq!(show(&tomorrow), ["calendar×2", "2026-01-06T10:00:00Z"]);
    assert_eq!(tomorrow.cursor.at, at("2026-01-06T10:30:00Z"));
}

#[test]
fn a_slot_whose_jitter_makes_it_due_later_is_passed_with_its_time() {
    let subject = Subject::new(json!({"trigger": {"times": ["10:00"]}, "jitter": "1h"}));
    let passed = pass_between(&subject, "2026-01-05T09:00:00Z", "2026-01-05T10:00:00Z");
    assert_eq!(show(&passed), ["2026-01-05T10:00:00Z"]);
}

#[test]
fn passing_sets_the_clocks_of_all_zones() {
    // London has one slot a year, New York one a second.
    let crons = json!([
        {"expression": "* * * * * *", "zone": "America/New_York"},
        {"expression": "0 0 1 1 *", "zone": "Europe/London"},
    ]);
    let subject = Subject::new(json!({"trigger": {"cron": crons.clone()}}));
    let start = at("2026-06-01T00:00:00Z");
    let mut cursor = pass(&subject.planning(), &Cursor::starting(start), start).cursor;
    // However a call ends: everything passed, no room, or cut.
    for (seconds, waiting, runs) in [(5, 0, 5), (10, UNSTARTED_MAX - 3, 3), (3_600, 0, 1_000)] {
        let passed = pass(&subject.planning_with(waiting), &cursor, cursor.at + SignedDuration::from_secs(seconds));
        assert_eq!(passed.decisions.len(), runs);
        cursor = passed.cursor;
        let distance = cursor.at.duration_since(cursor.starts_behind(&subject.timetable));
        assert!(distance <= SignedDuration::from_secs(1), "the search starts {distance:?} before the cursor");
        assert_eq!(cursor.reached.len(), 2);
    }
    let closed = Subject::new(json!({"trigger": {"cron": crons}, "calendar": "office"}));
    let passed = pass(&closed.planning(), &Cursor::starting(at("2026-06-05T00:00:00Z")), at("2026-06-06T00:00:00Z"));
    assert!(passed.is_cut);
    let distance = passed.cursor.at.duration_since(passed.cursor.starts_behind(&closed.timetable));
    assert!(distance <= SignedDuration::from_secs(1), "the search starts {distance:?} before the cursor");
}

#[test]
fn a_full_schedule_stops_its_cursor_and_goes_on_there() {
    let subject = Subject::new(json!({"trigger": {"cron": [{"expression": "* * * * * *"}]}}));
    let (start, now) = (at("2026-01-05T00:00:00Z"), at("2026-01-05T01:00:00Z"));
    let first = pass(&subject.planning(), &Cursor::starting(start), now);
    assert_eq!((first.decisions.len(), first.is_cut), (UNSTARTED_MAX, false));
    assert_eq!(first.cursor.at, at("2026-01-05T00:16:40Z"));
    assert!(matches!(&first.upcoming.next, NextSlot::Full(slot) if slot.scheduled_at == at("2026-01-05T00:16:41Z")));
    let full = pass(&subject.planning_with(UNSTARTED_MAX), &first.cursor, now);
    assert_eq!((full.decisions.len(), &full.cursor), (0, &first.cursor));
    let later = pass(&subject.planning_with(UNSTARTED_MAX - 1), &first.cursor, now);
    assert_eq!(show(&later), ["2026-01-05T00:16:41Z"]);
}

#[test]
fn the_most_runs_count_what_has_started_and_what_is_live() {
    let fields =
        json!({"trigger": {"cron": [{"expression": "0 * * * *"}]}, "bounds": {"max_runs": 5}, "runs_started": 2});
    let subject = Subject::new(fields);
    let passed = pass(&subject.planning_with(1), &subject.schedule.cursor, at("2026-01-05T06:00:00Z"));
    assert_eq!(show(&passed), ["2026-01-05T01:00:00Z", "2026-01-05T02:00:00Z"]);
    assert!(matches!(passed.upcoming.next, NextSlot::Exhausted(_)), "{:?}", passed.upcoming.next);
    // One of them is skipped and counts for nothing: its place is free.
    let again = pass(&subject.planning_with(2), &passed.cursor, at("2026-01-05T06:00:00Z"));
    assert_eq!(show(&again), ["2026-01-05T03:00:00Z"]);
    // The last one that may be: what follows is told at once.
    let last = pass(&subject.planning_with(2), &subject.schedule.cursor, at("2026-01-05T01:30:00Z"));
    assert!(matches!(last.upcoming.next, NextSlot::Exhausted(_)), "{:?}", last.upcoming.next);
}

#[test]
fn a_schedule_that_is_over_has_nothing_ahead() {
    let subject = Subject::new(json!({"trigger": {"at": "2026-03-10T18:00:00Z"}}));
    let passed = pass_between(&subject, "2026-01-05T00:00:00Z", "2026-03-10T18:00:00Z");
    assert_eq!((show(&passed), passed.upcoming.next), (vec!["2026-03-10T18:00:00Z".to_owned()], NextSlot::Never));
    let pause = json!({"paused": {"kind": "paused", "at": "2026-01-05T00:00:00Z", "source": "ada"}});
    let paused = Subject::new(json!({"trigger": {"cron": [{"expression": "0 * * * *"}]}, "state": pause}));
    let passed = pass(&paused.planning(), &paused.schedule.cursor, at("2026-01-06T00:00:00Z"));
    assert_eq!((show(&passed), &passed.cursor), (vec![], &paused.schedule.cursor));
    assert_eq!(passed.upcoming.next, NextSlot::Inactive);
}

#[test]
fn the_cursor_never_goes_back_and_brings_nothing_back_when_the_clock_was_set_back() {
    let subject = Subject::new(json!({"trigger": {"cron": [{"expression": "*/30 * * * *"}]}}));
    let edited = Cursor::starting(at("2026-01-05T10:00:00Z"));
    let set_back = pass(&subject.planning(), &edited, at("2026-01-05T09:00:00Z"));
    assert_eq!((show(&set_back), set_back.cursor.at), (vec![], at("2026-01-05T10:00:00Z")));
    assert_eq!(next_at(&set_back), Some(at("2026-01-05T10:30:00Z")));
    let later = pass(&subject.planning(), &set_back.cursor, at("2026-01-05T10:30:00Z"));
    assert_eq!(show(&later), ["2026-01-05T10:30:00Z"]);
}

#[test]
fn nothing_is_lost_where_a_call_ends_among_slots_of_one_instant() {
    // At 01:00 in UTC the clocks of London and Paris leave out an hour, and two slots each.
    let crons = [("15,45 1 * * *", "Europe/London"), ("15,45 2 * * *", "Europe/Paris"), ("* * * * * *", "UTC")];
    let gap = at("2026-03-29T01:00:00Z");
    let until = gap + SignedDuration::from_secs(30);
    for order in [[0, 1, 2], [1, 0, 2], [2, 0, 1]] {
        let crons = order.map(|place| json!({"expression": crons[place].0, "zone": crons[place].1}));
        let subject = Subject::new(json!({"trigger": {"cron": crons}}));
        for room in 0..40 {
            let from = gap - SignedDuration::from_secs(4);
            let expected: Vec<_> = subject.timetable.slots(from).take_while(|it| it.scheduled_at <= until).collect();
            let expected: Vec<_> = expected.iter().map(|slot| (slot.key().to_string(), slot.skipped)).collect();
            let first = pass(&subject.planning_with(UNSTARTED_MAX - room), &Cursor::starting(from), until);
            let second = pass(&subject.planning(), &first.cursor, until);
            let decided = [expand(&first.decisions, &subject), expand(&second.decisions, &subject)].concat();
            assert_eq!(decided, expected, "{order:?} {room}");
        }
    }
}

#[test]
fn a_bound_inside_a_long_gap_loses_nothing() {
    // Every second of the day that Apia left out, written as lists: 86,400 slots at one instant.
    let list = |until: u32| (0..until).map(|value| value.to_string()).collect::<Vec<_>>().join(",");
    let expression = format!("{} {} {} * * *", list(60), list(60), list(24));
    let subject = Subject::new(json!({"trigger": {"cron": [{"expression": expression}]}, "zone": "Pacific/Apia"}));
    let now = at("2011-12-30T10:00:00Z");
    let (mut cursor, mut lost, mut calls) = (Cursor::starting(at("2011-12-30T09:59:59Z")), 0, 0);
    loop {
        let passed = pass(&subject.planning(), &cursor, now);
        lost += passed.skips().map(|range| range.count).sum::<u64>();
        (cursor, calls) = (passed.cursor, calls + 1);
        assert!(calls < 100, "passing goes round in circles");
        if !passed.is_cut {
            break;
        }
    }
    assert_eq!((lost, calls), (86_400, 9));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    /// However passing is interrupted, crowded and repeated, each slot is decided exactly once, in order, and early decisions never.
    #[test]
    fn every_slot_is_decided_exactly_once(
        generated in generated(),
        steps in prop::collection::vec((1_i64..1_500, 990_usize..=1_000), 1..12),
        picked in prop::collection::btree_set(0_usize..60, 0..6),
    ) {
        let Generated { subject, start } = generated;
        let mut early = EarlyDecisions::default();
        for (place, slot) in subject.timetable.slots(start).take(60).enumerate() {
            if picked.contains(&place) {
                early.decide(slot.key()).unwrap();
            }
        }
        let all_early: BTreeSet<_> = early.keys().clone();
        let (mut now, mut cursor, mut decided) = (start, Cursor::starting(start), vec![]);
        for (minutes, waiting) in steps {
            now += SignedDuration::from_mins(minutes);
            // Crowded: little room. Then with room, until there is nothing more to do at this moment.
            for waiting in [waiting, 0] {
                let planning = Planning { answered: early.keys(), ..subject.planning_with(waiting) };
                let passed = pass(&planning, &cursor, now);
                decided.extend(expand(&passed.decisions, &subject));
                prop_assert!(cursor.at <= passed.cursor.at && passed.cursor.at <= now);
                prop_assert!(!passed.is_cut || waiting == 0 || WORK_MAX <= decided.len());
                // What is told ahead is what a search from the cursor finds.
                let runs = passed.decisions.iter().filter(|it| matches!(it, Answer::Run(_))).count();
                let planning = Planning { waiting: waiting + runs, ..planning };
                prop_assert_eq!(&passed.upcoming.next, &next_slot(&planning, &passed.cursor).next);
                cursor = passed.cursor;
                early.drop_passed(&subject.timetable, &cursor);
            }
        }
        let slots = subject.timetable.slots(start).take_while(|slot| slot.scheduled_at <= now);
        let slots = slots.filter(|slot| !all_early.contains(&slot.key()));
        let expected: Vec<_> = slots.map(|slot| (slot.key().to_string(), slot.skipped)).collect();
        prop_assert_eq!(decided, expected);
        prop_assert!(early.keys().iter().all(|key| subject.timetable.slot(key).is_some_and(|slot| now < slot.scheduled_at)));
    }
}

//! The next slot: the first open one after the cursor, and what is closed before it.

use jiff::Timestamp;
use proptest::prelude::*;
use punctual_core::plan::{
    EARLY_DECISIONS_MAX, EarlyDecisions, NextSlot, Planning, UNSTARTED_MAX, Upcoming, WORK_MAX, next_slot,
};
use punctual_core::schedule::Cursor;
use punctual_core::time::SlotKey;
use serde_json::json;

use crate::support::{Generated, Subject, at, generated, show_skips};

fn next_after(subject: &Subject, after: &str) -> Upcoming {
    next_slot(&subject.planning(), &Cursor::starting(at(after)))
}

fn show_next(next: &NextSlot) -> String {
    match next {
        NextSlot::Open(slot) => slot.scheduled_at.to_string(),
        NextSlot::Full(slot) => format!("full before {}", slot.scheduled_at),
        NextSlot::Exhausted(slot) => format!("exhausted before {}", slot.scheduled_at),
        NextSlot::Cut => "cut".to_owned(),
        NextSlot::Inactive => "inactive".to_owned(),
        NextSlot::Never => "never".to_owned(),
    }
}

fn early(subject: &Subject, times: &[&str]) -> EarlyDecisions {
    let mut early = EarlyDecisions::default();
    for time in times {
        let just_before = at(time) - jiff::SignedDuration::from_nanos(1);
        let slot = subject.timetable.slots(just_before).next().unwrap();
        assert_eq!(early.decide(slot.key()), Ok(true));
    }
    early
}

#[test]
fn the_next_slot_is_the_first_after_the_cursor() {
    let subject = Subject::new(json!({"trigger": {"times": ["09:00", "17:00"]}}));
    let next = |after| show_next(&next_after(&subject, after).next);
    assert_eq!(next("2026-01-05T08:59:59Z"), "2026-01-05T09:00:00Z");
    assert_eq!(next("2026-01-05T09:00:00Z"), "2026-01-05T17:00:00Z");
    assert_eq!(next("2026-01-05T17:00:00Z"), "2026-01-06T09:00:00Z");
}

#[test]
fn closed_slots_on_the_way_come_back_as_ranges() {
    // Open on Mondays and Tuesdays from nine to five.
    let fields = json!({"trigger": {"cron": [{"expression": "0 */6 * * *"}]}, "calendar": "office"});
    let subject = Subject::new(fields);
    let upcoming = next_after(&subject, "2026-01-06T12:00:00Z");
    assert_eq!(show_next(&upcoming.next), "2026-01-12T12:00:00Z");
    assert_eq!(show_skips(&upcoming.closed), ["calendar×23"]);
    assert_eq!(upcoming.cursor.at, at("2026-01-12T06:00:00Z"), "the frontier once they are recorded");
    assert_eq!(next_slot(&subject.planning(), &upcoming.cursor).closed, []);
}

#[test]
fn what_is_decided_early_is_passed_over_and_parts_ranges() {
    let fields = json!({"trigger": {"times": ["10:00", "18:00", "19:00", "20:00"]}, "calendar": "office"});
    let subject = Subject::new(fields);
    let early = early(&subject, &["2026-01-05T10:00:00Z", "2026-01-05T19:00:00Z"]);
    let planning = Planning { answered: early.keys(), ..subject.planning() };
    let upcoming = next_slot(&planning, &Cursor::starting(at("2026-01-05T08:00:00Z")));
    assert_eq!(show_next(&upcoming.next), "2026-01-06T10:00:00Z");
    assert_eq!(show_skips(&upcoming.closed), ["calendar×1", "calendar×1"], "19:00 is decided already");
}

#[test]
fn a_search_that_is_cut_goes_on_where_it_stopped() {
    let subject = Subject::new(json!({"trigger": {"cron": [{"expression": "* * * * * *"}]}, "calendar": "office"}));
    let (mut cursor, mut closed, mut calls) = (Cursor::starting(at("2026-01-04T00:00:00Z")), 0, 0);
    let found = loop {
        let upcoming = next_slot(&subject.planning(), &cursor);
        let count: u64 = upcoming.closed.iter().map(|range| range.count).sum();
        assert!(count <= WORK_MAX as u64);
        (cursor, closed, calls) = (upcoming.cursor, closed + count, calls + 1);
        match upcoming.next {
            NextSlot::Cut => assert!(calls < 100, "the search goes round in circles"),
            next => break show_next(&next),
        }
    };
    assert_eq!(found, "2026-01-05T09:00:00Z");
    assert_eq!((closed, calls), (86_400 + 9 * 3_600 - 1, 12));
}

#[test]
fn a_schedule_that_is_over_says_so_and_keeps_its_place() {
    let fields = json!({
        "trigger": {"times": ["10:00", "20:00"]}, "calendar": "office", "bounds": {"end_at": "2026-01-06T23:00:00Z"},
    });
    let subject = Subject::new(fields);
    let upcoming = next_after(&subject, "2026-01-06T10:00:00Z");
    assert_eq!((upcoming.next, show_skips(&upcoming.closed)), (NextSlot::Never, vec!["calendar×1".to_owned()]));
    assert_eq!(upcoming.cursor.at, at("2026-01-06T20:00:00Z"), "an edit goes on from here");
    let once = Subject::new(json!({"trigger": {"at": "2026-03-10T18:00:00Z"}}));
    assert_eq!(show_next(&next_after(&once, "2026-01-05T00:00:00Z").next), "2026-03-10T18:00:00Z");
    assert_eq!(next_after(&once, "2026-03-10T18:00:00Z").next, NextSlot::Never);
    let event = Subject::new(json!({"trigger": {"on_event": {"event": "TicketCreated", "delay": "4h"}}}));
    assert_eq!(next_after(&event, "2026-01-05T00:00:00Z").next, NextSlot::Never);
}

#[test]
fn a_schedule_that_may_have_no_more_runs_has_a_next_slot_that_is_not_open() {
    let fields =
        json!({"trigger": {"cron": [{"expression": "0 * * * *"}]}, "bounds": {"max_runs": 5}, "runs_started": 2});
    let subject = Subject::new(fields);
    let next = |waiting| show_next(&next_slot(&subject.planning_with(waiting), &subject.schedule.cursor).next);
    assert_eq!(next(2), "2026-01-05T01:00:00Z");
    assert_eq!(next(3), "exhausted before 2026-01-05T01:00:00Z");
    let hourly = Subject::new(json!({"trigger": {"cron": [{"expression": "0 * * * *"}]}}));
    let next = next_slot(&hourly.planning_with(UNSTARTED_MAX), &hourly.schedule.cursor).next;
    assert_eq!(show_next(&next), "full before 2026-01-05T01:00:00Z");
    let pause = json!({"paused": {"kind": "paused", "at": "2026-01-05T00:00:00Z", "source": "ada"}});
    let paused = Subject::new(json!({"trigger": {"cron": [{"expression": "0 * * * *"}]}, "state": pause}));
    assert_eq!(next_after(&paused, "2026-01-05T00:00:00Z").next, NextSlot::Inactive);
}

#[test]
fn early_decisions_are_bounded_and_go_when_the_cursor_passes_them() {
    let hourly = Subject::new(json!({"trigger": {"cron": [{"expression": "0 * * * *"}]}}));
    let slots: Vec<_> = hourly.timetable.slots(at("2026-01-05T00:00:00Z")).take(EARLY_DECISIONS_MAX + 1).collect();
    let mut early = EarlyDecisions::default();
    for slot in &slots[..EARLY_DECISIONS_MAX] {
        assert_eq!(early.decide(slot.key()), Ok(true));
    }
    assert_eq!(early.decide(slots[0].key()), Ok(false), "known");
    let error = early.decide(slots[EARLY_DECISIONS_MAX].key()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a schedule can have at most 1000 slots cancelled ahead of time; pause it or change its times"
    );
    let text = serde_json::to_value(&early).unwrap();
    assert_eq!(serde_json::from_value::<EarlyDecisions>(text.clone()).unwrap(), early);
    let mut too_many = text;
    too_many.as_array_mut().unwrap().push(json!("i:0"));
    assert!(serde_json::from_value::<EarlyDecisions>(too_many).is_err());

    early.drop_passed(&hourly.timetable, &Cursor::starting(slots[9].scheduled_at));
    assert_eq!(early.keys().len(), EARLY_DECISIONS_MAX - 10);
    assert!(!early.has(&slots[9].key()) && early.has(&slots[10].key()));
}

#[test]
fn an_early_decision_outlives_an_edit_that_removes_its_slot() {
    let hourly = Subject::new(json!({"trigger": {"cron": [{"expression": "0 * * * *"}]}}));
    let daily = Subject::new(json!({"trigger": {"times": ["09:00"]}, "zone": "Europe/Paris"}));
    let mut early = early(&hourly, &["2026-01-05T12:00:00Z"]);
    early.drop_passed(&daily.timetable, &Cursor::starting(at("2026-01-05T11:00:00Z")));
    let key: SlotKey = serde_json::from_value(json!("2026-01-05T12:00:00/0@UTC")).unwrap();
    assert!(early.has(&key));
    early.drop_passed(&daily.timetable, &Cursor::starting(at("2026-01-08T00:00:00Z")));
    assert!(early.keys().is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// From any instant on, the next slot is the first open one, and what is closed before it is all in the ranges.
    #[test]
    fn the_next_slot_is_the_first_open_one_of_the_timetable(
        generated in generated(), minutes in 0_i64..6_000, picked in prop::collection::btree_set(0_usize..6, 0..4),
    ) {
        let Generated { subject, start } = generated;
        let after: Timestamp = start + jiff::SignedDuration::from_mins(minutes);
        let mut early = EarlyDecisions::default();
        let slots: Vec<_> = subject.timetable.slots(after).take(2_000).collect();
        let open: Vec<_> = slots.iter().filter(|slot| slot.skipped.is_none()).collect();
        for place in picked {
            if let Some(slot) = open.get(place) {
                early.decide(slot.key()).unwrap();
            }
        }
        let planning = Planning { answered: early.keys(), ..subject.planning() };
        let upcoming = next_slot(&planning, &Cursor::starting(after));
        let Some(expected) = open.into_iter().find(|slot| !early.has(&slot.key())) else {
            // A calendar that is never open at these times.
            prop_assert_eq!(upcoming.next, NextSlot::Cut);
            return Ok(());
        };
        prop_assert_eq!(upcoming.next.open(), Some(expected));
        let before = slots.iter().take_while(|slot| *slot != expected);
        let closed = before.filter(|slot| slot.skipped.is_some()).count() as u64;
        prop_assert_eq!(upcoming.closed.iter().map(|range| range.count).sum::<u64>(), closed);
        // The cursor loses nothing and goes over nothing twice.
        let again = next_slot(&planning, &upcoming.cursor);
        prop_assert_eq!((again.next, again.closed), (upcoming.next, vec![]));
    }
}

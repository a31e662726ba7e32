//! When a schedule is looked at again: at its next open slot, and early enough to record what is closed before it.

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use punctual_core::plan::{NextSlot, Pass, UNSTARTED_MAX, pass};
use punctual_core::schedule::Cursor;
use serde_json::{Value, json};

use crate::support::{Generated, Subject, at, generated, show};

/// A schedule whose slots up to `now` are decided, and when it is looked at again.
fn wake_at(fields: Value, now: &str) -> Option<Timestamp> {
    let subject = Subject::new(fields);
    wake(&subject, &pass(&subject.planning(), &Cursor::starting(at(now)), at(now)), at(now))
}

fn wake(subject: &Subject, passed: &Pass, now: Timestamp) -> Option<Timestamp> {
    passed.wake_at(subject.timetable.zone(), now)
}

#[test]
fn a_schedule_wakes_when_its_next_slot_is_scheduled() {
    for (fields, now, expected) in [
        (json!({"trigger": {"times": ["09:00"]}}), "2026-01-05T08:59:59Z", "2026-01-05T09:00:00Z"),
        (json!({"trigger": {"times": ["09:00"]}}), "2026-01-05T09:00:00Z", "2026-01-06T09:00:00Z"),
        // Midnight brings nothing that has to be recorded.
        (json!({"trigger": {"at": "2027-03-10T18:00:00Z"}}), "2026-01-05T00:00:00Z", "2027-03-10T18:00:00Z"),
        (json!({"trigger": {"times": ["09:00"]}, "jitter": "1h"}), "2026-01-05T00:00:00Z", "2026-01-05T09:00:00Z"),
    ] {
        assert_eq!(wake_at(fields.clone(), now), Some(at(expected)), "{fields} {now}");
    }
}

#[test]
fn closed_slots_are_recorded_with_the_next_run_and_at_the_latest_at_midnight() {
    let subject = Subject::new(json!({"trigger": {"cron": [{"expression": "0 */6 * * *"}]}, "calendar": "office"}));
    let mut now = at("2026-01-04T23:00:00Z");
    let mut cursor = Cursor::starting(now);
    let mut story = vec![];
    for _ in 0..7 {
        let passed = pass(&subject.planning(), &cursor, now);
        story.push(format!("{now}: {}", show(&passed).join(" ")));
        now = wake(&subject, &passed, now).unwrap();
        cursor = passed.cursor;
    }
    let expected = [
        "2026-01-04T23:00:00Z: ",
        "2026-01-05T12:00:00Z: calendar×2 2026-01-05T12:00:00Z", // Monday.
        "2026-01-06T00:00:00Z: calendar×2",
        "2026-01-06T12:00:00Z: calendar×1 2026-01-06T12:00:00Z",
        "2026-01-07T00:00:00Z: calendar×2",
        "2026-01-08T00:00:00Z: calendar×4", // Closed all day.
        "2026-01-09T00:00:00Z: calendar×4",
    ];
    assert_eq!(story, expected);
}

#[test]
fn midnight_is_that_of_the_schedules_zone() {
    // The office closes at 17:00 UTC. In Denver, 18:00 is closed, and its day ends at 07:00 UTC.
    let fields = json!({"trigger": {"times": ["09:00", "18:00"]}, "zone": "America/Denver", "calendar": "office"});
    assert_eq!(wake_at(fields, "2026-01-05T16:00:00Z"), Some(at("2026-01-06T07:00:00Z")));
    // Cairo's clock had no midnight then: the day ended where the gap began.
    let fields = json!({"trigger": {"times": ["15:00"]}, "zone": "Africa/Cairo", "calendar": "office"});
    assert_eq!(wake_at(fields, "2025-04-24T09:00:00Z"), Some(at("2025-04-24T22:00:00Z")));
}

#[test]
fn a_day_of_closed_slots_is_not_woken_for_before_it_comes() {
    // The next slot is closed, and days ahead.
    let fields = json!({"trigger": {"cron": [{"expression": "0 12 10 1 *"}]}, "calendar": "office"});
    assert_eq!(wake_at(fields, "2026-01-05T00:00:00Z"), Some(at("2026-01-11T00:00:00Z")));
}

#[test]
fn time_does_not_wake_what_only_a_change_or_a_run_can() {
    let pause = json!({"paused": {"kind": "paused", "at": "2026-01-05T00:00:00Z", "source": "ada"}});
    let hourly = json!({"cron": [{"expression": "0 * * * *"}]});
    for (fields, waiting) in [
        (json!({"trigger": hourly}), UNSTARTED_MAX),
        (json!({"trigger": hourly, "bounds": {"max_runs": 5}, "runs_started": 2}), 3),
        (json!({"trigger": {"at": "2026-01-05T01:00:00Z"}}), 0),
        (json!({"trigger": hourly, "bounds": {"end_at": "2026-01-05T01:30:00Z"}}), 0),
        (json!({"trigger": {"on_event": {"event": "TicketCreated", "delay": "4h"}}}), 0),
        (json!({"trigger": hourly, "state": pause}), 0),
        (json!({"trigger": hourly, "state": {"ended": "cancelled"}}), 0),
    ] {
        let subject = Subject::new(fields.clone());
        let now = at("2026-01-05T02:30:00Z");
        let passed = pass(&subject.planning_with(waiting), &subject.schedule.cursor, now);
        assert_eq!(wake(&subject, &passed, now), None, "{fields}");
    }
}

#[test]
fn a_schedule_that_stops_for_its_own_runs_is_not_woken_by_the_slot_that_it_stops_at() {
    let subject = Subject::new(json!({"trigger": {"cron": [{"expression": "* * * * * *"}]}}));
    let now = at("2026-01-05T01:00:00Z");
    let full = pass(&subject.planning(), &subject.schedule.cursor, now);
    assert!(matches!(full.upcoming.next, NextSlot::Full(_)), "{:?}", full.upcoming.next);
    assert_eq!((full.decisions.len(), wake(&subject, &full, now)), (UNSTARTED_MAX, None));
}

#[test]
fn closed_slots_are_recorded_at_midnight_unless_a_run_has_to_wake_the_schedule_first() {
    let fields = json!({"trigger": {"times": ["10:00", "20:00"]}, "calendar": "office"});
    let with = |name: &str, value: Value| {
        let mut fields = fields.clone();
        fields[name] = value;
        Subject::new(fields)
    };
    let now = at("2026-01-05T10:00:00Z");
    let midnight = at("2026-01-06T00:00:00Z");
    for (subject, waiting, is_next, wakes_at) in [
        // A time would hide that the run which starts or ends wakes it.
        (with("jitter", json!("0s")), UNSTARTED_MAX, "full", None),
        (with("bounds", json!({"max_runs": 1})), 1, "exhausted", None),
        (with("bounds", json!({"end_at": "2026-01-05T23:00:00Z"})), 0, "never", Some(midnight)),
    ] {
        let passed = pass(&subject.planning_with(waiting), &Cursor::starting(now), now);
        let next = match passed.upcoming.next {
            NextSlot::Full(_) => "full",
            NextSlot::Exhausted(_) => "exhausted",
            NextSlot::Never => "never",
            _ => "other",
        };
        assert_eq!((next, passed.is_over()), (is_next, false));
        assert_eq!(wake(&subject, &passed, now), wakes_at, "{is_next}");
        // Whatever wakes it, they are recorded then.
        let recorded = pass(&subject.planning_with(waiting), &passed.cursor, midnight);
        assert_eq!((show(&recorded), wake(&subject, &recorded, midnight)), (vec!["calendar×1".to_owned()], None));
    }
}

#[test]
fn what_is_cut_goes_on_at_once() {
    let subject = Subject::new(json!({"trigger": {"cron": [{"expression": "* * * * * *"}]}, "calendar": "office"}));
    let now = at("2026-01-04T06:00:00Z");
    let cut = pass(&subject.planning(), &Cursor::starting(at("2026-01-04T00:00:00Z")), now);
    assert!(cut.is_cut);
    assert_eq!(wake(&subject, &cut, now), Some(now));
}

#[test]
fn a_search_that_is_cut_far_ahead_goes_on_where_it_ended_and_at_the_latest_at_midnight() {
    for (expression, now, expected) in [
        // Closed until Monday at nine: 10,000 seconds are less than three hours of that.
        ("* * * * * *", "2026-01-04T06:00:00Z", "2026-01-04T08:46:40Z"),
        ("* * * * * *", "2026-01-04T23:00:00Z", "2026-01-05T00:00:00Z"),
        // Never open: 10,000 evenings are 27 years.
        ("0 20 * * *", "2026-01-05T06:00:00Z", "2026-01-06T00:00:00Z"),
    ] {
        let subject = Subject::new(json!({"trigger": {"cron": [{"expression": expression}]}, "calendar": "office"}));
        let passed = pass(&subject.planning(), &Cursor::starting(at(now)), at(now));
        assert_eq!((&passed.upcoming.next, passed.is_cut), (&NextSlot::Cut, false), "{expression} {now}");
        assert_eq!(wake(&subject, &passed, at(now)), Some(at(expected)), "{expression} {now}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    /// A caller that looks only when told to decides each open slot at its own instant, and each closed one by the end of its day.
    #[test]
    fn waking_is_never_too_late_and_never_for_nothing(generated in generated()) {
        let Generated { subject, start } = generated;
        let zone = subject.timetable.zone();
        let (mut now, mut cursor, mut decided) = (start, Cursor::starting(start), 0);
        for place in 0..60 {
            let passed = pass(&subject.planning(), &cursor, now);
            prop_assert!(place == 0 || !passed.decisions.is_empty(), "woken for nothing at {now}");
            for slot in passed.runs() {
                prop_assert_eq!(slot.scheduled_at, now);
            }
            for range in passed.skips() {
                prop_assert!(now <= zone.day_end(zone.day_of(range.first.scheduled_at)), "{range:?} at {now}");
                decided += range.count;
            }
            decided += passed.runs().count() as u64;
            cursor = passed.cursor.clone();
            let next = passed.wake_at(zone, now);
            prop_assert!(next.is_some_and(|next| now < next), "{next:?} after {now}");
            now = next.unwrap();
        }
        let until = cursor.at.max(start);
        let slots = subject.timetable.slots(start).take_while(|slot| slot.scheduled_at <= until);
        prop_assert_eq!(decided, slots.count() as u64);
        prop_assert!(start + SignedDuration::from_hours(1) < now);
    }
}

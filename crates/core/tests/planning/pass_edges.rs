//! Passing at the edges: triggers that fire once or never, bounds, closed stretches, gaps, and the bound of one call.

use jiff::Timestamp;
use punctual_core::plan::{EarlyDecisions, NextSlot, Pass, Planning, UNSTARTED_MAX, WORK_MAX, pass};
use punctual_core::schedule::{Cursor, Schedule};
use serde_json::json;

use crate::support::{Subject, at, next_at, show, show_skips};

fn pass_from(subject: &Subject, cursor: &Cursor, now: &str) -> Pass {
    pass(&subject.planning(), cursor, at(now))
}

#[test]
fn a_one_shot_waits_for_its_time_and_is_over_then() {
    let subject = Subject::new(json!({"trigger": {"at": "2026-03-10T18:00:00Z"}}));
    let first = pass_from(&subject, &subject.schedule.cursor, "2026-01-05T00:00:00Z");
    assert_eq!((show(&first), next_at(&first)), (vec![], Some(at("2026-03-10T18:00:00Z"))));
    assert!(!first.is_over());
    let second = pass_from(&subject, &first.cursor, "2026-03-10T18:00:00Z");
    assert_eq!((show(&second), second.is_over()), (vec!["2026-03-10T18:00:00Z".to_owned()], true));
    let third = pass_from(&subject, &second.cursor, "2026-03-11T00:00:00Z");
    assert_eq!((show(&third), third.is_over()), (vec![], true));
}

#[test]
fn an_immediate_schedule_runs_at_its_creation_and_once() {
    let now = "2026-01-05T09:30:00.25Z";
    let subject = Subject::new(json!({"trigger": {"immediate": {"at": now}}}));
    let cursor = Schedule::cursor_from(&subject.schedule.trigger, at(now));
    let first = pass_from(&subject, &cursor, now);
    assert_eq!((show(&first), first.is_over()), (vec![now.to_owned()], true));
    assert_eq!(show(&pass_from(&subject, &first.cursor, "2026-01-06T00:00:00Z")), [] as [String; 0]);
}

#[test]
fn an_event_trigger_gives_time_nothing_to_decide() {
    let subject = Subject::new(json!({"trigger": {"on_event": {"event": "TicketCreated", "delay": "4h"}}}));
    let passed = pass_from(&subject, &subject.schedule.cursor, "2026-01-08T00:00:00Z");
    assert_eq!((show(&passed), passed.is_over()), (vec![], true));
    assert_eq!(passed.cursor.at, at("2026-01-08T00:00:00Z"));
}

#[test]
fn bounds_are_inclusive() {
    let fields = json!({
        "trigger": {"cron": [{"expression": "0 * * * *"}]},
        "bounds": {"start_at": "2026-01-05T03:00:00Z", "end_at": "2026-01-05T05:00:00Z"},
    });
    let subject = Subject::new(fields);
    let before = pass_from(&subject, &subject.schedule.cursor, "2026-01-05T02:59:59Z");
    assert_eq!((show(&before), next_at(&before)), (vec![], Some(at("2026-01-05T03:00:00Z"))));
    let passed = pass_from(&subject, &before.cursor, "2026-01-05T05:00:00Z");
    assert_eq!(show(&passed), ["2026-01-05T03:00:00Z", "2026-01-05T04:00:00Z", "2026-01-05T05:00:00Z"]);
    assert!(passed.is_over());
}

#[test]
fn closed_slots_are_decided_in_ranges() {
    let subject = Subject::new(json!({"trigger": {"cron": [{"expression": "0 */6 * * *"}]}, "calendar": "office"}));
    let passed = pass_from(&subject, &Cursor::starting(at("2026-01-04T23:00:00Z")), "2026-01-07T00:00:00Z");
    let expected = ["calendar×2", "2026-01-05T12:00:00Z", "calendar×3", "2026-01-06T12:00:00Z", "calendar×2"];
    assert_eq!(show(&passed), expected);
    let range = passed.skips().nth(1).unwrap();
    let ends = [&range.first, &range.last].map(|slot| slot.key().to_string());
    assert_eq!(ends, ["2026-01-05T18:00:00/0@UTC", "2026-01-06T06:00:00/0@UTC"]);
}

#[test]
fn a_schedule_is_over_only_when_its_last_closed_slots_are_decided() {
    let fields = json!({
        "trigger": {"times": ["10:00", "20:00"]}, "calendar": "office", "bounds": {"end_at": "2026-01-06T23:00:00Z"},
    });
    let subject = Subject::new(fields);
    let passed = pass_from(&subject, &Cursor::starting(at("2026-01-06T00:00:00Z")), "2026-01-06T10:00:00Z");
    assert_eq!((show(&passed), passed.is_over()), (vec!["2026-01-06T10:00:00Z".to_owned()], false));
    assert_eq!(
        (&passed.upcoming.next, show_skips(&passed.upcoming.closed)),
        (&NextSlot::Never, vec!["calendar×1".to_owned()])
    );
    let last = pass_from(&subject, &passed.cursor, "2026-01-07T00:00:00Z");
    assert_eq!((show(&last), last.is_over()), (vec!["calendar×1".to_owned()], true));
}

#[test]
fn one_call_looks_at_a_bounded_number_of_slots() {
    let subject = Subject::new(json!({"trigger": {"cron": [{"expression": "* * * * * *"}]}, "calendar": "office"}));
    let now = "2026-01-04T06:00:00Z"; // A Sunday: nothing is open.
    let first = pass_from(&subject, &Cursor::starting(at("2026-01-04T00:00:00Z")), now);
    assert_eq!((show(&first), first.is_cut), (vec![format!("calendar×{WORK_MAX}")], true));
    assert_eq!(first.upcoming.next, NextSlot::Cut);
    let second = pass_from(&subject, &first.cursor, now);
    assert_eq!((show(&second), second.is_cut), (vec![format!("calendar×{WORK_MAX}")], true));
    assert_eq!(second.cursor.at, at("2026-01-04T05:33:20Z"));
    let third = pass_from(&subject, &second.cursor, now);
    assert_eq!((show(&third), third.is_cut), (vec!["calendar×1600".to_owned()], false));
    // The search ahead shares the bound of the call.
    let ahead: u64 = third.upcoming.closed.iter().map(|range| range.count).sum();
    assert_eq!((ahead, &third.upcoming.next), (WORK_MAX as u64 - 1_600, &NextSlot::Cut));
}

#[test]
fn as_many_slots_as_one_call_may_decide_are_not_too_many() {
    let subject = Subject::new(json!({"trigger": {"cron": [{"expression": "* * * * * *"}]}, "calendar": "office"}));
    let passed = pass_from(&subject, &Cursor::starting(at("2026-01-04T00:00:00Z")), "2026-01-04T02:46:40Z");
    assert_eq!((show(&passed), passed.cursor.at), (vec![format!("calendar×{WORK_MAX}")], at("2026-01-04T02:46:40Z")));
    // Whether that was all is for the next call to find out.
    let again = pass_from(&subject, &passed.cursor, "2026-01-04T02:46:40Z");
    assert_eq!((show(&again), again.is_cut), (vec![], false));
}

#[test]
fn passing_that_stops_inside_a_gap_goes_on_there() {
    // 02:15 and 02:45 are lost, 03:00 runs at the same instant; there is room for nothing at first.
    let crons = json!([{"expression": "15,45 2 * * *"}, {"expression": "0 3 * * *"}]);
    let subject = Subject::new(json!({"trigger": {"cron": crons}, "zone": "America/New_York"}));
    let now = at("2026-03-08T07:00:00Z");
    let full = pass(&subject.planning_with(UNSTARTED_MAX), &Cursor::starting(at("2026-03-08T06:00:00Z")), now);
    assert_eq!(show(&full), ["dst_gap×2"]);
    assert!(matches!(&full.upcoming.next, NextSlot::Full(slot) if slot.scheduled_at == now), "{:?}", full.upcoming);
    assert_eq!(full.cursor.at, at("2026-03-08T06:59:59.999999Z"), "a store can keep it");
    let rest = pass(&subject.planning(), &full.cursor, now);
    assert_eq!((show(&rest), rest.cursor.at), (vec![now.to_string()], now));
}

#[test]
fn a_slot_that_was_cancelled_before_its_time_is_decided_already() {
    let subject = Subject::new(json!({"trigger": {"cron": [{"expression": "0 */6 * * *"}]}}));
    let mut early = EarlyDecisions::default();
    early.decide(subject.timetable.slots(at("2026-01-05T11:00:00Z")).next().unwrap().key()).unwrap();
    let planning = Planning { answered: early.keys(), ..subject.planning() };
    let passed = pass(&planning, &subject.schedule.cursor, at("2026-01-05T07:00:00Z"));
    assert_eq!(
        (show(&passed), next_at(&passed)),
        (vec!["2026-01-05T06:00:00Z".to_owned()], Some(at("2026-01-05T18:00:00Z")))
    );
    let evening = pass(&planning, &passed.cursor, at("2026-01-05T19:00:00Z"));
    assert_eq!(show(&evening), ["2026-01-05T18:00:00Z"]);
}

#[test]
fn a_pass_is_the_same_however_often_it_is_asked_for() {
    let subject = Subject::new(json!({"jitter": "10m", "zone": "Europe/Paris"}));
    let now: Timestamp = at("2026-01-07T00:00:00Z");
    let once = pass(&subject.planning(), &subject.schedule.cursor, now);
    assert_eq!(once.runs().count(), 2);
    assert_eq!(once, pass(&subject.planning(), &subject.schedule.cursor, now));
    // In two steps it is the same again.
    let first = pass(&subject.planning(), &subject.schedule.cursor, at("2026-01-05T12:00:00Z"));
    let second = pass(&subject.planning(), &first.cursor, now);
    assert_eq!([first.decisions, second.decisions].concat(), once.decisions);
    assert_eq!((second.cursor, second.upcoming), (once.cursor, once.upcoming));
}

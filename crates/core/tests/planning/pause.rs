//! The end of a pause: every slot that it has passed over is skipped, in one range.

use jiff::SignedDuration;
use punctual_core::plan::{EarlyDecisions, Planning, WORK_MAX, pass, skip_until};
use punctual_core::run::SkipReason;
use punctual_core::schedule::Cursor;
use serde_json::json;

use crate::support::{Subject, at, show_skips};

#[test]
fn a_pause_is_one_range_with_the_closed_slots_in_it() {
    let pause =
        json!({"paused": {"kind": "paused", "at": "2026-01-05T00:00:00Z", "source": "ada", "reason": "holiday"}});
    let fields = json!({"trigger": {"cron": [{"expression": "0 */6 * * *"}]}, "state": pause, "calendar": "office"});
    let subject = Subject::new(fields);
    let until = at("2026-01-06T09:30:00Z");
    let resumed = skip_until(&subject.planning(), &subject.schedule.cursor, until, SkipReason::Paused);
    assert_eq!(show_skips(&resumed.skips), ["paused×5"]);
    assert_eq!((resumed.cursor.at, resumed.is_cut), (until, false));
    assert_eq!(resumed.skips[0].first.key().as_str(), "2026-01-05T06:00:00/0@UTC");
    assert_eq!(resumed.skips[0].last.key().as_str(), "2026-01-06T06:00:00/0@UTC");
}

#[test]
fn a_long_pause_takes_several_calls() {
    let off = json!({"paused": {"kind": "disabled", "at": "2026-01-05T00:00:00Z", "source": "api"}});
    let subject = Subject::new(json!({"trigger": {"cron": [{"expression": "* * * * * *"}]}, "state": off}));
    let until = at("2026-01-05T03:00:00Z");
    let first = skip_until(&subject.planning(), &subject.schedule.cursor, until, SkipReason::Disabled);
    assert_eq!((show_skips(&first.skips), first.is_cut), (vec![format!("disabled×{WORK_MAX}")], true));
    let second = skip_until(&subject.planning(), &first.cursor, until, SkipReason::Disabled);
    assert_eq!((show_skips(&second.skips), second.is_cut), (vec!["disabled×800".to_owned()], false));
    assert_eq!(second.cursor.at, until);
}

#[test]
fn a_pause_comes_to_its_end_beside_a_clock_that_has_no_slot_in_it() {
    // London has one slot a year, New York one a second.
    let crons = json!([
        {"expression": "* * * * * *", "zone": "America/New_York"},
        {"expression": "0 0 1 1 *", "zone": "Europe/London"},
    ]);
    let subject = Subject::new(json!({"trigger": {"cron": crons}}));
    let start = at("2026-06-01T00:00:00Z");
    let until = start + SignedDuration::from_hours(72);
    let mut cursor = pass(&subject.planning(), &Cursor::starting(start), start).cursor;
    let (mut skipped, mut calls) = (0, 0);
    loop {
        let skips = skip_until(&subject.planning(), &cursor, until, SkipReason::Paused);
        skipped += skips.skips.iter().map(|range| range.count).sum::<u64>();
        (cursor, calls) = (skips.cursor, calls + 1);
        let distance = cursor.at.duration_since(cursor.starts_behind(&subject.timetable));
        assert!(distance <= SignedDuration::from_secs(1), "the next search starts {distance:?} before the cursor");
        assert!(calls < 100, "the pause goes round in circles");
        if !skips.is_cut {
            break;
        }
    }
    assert_eq!((skipped, calls), (72 * 3_600, 26));
}

#[test]
fn nothing_is_lost_where_the_bound_of_one_call_lies_among_slots_of_one_instant() {
    // At 01:00 in UTC the clocks of London and Paris leave out an hour, and two slots each.
    let crons = [("15,45 1 * * *", "Europe/London"), ("15,45 2 * * *", "Europe/Paris"), ("* * * * * *", "UTC")];
    let gap = at("2026-03-29T01:00:00Z");
    let until = gap + SignedDuration::from_secs(30);
    for order in [[0, 1, 2], [1, 0, 2], [2, 0, 1]] {
        let crons = order.map(|place| json!({"expression": crons[place].0, "zone": crons[place].1}));
        let subject = Subject::new(json!({"trigger": {"cron": crons}}));
        for before in WORK_MAX as i64 - 5..=WORK_MAX as i64 {
            let from = gap - SignedDuration::from_secs(before + 1);
            let slots = subject.timetable.slots(from).take_while(|slot| slot.scheduled_at <= until).count();
            assert!(before as usize + 31 < slots, "{slots}");
            let first = skip_until(&subject.planning(), &Cursor::starting(from), until, SkipReason::Paused);
            let second = skip_until(&subject.planning(), &first.cursor, until, SkipReason::Paused);
            let skipped = [&first, &second].map(|it| it.skips.iter().map(|range| range.count).sum::<u64>() as usize);
            assert_eq!((skipped[0], skipped[0] + skipped[1]), (WORK_MAX, slots), "{order:?} {before}");
        }
    }
}

#[test]
fn a_slot_that_was_cancelled_before_its_time_is_not_skipped_and_parts_the_range() {
    let pause = json!({"paused": {"kind": "paused", "at": "2026-01-05T00:00:00Z", "source": "ada"}});
    let subject = Subject::new(json!({"trigger": {"cron": [{"expression": "0 */6 * * *"}]}, "state": pause}));
    let mut early = EarlyDecisions::default();
    early.decide(subject.timetable.slots(at("2026-01-05T11:00:00Z")).next().unwrap().key()).unwrap();
    let planning = Planning { answered: early.keys(), ..subject.planning() };
    let resumed = skip_until(&planning, &subject.schedule.cursor, at("2026-01-05T23:00:00Z"), SkipReason::Paused);
    assert_eq!(show_skips(&resumed.skips), ["paused×1", "paused×1"], "06:00, and 18:00 after what is decided");
}

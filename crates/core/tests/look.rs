//! Every walk over slots ends, whatever a calendar skips, and says where it ended for its bound.

use jiff::Timestamp;
use proptest::prelude::*;
use punctual_core::schedule::{Bounds, Crons, DstPolicy, GapPolicy, RepeatPolicy, Trigger};
use punctual_core::time::{Calendar, Cron, Slot, Timetable, Zones};

const NATIVE: DstPolicy = DstPolicy { gap: GapPolicy::After, repeat: RepeatPolicy::Once };

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn timetable(expression: &str, zone: &str) -> Timetable {
    let trigger = Trigger::Cron(Crons::one(Cron::parse(expression, None).unwrap()));
    Timetable::new(&trigger, zone, NATIVE, &Zones::bundled()).unwrap()
}

/// Open from Monday to Friday.
fn closed_at_weekends(timetable: Timetable) -> Timetable {
    let weekdays = r#"{"name": "weekdays", "zone": "UTC", "weekly": {"mon": ["00:00-24:00"], "tue": ["00:00-24:00"],
        "wed": ["00:00-24:00"], "thu": ["00:00-24:00"], "fri": ["00:00-24:00"]}}"#;
    let weekdays: Calendar = serde_json::from_str(weekdays).unwrap();
    timetable.with_calendar(&weekdays, &Zones::bundled()).unwrap()
}

#[test]
fn a_search_for_a_run_that_never_comes_ends_and_says_where() {
    let timetable = closed_at_weekends(timetable("* * * * * SAT", "UTC"));
    let monday = at("2026-01-05T00:00:00Z");
    let mut ahead = timetable.slots(monday);
    assert_eq!(ahead.find(|slot| slot.skipped.is_none()), None);
    // A whole Saturday, and what is left of the bound on the next.
    assert_eq!(ahead.cut_at(), Some(at("2026-01-17T03:46:40Z")));
    let mut behind = timetable.before(monday);
    assert_eq!(behind.find(|slot| slot.skipped.is_none()), None);
    assert!(behind.cut_at().is_some_and(|cut_at| cut_at < at("2026-01-03T00:00:00Z")));
}

#[test]
fn what_comes_to_its_end_by_itself_is_not_cut() {
    let bounds = Bounds::new(None, Some(at("2029-06-01T00:00:00Z")), None).unwrap();
    let timetable = timetable("0 9 1 1 *", "UTC").with_bounds(bounds);
    let mut slots = timetable.slots(at("2026-06-01T00:00:00Z")).looking_at(3);
    assert_eq!(slots.by_ref().count(), 3);
    assert_eq!(slots.cut_at(), None, "there is no fourth");
    let mut slots = timetable.slots(at("2026-06-01T00:00:00Z")).looking_at(2);
    assert_eq!(slots.by_ref().count(), 2);
    assert_eq!(slots.cut_at(), Some(at("2029-01-01T09:00:00Z")));
    assert_eq!(slots.next(), None, "it stays at its end");
}

#[test]
fn a_day_of_every_second_is_looked_at_whole() {
    for (day, seconds) in [("2026-03-29", 23 * 3_600), ("2026-10-25", 25 * 3_600)] {
        let plan = timetable("* * * * * *", "Europe/Paris").day_plan(day.parse().unwrap());
        assert_eq!(plan.len(), seconds, "{day}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The bound takes nothing away but what lies behind it, in both directions.
    #[test]
    fn a_bound_leaves_what_lies_before_it(
        expression in prop::sample::select(vec!["* * * * * SAT", "0 9 * * *", "*/7 * * * *", "30 2 * * SUN", "0 0 29 2 *"]),
        zone in prop::sample::select(vec!["UTC", "Europe/Paris", "America/New_York", "Pacific/Apia"]),
        after in 1_700_000_000_i64..1_900_000_000,
        max in 0_usize..300,
    ) {
        let timetable = closed_at_weekends(timetable(expression, zone));
        let after = Timestamp::from_second(after).unwrap();
        let all: Vec<Slot> = timetable.slots(after).take(max + 1).collect();
        let mut slots = timetable.slots(after).looking_at(max);
        prop_assert_eq!(slots.by_ref().collect::<Vec<_>>(), &all[..max.min(all.len())]);
        prop_assert_eq!(slots.cut_at(), all.get(max).map(|slot| slot.scheduled_at));
        let all: Vec<Slot> = timetable.before(after).take(max + 1).collect();
        let mut slots = timetable.before(after).looking_at(max);
        prop_assert_eq!(slots.by_ref().collect::<Vec<_>>(), &all[..max.min(all.len())]);
        prop_assert_eq!(slots.cut_at(), all.get(max).map(|slot| slot.scheduled_at));
    }
}

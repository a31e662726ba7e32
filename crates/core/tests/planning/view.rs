//! The view of a plan: the slots of a stretch of time with their ids, and how many there are.

use jiff::civil::{Date, date};
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use punctual_core::plan::{
    EarlyDecisions, SlotCount, SlotStatus, ViewedSlot, count_day, count_slots, slot_with_id, view_slots,
};
use punctual_core::run::SkipReason;
use punctual_core::time::Slot;
use punctual_core::{RunId, ScheduleId};
use serde_json::json;

use crate::support::{Generated, Subject, ZoneFolder, at, generated};

#[test]
fn a_view_shows_open_closed_and_early_decided_slots_with_their_ids() {
    let fields = json!({"trigger": {"times": ["10:00", "12:00", "18:00"]}, "calendar": "office", "jitter": "30m"});
    let subject = Subject::new(fields);
    let mut early = EarlyDecisions::default();
    let noon = subject.timetable.slots(at("2026-01-05T11:00:00Z")).next().unwrap();
    early.decide(noon.key()).unwrap();
    // The first instant is part of it, the last is not.
    let between = (at("2026-01-05T10:00:00Z"), at("2026-01-06T10:00:00Z"));
    let viewed: Vec<_> = view_slots(subject.schedule.id, &subject.timetable, &early, between, 100).collect();
    let shown: Vec<_> = viewed.iter().map(|slot| (slot.scheduled_at.to_string(), slot.status)).collect();
    let expected = [
        ("2026-01-05T10:00:00Z".to_owned(), SlotStatus::Open),
        ("2026-01-05T12:00:00Z".to_owned(), SlotStatus::DecidedEarly),
        ("2026-01-05T18:00:00Z".to_owned(), SlotStatus::Closed(SkipReason::Calendar)),
    ];
    assert_eq!(shown, expected);
    assert!(viewed[0].scheduled_at < viewed[0].due_at);
    assert_eq!(viewed[1].id, RunId::of(subject.schedule.id, noon.scheduled_at, &noon.key()));
}

#[test]
fn an_id_finds_its_slot_and_no_other_schedules() {
    let subject =
        Subject::new(json!({"trigger": {"every": {"interval": "1s500ms", "anchor": "2026-01-05T00:00:00Z"}}}));
    let slot = subject.timetable.slots(at("2026-01-05T00:00:00Z")).nth(2).unwrap();
    let id = RunId::of(subject.schedule.id, slot.scheduled_at, &slot.key());
    assert_eq!(slot_with_id(subject.schedule.id, &subject.timetable, id), Some(slot.clone()));
    let other = ScheduleId(uuid::Uuid::from_u128(77));
    assert_eq!(slot_with_id(other, &subject.timetable, id), None);
    let another_key = punctual_core::time::SlotKey::event("7");
    let id = RunId::of(subject.schedule.id, slot.scheduled_at, &another_key);
    assert_eq!(slot_with_id(subject.schedule.id, &subject.timetable, id), None);
    assert_eq!(slot_with_id(subject.schedule.id, &subject.timetable, crate::support::run_id(1)), None);
}

#[test]
fn an_id_of_before_an_update_of_the_zone_data_names_no_slot() {
    let folder = ZoneFolder::new("view_update");
    let fields = || json!({"trigger": {"times": ["09:00"]}, "zone": "Test/Moving"});
    let [before, after] =
        ["Europe/Paris", "Europe/London"].map(|like| Subject::with_zones(fields(), &folder.zones(like)));
    let slot = before.timetable.slots(at("2026-01-05T00:00:00Z")).next().unwrap();
    let id = RunId::of(before.schedule.id, slot.scheduled_at, &slot.key());
    assert_eq!(slot_with_id(after.schedule.id, &after.timetable, id), None);
    assert!(after.timetable.slot(&slot.key()).is_some(), "the slot itself has only moved");
}

#[test]
fn among_slots_that_share_an_id_the_open_one_is_found() {
    // The day that Apia left out: 86,400 slots at one instant have 4,096 hashes between them.
    let list = |until: u32| (0..until).map(|value| value.to_string()).collect::<Vec<_>>().join(",");
    let expression = format!("{} {} {} * * *", list(60), list(60), list(24));
    let subject = Subject::new(json!({"trigger": {"cron": [{"expression": expression}]}, "zone": "Pacific/Apia"}));
    let gap_end = at("2011-12-30T10:00:00Z");
    let slots = subject.timetable.slots(gap_end - SignedDuration::from_secs(1));
    let of_instant: Vec<Slot> = slots.take_while(|slot| slot.scheduled_at == gap_end).collect();
    assert_eq!(of_instant.len(), 86_401);
    let open: Vec<_> = of_instant.iter().filter(|slot| slot.skipped.is_none()).collect();
    assert_eq!(open.len(), 1);
    let id_of = |slot: &Slot| RunId::of(subject.schedule.id, slot.scheduled_at, &slot.key());
    let sharing = of_instant.iter().filter(|slot| id_of(slot) == id_of(open[0])).count();
    assert!(1 < sharing, "{sharing}");
    assert_eq!(slot_with_id(subject.schedule.id, &subject.timetable, id_of(open[0])).as_ref(), Some(open[0]));
    // They stay together, however few a view may show.
    let early = EarlyDecisions::default();
    let between = (gap_end - SignedDuration::from_secs(1), Timestamp::MAX);
    let mut view = view_slots(subject.schedule.id, &subject.timetable, &early, between, 2);
    assert_eq!(view.by_ref().count(), 86_402);
    assert_eq!(view.cut_at(), Some(gap_end + SignedDuration::from_secs(1)));
}

#[test]
fn a_day_is_counted_as_its_zone_has_it() {
    let every_minute =
        |zone: &str| Subject::new(json!({"trigger": {"cron": [{"expression": "* * * * *"}]}, "zone": zone}));
    let open = |subject: &Subject, day: Date| count_day(&subject.timetable, day).open;
    assert_eq!(open(&every_minute("UTC"), date(2026, 3, 8)), 1_440);
    assert_eq!(open(&every_minute("America/New_York"), date(2026, 3, 8)), 1_380);
    assert_eq!(open(&every_minute("America/New_York"), date(2026, 11, 1)), 1_500);
    let office = Subject::new(json!({"trigger": {"cron": [{"expression": "0 * * * *"}]}, "calendar": "office"}));
    assert_eq!(count_day(&office.timetable, date(2026, 1, 5)), SlotCount { open: 8, closed: 16, cut_at: None });
}

#[test]
fn bounds_matter_on_the_days_that_they_cut() {
    let bounds = json!({"start_at": "2026-01-05T00:00:00Z", "end_at": "2026-01-07T12:00:00Z"});
    let subject = Subject::new(json!({"trigger": {"cron": [{"expression": "0 * * * *"}]}, "bounds": bounds}));
    let whole = [4, 5, 6, 7, 8].map(|day| subject.timetable.is_whole_day(date(2026, 1, day)));
    assert_eq!(whole, [false, true, true, false, false]);
    let counts = [4, 5, 6, 7, 8].map(|day| count_day(&subject.timetable, date(2026, 1, day)).open);
    assert_eq!(counts, [0, 24, 24, 13, 0]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// A view in pieces is the view, each slot is found by its id, and a count in pieces is the count.
    #[test]
    fn a_view_and_its_count_are_the_slots_of_the_timetable(
        generated in generated(), minutes in 0_i64..3_000, hours in 1_i64..100, looked_max in 1_usize..40,
    ) {
        let Generated { subject, start } = generated;
        let from = start + SignedDuration::from_mins(minutes);
        let until = from + SignedDuration::from_hours(hours);
        let just_before = from - SignedDuration::from_nanos(1);
        let slots: Vec<Slot> = subject.timetable.slots(just_before).take_while(|slot| slot.scheduled_at < until).collect();
        let early = EarlyDecisions::default();
        let (mut viewed, mut count, mut next) = (vec![], SlotCount::default(), Some(from));
        while let Some(from) = next {
            let mut view = view_slots(subject.schedule.id, &subject.timetable, &early, (from, until), looked_max);
            viewed.extend(view.by_ref());
            let counted = count_slots(&subject.timetable, (from, until), looked_max);
            count.open += counted.open;
            count.closed += counted.closed;
            prop_assert_eq!(view.cut_at(), counted.cut_at);
            next = counted.cut_at;
        }
        let expected: Vec<ViewedSlot> = slots.iter().map(|slot| ViewedSlot {
            id: RunId::of(subject.schedule.id, slot.scheduled_at, &slot.key()),
            key: slot.key(),
            scheduled_at: slot.scheduled_at,
            due_at: slot.due_at,
            status: slot.skipped.map_or(SlotStatus::Open, SlotStatus::Closed),
        }).collect();
        prop_assert_eq!(&viewed, &expected);
        let open = slots.iter().filter(|slot| slot.skipped.is_none()).count() as u64;
        prop_assert_eq!(count, SlotCount { open, closed: slots.len() as u64 - open, cut_at: None });
        for (slot, viewed) in slots.iter().zip(&viewed).filter(|(slot, _)| slot.skipped.is_none()) {
            prop_assert_eq!(slot_with_id(subject.schedule.id, &subject.timetable, viewed.id), Some(slot.clone()));
        }
        let day = subject.timetable.zone().day_of(from);
        prop_assert_eq!(count_day(&subject.timetable, day).open, subject.timetable.count_on(day) as u64);
    }
}

//! The view of a plan: the slots that lie ahead, and the ids of their runs.

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use punctual_core::plan::{SlotsAhead, run_ahead, slot_ahead, slot_with_id};
use punctual_core::schedule::Cursor;
use punctual_core::time::Slot;
use punctual_core::{RunId, ScheduleId};
use serde_json::json;

use crate::support::{Generated, Subject, ZoneFolder, at, generated};

#[test]
fn ahead_are_open_slots_that_are_not_decided() {
    let fields = json!({"trigger": {"times": ["08:00", "10:00", "12:00", "16:00", "18:00"]}, "calendar": "office", "jitter": "30m"});
    let mut subject = Subject::new(fields);
    let noon = subject.timetable.slots(at("2026-01-05T11:00:00Z")).next().unwrap();
    subject.schedule.early.decide(noon.key()).unwrap();
    subject.schedule.cursor = Cursor::starting(at("2026-01-05T09:00:00Z"));
    let ahead = |subject: &Subject, from: &str, until: &str| -> Vec<String> {
        let slots = SlotsAhead::new(&subject.schedule, &subject.timetable, (at(from), at(until)));
        slots.map(|slot| slot.scheduled_at.to_string()).collect()
    };
    // Eight is closed and decided, noon is cancelled, six in the evening is closed.
    let day = ["2026-01-05T10:00:00Z", "2026-01-05T16:00:00Z"];
    assert_eq!(ahead(&subject, "2026-01-05T00:00:00Z", "2026-01-06T00:00:00Z"), day);
    // The first instant is part of it, the last is not.
    assert_eq!(ahead(&subject, "2026-01-05T10:00:00Z", "2026-01-05T16:00:00Z"), day[..1]);
    let slot = subject.timetable.slots(at("2026-01-05T15:00:00Z")).next().unwrap();
    let run = run_ahead(&subject.schedule, &subject.timetable, &slot);
    assert_eq!(
        (run.id, run.scheduled_at),
        (RunId::of(subject.schedule.id, slot.scheduled_at, &slot.key()), slot.scheduled_at)
    );
    assert!(run.is_untouched() && run.scheduled_at < run.due_at);
    assert_eq!(slot_ahead(&subject.schedule, &subject.timetable, run.id), Some(slot));
    let cancelled = RunId::of(subject.schedule.id, noon.scheduled_at, &noon.key());
    assert_eq!(slot_ahead(&subject.schedule, &subject.timetable, cancelled), None);
}

#[test]
fn ahead_are_as_many_as_may_ever_run_and_none_in_a_pause() {
    let fields =
        json!({"trigger": {"cron": [{"expression": "0 * * * *"}]}, "bounds": {"max_runs": 5}, "runs_started": 2});
    let mut subject = Subject::new(fields);
    let count = |subject: &Subject| {
        let all = (Timestamp::MIN, at("2027-01-01T00:00:00Z"));
        SlotsAhead::new(&subject.schedule, &subject.timetable, all).count()
    };
    assert_eq!(count(&subject), 3);
    let pause = json!({"paused": {"kind": "paused", "at": "2026-01-05T00:00:00Z", "source": "ada"}});
    subject.schedule.state = serde_json::from_value(pause).unwrap();
    assert_eq!(count(&subject), 0);
}

#[test]
fn a_search_ahead_is_bounded_by_what_it_looks_at() {
    // Closed for years: nothing is found, and somebody is told where the search ended.
    let bounds = json!({"start_at": "2026-01-06T17:00:00Z"});
    let mut fields = json!({"trigger": {"cron": [{"expression": "* * * * * WED"}]}, "calendar": "office"});
    fields["bounds"] = bounds;
    let subject = Subject::new(fields);
    let mut ahead = SlotsAhead::new(&subject.schedule, &subject.timetable, (Timestamp::MIN, Timestamp::MAX));
    assert_eq!(ahead.next(), None);
    assert!(ahead.cut_at().is_some());
    assert!(ahead.looked_at() <= punctual_core::time::LOOK_MAX as u64 + 1);
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
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// What lies ahead is what the timetable has, and each slot is found by the id of its run.
    #[test]
    fn slots_ahead_are_those_of_the_timetable(
        generated in generated(), minutes in 0_i64..3_000, hours in 1_i64..100,
    ) {
        let Generated { mut subject, start } = generated;
        let from = start + SignedDuration::from_mins(minutes);
        let until = from + SignedDuration::from_hours(hours);
        subject.schedule.cursor = Cursor::starting(from);
        let slots = subject.timetable.slots(from).take_while(|slot| slot.scheduled_at < until);
        let expected: Vec<Slot> = slots.filter(|slot| slot.skipped.is_none()).collect();
        let ahead: Vec<Slot> = SlotsAhead::new(&subject.schedule, &subject.timetable, (start, until)).collect();
        prop_assert_eq!(&ahead, &expected);
        for slot in ahead {
            let id = RunId::of(subject.schedule.id, slot.scheduled_at, &slot.key());
            prop_assert_eq!(slot_ahead(&subject.schedule, &subject.timetable, id), Some(slot));
        }
    }
}

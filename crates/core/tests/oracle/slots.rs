//! What holds for the ids and due times of the slots of any timetable.

use std::collections::{BTreeMap, HashMap};

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use punctual_core::schedule::{Bounds, DstPolicy, Trigger};
use punctual_core::time::{Elapsed, Every, Slot, Timetable, Zones};
use punctual_core::{RunId, ScheduleId, SlotId};

use super::clock::timestamp;
use super::generate::scene;
use super::properties::{Stage, config};

proptest! {
    #![proptest_config(config())]

    #[test]
    fn ids_sort_by_time_and_no_two_open_slots_share_one(scene in scene(), schedule in schedule_id()) {
        let stage = Stage::set(&scene)?;
        let slots = in_window(&stage.timetable, &stage);
        check_ids(schedule, &slots)?;
    }

    #[test]
    fn intervals_have_an_id_for_each_slot(every in every(), schedule in schedule_id()) {
        let slots: Vec<Slot> = timetable_of(every).slots(every.anchor()).take(100).collect();
        check_ids(schedule, &slots)?;
    }

    #[test]
    fn jitter_keeps_slots_in_their_order(scene in scene(), jitter in jitter(), schedule in schedule_id()) {
        let stage = Stage::set(&scene)?;
        let bounds = Bounds::new(None, Some(stage.until.max(stage.after)), None).unwrap();
        for bounds in [Bounds::default(), bounds] {
            let timetable = stage.timetable.clone().with_bounds(bounds).with_jitter(schedule, jitter);
            let slots = in_window(&timetable, &stage);
            check_due_times(&slots, jitter, bounds)?;
        }
    }

    #[test]
    fn jitter_keeps_intervals_in_their_order(every in every(), jitter in jitter(), schedule in schedule_id()) {
        let timetable = timetable_of(every).with_jitter(schedule, jitter);
        let slots: Vec<Slot> = timetable.slots(every.anchor()).take(100).collect();
        check_due_times(&slots, jitter, Bounds::default())?;
    }
}

/// The first slots of the scene's window.
fn in_window(timetable: &Timetable, stage: &Stage) -> Vec<Slot> {
    let until = timestamp(stage.window.until);
    timetable.slots(stage.after).take_while(|slot| slot.scheduled_at < until).take(300).collect()
}

/// The same slot has the same id, ids follow time, each says its slot, and slots that may run have one each.
fn check_ids(schedule: ScheduleId, slots: &[Slot]) -> Result<(), TestCaseError> {
    let mut open_ids = HashMap::new();
    let mut by_time: BTreeMap<Timestamp, Vec<(RunId, &Slot)>> = BTreeMap::new();
    for slot in slots {
        let id = RunId::of(schedule, slot.scheduled_at, &slot.key());
        prop_assert_eq!(id, RunId::of(schedule, slot.scheduled_at, &slot.clone().key()));
        let named = SlotId {
            scheduled_ms: slot.scheduled_at.as_millisecond() as u64,
            schedule_tail: schedule.tail(),
            key_hash: SlotId::hash_of(&slot.key()),
        };
        prop_assert_eq!(id.slot_id(), Some(named));
        if slot.skipped.is_none() {
            let other = open_ids.insert(id, slot.key());
            prop_assert!(other.is_none(), "{} and {other:?} share {id}", slot.key());
        }
        by_time.entry(slot.scheduled_at).or_default().push((id, slot));
    }
    let mut before: Option<RunId> = None;
    for (at, ids) in &by_time {
        let open = ids.iter().filter(|(_, slot)| slot.skipped.is_none()).count();
        prop_assert!(open <= 1, "{open} open slots at {at}");
        // Closed slots may share an id at one instant, never across instants.
        for (id, _) in ids {
            prop_assert!(before < Some(*id), "{before:?} is not before {id}");
        }
        before = ids.iter().map(|(id, _)| *id).max();
    }
    Ok(())
}

/// A slot is due at or after its time and before every slot that is scheduled later.
fn check_due_times(slots: &[Slot], jitter: Elapsed, bounds: Bounds) -> Result<(), TestCaseError> {
    for pair in slots.windows(2) {
        let [slot, next] = [&pair[0], &pair[1]];
        let is_before = slot.due_at < next.scheduled_at;
        // At one instant there is at most one that may run; the others are never due.
        let is_one_instant = slot.scheduled_at == next.scheduled_at;
        prop_assert!(is_before || is_one_instant, "{} is due at {}, {}", slot.key(), slot.due_at, next.scheduled_at);
    }
    let mut before: Option<Timestamp> = None;
    for slot in slots.iter().filter(|slot| slot.skipped.is_none()) {
        prop_assert!(before < Some(slot.due_at), "{} is due before the slot before it", slot.key());
        prop_assert!(
            (SignedDuration::ZERO..=jitter.duration()).contains(&slot.due_at.duration_since(slot.scheduled_at))
        );
        prop_assert!(bounds.end_at().is_none_or(|end_at| slot.due_at <= end_at.max(slot.scheduled_at)));
        before = Some(slot.due_at);
    }
    Ok(())
}

fn schedule_id() -> impl Strategy<Value = ScheduleId> {
    any::<u128>().prop_map(|number| ScheduleId(uuid::Uuid::from_u128(number)))
}

/// From milliseconds to far more than lies between two slots.
fn jitter() -> impl Strategy<Value = Elapsed> {
    prop_oneof![1..2_000_i64, 1..10_000_000_i64, Just(400 * 86_400_000_i64)]
        .prop_map(|milliseconds| Elapsed::from_milliseconds(milliseconds).unwrap())
}

/// Intervals that are no whole seconds, from anchors that are none.
fn every() -> impl Strategy<Value = Every> {
    (prop_oneof![1_000..1_010_i64, 1_000..100_000_000_i64], 0..4_000_000_000_000_i64).prop_map(|(interval, anchor)| {
        let interval = Elapsed::from_milliseconds(interval).unwrap();
        Every::from_anchor(interval, Timestamp::from_millisecond(anchor).unwrap()).unwrap()
    })
}

fn timetable_of(every: Every) -> Timetable {
    Timetable::new(&Trigger::Every(every), "UTC", DstPolicy::default(), &Zones::bundled()).unwrap()
}

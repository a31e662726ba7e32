//! What must hold for the slots of any trigger.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use punctual_core::schedule::{Bounds, Trigger};
use punctual_core::time::{Elapsed, Slot, Timetable};
use punctual_core::{ScheduleId, storable};
use uuid::Uuid;

use super::check_one_line;
use super::settings::{Settings, zones};

/// So many slots are looked at in each direction.
const TAKEN: usize = 50;

/// Compiles a trigger and looks at its slots around the instant of the settings.
pub(crate) fn check(trigger: &Trigger, settings: &Settings) {
    let Some(timetable) = compile(trigger, settings) else { return };
    check_timetable(&timetable, settings);
    check_bounds(&timetable, settings);
    check_jitter(&timetable, settings);
}

/// The order in which crons are listed decides which of two equal slots is kept, never when something runs.
pub(crate) fn check_same_instants(one: &Trigger, other: &Trigger, settings: &Settings) {
    let runs = |trigger: &Trigger| -> Option<Vec<Timestamp>> {
        let timetable = compile(trigger, settings)?;
        let slots = timetable.slots(settings.at).take(TAKEN);
        Some(slots.filter(|slot| slot.skipped.is_none()).map(|slot| slot.scheduled_at).collect())
    };
    // How many of the slots taken run may differ at the cut, so only what both have is compared.
    if let (Some(one), Some(other)) = (runs(one), runs(other)) {
        assert!(one.iter().zip(&other).all(|(one, other)| one == other), "{one:?}\n{other:?}");
    }
}

/// Slots are in order, each has a key of its own, and going back finds what going forward has found.
pub(crate) fn check_timetable(timetable: &Timetable, settings: &Settings) {
    let at = settings.at;
    let ahead: Vec<Slot> = timetable.slots(at).take(TAKEN).collect();
    assert!(ahead.iter().all(|slot| at < slot.scheduled_at), "a slot at or before its start");
    check_order(&ahead);
    let behind: Vec<Slot> = timetable.before(at).take(TAKEN).collect();
    assert!(behind.iter().all(|slot| slot.scheduled_at < at), "a slot at or after its end");
    check_order(&behind.iter().rev().cloned().collect::<Vec<_>>());

    if let Some(last) = ahead.last() {
        // Several slots may end one gap, and the cut may lie between them: the last instant is left out.
        let mut expected = ahead.clone();
        expected.retain(|slot| slot.scheduled_at < last.scheduled_at);
        let mut found: Vec<Slot> = timetable.before(last.scheduled_at).take(expected.len()).collect();
        found.reverse();
        assert_eq!(found, expected, "back from {}", last.scheduled_at);
    }
    if let Some(first) = behind.last() {
        let mut expected = behind.clone();
        expected.retain(|slot| first.scheduled_at < slot.scheduled_at);
        expected.reverse();
        let found: Vec<Slot> = timetable.slots(first.scheduled_at).take(expected.len()).collect();
        assert_eq!(found, expected, "on from {}", first.scheduled_at);
    }
}

/// Earliest first. Only slots that a gap has moved to its end share an instant, and at most one of those runs.
fn check_order(slots: &[Slot]) {
    for pair in slots.windows(2) {
        let (one, next) = (&pair[0], &pair[1]);
        assert!(one.scheduled_at <= next.scheduled_at, "{one:?}\n{next:?}");
        assert!(one.scheduled_at < next.scheduled_at || one.is_in_gap, "{one:?}\n{next:?}");
    }
    let runs: Vec<&Slot> = slots.iter().filter(|slot| slot.skipped.is_none()).collect();
    for pair in runs.windows(2) {
        assert!(pair[0].scheduled_at < pair[1].scheduled_at, "{:?}\n{:?}", pair[0], pair[1]);
    }
    let keys: BTreeSet<_> = slots.iter().map(Slot::key).collect();
    assert_eq!(keys.len(), slots.len(), "two slots have one key: {slots:?}");
    for slot in slots {
        assert_eq!(slot.due_at, slot.scheduled_at);
        if !slot.is_in_gap {
            let local = slot.offset.to_datetime(slot.scheduled_at);
            let fraction = SignedDuration::from_nanos(local.subsec_nanosecond().into());
            assert_eq!(local - fraction, slot.nominal(), "the clock shows the nominal time");
        }
    }
}

/// Bounds hide slots and change none.
fn check_bounds(timetable: &Timetable, settings: &Settings) {
    let at = storable::instant(settings.at);
    let until = storable::instant(at.checked_add(SignedDuration::from_hours(24 * 40)).unwrap_or(Timestamp::MAX));
    let bounds = Bounds::new(Some(at), Some(until), None).unwrap();
    let bounded = timetable.clone().with_bounds(bounds);
    let found: Vec<Slot> = bounded.slots(Timestamp::MIN).take(TAKEN).collect();
    let just_before = at.checked_sub(SignedDuration::from_nanos(1)).unwrap_or(at);
    let expected = timetable.slots(just_before).take_while(|slot| slot.scheduled_at <= until);
    let expected: Vec<Slot> = expected.take(TAKEN).collect();
    assert_eq!(found, expected, "between {at} and {until}");
    assert!(
        bounded
            .before(Timestamp::MAX)
            .take(TAKEN)
            .all(|slot| { at <= slot.scheduled_at && slot.scheduled_at <= until })
    );
}

/// Jitter delays, by no more than it may and never beyond the next slot.
fn check_jitter(timetable: &Timetable, settings: &Settings) {
    let max = Elapsed::from_seconds(5_400);
    let jittered = timetable.clone().with_jitter(ScheduleId(Uuid::from_u128(7)), max);
    let slots: Vec<Slot> = jittered.slots(settings.at).take(5).collect();
    for (position, slot) in slots.iter().enumerate() {
        let delay = slot.due_at.duration_since(slot.scheduled_at);
        assert!(!delay.is_negative() && delay <= max.duration(), "{slot:?}");
        let mut later = slots[position..].iter();
        let next = later.find(|next| slot.scheduled_at < next.scheduled_at);
        assert!(next.is_none_or(|next| slot.due_at < next.scheduled_at), "{slot:?}\n{next:?}");
    }
}

fn compile(trigger: &Trigger, settings: &Settings) -> Option<Timetable> {
    match Timetable::new(trigger, settings.zone.name(), settings.dst, zones()) {
        Ok(timetable) => Some(timetable),
        Err(error) => {
            check_one_line(&error.to_string());
            None
        }
    }
}

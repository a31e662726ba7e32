//! The view of a plan: the slots of a schedule between two instants, computed when someone looks.
//!
//! Nothing here is stored, and nothing here decides. What became of slots that the cursor has passed is known to live runs and
//! to the history; the caller puts it over these.

use jiff::Timestamp;
use jiff::civil::Date;

use super::EarlyDecisions;
use crate::run::SkipReason;
use crate::time::{Elapsed, Slot, SlotKey, Slots, Timetable, just_before};
use crate::{RunId, ScheduleId, SlotId};

/// A slot as someone sees it who looks at the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewedSlot {
    /// The id of its run, whether that exists yet or not.
    pub id: RunId,
    /// Its key.
    pub key: SlotKey,
    /// When it is scheduled.
    pub scheduled_at: Timestamp,
    /// When its run is due.
    pub due_at: Timestamp,
    /// What will become of it as things are.
    pub status: SlotStatus,
}

/// What will become of a slot as things are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SlotStatus {
    /// It will have a run.
    Open,
    /// The calendar is closed then, or the clock leaves it out.
    Closed(SkipReason),
    /// A person has cancelled it before its time.
    DecidedEarly,
}

/// Views the slots of a schedule in `[from, until)`, about `looked_max` at most.
pub fn view_slots<'t>(
    schedule: ScheduleId,
    timetable: &'t Timetable,
    early: &'t EarlyDecisions,
    (from, until): (Timestamp, Timestamp),
    looked_max: usize,
) -> SlotView<'t> {
    SlotView { schedule, early, slots: SlotsBetween::new(timetable, from, until, looked_max) }
}

/// The viewed slots, in order, computed one after another.
#[derive(Debug)]
pub struct SlotView<'t> {
    schedule: ScheduleId,
    early: &'t EarlyDecisions,
    slots: SlotsBetween<'t>,
}

impl SlotView<'_> {
    /// Where to go on when there are more slots than the view may show. `None` while it goes on, and when it is complete.
    pub fn cut_at(&self) -> Option<Timestamp> {
        self.slots.cut_at
    }
}

impl Iterator for SlotView<'_> {
    type Item = ViewedSlot;

    fn next(&mut self) -> Option<ViewedSlot> {
        let slot = self.slots.next()?;
        let key = slot.key();
        let status = match slot.skipped {
            _ if self.early.has(&key) => SlotStatus::DecidedEarly,
            Some(reason) => SlotStatus::Closed(reason),
            None => SlotStatus::Open,
        };
        let id = RunId::of(self.schedule, slot.scheduled_at, &key);
        Some(ViewedSlot { id, key, scheduled_at: slot.scheduled_at, due_at: slot.due_at, status })
    }
}

/// The slot that an id of this schedule names, if it is one of the timetable's; an open one rather than a closed one that shares its id.
///
/// An update of the zone data or an edit may move a slot or remove it. Its old id then names none.
pub fn slot_with_id(schedule: ScheduleId, timetable: &Timetable, id: RunId) -> Option<Slot> {
    let named = id.slot_id().filter(|named| named.schedule_tail == schedule.tail())?;
    let from = Timestamp::from_millisecond(i64::try_from(named.scheduled_ms).ok()?).ok()?;
    let is_then = |slot: &Slot| SlotId::milliseconds_of(slot.scheduled_at) == named.scheduled_ms;
    let of_instant = timetable.slots(just_before(from)).take_while(is_then);
    let mut closed = None;
    for slot in of_instant.filter(|slot| SlotId::hash_of(&slot.key()) == named.key_hash) {
        if slot.skipped.is_none() {
            return Some(slot);
        }
        closed = closed.or(Some(slot));
    }
    closed
}

/// How many slots there are in a stretch of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SlotCount {
    /// How many may run. Early decisions are among them: they are a schedule's own.
    pub open: u64,
    /// How many are closed by a calendar or a clock change.
    pub closed: u64,
    /// Where to go on counting when there are more slots than one call looks at.
    pub cut_at: Option<Timestamp>,
}

/// Counts the slots in `[from, until)`, about `looked_max` at most.
///
/// The count follows from trigger, zone, clock policy, calendar, bounds and zone data. Schedules that share these share it, and
/// it can be kept: a schedule's id, jitter, cursor and early decisions make no difference.
pub fn count_slots(timetable: &Timetable, (from, until): (Timestamp, Timestamp), looked_max: usize) -> SlotCount {
    // Jitter costs a search for each slot, and moves none.
    let timetable = timetable.clone().with_jitter(ScheduleId(uuid::Uuid::nil()), Elapsed::ZERO);
    let mut slots = SlotsBetween::new(&timetable, from, until, looked_max);
    let mut count = SlotCount::default();
    for slot in &mut slots {
        match slot.skipped {
            None => count.open += 1,
            Some(_) => count.closed += 1,
        }
    }
    SlotCount { cut_at: slots.cut_at, ..count }
}

/// Counts the slots of a local day of the schedule's zone. A day has as many as there are seconds at most, and those of a gap.
///
/// Where [`Timetable::is_whole_day`] says so, the bounds make no difference either.
pub fn count_day(timetable: &Timetable, date: Date) -> SlotCount {
    let zone = timetable.zone();
    count_slots(timetable, (zone.day_start(date), zone.day_end(date)), usize::MAX)
}

/// The slots in `[from, until)`, cut between instants: whoever goes on from there meets no slot twice and misses none.
#[derive(Debug)]
struct SlotsBetween<'t> {
    slots: Slots<'t>,
    until: Timestamp,
    left: usize,
    last_at: Option<Timestamp>,
    cut_at: Option<Timestamp>,
}

impl<'t> SlotsBetween<'t> {
    fn new(timetable: &'t Timetable, from: Timestamp, until: Timestamp, looked_max: usize) -> SlotsBetween<'t> {
        let slots = timetable.slots(just_before(from)).looking_at(usize::MAX);
        SlotsBetween { slots, until, left: looked_max.max(1), last_at: None, cut_at: None }
    }
}

impl Iterator for SlotsBetween<'_> {
    type Item = Slot;

    fn next(&mut self) -> Option<Slot> {
        if self.cut_at.is_some() {
            return None;
        }
        let slot = self.slots.next().filter(|slot| slot.scheduled_at < self.until)?;
        // A gap has many slots at its end: they stay together.
        if self.left == 0 && self.last_at != Some(slot.scheduled_at) {
            self.cut_at = Some(slot.scheduled_at);
            return None;
        }
        self.left = self.left.saturating_sub(1);
        self.last_at = Some(slot.scheduled_at);
        Some(slot)
    }
}

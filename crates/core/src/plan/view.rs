//! The view of a plan: the slots that lie ahead of a schedule, computed when someone looks.
//!
//! Nothing here is stored, and nothing here decides. What became of slots that the cursor has passed is known to live runs and
//! to the history; the caller puts it over these.

use std::sync::Arc;

use jiff::Timestamp;

use crate::journal::PlannedRun;
use crate::run::{Run, Terms};
use crate::schedule::Schedule;
use crate::time::{LOOK_MAX, Slot, Slots, Timetable, just_before};
use crate::{RunId, ScheduleId, SlotId};

/// The slots of a schedule in a stretch of time that are not decided and will have a run as things are, by time.
#[derive(Debug)]
pub struct SlotsAhead<'a> {
    schedule: &'a Schedule,
    slots: Slots<'a>,
    from: Timestamp,
    until: Timestamp,
    /// How many runs it may still have.
    left: usize,
    looked_at: u64,
}

impl<'a> SlotsAhead<'a> {
    /// The slots in `[from, until)`. A paused or ended schedule has none.
    pub fn new(
        schedule: &'a Schedule,
        timetable: &'a Timetable,
        (from, until): (Timestamp, Timestamp),
    ) -> SlotsAhead<'a> {
        // Slots before the cursor are decided, but for what zone data has moved.
        let after = just_before(from).max(just_before(schedule.cursor.starts_behind(timetable)));
        let left = schedule.bounds.max_runs().map(|most| most.saturating_sub(schedule.runs_started) as usize);
        let left = if schedule.is_active() { left.unwrap_or(usize::MAX) } else { 0 };
        SlotsAhead { schedule, slots: timetable.slots(after).looking_at(LOOK_MAX), from, until, left, looked_at: 0 }
    }

    /// How many slots were looked at so far, closed ones included.
    pub fn looked_at(&self) -> u64 {
        self.looked_at
    }

    /// Where the search ended, if it ended before the stretch.
    pub fn cut_at(&self) -> Option<Timestamp> {
        self.slots.cut_at().filter(|at| *at < self.until)
    }
}

impl Iterator for SlotsAhead<'_> {
    type Item = Slot;

    fn next(&mut self) -> Option<Slot> {
        if self.left == 0 {
            return None;
        }
        loop {
            self.looked_at += 1;
            let slot = self.slots.next().filter(|slot| slot.scheduled_at < self.until)?;
            if self.from <= slot.scheduled_at && is_ahead(self.schedule, &slot) {
                self.left -= 1;
                return Some(slot);
            }
        }
    }
}

/// Whether a slot will have a run as things are.
fn is_ahead(schedule: &Schedule, slot: &Slot) -> bool {
    let is_open = schedule.is_active() && slot.skipped.is_none() && schedule.cursor.is_new(slot);
    is_open && (schedule.early.is_empty() || !schedule.early.has(&slot.key()))
}

/// The run that a slot will have, as things are.
pub fn run_ahead(schedule: &Schedule, timetable: &Timetable, slot: &Slot) -> Run {
    let planned = PlannedRun::new(schedule, timetable.zone(), slot);
    Run::of_slot(schedule, &Arc::new(Terms::of(schedule)), &planned, 0)
}

/// The slot that the id of a run names, if it lies ahead and is not decided.
pub fn slot_ahead(schedule: &Schedule, timetable: &Timetable, id: RunId) -> Option<Slot> {
    slot_with_id(schedule.id, timetable, id).filter(|slot| is_ahead(schedule, slot))
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

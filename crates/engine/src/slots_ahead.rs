//! Slots ahead: what a schedule's slots look like as runs before they have a record. Pure.
//!
//! In: a schedule, its timetable and a stretch of time. Out: runs that are stored nowhere, each under the id that it will have.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use punctual_core::RunId;
use punctual_core::journal::PlannedRun;
use punctual_core::plan::slot_with_id;
use punctual_core::run::{Run, Terms};
use punctual_core::schedule::Schedule;
use punctual_core::time::{LOOK_MAX, Slot, Slots, Timetable};

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

/// The slot that the id of a run names, if it is one that is not decided.
pub fn undecided_slot(schedule: &Schedule, timetable: &Timetable, id: RunId) -> Option<Slot> {
    slot_with_id(schedule.id, timetable, id).filter(|slot| is_ahead(schedule, slot))
}

/// The run that a slot will have, as things are.
pub fn run_of(schedule: &Schedule, timetable: &Timetable, slot: &Slot) -> Run {
    let planned = PlannedRun::new(schedule, timetable.zone(), slot);
    Run::of_slot(schedule, &Arc::new(Terms::of(schedule)), &planned, 0)
}

fn is_ahead(schedule: &Schedule, slot: &Slot) -> bool {
    let is_open = schedule.is_active() && slot.skipped.is_none();
    is_open && schedule.cursor.is_new(slot) && !schedule.early.has(&slot.key())
}

fn just_before(at: Timestamp) -> Timestamp {
    at.checked_sub(SignedDuration::from_nanos(1)).unwrap_or(Timestamp::MIN)
}

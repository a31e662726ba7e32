//! The next slot: the first open slot after a schedule's cursor, which is what its timer waits for.

use jiff::Timestamp;

use super::answering::{Decision, End, answer_at_most};
use super::answers::{Answer, Plan, SkipRange};
use super::{Planning, UNSTARTED_MAX, WORK_MAX};
use crate::schedule::Cursor;
use crate::time::Slot;

/// What follows after a schedule's cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upcoming {
    /// The first open slot, or why there is none.
    pub next: NextSlot,
    /// The closed slots before it, to be recorded when the next slot is decided. They lie ahead: until their time comes, an edit or
    /// another calendar may open them.
    pub closed: Vec<SkipRange>,
    /// The frontier once `closed` is recorded; where to go on when the search was cut.
    pub cursor: Cursor,
}

/// The next slot of a schedule, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextSlot {
    /// The first slot that neither a calendar nor a clock change closes and that is not decided early.
    Open(Slot),
    /// The same, but the schedule has as many unstarted runs as it may have: one of them has to start first.
    Full(Slot),
    /// The same, but as many runs have started or are live as the schedule may ever have. If one of them ends without having
    /// started, the slot is open again.
    Exhausted(Slot),
    /// As many slots were looked at as one call may: ask again, from the cursor.
    Cut,
    /// The schedule is paused or ended: its slots are decided when it is resumed.
    Inactive,
    /// Time brings no open slot again.
    Never,
}

impl NextSlot {
    /// The slot, if it may become a run as things are.
    pub fn open(&self) -> Option<&Slot> {
        match self {
            NextSlot::Open(slot) => Some(slot),
            _ => None,
        }
    }

    /// A slot that is neither closed nor decided, for a schedule that may or may not have another run.
    pub(crate) fn of(planning: &Planning<'_>, slot: Slot) -> NextSlot {
        if planning.schedule.runs_left(planning.waiting) == 0 {
            return NextSlot::Exhausted(slot);
        }
        if UNSTARTED_MAX <= planning.waiting {
            return NextSlot::Full(slot);
        }
        NextSlot::Open(slot)
    }
}

/// Finds the first open slot after the cursor, looking at [`WORK_MAX`] undecided slots at most.
///
/// `planning.answered` are the schedule's early decisions, `planning.waiting` its live runs that have not started.
pub fn next_slot(planning: &Planning<'_>, cursor: &Cursor) -> Upcoming {
    next_within(WORK_MAX, planning, cursor)
}

/// The same with a bound of one's own.
pub(crate) fn next_within(work_max: usize, planning: &Planning<'_>, cursor: &Cursor) -> Upcoming {
    let Planning { schedule, timetable, .. } = *planning;
    if !schedule.is_active() {
        return Upcoming { next: NextSlot::Inactive, closed: vec![], cursor: cursor.clone() };
    }
    let mut plan = Plan::nothing(cursor);
    let end = answer_at_most(work_max, &mut plan, timetable, cursor.at, Timestamp::MAX, |slot| match slot.skipped {
        _ if !planning.is_undecided(cursor, slot) => Decision::Answered,
        Some(reason) => Decision::Skip(reason),
        None => Decision::Stop,
    });
    let closed: Vec<SkipRange> = plan.answers.into_iter().filter_map(Answer::into_skip).collect();
    let mut frontier = plan.cursor;
    let next = match end {
        End::Stopped(slot) | End::Behind(slot) => {
            frontier.set_clocks_before(timetable, slot.scheduled_at);
            NextSlot::of(planning, slot)
        }
        End::Work { next_at } => {
            frontier.set_clocks_before(timetable, next_at.unwrap_or(Timestamp::MAX));
            NextSlot::Cut
        }
        End::Over => {
            // Not to the end of all time: an edit goes on from the cursor.
            frontier = cursor.clone();
            if let Some(last) = closed.last() {
                frontier.pass_until(timetable, last.last.scheduled_at);
            }
            NextSlot::Never
        }
    };
    Upcoming { next, closed, cursor: frontier }
}

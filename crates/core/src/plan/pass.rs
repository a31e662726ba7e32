//! Passing: every slot scheduled up to now is decided, and the cursor moves past them.
//!
//! This is what the commit does that meets a due slot, and what an edit, a pause or a deletion does first, so that the slots of the
//! old version are decided under it. Invariant: over any sequence of calls, with any bounds and across updates of the zone data,
//! each slot is decided exactly once.

use jiff::Timestamp;

use super::answering::{Decision, End, answer};
use super::answers::{Answer, Plan, SkipRange};
use super::next::{NextSlot, Upcoming, next_within};
use super::{Planning, UNSTARTED_MAX, WORK_MAX};
use crate::schedule::Cursor;
use crate::time::{Slot, Zone};

/// What passing decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pass {
    /// The decisions in order of their slots: a run each, or a range of skips.
    pub decisions: Vec<Answer>,
    /// The frontier after them. The clocks of all zones of the trigger are set to it.
    pub cursor: Cursor,
    /// Whether there are more slots up to now than one call looks at: call again at once.
    pub is_cut: bool,
    /// What follows. Full or exhausted at a slot that is scheduled up to now: the cursor has stopped before it.
    pub upcoming: Upcoming,
}

impl Pass {
    /// The slots that get a run.
    pub fn runs(&self) -> impl Iterator<Item = &Slot> {
        self.decisions.iter().filter_map(Answer::run)
    }

    /// The slots that get none.
    pub fn skips(&self) -> impl Iterator<Item = &SkipRange> {
        self.decisions.iter().filter_map(Answer::skip)
    }

    /// How many slots were looked at, closed ones included.
    pub fn looked_at(&self) -> usize {
        let closed: u64 = self.upcoming.closed.iter().map(|range| range.count).sum();
        looked_at(&self.decisions) + closed as usize + 1
    }

    /// Whether time will never bring another slot.
    pub fn is_over(&self) -> bool {
        self.upcoming.next == NextSlot::Never && self.upcoming.closed.is_empty()
    }

    /// When there are slots to be decided again; `None` when only a change can bring one, or a run that starts or ends.
    ///
    /// That is when the next open slot is scheduled. Closed slots before it are recorded with it, and at the latest when their day
    /// ends. Where the next open slot has to wait for a run, they wait too: no time may hide that the run wakes the schedule.
    pub fn wake_at(&self, zone: &Zone, now: Timestamp) -> Option<Timestamp> {
        let closed = &self.upcoming.closed;
        let day_ends_at = closed.first().map(|range| zone.day_end(zone.day_of(range.first.scheduled_at)));
        if matches!(self.upcoming.next, NextSlot::Full(_) | NextSlot::Exhausted(_)) {
            return None;
        }
        let next_at = match &self.upcoming.next {
            NextSlot::Open(slot) => Some(slot.scheduled_at),
            NextSlot::Cut if self.is_cut => Some(now),
            NextSlot::Cut => Some(closed.last().map_or(now, |range| range.last.scheduled_at)),
            NextSlot::Full(_) | NextSlot::Exhausted(_) | NextSlot::Inactive | NextSlot::Never => None,
        };
        [next_at, day_ends_at].into_iter().flatten().min()
    }
}

/// Decides every slot scheduled after the cursor and up to `now`, looking at [`WORK_MAX`] undecided slots at most.
///
/// `planning.answered` are the schedule's early decisions, `planning.waiting` its live runs that have not started. A paused or
/// ended schedule gets no decisions. With jitter a run may be due later than `now`.
pub fn pass(planning: &Planning<'_>, cursor: &Cursor, now: Timestamp) -> Pass {
    let Planning { schedule, timetable, waiting, .. } = *planning;
    if !schedule.is_active() {
        return Pass {
            decisions: vec![],
            cursor: cursor.clone(),
            is_cut: false,
            upcoming: next_within(WORK_MAX, planning, cursor),
        };
    }
    let mut plan = Plan::nothing(cursor);
    let mut places = Places { runs_left: schedule.runs_left(waiting), room: UNSTARTED_MAX.saturating_sub(waiting) };
    let end = answer(&mut plan, timetable, cursor.at, now, |slot| {
        if planning.is_undecided(cursor, slot) { places.decide(slot) } else { Decision::Answered }
    });
    let Plan { answers: decisions, cursor: mut frontier, .. } = plan;
    let runs = decisions.iter().filter(|decision| matches!(decision, Answer::Run(_))).count();
    let after = Planning { waiting: waiting + runs, ..*planning };
    let at_frontier = |next: NextSlot, cursor: &Cursor| Upcoming { next, closed: vec![], cursor: cursor.clone() };
    let mut is_cut = false;
    let upcoming = match end {
        End::Over => at_frontier(NextSlot::Never, &frontier),
        // Nearly always the slot that was looked at last is the next one.
        End::Behind(slot) if slot.skipped.is_none() && after.is_undecided(&frontier, &slot) => {
            at_frontier(NextSlot::of(&after, slot), &frontier)
        }
        End::Behind(_) => next_within(WORK_MAX - looked_at(&decisions), &after, &frontier),
        End::Stopped(slot) => {
            frontier.set_clocks_before(timetable, slot.scheduled_at);
            at_frontier(NextSlot::of(&after, slot), &frontier)
        }
        End::Work { next_at } => {
            is_cut = true;
            frontier.set_clocks_before(timetable, next_at.unwrap_or(Timestamp::MAX));
            at_frontier(NextSlot::Cut, &frontier)
        }
    };
    Pass { decisions, cursor: frontier, is_cut, upcoming }
}

/// How many runs may still be decided.
struct Places {
    /// Of all that the schedule may ever have.
    runs_left: usize,
    /// Of those that wait to start.
    room: usize,
}

impl Places {
    /// A run while there is a place for it.
    fn decide(&mut self, slot: &Slot) -> Decision {
        if let Some(reason) = slot.skipped {
            return Decision::Skip(reason);
        }
        if self.runs_left == 0 || self.room == 0 {
            return Decision::Stop;
        }
        (self.runs_left, self.room) = (self.runs_left - 1, self.room - 1);
        Decision::Run
    }
}

/// How many slots the decisions are about.
fn looked_at(decisions: &[Answer]) -> usize {
    let slots = |decision: &Answer| match decision {
        Answer::Run(_) => 1,
        Answer::Skip(range) => range.count as usize,
    };
    decisions.iter().map(slots).sum()
}

//! Plan: what is due, and what of it may start?
//!
//! Every function here is pure: values in, a decision out, `now` a parameter, a bound on the work. The caller carries
//! the decision out in one transaction.

mod admission;
mod answering;
mod answers;
mod catch_up;
mod catch_up_slots;
mod day;
mod due;
mod early;
mod lane;
mod next;
mod pass;
mod pause;
mod replan;
mod view;

pub use admission::{Admission, AgentApproval, Candidate, Facts, ParkReason, admit};
pub use answers::{Answer, Plan, SkipRange};
pub use catch_up::{Kept, Outage, Recovery, WaitingRun, catch_up};
pub use catch_up_slots::{CatchUpPass, catch_up_slots};
pub use day::{DAY_ENDED_AFTER, LOOK_AHEAD, day_ended_at, expires_at, horizon};
pub use due::{PLAN_AHEAD_MAX, plan};
pub use early::{EARLY_DECISIONS_MAX, EarlyDecisions, TooManyEarlyDecisions};
pub use lane::{Held, Lane, Limits, PRIORITY_WORTH};
pub use next::{NextSlot, Upcoming, next_slot};
pub use pass::{Pass, pass};
pub use pause::skip_until;
pub use replan::{Diff, Standing, StandingState, ZoneData, replan};
pub use view::{SlotCount, SlotStatus, SlotView, ViewedSlot, count_day, count_slots, slot_with_id, view_slots};

use std::collections::BTreeSet;

use crate::schedule::{Cursor, Schedule};
use crate::time::{Slot, SlotKey, Timetable};

/// The most slots that one call looks at; what is left is for the next call, at once.
pub const WORK_MAX: usize = 10_000;

/// A schedule as planning sees it.
#[derive(Debug, Clone, Copy)]
pub struct Planning<'a> {
    /// The schedule.
    pub schedule: &'a Schedule,
    /// Its trigger, compiled.
    pub timetable: &'a Timetable,
    /// How many of its runs are planned but not started.
    pub waiting: usize,
    /// Slots behind its cursor that have their run already: somebody called one off ahead of its time, or the clock was set
    /// back. Nearly always none.
    pub answered: &'a BTreeSet<SlotKey>,
}

impl Planning<'_> {
    /// No slot behind the cursor has its run already.
    pub const NONE_ANSWERED: &'static BTreeSet<SlotKey> = &BTreeSet::new();

    /// Whether a slot has its run already.
    fn has_answer(&self, slot: &Slot) -> bool {
        !self.answered.is_empty() && self.answered.contains(&slot.key())
    }

    /// Whether a slot lies after the cursor and has no decision yet.
    fn is_undecided(&self, cursor: &Cursor, slot: &Slot) -> bool {
        cursor.is_new(slot) && !self.has_answer(slot)
    }
}

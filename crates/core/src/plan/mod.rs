//! Plan: what is due, and what of it may start?
//!
//! Every function here is pure: values in, a decision out, `now` a parameter, a bound on the work. The caller carries
//! the decision out in one transaction.

mod admission;
mod answering;
mod answers;
mod catch_up;
mod day;
mod early;
mod lane;
mod next;
mod pass;
mod pause;
mod replan;
mod view;

pub use admission::{Admission, AgentApproval, Candidate, Facts, ParkReason, admit};
pub use answers::{Answer, SkipRange};
pub use catch_up::{CatchUpPass, Kept, Outage, catch_up};
pub use day::{DAY_ENDED_AFTER, day_ended_at, expires_at};
pub use early::{EARLY_DECISIONS_MAX, EarlyDecisions, TooManyEarlyDecisions};
pub use lane::{Held, Lane, Limits, PRIORITY_WORTH};
pub use next::{NextSlot, Upcoming, next_slot};
pub use pass::{Pass, pass};
pub use pause::{SkipPass, skip_until};
pub use replan::{Diff, Standing, StandingState, replan};
pub use view::{SlotsAhead, run_ahead, slot_ahead, slot_with_id};

use std::collections::BTreeSet;

use crate::schedule::{Cursor, Schedule};
use crate::time::{Slot, SlotKey, Timetable};

/// The most runs of one schedule that wait to start. While there are as many, its cursor stands still.
pub const UNSTARTED_MAX: usize = 1_000;

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
    /// Slots after its cursor that are decided already: its early decisions. Nearly always none.
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

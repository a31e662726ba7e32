//! Plan: what is due, and what of it may start?
//!
//! Every function here is pure: values in, a decision out, `now` a parameter, a bound on the work. The caller carries
//! the decision out in one transaction.

mod admission;
mod answering;
mod answers;
mod catch_up;
mod day;
mod due;
mod lane;
mod pause;
mod replan;

pub use admission::{Admission, Approval, Candidate, Facts, ParkReason, admit};
pub use answers::{Answer, Plan, SkipRange};
pub use catch_up::{Kept, Outage, Recovery, WaitingRun, catch_up};
pub use day::{DAY_ENDED_AFTER, LOOK_AHEAD, day_ended_at, expires_at, horizon};
pub use due::{PLAN_AHEAD_MAX, plan};
pub use lane::{Held, Lane, Limits, PRIORITY_WORTH};
pub use pause::skip_until;
pub use replan::{Diff, Standing, StandingState, replan};

use crate::schedule::Schedule;
use crate::time::Timetable;

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
}

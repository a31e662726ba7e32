//! Catch-up where nothing was planned ahead: the missed slots are computed, and each is decided once.

use jiff::Timestamp;

use super::Planning;
use super::answering::End;
use super::answers::{Answer, Plan};
use super::catch_up::{Outage, answer_missed, choose};
use crate::schedule::{CatchUpMode, Cursor};

/// What catch-up decided about the slots of an outage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatchUpPass {
    /// The decisions in order of their slots: a run for each that is kept, ranges of skips for the rest.
    pub decisions: Vec<Answer>,
    /// The frontier after them. The clocks of all zones of the trigger are set to it.
    pub cursor: Cursor,
    /// Whether each run may start only when the one before it has started. Who writes them says so, and paces their due times.
    pub is_in_order: bool,
    /// What is left of the outage when one call was not enough, with the decision that was taken. Catching up goes on with it.
    pub rest: Option<Outage>,
}

/// Applies the catch-up policy to the slots after the cursor that an outage missed, [`WORK_MAX`] of them at most.
///
/// The policy is asked once per outage: later calls get the decision with [`CatchUpPass::rest`], whatever the policy says by then.
/// Slots later than `now` were not missed, should the outage claim to end there because a clock was set back. A paused schedule
/// catches nothing up: the end of its pause decides its slots. `planning.answered` are the schedule's early decisions,
/// `planning.waiting` its live runs that have not started; those were recorded before the outage and are not its own.
///
/// [`WORK_MAX`]: super::WORK_MAX
pub fn catch_up_slots(planning: &Planning<'_>, cursor: &Cursor, outage: &Outage, now: Timestamp) -> CatchUpPass {
    let Planning { schedule, timetable, .. } = *planning;
    let is_in_order = schedule.policy.catch_up.mode == CatchUpMode::All;
    if !schedule.is_active() {
        return CatchUpPass { decisions: vec![], cursor: cursor.clone(), is_in_order, rest: None };
    }
    let outage = Outage { until: outage.until.min(now), ..*outage };
    let kept = outage.kept.unwrap_or_else(|| choose(planning, cursor, &outage, &[]));
    let mut plan = Plan::nothing(cursor);
    let end = answer_missed(&mut plan, planning, cursor, &outage, &kept);
    let Plan { answers: decisions, cursor: mut frontier, .. } = plan;
    let mut rest = None;
    if let End::Work { next_at } = end {
        frontier.set_clocks_before(timetable, next_at.unwrap_or(Timestamp::MAX));
        rest = Some(Outage { kept: Some(kept), ..outage });
    }
    CatchUpPass { decisions, cursor: frontier, is_in_order, rest }
}

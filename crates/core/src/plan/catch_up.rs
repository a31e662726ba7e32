//! Catch-up: what becomes of the slots that an outage missed.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::Planning;
use super::answering::{Decision, End, answer};
use super::answers::{Answer, Plan};
use crate::run::SkipReason;
use crate::schedule::{CatchUp, CatchUpMode, Cursor};
use crate::time::{Slot, just_before};

/// How many slots are looked at to find those that are kept: a calendar may have been closed for long.
const SCAN_MAX: usize = 200_000;

/// A stretch of time in which nobody planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outage {
    /// When planning stopped.
    pub from: Timestamp,
    /// When it was taken up again.
    pub until: Timestamp,
    /// What the policy keeps, once it has been applied. It is applied once per outage, however many calls that takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<Kept>,
}

impl Outage {
    /// This outage and a later one as one: what is not yet made up for is decided anew, once for both.
    #[must_use]
    pub fn and(self, later: Outage) -> Outage {
        Outage { from: self.from.min(later.from), until: self.until.max(later.until), kept: None }
    }
}

/// Which of the missed slots run: those scheduled between two instants, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kept {
    /// From here on; `None` keeps none of them.
    pub from: Option<Timestamp>,
    /// Up to here.
    pub until: Timestamp,
}

/// What catch-up decided about the slots of an outage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatchUpPass {
    /// The decisions in order of their slots: a run for each that is kept, ranges of skips for the rest.
    pub decisions: Vec<Answer>,
    /// The frontier after them. The clocks of all zones of the trigger are set to it.
    pub cursor: Cursor,
    /// Whether each run may start only when the one before it has started. The caller says so in the runs, and paces their due times.
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
pub fn catch_up(planning: &Planning<'_>, cursor: &Cursor, outage: &Outage, now: Timestamp) -> CatchUpPass {
    let Planning { schedule, timetable, .. } = *planning;
    let is_in_order = schedule.policy.catch_up.mode == CatchUpMode::All;
    if !schedule.is_active() {
        return CatchUpPass { decisions: vec![], cursor: cursor.clone(), is_in_order, rest: None };
    }
    let outage = Outage { until: outage.until.min(now), ..*outage };
    let kept = outage.kept.unwrap_or_else(|| choose(planning, cursor, &outage));
    let mut plan = Plan::nothing(cursor);
    let end = decide_missed(&mut plan, planning, cursor, &outage, &kept);
    let Plan { answers: decisions, cursor: mut frontier, .. } = plan;
    let mut rest = None;
    if let End::Work { next_at } = end {
        frontier.set_clocks_before(timetable, next_at.unwrap_or(Timestamp::MAX));
        rest = Some(Outage { kept: Some(kept), ..outage });
    }
    CatchUpPass { decisions, cursor: frontier, is_in_order, rest }
}

/// Decides the slots of an outage: what is kept runs, what is closed keeps its own reason.
fn decide_missed(plan: &mut Plan, planning: &Planning<'_>, cursor: &Cursor, outage: &Outage, kept: &Kept) -> End {
    let mut runs_left = planning.schedule.runs_left(planning.waiting);
    answer(plan, planning.timetable, cursor.at, outage.until, |slot| {
        if !planning.is_undecided(cursor, slot) {
            return Decision::Answered;
        }
        if let Some(reason) = slot.skipped {
            return Decision::Skip(reason);
        }
        // What jitter makes due after the outage was not missed.
        let runs = kept.has(slot.scheduled_at) || outage.until < slot.due_at;
        if runs && 0 < runs_left {
            runs_left -= 1;
            return Decision::Run;
        }
        Decision::Skip(SkipReason::CatchUp)
    })
}

impl Kept {
    fn has(&self, at: Timestamp) -> bool {
        self.from.is_some_and(|from| from <= at) && at <= self.until
    }
}

/// Which of the missed slots the policy keeps.
fn choose(planning: &Planning<'_>, cursor: &Cursor, outage: &Outage) -> Kept {
    let policy = planning.schedule.policy.catch_up;
    let until = outage.until;
    let window_starts = policy.window.and_then(|window| until.checked_sub(window.duration()).ok());
    let oldest = window_starts.unwrap_or(Timestamp::MIN);
    let runs_left = planning.schedule.runs_left(planning.waiting);
    let is_missed = |slot: &Slot| {
        let is_open = slot.skipped.is_none() && slot.due_at <= until;
        is_open && oldest <= slot.scheduled_at && planning.is_undecided(cursor, slot)
    };
    let starts_behind = cursor.starts_behind(planning.timetable);
    let kept_max = match policy.mode {
        CatchUpMode::None => return Kept { from: None, until },
        CatchUpMode::First => {
            let slots = planning.timetable.slots(starts_behind.max(just_before(oldest))).looking_at(SCAN_MAX);
            let mut missed = slots.take_while(|slot| slot.scheduled_at <= until).filter(is_missed);
            let from = (0 < runs_left).then(|| missed.next()).flatten().map(|slot| slot.scheduled_at);
            return Kept { from, until: from.unwrap_or(until) };
        }
        CatchUpMode::Latest => 1,
        // All of them, without counting: there may be very many.
        CatchUpMode::All if policy.max == CatchUp::UNLIMITED && runs_left == usize::MAX => {
            return Kept { from: Some(oldest), until };
        }
        CatchUpMode::All => policy.max as usize,
    };
    // From the latest backwards.
    let after = until.checked_add(SignedDuration::from_nanos(1)).unwrap_or(Timestamp::MAX);
    let slots = planning.timetable.before(after).looking_at(SCAN_MAX);
    let missed = slots.take_while(|slot| starts_behind < slot.scheduled_at).filter(is_missed);
    let from = missed.map(|slot| slot.scheduled_at).take(kept_max.min(runs_left)).last();
    Kept { from, until }
}

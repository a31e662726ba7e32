//! Catch-up: what becomes of the slots that an outage missed.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::Planning;
use super::answering::{Decision, End, answer};
use super::answers::Plan;
use crate::RunId;
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
    /// Waiting runs from here on; `None` keeps none of them.
    pub waiting_from: Option<Timestamp>,
    /// Slots that nobody planned, from here on; `None` keeps none of them.
    pub unplanned_from: Option<Timestamp>,
    /// Both up to here.
    pub until: Timestamp,
}

/// A run that was planned before the outage and was never claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitingRun {
    /// The run.
    pub id: RunId,
    /// When its slot was scheduled.
    pub scheduled_at: Timestamp,
    /// When it became due.
    pub due_at: Timestamp,
}

/// What catch-up decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovery {
    /// The answers to the slots that had not been planned.
    pub plan: Plan,
    /// Waiting runs that the policy keeps, in order; they come before those of the plan.
    pub kept: Vec<RunId>,
    /// Waiting runs that it lets go: each ends as skipped for `catch_up`.
    pub skipped: Vec<RunId>,
    /// Whether each run may be claimed only when the one before it has started.
    pub is_in_order: bool,
    /// What is left of the outage when one call was not enough.
    pub rest: Option<Outage>,
}

/// Applies the catch-up policy to an outage: to runs that became due in it and to slots that nobody planned.
///
/// `waiting` are the schedule's never-claimed runs. Those that became due before the outage or behind it are merely
/// waiting, and left alone.
pub fn catch_up(planning: &Planning<'_>, cursor: &Cursor, outage: &Outage, waiting: &[WaitingRun]) -> Recovery {
    let schedule = planning.schedule;
    let missed = |run: &&WaitingRun| outage.from < run.due_at && run.due_at <= outage.until;
    let missed: Vec<WaitingRun> = waiting.iter().filter(missed).copied().collect();
    let kept = outage.kept.unwrap_or_else(|| choose(planning, cursor, outage, &missed));
    let (kept_runs, skipped_runs): (Vec<WaitingRun>, Vec<WaitingRun>) =
        missed.iter().partition(|run| kept.has(kept.waiting_from, run.scheduled_at));
    let ids = |runs: Vec<WaitingRun>| runs.iter().map(|run| run.id).collect();
    let mut recovery = Recovery {
        plan: Plan::nothing(cursor),
        kept: ids(kept_runs),
        skipped: ids(skipped_runs),
        is_in_order: schedule.policy.catch_up.mode == CatchUpMode::All,
        rest: None,
    };
    if !schedule.is_active() {
        return recovery;
    }
    let end = answer_missed(&mut recovery.plan, planning, cursor, outage, &kept);
    recovery.plan.wake_at = Some(outage.until);
    if let End::Work { .. } = end {
        recovery.rest = Some(Outage { kept: Some(kept), ..*outage });
    }
    recovery
}

/// Answers the slots of an outage that nobody planned: what is kept runs, what is closed keeps its own reason.
pub(super) fn answer_missed(
    plan: &mut Plan,
    planning: &Planning<'_>,
    cursor: &Cursor,
    outage: &Outage,
    kept: &Kept,
) -> End {
    let mut runs_left = planning.schedule.runs_left(planning.waiting);
    answer(plan, planning.timetable, cursor.at, outage.until, |slot| {
        if !planning.is_undecided(cursor, slot) {
            return Decision::Answered;
        }
        if let Some(reason) = slot.skipped {
            return Decision::Skip(reason);
        }
        // What jitter makes due behind the outage was not missed.
        let runs = kept.has(kept.unplanned_from, slot.scheduled_at) || outage.until < slot.due_at;
        if runs && 0 < runs_left {
            runs_left -= 1;
            return Decision::Run;
        }
        Decision::Skip(SkipReason::CatchUp)
    })
}

impl Kept {
    fn has(&self, from: Option<Timestamp>, at: Timestamp) -> bool {
        from.is_some_and(|from| from <= at) && at <= self.until
    }
}

/// Which of the missed slots the policy keeps.
pub(super) fn choose(planning: &Planning<'_>, cursor: &Cursor, outage: &Outage, waiting: &[WaitingRun]) -> Kept {
    let policy = planning.schedule.policy.catch_up;
    let window_starts = policy.window.and_then(|window| outage.until.checked_sub(window.duration()).ok());
    let oldest = window_starts.unwrap_or(Timestamp::MIN);
    let mut waiting: Vec<Timestamp> = waiting.iter().map(|run| run.scheduled_at).filter(|at| oldest <= *at).collect();
    waiting.sort_unstable();
    // Waiting runs are planned already, so they need no place among the runs that are left.
    let runs_left = planning.schedule.runs_left(planning.waiting);
    let is_missed = |slot: &Slot| {
        // The slots of a pause are its own to answer.
        let is_open = planning.schedule.is_active() && slot.skipped.is_none() && slot.due_at <= outage.until;
        is_open && cursor.is_new(slot) && oldest <= slot.scheduled_at && !planning.has_answer(slot)
    };
    let starts_behind = cursor.starts_behind(planning.timetable);
    let kept_max = match policy.mode {
        CatchUpMode::None => return Kept { waiting_from: None, unplanned_from: None, until: outage.until },
        CatchUpMode::First => {
            let slots = planning.timetable.slots(starts_behind.max(just_before(oldest))).looking_at(SCAN_MAX);
            let mut unplanned = slots.take_while(|slot| slot.scheduled_at <= outage.until).filter(is_missed);
            let waiting_from = waiting.first().copied();
            let is_free = waiting_from.is_none() && 0 < runs_left;
            let unplanned_from = is_free.then(|| unplanned.next()).flatten().map(|slot| slot.scheduled_at);
            let until = waiting_from.or(unplanned_from).unwrap_or(outage.until);
            return Kept { waiting_from, unplanned_from, until };
        }
        CatchUpMode::Latest => 1,
        // All of them, without counting: there may be very many.
        CatchUpMode::All if policy.max == CatchUp::UNLIMITED && runs_left == usize::MAX => {
            let everything = Some(oldest);
            return Kept { waiting_from: everything, unplanned_from: everything, until: outage.until };
        }
        CatchUpMode::All => policy.max as usize,
    };
    // From the latest backwards: first what nobody planned, then what waits.
    let behind = outage.until.checked_add(SignedDuration::from_nanos(1)).unwrap_or(Timestamp::MAX);
    let slots = planning.timetable.before(behind).looking_at(SCAN_MAX);
    let unplanned = slots.take_while(|slot| starts_behind < slot.scheduled_at).filter(is_missed);
    let unplanned = unplanned.map(|slot| slot.scheduled_at).take(kept_max.min(runs_left));
    let unplanned: Vec<Timestamp> = unplanned.collect();
    let left_out = waiting.len().saturating_sub(kept_max - unplanned.len());
    let waiting_from = waiting.get(left_out).copied();
    Kept { waiting_from, unplanned_from: unplanned.last().copied(), until: outage.until }
}

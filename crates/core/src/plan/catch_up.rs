//! Catch-up: what becomes of the slots that an outage missed.

use jiff::Timestamp;

use super::answers::Plan;
use super::{Planning, WORK_MAX};
use crate::RunId;
use crate::run::SkipReason;
use crate::schedule::{CatchUpMode, Cursor};
use crate::time::{Slot, just_before};

/// A stretch of time in which nobody planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outage {
    /// When planning stopped.
    pub from: Timestamp,
    /// When it was taken up again.
    pub until: Timestamp,
    /// What the policy keeps, once it has been applied. It is applied once per outage, however many calls that takes.
    pub kept: Option<Kept>,
}

/// Which of the missed slots run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// None.
    Nothing,
    /// Those scheduled between two instants, both included.
    Between(Timestamp, Timestamp),
}

/// A run that was planned before the outage, became due in it, and was never claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitingRun {
    /// The run.
    pub id: RunId,
    /// When its slot was scheduled.
    pub scheduled_at: Timestamp,
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
/// `waiting` are the schedule's never-claimed runs due in the outage, oldest first. Overdue runs outside an outage are
/// merely waiting and are none of this function's business.
pub fn catch_up(planning: &Planning<'_>, cursor: &Cursor, outage: &Outage, waiting: &[WaitingRun]) -> Recovery {
    let schedule = planning.schedule;
    let kept = outage.kept.unwrap_or_else(|| choose(planning, cursor, outage, waiting));
    let is_kept = |at: Timestamp| match kept {
        Kept::Nothing => false,
        Kept::Between(from, until) => from <= at && at <= until,
    };
    let (kept_runs, skipped_runs): (Vec<WaitingRun>, Vec<WaitingRun>) =
        waiting.iter().partition(|run| is_kept(run.scheduled_at));
    let mut recovery = Recovery {
        plan: Plan::nothing(cursor),
        kept: kept_runs.iter().map(|run| run.id).collect(),
        skipped: skipped_runs.iter().map(|run| run.id).collect(),
        is_in_order: schedule.policy.catch_up.mode == CatchUpMode::All,
        rest: None,
    };
    if !schedule.is_active() {
        return recovery;
    }
    let plan = &mut recovery.plan;
    let mut slots = missed(planning, cursor, cursor.at, outage.until);
    for _ in 0..WORK_MAX {
        let Some(slot) = slots.next() else {
            plan.cursor.at = plan.cursor.at.max(outage.until);
            plan.wake_at = Some(outage.until);
            return recovery;
        };
        match slot.skipped {
            Some(reason) => plan.skip(slot, reason),
            None if is_kept(slot.scheduled_at) => plan.run(slot),
            None => plan.skip(slot, SkipReason::CatchUp),
        }
    }
    if let Some(slot) = slots.next() {
        plan.cursor.at = just_before(slot.scheduled_at);
    }
    plan.wake_at = Some(outage.until);
    recovery.rest = Some(Outage { kept: Some(kept), ..*outage });
    recovery
}

/// The slots between two instants that nobody has answered.
fn missed<'a>(
    planning: &Planning<'a>,
    cursor: &'a Cursor,
    after: Timestamp,
    until: Timestamp,
) -> impl Iterator<Item = Slot> + 'a {
    planning
        .timetable
        .slots(after)
        .take_while(move |slot| slot.scheduled_at <= until)
        .filter(|slot| cursor.is_new(slot))
}

/// Which of the missed slots the policy keeps.
fn choose(planning: &Planning<'_>, cursor: &Cursor, outage: &Outage, waiting: &[WaitingRun]) -> Kept {
    let policy = planning.schedule.policy.catch_up;
    let oldest =
        policy.window.and_then(|window| outage.until.checked_sub(window.duration()).ok()).unwrap_or(Timestamp::MIN);
    let waiting = waiting.iter().map(|run| run.scheduled_at).filter(|at| oldest <= *at);
    // Waiting runs are planned already, so they need no place among the runs that are left.
    let runs_left = planning.schedule.runs_left(planning.waiting);
    let unplanned_max = match policy.mode {
        CatchUpMode::None => return Kept::Nothing,
        CatchUpMode::First => {
            let mut slots = missed(planning, cursor, cursor.at.max(just_before(oldest)), outage.until)
                .take(WORK_MAX)
                .filter(|slot| slot.skipped.is_none())
                .map(|slot| slot.scheduled_at);
            let first = waiting.min().or_else(|| if runs_left == 0 { None } else { slots.next() });
            return first.map_or(Kept::Nothing, |at| Kept::Between(at, at));
        }
        CatchUpMode::Latest => 1,
        CatchUpMode::All => policy.max as usize,
    };
    // From the latest backwards: first what nobody planned, then what waits.
    let unplanned = planning
        .timetable
        .before(outage.until.checked_add(jiff::SignedDuration::from_nanos(1)).unwrap_or(Timestamp::MAX))
        .take(WORK_MAX)
        .take_while(|slot| cursor.at < slot.scheduled_at && oldest <= slot.scheduled_at)
        .filter(|slot| cursor.is_new(slot) && slot.skipped.is_none())
        .take(unplanned_max.min(runs_left))
        .map(|slot| slot.scheduled_at);
    let mut times: Vec<Timestamp> = unplanned.collect();
    let mut waiting: Vec<Timestamp> = waiting.collect();
    waiting.sort_unstable();
    times.extend(waiting.into_iter().rev().take(unplanned_max.saturating_sub(times.len())));
    match (times.last(), times.first()) {
        (Some(from), Some(until)) => Kept::Between(*from, *until),
        _ => Kept::Nothing,
    }
}

//! Re-planning: what an edit, a dry run or a reconcile changes.

use std::collections::HashSet;

use jiff::Timestamp;

use super::answers::Plan;
use super::day::{horizon, in_horizon_from};
use super::{PLAN_AHEAD_MAX, Planning, WORK_MAX};
use crate::RunId;
use crate::schedule::Cursor;
use crate::time::{Slot, SlotKey, just_before};

/// What already stands for a slot of the schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// The run.
    pub id: RunId,
    /// The key of its slot.
    pub key: SlotKey,
    /// When its slot is scheduled.
    pub scheduled_at: Timestamp,
    /// How firmly it stands.
    pub state: StandingState,
}

/// How firmly a run stands for its slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StandingState {
    /// Planned and untouched: it may be withdrawn, and its slot may come back.
    Planned,
    /// Claimed, at work, finished, skipped, or cancelled by a person: the slot has its answer for good.
    Answered,
}

/// What re-planning changes: a set difference on slot keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diff {
    /// Planned runs whose slot is still one, with the slot: its instant may have moved with the zone data.
    pub stay: Vec<(RunId, Slot)>,
    /// Planned runs whose slot is none any more.
    pub withdrawn: Vec<RunId>,
    /// Slots behind `now` that nothing stands for yet, answered.
    pub new: Plan,
}

/// Compares what stands with what the schedule's version in force wants at `now`.
///
/// A slot at or before `now` is never new; a planned run for one stays as long as the schedule still has that slot. A
/// schedule that is paused or over wants nothing.
pub fn replan(planning: &Planning<'_>, standing: &[Standing], now: Timestamp) -> Diff {
    let Planning { schedule, timetable, .. } = *planning;
    let mut diff = Diff { stay: vec![], withdrawn: vec![], new: Plan::nothing(&Cursor::starting(now)) };
    if !schedule.is_active() {
        let planned = standing.iter().filter(|run| run.state == StandingState::Planned);
        diff.withdrawn = planned.map(|run| run.id).collect();
        return diff;
    }
    let horizon = horizon(timetable.zone(), now);
    let mut answered: HashSet<&SlotKey> = HashSet::new();
    for run in standing {
        if run.state == StandingState::Planned {
            let Some(slot) = timetable.slot(&run.key).filter(|slot| slot.skipped.is_none()) else {
                diff.withdrawn.push(run.id);
                continue;
            };
            diff.stay.push((run.id, slot));
        }
        answered.insert(&run.key);
    }

    let staying = diff.stay.len();
    let mut room = PLAN_AHEAD_MAX.saturating_sub(staying).min(schedule.runs_left(staying));
    let plan = &mut diff.new;
    let mut slots = timetable.slots(now);
    for _ in 0..WORK_MAX {
        let Some(slot) = slots.next() else {
            plan.is_over = true;
            break;
        };
        if horizon < slot.scheduled_at {
            plan.wake_at = Some(in_horizon_from(timetable.zone(), slot.scheduled_at));
            break;
        }
        if answered.contains(&slot.key()) {
            plan.cursor.pass(&slot);
        } else if let Some(reason) = slot.skipped {
            plan.skip(slot, reason);
        } else if room == 0 {
            plan.cursor.at = just_before(slot.scheduled_at);
            plan.wake_at = Some(slot.scheduled_at);
            return diff;
        } else {
            room -= 1;
            plan.run(slot);
        }
    }
    if plan.is_over || plan.wake_at.is_some() {
        plan.cursor.at = plan.cursor.at.max(horizon);
    } else {
        plan.wake_at = Some(now); // More lies before the horizon than one call looks at.
    }
    diff
}

//! Planning: every slot up to the horizon is answered, ahead of its time.

use jiff::{SignedDuration, Timestamp};

use super::answers::Plan;
use super::day::{horizon, in_horizon_from};
use super::{Planning, WORK_MAX};
use crate::schedule::Cursor;
use crate::time::just_before;

/// The most runs of one schedule that are planned ahead; they are topped up as they are used.
pub const PLAN_AHEAD_MAX: usize = 1_000;

/// How long planning rests when a schedule has as many waiting runs as it may have.
const FULL_REST: SignedDuration = SignedDuration::from_secs(60);

/// Answers every slot between `cursor` and the horizon of `now` with one run or one skip. Reads no clock, no store.
///
/// A paused or ended schedule gets no answers: its slots are answered when it is resumed.
pub fn plan(planning: &Planning<'_>, cursor: &Cursor, now: Timestamp) -> Plan {
    let Planning { schedule, timetable, waiting } = *planning;
    let mut plan = Plan::nothing(cursor);
    if !schedule.is_active() {
        return plan;
    }
    let horizon = horizon(timetable.zone(), now);
    let mut runs_left = schedule.runs_left(waiting);
    let mut room = PLAN_AHEAD_MAX.saturating_sub(waiting);
    let mut slots = timetable.slots(cursor.at);
    for _ in 0..WORK_MAX {
        let Some(slot) = slots.next() else {
            plan.cursor.at = plan.cursor.at.max(horizon);
            plan.is_over = true;
            return plan;
        };
        if horizon < slot.scheduled_at {
            plan.cursor.at = plan.cursor.at.max(horizon);
            plan.wake_at = Some(in_horizon_from(timetable.zone(), slot.scheduled_at));
            return plan;
        }
        if !cursor.is_new(&slot) {
            continue;
        }
        if let Some(reason) = slot.skipped {
            plan.skip(slot, reason);
            continue;
        }
        if runs_left == 0 {
            // The last runs are planned. Which of them start, and so whether there will be others, time cannot tell.
            plan.cursor.at = just_before(slot.scheduled_at);
            return plan;
        }
        if room == 0 {
            plan.cursor.at = just_before(slot.scheduled_at);
            plan.wake_at = Some(top_up_at(&plan, slot.scheduled_at, now));
            return plan;
        }
        (runs_left, room) = (runs_left - 1, room - 1);
        plan.run(slot);
    }
    plan.wake_at = Some(now); // More lies before the horizon than one call looks at.
    plan
}

/// When half of what was planned now has become due; without any, when the first that found no room does.
fn top_up_at(plan: &Plan, next_at: Timestamp, now: Timestamp) -> Timestamp {
    let runs: Vec<_> = plan.runs().map(|slot| slot.due_at).collect();
    let at = runs.get(runs.len() / 2).copied().unwrap_or(next_at);
    if now < at { at } else { now.checked_add(FULL_REST).unwrap_or(Timestamp::MAX) }
}

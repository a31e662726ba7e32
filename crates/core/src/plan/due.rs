//! Planning: every slot up to the horizon is answered, ahead of its time.

use jiff::{SignedDuration, Timestamp};

use super::Planning;
use super::answering::{Decision, End, answer};
use super::answers::Plan;
use super::day::{horizon, in_horizon_from};
use crate::schedule::Cursor;
use crate::time::{Slot, Zone};

/// The most runs of one schedule that are planned ahead; they are topped up as they are used.
pub const PLAN_AHEAD_MAX: usize = 1_000;

/// How long planning rests when a schedule has as many waiting runs as it may have.
const FULL_REST: SignedDuration = SignedDuration::from_secs(60);

/// Answers every slot between `cursor` and the horizon of `now` with one run or one skip. Reads no clock, no store.
///
/// A paused or ended schedule gets no answers: its slots are answered when it is resumed.
pub fn plan(planning: &Planning<'_>, cursor: &Cursor, now: Timestamp) -> Plan {
    let Planning { schedule, timetable, waiting, .. } = *planning;
    let mut plan = Plan::nothing(cursor);
    if !schedule.is_active() {
        return plan;
    }
    let mut places = Places { runs_left: schedule.runs_left(waiting), room: PLAN_AHEAD_MAX.saturating_sub(waiting) };
    let horizon = horizon(timetable.zone(), now);
    let end = answer(&mut plan, timetable, cursor.at, horizon, |slot| {
        if cursor.is_new(slot) && !planning.has_answer(slot) { places.decide(slot) } else { Decision::Answered }
    });
    places.wake(&mut plan, timetable.zone(), &end, now);
    plan
}

/// How many runs may still be planned.
pub(crate) struct Places {
    /// Of all that the schedule may ever have.
    pub(crate) runs_left: usize,
    /// Of those planned ahead.
    pub(crate) room: usize,
}

impl Places {
    /// A run while there is a place for it.
    pub(crate) fn decide(&mut self, slot: &Slot) -> Decision {
        if let Some(reason) = slot.skipped {
            return Decision::Skip(reason);
        }
        if self.runs_left == 0 || self.room == 0 {
            return Decision::Stop;
        }
        (self.runs_left, self.room) = (self.runs_left - 1, self.room - 1);
        Decision::Run
    }

    /// Notes in a plan when there will be something to do again.
    pub(crate) fn wake(&self, plan: &mut Plan, zone: &Zone, end: &End, now: Timestamp) {
        plan.wake_at = match end {
            End::Over => None,
            End::Behind(slot) => Some(in_horizon_from(zone, slot.scheduled_at)),
            // The last runs are planned. Which of them start, and so whether there will be others, time cannot tell.
            End::Stopped(_) if self.runs_left == 0 => None,
            End::Stopped(slot) => Some(top_up_at(plan, slot.scheduled_at, now)),
            End::Work { .. } => Some(now),
        };
        plan.is_over = matches!(end, End::Over);
    }
}

/// When half of what was planned now has become due; without any, when the first that found no room does.
fn top_up_at(plan: &Plan, next_at: Timestamp, now: Timestamp) -> Timestamp {
    let runs: Vec<_> = plan.runs().map(|slot| slot.due_at).collect();
    let at = runs.get(runs.len() / 2).copied().unwrap_or(next_at);
    if now < at { at } else { now.checked_add(FULL_REST).unwrap_or(Timestamp::MAX) }
}

//! The end of a pause: its slots become one recorded range.

use jiff::Timestamp;

use super::answers::Plan;
use super::{Planning, WORK_MAX};
use crate::schedule::{Cursor, ScheduleState};
use crate::time::just_before;

/// Answers the slots of a paused schedule up to `until`, when it is resumed or deleted, with one range of skips.
///
/// A slot that would have been skipped anyway is part of the range: the pause is what a person remembers. `wake_at` is
/// `until` when one call was not enough. A schedule that is not paused gets no answers.
pub fn answer_pause(planning: &Planning<'_>, cursor: &Cursor, until: Timestamp) -> Plan {
    let mut plan = Plan::nothing(cursor);
    let ScheduleState::Paused(pause) = &planning.schedule.state else { return plan };
    let reason = pause.kind.skip_reason();
    let mut slots = planning.timetable.slots(cursor.at).take_while(|slot| slot.scheduled_at <= until);
    for _ in 0..WORK_MAX {
        let Some(slot) = slots.next() else {
            plan.cursor.at = plan.cursor.at.max(until);
            return plan;
        };
        if cursor.is_new(&slot) {
            plan.skip(slot, reason);
        }
    }
    if let Some(slot) = slots.next() {
        plan.cursor.at = just_before(slot.scheduled_at);
        plan.wake_at = Some(until);
    } else {
        plan.cursor.at = plan.cursor.at.max(until);
    }
    plan
}

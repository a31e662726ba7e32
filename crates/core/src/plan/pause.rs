//! The end of a pause: its slots become one recorded range.

use jiff::Timestamp;

use super::Planning;
use super::answering::{Decision, End, answer};
use super::answers::Plan;
use crate::schedule::{Cursor, ScheduleState};

/// Answers the slots of a paused schedule up to `until`, when it is resumed or deleted, with one range of skips.
///
/// A slot that would have been skipped anyway is part of the range: the pause is what a person remembers. `wake_at` is
/// `until` when one call was not enough. A schedule that is not paused gets no answers.
pub fn answer_pause(planning: &Planning<'_>, cursor: &Cursor, until: Timestamp) -> Plan {
    let mut plan = Plan::nothing(cursor);
    let ScheduleState::Paused(pause) = &planning.schedule.state else { return plan };
    let reason = pause.kind.skip_reason();
    let end = answer(&mut plan, planning.timetable, cursor.at, until, |slot| {
        if cursor.is_new(slot) && !planning.has_answer(slot) { Decision::Skip(reason) } else { Decision::Answered }
    });
    plan.wake_at = matches!(end, End::Work).then_some(until);
    plan
}

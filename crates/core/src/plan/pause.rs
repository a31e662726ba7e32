//! Slots that nobody will run: the end of a pause, or more than may wait.

use std::collections::HashSet;

use jiff::Timestamp;

use super::Planning;
use super::answering::{Decision, End, answer};
use super::answers::Plan;
use crate::run::SkipReason;
use crate::schedule::{Cursor, ScheduleState};
use crate::time::SlotKey;

/// Answers the slots of a paused schedule up to `until`, when it is resumed or deleted, with one range of skips.
///
/// A slot that would have been skipped anyway is part of the range: the pause is what a person remembers. One in `answered`
/// is not: a person had cancelled it before. `wake_at` is `until` when one call was not enough. A schedule that is not
/// paused gets no answers.
pub fn answer_pause(planning: &Planning<'_>, cursor: &Cursor, until: Timestamp, answered: &HashSet<SlotKey>) -> Plan {
    match &planning.schedule.state {
        ScheduleState::Paused(pause) => skip_until(planning, cursor, until, pause.kind.skip_reason(), answered),
        ScheduleState::Active | ScheduleState::Ended(_) => Plan::nothing(cursor),
    }
}

/// Answers every slot up to `until` that has no answer with a skip. `wake_at` is `until` when one call was not enough.
pub fn skip_until(
    planning: &Planning<'_>,
    cursor: &Cursor,
    until: Timestamp,
    reason: SkipReason,
    answered: &HashSet<SlotKey>,
) -> Plan {
    let mut plan = Plan::nothing(cursor);
    let end = answer(&mut plan, planning.timetable, cursor.at, until, |slot| {
        let is_answered = !cursor.is_new(slot) || !answered.is_empty() && answered.contains(&slot.key());
        if is_answered { Decision::Answered } else { Decision::Skip(reason) }
    });
    plan.wake_at = matches!(end, End::Work).then_some(until);
    plan
}

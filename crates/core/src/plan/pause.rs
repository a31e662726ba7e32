//! Slots that nobody will run: the end of a pause, or more than may wait.

use jiff::Timestamp;

use super::Planning;
use super::answering::{Decision, End, answer};
use super::answers::Plan;
use crate::run::SkipReason;
use crate::schedule::Cursor;

/// Answers every slot up to `until` that has no answer with a skip: one range, when a pause comes to its end.
///
/// A slot that would have been skipped anyway is part of the range: the pause is what a person remembers. One that
/// has its run is not: a person had cancelled it before. `wake_at` is `until` when one call was not enough.
pub fn skip_until(planning: &Planning<'_>, cursor: &Cursor, until: Timestamp, reason: SkipReason) -> Plan {
    let mut plan = Plan::nothing(cursor);
    let end = answer(&mut plan, planning.timetable, cursor.at, until, |slot| {
        if cursor.is_new(slot) && !planning.has_answer(slot) { Decision::Skip(reason) } else { Decision::Answered }
    });
    plan.wake_at = matches!(end, End::Work { .. }).then_some(until);
    plan
}

//! Slots that nobody will run: the end of a pause, or more than may wait.

use std::collections::HashSet;

use jiff::Timestamp;

use super::Planning;
use super::answering::{Decision, End, answer};
use super::answers::Plan;
use crate::run::SkipReason;
use crate::schedule::Cursor;
use crate::time::SlotKey;

/// Answers every slot up to `until` that has no answer with a skip: one range, when a pause comes to its end.
///
/// A slot that would have been skipped anyway is part of the range: the pause is what a person remembers. One in `answered`
/// is not: a person had cancelled it before. `wake_at` is `until` when one call was not enough.
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

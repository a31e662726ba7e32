//! Slots that no run is made for: the end of a pause, or more than may wait.

use jiff::Timestamp;

use super::Planning;
use super::answering::{Decision, End, answer};
use super::answers::{Answer, Plan, SkipRange};
use crate::run::SkipReason;
use crate::schedule::Cursor;

/// The slots that are skipped, and where to go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkipPass {
    /// The ranges, in order.
    pub skips: Vec<SkipRange>,
    /// The frontier after them. The clocks of all zones of the trigger are set to it.
    pub cursor: Cursor,
    /// Whether there are more slots than one call looks at: call again at once.
    pub is_cut: bool,
}

/// Skips every slot up to `until` that has no answer: one range, when a pause comes to its end.
///
/// A slot that would have been skipped anyway is part of the range: the pause is what a person remembers. One that
/// has its run is not: a person had cancelled it before.
pub fn skip_until(planning: &Planning<'_>, cursor: &Cursor, until: Timestamp, reason: SkipReason) -> SkipPass {
    let mut plan = Plan::nothing(cursor);
    let end = answer(&mut plan, planning.timetable, cursor.at, until, |slot| {
        if planning.is_undecided(cursor, slot) { Decision::Skip(reason) } else { Decision::Answered }
    });
    let Plan { answers, cursor: mut frontier, .. } = plan;
    let mut is_cut = false;
    if let End::Work { next_at } = end {
        is_cut = true;
        frontier.set_clocks_before(planning.timetable, next_at.unwrap_or(Timestamp::MAX));
    }
    SkipPass { skips: answers.into_iter().filter_map(Answer::into_skip).collect(), cursor: frontier, is_cut }
}

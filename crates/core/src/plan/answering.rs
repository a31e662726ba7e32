//! Answering slots one after another, with a bound on the work and a cursor that loses nothing.
//!
//! Planning, catching up, the end of a pause and re-planning differ in what they decide; this is what they share.

use jiff::Timestamp;

use super::WORK_MAX;
use super::answers::Plan;
use crate::run::SkipReason;
use crate::time::{Slot, Timetable, just_before};

/// What becomes of a slot that has no answer yet.
pub(crate) enum Decision {
    Run,
    Skip(SkipReason),
    /// It has its answer already.
    Answered,
    /// It cannot be answered now, and nothing behind it.
    Stop,
}

/// Why answering came to an end.
pub(crate) enum End {
    /// Time brings no more slots.
    Over,
    /// The next slot lies behind the stretch that was asked for.
    Behind(Slot),
    /// This slot could not be answered.
    Stopped(Slot),
    /// As many were answered as one call may. The first that was not looked at lies here; `None` where there is none.
    Work { next_at: Option<Timestamp> },
}

/// How many slots are looked at that have their answer already: two days of every second. There is at most a day and the
/// shift of a zone of them, so that a call always comes to those that have none.
const ANSWERED_MAX: usize = 2 * 86_400;

/// Answers the slots between two instants, and moves the plan's cursor as far as that goes.
///
/// Slots that have their answer already do not count as work: there are at most [`ANSWERED_MAX`] of them, where zone data has
/// moved.
pub(crate) fn answer(
    plan: &mut Plan,
    timetable: &Timetable,
    after: Timestamp,
    until: Timestamp,
    decide: impl FnMut(&Slot) -> Decision,
) -> End {
    answer_at_most(WORK_MAX, plan, timetable, after, until, decide)
}

/// The same with a bound of one's own, [`WORK_MAX`] at most.
pub(crate) fn answer_at_most(
    work_max: usize,
    plan: &mut Plan,
    timetable: &Timetable,
    after: Timestamp,
    until: Timestamp,
    mut decide: impl FnMut(&Slot) -> Decision,
) -> End {
    let starts_behind = plan.cursor.starts_behind(timetable).min(after);
    let mut slots = timetable.slots(starts_behind).looking_at(WORK_MAX + ANSWERED_MAX);
    let mut work = 0;
    let started_at = plan.cursor.at;
    // All before this slot is answered; the cursor does not go back behind where it was.
    let stop_before = |plan: &mut Plan, at: Timestamp| {
        plan.cursor.at = plan.cursor.at.min(just_before(at)).max(started_at);
    };
    while work < work_max {
        let Some(slot) = slots.next() else {
            if slots.cut_at().is_some() {
                break;
            }
            plan.cursor.pass_until(timetable, until);
            return End::Over;
        };
        if until < slot.scheduled_at {
            plan.cursor.pass_until(timetable, until);
            return End::Behind(slot);
        }
        match decide(&slot) {
            Decision::Run => plan.run(slot),
            Decision::Skip(reason) => plan.skip(slot, reason),
            Decision::Answered => {
                plan.pass(&slot);
                continue;
            }
            Decision::Stop => {
                stop_before(plan, slot.scheduled_at);
                return End::Stopped(slot);
            }
        }
        work += 1;
    }
    // The next slot may lie at the same instant as the last: a gap has many.
    let next_at = slots.next().map(|next| next.scheduled_at).or(slots.cut_at());
    if let Some(next_at) = next_at {
        stop_before(plan, next_at);
    }
    End::Work { next_at }
}

//! Re-planning: what an edit, a dry run or a reconcile changes.

use std::collections::HashSet;

use jiff::Timestamp;

use super::answering::{Decision, answer};
use super::answers::Plan;
use super::day::horizon;
use super::due::Places;
use super::{PLAN_AHEAD_MAX, Planning};
use crate::RunId;
#[cfg(doc)]
use crate::schedule::Schedule;
use crate::schedule::{Cursor, ScheduleState};
use crate::time::{Slot, SlotKey};

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

/// Which zone data the cursor has gone by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ZoneData {
    /// What is in force, or nothing lies behind the cursor that it could have moved.
    InForce,
    /// Another version: times may repeat ahead that it did not repeat, and the cursor has gone past them unseen.
    Other,
}

/// What re-planning changes: a set difference on slot keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diff {
    /// Planned runs whose slot is still one, with the slot: its instant may have moved with the zone data.
    pub stay: Vec<(RunId, Slot)>,
    /// Planned runs whose slot is none any more.
    pub withdrawn: Vec<RunId>,
    /// Slots that nothing stands for yet, answered.
    pub new: Plan,
}

/// Compares what stands with what the schedule's version in force wants at `now`.
///
/// `cursor` is where planning goes on: [`Schedule::cursor_from`] for an edit, the schedule's own for a reconcile. A planned
/// run stays as long as the schedule still has its slot, due or not. Runs that no slot stands for are left alone, and so
/// are the runs of a paused schedule that are due already: admission answers them, unless pauses are made up for. With other zone data than before, every
/// second pass that lies ahead and has no run is decided anew.
pub fn replan(
    planning: &Planning<'_>,
    cursor: &Cursor,
    planned_with: ZoneData,
    standing: &[Standing],
    now: Timestamp,
) -> Diff {
    let Planning { schedule, timetable, waiting, .. } = *planning;
    let planned = || standing.iter().filter(|run| run.state == StandingState::Planned && run.key.is_slot());
    let mut diff = Diff { stay: vec![], withdrawn: vec![], new: Plan::nothing(cursor) };
    match &schedule.state {
        ScheduleState::Active => {}
        ScheduleState::Paused(_) => {
            // Zone data may change before it goes on.
            diff.new.cursor.note_clocks(timetable);
            // What is made up for when the pause ends is not answered by it.
            let is_withdrawn = |run: &&Standing| now < run.scheduled_at || schedule.policy.catch_up.covers_pauses;
            diff.withdrawn = planned().filter(is_withdrawn).map(|run| run.id).collect();
            return diff;
        }
        ScheduleState::Ended(_) => {
            diff.withdrawn = planned().map(|run| run.id).collect();
            return diff;
        }
    }
    let mut withdrawn_keys: HashSet<&SlotKey> = HashSet::new();
    for run in planned() {
        match timetable.slot(&run.key).filter(|slot| slot.skipped.is_none()) {
            Some(slot) => diff.stay.push((run.id, slot)),
            None => {
                diff.withdrawn.push(run.id);
                withdrawn_keys.insert(&run.key);
            }
        }
    }
    diff.stay.sort_by_key(|(_, slot)| slot.scheduled_at);
    // A lower maximum takes back the last ones. Their slots come back when others are skipped, which count for nothing.
    let still_waiting = |diff: &Diff| waiting.saturating_sub(diff.withdrawn.len());
    while schedule.is_over_limit(still_waiting(&diff)) {
        let Some((id, _)) = diff.stay.pop() else { break };
        diff.withdrawn.push(id);
        withdrawn_keys.extend(planned().find(|run| run.id == id).map(|run| &run.key));
    }

    let waiting = still_waiting(&diff);
    let mut places = Places { runs_left: schedule.runs_left(waiting), room: PLAN_AHEAD_MAX.saturating_sub(waiting) };
    let answered: HashSet<&SlotKey> =
        standing.iter().map(|run| &run.key).filter(|key| !withdrawn_keys.contains(key)).collect();
    // The day may end earlier than it did, in another zone or because the clock was set back. What stands, stands behind the
    // frontier all the same.
    let stands_until = standing.iter().filter(|run| run.key.is_slot() && !withdrawn_keys.contains(&run.key));
    let stands_until = stands_until.map(|run| run.scheduled_at).chain(diff.stay.iter().map(|(_, it)| it.scheduled_at));
    let horizon = horizon(timetable.zone(), now).max(stands_until.max().unwrap_or(Timestamp::MIN));
    let may_repeat = |slot: &Slot| planned_with == ZoneData::Other && slot.is_second_pass && now < slot.scheduled_at;
    let end = answer(&mut diff.new, timetable, now, horizon, |slot| {
        let is_new = cursor.is_new(slot) || may_repeat(slot);
        if !is_new && (slot.skipped.is_none() || withdrawn_keys.is_empty()) {
            return Decision::Answered;
        }
        let key = slot.key();
        match slot.skipped {
            // Withdrawn because it is skipped now: that is its answer.
            Some(reason) if withdrawn_keys.contains(&key) && now < slot.scheduled_at => Decision::Skip(reason),
            _ if !is_new || answered.contains(&key) => Decision::Answered,
            _ => places.decide(slot),
        }
    });
    places.wake(&mut diff.new, timetable.zone(), &end, now);
    diff
}

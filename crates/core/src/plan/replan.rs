//! Re-planning: what an edit, a dry run or a reconcile changes.

use std::collections::{BTreeSet, HashSet};

use jiff::Timestamp;

use super::Planning;
use super::pass::{Pass, pass};
use crate::RunId;
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
    /// Claimed, or at work: the slot has its answer for good. What is over stands for nothing: the cursor has passed its slot.
    Answered,
}

/// What re-planning changes: a set difference on slot keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diff {
    /// Planned runs whose slot is still one, with the slot: its instant may have moved with the zone data.
    pub stay: Vec<(RunId, Slot)>,
    /// Planned runs whose slot is none any more.
    pub withdrawn: Vec<RunId>,
    /// The slots up to now that nothing stands for yet, decided, and what follows.
    pub new: Pass,
}

/// Compares what stands with what the schedule's version in force wants at `now`.
///
/// `cursor` is where planning goes on: now for an edit, the schedule's own with new zone data. A planned run stays as long as the
/// schedule still has its slot, due or not. Runs that no slot stands for are left alone, and so are the runs of a paused schedule
/// that are due already: admission answers them, unless pauses are made up for.
pub fn replan(planning: &Planning<'_>, cursor: &Cursor, standing: &[Standing], now: Timestamp) -> Diff {
    let Planning { schedule, timetable, waiting, .. } = *planning;
    let planned = || standing.iter().filter(|run| run.state == StandingState::Planned && run.key.is_slot());
    let (mut stay, mut withdrawn): (Vec<(RunId, Slot)>, Vec<RunId>) = (vec![], vec![]);
    match &schedule.state {
        ScheduleState::Active => {}
        ScheduleState::Paused(_) => {
            // Zone data may change before it goes on.
            let mut cursor = cursor.clone();
            cursor.note_clocks(timetable);
            // What is made up for when the pause ends is not answered by it.
            let covers = schedule.policy.catch_up.covers_pauses;
            let is_withdrawn = |run: &&Standing| now < run.scheduled_at || covers && cursor.at < run.scheduled_at;
            withdrawn = planned().filter(is_withdrawn).map(|run| run.id).collect();
            return Diff { stay, withdrawn, new: pass(planning, &cursor, now) };
        }
        ScheduleState::Ended(_) => {
            withdrawn = planned().map(|run| run.id).collect();
            return Diff { stay, withdrawn, new: pass(planning, cursor, now) };
        }
    }
    let mut withdrawn_keys: HashSet<&SlotKey> = HashSet::new();
    for run in planned() {
        match timetable.slot(&run.key).filter(|slot| slot.skipped.is_none()) {
            Some(slot) => stay.push((run.id, slot)),
            None => {
                withdrawn.push(run.id);
                withdrawn_keys.insert(&run.key);
            }
        }
    }
    stay.sort_by_key(|(_, slot)| slot.scheduled_at);
    // A lower maximum takes back the last ones: no version of the schedule wants them any more.
    while schedule.is_over_limit(waiting.saturating_sub(withdrawn.len())) {
        let Some((id, _)) = stay.pop() else { break };
        withdrawn.push(id);
        withdrawn_keys.extend(planned().find(|run| run.id == id).map(|run| &run.key));
    }
    let stands = standing.iter().map(|run| &run.key).filter(|key| key.is_slot() && !withdrawn_keys.contains(key));
    let answered: BTreeSet<SlotKey> = stands.chain(planning.answered).cloned().collect();
    let waiting = waiting.saturating_sub(withdrawn.len());
    let new = pass(&Planning { waiting, answered: &answered, ..*planning }, cursor, now);
    Diff { stay, withdrawn, new }
}

//! What clients were told: an answer that said yes is in the journal (I17).

use std::collections::BTreeSet;

use punctual_core::journal::World;
use punctual_core::run::{Outcome, RunState};
use punctual_core::{RunId, ScheduleId};
use punctual_store::Cancellation;

use crate::invariants::{Check, ensure};

/// Answers that said yes.
#[derive(Debug, Default)]
pub(crate) struct Acks {
    created: BTreeSet<ScheduleId>,
    deleted: BTreeSet<ScheduleId>,
    /// Deletions that were asked for, whatever became of them.
    delete_asked: BTreeSet<ScheduleId>,
    cancelled: BTreeSet<RunId>,
    /// How many there were.
    pub(crate) count: u64,
}

impl Acks {
    pub(crate) fn asks_to_delete(&mut self, schedule: ScheduleId) {
        self.delete_asked.insert(schedule);
    }

    /// A schedule was created or edited: it has at least this version, unless somebody wanted it gone.
    pub(crate) fn written(&mut self, schedule: ScheduleId, version: u64, world: &World) -> Check {
        self.count += 1;
        self.created.insert(schedule);
        let found = world.schedules.get(&schedule).map(|record| record.schedule.version);
        let is_there = found.is_some_and(|found| version <= found) || self.delete_asked.contains(&schedule);
        ensure("I17", is_there, || {
            format!("schedule {schedule} was acknowledged with version {version}, found {found:?}")
        })
    }

    pub(crate) fn deleted(&mut self, schedule: ScheduleId, world: &World) -> Check {
        self.count += 1;
        self.deleted.insert(schedule);
        ensure("I17", !world.schedules.contains_key(&schedule), || format!("schedule {schedule} was not deleted"))
    }

    pub(crate) fn asked(&mut self, run: RunId, exists: bool) -> Check {
        self.count += 1;
        ensure("I17", exists, || format!("run {run} was acknowledged and is not there"))
    }

    pub(crate) fn cancelled(&mut self, run: RunId, said: Cancellation, world: &World) -> Check {
        self.count += 1;
        let Some(found) = world.runs.get(&run) else { return Ok(()) };
        let is_so = match said {
            Cancellation::Done => matches!(found.state, RunState::Finished { outcome: Outcome::Cancelled, .. }),
            Cancellation::Asked => found.is_cancelling,
            Cancellation::Over(_) => found.state.is_final(),
        };
        self.cancelled.insert(run);
        ensure("I17", is_so, || format!("the cancellation of run {run} was answered {said:?}; it is {:?}", found.state))
    }

    /// In the end: what was created is there unless somebody wanted it gone, what was deleted is gone.
    pub(crate) fn hold(&self, world: &World) -> Check {
        for id in &self.created {
            let is_there = world.schedules.contains_key(id) || self.delete_asked.contains(id);
            ensure("I17", is_there, || format!("schedule {id} was created and is not there"))?;
        }
        for id in &self.deleted {
            ensure("I17", !world.schedules.contains_key(id), || format!("schedule {id} was deleted and is there"))?;
        }
        for id in &self.cancelled {
            let is_over = world.runs.get(id).is_none_or(|run| run.state.is_final());
            ensure("I17", is_over, || format!("run {id} was cancelled and lives"))?;
        }
        Ok(())
    }
}

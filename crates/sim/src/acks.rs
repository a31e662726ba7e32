//! What clients were told: an answer that said yes is in the journal (I17).

use std::collections::BTreeSet;

use punctual_core::journal::World;
use punctual_core::run::{Outcome, Run, RunState};
use punctual_core::{RunId, ScheduleId};
use punctual_store::Cancellation;

use crate::invariants::{Check, ensure};
use crate::lost::Stretch;

/// Answers that said yes. Whoever asked says how often something had been lost by then.
#[derive(Debug, Default)]
pub(crate) struct Acks {
    created: BTreeSet<ScheduleId>,
    deleted: BTreeSet<ScheduleId>,
    /// Deletions that were asked for, whatever became of them.
    delete_asked: BTreeSet<ScheduleId>,
    cancelled: BTreeSet<RunId>,
    /// What was lost: who asked before may hear of it afterwards.
    lost: Stretch,
    /// How often something was lost.
    pub(crate) losses: u32,
    /// How many there were.
    pub(crate) count: u64,
}

impl Acks {
    /// A schedule whose changes were lost.
    pub(crate) fn lost_change(&self, world: &World) -> Option<ScheduleId> {
        self.lost.versions.iter().map(|(id, _)| *id).find(|id| world.schedules.contains_key(id))
    }

    pub(crate) fn asks_to_delete(&mut self, schedule: ScheduleId) {
        self.delete_asked.insert(schedule);
    }

    /// Forgets what was lost; `kept` is what was not.
    pub(crate) fn forget(&mut self, lost: Stretch, kept: &World) {
        let Acks { created, deleted, delete_asked, cancelled, .. } = self;
        created.retain(|id| kept.schedules.contains_key(id) || delete_asked.contains(id));
        deleted.retain(|id| !kept.schedules.contains_key(id));
        cancelled.retain(|id| !lost.cancelled.contains(id));
        self.lost.add(lost);
        self.losses += 1;
    }

    /// A schedule was created or edited: it has at least this version, unless somebody wanted it gone.
    pub(crate) fn written(&mut self, schedule: ScheduleId, version: u64, world: &World, losses: u32) -> Check {
        self.count += 1;
        if losses < self.losses && self.lost.versions.contains(&(schedule, version)) {
            return Ok(());
        }
        self.created.insert(schedule);
        let found = world.schedules.get(&schedule).map(|record| record.schedule.version);
        let is_there = found.is_some_and(|found| version <= found) || self.delete_asked.contains(&schedule);
        ensure("I17", is_there, || {
            format!("schedule {schedule} was acknowledged with version {version}, found {found:?}")
        })
    }

    pub(crate) fn deleted(&mut self, schedule: ScheduleId, world: &World, losses: u32) -> Check {
        self.count += 1;
        if losses < self.losses && self.lost.deleted.contains(&schedule) {
            return Ok(());
        }
        self.deleted.insert(schedule);
        ensure("I17", !world.schedules.contains_key(&schedule), || format!("schedule {schedule} was not deleted"))
    }

    pub(crate) fn asked(&mut self, run: RunId, exists: bool, losses: u32) -> Check {
        self.count += 1;
        let is_lost = losses < self.losses && self.lost.runs.contains(&run);
        ensure("I17", exists || is_lost, || format!("run {run} was acknowledged and is not there"))
    }

    /// A run was cancelled, or was over; `found` is what it is, over or not.
    pub(crate) fn cancelled(&mut self, run: RunId, said: Cancellation, found: Option<&Run>, losses: u32) -> Check {
        self.count += 1;
        if losses < self.losses && self.lost.touched.contains(&run) {
            return Ok(());
        }
        let Some(found) = found else {
            return ensure("I17", false, || format!("the cancellation of run {run} was answered; it is not there"));
        };
        let is_so = match said {
            Cancellation::Done => matches!(found.state, RunState::Finished { outcome: Outcome::Cancelled, .. }),
            Cancellation::Asked => found.is_cancelling,
            Cancellation::Over(said) => matches!(found.state, RunState::Finished { outcome, .. } if outcome == said),
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
            ensure("I17", !world.runs.contains_key(id), || format!("run {id} was cancelled and lives"))?;
        }
        Ok(())
    }
}

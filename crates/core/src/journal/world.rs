//! The world: schedules and runs as the journal has them.
//!
//! In: [`Entry`]s, in order. Out: what the store's rows must say. The model store is this fold; `verify` compares it with the
//! rows of a real one. Invariant: an entry that cannot have happened changes nothing.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::entry::{Body, Entry, MovedRun, PlanEntry};
use crate::run::{IllegalTransition, Run, RunEvent, RunState};
use crate::schedule::Schedule;
use crate::time::SlotKey;
use crate::{RunId, ScheduleId};

/// Schedules and runs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct World {
    /// The number of the last entry taken in; 0 before the first.
    pub seq: u64,
    /// Every schedule that exists.
    pub schedules: BTreeMap<ScheduleId, Schedule>,
    /// Every run that exists, final ones included until retention takes them.
    pub runs: BTreeMap<RunId, Run>,
}

/// An entry that cannot have happened in this world: the journal or the fold is broken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JournalError {
    /// An entry is missing, or stands twice.
    #[error("entry {found} follows entry {after}")]
    OutOfOrder {
        /// The last entry taken in.
        after: u64,
        /// The one that came next.
        found: u64,
    },
    /// A schedule that does not exist.
    #[error("schedule {0} does not exist")]
    UnknownSchedule(ScheduleId),
    /// A plan for another version of the schedule.
    #[error("schedule {schedule} has version {version}, not {planned}")]
    OtherVersion {
        /// The schedule.
        schedule: ScheduleId,
        /// Its version.
        version: u64,
        /// The version that was planned.
        planned: u64,
    },
    /// A run that does not exist.
    #[error("run {0} does not exist")]
    UnknownRun(RunId),
    /// A second run with the same id.
    #[error("run {0} exists already")]
    DuplicateRun(RunId),
    /// A second answer to one slot.
    #[error("slot {key} of schedule {schedule} has its run already")]
    DuplicateSlot {
        /// The schedule.
        schedule: ScheduleId,
        /// The slot.
        key: SlotKey,
    },
    /// A write by a node that no longer holds the run.
    #[error("run {run} has epoch {epoch}, not {found}")]
    StaleEpoch {
        /// The run.
        run: RunId,
        /// Its epoch.
        epoch: u64,
        /// The epoch that was named.
        found: u64,
    },
    /// A run that was touched is not withdrawn and does not move.
    #[error("run {0} is not planned any more")]
    NotPlanned(RunId),
    /// Something that cannot happen to a run in its state.
    #[error("run {run}: {cause}")]
    Illegal {
        /// The run.
        run: RunId,
        /// Why not.
        cause: IllegalTransition,
    },
}

impl World {
    /// Takes in the next entry, whole or not at all.
    pub fn apply(&mut self, entry: &Entry) -> Result<(), JournalError> {
        if entry.seq != self.seq + 1 {
            return Err(JournalError::OutOfOrder { after: self.seq, found: entry.seq });
        }
        self.check(entry)?;
        self.take(entry);
        self.seq = entry.seq;
        Ok(())
    }

    /// Whether an entry can have happened: every error is found here, before anything changes.
    fn check(&self, entry: &Entry) -> Result<(), JournalError> {
        match &entry.body {
            Body::ScheduleChanged(_) => Ok(()),
            Body::ScheduleDeleted { schedule } => self.schedule(*schedule).map(drop),
            Body::Planned(plan) => self.check_plan(plan),
            Body::Skipped(skip) => self.schedule(skip.schedule).map(drop),
            Body::RunAsked(run) => self.check_new_run(run.id, run.schedule, &run.key, &[]),
            Body::RunsClaimed { owner, runs } => {
                self.check_event(runs, &RunEvent::Claimed { owner: *owner, at: entry.at })
            }
            Body::RunsStarted { runs } => self.check_event(runs, &RunEvent::Started),
            Body::RunChanged { run, epoch, event } => {
                let current = self.run(*run)?.state.tally().epoch;
                if current != *epoch {
                    return Err(JournalError::StaleEpoch { run: *run, epoch: current, found: *epoch });
                }
                self.check_event(&[*run], event)
            }
        }
    }

    fn check_plan(&self, plan: &PlanEntry) -> Result<(), JournalError> {
        let schedule = self.schedule(plan.schedule)?;
        if schedule.version != plan.version {
            let version = schedule.version;
            return Err(JournalError::OtherVersion { schedule: schedule.id, version, planned: plan.version });
        }
        for id in plan.withdrawn.iter().chain(plan.moved.iter().map(|moved| &moved.id)) {
            if !matches!(self.run(*id)?.state, RunState::Planned { .. }) {
                return Err(JournalError::NotPlanned(*id));
            }
        }
        let mut ids = BTreeSet::new();
        let mut keys = BTreeSet::new();
        for run in &plan.runs {
            self.check_new_run(run.id, Some(plan.schedule), &run.key, &plan.withdrawn)?;
            if !ids.insert(run.id) {
                return Err(JournalError::DuplicateRun(run.id));
            }
            if !keys.insert(&run.key) {
                return Err(JournalError::DuplicateSlot { schedule: plan.schedule, key: run.key.clone() });
            }
        }
        Ok(())
    }

    /// `gone` are the runs that the same entry withdraws: their slots are free.
    fn check_new_run(
        &self,
        id: RunId,
        schedule: Option<ScheduleId>,
        key: &SlotKey,
        gone: &[RunId],
    ) -> Result<(), JournalError> {
        if self.runs.contains_key(&id) {
            return Err(JournalError::DuplicateRun(id));
        }
        let Some(schedule) = schedule else { return Ok(()) };
        let has_slot = |run: &Run| run.schedule == Some(schedule) && run.key == *key && !gone.contains(&run.id);
        if self.runs.values().any(has_slot) {
            return Err(JournalError::DuplicateSlot { schedule, key: key.clone() });
        }
        self.schedule(schedule).map(drop)
    }

    fn check_event(&self, runs: &[RunId], event: &RunEvent) -> Result<(), JournalError> {
        for id in runs {
            let mut after = self.run(*id)?.clone();
            after.take(event).map_err(|cause| JournalError::Illegal { run: *id, cause })?;
        }
        Ok(())
    }

    /// Carries out what has been checked.
    fn take(&mut self, entry: &Entry) {
        match &entry.body {
            Body::ScheduleChanged(schedule) => drop(self.schedules.insert(schedule.id, (**schedule).clone())),
            Body::ScheduleDeleted { schedule } => drop(self.schedules.remove(schedule)),
            Body::Planned(plan) => self.take_plan(plan),
            Body::Skipped(_) => {} // The cursor moves with the plan.
            Body::RunAsked(run) => drop(self.runs.insert(run.id, (**run).clone())),
            Body::RunsClaimed { owner, runs } => {
                runs.iter().for_each(|id| self.take_event(*id, &RunEvent::Claimed { owner: *owner, at: entry.at }));
            }
            Body::RunsStarted { runs } => runs.iter().for_each(|id| self.take_event(*id, &RunEvent::Started)),
            Body::RunChanged { run, event, .. } => self.take_event(*run, event),
        }
    }

    fn take_plan(&mut self, plan: &PlanEntry) {
        for id in &plan.withdrawn {
            self.runs.remove(id);
        }
        for MovedRun { id, scheduled_at, due_at } in &plan.moved {
            let run = self.runs.get_mut(id).expect("the entry has been checked");
            run.scheduled_at = *scheduled_at;
            if let RunState::Planned { due_at: due, .. } = &mut run.state {
                *due = *due_at;
            }
        }
        let schedule = self.schedules.get_mut(&plan.schedule).expect("the entry has been checked");
        schedule.cursor = plan.cursor.clone();
        for run in &plan.runs {
            let planned = Run::planned(run.id, schedule, run.key.clone(), run.scheduled_at, run.due_at);
            self.runs.insert(run.id, planned);
        }
    }

    fn take_event(&mut self, id: RunId, event: &RunEvent) {
        let run = self.runs.get_mut(&id).expect("the entry has been checked");
        let had_started = run.has_started;
        run.take(event).expect("the entry has been checked");
        // A run counts for its schedule once, when it first starts.
        let counts = run.has_started && !had_started;
        if let Some(schedule) = run.schedule.filter(|_| counts).and_then(|id| self.schedules.get_mut(&id)) {
            schedule.runs_started += 1;
        }
    }

    fn schedule(&self, id: ScheduleId) -> Result<&Schedule, JournalError> {
        self.schedules.get(&id).ok_or(JournalError::UnknownSchedule(id))
    }

    fn run(&self, id: RunId) -> Result<&Run, JournalError> {
        self.runs.get(&id).ok_or(JournalError::UnknownRun(id))
    }
}

//! What a stretch of the journal said that was lost: exactly this is forgotten, and no more.

use std::collections::BTreeSet;

use punctual_core::journal::{Body, Entry, World};
use punctual_core::run::RunEvent;
use punctual_core::{NodeId, RunId, ScheduleId};

use crate::invariants::events;

/// What is written while a standby lags.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stretch {
    /// Runs that were claimed, by whom, and the epochs.
    pub(crate) claims: BTreeSet<(NodeId, RunId, u64)>,
    /// Versions of schedules.
    pub(crate) versions: BTreeSet<(ScheduleId, u64)>,
    /// Schedules that were deleted.
    pub(crate) deleted: BTreeSet<ScheduleId>,
    /// Runs that came.
    pub(crate) runs: BTreeSet<RunId>,
    /// Runs to which something happened.
    pub(crate) touched: BTreeSet<RunId>,
    /// Runs that were called off.
    pub(crate) cancelled: BTreeSet<RunId>,
}

impl Stretch {
    /// Takes in an entry; `after` is the world behind it.
    pub(crate) fn note(&mut self, entry: &Entry, after: &World) {
        match &entry.body {
            Body::ScheduleChanged { schedule, .. } => drop(self.versions.insert((schedule.id, schedule.version))),
            Body::ScheduleDeleted { schedule, .. } => drop(self.deleted.insert(*schedule)),
            Body::Planned(plan) => self.runs.extend(plan.runs.iter().map(|run| run.id)),
            Body::RunAsked { run, .. } => drop(self.runs.insert(run.id)),
            Body::RunsClaimed { owner, runs } => {
                let epochs = runs.iter().filter_map(|id| Some((*owner, *id, after.runs.get(id)?.epoch())));
                self.claims.extend(epochs);
            }
            _ => {}
        }
        for (run, event) in events(entry) {
            self.touched.insert(run);
            if matches!(event, RunEvent::Cancelled | RunEvent::CancelAsked) {
                self.cancelled.insert(run);
            }
        }
    }

    /// What was lost before, and this.
    pub(crate) fn add(&mut self, other: Stretch) {
        self.claims.extend(other.claims);
        self.versions.extend(other.versions);
        self.deleted.extend(other.deleted);
        self.runs.extend(other.runs);
        self.touched.extend(other.touched);
        self.cancelled.extend(other.cancelled);
    }
}

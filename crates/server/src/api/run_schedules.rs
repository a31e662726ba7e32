//! Which schedule runs belong to, for entries of the journal that name runs alone.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry as Known;

use punctual_core::journal::{Body, Entry};
use punctual_core::{RunId, ScheduleId};
use punctual_store::{Result, Store};

use super::events::Event;

/// How many runs are remembered. What is forgotten is looked up again.
const KNOWN_MAX: usize = 10_000;

/// What one reader of the journal has learned of runs on the way.
#[derive(Debug, Default)]
pub(crate) struct RunSchedules {
    known: BTreeMap<RunId, Option<ScheduleId>>,
}

impl RunSchedules {
    /// Takes in an entry that says whose runs are.
    pub(crate) fn learn(&mut self, entry: &Entry) {
        if KNOWN_MAX < self.known.len() {
            self.known.clear();
        }
        match &entry.body {
            Body::Planned(plan) => {
                let new = plan.runs.iter().take(KNOWN_MAX).map(|run| (run.id, Some(plan.schedule)));
                self.known.extend(new);
            }
            Body::RunAsked { run, .. } => drop(self.known.insert(run.id, run.schedule)),
            Body::AttemptEnded(attempt) if attempt.retry_at.is_none() => drop(self.known.remove(&attempt.run)),
            _ => {}
        }
    }

    /// Adds the schedule to an event that names a run alone. A run that is gone and was never seen here has none.
    pub(crate) async fn complete(&mut self, event: &mut Event, store: &dyn Store) -> Result<()> {
        let (None, Some(run)) = (event.schedule_id, event.execution_id) else { return Ok(()) };
        event.schedule_id = match self.known.entry(run) {
            Known::Occupied(known) => *known.get(),
            Known::Vacant(unknown) => *unknown.insert(store.run(run).await?.and_then(|run| run.schedule)),
        };
        Ok(())
    }
}

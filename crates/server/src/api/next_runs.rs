//! The next planned run of schedules, for lists of them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use punctual_core::ScheduleId;
use punctual_core::run::Run;
use punctual_core::schedule::Schedule;
use punctual_store::RunFilter;

use crate::app::App;
use crate::error::ApiError;

/// So many schedules are asked about one by one; for more, the queue is read once.
const ONE_BY_ONE_MAX: usize = 20;

/// How much of the queue is read at once.
const QUEUE_READ: usize = 5_000;

/// Runs that somebody asked for may come before the planned one.
const OF_ONE_READ: usize = 10;

/// When the first planned run of each schedule is.
pub(crate) struct NextRuns(BTreeMap<ScheduleId, Timestamp>);

impl NextRuns {
    /// Reads what lies ahead of these schedules.
    pub(crate) async fn read(app: &App, schedules: &[Schedule]) -> Result<NextRuns, ApiError> {
        let mut next = NextRuns(BTreeMap::new());
        let ahead = RunFilter { from: Some(app.now()), only_live: true, limit: QUEUE_READ, ..RunFilter::default() };
        if ONE_BY_ONE_MAX < schedules.len() {
            let queue = app.store.runs(&ahead).await?;
            next.note(&queue);
            if queue.len() < QUEUE_READ {
                return Ok(next);
            }
        }
        for schedule in schedules.iter().filter(|it| it.is_active()) {
            if next.planned(schedule.id).is_none() {
                let of_one = RunFilter { schedule: Some(schedule.id), limit: OF_ONE_READ, ..ahead.clone() };
                next.note(&app.store.runs(&of_one).await?);
            }
        }
        Ok(next)
    }

    /// When the first planned run of a schedule is.
    pub(crate) fn planned(&self, schedule: ScheduleId) -> Option<Timestamp> {
        self.0.get(&schedule).copied()
    }

    /// Notes runs, of which the first of each schedule is the next.
    fn note(&mut self, runs: &[Run]) {
        for run in runs.iter().filter(|run| !run.key.is_manual() && run.planned_for().is_some()) {
            if let Some(schedule) = run.schedule {
                self.0.entry(schedule).or_insert(run.scheduled_at);
            }
        }
    }
}

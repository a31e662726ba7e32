//! Runs that are over: what the entries about one say of it, now that it is history.

use std::sync::Arc;

use jiff::Timestamp;

use super::entry::{Body, Entry, RunEnd};
use crate::run::{AttemptEnd, Run, RunState, Terms};
use crate::time::SlotKey;
use crate::{RunId, ScheduleId};

/// A run that is over, as its entries have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedRun {
    /// The run.
    pub id: RunId,
    /// Its schedule, if it had one.
    pub schedule: Option<ScheduleId>,
    /// What it answered.
    pub key: SlotKey,
    /// Its agent.
    pub agent: String,
    /// Its project.
    pub project: Option<String>,
    /// When its slot was scheduled.
    pub scheduled_at: Timestamp,
    /// When it ended.
    pub ended_at: Timestamp,
    /// Its last epoch.
    pub epoch: u64,
    /// What it came to.
    pub end: RunEnd,
    /// How its last attempt ended, so that the same report twice gets the same answer.
    pub last_end: Option<AttemptEnd>,
}

impl EndedRun {
    /// A run that an entry has ended; `None` if it has ended none.
    pub fn of(entry: &Entry) -> Option<EndedRun> {
        match &entry.body {
            Body::AttemptEnded(attempt) => attempt.end.map(|end| EndedRun {
                id: attempt.run,
                schedule: attempt.schedule,
                key: attempt.key.clone(),
                agent: attempt.agent.clone(),
                project: attempt.project.clone(),
                scheduled_at: attempt.scheduled_at,
                ended_at: entry.at,
                epoch: attempt.epoch,
                end,
                last_end: Some(attempt.last_end(end.state(attempt.epoch))),
            }),
            Body::RunChanged(change) => change.end.map(|end| EndedRun {
                id: change.run,
                schedule: change.schedule,
                key: change.key.clone(),
                agent: change.agent.clone(),
                project: change.project.clone(),
                scheduled_at: change.scheduled_at,
                ended_at: entry.at,
                epoch: change.epoch,
                end,
                last_end: change.last_end,
            }),
            _ => None,
        }
    }

    /// Its state.
    pub fn state(&self) -> RunState {
        self.end.state(self.epoch)
    }

    /// The run, with the terms that it was carried out under.
    pub fn into_run(self, terms: Arc<Terms>) -> Run {
        Run {
            state: self.state(),
            id: self.id,
            schedule: self.schedule,
            version: self.end.version,
            key: self.key,
            scheduled_at: self.scheduled_at,
            due_at: self.end.due_at,
            expires_at: None,
            follows: None,
            terms,
            started_at: None,
            ended_at: Some(self.ended_at),
            has_started: self.end.has_started,
            is_parked: false,
            is_cancelling: self.end.is_cancelling,
            last_end: self.last_end,
        }
    }
}

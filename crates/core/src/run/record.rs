//! A run: the durable record of answering one slot, event or request by a person.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::retry::RetryPolicy;
use super::state::{AfterLoss, IllegalTransition, Rules, RunEvent, RunState};
use crate::schedule::{Priority, Schedule, Work};
use crate::time::SlotKey;
use crate::{RunId, ScheduleId};

/// A run, with all that is needed to carry it out when its schedule has changed or gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Its id.
    pub id: RunId,
    /// The schedule that it belongs to; none for a request that names an agent alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<ScheduleId>,
    /// The schedule's version in force when it was planned.
    pub version: u64,
    /// What it answers, unique within the schedule.
    pub key: SlotKey,
    /// When its slot is scheduled; for an event or a request, when that came.
    pub scheduled_at: Timestamp,
    /// The project that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// What is to be done.
    pub work: Work,
    /// How urgent it is.
    pub priority: Priority,
    /// When a failed try is followed by another.
    pub retry: RetryPolicy,
    /// What follows when its node is lost while the work runs.
    pub after_loss: AfterLoss,
    /// Where it is in its life.
    pub state: RunState,
    /// Whether the work has ever begun; a run counts for its schedule once, however often it is tried.
    #[serde(default)]
    pub has_started: bool,
}

impl Run {
    /// The run of a slot of `schedule`.
    pub fn planned(id: RunId, schedule: &Schedule, key: SlotKey, scheduled_at: Timestamp, due_at: Timestamp) -> Run {
        Run {
            id,
            schedule: Some(schedule.id),
            version: schedule.version,
            key,
            scheduled_at,
            project: schedule.project.clone(),
            work: schedule.work.clone(),
            priority: schedule.policy.priority,
            retry: schedule.policy.retry,
            after_loss: schedule.policy.after_loss,
            state: RunState::planned(due_at),
            has_started: false,
        }
    }

    /// Takes in what happened to it.
    pub fn take(&mut self, event: &RunEvent) -> Result<(), IllegalTransition> {
        let rules = Rules { run: self.id, retry: self.retry, after_loss: self.after_loss };
        self.state = self.state.on(event, &rules)?;
        self.has_started |= matches!(event, RunEvent::Started);
        Ok(())
    }
}

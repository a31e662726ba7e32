//! Terms: what a run takes over from its schedule, so that it can be carried out when that has changed or gone.

use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::retry::RetryPolicy;
use super::state::AfterLoss;
use crate::Elapsed;
use crate::schedule::{Concurrency, MaxDelay, Overlap, Policy, Priority, Schedule, Work};

/// The terms under which a run is carried out. All runs of one version of a schedule share them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Terms {
    /// The project that the run belongs to.
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
    /// How long the work may run.
    pub timeout: Elapsed,
    /// What happens when it is due while another run of its schedule is at work.
    pub overlap: Overlap,
    /// How late it may start.
    pub max_delay: MaxDelay,
    /// How many runs of its agent may be at work, itself included.
    pub max_concurrent: NonZeroU32,
    /// With which other runs it shares a limit of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<Concurrency>,
    /// Whether a person has to approve it, if its agent may write or execute.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub risk_gate: bool,
}

impl Terms {
    /// Whether they are what a schedule says about its runs now.
    pub fn are_of(&self, schedule: &Schedule) -> bool {
        let policy = &schedule.policy;
        (self.priority, self.retry, self.after_loss, self.timeout)
            == (policy.priority, policy.retry, policy.after_loss, policy.timeout)
            && (self.overlap, self.max_delay, self.max_concurrent, self.risk_gate)
                == (policy.overlap, policy.max_delay, policy.max_concurrent, policy.risk_gate)
            && self.concurrency == policy.concurrency
            && schedule.project == self.project
            && self.work == schedule.work
    }

    /// What a schedule says about its runs now.
    pub fn of(schedule: &Schedule) -> Terms {
        Terms::under(&schedule.policy, Option::clone(&schedule.project), schedule.work.clone())
    }

    /// What a policy says about the runs of a project's work.
    pub fn under(policy: &Policy, project: Option<String>, work: Work) -> Terms {
        Terms {
            project,
            work,
            priority: policy.priority,
            retry: policy.retry,
            after_loss: policy.after_loss,
            timeout: policy.timeout,
            overlap: policy.overlap,
            max_delay: policy.max_delay,
            max_concurrent: policy.max_concurrent,
            concurrency: policy.concurrency.clone(),
            risk_gate: policy.risk_gate,
        }
    }
}

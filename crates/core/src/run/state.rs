//! The life of a run: its states, what can happen to it, and the one function that decides.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::outcome::{FailureCode, Outcome, SkipReason};
use super::retry::RetryPolicy;
use crate::{Elapsed, NodeId, RunId};

/// The life of a run. `docs/lifecycle.md` draws it; [`RunState::on`] decides it.
///
/// "Ready" is not a state: it is a planned run, unblocked, whose `due_at` has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum RunState {
    /// Nobody's yet: a first start, a retry that is backing off, or a run that goes on after a wait.
    Planned {
        /// When it may be claimed.
        due_at: Timestamp,
        /// Whether it goes on after a wait: claiming it then is the same attempt.
        resumes: bool,
        /// What has been counted so far.
        tally: Tally,
    },
    /// Taken by one node; nothing has happened yet.
    Claimed {
        /// The node that holds it.
        owner: NodeId,
        /// Whether it goes on after a wait.
        resumes: bool,
        /// What has been counted so far.
        tally: Tally,
    },
    /// At work. Written before the work begins.
    Running {
        /// The node that holds it.
        owner: NodeId,
        /// What has been counted so far.
        tally: Tally,
    },
    /// Nobody's, and not to be claimed, until something comes or `wait_until` is past.
    Waiting {
        /// What it waits for.
        on: WaitFor,
        /// When the wait is given up.
        wait_until: Timestamp,
        /// What has been counted so far.
        tally: Tally,
    },
    /// Final. Only retention touches it again.
    Finished {
        /// How it ended.
        outcome: Outcome,
        /// What had been counted by then.
        tally: Tally,
    },
}

/// What is counted over the life of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tally {
    /// Tries so far, counted at the claim.
    pub attempt: u32,
    /// Raised by every claim; a write that names an older one changes nothing.
    pub epoch: u64,
    /// How often an owner was lost or stopped while the work ran, or lost after it had been claimed to go on.
    pub losses: u32,
}

/// What a waiting run waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WaitFor {
    /// A person's approval.
    Approval,
    /// The target's call back.
    Callback,
    /// A child run.
    Child,
}

/// What can happen to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum RunEvent {
    /// A node took it.
    Claimed {
        /// The node.
        owner: NodeId,
        /// When.
        at: Timestamp,
    },
    /// The work begins.
    Started,
    /// It is answered without a try: by admission, or by a sweep over runs that were never claimed.
    Skipped(SkipReason),
    /// The node gives it back before the work began, with the attempt: it stops, or the run has to queue.
    HandedBack {
        /// When it may be claimed again.
        due_at: Timestamp,
        /// Whether it waits for the run of its schedule that is at work, blocked until that has ended.
        parks: bool,
    },
    /// It has to wait, and leaves its node.
    Waits {
        /// For what.
        on: WaitFor,
        /// Until when at most.
        wait_until: Timestamp,
    },
    /// What it waited for has come.
    Resumed {
        /// When.
        at: Timestamp,
    },
    /// What it waited for has not come in time.
    WaitExpired {
        /// When.
        at: Timestamp,
    },
    /// The work was done.
    Succeeded,
    /// The work was not done.
    Failed {
        /// When.
        at: Timestamp,
        /// Why.
        code: FailureCode,
        /// Whether another try may help.
        is_retryable: bool,
        /// How long the target asked us to stay away.
        retry_after: Option<Elapsed>,
    },
    /// Its node is gone.
    OwnerLost {
        /// When that was established.
        at: Timestamp,
    },
    /// Its node was told to stop, and ended the work.
    Stopped {
        /// When.
        at: Timestamp,
    },
    /// It was called off.
    Cancelled,
    /// It is to be called off, but is at work: its node has to stop it first.
    CancelAsked,
    /// It may start however late: it had been waiting for a place when its day ended.
    Kept,
    /// It found another run of its schedule at work, which it replaces, and waits for its end.
    Parked,
}

/// What the state machine needs to know of a run besides its state.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// Which run: the jitter of its retries follows from it.
    pub run: RunId,
    /// When a failed try is followed by another.
    pub retry: RetryPolicy,
    /// What follows when a node is lost while the work runs.
    pub after_loss: AfterLoss,
    /// Whether somebody has called the run off while it was at work: whatever its node reports, nothing more is tried.
    pub is_cancelling: bool,
}

/// How often an owner may be lost or stopped before a stop counts as an attempt: work that restarts its own node must come to an
/// end.
pub const STOPS_MAX: u32 = 20;

/// What follows when a node is lost or stopped while the work runs, and the work may have been done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AfterLoss {
    /// Try again: at once the first time, then with backoff. After a stop, always at once.
    #[default]
    Retry,
    /// Risk nothing twice: the run ends as `unknown`.
    Hold,
}

/// Something that cannot happen to a run in its state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a run that is {state} cannot be {event}")]
pub struct IllegalTransition {
    /// The state's name.
    pub state: &'static str,
    /// The event's name.
    pub event: &'static str,
}

impl RunState {
    /// A run that nobody has touched. Its first claim has the epoch behind `epoch`.
    pub fn planned(due_at: Timestamp, epoch: u64) -> RunState {
        RunState::Planned { due_at, resumes: false, tally: Tally { epoch, ..Tally::default() } }
    }

    /// Lifts the epoch to a floor, so that whoever held the run before holds it no more.
    pub fn raise_epoch(&mut self, floor: u64) {
        match self {
            RunState::Planned { tally, .. }
            | RunState::Claimed { tally, .. }
            | RunState::Running { tally, .. }
            | RunState::Waiting { tally, .. } => tally.epoch = tally.epoch.max(floor),
            RunState::Finished { .. } => {}
        }
    }

    /// The state after `event`, or the reason there is none.
    pub fn on(&self, event: &RunEvent, rules: &Rules) -> Result<RunState, IllegalTransition> {
        let next = self.follow(event, rules)?;
        let leaves_its_node = matches!(next, RunState::Planned { .. } | RunState::Waiting { .. });
        if rules.is_cancelling && leaves_its_node {
            return Ok(RunState::Finished { outcome: Outcome::Cancelled, tally: next.tally() });
        }
        Ok(next)
    }

    fn follow(&self, event: &RunEvent, rules: &Rules) -> Result<RunState, IllegalTransition> {
        use {RunEvent as E, RunState as S};
        Ok(match (*self, *event) {
            (S::Planned { due_at, resumes, tally }, E::Claimed { owner, at }) if due_at <= at => {
                // Going on after a wait is the same attempt, under a new epoch.
                let attempt = tally.attempt + u32::from(!resumes);
                S::Claimed { owner, resumes, tally: Tally { attempt, epoch: tally.epoch + 1, ..tally } }
            }
            (S::Claimed { owner, tally, .. }, E::Started) => S::Running { owner, tally },
            (S::Claimed { resumes, tally, .. }, E::HandedBack { due_at, .. }) => {
                // What the claim had counted is given back, and only that.
                let attempt = tally.attempt.saturating_sub(u32::from(!resumes));
                S::Planned { due_at, resumes, tally: Tally { attempt, ..tally } }
            }
            (S::Claimed { tally, .. } | S::Running { tally, .. }, E::Waits { on, wait_until }) => {
                S::Waiting { on, wait_until, tally }
            }
            (S::Waiting { tally, .. }, E::Resumed { at }) => S::Planned { due_at: at, resumes: true, tally },
            (S::Waiting { on: WaitFor::Approval, tally, .. }, E::WaitExpired { .. }) => {
                // Silence is a no.
                S::Finished { outcome: Outcome::Cancelled, tally }
            }
            (S::Waiting { tally, .. }, E::WaitExpired { at }) => {
                rules.after_failure(tally, at, FailureCode::WaitExpired, None)
            }
            (S::Running { tally, .. }, E::Succeeded) => S::Finished { outcome: Outcome::Succeeded, tally },
            // The target's call back is the end of the work.
            (S::Waiting { on: WaitFor::Callback, tally, .. }, E::Succeeded) => {
                S::Finished { outcome: Outcome::Succeeded, tally }
            }
            (
                S::Running { tally, .. } | S::Waiting { on: WaitFor::Callback, tally, .. },
                E::Failed { at, code, is_retryable, retry_after },
            ) => {
                if is_retryable {
                    rules.after_failure(tally, at, code, retry_after)
                } else {
                    S::Finished { outcome: Outcome::Failed(code), tally }
                }
            }
            // Nothing was begun, but the claim stays counted: what kills its node each time must end.
            (S::Claimed { resumes, tally, .. }, E::OwnerLost { at }) => rules.after_lost_claim(resumes, tally, at),
            // The work may have been done: the policy says whether to risk it twice.
            (S::Running { tally, .. }, E::OwnerLost { at }) => rules.after_lost_work(tally, at),
            (S::Running { tally, .. }, E::Stopped { at }) => rules.after_stop(tally, at),
            (S::Planned { tally, .. } | S::Claimed { tally, .. }, E::Skipped(reason)) => {
                S::Finished { outcome: Outcome::Skipped(reason), tally }
            }
            (
                S::Planned { tally, .. }
                | S::Claimed { tally, .. }
                | S::Running { tally, .. }
                | S::Waiting { tally, .. },
                E::Cancelled,
            ) => S::Finished { outcome: Outcome::Cancelled, tally },
            (state @ S::Running { .. }, E::CancelAsked) => state,
            (state @ S::Planned { .. }, E::Kept | E::Parked) => state,
            (state, event) => {
                return Err(IllegalTransition { state: state.name(), event: event.name() });
            }
        })
    }

    /// Whether nothing can happen to the run any more.
    pub fn is_final(&self) -> bool {
        matches!(self, RunState::Finished { .. })
    }

    /// What has been counted so far.
    pub fn tally(&self) -> Tally {
        match self {
            RunState::Planned { tally, .. }
            | RunState::Claimed { tally, .. }
            | RunState::Running { tally, .. }
            | RunState::Waiting { tally, .. }
            | RunState::Finished { tally, .. } => *tally,
        }
    }

    /// The state's name in SQL, JSON and `docs/lifecycle.md`; a finished run is named by its outcome.
    pub fn name(&self) -> &'static str {
        match self {
            RunState::Planned { .. } => "planned",
            RunState::Claimed { .. } => "claimed",
            RunState::Running { .. } => "running",
            RunState::Waiting { .. } => "waiting",
            RunState::Finished { outcome, .. } => match outcome {
                Outcome::Succeeded => "succeeded",
                Outcome::Failed(_) => "failed",
                Outcome::Unknown => "unknown",
                Outcome::Cancelled => "cancelled",
                Outcome::Skipped(_) => "skipped",
            },
        }
    }
}

impl RunEvent {
    /// The event's name in `docs/lifecycle.md`.
    pub fn name(&self) -> &'static str {
        match self {
            RunEvent::Claimed { .. } => "claimed",
            RunEvent::Started => "started",
            RunEvent::Skipped(_) => "skipped",
            RunEvent::HandedBack { .. } => "handed back",
            RunEvent::Waits { .. } => "put to wait",
            RunEvent::Resumed { .. } => "resumed",
            RunEvent::WaitExpired { .. } => "expired",
            RunEvent::Succeeded => "succeeded",
            RunEvent::Failed { .. } => "failed",
            RunEvent::OwnerLost { .. } => "lost",
            RunEvent::Stopped { .. } => "stopped",
            RunEvent::Cancelled => "cancelled",
            RunEvent::CancelAsked => "asked to stop",
            RunEvent::Kept => "kept",
            RunEvent::Parked => "parked",
        }
    }
}

impl Rules {
    fn after_failure(&self, tally: Tally, at: Timestamp, code: FailureCode, retry_after: Option<Elapsed>) -> RunState {
        match self.retry.next(self.run, tally.attempt, retry_after) {
            Some(rest) => RunState::Planned { due_at: later(at, rest), resumes: false, tally },
            None => RunState::Finished { outcome: Outcome::Failed(code), tally },
        }
    }

    /// A claim that goes on after a wait has counted nothing, so there it is the losses that come to an end.
    fn after_lost_claim(&self, resumes: bool, tally: Tally, at: Timestamp) -> RunState {
        let tally = Tally { losses: tally.losses + u32::from(resumes), ..tally };
        let counted = if resumes { tally.losses } else { tally.attempt };
        if self.retry.max_attempts.get() <= counted {
            return RunState::Finished { outcome: Outcome::Failed(FailureCode::OwnerLost), tally };
        }
        RunState::Planned { due_at: at, resumes, tally }
    }

    fn after_lost_work(&self, tally: Tally, at: Timestamp) -> RunState {
        let tally = Tally { losses: tally.losses + 1, ..tally };
        match self.after_loss {
            AfterLoss::Hold => RunState::Finished { outcome: Outcome::Unknown, tally },
            AfterLoss::Retry if tally.losses == 1 => self.after_lost_claim(false, tally, at),
            AfterLoss::Retry => self.after_failure(tally, at, FailureCode::OwnerLost, None),
        }
    }

    /// A stop is the operator's act and no fault of the work: the attempt is given back, and the next begins at once.
    fn after_stop(&self, tally: Tally, at: Timestamp) -> RunState {
        let tally = Tally { losses: tally.losses.saturating_add(1), ..tally };
        match self.after_loss {
            AfterLoss::Hold => RunState::Finished { outcome: Outcome::Unknown, tally },
            AfterLoss::Retry if STOPS_MAX < tally.losses => self.after_failure(tally, at, FailureCode::OwnerLost, None),
            AfterLoss::Retry => {
                let attempt = tally.attempt.saturating_sub(1);
                RunState::Planned { due_at: at, resumes: false, tally: Tally { attempt, ..tally } }
            }
        }
    }
}

fn later(at: Timestamp, rest: Elapsed) -> Timestamp {
    at.checked_add(rest.duration()).unwrap_or(Timestamp::MAX)
}

//! A run: the durable record of answering one slot, event or request by a person.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::state::{IllegalTransition, Rules, RunEvent, RunState};
use super::terms::Terms;
use crate::journal::PlannedRun;
use crate::schedule::{MaxDelay, Schedule};
use crate::time::SlotKey;
use crate::{NodeId, RunId, ScheduleId};

/// A run, with all that is needed to carry it out when its schedule has changed or gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Its id.
    pub id: RunId,
    /// The schedule that it belongs to; none for a request that names an agent alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<ScheduleId>,
    /// The schedule's version in force when it was planned, or when it was last edited before anybody took the run.
    pub version: u64,
    /// What it answers, unique within the schedule.
    pub key: SlotKey,
    /// When its slot is scheduled; for an event or a request, when that came.
    pub scheduled_at: Timestamp,
    /// When it first becomes due. A retry is due later, which its state says.
    pub due_at: Timestamp,
    /// When it is too late to be begun at all, unless somebody has looked at it before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// The run that has to start before this one may be claimed: missed slots are made up for in order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follows: Option<RunId>,
    /// The terms under which it is carried out.
    pub terms: Arc<Terms>,
    /// Where it is in its life.
    pub state: RunState,
    /// When the attempt at work began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When the run came to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// Whether the work has ever begun; a run counts for its schedule once, however often it is tried.
    #[serde(default)]
    pub has_started: bool,
    /// Whether it was looked at when it was due, and has to wait for the run of its schedule that is at work.
    #[serde(default)]
    pub is_parked: bool,
    /// Whether somebody has called it off while it was at work: its node has to stop it.
    #[serde(default)]
    pub is_cancelling: bool,
    /// How its last attempt ended, so that the same report twice gets the same answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_end: Option<AttemptEnd>,
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttemptEnd {
    /// The epoch of the attempt.
    pub epoch: u64,
    /// A digest of what was reported.
    pub digest: u64,
    /// The state that followed.
    pub state: RunState,
}

impl Run {
    /// The run of a slot of a schedule, as it is before any node has claimed it.
    pub fn of_slot(schedule: &Schedule, terms: &Arc<Terms>, planned: &PlannedRun, epoch_floor: u64) -> Run {
        Run {
            id: planned.id,
            schedule: Some(schedule.id),
            version: schedule.version,
            key: planned.key.clone(),
            scheduled_at: planned.scheduled_at,
            due_at: planned.due_at,
            expires_at: planned.expires_at,
            follows: planned.follows,
            terms: Arc::clone(terms),
            state: RunState::planned(planned.due_at, epoch_floor),
            started_at: None,
            ended_at: None,
            has_started: false,
            is_parked: false,
            is_cancelling: false,
            last_end: None,
        }
    }

    /// A run that somebody asks for, of a schedule in its version or of none. No slot stands for it.
    pub fn asked(id: RunId, of: Option<(ScheduleId, u64)>, key: SlotKey, at: Timestamp, terms: Arc<Terms>) -> Run {
        Run {
            id,
            schedule: of.map(|(schedule, _)| schedule),
            version: of.map_or(0, |(_, version)| version),
            key,
            scheduled_at: at,
            due_at: at,
            expires_at: None,
            follows: None,
            terms,
            state: RunState::planned(at, 0),
            started_at: None,
            ended_at: None,
            has_started: false,
            is_parked: false,
            is_cancelling: false,
            last_end: None,
        }
    }

    /// What it is after something has happened to it at an instant.
    pub fn after(&self, event: &RunEvent, at: Timestamp) -> Result<Run, IllegalTransition> {
        let mut after = self.clone();
        after.take(event, at)?;
        Ok(after)
    }

    /// Whether something can happen to it.
    pub fn can_take(&self, event: &RunEvent) -> Result<(), IllegalTransition> {
        self.state_after(event).map(drop)
    }

    fn state_after(&self, event: &RunEvent) -> Result<RunState, IllegalTransition> {
        let (terms, is_cancelling) = (&self.terms, self.is_cancelling);
        let rules = Rules { run: self.id, retry: terms.retry, after_loss: terms.after_loss, is_cancelling };
        self.state.on(event, &rules)
    }

    /// Takes in what happened to it at an instant.
    pub fn take(&mut self, event: &RunEvent, at: Timestamp) -> Result<(), IllegalTransition> {
        self.state = self.state_after(event)?;
        match event {
            RunEvent::Started => {
                self.has_started = true;
                self.started_at = Some(at);
            }
            RunEvent::HandedBack { parks, .. } => self.is_parked |= *parks,
            RunEvent::Parked => self.is_parked = true,
            RunEvent::CancelAsked => self.is_cancelling = true,
            _ => {}
        }
        if self.was_looked_at(event) {
            self.expires_at = None;
        }
        if !matches!(self.state, RunState::Running { .. }) {
            self.started_at = None;
        }
        if self.state.is_final() {
            self.ended_at = Some(at);
        }
        Ok(())
    }

    /// Whether it has been on time once, so that it is never too late any more.
    fn was_looked_at(&self, event: &RunEvent) -> bool {
        match event {
            RunEvent::Started
            | RunEvent::Waits { .. }
            | RunEvent::OwnerLost { .. }
            | RunEvent::Stopped { .. }
            | RunEvent::Kept => true,
            // A run that had to queue was there on its day; a delay in minutes goes on counting.
            RunEvent::HandedBack { parks: true, .. } | RunEvent::Parked => self.terms.max_delay == MaxDelay::Day,
            _ => false,
        }
    }

    /// When it may be claimed, while it is planned.
    pub fn planned_for(&self) -> Option<Timestamp> {
        match self.state {
            RunState::Planned { due_at, .. } => Some(due_at),
            _ => None,
        }
    }

    /// Whether no node has ever taken it.
    pub fn is_untouched(&self) -> bool {
        let is_planned = matches!(self.state, RunState::Planned { resumes: false, tally, .. } if tally.attempt == 0);
        is_planned && !self.is_parked && !self.has_started
    }

    /// Whether a node has it, or it waits in the middle of its work.
    pub fn is_active(&self) -> bool {
        self.owner().is_some() || matches!(self.state, RunState::Waiting { .. })
    }

    /// Whether `newer` calls it off, under [`Replace`](crate::schedule::Overlap::Replace): it became due before, and is at work or waits to replace
    /// others itself.
    pub fn is_replaced_by(&self, newer: &Run) -> bool {
        let is_before = (self.due_at, self.id) < (newer.due_at, newer.id);
        is_before && (self.is_active() || self.is_parked && self.planned_for().is_some())
    }

    /// The node that has it.
    pub fn owner(&self) -> Option<NodeId> {
        match self.state {
            RunState::Claimed { owner, .. } | RunState::Running { owner, .. } => Some(owner),
            _ => None,
        }
    }

    /// Its epoch.
    pub fn epoch(&self) -> u64 {
        self.state.tally().epoch
    }
}

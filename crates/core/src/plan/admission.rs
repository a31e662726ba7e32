//! Admission: may a claimed run start?

use jiff::Timestamp;

use super::day::day_ended_at;
use crate::run::SkipReason;
use crate::schedule::{MaxDelay, Overlap, PauseKind};
use crate::time::{SlotKey, Zone};

/// A claimed run, as admission sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The key of its slot, event or manual trigger.
    pub key: SlotKey,
    /// When its slot was scheduled.
    pub scheduled_at: Timestamp,
    /// When it became due.
    pub due_at: Timestamp,
    /// Which try this is; 1 is the first.
    pub attempt: u32,
    /// Whether its work has begun before.
    pub has_begun: bool,
    /// Whether it goes on after a wait.
    pub resumes: bool,
    /// Whether a node has looked at it before and sent it back to queue.
    pub was_offered: bool,
}

/// What is true of the world when a run is admitted.
#[derive(Debug, Clone)]
pub struct Facts<'a> {
    /// The time.
    pub now: Timestamp,
    /// The zone of the schedule: its day is the run's day.
    pub zone: &'a Zone,
    /// Whether the schedule is paused, and how.
    pub pause: Option<PauseKind>,
    /// Whether any live node has the agent, or had it a moment ago.
    pub agent_exists: bool,
    /// How late the run may start.
    pub max_delay: MaxDelay,
    /// The schedule's condition, if it has one. Null counts as false.
    pub condition: Option<bool>,
    /// What happens when another run of the schedule is at work.
    pub overlap: Overlap,
    /// Whether another run of the schedule has been admitted and is not over: running, waiting, or let in just before.
    pub is_busy: bool,
    /// Whether there is money left for it.
    pub has_budget: bool,
    /// Whether the run's schedule asks for an approval.
    pub risk_gate: bool,
    /// Whether the agent may change anything: a schedule's gate is only for such agents.
    pub agent_may_change: bool,
    /// Which runs of the agent need an approval, as its operator says.
    pub agent_approval: AgentApproval,
}

/// Which runs of an agent need an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum AgentApproval {
    /// Every run, wherever it comes from.
    Always,
    /// Runs of a schedule that asks for it, if the agent may change anything.
    #[default]
    Schedule,
}

impl AgentApproval {
    /// The word for it in the configuration, in JSON and on the pages.
    pub fn as_str(self) -> &'static str {
        match self {
            AgentApproval::Always => "always",
            AgentApproval::Schedule => "schedule",
        }
    }
}

/// What becomes of a claimed run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Admission {
    /// It starts.
    Start,
    /// It ends without a try.
    Skip(SkipReason),
    /// It cannot start now, and keeps its place.
    Park(ParkReason),
}

/// Why a run cannot start now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ParkReason {
    /// It waits for the run before it to end: handed back, blocked until then.
    Queued,
    /// It replaces the run before it, which is to be cancelled: handed back, blocked until then.
    Replaces,
    /// It waits for an approval.
    NeedsApproval,
}

/// Decides about a claimed run: paused, agent, late, condition, overlap, budget, risk, in this order.
pub fn admit(run: &Candidate, facts: &Facts<'_>) -> Admission {
    let is_manual = run.key.is_manual();
    // A run that goes on after a wait is in the middle of its work: a pause lets it end.
    if let Some(kind) = facts.pause
        && !is_manual
        && !run.resumes
    {
        return Admission::Skip(kind.skip_reason());
    }
    if !facts.agent_exists {
        return Admission::Skip(SkipReason::AgentRemoved);
    }
    if let Some(reason) = too_late(run, facts) {
        return Admission::Skip(reason);
    }
    if facts.condition == Some(false) {
        return Admission::Skip(SkipReason::ConditionFalse);
    }
    // It was let in before the other: what is half done is not given up for what has just begun.
    if facts.is_busy && !run.resumes {
        match facts.overlap {
            Overlap::Allow => {}
            Overlap::Skip => return Admission::Skip(SkipReason::Overlap),
            Overlap::Queue => return Admission::Park(ParkReason::Queued),
            Overlap::Replace => return Admission::Park(ParkReason::Replaces),
        }
    }
    if !facts.has_budget {
        return Admission::Skip(SkipReason::Budget);
    }
    if lacks_approval(run, facts) {
        return Admission::Park(ParkReason::NeedsApproval);
    }
    Admission::Start
}

/// Whether the run needs an approval that it does not have.
///
/// An approval is for one start: a run that goes on after its wait has it, and the next attempt asks again.
fn lacks_approval(run: &Candidate, facts: &Facts<'_>) -> bool {
    let is_gated = match facts.agent_approval {
        AgentApproval::Always => true,
        AgentApproval::Schedule => facts.risk_gate && facts.agent_may_change,
    };
    is_gated && !run.resumes
}

/// Only a first start can be too late: a retry, a run that was stopped and a run that goes on have been on time once.
fn too_late(run: &Candidate, facts: &Facts<'_>) -> Option<SkipReason> {
    if 1 < run.attempt || run.has_begun || run.resumes {
        return None;
    }
    match facts.max_delay {
        MaxDelay::None => None,
        MaxDelay::Duration(delay) => {
            let latest = run.due_at.checked_add(delay.duration()).unwrap_or(Timestamp::MAX);
            (latest < facts.now).then_some(SkipReason::Late)
        }
        // Events and people do not ask for a day, and a run that had to queue was there in time.
        MaxDelay::Day if run.key.is_event() || run.key.is_manual() || run.was_offered => None,
        MaxDelay::Day => (day_ended_at(facts.zone, run.scheduled_at) < facts.now).then_some(SkipReason::DayEnded),
    }
}

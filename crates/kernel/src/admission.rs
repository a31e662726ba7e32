//! Admission of claimed runs: what each may do, as its node and its schedule say.

use jiff::{SignedDuration, Timestamp};
use punctual_core::plan::{Admission, AgentApproval, Candidate, Facts, ParkReason, admit};
use punctual_core::run::{RunState, WaitFor};
use punctual_core::schedule::{Schedule, ScheduleState};
use punctual_core::time::Zone;

use crate::types::{ClaimedRun, Decision, StartRequest};

/// How long a run rests of which an older attempt still dies at its node.
const DYING: SignedDuration = SignedDuration::from_secs(1);

/// What admission decided about one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Admitted {
    /// What becomes of it.
    pub decision: Decision,
    /// Whether the runs of its schedule that are at work are cancelled for it.
    pub replaces: bool,
}

/// Decides about a claimed run.
pub fn decide(claimed: &ClaimedRun, request: &StartRequest, now: Timestamp) -> Admitted {
    let run = &claimed.run;
    let as_decided = |decision| Admitted { decision, replaces: false };
    if request.held.range((run.id, 0)..=(run.id, u64::MAX)).next().is_some() {
        return as_decided(Decision::HandBack { due_at: later(now, DYING), parks: false });
    }
    let RunState::Claimed { resumes, tally, .. } = run.state else {
        unreachable!("only claimed runs are admitted");
    };
    let zone = zone_of(claimed.schedule.as_deref(), request);
    let pause = claimed.schedule.as_ref().and_then(|schedule| match &schedule.state {
        ScheduleState::Paused(pause) => Some(pause.kind),
        ScheduleState::Active | ScheduleState::Ended(_) => None,
    });
    let candidate = Candidate {
        key: run.key.clone(),
        scheduled_at: run.scheduled_at,
        due_at: run.due_at,
        attempt: tally.attempt,
        has_begun: run.has_started,
        resumes,
        // What was looked at once has no end of its time any more.
        was_offered: run.is_parked || run.expires_at.is_none(),
    };
    // An agent of which nothing is known may do anything.
    let agent = request.agents.get(run.terms.work.agent());
    let facts = Facts {
        now,
        zone: &zone,
        pause,
        agent_exists: true, // A node claims only for agents that it has.
        max_delay: run.terms.max_delay,
        condition: None,
        overlap: run.terms.overlap,
        is_busy: claimed.is_busy,
        has_budget: true,
        risk_gate: run.terms.risk_gate,
        agent_may_change: agent.is_none_or(|agent| agent.may_change),
        agent_approval: agent.map_or_else(AgentApproval::default, |agent| agent.approval),
    };
    match admit(&candidate, &facts) {
        Admission::Start => as_decided(Decision::Start),
        Admission::Skip(reason) => as_decided(Decision::Skip(reason)),
        Admission::Park(ParkReason::NeedsApproval) => {
            let wait_until = later(now, request.approval_wait.duration());
            as_decided(Decision::Wait { on: WaitFor::Approval, wait_until })
        }
        Admission::Park(reason) => {
            let decision = Decision::HandBack { due_at: run.due_at.min(now), parks: true };
            Admitted { decision, replaces: reason == ParkReason::Replaces }
        }
    }
}

fn zone_of(schedule: Option<&Schedule>, request: &StartRequest) -> Zone {
    let zones = request.timetables.zones();
    let own = schedule.and_then(|schedule| zones.get(&schedule.zone).ok());
    own.unwrap_or_else(|| zones.get("UTC").expect("all zone data has UTC"))
}

fn later(at: Timestamp, by: SignedDuration) -> Timestamp {
    at.checked_add(by).unwrap_or(Timestamp::MAX)
}

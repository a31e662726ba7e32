//! Events: the journal in the words of the executions face. One entry may be several, as it may be about many runs.

use jiff::Timestamp;
use punctual_core::journal::{Body, Entry};
use punctual_core::run::RunEvent;
use punctual_core::schedule::ScheduleState;
use punctual_core::{By, RunId, ScheduleId};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Event {
    /// The number of its entry in the journal.
    pub(crate) seq: u64,
    #[schema(value_type = String, format = DateTime)]
    pub(crate) at: Timestamp,
    /// What happened.
    #[serde(rename = "type")]
    #[schema(example = "EXEC_FINISHED")]
    pub(crate) kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<uuid::Uuid>)]
    pub(crate) schedule_id: Option<ScheduleId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<uuid::Uuid>)]
    pub(crate) execution_id: Option<RunId>,
    /// Who asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub(crate) by: Option<By>,
    /// More about it, by its type.
    #[schema(value_type = Object)]
    pub(crate) detail: Value,
}

/// The events of an entry.
pub(crate) fn events(entry: &Entry) -> Vec<Event> {
    let event = |kind, execution_id: Option<RunId>, detail| Event {
        seq: entry.seq,
        at: entry.at,
        kind,
        schedule_id: entry.body.schedule(),
        execution_id,
        by: entry.body.by().cloned(),
        detail,
    };
    let each = |kind, runs: &[RunId]| runs.iter().map(|run| event(kind, Some(*run), json!({}))).collect::<Vec<_>>();
    match &entry.body {
        Body::ScheduleChanged { schedule, .. } => {
            let kind = match (&schedule.state, schedule.version) {
                (_, 1) => "SCHEDULE_CREATED",
                (ScheduleState::Paused(_), _) => "SCHEDULE_DISABLED",
                _ => "SCHEDULE_UPDATED",
            };
            let detail =
                json!({"version": schedule.version, "agentId": schedule.work.agent(), "state": schedule.state});
            vec![event(kind, None, detail)]
        }
        Body::ScheduleDeleted { .. } => vec![event("SCHEDULE_DELETED", None, json!({}))],
        Body::Planned(plan) => {
            // The slot that comes next was told when it came to be that.
            let untold = plan.runs.iter().skip(usize::from(plan.was_next)).chain(&plan.next);
            let new = untold.map(|run| {
                event("EXEC_PLANNED", Some(run.id), json!({"scheduledAt": run.scheduled_at, "dueAt": run.due_at}))
            });
            let moved = plan.moved.iter().map(|run| {
                event("EXEC_MOVED", Some(run.id), json!({"scheduledAt": run.scheduled_at, "dueAt": run.due_at}))
            });
            let gone = plan.withdrawn.iter().chain(&plan.next_gone);
            let gone = gone.map(|run| event("EXEC_CANCELLED", Some(*run), json!({"reason": "withdrawn"})));
            gone.chain(new).chain(moved).collect()
        }
        Body::Skipped(skip) => {
            let detail = json!({"reason": skip.reason, "count": skip.count, "from": skip.first_at, "to": skip.last_at});
            vec![event("EXEC_SKIPPED", None, detail)]
        }
        Body::DayStarted { zone, date } => {
            vec![event("MIDNIGHT_REBUILD", None, json!({"timezone": zone, "dateKey": date}))]
        }
        Body::RunAsked { run, .. } => {
            let detail =
                json!({"scheduledAt": run.scheduled_at, "dueAt": run.due_at, "agentId": run.terms.work.agent()});
            vec![event("EXEC_PLANNED", Some(run.id), detail)]
        }
        Body::RunsClaimed { owner, runs } => {
            runs.iter().map(|run| event("EXEC_CLAIMED", Some(*run), json!({"node": owner}))).collect()
        }
        Body::RunsStarted { runs } => each("EXEC_STARTED", runs),
        Body::RunChanged(change) => {
            let (kind, detail) = match &change.event {
                RunEvent::Cancelled => ("EXEC_CANCELLED", json!({})),
                RunEvent::CancelAsked => ("EXEC_CANCEL_ASKED", json!({})),
                RunEvent::Skipped(reason) => ("EXEC_SKIPPED", json!({"reason": reason})),
                RunEvent::Waits { on, wait_until } => ("EXEC_WAITING", json!({"for": on, "until": wait_until})),
                RunEvent::Resumed { .. } => ("EXEC_RESUMED", json!({})),
                RunEvent::WaitExpired { .. } => ("EXEC_CANCELLED", json!({"reason": "not_approved"})),
                _ => ("EXEC_CHANGED", json!({"event": change.event.name()})),
            };
            vec![event(kind, Some(change.run), detail)]
        }
        Body::AttemptEnded(attempt) => {
            let mark = entry.body.mark(entry.at);
            let detail = json!({
                "attempt": attempt.attempt,
                "agentId": attempt.agent,
                "result": mark.map(|mark| mark.verdict.as_str()),
                "durationMs": mark.and_then(|mark| mark.duration_ms),
                "summary": attempt.report.summary,
                "error": attempt.report.error,
                "nextAttemptAt": attempt.retry_at,
            });
            let kind = if attempt.retry_at.is_some() { "EXEC_RETRYING" } else { "EXEC_FINISHED" };
            vec![event(kind, Some(attempt.run), detail)]
        }
        Body::TokenMade { token, .. } => {
            vec![event("TOKEN_MADE", None, json!({"name": token.name, "role": token.role}))]
        }
        Body::TokenRevoked { token, .. } => vec![event("TOKEN_REVOKED", None, json!({"tokenId": token}))],
        Body::NodeJoined { node, name } => vec![event("NODE_JOINED", None, json!({"node": node, "name": name}))],
        Body::NodeLeft { node, is_lost } => vec![event("NODE_LEFT", None, json!({"node": node, "isLost": is_lost}))],
        Body::PlannerTaken { node, outage, .. } => {
            vec![event("PLANNER_TAKEN", None, json!({"node": node, "outage": outage}))]
        }
        Body::Restored { .. } => vec![event("RESTORED", None, json!({}))],
    }
}

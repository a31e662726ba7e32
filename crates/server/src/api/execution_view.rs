//! A run, as the executions face shows it: one total mapping of its state.

use std::collections::BTreeMap;

use jiff::Timestamp;
use punctual_core::run::{Outcome, Run, RunState, WaitFor};
use punctual_core::schedule::Schedule;
use punctual_core::time::Zone;
use punctual_core::{NodeId, RunId, ScheduleId};
use punctual_store::NodeRecord;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// Where a run is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum ExecStatus {
    /// It waits for its time, or for a place.
    Ready,
    /// A node has it, or it waits for an approval.
    Pending,
    /// At work.
    Running,
    /// Answered without a try.
    Skipped,
    /// Called off, or failed for good.
    Cancelled,
    /// It has failed, and is tried again.
    FailedRetryable,
    /// Done. It is in the history, not in the day's queue.
    Succeeded,
}

impl ExecStatus {
    pub(crate) fn of(run: &Run) -> ExecStatus {
        match run.state {
            RunState::Planned { resumes: true, .. } => ExecStatus::Pending,
            RunState::Planned { tally, .. } if 0 < tally.attempt => ExecStatus::FailedRetryable,
            RunState::Planned { .. } => ExecStatus::Ready,
            RunState::Claimed { .. } | RunState::Waiting { on: WaitFor::Approval, .. } => ExecStatus::Pending,
            RunState::Running { .. } | RunState::Waiting { on: WaitFor::Callback | WaitFor::Child, .. } => {
                ExecStatus::Running
            }
            RunState::Finished { outcome, .. } => match outcome {
                Outcome::Succeeded => ExecStatus::Succeeded,
                Outcome::Failed(_) | Outcome::Unknown | Outcome::Cancelled => ExecStatus::Cancelled,
                Outcome::Skipped(_) => ExecStatus::Skipped,
            },
        }
    }
}

/// A run of the day's queue.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ExecutionView {
    #[schema(value_type = uuid::Uuid)]
    execution_id: RunId,
    /// What it is for: day, agent, project and slot. Not what the agent is told: that is `runKey`.
    #[schema(example = "2026-03-09|reporter|GLOBAL|2026-03-09T15:00:00Z")]
    idempotency_key: String,
    /// What its agent is told as `idempotencyKey`: the same for every try, and for nothing else.
    #[schema(example = "0198f0c1-6f3a-7c44-9d1b-2f6c0e5a9b10/i:1773068400")]
    run_key: String,
    /// Its day, in its zone.
    #[schema(example = "2026-03-09")]
    date_key: String,
    agent_id: String,
    project_id: Option<String>,
    timezone: String,
    #[schema(value_type = String, format = DateTime)]
    scheduled_at: Timestamp,
    /// The hour that its clock shows; −1 for one that somebody asked for.
    #[schema(example = 9)]
    planned_hour: i8,
    planned_minute: i8,
    /// Whether it was to run at once.
    immediate: bool,
    /// Where it is in its life. `CANCELLED` is also what has failed for good: `outcome` tells them apart.
    exec_status: ExecStatus,
    /// What it waits for: `approval`, `callback` or `child`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    waiting_for: Option<WaitFor>,
    /// How it ended, once it is over: `succeeded`, `failed`, `unknown`, `cancelled` or `skipped`.
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<&'static str>,
    /// When it is tried again.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    next_attempt_at: Option<Timestamp>,
    /// Why it was skipped, or failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    priority: u8,
    /// The node that has it.
    lock_owner: Option<String>,
    /// When that node's lease ends unless it renews it.
    #[schema(value_type = Option<String>, format = DateTime)]
    lease_until: Option<Timestamp>,
    /// Tries so far.
    attempt: u32,
    max_attempts: u32,
    retry_backoff_ms: i64,
    #[schema(value_type = Option<uuid::Uuid>)]
    schedule_id: Option<ScheduleId>,
    schedule_name: Option<String>,
    /// Whether that schedule was deleted since.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    schedule_deleted: bool,
    created_from_schedule_version: u64,
    /// Whether somebody has called it off while it was at work.
    cancelling: bool,
    /// When its try began; of a run that is over, its last one, and only where one run is asked for.
    #[schema(value_type = Option<String>, format = DateTime)]
    started_at: Option<Timestamp>,
    #[schema(value_type = Option<String>, format = DateTime)]
    ended_at: Option<Timestamp>,
    /// What the agent is asked to do; only where one run is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<String>,
    /// What the agent is given; only where one run is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    inputs: Option<Map<String, Value>>,
}

/// What a run is shown with.
pub(crate) struct Around<'a> {
    /// Its schedule, if it still has one.
    pub(crate) schedule: Option<&'a Schedule>,
    /// Its zone: that of its schedule, else the default.
    pub(crate) zone: &'a Zone,
    /// The nodes that live.
    pub(crate) nodes: &'a BTreeMap<NodeId, NodeRecord>,
}

impl ExecutionView {
    pub(crate) fn new(run: &Run, around: &Around<'_>) -> ExecutionView {
        let Around { schedule, zone, nodes } = around;
        let shown = local(run.scheduled_at, zone);
        let is_immediate = run.key.is_manual()
            || schedule.is_some_and(|it| matches!(*it.trigger, punctual_core::schedule::Trigger::Immediate(_)));
        let owner = run.owner();
        let node = owner.and_then(|owner| nodes.get(&owner));
        let project = run.terms.project.clone();
        let agent = run.terms.work.agent().to_owned();
        let date_key = shown.date().to_string();
        let scope = project.as_deref().unwrap_or("GLOBAL");
        let idempotency_key = match run.key.is_manual() {
            true => format!("{date_key}|{agent}|{scope}|IMMEDIATE|{}", run.scheduled_at),
            false => format!("{date_key}|{agent}|{scope}|{}", run.scheduled_at),
        };
        ExecutionView {
            execution_id: run.id,
            idempotency_key,
            run_key: punctual_engine::claimer::idempotency_key(run),
            date_key,
            agent_id: agent,
            project_id: project,
            timezone: zone.name().to_owned(),
            scheduled_at: run.scheduled_at,
            planned_hour: if is_immediate { -1 } else { shown.hour() },
            planned_minute: if is_immediate { 0 } else { shown.minute() },
            immediate: is_immediate,
            exec_status: ExecStatus::of(run),
            waiting_for: match run.state {
                RunState::Waiting { on, .. } => Some(on),
                _ => None,
            },
            outcome: match run.state {
                RunState::Finished { outcome, .. } => Some(word(outcome)),
                _ => None,
            },
            next_attempt_at: run.planned_for().filter(|_| 0 < run.state.tally().attempt),
            reason: match run.state {
                RunState::Finished { outcome: Outcome::Skipped(reason), .. } => Some(reason.to_string()),
                RunState::Finished { outcome: Outcome::Failed(code), .. } => {
                    serde_json::to_value(code).ok().and_then(|code| Some(code.as_str()?.to_owned()))
                }
                RunState::Finished { outcome: Outcome::Unknown, .. } => Some("unknown".to_owned()),
                _ => None,
            },
            priority: run.terms.priority.get(),
            lock_owner: owner.map(|owner| node.map_or_else(|| owner.to_string(), |node| node.name.clone())),
            lease_until: node.map(|node| node.lease_until),
            attempt: run.state.tally().attempt,
            max_attempts: run.terms.retry.max_attempts.get(),
            retry_backoff_ms: run.terms.retry.delay.milliseconds(),
            schedule_id: run.schedule,
            schedule_name: schedule.and_then(|it| super::schedule_fields::given_name(it)).map(str::to_owned),
            schedule_deleted: run.schedule.is_some() && schedule.is_none(),
            created_from_schedule_version: run.version,
            cancelling: run.is_cancelling,
            started_at: run.started_at,
            ended_at: run.ended_at,
            prompt: None,
            inputs: None,
        }
    }

    /// The same with what the run does, which may be long.
    pub(crate) fn with_action(self, run: &Run) -> ExecutionView {
        let work = &run.terms.work;
        let prompt = Some(work.prompt().to_owned()).filter(|prompt| !prompt.is_empty());
        ExecutionView { prompt, inputs: Some(work.inputs().clone()).filter(|inputs| !inputs.is_empty()), ..self }
    }

    /// The same, where it is known from elsewhere when its last try began.
    pub(crate) fn begun(self, started_at: Option<Timestamp>) -> ExecutionView {
        ExecutionView { started_at: self.started_at.or(started_at), ..self }
    }

    /// Its day, in its zone.
    pub(crate) fn date_key(&self) -> &str {
        &self.date_key
    }

    /// Where it is in its life.
    pub(crate) fn status(&self) -> ExecStatus {
        self.exec_status
    }
}

/// How a run ended, in a word.
fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Succeeded => "succeeded",
        Outcome::Failed(_) => "failed",
        Outcome::Unknown => "unknown",
        Outcome::Cancelled => "cancelled",
        Outcome::Skipped(_) => "skipped",
    }
}

/// What the clock of a zone shows.
fn local(at: Timestamp, zone: &Zone) -> jiff::civil::DateTime {
    jiff::tz::Offset::from_seconds(zone.offset_at(at)).unwrap_or(jiff::tz::Offset::UTC).to_datetime(at)
}

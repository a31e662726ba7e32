//! A line of history, as it is shown.

use jiff::Timestamp;
use punctual_core::journal::{Attempt, Body, RunChange, SkipEntry, Verdict};
use punctual_core::run::RunEvent;
use punctual_core::{RunId, ScheduleId};
use punctual_store::{HistoryItem, HistoryWhat};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::schedule_names::ScheduleNames;
use crate::error::ApiError;

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum ResultStatus {
    /// The work was done.
    Success,
    /// It was not, or nobody knows.
    Fail,
    /// It was called off.
    Cancelled,
    /// It was answered without a try.
    Skipped,
    /// Its node was stopped, and the run goes on: that costs no attempt.
    Stopped,
}

impl From<Verdict> for ResultStatus {
    fn from(verdict: Verdict) -> ResultStatus {
        match verdict {
            Verdict::Succeeded => ResultStatus::Success,
            Verdict::Failed => ResultStatus::Fail,
            Verdict::Cancelled => ResultStatus::Cancelled,
            Verdict::Skipped => ResultStatus::Skipped,
            Verdict::Stopped => ResultStatus::Stopped,
        }
    }
}

impl From<ResultStatus> for Verdict {
    fn from(status: ResultStatus) -> Verdict {
        match status {
            ResultStatus::Success => Verdict::Succeeded,
            ResultStatus::Fail => Verdict::Failed,
            ResultStatus::Cancelled => Verdict::Cancelled,
            ResultStatus::Skipped => Verdict::Skipped,
            ResultStatus::Stopped => Verdict::Stopped,
        }
    }
}

/// An attempt that ended, a run that was cancelled or skipped, or a range of slots that was skipped.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PastView {
    /// Its number in the journal.
    #[schema(example = "1042")]
    past_execution_id: String,
    /// The run; none for a range of slots.
    #[schema(value_type = Option<uuid::Uuid>)]
    execution_id: Option<RunId>,
    agent_id: String,
    project_id: Option<String>,
    #[schema(value_type = Option<uuid::Uuid>)]
    schedule_id: Option<ScheduleId>,
    /// The name of its schedule, if it has one and is still there.
    schedule_name: Option<String>,
    /// Whether that schedule was deleted since. Its id still finds its history.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    schedule_deleted: bool,
    #[schema(value_type = String, format = DateTime)]
    scheduled_at: Timestamp,
    #[schema(value_type = Option<String>, format = DateTime)]
    started_at: Option<Timestamp>,
    #[schema(value_type = String, format = DateTime)]
    ended_at: Timestamp,
    duration_ms: Option<u64>,
    result_status: ResultStatus,
    /// Why it failed or was skipped, for programs.
    #[schema(example = "LLM_TIMEOUT")]
    error_code: Option<String>,
    /// The same for people.
    error_message: Option<String>,
    /// What was done, in the agent's own words.
    response_summary: Option<String>,
    /// What the work refers to: lists by kind.
    #[schema(value_type = Object)]
    response_refs: Map<String, Value>,
    /// What the models used.
    #[schema(value_type = Object)]
    llm_metrics: Map<String, Value>,
    /// Which tools were used, and how often.
    #[schema(value_type = Object)]
    tool_call_summary: Map<String, Value>,
    /// What the agent wants to remember.
    #[schema(value_type = Object)]
    facts: Map<String, Value>,
    /// The session that the work was done in, by the id that its tool resumes it with.
    session_id: Option<String>,
    thread_id: Option<String>,
    /// What of the agent's result could not be understood or is not complete, like `no price for model gpt-x`.
    warnings: Vec<String>,
    /// Which try it was; none for what was never tried.
    attempt: Option<u32>,
    /// How many slots a skipped range has.
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
    /// The last slot of a skipped range.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    last_scheduled_at: Option<Timestamp>,
    /// The exit code of a process.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    /// The end of what it printed.
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<String>,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
}

impl PastView {
    /// A line of history. Its output only where one is shown alone.
    pub(crate) fn new(item: &HistoryItem, with_output: bool) -> Option<PastView> {
        let body = match &item.what {
            HistoryWhat::Attempt(attempt) => Body::AttemptEnded(attempt.clone()),
            HistoryWhat::RunEnded(change) => Body::RunChanged(change.clone()),
            HistoryWhat::Skipped(skip) => Body::Skipped(skip.clone()),
        };
        let mark = body.mark(item.at)?;
        let bare = PastView {
            past_execution_id: item.seq.to_string(),
            execution_id: body.run(),
            agent_id: mark.agent.to_owned(),
            project_id: mark.project.map(str::to_owned),
            schedule_id: body.schedule(),
            schedule_name: None,
            schedule_deleted: false,
            scheduled_at: mark.shown_at,
            started_at: None,
            ended_at: item.at,
            duration_ms: mark.duration_ms,
            result_status: mark.verdict.into(),
            error_code: None,
            error_message: None,
            response_summary: None,
            response_refs: Map::new(),
            llm_metrics: Map::new(),
            tool_call_summary: Map::new(),
            facts: Map::new(),
            session_id: None,
            thread_id: None,
            warnings: vec![],
            attempt: None,
            count: None,
            last_scheduled_at: None,
            exit_code: None,
            output: None,
            created_at: item.at,
        };
        Some(match &item.what {
            HistoryWhat::Attempt(attempt) => bare.with_attempt(attempt, with_output),
            HistoryWhat::RunEnded(change) => bare.with_change(change),
            HistoryWhat::Skipped(skip) => bare.with_skip(skip),
        })
    }

    /// With the name of its schedule.
    pub(crate) async fn named(self, names: &mut ScheduleNames<'_>) -> Result<PastView, ApiError> {
        let named = names.of(self.schedule_id).await?;
        Ok(PastView { schedule_name: named.name, schedule_deleted: named.is_deleted, ..self })
    }

    fn with_attempt(self, attempt: &Attempt, with_output: bool) -> PastView {
        let report = &attempt.report;
        let (code, message) = match (&report.error, &attempt.event) {
            (_, RunEvent::Stopped { .. }) => {
                let follows = match attempt.retry_at {
                    Some(_) => "the run goes on, and no attempt was used up",
                    None => "whether the work was done is not known, and it is not tried again",
                };
                (Some("stopped".to_owned()), Some(format!("its node was stopped while it was at work: {follows}")))
            }
            (Some(error), _) => (Some(error.code.clone()), Some(error.message.clone())),
            (None, RunEvent::OwnerLost { .. }) => {
                let message = "its node was lost while it was at work: how far it came is not known";
                (Some("UNKNOWN".to_owned()), Some(message.to_owned()))
            }
            (None, RunEvent::Failed { code, .. }) => (word(code), None),
            (None, RunEvent::WaitExpired { .. }) => {
                (Some("wait_expired".to_owned()), Some("what it waited for did not come in time".to_owned()))
            }
            (None, _) => (None, None),
        };
        PastView {
            scheduled_at: attempt.scheduled_at,
            started_at: attempt.started_at,
            attempt: Some(attempt.attempt),
            error_code: code,
            error_message: message,
            response_summary: report.summary.clone(),
            response_refs: report.refs.clone(),
            llm_metrics: report.llm.clone(),
            tool_call_summary: report.tools.clone(),
            facts: report.facts.clone(),
            session_id: report.session_id.clone(),
            warnings: report.warnings.clone(),
            exit_code: report.exit_code,
            output: Some(report.output.clone()).filter(|_| with_output),
            ..self
        }
    }

    fn with_change(self, change: &RunChange) -> PastView {
        let (code, message) = match &change.event {
            RunEvent::Skipped(reason) => (Some(reason.to_string()), None),
            RunEvent::WaitExpired { .. } => {
                (Some("not_approved".to_owned()), Some("nobody approved it in time".to_owned()))
            }
            _ => {
                let by = change.by.as_ref();
                let reason = by.and_then(|by| by.reason.clone());
                let message = by.map(|by| format!("called off by {}", by.actor));
                (Some("cancelled".to_owned()), reason.or(message))
            }
        };
        PastView { scheduled_at: change.scheduled_at, error_code: code, error_message: message, ..self }
    }

    fn with_skip(self, skip: &SkipEntry) -> PastView {
        PastView {
            scheduled_at: skip.first_at,
            last_scheduled_at: Some(skip.last_at),
            count: Some(skip.count),
            error_code: Some(skip.reason.to_string()),
            ..self
        }
    }
}

fn word(value: &impl Serialize) -> Option<String> {
    serde_json::to_value(value).ok().and_then(|value| Some(value.as_str()?.to_owned()))
}

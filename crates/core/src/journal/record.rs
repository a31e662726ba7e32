//! Records: what an entry says about a workflow that a schedule had started, if it is the last word about that.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::entry::{Attempt, Body, RunChange, SkipEntry};
use super::mark::Verdict;
use crate::run::RunEvent;
use crate::schedule::WorkflowStart;

/// What the report of a start calls the workflow that it started.
pub const WORKFLOW_ID: &str = "workflowId";

/// How far the start of a workflow has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RecordState {
    /// It is being started.
    Polled,
    /// It was started.
    Executed,
    /// It was not.
    Failed,
}

impl RecordState {
    /// The word for it in SQL and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            RecordState::Polled => "polled",
            RecordState::Executed => "executed",
            RecordState::Failed => "failed",
        }
    }
}

/// The last word about the start of a workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartRecord<'a> {
    /// What was to be started, and by which schedule.
    pub start: &'a WorkflowStart,
    /// Whether it was.
    pub state: RecordState,
    /// The workflow that was started: its own id, or that of the run of an agent that stands in for it.
    pub workflow_id: Option<String>,
    /// Why it was not.
    pub note: Option<String>,
    /// When its slot was scheduled.
    pub scheduled_at: Timestamp,
    /// When it was begun, or let be.
    pub executed_at: Timestamp,
}

impl Body {
    /// The last word about the start of a workflow, if the entry, written at an instant, is one.
    pub fn record(&self, at: Timestamp) -> Option<StartRecord<'_>> {
        match self {
            Body::AttemptEnded(attempt) => attempt.record(at),
            Body::RunChanged(change) => change.record(at),
            Body::Skipped(skip) => skip.record(at),
            _ => None,
        }
    }
}

impl Attempt {
    fn record(&self, at: Timestamp) -> Option<StartRecord<'_>> {
        let start = self.workflow.as_ref()?;
        let verdict = Verdict::of(&self.event)?;
        let accepted = self.report.refs.get(WORKFLOW_ID).and_then(|id| id.as_str()).map(str::to_owned);
        // Once it is accepted it was started, whatever became of it.
        let is_started = accepted.is_some() || verdict == Verdict::Succeeded;
        if !is_started && self.retry_at.is_some() {
            return None;
        }
        let error = self.report.error.as_ref().map(|error| format!("{}: {}", error.code, error.message));
        let (state, note) = if is_started {
            (RecordState::Executed, error)
        } else {
            (RecordState::Failed, Some(error.unwrap_or_else(|| word_of(&self.event))))
        };
        let workflow_id = accepted.or_else(|| is_started.then(|| self.run.to_string()));
        let executed_at = self.started_at.unwrap_or(at);
        Some(StartRecord { start, state, workflow_id, note, scheduled_at: self.scheduled_at, executed_at })
    }
}

impl RunChange {
    fn record(&self, at: Timestamp) -> Option<StartRecord<'_>> {
        let start = self.workflow.as_ref()?;
        self.end?;
        let (note, scheduled_at) = (Some(word_of(&self.event)), self.scheduled_at);
        Some(StartRecord { start, state: RecordState::Failed, workflow_id: None, note, scheduled_at, executed_at: at })
    }
}

impl SkipEntry {
    fn record(&self, at: Timestamp) -> Option<StartRecord<'_>> {
        let start = self.workflow.as_ref()?;
        let note = match self.count {
            1 => format!("skipped: {}", self.reason),
            count => format!("{count} slots up to {} skipped: {}", self.last_at, self.reason),
        };
        let (state, scheduled_at) = (RecordState::Failed, self.first_at);
        Some(StartRecord { start, state, workflow_id: None, note: Some(note), scheduled_at, executed_at: at })
    }
}

/// Why nothing was started, in a word.
fn word_of(event: &RunEvent) -> String {
    match event {
        RunEvent::Skipped(reason) => format!("skipped: {reason}"),
        RunEvent::Cancelled => "cancelled".to_owned(),
        RunEvent::OwnerLost { .. } => "the node that started it was lost".to_owned(),
        RunEvent::Stopped { .. } => "the node that started it was stopped".to_owned(),
        RunEvent::WaitExpired { .. } => "nobody approved it in time".to_owned(),
        RunEvent::HandedBack { .. } | RunEvent::Waits { .. } => "cancelled".to_owned(),
        RunEvent::Failed { code, .. } => format!("failed: {code:?}"),
        _ => "it did not come to it".to_owned(),
    }
}

//! What commands read out of the bodies of the API: only what they show or decide by.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::times::Wall;

/// A schedule.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Schedule {
    pub(crate) schedule_id: Uuid,
    pub(crate) name: Option<String>,
    pub(crate) agent_id: String,
    pub(crate) project_id: Option<String>,
    pub(crate) timezone: String,
    pub(crate) description: String,
    pub(crate) state: String,
    pub(crate) pause: Option<Pause>,
    pub(crate) end_reason: Option<String>,
    pub(crate) next_execution_at: Option<Timestamp>,
    pub(crate) runs_started: u64,
    pub(crate) version: u64,
    #[serde(default)]
    pub(crate) warnings: Vec<String>,
}

/// Who paused a schedule.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Pause {
    pub(crate) kind: String,
    pub(crate) at: Timestamp,
    pub(crate) source: String,
    pub(crate) reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) until: Option<Timestamp>,
}

impl Schedule {
    /// Its name. The one without a name that an agent may have is called by its agent, and found by that.
    pub(crate) fn shown_name(&self) -> String {
        self.name.clone().unwrap_or_else(|| format!("@{}", self.agent_id))
    }

    /// Where it is in its life, with the reason.
    pub(crate) fn shown_state(&self, wall: &Wall) -> String {
        match (&self.pause, &self.end_reason) {
            (Some(pause), _) => {
                let until = pause.until.map(|at| format!(" until {}", wall.beside(at, wall.now))).unwrap_or_default();
                let reason = pause.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
                format!("{}{until}{reason}", pause.kind)
            }
            (None, Some(reason)) => format!("{}: {reason}", self.state),
            (None, None) => self.state.clone(),
        }
    }
}

/// A run of the day's queue.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Execution {
    pub(crate) execution_id: Uuid,
    pub(crate) agent_id: String,
    pub(crate) scheduled_at: Timestamp,
    pub(crate) exec_status: String,
    pub(crate) waiting_for: Option<String>,
    pub(crate) outcome: Option<String>,
    pub(crate) next_attempt_at: Option<Timestamp>,
    pub(crate) reason: Option<String>,
    pub(crate) attempt: u32,
    pub(crate) max_attempts: u32,
    pub(crate) schedule_id: Option<Uuid>,
    pub(crate) schedule_name: Option<String>,
    #[serde(default)]
    pub(crate) schedule_deleted: bool,
}

impl Execution {
    /// The name of its schedule.
    pub(crate) fn shown_name(&self) -> String {
        shown_name(self.schedule_id, &self.schedule_name, &self.agent_id, self.schedule_deleted)
    }

    /// What people call it: its schedule, or the agent that was asked by itself.
    pub(crate) fn label(&self) -> String {
        if self.schedule_id.is_none() { self.agent_id.clone() } else { self.shown_name() }
    }

    pub(crate) fn is_at_work(&self) -> bool {
        self.exec_status == "RUNNING"
    }

    /// Whether a node has it, or it waits for an approval, a callback or a child.
    pub(crate) fn is_in_progress(&self) -> bool {
        matches!(self.exec_status.as_str(), "RUNNING" | "PENDING")
    }

    /// Whether nothing more becomes of it.
    pub(crate) fn is_over(&self) -> bool {
        self.outcome.is_some()
    }
}

/// What the schedule of a run is called: by its agent if it has no name; a dash stands for none. One that is gone is not called
/// by what another may be called by now.
fn shown_name(schedule: Option<Uuid>, name: &Option<String>, agent: &str, is_deleted: bool) -> String {
    match (schedule, name) {
        (_, Some(name)) => name.clone(),
        (Some(_), None) if is_deleted => "(deleted)".to_owned(),
        (Some(_), None) => format!("@{agent}"),
        (None, None) => "-".to_owned(),
    }
}

/// A line of history.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Past {
    pub(crate) execution_id: Option<Uuid>,
    pub(crate) schedule_id: Option<Uuid>,
    pub(crate) schedule_name: Option<String>,
    #[serde(default)]
    pub(crate) schedule_deleted: bool,
    pub(crate) agent_id: String,
    pub(crate) scheduled_at: Timestamp,
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) ended_at: Timestamp,
    pub(crate) duration_ms: Option<i64>,
    pub(crate) result_status: String,
    pub(crate) error_code: Option<String>,
    pub(crate) error_message: Option<String>,
    pub(crate) response_summary: Option<String>,
    pub(crate) attempt: Option<u32>,
    pub(crate) count: Option<u64>,
    pub(crate) llm_metrics: Option<Value>,
    /// A server of an older version tells none.
    #[serde(default)]
    pub(crate) warnings: Vec<String>,
}

impl Past {
    /// The name of its schedule.
    pub(crate) fn shown_name(&self) -> String {
        shown_name(self.schedule_id, &self.schedule_name, &self.agent_id, self.schedule_deleted)
    }

    /// What it is sorted by: when it began, or was to begin, or when that was called off ahead of its time.
    pub(crate) fn at(&self) -> Timestamp {
        self.started_at.unwrap_or(self.scheduled_at.min(self.ended_at))
    }

    /// What it has cost, in US dollars.
    pub(crate) fn cost(&self) -> Option<f64> {
        self.llm_metrics.as_ref()?["estimatedCostUsd"].as_f64()
    }

    /// How it ended, in a word.
    pub(crate) fn result(&self) -> &str {
        match self.result_status.as_str() {
            "SUCCESS" => "succeeded",
            "FAIL" => "failed",
            "SKIPPED" => "skipped",
            "CANCELLED" => "cancelled",
            "STOPPED" => "stopped",
            other => other,
        }
    }

    /// What was done, or why it was not.
    pub(crate) fn what(&self) -> String {
        // A code that only says again how it ended says nothing.
        let code = self.error_code.as_deref().filter(|code| *code != self.result());
        let error = match (code, &self.error_message) {
            (Some(code), Some(message)) => Some(format!("{code}: {message}")),
            (code, message) => code.map(str::to_owned).or(message.clone()),
        };
        let what = error.or(self.response_summary.clone()).unwrap_or_default();
        let what = match self.count {
            Some(count) if 1 < count => format!("{what}, {count} times"),
            _ => what,
        };
        // First, as the end of a long text is cut off.
        match self.warnings.as_slice() {
            [] => what,
            [_] => format!("[1 warning] {what}"),
            all => format!("[{} warnings] {what}", all.len()),
        }
    }
}

/// Why something is as it is.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Why {
    pub(crate) execution_id: Option<Uuid>,
    pub(crate) scheduled_at: Option<Timestamp>,
    pub(crate) causes: Vec<Cause>,
    #[serde(default)]
    pub(crate) schedule_causes: Vec<Cause>,
}

/// One reason.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Cause {
    pub(crate) code: String,
    pub(crate) sentence: String,
}

/// One of the next times of a schedule.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Fire {
    pub(crate) scheduled_at: Timestamp,
    pub(crate) local_time: String,
    pub(crate) skipped: Option<String>,
    pub(crate) note: Option<String>,
}

/// What a draft would do.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Preview {
    pub(crate) next: Vec<Fire>,
}

/// What a change would change in the runs of the next seven days.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Difference {
    pub(crate) timezone: String,
    pub(crate) added: Vec<Fire>,
    pub(crate) removed: Vec<Fire>,
    pub(crate) kept: u64,
    pub(crate) more: bool,
    pub(crate) warnings: Vec<String>,
}

/// An agent.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Agent {
    pub(crate) agent_id: String,
    pub(crate) runner: Option<String>,
    pub(crate) risk: Option<String>,
    pub(crate) approval: Option<String>,
    pub(crate) max_concurrent: Option<u32>,
    pub(crate) timeout_ms: Option<i64>,
    pub(crate) nodes: Vec<String>,
}

impl Agent {
    /// Whether each of its runs needs an approval.
    pub(crate) fn asks(&self) -> bool {
        self.approval.as_deref() == Some("always")
    }
}

/// A node.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Node {
    pub(crate) node_id: Uuid,
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) lease_until: Timestamp,
    pub(crate) running: u64,
    pub(crate) places: u64,
    pub(crate) paused: Option<bool>,
    pub(crate) skew_ms: i64,
    pub(crate) url: Option<String>,
    pub(crate) zone_data: String,
    pub(crate) agents: Vec<String>,
}

/// A token, without its secret unless it is new.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Token {
    pub(crate) token_id: Uuid,
    pub(crate) name: String,
    pub(crate) role: String,
    pub(crate) projects: Option<Vec<String>>,
    pub(crate) created_at: Timestamp,
    pub(crate) expires_at: Option<Timestamp>,
    pub(crate) used_at: Option<Timestamp>,
    pub(crate) secret: Option<String>,
}

/// A run that waits for a person's word.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Approval {
    pub(crate) run_id: Uuid,
    pub(crate) schedule_name: Option<String>,
    pub(crate) agent_id: String,
    pub(crate) project_id: Option<String>,
    pub(crate) risk: Option<String>,
    #[serde(default)]
    pub(crate) prompt: String,
    #[serde(default)]
    pub(crate) inputs: Map<String, Value>,
    pub(crate) digest: String,
    pub(crate) scheduled_at: Timestamp,
    pub(crate) expires_at: Option<Timestamp>,
}

/// A piece of what a run has printed.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Output {
    pub(crate) seq: u64,
    pub(crate) attempt: u32,
    pub(crate) stream: String,
    pub(crate) text: String,
}

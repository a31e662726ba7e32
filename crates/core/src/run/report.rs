//! What an attempt says about itself when it ends.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{RunId, storable};

/// The report of one attempt, kept in the journal. The runner keeps it within bounds.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Report {
    /// What was done, in the agent's own words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// What the work refers to: lists by kind.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub refs: Map<String, Value>,
    /// What the models used: tokens and cost.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub llm: Map<String, Value>,
    /// Which tools were used, and how often.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub tools: Map<String, Value>,
    /// What the agent wants to remember.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub facts: Map<String, Value>,
    /// When the agent wants to run again, beside the times of its schedule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_run_at: Option<Timestamp>,
    /// The run that was planned for that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_run: Option<RunId>,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ReportedError>,
    /// The exit code of a process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The end of what it printed, as text.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub output: String,
    /// How many bytes it printed in all.
    pub output_bytes: u64,
}

/// What went wrong, for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportedError {
    /// A short word for programs.
    pub code: String,
    /// A sentence for people.
    pub message: String,
}

impl Report {
    /// The report as every store keeps it, whoever wrote it: texts without NUL, whole microseconds, JSON that is not too deep.
    #[must_use]
    pub fn storable(self) -> Report {
        let error = self
            .error
            .map(|error| ReportedError { code: storable::text(error.code), message: storable::text(error.message) });
        Report {
            summary: self.summary.map(storable::text),
            refs: storable::object(self.refs),
            llm: storable::object(self.llm),
            tools: storable::object(self.tools),
            facts: storable::object(self.facts),
            next_run_at: self.next_run_at.map(storable::instant),
            error,
            output: storable::text(self.output),
            ..self
        }
    }
}

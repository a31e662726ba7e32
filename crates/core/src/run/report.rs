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
    /// The session that the work was done in, by the id that its tool resumes it with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ReportedError>,
    /// What of the result could not be understood, or is not complete: a sentence each. [`Report::warn`] adds one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The exit code of a process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The end of what it printed, as text.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub output: String,
    /// How many bytes it printed in all.
    pub output_bytes: u64,
}

/// The most warnings that a report has, one that says how many are missing included.
pub const WARNINGS_MAX: usize = 20;

/// The longest warning, in bytes and a mark.
const WARNING_MAX: usize = 300;

/// What stands in the place of warnings that have no place.
const MORE_WARNINGS: &str = "more warnings were left out";

impl Report {
    /// Adds a warning, within bounds: one line of bounded length, each once, and not too many.
    pub fn warn(&mut self, warning: &str) {
        let mut warning: String =
            warning.chars().map(|char| if char.is_control() { '\u{fffd}' } else { char }).collect();
        if WARNING_MAX < warning.len() {
            warning.truncate(warning.floor_char_boundary(WARNING_MAX));
            warning.push('…');
        }
        if self.warnings.contains(&warning) {
            return;
        }
        match self.warnings.len() {
            len if len + 1 < WARNINGS_MAX => self.warnings.push(warning),
            len if len + 1 == WARNINGS_MAX => self.warnings.push(MORE_WARNINGS.to_owned()),
            _ => {}
        }
    }
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
            session_id: self.session_id.map(storable::text),
            error,
            warnings: self.warnings.into_iter().map(storable::text).collect(),
            output: storable::text(self.output),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_few_and_short_and_each_is_one_line() {
        let mut report = Report::default();
        report.warn("a\nb\u{1b}[1m");
        report.warn("a\nb\u{1b}[1m");
        report.warn(&"ä".repeat(10_000));
        assert_eq!(report.warnings.len(), 2);
        assert_eq!(report.warnings[0], "a\u{fffd}b\u{fffd}[1m");
        assert!(report.warnings[1].len() <= WARNING_MAX + '…'.len_utf8());
        (0..1000).for_each(|n| report.warn(&n.to_string()));
        assert_eq!(report.warnings.len(), WARNINGS_MAX);
        assert_eq!(report.warnings.last().unwrap(), MORE_WARNINGS);
    }
}

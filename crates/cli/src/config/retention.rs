//! How long things are kept.

use punctual_core::Elapsed;
use serde_json::{Map, Value as Json, json};

use super::engine::one_of;
use super::section::Section;
use super::value::Value;

const DAY: u64 = 24 * 3_600;

/// How long things are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RetentionConfig {
    /// The journal, and with it the history.
    pub(crate) history: Elapsed,
    /// What runs have printed.
    pub(crate) output: Elapsed,
}

impl RetentionConfig {
    /// Reads the table, and what `[engine]` says under the names of the executions design.
    pub(super) fn read(section: &Section<'_>, engine: &Section<'_>) -> RetentionConfig {
        let history = one_of(section.get("history"), engine.get("past_execution_ttl_days"));
        RetentionConfig {
            history: history.and_then(|value| read(value, DAY, 36_500, "1d")).unwrap_or(seconds(90 * DAY)),
            output: section
                .get("output")
                .and_then(|value| at_least(value, value.duration()?, 60, "1m"))
                .unwrap_or(seconds(7 * DAY)),
        }
    }

    /// Every setting and its value.
    pub(super) fn settings(self) -> Map<String, Json> {
        super::print::object(json!({ "history": self.history, "output": self.output }))
    }
}

/// A duration; or, where the design has a number, that many units.
fn read(value: &Value<'_>, unit: u64, units_max: u64, shown: &str) -> Option<Elapsed> {
    let is_number = value.path.starts_with("engine.");
    let kept = if is_number { seconds(value.integer(1..=units_max)? * unit) } else { value.duration()? };
    at_least(value, kept, unit, shown)
}

fn at_least(value: &Value<'_>, kept: Elapsed, least: u64, shown: &str) -> Option<Elapsed> {
    if kept < seconds(least) {
        value.refuse(format!("{kept} is too short"), format!("use \"{shown}\" or more"));
        return None;
    }
    Some(kept)
}

fn seconds(count: u64) -> Elapsed {
    Elapsed::from_milliseconds(i64::try_from(count.saturating_mul(1_000)).unwrap_or(i64::MAX)).unwrap_or(Elapsed::ZERO)
}

//! How a node works: settings under our names, and under those of the executions design.

use std::num::NonZeroU32;

use serde_json::{Map, Value as Json, json};

use super::agent::read_cap;
use super::section::Section;
use super::value::Value;

/// How a node works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EngineConfig {
    /// How long a silent node keeps its runs.
    pub(crate) lease_duration_seconds: u32,
    /// How many processes a node runs at once.
    pub(crate) executor_pool_size: u32,
    /// How long a node waits at most before it looks for ready runs.
    pub(crate) executor_poll_interval_seconds: u32,
    /// Whether the node claims runs from its start on.
    pub(crate) enabled: bool,
    /// How many runs may be at work on all nodes together.
    pub(crate) max_running: Option<NonZeroU32>,
    /// How long a node that stops waits for its runs.
    pub(crate) drain_seconds: u32,
    /// The shortest time between runs of a schedule that is made over the API.
    pub(crate) min_interval_seconds: u32,
    /// Whoever makes a schedule with more runs a day is warned.
    pub(crate) runs_per_day_warning: u32,
    /// How long a run waits for its approval.
    pub(crate) approval_wait_seconds: u32,
    /// Settings that mean nothing here, as they were written.
    pub(crate) without_meaning: Vec<&'static str>,
}

/// Settings of the executions design that mean nothing here: planning happens when there is something to plan, and a lease is renewed three
/// times in its duration.
const WITHOUT_MEANING: [&str; 3] =
    ["planner_interval_seconds", "lease_heartbeat_seconds", "future_execution_ttl_hours"];

/// Keys that are other names of settings, or mean nothing: `config --print` shows the settings.
#[cfg(test)]
pub(super) const OTHER_NAMES: [&str; 6] = [
    "executor_max_pool_size",
    "past_execution_ttl_days",
    "future_execution_ttl_hours",
    "default_timezone",
    WITHOUT_MEANING[0],
    WITHOUT_MEANING[1],
];

impl EngineConfig {
    /// Reads the table; all defaults, if there is none.
    pub(super) fn read(section: &Section<'_>) -> EngineConfig {
        let read = |value: Option<&Value<'_>>, range, default: u32| {
            value.and_then(|value| value.integer(range)).map_or(default, |number| number as u32)
        };
        let number = |key, range, default| read(section.get(key), range, default);
        let pool_size = one_of(section.get("executor_pool_size"), section.get("executor_max_pool_size"));
        let is_given = |key: &&'static str| section.get(key).is_some();
        EngineConfig {
            lease_duration_seconds: number("lease_duration_seconds", 1..=3_600, 30),
            executor_pool_size: read(pool_size, 1..=10_000, 8),
            executor_poll_interval_seconds: number("executor_poll_interval_seconds", 1..=60, 5),
            enabled: section.get("enabled").and_then(Value::boolean).unwrap_or(true),
            max_running: section.get("max_running").and_then(read_cap),
            drain_seconds: number("drain_seconds", 0..=86_400, 30),
            min_interval_seconds: number("min_interval_seconds", 1..=86_400, 300),
            approval_wait_seconds: number("approval_wait_seconds", 1..=31_536_000, 86_400),
            runs_per_day_warning: number("runs_per_day_warning", 1..=1_000_000, 500),
            without_meaning: WITHOUT_MEANING.into_iter().filter(is_given).collect(),
        }
    }

    /// What only comes into force with a start.
    pub(super) fn without_what_is_reloaded(&self) -> EngineConfig {
        EngineConfig { max_running: None, without_meaning: vec![], ..self.clone() }
    }

    /// Every setting and its value.
    pub(super) fn settings(&self) -> Map<String, Json> {
        super::print::object(json!({
            "lease_duration_seconds": self.lease_duration_seconds,
            "executor_pool_size": self.executor_pool_size,
            "executor_poll_interval_seconds": self.executor_poll_interval_seconds,
            "enabled": self.enabled,
            "max_running": self.max_running,
            "drain_seconds": self.drain_seconds,
            "min_interval_seconds": self.min_interval_seconds,
            "approval_wait_seconds": self.approval_wait_seconds,
            "runs_per_day_warning": self.runs_per_day_warning,
        }))
    }
}

/// The value of a setting that has two names. Both in one place are refused; a variable goes before the file.
pub(super) fn one_of<'s, 'a>(own: Option<&'s Value<'a>>, other: Option<&'s Value<'a>>) -> Option<&'s Value<'a>> {
    match (own, other) {
        (Some(own), Some(other)) if own.is_of_file() == other.is_of_file() => {
            let problem = format!("{} sets the same", own.path);
            other.refuse(problem, format!("keep one of {} and {}", own.path, other.path));
            Some(own)
        }
        (Some(own), Some(other)) => Some(if own.is_of_file() { other } else { own }),
        (own, other) => own.or(other),
    }
}

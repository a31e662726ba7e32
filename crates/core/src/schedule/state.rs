//! Whether a schedule produces runs at all.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::run::SkipReason;

/// Whether a schedule produces runs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ScheduleState {
    /// It does.
    #[default]
    Active,
    /// It does not, until somebody says so or the pause ends by itself.
    Paused(Box<Pause>),
    /// It never will again.
    Ended(EndReason),
}

/// A pause: who, when, why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pause {
    /// Whether it was paused or switched off; the slots of that time are skipped under the same word.
    pub kind: PauseKind,
    /// Since when.
    pub at: Timestamp,
    /// Who did it: a person, an API client, the circuit breaker.
    pub source: String,
    /// Why, in the words of whoever did it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When it ends by itself; none if somebody has to end it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// Paused or switched off: the same state, told apart in the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PauseKind {
    /// By a pause.
    Paused,
    /// By `enabled = false`.
    Disabled,
}

impl PauseKind {
    /// The reason under which the slots of the paused time are recorded.
    pub fn skip_reason(self) -> SkipReason {
        match self {
            PauseKind::Paused => SkipReason::Paused,
            PauseKind::Disabled => SkipReason::Disabled,
        }
    }
}

/// Why a schedule is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// Its last slot has been answered.
    Done,
    /// As many runs have started as may.
    MaxRuns,
    /// What it was for has been reached.
    Converged,
    /// Somebody ended it.
    Cancelled,
    /// Too many failures in a row.
    CircuitOpen,
    /// Its expression never matches again.
    NoFutureMatch,
    /// Its time was limited.
    Expired,
}

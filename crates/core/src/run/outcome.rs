//! How a run can end.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a run ended. Final: only retention touches it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The work was done.
    Succeeded,
    /// The work was not done, and nothing more is tried.
    Failed(FailureCode),
    /// The owner was lost or stopped while the work ran, and the policy is not to risk it twice.
    Unknown,
    /// A person, an edit or a denied approval ended it.
    Cancelled,
    /// It was answered without a try.
    Skipped(SkipReason),
}

/// Why the last attempt of a run failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailureCode {
    /// The work reported an error.
    Error,
    /// The work ran longer than it may.
    TimedOut,
    /// The work needed more memory, processes, files or disk than it may.
    ResourceLimit,
    /// The work could not be begun: the command is missing, or the machine refuses another process.
    NotStarted,
    /// What it waited for did not come in time.
    WaitExpired,
    /// Its node was lost as often as the run may be tried, or stopped again and again.
    OwnerLost,
}

/// Why a slot or a run was answered without a try. A closed list: a new reason is a new release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SkipReason {
    /// An earlier run of the schedule was still at work.
    Overlap,
    /// It was missed in an outage, and the catch-up policy let it go.
    CatchUp,
    /// The schedule's condition was not true.
    ConditionFalse,
    /// The schedule was paused.
    Paused,
    /// The schedule was disabled.
    Disabled,
    /// The clock jumped over it.
    DstGap,
    /// Its day was over before it was offered to a node.
    DayEnded,
    /// It was offered later than its maximum delay allows.
    Late,
    /// The money for it was spent.
    Budget,
    /// Its owner had as many runs as it may have.
    Quota,
    /// Too many runs in too short a time.
    RateLimited,
    /// The schedule's calendar was closed.
    Calendar,
    /// No node has had the agent for a while.
    AgentRemoved,
    /// Too many failures in a row had opened the circuit.
    CircuitOpen,
}

impl SkipReason {
    /// Every reason, in the order of the published list.
    pub const ALL: [SkipReason; 14] = [
        SkipReason::Overlap,
        SkipReason::CatchUp,
        SkipReason::ConditionFalse,
        SkipReason::Paused,
        SkipReason::Disabled,
        SkipReason::DstGap,
        SkipReason::DayEnded,
        SkipReason::Late,
        SkipReason::Budget,
        SkipReason::Quota,
        SkipReason::RateLimited,
        SkipReason::Calendar,
        SkipReason::AgentRemoved,
        SkipReason::CircuitOpen,
    ];

    /// The word for it in SQL, JSON and on the pages.
    pub fn as_str(self) -> &'static str {
        match self {
            SkipReason::Overlap => "overlap",
            SkipReason::CatchUp => "catch_up",
            SkipReason::ConditionFalse => "condition_false",
            SkipReason::Paused => "paused",
            SkipReason::Disabled => "disabled",
            SkipReason::DstGap => "dst_gap",
            SkipReason::DayEnded => "day_ended",
            SkipReason::Late => "late",
            SkipReason::Budget => "budget",
            SkipReason::Quota => "quota",
            SkipReason::RateLimited => "rate_limited",
            SkipReason::Calendar => "calendar",
            SkipReason::AgentRemoved => "agent_removed",
            SkipReason::CircuitOpen => "circuit_open",
        }
    }
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_is_the_same_in_json_and_everywhere_else() {
        for reason in SkipReason::ALL {
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.as_str());
        }
    }
}

//! Policies: how a schedule behaves where time, load or failure leave a choice.

use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::run::{AfterLoss, RetryPolicy};
use crate::{Elapsed, ParseError};

/// All policies of a schedule. The defaults are those of the executions face, which is the native one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Policy {
    /// What happens to times of day when the clock changes.
    pub dst: DstPolicy,
    /// What happens to slots that an outage missed.
    pub catch_up: CatchUp,
    /// What happens when a run is due while another is at work.
    pub overlap: Overlap,
    /// How late a run may start.
    pub max_delay: MaxDelay,
    /// When a failed run is tried again.
    pub retry: RetryPolicy,
    /// What follows when a node is lost while the work runs.
    pub after_loss: AfterLoss,
    /// How long the work may run.
    pub timeout: Elapsed,
    /// How urgent its runs are.
    pub priority: Priority,
    /// How many runs of the schedule's agent may be at work, the starting one included.
    pub max_concurrent: NonZeroU32,
    /// With which other runs its own share a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<Concurrency>,
    /// Whether a person has to approve each run of an agent that may write or execute.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub risk_gate: bool,
}

/// A limit that runs share by a key of their own choosing: one account, one repository, one machine.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Concurrency {
    /// What they share.
    pub key: String,
    /// How many of them may be at work.
    pub max: NonZeroU32,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy {
            dst: DstPolicy::default(),
            catch_up: CatchUp::default(),
            overlap: Overlap::default(),
            max_delay: MaxDelay::default(),
            retry: RetryPolicy::default(),
            after_loss: AfterLoss::default(),
            timeout: Elapsed::from_seconds(600),
            priority: Priority::default(),
            max_concurrent: NonZeroU32::MIN,
            concurrency: None,
            risk_gate: false,
        }
    }
}

/// How urgent a run is: from 1, the least, to 10.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "u8", into = "u8")]
#[schemars(extend("minimum" = 1, "maximum" = 10))]
pub struct Priority(u8);

impl Priority {
    /// What a person asks for comes before what a clock asks for.
    pub const MANUAL: Priority = Priority(8);

    /// Checks that it is 1 to 10.
    pub fn new(priority: u8) -> Result<Priority, ParseError> {
        if (1..=10).contains(&priority) {
            return Ok(Priority(priority));
        }
        Err(ParseError::value("priority", format!("{priority} is out of range"), "use 1 to 10"))
    }

    /// The number.
    pub fn get(self) -> u8 {
        self.0
    }
}

impl Default for Priority {
    fn default() -> Priority {
        Priority(5)
    }
}

impl TryFrom<u8> for Priority {
    type Error = ParseError;

    fn try_from(priority: u8) -> Result<Priority, ParseError> {
        Priority::new(priority)
    }
}

impl From<Priority> for u8 {
    fn from(priority: Priority) -> u8 {
        priority.0
    }
}

/// What happens to times of day when the clock changes. Rhythms (`*/5 * * * *`) and intervals follow elapsed time and
/// need no policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DstPolicy {
    /// What happens to a time that the clock jumps over.
    pub gap: GapPolicy,
    /// What happens to a time that the clock shows twice.
    pub repeat: RepeatPolicy,
}

/// What happens to a time that the clock jumps over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GapPolicy {
    /// The earliest in a gap of at most 3 hours runs at the end of the gap, unless that is a slot itself; the others
    /// are skipped.
    #[default]
    After,
    /// It is skipped.
    Skip,
}

/// What happens to a time that the clock shows twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RepeatPolicy {
    /// It runs the first time.
    #[default]
    Once,
    /// It runs both times.
    Both,
}

/// What happens to slots that an outage missed. What is not run is recorded as skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CatchUp {
    /// Which of them run.
    pub mode: CatchUpMode,
    /// At most so many, the latest ones, under `all`.
    pub max: u32,
    /// Only those not older than this when the outage ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<Elapsed>,
    /// Whether a pause is made up for like an outage when it ends.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub covers_pauses: bool,
}

impl CatchUp {
    /// No maximum at all.
    pub const UNLIMITED: u32 = u32::MAX;
}

impl Default for CatchUp {
    fn default() -> CatchUp {
        CatchUp { mode: CatchUpMode::Latest, max: 100, window: None, covers_pauses: false }
    }
}

/// Which missed slots run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CatchUpMode {
    /// None of them.
    None,
    /// The earliest.
    First,
    /// The latest.
    Latest,
    /// All of them, in order, each when the one before has started.
    All,
}

/// What happens when a run is due while another of the schedule is at work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// Both run.
    Allow,
    /// The new one is skipped.
    Skip,
    /// The new one waits for the other to end.
    #[default]
    Queue,
    /// The other is cancelled, then the new one runs.
    Replace,
}

impl Overlap {
    /// Whether a run is answered as soon as it is due beside another, even if there is no place for it.
    pub fn answers_at_once(self) -> bool {
        matches!(self, Overlap::Skip | Overlap::Replace)
    }
}

/// How late a run may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MaxDelay {
    /// Until an hour after the local day has ended; then it is skipped as `day_ended`.
    #[default]
    Day,
    /// So long after it was due; then it is skipped as `late`.
    Duration(Elapsed),
    /// However late.
    None,
}

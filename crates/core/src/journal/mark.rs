//! Marks: what an entry is in the history of runs, and what it is found and counted by.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::entry::{Attempt, Body};
use crate::run::figures::{COST, COST_MICROS_MAX, TOKENS_MAX, count, number};
use crate::run::{Outcome, RunEvent};

/// How an attempt, a run or a range of slots ended, in one of five words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The work was done.
    Succeeded,
    /// It was not, or nobody knows.
    Failed,
    /// It was called off.
    Cancelled,
    /// It was answered without a try.
    Skipped,
    /// Its node was stopped, and the run goes on.
    Stopped,
}

/// What an entry is found by in the history, and what it counts for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark<'a> {
    /// The agent.
    pub agent: &'a str,
    /// The project.
    pub project: Option<&'a str>,
    /// How it ended.
    pub verdict: Verdict,
    /// Whether it is the last word about its run or its slots: nothing more is tried.
    pub is_final: bool,
    /// When the work began; if it never did, when it was scheduled, or when that was decided ahead of its time.
    pub shown_at: Timestamp,
    /// How long the work took, if it began.
    pub duration_ms: Option<u64>,
    /// How long after its scheduled time the work began, if it is the first attempt.
    pub late_ms: Option<u64>,
    /// How many tokens models read and wrote.
    pub tokens: Option<u64>,
    /// What that cost, in millionths of a dollar.
    pub cost_micros: Option<u64>,
}

impl Verdict {
    /// The word for it in SQL and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Succeeded => "succeeded",
            Verdict::Failed => "failed",
            Verdict::Cancelled => "cancelled",
            Verdict::Skipped => "skipped",
            Verdict::Stopped => "stopped",
        }
    }

    /// How a run ended, in one word.
    pub fn of_outcome(outcome: Outcome) -> Verdict {
        match outcome {
            Outcome::Succeeded => Verdict::Succeeded,
            Outcome::Failed(_) | Outcome::Unknown => Verdict::Failed,
            Outcome::Cancelled => Verdict::Cancelled,
            Outcome::Skipped(_) => Verdict::Skipped,
        }
    }

    /// How something ended that an event has ended; `None` if it goes on.
    pub(super) fn of(event: &RunEvent) -> Option<Verdict> {
        match event {
            RunEvent::Succeeded => Some(Verdict::Succeeded),
            RunEvent::Failed { .. } | RunEvent::OwnerLost { .. } => Some(Verdict::Failed),
            RunEvent::Stopped { .. } => Some(Verdict::Stopped),
            RunEvent::Cancelled => Some(Verdict::Cancelled),
            RunEvent::Skipped(_) => Some(Verdict::Skipped),
            RunEvent::WaitExpired { .. } => Some(Verdict::Failed),
            RunEvent::Claimed { .. }
            | RunEvent::Started
            | RunEvent::HandedBack { .. }
            | RunEvent::Waits { .. }
            | RunEvent::Resumed { .. }
            | RunEvent::CancelAsked
            | RunEvent::Kept
            | RunEvent::Parked => None,
        }
    }
}

impl Body {
    /// What the entry is in the history, if it was written at an instant; `None` if it is no part of it.
    pub fn mark(&self, at: Timestamp) -> Option<Mark<'_>> {
        match self {
            Body::AttemptEnded(attempt) => attempt.mark(at),
            Body::RunChanged(change) => Some(Mark {
                verdict: Verdict::of_outcome(change.end?.outcome),
                agent: &change.agent,
                project: change.project.as_deref(),
                is_final: true,
                shown_at: change.scheduled_at.min(at),
                duration_ms: None,
                late_ms: None,
                tokens: None,
                cost_micros: None,
            }),
            Body::Skipped(skip) => Some(Mark {
                agent: &skip.agent,
                project: skip.project.as_deref(),
                verdict: Verdict::Skipped,
                is_final: true,
                shown_at: skip.first_at.min(at),
                duration_ms: None,
                late_ms: None,
                tokens: None,
                cost_micros: None,
            }),
            _ => None,
        }
    }
}

impl Attempt {
    /// How it ended; what was stopped and does not go on has failed: whether the work was done is not known.
    fn verdict(&self) -> Option<Verdict> {
        match Verdict::of(&self.event)? {
            Verdict::Stopped if self.retry_at.is_none() => Some(Verdict::Failed),
            verdict => Some(verdict),
        }
    }

    fn mark(&self, at: Timestamp) -> Option<Mark<'_>> {
        let millis_since =
            |from: Timestamp, to: Timestamp| u64::try_from(to.duration_since(from).as_millis()).unwrap_or(0);
        let first_start = self.started_at.filter(|_| self.attempt == 1);
        Some(Mark {
            agent: &self.agent,
            project: self.project.as_deref(),
            verdict: self.verdict()?,
            is_final: self.retry_at.is_none(),
            shown_at: self.started_at.unwrap_or(self.scheduled_at),
            duration_ms: self.started_at.map(|started_at| millis_since(started_at, at)),
            late_ms: first_start.map(|started_at| millis_since(self.scheduled_at, started_at)),
            tokens: tokens(&self.report.llm),
            cost_micros: self.report.llm.get(COST).and_then(number).map(micros),
        })
    }
}

/// All tokens of a report: their sum if it says one, or what was read and what was written.
fn tokens(llm: &Map<String, Value>) -> Option<u64> {
    let number = |name: &str| llm.get(name).and_then(count);
    let parts = [number("promptTokens"), number("completionTokens")];
    let sum = parts.iter().flatten().fold(0, |sum: u64, part| sum.saturating_add(*part)).min(TOKENS_MAX);
    number("totalTokens").or_else(|| parts.iter().any(Option::is_some).then_some(sum))
}

fn micros(dollars: f64) -> u64 {
    // What is negative is no cost; what is too much is the most, so that sums can hold it.
    ((dollars * 1e6).round() as u64).min(COST_MICROS_MAX)
}

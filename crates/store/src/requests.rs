//! What loops ask of a store beyond the kernel, and what they get.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use punctual_core::journal::{Attempt, Body, Entry, RecordState, RunChange, SkipEntry, Verdict};
use punctual_core::time::zone::floor_microsecond;
use punctual_core::{RunId, ScheduleId, Token};
pub use punctual_kernel::types::*;
use serde::{Deserialize, Serialize};

/// What another node's write may mean for this one. It saves waiting, and nothing depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hint {
    /// There may be something to plan.
    pub plan: bool,
    /// There may be something to claim.
    pub runs: bool,
    /// A run at work may have been called off.
    pub stops: bool,
}

/// A reading of the clock that all nodes of a store share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedTime {
    /// What it showed.
    pub at: Timestamp,
    /// How long this machine had been running then, sleep included.
    pub boot: Duration,
}

impl SharedTime {
    /// What the shared clock shows, to the microsecond, when this machine has been running for so long.
    pub fn when_running_for(&self, boot: Duration) -> Timestamp {
        let signed = |duration| SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX);
        let since = signed(boot).saturating_sub(signed(self.boot));
        floor_microsecond(self.at.checked_add(since).unwrap_or(self.at))
    }
}

/// Which ended attempts and other answers to list, those that began or were scheduled last first, then by number. The default
/// lists none: say how many.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HistoryFilter {
    /// Of this schedule.
    pub schedule: Option<ScheduleId>,
    /// Of this run.
    pub run: Option<RunId>,
    /// Of this agent.
    pub agent: Option<String>,
    /// Of one of these projects.
    pub projects: Option<Vec<String>>,
    /// That ended so.
    pub verdict: Option<Verdict>,
    /// Only the last word about each run and each slot: no attempt that is followed by another.
    pub only_final: bool,
    /// That began, or were scheduled, from here on.
    pub from: Option<Timestamp>,
    /// That began, or were scheduled, before this.
    pub until: Option<Timestamp>,
    /// Behind so many others.
    pub offset: usize,
    /// At most so many.
    pub limit: usize,
}

impl HistoryFilter {
    /// Whether the work stays small however long the history grows: what one run has is found by an index.
    pub(crate) fn is_of_one_run(&self) -> bool {
        self.run.is_some()
    }
}

/// Which records of workflows to list. The default lists none: say how many.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecordFilter {
    /// Of one of these projects; `None` in it is those that belong to none.
    pub projects: Option<Vec<Option<String>>>,
    /// Of schedules of these names.
    pub schedules: Option<Vec<String>>,
    /// In one of these states.
    pub states: Option<Vec<RecordState>>,
    /// Of one of these workflows.
    pub workflows: Option<Vec<String>>,
    /// In the name of whose workflow this stands, in capitals or not.
    pub workflow_part: Option<String>,
    /// Of this run.
    pub run: Option<RunId>,
    /// Scheduled behind this.
    pub after: Option<Timestamp>,
    /// Scheduled before this.
    pub before: Option<Timestamp>,
    /// In whose names, workflow id, run id or note this stands, in capitals or not.
    pub text: Option<String>,
    /// By these, in this order; what is left is by number, latest first.
    pub sort: Vec<(RecordOrder, Direction)>,
    /// Behind so many others.
    pub offset: usize,
    /// At most so many.
    pub limit: usize,
}

/// What records are ordered by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RecordOrder {
    /// When the slot was scheduled.
    ScheduledAt,
    /// When it was begun.
    ExecutedAt,
    /// The name of the schedule.
    Schedule,
    /// The name of the workflow.
    Workflow,
    /// The state, by its word.
    State,
}

/// Which way an order goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// The least first.
    Up,
    /// The greatest first.
    Down,
}

/// A page of records.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecordPage {
    /// How many there are in all.
    pub total: u64,
    /// Those of the page.
    pub records: Vec<RecordItem>,
}

/// What became of a workflow that a schedule had started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordItem {
    /// The number of the entry that says so; none while it is being started.
    pub seq: Option<u64>,
    /// The schedule.
    pub schedule_id: Option<ScheduleId>,
    /// The run; none for slots that had none.
    pub run: Option<RunId>,
    /// The project.
    pub project: Option<String>,
    /// The name of the schedule.
    pub schedule: String,
    /// The name of the workflow.
    pub workflow: String,
    /// The workflow that was started.
    pub workflow_id: Option<String>,
    /// How far it has come.
    pub state: RecordState,
    /// Why it was not started.
    pub note: Option<String>,
    /// When the slot was scheduled.
    pub scheduled_at: Timestamp,
    /// When it was begun, if it was.
    pub executed_at: Option<Timestamp>,
}

/// How many records of a schedule are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    /// So many are left.
    pub max: usize,
    /// Once there are more than so many.
    pub threshold: usize,
}

/// What the attempts of an agent that ended in one way come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Totals {
    /// The agent.
    pub agent: String,
    /// How they ended.
    pub verdict: Verdict,
    /// How many there were.
    pub attempts: u64,
    /// How many of them were the last of their run.
    pub runs: u64,
    /// How long their work took together.
    pub duration_ms: u64,
    /// How many tokens models read and wrote.
    pub tokens: u64,
    /// What that cost, in millionths of a dollar.
    pub cost_micros: u64,
    /// How many first attempts began how long after their scheduled times: up to each of [`LATE_MS`], and later than all.
    pub late: [u64; LATE_MS.len() + 1],
}

/// The milliseconds up to which attempts are counted as late by as much, in order.
pub const LATE_MS: [u64; 6] = [10, 100, 1_000, 10_000, 60_000, 600_000];

/// One line of history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryItem {
    /// The number of the entry.
    pub seq: u64,
    /// When it was written.
    pub at: Timestamp,
    /// What happened.
    pub what: HistoryWhat,
}

/// What a line of history is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HistoryWhat {
    /// An attempt ended: by its own report, because its node was lost, or because what it waited for did not come.
    Attempt(Box<Attempt>),
    /// A run ended without an attempt, or between two: skipped or cancelled.
    RunEnded(RunChange),
    /// Slots were skipped.
    Skipped(SkipEntry),
}

impl HistoryItem {
    /// What an entry tells of the past.
    pub fn of(entry: &Entry) -> Option<HistoryItem> {
        entry.body.mark(entry.at)?;
        let what = match &entry.body {
            Body::AttemptEnded(attempt) => HistoryWhat::Attempt(attempt.clone()),
            Body::RunChanged(change) => HistoryWhat::RunEnded(change.clone()),
            Body::Skipped(skip) => HistoryWhat::Skipped(skip.clone()),
            _ => return None,
        };
        Some(HistoryItem { seq: entry.seq, at: entry.at, what })
    }
}

/// A token, and when it was last used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRecord {
    /// The token.
    pub token: Token,
    /// When somebody last came with it, to the minute or so.
    pub used_at: Option<Timestamp>,
}

/// Where a piece of output was printed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// A piece of what an attempt printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The run.
    pub run: RunId,
    /// The epoch of the attempt.
    pub epoch: u64,
    /// Which try it was.
    pub attempt: u32,
    /// Where to.
    pub stream: Stream,
    /// When.
    pub at: Timestamp,
    /// How many bytes the attempt had printed in all behind it.
    pub ends_at: u64,
    /// What it says.
    pub text: String,
}

/// A piece, with the number that the store gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrintedPiece {
    /// Its number: later pieces of a run have higher ones.
    pub seq: u64,
    /// The piece.
    pub piece: Piece,
}

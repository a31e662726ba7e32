//! Entries: each commits with the change that it explains, and says enough to make that change again.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::plan::SkipRange;
use crate::run::{Run, RunEvent, SkipReason};
use crate::schedule::{Cursor, Schedule};
use crate::time::{Slot, SlotKey};
use crate::{NodeId, RunId, ScheduleId};

/// One line of the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Its number: the order of commits, without gaps.
    pub seq: u64,
    /// When it was written.
    pub at: Timestamp,
    /// What happened.
    pub body: Body,
}

/// What happened. Changes to schedules carry the whole definition; what batches do is one entry for the batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Body {
    /// A schedule was created, edited, paused, resumed or ended: this is what it is now.
    ScheduleChanged(Box<Schedule>),
    /// A schedule was deleted. Its planned runs were withdrawn before.
    ScheduleDeleted {
        /// Which.
        schedule: ScheduleId,
    },
    /// Slots were answered with runs, or a plan was changed.
    Planned(PlanEntry),
    /// Slots were answered without a run.
    Skipped(SkipEntry),
    /// An event or a person asked for a run.
    RunAsked(Box<Run>),
    /// A node took runs.
    RunsClaimed {
        /// The node.
        owner: NodeId,
        /// The runs.
        runs: Vec<RunId>,
    },
    /// The work of runs begins.
    RunsStarted {
        /// The runs.
        runs: Vec<RunId>,
    },
    /// Something happened to one run, under an epoch.
    RunChanged {
        /// The run.
        run: RunId,
        /// The epoch under which it was written; an older one changes nothing.
        epoch: u64,
        /// What happened.
        event: RunEvent,
    },
}

/// What planning changed for one schedule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanEntry {
    /// The schedule.
    pub schedule: ScheduleId,
    /// Its version in force.
    pub version: u64,
    /// How far its slots are answered now.
    pub cursor: Cursor,
    /// Runs that are new.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<PlannedRun>,
    /// Runs that stay, at another instant: the zone data has changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moved: Vec<MovedRun>,
    /// Runs that are gone. Their slots may come back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub withdrawn: Vec<RunId>,
}

/// A run that was planned for a slot. What else it is follows from the schedule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedRun {
    /// The run.
    pub id: RunId,
    /// The key of its slot.
    pub key: SlotKey,
    /// When the slot is scheduled.
    pub scheduled_at: Timestamp,
    /// When the run is due.
    pub due_at: Timestamp,
}

impl PlannedRun {
    /// The run that answers a slot.
    pub fn new(id: RunId, slot: &Slot) -> PlannedRun {
        PlannedRun { id, key: slot.key(), scheduled_at: slot.scheduled_at, due_at: slot.due_at }
    }
}

/// A planned run whose slot lies at another instant now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MovedRun {
    /// The run.
    pub id: RunId,
    /// When its slot is scheduled now.
    pub scheduled_at: Timestamp,
    /// When it is due now.
    pub due_at: Timestamp,
}

/// Slots in a row that were skipped. A checker enumerates that version's slots from the first to the last, and compares.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SkipEntry {
    /// The schedule.
    pub schedule: ScheduleId,
    /// Its version in force.
    pub version: u64,
    /// The first slot.
    pub first: SlotKey,
    /// The last slot.
    pub last: SlotKey,
    /// How many slots.
    pub count: u64,
    /// Why.
    pub reason: SkipReason,
}

impl SkipEntry {
    /// The record of a range that planning has skipped.
    pub fn new(schedule: &Schedule, range: &SkipRange) -> SkipEntry {
        SkipEntry {
            schedule: schedule.id,
            version: schedule.version,
            first: range.first.key(),
            last: range.last.key(),
            count: range.count,
            reason: range.reason,
        }
    }
}

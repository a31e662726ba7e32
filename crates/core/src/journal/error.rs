//! What is wrong with an entry.

use crate::run::IllegalTransition;
use crate::time::SlotKey;
use crate::{RunId, ScheduleId, TokenId};

/// An entry that cannot have happened in this world: the journal or the fold is broken, or a change came too late.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JournalError {
    /// An entry is missing, or stands twice.
    #[error("entry {found} follows entry {after}")]
    OutOfOrder {
        /// The last entry taken in.
        after: u64,
        /// The one that came next.
        found: u64,
    },
    /// A schedule that does not exist.
    #[error("schedule {0} does not exist")]
    UnknownSchedule(ScheduleId),
    /// A plan for another version of the schedule.
    #[error("schedule {schedule} has version {version}, not {planned}")]
    OtherVersion {
        /// The schedule.
        schedule: ScheduleId,
        /// Its version.
        version: u64,
        /// The version that was planned.
        planned: u64,
    },
    /// A second token with the same id.
    #[error("token {0} exists already")]
    DuplicateToken(TokenId),
    /// A token that does not exist.
    #[error("token {0} does not exist")]
    UnknownToken(TokenId),
    /// A run that does not exist.
    #[error("run {0} does not exist")]
    UnknownRun(RunId),
    /// A second run with the same id.
    #[error("run {0} exists already")]
    DuplicateRun(RunId),
    /// A second answer to one slot.
    #[error("slot {key} of schedule {schedule} has its run already")]
    DuplicateSlot {
        /// The schedule.
        schedule: ScheduleId,
        /// The slot.
        key: SlotKey,
    },
    /// A write by a node that no longer holds the run.
    #[error("run {run} has epoch {epoch}, not {found}")]
    StaleEpoch {
        /// The run.
        run: RunId,
        /// Its epoch.
        epoch: u64,
        /// The epoch that was named.
        found: u64,
    },
    /// A plan changes a run of another schedule, or one run twice; or a batch names a run twice.
    #[error("run {0} is not this entry's to change, or stands in it twice")]
    NotIts(RunId),
    /// A run that was touched is not withdrawn and does not move.
    #[error("run {0} is not planned any more")]
    NotPlanned(RunId),
    /// Something that cannot happen to a run in its state.
    #[error("run {run}: {cause}")]
    Illegal {
        /// The run.
        run: RunId,
        /// Why not.
        cause: IllegalTransition,
    },
    /// A day that has begun already.
    #[error("the day {date} has begun in {zone} already")]
    DayAgain {
        /// The zone.
        zone: String,
        /// The day.
        date: jiff::civil::Date,
    },
}

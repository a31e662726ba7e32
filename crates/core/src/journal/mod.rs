//! The journal: what happened, in order. The present is what it folds to.

mod entry;
mod error;
mod mark;
mod record;
mod world;

pub use entry::{Attempt, Body, Checkpoint, Entry, PlanEntry, PlannedRun, RunChange, SkipEntry, checksum};
pub use error::JournalError;
pub use mark::{Mark, Verdict};
pub use record::{RecordState, StartRecord, WORKFLOW_ID};
pub use world::{ScheduleRecord, World};

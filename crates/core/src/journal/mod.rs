//! The journal: what happened, in order. The present is what it folds to.

mod ended;
mod entry;
mod error;
mod mark;
mod outages;
mod parts;
mod record;
mod world;

pub use ended::EndedRun;
pub use entry::{Attempt, Body, Entry, PlanEntry, PlannedRun, RunChange, RunEnd, SkipEntry, checksum};
pub use error::JournalError;
pub use mark::{Mark, Verdict};
pub use outages::{NotedOutage, Outages};
pub use parts::Parts;
pub use record::{RecordState, StartRecord, WORKFLOW_ID};
pub use world::{ScheduleRecord, World};

//! The journal: what happened, in order. The present is what it folds to.

mod entry;
mod world;

pub use entry::{Body, Entry, MovedRun, PlanEntry, PlannedRun, SkipEntry};
pub use world::{JournalError, World};

//! What follows from rows: which runs are blocked, lanes and their heads, counts.
//!
//! In: rows that [`super::save`] has written. Out: the columns and tables that claiming reads. Invariant: when a command
//! ends, all of it is what looking at every row would give; `verify` looks at every row.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use jiff::Timestamp;
use punctual_core::plan::Lane;
use punctual_core::{RunId, ScheduleId};

use super::fault::Done;
use super::gates::Shared;
use super::lanes::LaneChange;
use super::session::Session;

/// What has to be brought up to date before the command ends.
#[derive(Debug, Default)]
pub(super) struct Derived {
    /// Lanes that runs have come to or left, by the number of their row.
    pub(super) lanes: HashMap<i64, LaneChange>,
    pub(super) lane_ids: HashMap<Lane, i64>,
    /// Gates whose lanes have changed.
    pub(super) gates: BTreeSet<i64>,
    /// By how much more runs hold a place.
    pub(super) held: BTreeMap<Shared, i64>,
    /// By how many more runs the terms are used.
    pub(super) uses: BTreeMap<i64, i64>,
    /// Schedules whose runs have changed: others of them may be blocked now, or not any more.
    pub(super) schedules: BTreeSet<ScheduleId>,
    /// Runs that have started or ended: those that follow them may go.
    pub(super) leaders: BTreeSet<RunId>,
    /// Planned runs that follow another and were written.
    pub(super) followers: BTreeSet<RunId>,
}

impl Session {
    /// Brings everything up to date that follows from the rows.
    pub(super) fn settle_derived(&mut self, now: Timestamp) -> Done<()> {
        self.count_uses()?;
        self.refresh_blocked()?;
        self.refresh_lanes(now)?;
        self.count_held()?;
        self.refresh_gates()?;
        self.derived = Derived::default();
        Ok(())
    }
}

//! A state held against rows: what whoever follows the journal knows must be what the rows say.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use punctual_core::RunId;
use punctual_core::journal::World;
use punctual_core::plan::Lane;

use super::{Rest, State};

/// The planned runs of each lane: those that nothing blocks, and those that wait for others.
type LaneRuns<'a> = BTreeMap<&'a Lane, (&'a BTreeSet<(Timestamp, RunId)>, &'a BTreeSet<(Timestamp, RunId)>)>;

impl State {
    /// In which parts this differs from a state that is opened from rows, derived data included. When lanes had their turn is
    /// known only to who was there, and is not compared.
    pub fn differences(&mut self, rows: &World) -> Vec<String> {
        let mut opened = State::new(rows.clone());
        opened.settle_order();
        self.settle_order();
        let (own, other) = (&self.world, &opened.world);
        let mut found = vec![];
        if own.seq != other.seq {
            found.push(format!("the state is at entry {}, the rows are at {}", own.seq, other.seq));
        }
        for (id, run) in &other.runs {
            if own.runs.get(id) != Some(run) {
                found.push(format!("run {id} is {:?}, its row is {run:?}", own.runs.get(id)));
            }
        }
        found
            .extend(own.runs.keys().filter(|id| !other.runs.contains_key(id)).map(|id| format!("run {id} has no row")));
        let parts = [
            ("schedules", own.schedules == other.schedules),
            ("days, outages, tokens or the epoch floor", Rest::of(own) == Rest::of(other)),
            ("expiring runs", self.expiring == opened.expiring),
            ("waiting runs", self.waiting == opened.waiting),
            ("owners", self.owned == opened.owned),
            ("names", self.names == opened.names),
            ("timers", self.timers == opened.timers),
            ("blocked runs", self.order.blocked == opened.order.blocked),
            ("runs that follow others", self.order.following == opened.order.following),
            ("overlapping runs", self.order.overlapping == opened.order.overlapping),
            ("lanes", self.lane_runs() == opened.lane_runs()),
            ("held places", self.lanes.held == opened.lanes.held),
        ];
        found.extend(parts.iter().filter(|(_, is_same)| !is_same).map(|(part, _)| format!("{part} differ")));
        found
    }

    fn lane_runs(&self) -> LaneRuns<'_> {
        let lanes = self.lanes.lanes.iter().map(|(lane, runs)| (&**lane, (&runs.open, &runs.blocked)));
        lanes.filter(|(_, (open, blocked))| !open.is_empty() || !blocked.is_empty()).collect()
    }
}

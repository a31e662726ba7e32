//! The snapshot follows the state: what has changed since it was last written, as it is now.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::civil::Date;
use punctual_core::journal::{Outages, ScheduleRecord, World};
use punctual_core::run::Run;
use punctual_core::schedule::Schedule;
use punctual_core::{RunId, ScheduleId, Token, TokenId};
use serde::{Deserialize, Serialize};

use super::State;

/// What the snapshot does not have yet. With each schedule and run, whether the snapshot has an older form of it.
#[derive(Debug, Default)]
pub(super) struct Unsaved {
    schedules: BTreeMap<ScheduleId, UnsavedSchedule>,
    runs: BTreeMap<RunId, bool>,
    has_rest: bool,
}

#[derive(Debug, Clone, Copy)]
struct UnsavedSchedule {
    is_there: bool,
    /// Whether it is defined otherwise than in the snapshot, and has not only come further.
    is_redefined: bool,
}

impl Unsaved {
    /// A schedule changes; `before` is what it was, if it was there. Whether it is defined as it was.
    pub(super) fn note_schedule(&mut self, before: Option<&Schedule>, after: Option<&Schedule>) -> bool {
        let Some(id) = before.or(after).map(|schedule| schedule.id) else { return true };
        let is_same = before.zip(after).is_some_and(|(before, after)| before.is_defined_as(after));
        let is_there = before.is_some();
        let noted = self.schedules.entry(id).or_insert(UnsavedSchedule { is_there, is_redefined: false });
        noted.is_redefined |= !is_same;
        is_same
    }

    pub(super) fn note_run(&mut self, id: RunId, is_there: bool) {
        self.runs.entry(id).or_insert(is_there);
    }

    pub(super) fn note_rest(&mut self) {
        self.has_rest = true;
    }
}

/// What brings a snapshot from the entry at which it was last written to `seq`, whole: none of it holds without the rest.
#[derive(Debug, Clone, Default)]
pub struct SnapshotPiece {
    /// The number of the last entry in it.
    pub seq: u64,
    /// Schedules as they are now, and those that are gone.
    pub schedules: Vec<(ScheduleId, Option<ScheduleRecord>)>,
    /// Those of them whose definition the snapshot has: only how far they have come is different.
    pub same_definition: BTreeSet<ScheduleId>,
    /// Runs as they are now, and those that are over.
    pub runs: Vec<(RunId, Option<Arc<Run>>)>,
    /// Schedules that have come and gone since: only a snapshot that another process has brought further has them.
    pub passed_schedules: Vec<ScheduleId>,
    /// Runs that have come and gone since.
    pub passed_runs: Vec<RunId>,
    /// The rest, if anything of it has changed.
    pub rest: Option<Rest>,
}

/// What is small.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rest {
    /// The last day that has begun, by zone.
    pub days: BTreeMap<String, Date>,
    /// The times in which no node planned.
    #[serde(default)]
    pub outages: Arc<Outages>,
    /// Every epoch is higher than this.
    pub epoch_floor: u64,
    /// The tokens.
    pub tokens: Arc<BTreeMap<TokenId, Token>>,
}

impl SnapshotPiece {
    /// The snapshot of a whole world.
    pub fn of(world: &World) -> SnapshotPiece {
        SnapshotPiece {
            seq: world.seq,
            schedules: world.schedules.iter().map(|(id, record)| (*id, Some(record.clone()))).collect(),
            same_definition: BTreeSet::new(),
            runs: world.runs.iter().map(|(id, run)| (*id, Some(Arc::clone(run)))).collect(),
            rest: Some(Rest::of(world)),
            ..SnapshotPiece::default()
        }
    }

    /// How many rows it writes.
    pub fn len(&self) -> usize {
        self.schedules.len() + self.runs.len()
    }

    /// Whether it writes none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0 && self.rest.is_none()
    }
}

impl Rest {
    /// That of a world.
    pub fn of(world: &World) -> Rest {
        let (outages, tokens) = (Arc::clone(&world.outages), Arc::clone(&world.tokens));
        Rest { days: world.days.clone(), outages, epoch_floor: world.epoch_floor, tokens }
    }

    /// Puts it into a world.
    pub fn put(self, world: &mut World) {
        let Rest { days, outages, epoch_floor, tokens } = self;
        (world.days, world.outages, world.epoch_floor, world.tokens) = (days, outages, epoch_floor, tokens);
    }
}

impl State {
    /// How many schedules and runs the snapshot does not have as they are.
    pub fn unsaved(&self) -> usize {
        self.unsaved.schedules.len() + self.unsaved.runs.len() + usize::from(self.unsaved.has_rest)
    }

    /// What the snapshot lacks. It stays noted until [`State::note_saved`].
    pub fn snapshot_piece(&self) -> SnapshotPiece {
        let Unsaved { schedules, runs, has_rest } = &self.unsaved;
        let mut piece = SnapshotPiece { seq: self.world.seq, ..SnapshotPiece::default() };
        for (id, it) in schedules {
            match self.world.schedules.get(id).cloned() {
                None if !it.is_there => piece.passed_schedules.push(*id),
                now => piece.schedules.push((*id, now)),
            }
            if !it.is_redefined {
                piece.same_definition.insert(*id);
            } else if it.is_there {
                // Rows of runs may leave out terms that are those of their schedule: now they may be others.
                let others = self.live_runs_of(*id).filter(|run| !runs.contains_key(&run.id));
                piece.runs.extend(others.map(|run| (run.id, Some(Arc::clone(run)))));
            }
        }
        for (id, is_there) in runs {
            match self.world.runs.get(id).cloned() {
                None if !is_there => piece.passed_runs.push(*id),
                now => piece.runs.push((*id, now)),
            }
        }
        piece.rest = has_rest.then(|| Rest::of(&self.world));
        piece
    }

    /// The snapshot is what the state is now.
    pub fn note_saved(&mut self) {
        self.unsaved = Unsaved::default();
    }
}

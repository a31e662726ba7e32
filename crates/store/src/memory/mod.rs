//! The model: a store in plain collections, the simplest code that is right.
//!
//! What the simulation runs on, and what the differential test holds the other stores against. No index, no imitation
//! of SQL: where another store is clever, this one looks at everything.

mod answers;
mod claims;
mod import;
mod journal;
mod nodes;
mod output;
mod plan;
mod records;
mod tokens;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use punctual_core::journal::{Body, EndedRun, Entry, World};
use punctual_core::plan::Lane;
use punctual_core::run::{Run, Terms};
use punctual_core::schedule::Schedule;
use punctual_core::{NodeId, RunId, ScheduleId, TokenId};

use crate::error::Result;
use crate::kept::bare_terms;
use crate::requests::{Answered, NodeRecord, Planner, PrintedPiece};
use punctual_kernel::change::{self, Draft, Wants, name_of};
use punctual_kernel::state::Rest;

/// The model store.
#[derive(Default)]
pub struct MemoryStore {
    state: Mutex<State>,
    is_exclusive: bool,
    clock: Option<Clock>,
}

/// A clock that all nodes of a store share.
type Clock = Box<dyn Fn() -> Timestamp + Send + Sync>;

/// Everything that the model knows.
#[derive(Debug, Clone, Default)]
pub struct State {
    /// Schedules and runs.
    pub world: World,
    /// What the entries that were let go come to: the rest stands on it.
    pub base: World,
    /// The journal, from its beginning or from the base on.
    pub entries: Vec<Entry>,
    /// The checksum of the last entry that was let go; 0 while there is none.
    pub checksum_before: u64,
    /// The nodes that have a lease.
    pub nodes: BTreeMap<NodeId, NodeRecord>,
    /// Who plans.
    pub planner: Option<Planner>,
    /// When a node last said that it has the agent.
    pub agents_seen: BTreeMap<String, Timestamp>,
    /// When a run of the lane was last claimed, for lanes with planned runs.
    pub turns: BTreeMap<Lane, Timestamp>,
    /// What was answered, by the keys of requests.
    pub answers: BTreeMap<String, Answered>,
    /// What runs have printed.
    pub output: Vec<PrintedPiece>,
    /// How many pieces were ever printed.
    pub printed: u64,
    /// Records that were let go, by the numbers of their entries.
    pub archived: BTreeSet<u64>,
    /// When tokens were last used.
    pub tokens_used: BTreeMap<TokenId, Timestamp>,
}

impl MemoryStore {
    /// An empty store that many nodes share.
    pub fn new() -> MemoryStore {
        MemoryStore::default()
    }

    /// An empty store that one server has for itself, as it would have a file.
    pub fn exclusive() -> MemoryStore {
        MemoryStore { is_exclusive: true, ..MemoryStore::default() }
    }

    /// An empty store that many nodes share, with a clock of its own, as a database has one.
    pub fn with_clock(clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> MemoryStore {
        MemoryStore { clock: Some(Box::new(clock)), ..MemoryStore::default() }
    }

    /// A look at everything.
    pub fn look<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.state())
    }

    /// Changes anything, past every verb: for a store of tests that keeps its rows here and decides elsewhere.
    pub fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state())
    }

    /// Puts an older copy in the place of everything that was written since, as a standby comes that has missed commits.
    pub fn put_back(&self, copy: State) {
        *self.state() = copy;
    }

    /// What whoever notices that commits are lost does first: raises every epoch above all that were given while `floor` was the
    /// highest that anybody knew of.
    pub fn begin_anew(&self, now: Timestamp, floor: u64) -> Result<()> {
        let mut state = self.state();
        let epoch_floor = change::raised_floor(state.world.epoch_floor.max(floor), now);
        let entry = Entry { seq: state.world.seq + 1, at: now, body: Body::Restored { epoch_floor } };
        state.world.apply(&entry)?;
        state.entries.push(entry);
        Ok(())
    }

    /// The time by the clock that all nodes share; a node's own where there is none.
    fn time(&self, own: Timestamp) -> Timestamp {
        self.clock.as_ref().map_or(own, |clock| clock())
    }

    /// A panic under the lock leaves a state between two changes: each is written in one assignment at its end.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").field("state", &self.state).finish_non_exhaustive()
    }
}

impl State {
    /// A run that is over, as its last entry says.
    fn ended(&self, id: RunId) -> Option<EndedRun> {
        self.entries.iter().filter_map(EndedRun::of).find(|ended| ended.id == id)
    }

    /// The run that an entry has ended, with the terms that it had.
    fn ended_run(&self, ended: EndedRun) -> Run {
        let current = ended.schedule.and_then(|id| self.world.schedules.get(&id)).map(|record| &*record.schedule);
        let changed = self.entries.iter().rev().filter_map(|entry| match &entry.body {
            Body::ScheduleChanged { schedule, .. } => Some(&**schedule),
            _ => None,
        });
        let mut versions = current.into_iter().chain(changed);
        let is_its = |it: &&Schedule| Some(it.id) == ended.schedule && it.version == ended.end.version;
        let requested = self.entries.iter().find_map(|entry| match &entry.body {
            Body::RunAsked { run, .. } if run.id == ended.id => Some(Arc::clone(&run.terms)),
            _ => None,
        });
        let terms = match ended.key.is_slot() {
            true => versions.find(is_its).map(|schedule| Arc::new(Terms::of(schedule))),
            false => requested,
        };
        let terms = terms.unwrap_or_else(|| Arc::new(bare_terms(&ended)));
        ended.into_run(terms)
    }

    /// Reads what a change wants.
    fn draft(&self, wants: &Wants, now: Timestamp) -> Draft {
        let world = &self.world;
        let is_parked = |run: &Run| run.is_parked && run.planned_for().is_some();
        let is_wanted = |id: RunId| {
            let run = &world.runs[&id];
            let schedule = run.schedule;
            wants.runs.contains(&id)
                || schedule.is_some_and(|schedule| {
                    wants.slots.iter().any(|(of, key)| *of == schedule && *key == run.key)
                        || wants.planned_of.contains(&schedule) && run.planned_for().is_some()
                        || wants.at_work_of.contains(&schedule) && (run.is_active() || is_parked(run))
                })
        };
        let names_runs = wants.slots.is_empty() && wants.planned_of.is_empty() && wants.at_work_of.is_empty();
        let runs: BTreeMap<RunId, _> = if names_runs {
            wants.runs.iter().filter_map(|id| Some((*id, world.runs.get(id)?.clone()))).collect()
        } else {
            world.runs.keys().filter(|id| is_wanted(**id)).map(|id| (*id, world.runs[id].clone())).collect()
        };
        let mut ids = wants.schedules.clone();
        ids.extend(runs.values().filter_map(|run| run.schedule));
        let named =
            |id: &&ScheduleId| name_of(&world.schedules[id].schedule).is_some_and(|name| wants.names.contains(&name));
        ids.extend(world.schedules.keys().filter(|_| !wants.names.is_empty()).filter(named));
        let schedules = ids.iter().filter_map(|id| Some((*id, world.schedules.get(id)?.clone()))).collect();
        let mut piece = World { seq: world.seq, runs, schedules, ..World::default() };
        Rest::of(world).put(&mut piece);
        Draft::new(piece, now)
    }

    /// Writes a draft back. `wants` says which rows it had: those that it has no more are gone.
    fn save(&mut self, draft: Draft, wants: &Wants) {
        let Draft { world: piece, entries, .. } = draft;
        for id in &wants.schedules {
            if !piece.schedules.contains_key(id) {
                self.world.schedules.remove(id);
            }
        }
        let over = entries.iter().filter_map(|entry| entry.body.ended()).map(|(run, _)| run);
        for id in wants.runs.iter().copied().chain(over) {
            if !piece.runs.contains_key(&id) {
                self.world.runs.remove(&id);
            }
        }
        self.world.schedules.extend(piece.schedules);
        self.world.runs.extend(piece.runs);
        (self.world.days, self.world.outages, self.world.tokens) = (piece.days, piece.outages, piece.tokens);
        self.world.seq = piece.seq;
        self.entries.extend(entries);
        self.tidy_lanes();
    }

    /// A lane is remembered only while it has planned runs.
    fn tidy_lanes(&mut self) {
        let lanes: std::collections::BTreeSet<Lane> = self
            .world
            .runs
            .values()
            .filter(|run| run.planned_for().is_some())
            .map(|run| Lane::of(&run.terms))
            .collect();
        self.turns.retain(|lane, _| lanes.contains(lane));
    }
}

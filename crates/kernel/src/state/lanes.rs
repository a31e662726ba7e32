//! Lanes and gates: which runs are ready, in which order, and which limits stand in their way.
//!
//! A lane passes if its agent, its project and its key all have a place left. It stands behind one of the three. While
//! that gate is shut, no claim looks at the lane; when a claim finds it behind an open one and another of its gates shut,
//! it goes and stands there. So a claim looks at lanes that it takes from, and at each other lane once in a while, however
//! many are full; and to shut a gate or to open it is one step, however many lanes stand behind it.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use jiff::Timestamp;
use punctual_core::RunId;
use punctual_core::plan::{Held, Lane, Limits};
use punctual_core::run::Terms;

use crate::limits::{Kind, Shared, gates_of, is_open};

/// A limit, and what the lanes behind it say about it.
pub(super) type GateKey = Arc<(Shared, Option<u32>)>;

/// A lane, and its gates. Runs of one lane share it.
#[derive(Debug, Clone)]
pub(super) struct LaneKey(Arc<LaneWithGates>);

#[derive(Debug)]
struct LaneWithGates {
    lane: Lane,
    gates: Vec<(Shared, Option<u32>)>,
}

impl LaneKey {
    fn new(lane: Lane) -> LaneKey {
        LaneKey(Arc::new(LaneWithGates { gates: gates_of(&lane), lane }))
    }

    /// Its gates, each with what the lane says about the limit.
    pub(super) fn gates(&self) -> &[(Shared, Option<u32>)] {
        &self.0.gates
    }
}

impl std::ops::Deref for LaneKey {
    type Target = Lane;

    fn deref(&self) -> &Lane {
        &self.0.lane
    }
}

impl std::borrow::Borrow<Lane> for LaneKey {
    fn borrow(&self) -> &Lane {
        self
    }
}

impl PartialEq for LaneKey {
    fn eq(&self, other: &LaneKey) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for LaneKey {}

impl PartialOrd for LaneKey {
    fn partial_cmp(&self, other: &LaneKey) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for LaneKey {
    fn cmp(&self, other: &LaneKey) -> Ordering {
        if Arc::ptr_eq(&self.0, &other.0) { Ordering::Equal } else { self.0.lane.cmp(&other.0.lane) }
    }
}

/// The lanes that have planned runs, and the gates that they stand behind.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    pub(super) lanes: BTreeMap<LaneKey, LaneState>,
    /// The lanes of live runs, planned or not.
    of_run: HashMap<RunId, LaneKey>,
    /// Lanes that live runs have, and how many.
    known: BTreeMap<LaneKey, usize>,
    pub(super) gates: BTreeMap<GateKey, Gate>,
    /// Open gates by the best rank among their lanes that are due.
    pub(super) by_rank: BTreeSet<(Timestamp, GateKey)>,
    /// Open gates by when the next of their other lanes is due.
    pub(super) by_due: BTreeSet<(Timestamp, GateKey)>,
    /// Lanes that no claim has seen due, and those that one has, by their heads.
    not_due: BTreeSet<(Timestamp, LaneKey)>,
    due: BTreeSet<(Timestamp, LaneKey)>,
    pub(super) held: HashMap<Shared, u32>,
    /// The gates of a limit, whatever their lanes say about it.
    gates_of_shared: HashMap<Shared, BTreeSet<GateKey>>,
    limits: Option<Arc<Limits>>,
    /// Lanes and gates that have changed and are not in their places yet.
    moved_lanes: BTreeSet<LaneKey>,
    moved_gates: BTreeSet<GateKey>,
}

/// A lane with planned runs.
#[derive(Debug)]
pub(super) struct LaneState {
    /// Planned runs that nothing blocks, and those that have to wait for others, by when they may be claimed.
    pub(super) open: BTreeSet<(Timestamp, RunId)>,
    pub(super) blocked: BTreeSet<(Timestamp, RunId)>,
    /// When a run of it was last claimed.
    pub(super) turn_at: Option<Timestamp>,
    gate: GateKey,
    place: Option<Place>,
}

/// Where a lane stands.
#[derive(Debug, Clone, Copy)]
struct Place {
    head: Timestamp,
    rank: Timestamp,
    is_due: bool,
}

/// A limit that lanes stand behind.
#[derive(Debug, Default)]
pub(super) struct Gate {
    lanes: usize,
    /// Its lanes that are due by rank, the others by when they are.
    pub(super) due: BTreeSet<(Timestamp, LaneKey)>,
    pub(super) later: BTreeSet<(Timestamp, LaneKey)>,
    place: Option<(Option<Timestamp>, Option<Timestamp>)>,
}

impl Lanes {
    /// A run comes, or has other terms now.
    pub(super) fn note_run(&mut self, run: RunId, terms: &Terms) {
        self.forget_run(run);
        let lane = Lane::of(terms);
        let key = match self.known.get_key_value(&lane) {
            Some((key, _)) => key.clone(),
            None => LaneKey::new(lane),
        };
        *self.known.entry(key.clone()).or_default() += 1;
        self.of_run.insert(run, key);
    }

    /// A run is gone.
    pub(super) fn forget_run(&mut self, run: RunId) {
        let Some(key) = self.of_run.remove(&run) else { return };
        if let Some(runs) = self.known.get_mut(&key) {
            *runs -= 1;
            if *runs == 0 {
                self.known.remove(&key);
            }
        }
    }

    /// The lane of a live run.
    pub(super) fn of_run(&self, run: RunId) -> Option<&LaneKey> {
        self.of_run.get(&run)
    }

    /// A run becomes a planned one, blocked or not.
    pub(super) fn add(&mut self, ready_at: Timestamp, run: RunId, is_blocked: bool) {
        let key = self.of_run[&run].clone();
        self.keep(&key);
        let state = self.lanes.get_mut(&key).expect("it was just made");
        let runs = if is_blocked { &mut state.blocked } else { &mut state.open };
        runs.insert((ready_at, run));
        self.moved_lanes.insert(key);
    }

    /// A planned run is no longer one.
    pub(super) fn remove(&mut self, ready_at: Timestamp, run: RunId) {
        let key = &self.of_run[&run];
        let Some(state) = self.lanes.get_mut(key) else { return };
        if !state.open.remove(&(ready_at, run)) {
            state.blocked.remove(&(ready_at, run));
        }
        self.moved_lanes.insert(key.clone());
    }

    /// A planned run has to wait for others now, or no more.
    pub(super) fn set_blocked(&mut self, ready_at: Timestamp, run: RunId, is_blocked: bool) {
        self.remove(ready_at, run);
        self.add(ready_at, run, is_blocked);
    }

    /// A lane without planned runs is forgotten, and with it when it had its turn.
    pub(super) fn forget_turns(&mut self) {
        for lane in &self.moved_lanes {
            if let Some(state) =
                self.lanes.get_mut(lane).filter(|state| state.open.is_empty() && state.blocked.is_empty())
            {
                state.turn_at = None;
            }
        }
    }

    /// When a run of a lane was last claimed.
    pub(super) fn turn_of(&self, lane: &LaneKey) -> Option<Timestamp> {
        self.lanes.get(lane).and_then(|state| state.turn_at)
    }

    /// Puts back when a lane had its turn.
    pub(super) fn set_turn(&mut self, lane: &LaneKey, turn_at: Option<Timestamp>) {
        let Some(state) = self.lanes.get_mut(lane) else { return };
        state.turn_at = turn_at;
        self.moved_lanes.insert(lane.clone());
    }

    /// A run of a lane was claimed.
    pub(super) fn take_turn(&mut self, lane: &LaneKey, now: Timestamp) {
        let Some(state) = self.lanes.get_mut(lane) else { return };
        if !state.open.is_empty() || !state.blocked.is_empty() {
            state.turn_at = Some(now);
            self.moved_lanes.insert(lane.clone());
        }
    }

    /// A run holds the places of its lane now, or no more.
    pub(super) fn hold(&mut self, run: RunId, is_held: bool) {
        let lane = self.of_run[&run].clone();
        let all = Shared::all();
        for shared in std::iter::once(&all).chain(lane.gates().iter().map(|(shared, _)| shared)) {
            if let Some(gates) = self.gates_of_shared.get(shared) {
                self.moved_gates.extend(gates.iter().cloned());
            }
            match self.held.get_mut(shared) {
                Some(held) if is_held => *held += 1,
                Some(held) => {
                    *held -= 1;
                    if *held == 0 {
                        self.held.remove(shared);
                    }
                }
                None if is_held => drop(self.held.insert(shared.clone(), 1)),
                None => {}
            }
        }
    }

    /// How many runs hold a place, by what they share.
    pub(super) fn held(&self, shared: &Shared) -> u32 {
        self.held.get(shared).copied().unwrap_or(0)
    }

    /// How many runs hold places that a lane shares.
    pub(super) fn held_of(&self, lane: &LaneKey) -> Held {
        let mut held = Held::default();
        for (shared, _) in lane.gates() {
            let runs = self.held(shared);
            match shared.kind {
                Kind::Agent => held.agent = runs,
                Kind::Project => held.project = runs,
                Kind::Key => held.key = runs,
                Kind::All => {}
            }
        }
        held
    }

    /// The lanes of an agent.
    pub(super) fn of_agent(&self, agent: &str) -> impl Iterator<Item = &LaneState> {
        let first = Lane {
            agent: agent.to_owned(),
            project: None,
            concurrency: None,
            max_concurrent: 0,
            priority: punctual_core::schedule::Priority::default(),
        };
        let is_its = move |(lane, _): &(&LaneKey, &LaneState)| lane.agent == agent;
        self.lanes.range(first..).take_while(is_its).map(|(_, state)| state)
    }

    /// Opens and shuts all gates by other limits than before.
    pub(super) fn set_limits(&mut self, limits: &Arc<Limits>) {
        if self.limits.as_ref() != Some(limits) {
            self.limits = Some(Arc::clone(limits));
            self.moved_gates.extend(self.gates.keys().cloned());
        }
    }

    /// Puts a lane behind another of its gates.
    pub(super) fn move_lane(&mut self, lane: &LaneKey, to: (Shared, Option<u32>)) {
        let to = self.gate(to);
        let Some(state) = self.lanes.get_mut(lane) else { return };
        let from = Arc::clone(&state.gate);
        let place = state.place.take();
        state.gate = Arc::clone(&to);
        self.unplace(lane, &from, place);
        self.gates.get_mut(&from).expect("a lane stood behind it").lanes -= 1;
        self.gates.get_mut(&to).expect("it was just made").lanes += 1;
        self.moved_gates.extend([from, to]);
        self.moved_lanes.insert(lane.clone());
    }

    /// Puts everything that has changed in its place, as it is at an instant.
    pub(super) fn settle(&mut self, now: Timestamp) {
        self.mark_due(now);
        for lane in std::mem::take(&mut self.moved_lanes) {
            self.place_lane(&lane, now);
        }
        for gate in std::mem::take(&mut self.moved_gates) {
            self.place_gate(&gate);
        }
    }

    /// Notes the lanes that have become due, and those that are not any more because the clock has gone back.
    fn mark_due(&mut self, now: Timestamp) {
        let come = self.not_due.iter().take_while(|(head, _)| *head <= now).map(|(_, lane)| lane.clone());
        let gone = self.due.iter().rev().take_while(|(head, _)| now < *head).map(|(_, lane)| lane.clone());
        self.moved_lanes.extend(come.chain(gone).collect::<Vec<_>>());
    }

    fn place_lane(&mut self, lane: &LaneKey, now: Timestamp) {
        let Some(state) = self.lanes.get_mut(lane) else { return };
        let (gate, before) = (Arc::clone(&state.gate), state.place.take());
        let is_empty = state.open.is_empty() && state.blocked.is_empty();
        let place = state.open.first().map(|(head, _)| {
            let rank = lane.rank(*head, state.turn_at);
            Place { head: *head, rank, is_due: *head <= now }
        });
        state.place = place;
        self.unplace(lane, &gate, before);
        self.moved_gates.insert(Arc::clone(&gate));
        let behind = self.gates.get_mut(&gate).expect("a lane stands behind it");
        if is_empty {
            behind.lanes -= 1;
            self.lanes.remove(lane);
        } else if let Some(Place { head, rank, is_due }) = place {
            let lane = lane.clone();
            if is_due {
                behind.due.insert((rank, lane.clone()));
                self.due.insert((head, lane));
            } else {
                behind.later.insert((head, lane.clone()));
                self.not_due.insert((head, lane));
            }
        }
    }

    fn unplace(&mut self, lane: &LaneKey, gate: &GateKey, place: Option<Place>) {
        let Some(Place { head, rank, is_due }) = place else { return };
        let gate = self.gates.get_mut(gate).expect("a lane stood behind it");
        if is_due {
            gate.due.remove(&(rank, lane.clone()));
            self.due.remove(&(head, lane.clone()));
        } else {
            gate.later.remove(&(head, lane.clone()));
            self.not_due.remove(&(head, lane.clone()));
        }
    }

    fn place_gate(&mut self, key: &GateKey) {
        let limits = self.limits.clone().unwrap_or_default();
        let held = self.held(&key.0);
        let Some(gate) = self.gates.get_mut(key) else { return };
        if let Some((best, next)) = gate.place.take() {
            best.map(|best| self.by_rank.remove(&(best, Arc::clone(key))));
            next.map(|next| self.by_due.remove(&(next, Arc::clone(key))));
        }
        if gate.lanes == 0 {
            self.gates.remove(key);
            if let Some(gates) = self.gates_of_shared.get_mut(&key.0) {
                gates.remove(key);
                if gates.is_empty() {
                    self.gates_of_shared.remove(&key.0);
                }
            }
            return;
        }
        if !is_open(&limits, &key.0, key.1, held) {
            return;
        }
        let (best, next) = (gate.due.first().map(|(rank, _)| *rank), gate.later.first().map(|(head, _)| *head));
        gate.place = Some((best, next));
        self.by_rank.extend(best.map(|best| (best, Arc::clone(key))));
        self.by_due.extend(next.map(|next| (next, Arc::clone(key))));
    }

    /// Makes a lane if there is none: behind the gate of its agent.
    fn keep(&mut self, key: &LaneKey) {
        if self.lanes.contains_key(key) {
            return;
        }
        let gate = self.gate((Shared::agent(key), Some(key.max_concurrent)));
        self.gates.get_mut(&gate).expect("it was just made").lanes += 1;
        let (open, blocked) = (BTreeSet::new(), BTreeSet::new());
        self.lanes.insert(key.clone(), LaneState { open, blocked, turn_at: None, gate, place: None });
    }

    fn gate(&mut self, key: (Shared, Option<u32>)) -> GateKey {
        if let Some((key, _)) = self.gates.get_key_value(&key) {
            return Arc::clone(key);
        }
        let key = Arc::new(key);
        self.gates.insert(Arc::clone(&key), Gate::default());
        self.gates_of_shared.entry(key.0.clone()).or_default().insert(Arc::clone(&key));
        self.moved_gates.insert(Arc::clone(&key));
        key
    }
}

//! Taking: which ready runs a claim gets, and in which order.
//!
//! Again and again the lane that comes first gives its first run; the model does the same by looking at everything. Here
//! lanes come gate by gate in the order of their ranks, and runs lane by lane. While a claim goes on, heads only get later,
//! turns only get later, and gates only shut: so what was put off is looked at again when its turn comes, and nothing that
//! was left behind can come before it.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet, btree_set};
use std::iter::Peekable;

use jiff::Timestamp;
use punctual_core::{RunId, ScheduleId};

use super::State;
use super::lanes::{GateKey, LaneKey};
use crate::limits::{Kind, Shared, is_open};
use crate::types::ClaimRequest;

type ByTime<'a, T> = btree_set::Iter<'a, (Timestamp, T)>;

/// What a claim takes.
#[derive(Debug, Default)]
pub(super) struct Taken {
    /// The runs, in order.
    pub(super) runs: Vec<RunId>,
    /// Lanes that stand behind an open gate while another of theirs is shut.
    pub(super) moves: Vec<Move>,
}

/// A lane, and the gate that it has to stand behind.
type Move = (LaneKey, (Shared, Option<u32>));

/// A claim, as it looks for runs.
struct Taking<'a> {
    mirror: &'a State,
    request: &'a ClaimRequest,
    /// How many runs hold a place, those just taken included.
    held: HashMap<Shared, u32>,
    /// Schedules of which a run has just been taken: their runs that queue or are parked have to wait.
    busy: HashSet<ScheduleId>,
    gates: Peekable<ByTime<'a, GateKey>>,
    streams: Vec<(&'a GateKey, ByTime<'a, LaneKey>)>,
    lanes: Vec<Candidate<'a>>,
    next: BinaryHeap<Reverse<Turn>>,
    taken: Taken,
}

/// When a lane has its turn: by rank, how many were taken of it, and name; with its place among the candidates.
type Turn = (Timestamp, usize, LaneKey, usize);

/// A lane that runs may be taken from.
struct Candidate<'a> {
    turn_at: Option<Timestamp>,
    runs: Peekable<ByTime<'a, RunId>>,
    /// The gate behind which it stands, until it has been looked at for the first time.
    stream: Option<usize>,
}

impl State {
    /// Chooses what a claim takes. Nothing changes.
    pub(super) fn choose(&self, request: &ClaimRequest) -> Taken {
        let mut taking = Taking {
            mirror: self,
            request,
            held: HashMap::new(),
            busy: HashSet::new(),
            gates: self.lanes.by_rank.iter().peekable(),
            streams: vec![],
            lanes: vec![],
            next: BinaryHeap::new(),
            taken: Taken::default(),
        };
        while taking.taken.runs.len() < request.limit && taking.is_open(&Shared::all(), None) && taking.step() {}
        taking.taken
    }

    /// When the next lane becomes due that the node could take from, and the lanes that stand behind the wrong gate.
    pub(super) fn next_due_at(&self, request: &ClaimRequest) -> (Option<Timestamp>, Taken) {
        let mut found: Option<Timestamp> = None;
        let mut noted = Taken::default();
        if !is_open(&request.limits, &Shared::all(), None, self.lanes.held(&Shared::all())) {
            return (None, noted);
        }
        for (next_due_at, gate) in &self.lanes.by_due {
            if found.is_some_and(|found| found <= *next_due_at) {
                break;
            }
            if gate.0.kind == Kind::Agent && !request.agents.contains(&gate.0.name) {
                continue;
            }
            for (due_at, lane) in &self.lanes.gates[gate].later {
                if found.is_some_and(|found| found <= *due_at) {
                    break;
                }
                let is_shut = |(shared, max): &(Shared, Option<u32>)| {
                    !is_open(&request.limits, shared, *max, self.lanes.held(shared))
                };
                if let Some(shut) = lane.gates().iter().find(|gate| is_shut(gate)) {
                    noted.moves.push((lane.clone(), shut.clone()));
                } else if request.agents.contains(&lane.agent) {
                    found = Some(*due_at);
                    break;
                }
            }
        }
        (found, noted)
    }
}

impl Taking<'_> {
    /// Looks at the lane that comes first, and takes its first run if that may be. Whether there was a lane.
    fn step(&mut self) -> bool {
        self.open_streams();
        let Some(Reverse((rank, taken, lane, place))) = self.next.pop() else { return false };
        if let Some(stream) = self.lanes[place].stream.take() {
            self.advance(stream);
        }
        if !self.request.agents.contains(&lane.agent) {
            return true;
        }
        if let Some(shut) = self.shut_gate(&lane) {
            self.taken.moves.push((lane, shut));
            return true;
        }
        let Some((ready_at, run)) = self.head(place) else { return true };
        let rank_now = lane.rank(ready_at, self.lanes[place].turn_at);
        if rank < rank_now {
            // Its head had to let another run of its schedule go first.
            self.next.push(Reverse((rank_now, taken, lane, place)));
            return true;
        }
        self.take(place, &lane, run);
        if let Some((ready_at, _)) = self.head(place) {
            let rank = lane.rank(ready_at, self.lanes[place].turn_at);
            self.next.push(Reverse((rank, taken + 1, lane, place)));
        }
        true
    }

    /// Opens gates until none is left that could have a lane before the one that comes first.
    fn open_streams(&mut self) {
        let mirror = self.mirror;
        loop {
            let first = self.next.peek().map(|Reverse((rank, ..))| *rank);
            let comes = |(best_rank, _): &&(Timestamp, GateKey)| first.is_none_or(|first| *best_rank <= first);
            let Some((_, gate)) = self.gates.next_if(comes) else { return };
            if gate.0.kind == Kind::Agent && !self.request.agents.contains(&gate.0.name) {
                continue;
            }
            self.streams.push((gate, mirror.lanes.gates[gate].due.iter()));
            self.advance(self.streams.len() - 1);
        }
    }

    /// Puts the next lane behind a gate among those to look at, unless the gate has been shut by what was taken.
    fn advance(&mut self, stream: usize) {
        let gate = self.streams[stream].0;
        if !self.is_open(&gate.0, gate.1) {
            return;
        }
        let Some((rank, lane)) = self.streams[stream].1.next() else { return };
        let state = &self.mirror.lanes.lanes[lane];
        self.next.push(Reverse((*rank, 0, lane.clone(), self.lanes.len())));
        let runs = state.open.iter().peekable();
        self.lanes.push(Candidate { turn_at: state.turn_at, runs, stream: Some(stream) });
    }

    /// The first run of a lane that is due, and not blocked by one that was just taken.
    fn head(&mut self, place: usize) -> Option<(Timestamp, RunId)> {
        let (mirror, now, busy) = (self.mirror, self.request.now, &self.busy);
        let runs = &mut self.lanes[place].runs;
        let has_to_wait = |(_, id): &&(Timestamp, RunId)| {
            let run = &mirror.world.runs[id];
            super::may_wait(run) && run.schedule.is_some_and(|schedule| busy.contains(&schedule))
        };
        while runs.next_if(has_to_wait).is_some() {}
        runs.peek().copied().copied().filter(|(ready_at, _)| *ready_at <= now)
    }

    fn take(&mut self, place: usize, lane: &LaneKey, run: RunId) {
        let candidate = &mut self.lanes[place];
        candidate.runs.next();
        candidate.turn_at = Some(self.request.now);
        self.taken.runs.push(run);
        self.busy.extend(self.mirror.world.runs[&run].schedule);
        let all = Shared::all();
        for shared in std::iter::once(&all).chain(lane.gates().iter().map(|(shared, _)| shared)) {
            match self.held.get_mut(shared) {
                Some(held) => *held += 1,
                None => drop(self.held.insert(shared.clone(), self.mirror.lanes.held(shared) + 1)),
            }
        }
    }

    fn shut_gate(&self, lane: &LaneKey) -> Option<(Shared, Option<u32>)> {
        lane.gates().iter().find(|(shared, max)| !self.is_open(shared, *max)).cloned()
    }

    fn is_open(&self, shared: &Shared, max: Option<u32>) -> bool {
        is_open(&self.request.limits, shared, max, self.held_by(shared))
    }

    fn held_by(&self, shared: &Shared) -> u32 {
        self.held.get(shared).copied().unwrap_or_else(|| self.mirror.lanes.held(shared))
    }
}

//! Taking: which ready runs a claim gets, and in which order.
//!
//! Again and again the lane that comes first gives its first run; the model does the same by looking at everything. Here
//! lanes come gate by gate in the order of their ranks, and runs lane by lane, each a few at a time. While a claim goes on,
//! heads only get later, turns only get later, and gates only shut: so what was put off is looked at again when its
//! turn comes, and nothing that was left behind can come before it.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet, VecDeque};

use jiff::Timestamp;
use punctual_core::plan::Lane;
use punctual_core::{RunId, ScheduleId};
use rusqlite::params;

use super::fault::Done;
use super::gates::{Kind, Shared, gates_of, is_open};
use super::lanes::read_lane;
use super::plan::rows_max;
use super::session::Session;
use super::values::{At, Id};
use crate::requests::ClaimRequest;

/// How many gates, lanes or runs are read at first; each further page is twice as large, up to [`PAGE_MAX`].
const PAGE_FIRST: usize = 4;

/// The most gates, lanes or runs that are read at once.
const PAGE_MAX: usize = 256;

/// What a claim takes.
#[derive(Debug, Default)]
pub(super) struct Taken {
    /// The runs, in order.
    pub(super) runs: Vec<RunId>,
    /// The lanes that had a turn.
    pub(super) turns: HashSet<i64>,
    /// Lanes that stand behind an open gate while another of theirs is shut.
    pub(super) moves: Vec<(i64, Shared, Option<u32>)>,
}

/// A claim, as it looks for runs.
struct Taking<'a> {
    session: &'a Session,
    request: &'a ClaimRequest,
    /// How many runs hold a place, those just taken included.
    held: HashMap<Shared, u32>,
    /// Schedules of which a run has just been taken: their runs that queue or are parked have to wait.
    busy: HashSet<ScheduleId>,
    gates: Pages<Gate>,
    streams: Vec<Stream>,
    lanes: Vec<Candidate>,
    /// Lanes by rank, how many were taken of them, and name: with the place in `lanes`.
    next: BinaryHeap<Reverse<(Timestamp, usize, Lane, usize)>>,
    taken: Taken,
}

#[derive(Debug, Clone)]
struct Gate {
    id: i64,
    shared: Shared,
    max: Option<u32>,
    best_rank: Timestamp,
}

/// The lanes behind one gate.
struct Stream {
    gate: Gate,
    lanes: Pages<(i64, Lane, Timestamp, Option<Timestamp>)>,
}

/// A lane that runs may be taken from.
struct Candidate {
    id: i64,
    lane: Lane,
    turn_at: Option<Timestamp>,
    runs: Pages<Ready>,
    /// The gate behind which it stands, until it has been looked at for the first time.
    stream: Option<usize>,
}

/// A run that is due and not blocked.
#[derive(Debug, Clone, Copy)]
struct Ready {
    id: RunId,
    ready_at: Timestamp,
    schedule: Option<ScheduleId>,
    may_wait: bool,
}

/// Rows that are read page by page.
struct Pages<T> {
    rows: VecDeque<T>,
    read: usize,
    page: usize,
    is_over: bool,
}

impl<T> Default for Pages<T> {
    fn default() -> Pages<T> {
        Pages { rows: VecDeque::new(), read: 0, page: PAGE_FIRST, is_over: false }
    }
}

impl<T> Pages<T> {
    /// The next row, which stays the next one. `read` gets how many rows were read before, and how many are wanted.
    fn peek(&mut self, read: impl FnOnce(usize, usize) -> Done<Vec<T>>) -> Done<Option<&T>> {
        if self.rows.is_empty() && !self.is_over {
            let rows = read(self.read, self.page)?;
            self.is_over = rows.len() < self.page;
            self.read += rows.len();
            self.page = (self.page * 2).min(PAGE_MAX);
            self.rows.extend(rows);
        }
        Ok(self.rows.front())
    }
}

impl Session {
    /// Chooses what a claim takes. Nothing is written.
    pub(super) fn choose(&self, request: &ClaimRequest) -> Done<Taken> {
        let mut taking = Taking {
            session: self,
            request,
            held: HashMap::new(),
            busy: HashSet::new(),
            gates: Pages::default(),
            streams: vec![],
            lanes: vec![],
            next: BinaryHeap::new(),
            taken: Taken::default(),
        };
        while taking.taken.runs.len() < request.limit && taking.is_open(&Shared::all(), None)? {
            if !taking.step()? {
                break;
            }
        }
        Ok(taking.taken)
    }

    /// When the next lane becomes due that the node could take from. Lanes found behind the wrong gate are noted.
    pub(super) fn next_due_at(&self, request: &ClaimRequest) -> Done<(Option<Timestamp>, Taken)> {
        let mut found: Option<Timestamp> = None;
        let mut noted = Taken::default();
        let limits = &request.limits;
        if !is_open(limits, &Shared::all(), None, self.held(&Shared::all())?) {
            return Ok((None, noted));
        }
        let mut gates: Pages<Gate> = Pages::default();
        while let Some(gate) = gates.peek(|read, page| self.gates(include_str!("sql/gates_by_due.sql"), read, page))? {
            if found.is_some_and(|found| found <= gate.best_rank) {
                break;
            }
            let gate = gate.clone();
            gates.rows.pop_front();
            if gate.shared.kind == Kind::Agent && !request.agents.contains(&gate.shared.name) {
                continue;
            }
            let sql = include_str!("sql/lanes_by_due.sql");
            let mut lanes = Pages::default();
            while let Some((id, lane, due_at, _)) = lanes.peek(|read, page| self.lanes(sql, gate.id, read, page))? {
                if found.is_some_and(|found| found <= *due_at) {
                    break;
                }
                let shut = self.shut_gate(request, lane)?;
                if let Some((shared, max)) = shut {
                    noted.moves.push((*id, shared, max));
                } else if request.agents.contains(&lane.agent) {
                    found = Some(*due_at);
                    break;
                }
                lanes.rows.pop_front();
            }
        }
        Ok((found, noted))
    }

    /// The first gate of a lane that is shut.
    fn shut_gate(&self, request: &ClaimRequest, lane: &Lane) -> Done<Option<(Shared, Option<u32>)>> {
        for (shared, max) in gates_of(lane) {
            if !is_open(&request.limits, &shared, max, self.held(&shared)?) {
                return Ok(Some((shared, max)));
            }
        }
        Ok(None)
    }

    fn gates(&self, sql: &str, read: usize, page: usize) -> Done<Vec<Gate>> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let gates = statement.query_map(params![rows_max(page), rows_max(read)], |row| {
            let shared = Shared { kind: Kind::from_str(&row.get::<_, String>(1)?), name: row.get(2)? };
            Ok(Gate { id: row.get(0)?, shared, max: row.get(3)?, best_rank: row.get::<_, At>(4)?.0 })
        })?;
        Ok(gates.collect::<rusqlite::Result<_>>()?)
    }

    #[expect(clippy::type_complexity, reason = "a row, named where it is taken apart")]
    fn lanes(
        &self,
        sql: &str,
        gate: i64,
        read: usize,
        page: usize,
    ) -> Done<Vec<(i64, Lane, Timestamp, Option<Timestamp>)>> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let lanes = statement.query_map(params![gate, rows_max(page), rows_max(read)], |row| {
            let turn_at = row.get::<_, Option<At>>(2)?.map(|at| at.0);
            Ok((row.get(0)?, read_lane(row, 3)?, row.get::<_, At>(1)?.0, turn_at))
        })?;
        Ok(lanes.collect::<rusqlite::Result<_>>()?)
    }
}

impl Taking<'_> {
    /// Looks at the lane that comes first, and takes its first run if that may be. Whether there was a lane.
    fn step(&mut self) -> Done<bool> {
        self.open_streams()?;
        let Some(Reverse((rank, taken, lane, place))) = self.next.pop() else { return Ok(false) };
        if let Some(stream) = self.lanes[place].stream.take() {
            self.advance(stream)?;
        }
        if !self.request.agents.contains(&lane.agent) {
            return Ok(true);
        }
        if let Some((shared, max)) = self.shut_gate(&lane)? {
            self.taken.moves.push((self.lanes[place].id, shared, max));
            return Ok(true);
        }
        let Some(ready) = self.head(place)? else { return Ok(true) };
        let rank_now = lane.rank(ready.ready_at, self.lanes[place].turn_at);
        if rank < rank_now {
            // Its head had to let another run of its schedule go first.
            self.next.push(Reverse((rank_now, taken, lane, place)));
            return Ok(true);
        }
        self.take(place, ready)?;
        if let Some(ready) = self.head(place)? {
            let rank = lane.rank(ready.ready_at, self.lanes[place].turn_at);
            self.next.push(Reverse((rank, taken + 1, lane, place)));
        }
        Ok(true)
    }

    /// Opens gates until none is left that could have a lane before the one that comes first.
    fn open_streams(&mut self) -> Done<()> {
        loop {
            let first = self.next.peek().map(|Reverse((rank, ..))| *rank);
            let session = self.session;
            let sql = include_str!("sql/gates_by_rank.sql");
            let Some(gate) = self.gates.peek(|read, page| session.gates(sql, read, page))? else { return Ok(()) };
            if first.is_some_and(|first| first < gate.best_rank) {
                return Ok(());
            }
            let gate = gate.clone();
            self.gates.rows.pop_front();
            if gate.shared.kind == Kind::Agent && !self.request.agents.contains(&gate.shared.name) {
                continue;
            }
            self.streams.push(Stream { gate, lanes: Pages::default() });
            self.advance(self.streams.len() - 1)?;
        }
    }

    /// Puts the next lane behind a gate among those to look at, unless the gate has been shut by what was taken.
    fn advance(&mut self, stream: usize) -> Done<()> {
        let (shared, max) = (self.streams[stream].gate.shared.clone(), self.streams[stream].gate.max);
        if !self.is_open(&shared, max)? {
            return Ok(());
        }
        let session = self.session;
        let Stream { gate, lanes } = &mut self.streams[stream];
        let sql = include_str!("sql/lanes_by_rank.sql");
        lanes.peek(|read, page| session.lanes(sql, gate.id, read, page))?;
        let Some((id, lane, rank, turn_at)) = lanes.rows.pop_front() else { return Ok(()) };
        let runs = Pages::default();
        self.next.push(Reverse((rank, 0, lane.clone(), self.lanes.len())));
        self.lanes.push(Candidate { id, lane, turn_at, runs, stream: Some(stream) });
        Ok(())
    }

    /// The first run of a lane that is due, and not blocked by one that was just taken.
    fn head(&mut self, place: usize) -> Done<Option<Ready>> {
        let Candidate { id, runs, .. } = &mut self.lanes[place];
        let (session, now) = (self.session, self.request.now);
        loop {
            let found = runs.peek(|read, page| session.ready_runs(*id, now, read, page))?.copied();
            let is_busy = |ready: &Ready| ready.schedule.is_some_and(|schedule| self.busy.contains(&schedule));
            match found {
                Some(ready) if ready.may_wait && is_busy(&ready) => drop(runs.rows.pop_front()),
                found => return Ok(found),
            }
        }
    }

    fn take(&mut self, place: usize, ready: Ready) -> Done<()> {
        let candidate = &mut self.lanes[place];
        candidate.runs.rows.pop_front();
        candidate.turn_at = Some(self.request.now);
        self.taken.runs.push(ready.id);
        self.taken.turns.insert(candidate.id);
        self.busy.extend(ready.schedule);
        for shared in Shared::all_of(&candidate.lane.clone()) {
            let held = self.held_by(&shared)? + 1;
            self.held.insert(shared, held);
        }
        Ok(())
    }

    fn shut_gate(&mut self, lane: &Lane) -> Done<Option<(Shared, Option<u32>)>> {
        for (shared, max) in gates_of(lane) {
            if !self.is_open(&shared, max)? {
                return Ok(Some((shared, max)));
            }
        }
        Ok(None)
    }

    fn is_open(&mut self, shared: &Shared, max: Option<u32>) -> Done<bool> {
        let held = self.held_by(shared)?;
        Ok(is_open(&self.request.limits, shared, max, held))
    }

    fn held_by(&mut self, shared: &Shared) -> Done<u32> {
        if let Some(held) = self.held.get(shared) {
            return Ok(*held);
        }
        let held = self.session.held(shared)?;
        self.held.insert(shared.clone(), held);
        Ok(held)
    }
}

impl Session {
    fn ready_runs(&self, lane: i64, now: Timestamp, read: usize, page: usize) -> Done<Vec<Ready>> {
        let mut statement = self.connection.prepare_cached(include_str!("sql/ready_runs.sql"))?;
        let runs = statement.query_map(params![lane, At(now), rows_max(page), rows_max(read)], |row| {
            Ok(Ready {
                id: RunId(row.get::<_, Id>(0)?.0),
                ready_at: row.get::<_, At>(1)?.0,
                schedule: row.get::<_, Option<Id>>(2)?.map(|id| ScheduleId(id.0)),
                may_wait: row.get(3)?,
            })
        })?;
        Ok(runs.collect::<rusqlite::Result<_>>()?)
    }
}

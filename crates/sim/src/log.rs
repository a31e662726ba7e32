//! The log: what is durable, and shared by all processes. The journal with its checksums, the rows beside it, and snapshots
//! that are older than both.
//!
//! Rows change by what a transaction of the kernel says ([`Changes`]), as the rows of a database do; the ledger folds the
//! entries beside them, and both must come to the same. Nothing here decides anything.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use punctual_core::journal::{Body, Entry, World};
use punctual_core::run::Run;
use punctual_kernel::state::State;
use punctual_kernel::transaction::{Changes, Cluster, Found, Line, Needs, Row};
use punctual_store::Head;
use punctual_store::memory::{self, MemoryStore};

use crate::invariants::{Check, Violation, ensure};
use crate::sim::locked;

/// A snapshot is made once in so many entries.
const SNAPSHOT_EVERY: u64 = 100;

/// So many snapshots are kept.
const SNAPSHOTS_KEPT: usize = 3;

/// What is durable.
pub(crate) struct Log {
    /// The rows and the entries. Reads are answered from them.
    pub(crate) rows: MemoryStore,
    kept: Mutex<Kept>,
}

/// What the rows do not have.
#[derive(Debug, Clone, Default)]
struct Kept {
    /// Number and checksum of the entry before the first that is kept.
    before: Head,
    /// Those of the entries that are kept.
    heads: VecDeque<Head>,
    snapshots: VecDeque<Snapshot>,
}

/// Schedules and live runs as they were at an entry.
#[derive(Debug, Clone)]
struct Snapshot {
    head: Head,
    world: Arc<World>,
}

/// A copy of everything.
pub(crate) struct Copy {
    pub(crate) rows: memory::State,
    kept: Kept,
}

/// The kernel's state in one process, and the last entry in it.
pub(crate) struct Opened {
    pub(crate) state: State,
    pub(crate) head: Head,
}

/// What becomes of a state that follows the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Following {
    /// It is what the log says.
    UpToDate,
    /// It has to be opened again.
    OpenAgain,
    /// The last entry in it is not in the log: commits are lost.
    Lost,
}

impl Log {
    pub(crate) fn new(rows: MemoryStore) -> Log {
        Log { rows, kept: Mutex::default() }
    }

    /// A look at the rows.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&memory::State) -> T) -> T {
        self.rows.look(look)
    }

    /// The last entry.
    pub(crate) fn head(&self) -> Head {
        locked(&self.kept).head()
    }

    /// Whether an entry is there; `None` if it is older than what is kept.
    pub(crate) fn has(&self, entry: Head) -> Option<bool> {
        locked(&self.kept).has(entry)
    }

    /// A copy of everything, as a standby has it.
    pub(crate) fn copy(&self) -> Copy {
        Copy { rows: self.look(memory::State::clone), kept: locked(&self.kept).clone() }
    }

    /// An older copy takes the place of everything.
    pub(crate) fn put_back(&self, copy: Copy) {
        self.rows.put_back(copy.rows);
        *locked(&self.kept) = copy.kept;
    }

    /// Opens the state: from the rows, or from a snapshot, the first of them the latest, and the entries behind it.
    pub(crate) fn open(&self, snapshot: Option<usize>) -> Result<Opened, Violation> {
        let kept = locked(&self.kept);
        let older = snapshot.and_then(|index| kept.snapshots.get(index % kept.snapshots.len().max(1))).cloned();
        let head = kept.head();
        drop(kept);
        if let Some(Snapshot { head, world }) = older {
            let mut opened = Opened { state: State::new((*world).clone()), head };
            if self.follow(&mut opened)? == Following::UpToDate {
                return Ok(opened);
            }
        }
        let world = self.look(|rows| live(&rows.world));
        Ok(Opened { state: State::new(world), head })
    }

    /// Brings a state up to date with what others have written.
    pub(crate) fn follow(&self, opened: &mut Opened) -> Result<Following, Violation> {
        let kept = locked(&self.kept);
        match kept.has(opened.head) {
            Some(true) => {}
            Some(false) => return Ok(Following::Lost),
            None => return Ok(Following::OpenAgain),
        }
        let missed = (kept.head().seq - opened.head.seq) as usize;
        if missed == 0 {
            return Ok(Following::UpToDate);
        }
        self.look(|rows| {
            for entry in &rows.entries[rows.entries.len() - missed..] {
                opened.state.follow(entry).map_err(|error| Violation {
                    rule: "state",
                    what: format!("a process at entry {} refuses entry {}: {error}", opened.head.seq, entry.seq),
                })?;
                opened.head = kept.at(entry.seq);
            }
            Ok(Following::UpToDate)
        })
    }

    /// Nodes and leases as they are now.
    pub(crate) fn cluster(&self, now: Option<Timestamp>) -> Cluster {
        self.look(|rows| Cluster {
            now,
            nodes: rows.nodes.clone(),
            planner: rows.planner,
            agents_seen: rows.agents_seen.clone(),
        })
    }

    /// The rows that a command needs and a state does not have.
    pub(crate) fn find(&self, state: &State, needs: &Needs) -> Found {
        let kept = locked(&self.kept);
        let first = Head { seq: kept.before.seq + 1, ..kept.before };
        self.look(|rows| {
            let world = &rows.world;
            let mut found = Found { first, ..Found::default() };
            let missing = needs.wants.runs.iter().filter(|id| state.run(**id).is_none());
            found.runs = missing.filter_map(|id| Some((*id, world.runs.get(id)?.clone()))).collect();
            if !needs.wants.slots.is_empty() {
                find_slots(world, state, needs, &mut found);
            }
            let answer = |key: &String| Some((key.clone(), *rows.answers.get(key)?));
            found.answers = needs.keys.iter().filter_map(answer).collect();
            if let Some(before) = needs.old_before {
                found.old = world.forgotten(before).collect();
            }
            if let Some(until) = needs.checkpoint_until {
                found.everything = Some(world.clone());
                let is_first = |body: &Body| matches!(body, Body::Checkpoint(part) if part.part == 1);
                let start = rows.entries.iter().rfind(|entry| is_first(&entry.body) && entry.at <= until);
                let start = start.map(|entry| Head { seq: entry.seq, ..kept.at(entry.seq - 1) });
                found.start = start.filter(|start| first.seq < start.seq);
            }
            found
        })
    }

    /// Makes a transaction durable, whole.
    pub(crate) fn commit(&self, changes: Changes) -> Check {
        let mut kept = locked(&self.kept);
        self.rows.change(|rows| {
            for line in &changes.lines {
                let expected = kept.head().seq + 1;
                ensure("I20", line.seq == expected, || {
                    format!("entry {} ({}) is written where {expected} is next", line.seq, line.kind)
                })?;
                kept.heads.push_back(Head { seq: line.seq, checksum: line.checksum });
                rows.entries.push(entry(line)?);
            }
            put_rows(rows, &changes)?;
            put_cluster(rows, &changes);
            rows.world.seq = kept.head().seq;
            if let Some(first) = changes.first {
                kept.begin_at(first);
                let gone = rows.entries.iter().take_while(|entry| entry.seq < first.seq).count();
                rows.entries.drain(..gone);
                rows.checksum_before = first.checksum;
            }
            kept.note_snapshot(&rows.world);
            Ok(())
        })
    }
}

impl Kept {
    fn head(&self) -> Head {
        self.heads.back().copied().unwrap_or(self.before)
    }

    /// The entry of a number that is kept, or the one before all of them.
    fn at(&self, seq: u64) -> Head {
        match seq.checked_sub(self.before.seq + 1) {
            Some(index) => self.heads[index as usize],
            None => self.before,
        }
    }

    fn has(&self, entry: Head) -> Option<bool> {
        if entry.seq < self.before.seq {
            return None;
        }
        Some(entry.seq <= self.head().seq && self.at(entry.seq) == entry)
    }

    /// Lets go of the entries before the first that counts, and of the snapshots that would need them.
    fn begin_at(&mut self, first: Head) {
        let gone = first.seq - 1 - self.before.seq;
        self.heads.drain(..gone as usize);
        self.before = Head { seq: first.seq - 1, checksum: first.checksum };
        self.snapshots.retain(|snapshot| first.seq <= snapshot.head.seq + 1);
    }

    fn note_snapshot(&mut self, world: &World) {
        let last = self.snapshots.front().map_or(0, |snapshot| snapshot.head.seq);
        let head = self.head();
        if last + SNAPSHOT_EVERY <= head.seq {
            self.snapshots.push_front(Snapshot { head, world: Arc::new(live(world)) });
            self.snapshots.truncate(SNAPSHOTS_KEPT);
        }
    }
}

/// Schedules and the runs that are not over.
fn live(world: &World) -> World {
    let mut live = World::beginning_at(1);
    (live.seq, live.epoch_floor) = (world.seq, world.epoch_floor);
    (live.days, live.tokens) = (world.days.clone(), Arc::clone(&world.tokens));
    live.schedules.clone_from(&world.schedules);
    let runs = world.runs.iter().filter(|(_, run)| !run.state.is_final());
    live.runs = runs.map(|(id, run)| (*id, run.clone())).collect();
    live
}

/// An entry as everybody else will read it.
fn entry(line: &Line) -> Result<Entry, Violation> {
    let unreadable = |error| Violation { rule: "fold", what: format!("entry {} cannot be read: {error}", line.seq) };
    Ok(Entry { seq: line.seq, at: line.at, body: serde_json::from_str(&line.body).map_err(unreadable)? })
}

fn find_slots(world: &World, state: &State, needs: &Needs, found: &mut Found) {
    let is_of = |run: &Run| needs.wants.slots.iter().any(|(of, key)| run.schedule == Some(*of) && run.key == *key);
    for run in world.runs.values().filter(|run| is_of(run)) {
        found.slots.extend(run.schedule.map(|schedule| ((schedule, run.key.clone()), run.id)));
        if state.run(run.id).is_none() {
            found.runs.insert(run.id, run.clone());
        }
    }
}

/// Changes schedules, runs, days and tokens. Each row must be what the transaction was decided on.
fn put_rows(rows: &mut memory::State, changes: &Changes) -> Check {
    let world = &mut rows.world;
    for (id, row) in &changes.schedules {
        is_as_read("schedule", id, row, world.schedules.get(id))?;
        match &row.after {
            Some(record) => drop(world.schedules.insert(*id, record.clone())),
            None => drop(world.schedules.remove(id)),
        }
    }
    for (id, row) in &changes.runs {
        is_as_read("run", id, row, world.runs.get(id))?;
        match &row.after {
            Some(run) => drop(world.runs.insert(*id, run.clone())),
            None => drop(world.runs.remove(id)),
        }
    }
    changes.forgotten.iter().for_each(|id| drop(world.runs.remove(id)));
    world.days.extend(changes.days.iter().map(|(zone, date)| (zone.clone(), *date)));
    for (id, token) in &changes.tokens {
        let tokens = Arc::make_mut(&mut world.tokens);
        match token {
            Some(token) => drop(tokens.insert(*id, token.clone())),
            None => {
                tokens.remove(id);
                rows.tokens_used.remove(id);
            }
        }
    }
    if let Some(floor) = changes.epoch_floor {
        world.epoch_floor = floor;
        world.runs.values_mut().for_each(|run| run.state.raise_epoch(floor));
    }
    Ok(())
}

fn is_as_read<T: PartialEq + std::fmt::Debug>(
    what: &str,
    id: &impl std::fmt::Display,
    row: &Row<T>,
    found: Option<&T>,
) -> Check {
    ensure("state", row.before.as_ref() == found, || {
        format!("{what} {id} was changed as {:?}, and its row is {found:?}", row.before)
    })
}

/// Changes what the journal does not have.
fn put_cluster(rows: &mut memory::State, changes: &Changes) {
    for (id, node) in &changes.nodes {
        match node {
            Some(node) => drop(rows.nodes.insert(*id, node.clone())),
            None => drop(rows.nodes.remove(id)),
        }
    }
    rows.planner = changes.planner.or(rows.planner);
    rows.agents_seen.extend(changes.agents_seen.iter().map(|(agent, at)| (agent.clone(), *at)));
    for (agent, at) in &changes.agents_named {
        rows.agents_seen.entry(agent.clone()).or_insert(*at);
    }
    rows.answers.extend(changes.answers.iter().map(|(key, answered)| (key.clone(), *answered)));
}

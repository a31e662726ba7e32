//! The log: what is durable, and shared by all processes. The journal with its checksums, the base that it stands on, and
//! snapshots, from which processes start.
//!
//! Rows follow from the entries that are committed: they are folded here, so that what a process has decided can be held against
//! what everybody else reads. Nothing here decides anything.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use punctual_core::journal::{Body, EndedRun, Entry, Parts, ScheduleRecord, World};
use punctual_core::{RunId, ScheduleId};
use punctual_kernel::state::{SnapshotPiece, State};
use punctual_kernel::transaction::{Changes, Cluster, Found, Line, Needs};
use punctual_store::Head;
use punctual_store::memory::{self, MemoryStore};

use crate::invariants::{Check, Violation, ensure, touched};
use crate::sim::locked;

/// So many snapshots can be opened from, the older ones as copies that a process may find.
const SNAPSHOTS_KEPT: usize = 3;

/// What is durable.
pub(crate) struct Log {
    /// What the entries come to, and the entries. Reads are answered from them.
    pub(crate) rows: MemoryStore,
    kept: Mutex<Kept>,
}

/// What the rows do not have.
#[derive(Debug, Clone)]
struct Kept {
    /// Number and checksum of the entry before the first that is kept: that of the base.
    before: Head,
    /// Those of the entries that are kept.
    heads: VecDeque<Head>,
    /// The snapshot, and before it what it was earlier.
    snapshots: VecDeque<Snapshot>,
}

/// Schedules and live runs as they were at an entry.
#[derive(Debug, Clone, Default)]
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
    /// The entry since which the state has noted what is to be saved.
    saved: Head,
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
        let snapshots = [Snapshot::default()].into();
        Log { rows, kept: Mutex::new(Kept { before: Head::default(), heads: VecDeque::new(), snapshots }) }
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

    /// Opens the state from a snapshot, the first of them the latest, and the entries behind it.
    pub(crate) fn open(&self, snapshot: usize) -> Result<Opened, Violation> {
        let Snapshot { head, world } = locked(&self.kept).snapshot(snapshot).clone();
        let mut opened = Opened { state: State::new((*world).clone()), head, saved: head };
        let followed = self.follow(&mut opened)?;
        ensure("base", followed == Following::UpToDate, || {
            format!("a process cannot be opened from the snapshot at {head:?}: {followed:?}")
        })?;
        Ok(opened)
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
                opened.state.follow(&bare(entry)?).map_err(|error| Violation {
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

    /// What a command needs and a state does not have.
    pub(crate) fn find(&self, state: &State, needs: &Needs) -> Found {
        self.look(|rows| {
            let missing = needs.runs.iter().filter(|id| state.run(**id).is_none());
            let ended = |id: &RunId| {
                let is_its = |entry: &&Entry| entry.body.ended().is_some_and(|(run, _)| run == *id);
                Some((*id, EndedRun::of(rows.entries.iter().rfind(is_its)?)?))
            };
            let answer = |key: &String| Some((key.clone(), *rows.answers.get(key)?));
            Found {
                ended: missing.filter_map(ended).collect(),
                answers: needs.keys.iter().filter_map(answer).collect(),
            }
        })
    }

    /// Makes a transaction durable, whole. `state` has decided it, and must be what its entries say.
    pub(crate) fn commit(&self, changes: &Changes, state: &State) -> Check {
        let mut kept = locked(&self.kept);
        self.rows.change(|rows| {
            for line in &changes.lines {
                let expected = kept.head().seq + 1;
                ensure("I20", line.seq == expected, || {
                    format!("entry {} ({}) is written where {expected} is next", line.seq, line.kind)
                })?;
                let entry = entry(line)?;
                fold(&mut rows.world, &entry)?;
                if let Body::TokenRevoked { token, .. } = &entry.body {
                    rows.tokens_used.remove(token);
                }
                kept.heads.push_back(Head { seq: line.seq, checksum: line.checksum });
                rows.entries.push(entry);
            }
            put_cluster(rows, changes);
            let written = &rows.entries[rows.entries.len() - changes.lines.len()..];
            written.iter().try_for_each(|entry| is_decided(entry, state, &rows.world))
        })
    }

    /// Brings the snapshot to where a process is, in one piece. Whether it did: another may have brought it further, or the process
    /// is behind. If the writer dies half-way, nothing of the piece counts.
    pub(crate) fn save(&self, opened: &mut Opened, dies: bool) -> Result<bool, Violation> {
        let mut kept = locked(&self.kept);
        let before = kept.snapshot(0).clone();
        let can_save = opened.saved.seq <= before.head.seq && before.head.seq < opened.head.seq;
        if !can_save || opened.head != kept.head() {
            return Ok(false);
        }
        let piece = opened.state.snapshot_piece();
        if dies {
            return Ok(false);
        }
        let world = with_piece(&before.world, piece)?;
        self.look(|rows| {
            ensure("snapshot", world == rows.world, || {
                let differences = punctual_store::compare::differences(&rows.world, &world);
                format!("the snapshot is not what the journal says: {}", differences.join("; "))
            })
        })?;
        kept.snapshots.push_front(Snapshot { head: opened.head, world: Arc::new(world) });
        kept.snapshots.truncate(SNAPSHOTS_KEPT);
        opened.state.note_saved();
        opened.saved = opened.head;
        Ok(true)
    }

    /// Lets go of entries that were written before an instant, so many at most. How many went.
    ///
    /// What every snapshot has stays: whoever opens from one goes on from there, and whoever has a commit on its way finds it.
    pub(crate) fn prune(&self, before: Timestamp, max: usize) -> Result<usize, Violation> {
        let mut kept = locked(&self.kept);
        let until = if kept.snapshots.len() < SNAPSHOTS_KEPT { 0 } else { kept.snapshot(SNAPSHOTS_KEPT - 1).head.seq };
        self.rows.change(|rows| {
            let is_old = |entry: &&Entry| entry.at < before && entry.seq <= until;
            let gone = rows.entries.iter().take_while(is_old).count().min(max);
            for entry in rows.entries.drain(..gone) {
                fold(&mut rows.base, &entry)?;
            }
            kept.begin_behind(gone);
            rows.checksum_before = kept.before.checksum;
            ensure("base", rows.base.seq == kept.before.seq, || {
                format!("the base is at entry {}, the journal begins behind {}", rows.base.seq, kept.before.seq)
            })?;
            Ok(gone)
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

    /// A snapshot, the first the latest.
    fn snapshot(&self, index: usize) -> &Snapshot {
        &self.snapshots[index % self.snapshots.len()]
    }

    /// The first so many entries are gone.
    fn begin_behind(&mut self, gone: usize) {
        if let Some(last) = self.heads.drain(..gone).next_back() {
            self.before = last;
        }
    }
}

/// Takes an entry into a world, which must not refuse what is committed.
fn fold(world: &mut World, entry: &Entry) -> Check {
    world.apply(entry).map_err(|error| Violation { rule: "fold", what: format!("entry {}: {error}", entry.seq) })
}

/// What a process has decided is what the entry says that it wrote.
fn is_decided(entry: &Entry, state: &State, rows: &World) -> Check {
    let decided = state.world();
    for id in touched(entry) {
        let (decided, row) = (decided.runs.get(&id), rows.runs.get(&id));
        ensure("I19", decided == row, || format!("run {id}: a process has {decided:?}, the journal says {row:?}"))?;
    }
    let Some(id) = entry.body.schedule() else { return Ok(()) };
    let (decided, row) = (decided.schedules.get(&id), rows.schedules.get(&id));
    ensure("I19", decided == row, || format!("schedule {id}: a process has {decided:?}, the journal says {row:?}"))
}

/// A snapshot with a piece over it, as rows would have it.
fn with_piece(snapshot: &World, piece: SnapshotPiece) -> Result<World, Violation> {
    let mut world = World { seq: piece.seq, ..snapshot.clone() };
    for (id, record) in piece.schedules {
        let record = record.map(|record| match piece.same_definition.contains(&id) {
            true => come_further(id, world.schedules.get(&id), record),
            false => Ok(record),
        });
        match record.transpose()? {
            Some(record) => drop(world.schedules.insert(id, record)),
            None => drop(world.schedules.remove(&id)),
        }
    }
    for (id, run) in piece.runs {
        match run {
            Some(run) => drop(world.runs.insert(id, run)),
            None => drop(world.runs.remove(&id)),
        }
    }
    piece.passed_schedules.iter().for_each(|id| drop(world.schedules.remove(id)));
    piece.passed_runs.iter().for_each(|id| drop(world.runs.remove(id)));
    if let Some(rest) = piece.rest {
        rest.put(&mut world);
    }
    Ok(world)
}

/// A schedule of which the snapshot has the definition: only how far it has come is written.
fn come_further(
    id: ScheduleId,
    before: Option<&ScheduleRecord>,
    now: ScheduleRecord,
) -> Result<ScheduleRecord, Violation> {
    let is_same = before.is_some_and(|before| before.schedule.is_defined_as(&now.schedule));
    ensure("snapshot", is_same, || format!("the snapshot does not have the definition of schedule {id}"))?;
    Ok(now)
}

/// An entry as everybody else will read it.
fn entry(line: &Line) -> Result<Entry, Violation> {
    let body = line.text.as_ref().body().map_err(|error| unreadable(line.seq, &error))?;
    Ok(Entry { seq: line.seq, at: line.at, body })
}

/// An entry as those read it who only follow: its change, without the detail.
fn bare(entry: &Entry) -> Result<Entry, Violation> {
    let Parts { change, .. } = Parts::of(&entry.body);
    let body = Parts::bare_body(&change).map_err(|error| unreadable(entry.seq, &error))?;
    Ok(Entry { seq: entry.seq, at: entry.at, body })
}

fn unreadable(seq: u64, error: &serde_json::Error) -> Violation {
    Violation { rule: "fold", what: format!("entry {seq} cannot be read: {error}") }
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

//! The state: schedules and the runs that are not over, in memory, indexed for claiming and for lists.
//!
//! Every process keeps one. In: a snapshot as it was at one entry of the journal, then every entry after it. Out: what a change
//! wants to read, which runs a start takes, and what lists show. Invariant: it is what the entries fold to; a process that doubts
//! that throws it away and opens it again.

mod differences;
mod lanes;
mod lists;
mod order;
mod reads;
mod snapshot;
mod sweep;
mod take;
mod timers;

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use jiff::Timestamp;
use punctual_core::journal::{Body, Entry, JournalError, ScheduleRecord, World};
use punctual_core::run::{Run, RunState};
use punctual_core::schedule::Schedule;
use punctual_core::{NodeId, RunId, ScheduleId};
use uuid::Uuid;

use self::lanes::{LaneKey, Lanes};
use self::lists::Lists;
use self::order::{Order, may_wait, starts_blocked};
pub use self::reads::Walked;
use self::snapshot::Unsaved;
pub use self::snapshot::{Rest, SnapshotPiece};
use self::timers::Timers;
use crate::change::{Name, Wants, name_of};
use crate::types::{ClaimRequest, ClaimedRun, MOMENT};

/// Schedules, and the runs that are not over.
#[derive(Debug, Default)]
pub struct State {
    world: World,
    lanes: Lanes,
    order: Order,
    lists: Lists,
    unsaved: Unsaved,
    /// Planned runs by when they are too late, and runs that wait by when they have waited long enough.
    expiring: BTreeSet<(Timestamp, RunId)>,
    waiting: BTreeSet<(Timestamp, RunId)>,
    owned: HashMap<NodeId, BTreeSet<RunId>>,
    /// Schedules that have names, by hashes of those: most of what a name takes is there once already, in the schedule.
    names: BTreeSet<(u64, ScheduleId)>,
    timers: Timers,
    /// Runs that somebody has come to own, or owns no more.
    touched: BTreeSet<RunId>,
}

/// What a transaction has changed in a state, so that a commit that fails leaves nothing of it.
#[derive(Debug, Default)]
pub struct Undo {
    steps: Vec<UndoStep>,
}

#[derive(Debug)]
enum UndoStep {
    /// A piece, before and after.
    Piece(Box<(World, World)>),
    /// An entry that changed nothing but the number of the last one.
    Entry,
    /// When a lane had its turn before.
    Turn(LaneKey, Option<Timestamp>),
}

impl State {
    /// A mirror of rows as they were behind entry `world.seq`. Runs that are over have no place in it.
    pub fn new(world: World) -> State {
        let mut mirror = State::default();
        mirror.world.seq = world.seq;
        Rest::of(&world).put(&mut mirror.world);
        // Made at once, a tree has no room left in it.
        mirror.world.schedules = world.schedules.into_iter().collect();
        let ids: Vec<ScheduleId> = mirror.world.schedules.keys().copied().collect();
        ids.into_iter().for_each(|id| mirror.index_schedule(id, None));
        world.runs.into_values().for_each(|run| mirror.put_run(run));
        mirror.unsaved = Unsaved::default();
        mirror
    }

    /// The number of the last entry in it.
    pub fn seq(&self) -> u64 {
        self.world.seq
    }

    /// Everything that entries come to.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// Every epoch is higher than this.
    pub fn epoch_floor(&self) -> u64 {
        self.world.epoch_floor
    }

    /// A run that is not over.
    pub fn run(&self, id: RunId) -> Option<&Arc<Run>> {
        self.world.runs.get(&id)
    }

    /// The runs of a node, by id.
    pub fn owned(&self, node: NodeId) -> impl Iterator<Item = &Arc<Run>> {
        self.owned.get(&node).into_iter().flatten().map(|id| &self.world.runs[id])
    }

    /// The schedule of a run, if it has one that still exists.
    pub fn schedule_of(&self, run: &Run) -> Option<Arc<Schedule>> {
        let record = run.schedule.and_then(|id| self.world.schedules.get(&id));
        record.map(|record| Arc::clone(&record.schedule))
    }

    /// The runs that nodes have.
    pub fn all_owned(&self) -> impl Iterator<Item = &Arc<Run>> {
        self.owned.values().flatten().map(|id| &self.world.runs[id])
    }

    /// The runs that somebody has come to own, or owns no more, since this was asked last.
    pub fn take_touched(&mut self) -> BTreeSet<RunId> {
        std::mem::take(&mut self.touched)
    }

    /// Reads what a change wants, as far as it is here: slots and runs that are over are not.
    pub fn piece(&self, wants: &Wants) -> World {
        let mut piece = World { seq: self.world.seq, ..World::default() };
        Rest::of(&self.world).put(&mut piece);
        let mut runs = wants.runs.clone();
        for siblings in wants.planned_of.iter().filter_map(|schedule| self.order.schedules.get(schedule)) {
            runs.extend(siblings.planned.iter().map(|(_, id)| *id));
        }
        runs.extend(wants.slots.iter().filter_map(|(schedule, key)| self.lists.run_of_event(*schedule, key)));
        for siblings in wants.at_work_of.iter().filter_map(|schedule| self.order.schedules.get(schedule)) {
            runs.extend(siblings.at_work_or_parked());
        }
        piece.runs = runs.iter().filter_map(|id| Some((*id, self.world.runs.get(id)?.clone()))).collect();
        let mut schedules = wants.schedules.clone();
        schedules.extend(piece.runs.values().filter_map(|run| run.schedule));
        schedules.extend(wants.names.iter().filter_map(|name| self.named(name)));
        self.add_schedules(&mut piece, &schedules);
        piece
    }

    /// The schedule of a name.
    pub(crate) fn named(&self, name: &Name) -> Option<ScheduleId> {
        let hash = hash_of(name);
        let ids = self.names.range((hash, ScheduleId(Uuid::nil()))..=(hash, ScheduleId(Uuid::max())));
        let is_so_named = |id: &ScheduleId| name_of(&self.world.schedules[id].schedule).as_ref() == Some(name);
        ids.map(|(_, id)| *id).find(is_so_named)
    }

    /// Adds schedules to a piece.
    pub fn add_schedules(&self, piece: &mut World, schedules: &BTreeSet<ScheduleId>) {
        let found = schedules.iter().filter_map(|id| Some((*id, self.world.schedules.get(id)?.clone())));
        piece.schedules.extend(found);
    }

    /// A run is this now; one that is over goes.
    pub fn put_run(&mut self, run: Arc<Run>) {
        if run.state.is_final() {
            return self.remove_run(run.id);
        }
        let before = self.world.runs.insert(run.id, Arc::clone(&run));
        self.unsaved.note_run(run.id, before.is_some());
        self.index_run(before.as_deref(), Some(&run));
    }

    /// A run is gone.
    pub fn remove_run(&mut self, id: RunId) {
        let Some(before) = self.world.runs.remove(&id) else { return };
        self.unsaved.note_run(id, true);
        self.index_run(Some(&before), None);
        self.lanes.forget_run(id);
    }

    /// Brings every way to a run from what it was to what it is. One of the two is there.
    fn index_run(&mut self, before: Option<&Run>, after: Option<&Run>) {
        before.into_iter().for_each(|run| self.lists.remove_run(run));
        after.into_iter().for_each(|run| self.lists.add_run(run));
        self.order.replace(before, after);
        let Some(run) = after.or(before) else { return };
        let id = run.id;
        if let Some((run, ready_at)) = before.and_then(|run| Some((run, run.planned_for()?))) {
            self.lanes.remove(ready_at, id);
            run.expires_at.map(|at| self.expiring.remove(&(at, id)));
        }
        let is_same_lane = before.is_some_and(|before| Arc::ptr_eq(&before.terms, &run.terms));
        let (held_before, held) = (before.and_then(Run::owner), after.and_then(Run::owner));
        if held_before.is_some() && !(is_same_lane && held.is_some()) {
            self.lanes.hold(id, false);
        }
        if !is_same_lane {
            self.lanes.note_run(id, &run.terms);
        }
        if held.is_some() && !(is_same_lane && held_before.is_some()) {
            self.lanes.hold(id, true);
        }
        if let Some((run, ready_at)) = after.and_then(|run| Some((run, run.planned_for()?))) {
            self.lanes.add(ready_at, id, starts_blocked(run));
            self.expiring.extend(run.expires_at.map(|at| (at, id)));
        }
        let ownership = |run: &Run| run.owner().map(|owner| (owner, run.epoch(), run.is_cancelling));
        if before.and_then(ownership) != after.and_then(ownership) {
            self.touched.insert(id);
        }
        if held_before != held {
            held_before.into_iter().for_each(|owner| self.disown(owner, id));
            if let Some(owner) = held {
                self.owned.entry(owner).or_default().insert(id);
            }
        }
        let wait = |run: &Run| match run.state {
            RunState::Waiting { wait_until, .. } => Some((wait_until, id)),
            _ => None,
        };
        before.and_then(wait).map(|wait| self.waiting.remove(&wait));
        self.waiting.extend(after.and_then(wait));
    }

    fn disown(&mut self, owner: NodeId, id: RunId) {
        if let Some(owned) = self.owned.get_mut(&owner) {
            owned.remove(&id);
            if owned.is_empty() {
                self.owned.remove(&owner);
            }
        }
    }

    /// A schedule is this now.
    pub fn put_schedule(&mut self, record: ScheduleRecord) {
        let id = record.schedule.id;
        let before = self.world.schedules.insert(id, record);
        self.index_schedule(id, before.as_ref());
    }

    /// A schedule is gone. Its runs may stay.
    pub fn remove_schedule(&mut self, id: ScheduleId) {
        let before = self.world.schedules.remove(&id);
        self.index_schedule(id, before.as_ref());
    }

    /// Brings every way to a schedule from what it was to what it is now.
    fn index_schedule(&mut self, id: ScheduleId, before: Option<&ScheduleRecord>) {
        let after = self.world.schedules.get(&id);
        let is_defined_so = self.unsaved.note_schedule(before.map(|it| &*it.schedule), after.map(|it| &*it.schedule));
        before.into_iter().for_each(|record| self.timers.remove(record));
        after.into_iter().for_each(|record| self.timers.add(record, &self.world.outages));
        let zone_data = |record: Option<&ScheduleRecord>| record.map(|it| it.zone_data.clone());
        if is_defined_so && zone_data(before) == zone_data(after) {
            return;
        }
        if let Some(record) = before {
            self.lists.remove_schedule(record);
            name_of(&record.schedule).map(|name| self.names.remove(&(hash_of(&name), id)));
        }
        if let Some(record) = after {
            self.lists.add_schedule(record);
            self.names.extend(name_of(&record.schedule).map(|name| (hash_of(&name), id)));
        }
    }

    /// Puts back a piece that a command has changed, and notes how to undo that.
    pub(crate) fn save_piece(&mut self, before: World, after: World, undo: &mut Undo) {
        // A lane that loses its last planned run forgets when it had its turn.
        let lanes: BTreeSet<&LaneKey> = before.runs.keys().filter_map(|id| self.lanes.of_run(*id)).collect();
        let turns = lanes.into_iter().map(|lane| (self.lanes.turn_of(lane), lane)).filter(|(turn, _)| turn.is_some());
        let turns: Vec<UndoStep> = turns.map(|(turn, lane)| UndoStep::Turn(lane.clone(), turn)).collect();
        self.put_piece(&before, &after);
        undo.steps.extend(turns);
        undo.steps.push(UndoStep::Piece(Box::new((before, after))));
    }

    /// Takes in an entry of the transaction that changes nothing here, and notes how to undo that.
    pub(crate) fn skip_own(&mut self, entry: &Entry, undo: &mut Undo) -> Result<(), JournalError> {
        self.skip(entry)?;
        undo.steps.push(UndoStep::Entry);
        Ok(())
    }

    /// Puts back a piece that has changed; `before` is what it was.
    pub fn put_piece(&mut self, before: &World, piece: &World) {
        if !Arc::ptr_eq(&self.world.outages, &piece.outages) {
            self.put_outages(&piece.outages);
        }
        for id in before.schedules.keys().filter(|id| !piece.schedules.contains_key(id)) {
            self.remove_schedule(*id);
        }
        for (id, record) in &piece.schedules {
            if before.schedules.get(id).is_none_or(|before| !is_same(before, record)) {
                self.put_schedule(record.clone());
            }
        }
        for id in before.runs.keys().filter(|id| !piece.runs.contains_key(id)) {
            self.remove_run(*id);
        }
        for (id, run) in &piece.runs {
            // One that has changed is another: what is shared is never changed.
            if before.runs.get(id).is_none_or(|before| !Arc::ptr_eq(before, run)) {
                self.put_run(Arc::clone(run));
            }
        }
        self.lanes.forget_turns();
        if self.world.days != piece.days || !Arc::ptr_eq(&self.world.tokens, &piece.tokens) {
            self.world.days.clone_from(&piece.days);
            self.world.tokens = Arc::clone(&piece.tokens);
            self.unsaved.note_rest();
        }
        self.world.seq = piece.seq;
    }

    /// Takes back what a transaction has changed, the last of it first.
    pub fn undo(&mut self, undo: Undo) {
        for step in undo.steps.into_iter().rev() {
            match step {
                UndoStep::Piece(piece) => {
                    let (before, after) = *piece;
                    self.put_piece(&after, &before);
                }
                UndoStep::Entry => self.world.seq -= 1,
                UndoStep::Turn(lane, turn_at) => self.lanes.set_turn(&lane, turn_at),
            }
        }
    }

    /// Raises every epoch to a floor: the store was restored, or has lost commits.
    pub(crate) fn raise_epochs(&mut self, epoch_floor: u64) {
        self.world.epoch_floor = epoch_floor;
        self.world.runs.values_mut().for_each(|run| Arc::make_mut(run).state.raise_epoch(epoch_floor));
        self.world.runs.keys().for_each(|id| self.unsaved.note_run(*id, true));
        self.unsaved.note_rest();
        self.touched.extend(self.owned.values().flatten());
    }

    /// Takes in entries that another process wrote. Ends of attempts that stand together, as most do, are taken in together.
    pub fn follow_all(&mut self, entries: &[Entry]) -> Result<(), JournalError> {
        let is_end = |entry: &Entry| matches!(entry.body, Body::AttemptEnded(_));
        for entries in entries.chunk_by(|entry, next| is_end(entry) && is_end(next)) {
            match entries {
                [entry] => self.follow(entry)?,
                ends => self.follow_ends(ends)?,
            }
        }
        Ok(())
    }

    fn follow_ends(&mut self, ends: &[Entry]) -> Result<(), JournalError> {
        let wants = Wants::runs(ends.iter().filter_map(|end| end.body.run()));
        let before = self.piece(&wants);
        let mut piece = before.clone();
        ends.iter().try_for_each(|end| piece.apply(end))?;
        self.put_piece(&before, &piece);
        Ok(())
    }

    /// Takes in an entry that another process wrote.
    pub fn follow(&mut self, entry: &Entry) -> Result<(), JournalError> {
        if let Body::Restored { epoch_floor } = entry.body {
            self.skip(entry)?;
            self.raise_epochs(epoch_floor);
            return Ok(());
        }
        let wants = Wants::of_entry(&entry.body);
        let before = self.piece(&wants);
        let mut piece = before.clone();
        piece.apply(entry)?;
        self.put_piece(&before, &piece);
        if let Body::RunsClaimed { runs, .. } = &entry.body {
            self.take_turns(runs, entry.at, &mut Undo::default());
        }
        Ok(())
    }

    /// Takes in an entry that changes nothing here.
    pub fn skip(&mut self, entry: &Entry) -> Result<(), JournalError> {
        if entry.seq != self.world.seq + 1 {
            return Err(JournalError::OutOfOrder { after: self.world.seq, found: entry.seq });
        }
        self.world.seq = entry.seq;
        Ok(())
    }

    /// Chooses the runs that a claim takes. Nobody has them before they are put here as claimed.
    pub fn choose_runs(&mut self, request: &ClaimRequest) -> Vec<RunId> {
        self.lanes.set_limits(&request.limits);
        self.settle(request.now);
        let taken = self.choose(request);
        taken.moves.into_iter().for_each(|(lane, gate)| self.lanes.move_lane(&lane, gate));
        taken.runs
    }

    /// Notes that runs have been claimed: their lanes had their turn.
    pub(crate) fn take_turns(&mut self, runs: &[RunId], now: Timestamp, undo: &mut Undo) {
        let lanes: BTreeSet<LaneKey> = runs.iter().filter_map(|id| self.lanes.of_run(*id)).cloned().collect();
        for lane in lanes {
            let before = self.lanes.turn_of(&lane);
            self.lanes.take_turn(&lane, now);
            undo.steps.push(UndoStep::Turn(lane, before));
        }
    }

    /// A run that was just claimed; `later` are the runs that were claimed with it and do not come before it.
    pub fn claimed(&self, id: RunId, later: &[RunId]) -> ClaimedRun {
        let run = self.world.runs[&id].clone();
        let siblings = run.schedule.and_then(|id| self.order.schedules.get(&id));
        let is_busy = siblings.is_some_and(|siblings| siblings.active.iter().any(|other| !later.contains(other)));
        ClaimedRun { schedule: self.schedule_of(&run), is_busy, run }
    }

    /// When a claim would give something that it does not give now, as far as time alone can tell.
    pub fn next_at(&mut self, request: &ClaimRequest) -> Option<Timestamp> {
        self.settle(request.now);
        let (due_at, noted) = self.next_due_at(request);
        noted.moves.into_iter().for_each(|(lane, gate)| self.lanes.move_lane(&lane, gate));
        // At its last instant a run may still begin: its time is over a moment later.
        let expired_at = self.expiring.first().and_then(|(at, _)| at.checked_add(MOMENT).ok());
        let overlaps_at = self.order.overlapping.first().map(|(at, ..)| *at);
        let wait_until = self.waiting.first().map(|(at, _)| *at);
        [due_at, expired_at, overlaps_at, wait_until, self.timers.next_after(request.now)].into_iter().flatten().min()
    }

    /// Brings everything up to date that follows from what has changed.
    pub fn settle(&mut self, now: Timestamp) {
        self.settle_order();
        self.lanes.settle(now);
    }
}

fn hash_of(name: &Name) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish()
}

/// Whether a schedule and how far it has come are the same.
fn is_same(one: &ScheduleRecord, other: &ScheduleRecord) -> bool {
    let rest = |it: &ScheduleRecord| (it.plan_at, it.outage, it.outage_seq);
    Arc::ptr_eq(&one.schedule, &other.schedule) && rest(one) == rest(other) && one.zone_data == other.zone_data
}

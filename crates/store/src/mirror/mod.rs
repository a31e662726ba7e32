//! The mirror: schedules and the runs that are not over, in memory, indexed for claiming.
//!
//! A store that many nodes write to keeps one in each of them. In: rows as they were at one entry of the journal, then
//! every entry behind it. Out: what a change wants to read, and which runs a claim takes. Invariant: it is what looking at
//! every row would give; whoever doubts that throws it away and reads the rows again.

mod lanes;
mod order;
mod sweep;
mod take;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use jiff::Timestamp;
use punctual_core::journal::{Body, Entry, JournalError, ScheduleRecord, World};
use punctual_core::plan::Lane;
use punctual_core::run::{Run, RunState};
use punctual_core::{NodeId, RunId, ScheduleId};

use self::lanes::Lanes;
use self::order::{Order, may_wait, starts_blocked};
use crate::change::{Name, Wants, name_of};
use crate::requests::{ClaimRequest, ClaimedRun, MOMENT};

/// Schedules, and the runs that are not over.
#[derive(Debug, Default)]
pub(crate) struct Mirror {
    world: World,
    lanes: Lanes,
    order: Order,
    /// Planned runs by when they are too late, and runs that wait by when they have waited long enough.
    expiring: BTreeSet<(Timestamp, RunId)>,
    waiting: BTreeSet<(Timestamp, RunId)>,
    owned: HashMap<NodeId, BTreeSet<RunId>>,
    names: HashMap<Name, ScheduleId>,
    /// Schedules with an outage to be made up for, by its end.
    outages: BTreeSet<(Timestamp, ScheduleId)>,
    /// Runs that somebody has come to own, or owns no more.
    touched: BTreeSet<RunId>,
}

/// What becomes of the mirror with an entry that somebody else wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Followed {
    /// It is what it should be.
    UpToDate,
    /// It has to be read again: the entry concerns everything.
    ReadAgain,
}

impl Mirror {
    /// A mirror of rows as they were behind entry `world.seq`. Runs that are over have no place in it.
    pub(crate) fn new(world: World) -> Mirror {
        let mut mirror = Mirror::default();
        (mirror.world.seq, mirror.world.epoch_floor) = (world.seq, world.epoch_floor);
        (mirror.world.days, mirror.world.tokens) = (world.days, world.tokens);
        world.schedules.into_values().for_each(|record| mirror.put_schedule(record));
        world.runs.into_values().for_each(|run| mirror.put_run(run));
        mirror
    }

    /// Every epoch is higher than this.
    pub(crate) fn epoch_floor(&self) -> u64 {
        self.world.epoch_floor
    }

    /// A run that is not over.
    pub(crate) fn run(&self, id: RunId) -> Option<&Run> {
        self.world.runs.get(&id)
    }

    /// The runs of a node, by id.
    pub(crate) fn owned(&self, node: NodeId) -> impl Iterator<Item = &Run> {
        self.owned.get(&node).into_iter().flatten().map(|id| &self.world.runs[id])
    }

    /// The runs that nodes have.
    pub(crate) fn all_owned(&self) -> impl Iterator<Item = &Run> {
        self.owned.values().flatten().map(|id| &self.world.runs[id])
    }

    /// The runs that somebody has come to own, or owns no more, since this was asked last.
    pub(crate) fn take_touched(&mut self) -> BTreeSet<RunId> {
        std::mem::take(&mut self.touched)
    }

    /// Every schedule.
    pub(crate) fn schedules(&self) -> impl Iterator<Item = ScheduleId> {
        self.world.schedules.keys().copied()
    }

    /// The end of the last outage that is not made up for.
    pub(crate) fn last_outage(&self) -> Option<Timestamp> {
        self.outages.last().map(|(until, _)| *until)
    }

    /// Reads what a change wants, as far as it is here: slots and runs that are over are not.
    pub(crate) fn piece(&self, wants: &Wants) -> World {
        let mut piece = World::beginning_at(1);
        (piece.seq, piece.epoch_floor) = (self.world.seq, self.world.epoch_floor);
        piece.days.clone_from(&self.world.days);
        piece.tokens = Arc::clone(&self.world.tokens);
        let mut runs = wants.runs.clone();
        if let Some(siblings) = wants.planned_of.and_then(|schedule| self.order.schedules.get(&schedule)) {
            runs.extend(siblings.planned.iter().map(|(_, id)| *id));
        }
        for siblings in wants.at_work_of.iter().filter_map(|schedule| self.order.schedules.get(schedule)) {
            runs.extend(siblings.at_work_or_parked());
        }
        piece.runs = runs.iter().filter_map(|id| Some((*id, self.world.runs.get(id)?.clone()))).collect();
        let mut schedules = wants.schedules.clone();
        schedules.extend(piece.runs.values().filter_map(|run| run.schedule));
        schedules.extend(wants.names.iter().filter_map(|name| self.names.get(name)));
        self.add_schedules(&mut piece, &schedules);
        piece
    }

    /// Adds schedules to a piece.
    pub(crate) fn add_schedules(&self, piece: &mut World, schedules: &BTreeSet<ScheduleId>) {
        let found = schedules.iter().filter_map(|id| Some((*id, self.world.schedules.get(id)?.clone())));
        piece.schedules.extend(found);
    }

    /// A run is this now; one that is over goes.
    pub(crate) fn put_run(&mut self, run: Run) {
        self.remove_run(run.id);
        if run.state.is_final() {
            return;
        }
        self.order.add(&run);
        if let Some(ready_at) = run.planned_for() {
            self.lanes.add(&Lane::of(&run.terms), ready_at, run.id, starts_blocked(&run));
            self.expiring.extend(run.expires_at.map(|at| (at, run.id)));
        }
        if let Some(owner) = run.owner() {
            self.touched.insert(run.id);
            self.lanes.hold(&Lane::of(&run.terms), true);
            self.owned.entry(owner).or_default().insert(run.id);
        }
        if let RunState::Waiting { wait_until, .. } = run.state {
            self.waiting.insert((wait_until, run.id));
        }
        self.world.runs.insert(run.id, run);
    }

    /// A run is gone.
    pub(crate) fn remove_run(&mut self, id: RunId) {
        let Some(run) = self.world.runs.remove(&id) else { return };
        self.order.remove(&run);
        if let Some(ready_at) = run.planned_for() {
            self.lanes.remove(&Lane::of(&run.terms), ready_at, id);
            run.expires_at.map(|at| self.expiring.remove(&(at, id)));
        }
        if let Some(owner) = run.owner() {
            self.touched.insert(id);
            self.lanes.hold(&Lane::of(&run.terms), false);
            if let Some(owned) = self.owned.get_mut(&owner) {
                owned.remove(&id);
                if owned.is_empty() {
                    self.owned.remove(&owner);
                }
            }
        }
        if let RunState::Waiting { wait_until, .. } = run.state {
            self.waiting.remove(&(wait_until, id));
        }
    }

    /// A schedule is this now.
    pub(crate) fn put_schedule(&mut self, record: ScheduleRecord) {
        let id = record.schedule.id;
        self.remove_schedule(id);
        self.outages.extend(record.outage.map(|outage| (outage.until, id)));
        self.names.extend(name_of(&record.schedule).map(|name| (name, id)));
        self.world.schedules.insert(id, record);
    }

    /// A schedule is gone. Its runs may stay.
    pub(crate) fn remove_schedule(&mut self, id: ScheduleId) {
        let Some(record) = self.world.schedules.remove(&id) else { return };
        if let Some(outage) = record.outage {
            self.outages.remove(&(outage.until, id));
        }
        if let Some(name) = name_of(&record.schedule) {
            self.names.remove(&name);
        }
    }

    /// Puts back a piece that has changed; `before` is what it was.
    pub(crate) fn put_piece(&mut self, before: &World, piece: &World) {
        for id in before.schedules.keys().filter(|id| !piece.schedules.contains_key(id)) {
            self.remove_schedule(*id);
        }
        for (id, record) in &piece.schedules {
            if before.schedules.get(id) != Some(record) {
                self.put_schedule(record.clone());
            }
        }
        for id in before.runs.keys().filter(|id| !piece.runs.contains_key(id)) {
            self.remove_run(*id);
        }
        for (id, run) in &piece.runs {
            if before.runs.get(id) != Some(run) {
                self.put_run(run.clone());
            }
        }
        self.lanes.forget_turns();
        self.world.days.clone_from(&piece.days);
        self.world.tokens = Arc::clone(&piece.tokens);
        self.world.seq = piece.seq;
    }

    /// Takes in an entry that somebody else wrote.
    pub(crate) fn follow(&mut self, entry: &Entry) -> Result<Followed, JournalError> {
        let wants = match &entry.body {
            Body::ScheduleChanged { schedule, .. } => {
                Wants { schedules: [schedule.id].into(), planned_of: Some(schedule.id), ..Wants::default() }
            }
            Body::ScheduleDeleted { schedule, .. } => Wants { schedules: [*schedule].into(), ..Wants::default() },
            Body::Planned(plan) => {
                let runs = plan.withdrawn.iter().copied().chain(plan.moved.iter().map(|run| run.id));
                Wants { schedules: [plan.schedule].into(), ..Wants::runs(runs) }
            }
            Body::Skipped(skip) => Wants { schedules: [skip.schedule].into(), ..Wants::default() },
            Body::RunAsked { run, .. } => Wants { schedules: run.schedule.into_iter().collect(), ..Wants::default() },
            Body::RunsClaimed { runs, .. } | Body::RunsStarted { runs } => Wants::runs(runs.iter().copied()),
            Body::RunChanged(change) => Wants::runs([change.run]),
            Body::AttemptEnded(attempt) => Wants::runs([attempt.run]),
            Body::PlannerTaken { outage: Some(_), .. } => {
                Wants { schedules: self.schedules().collect(), ..Wants::default() }
            }
            Body::DayStarted { .. }
            | Body::TokenMade { .. }
            | Body::TokenRevoked { .. }
            | Body::PlannerTaken { outage: None, .. }
            | Body::NodeJoined { .. }
            | Body::NodeLeft { .. } => Wants::default(),
            // What is over is not here, and a checkpoint says what is.
            Body::RunsForgotten { .. } | Body::Checkpoint(_) => {
                self.skip(entry)?;
                return Ok(Followed::UpToDate);
            }
            Body::Restored { .. } => return Ok(Followed::ReadAgain),
        };
        let before = self.piece(&wants);
        let mut piece = before.clone();
        piece.apply(entry)?;
        self.put_piece(&before, &piece);
        if let Body::RunsClaimed { runs, .. } = &entry.body {
            self.take_turns(runs, entry.at);
        }
        Ok(Followed::UpToDate)
    }

    /// Takes in an entry that changes nothing here.
    pub(crate) fn skip(&mut self, entry: &Entry) -> Result<(), JournalError> {
        if entry.seq != self.world.seq + 1 {
            return Err(JournalError::OutOfOrder { after: self.world.seq, found: entry.seq });
        }
        self.world.seq = entry.seq;
        Ok(())
    }

    /// Chooses the runs that a claim takes. Nobody has them before they are put here as claimed.
    pub(crate) fn choose_runs(&mut self, request: &ClaimRequest) -> Vec<RunId> {
        self.lanes.set_limits(&request.limits);
        self.settle(request.now);
        let taken = self.choose(request);
        taken.moves.into_iter().for_each(|(lane, gate)| self.lanes.move_lane(&lane, gate));
        taken.runs
    }

    /// Notes that runs have been claimed: their lanes had their turn.
    pub(crate) fn take_turns(&mut self, runs: &[RunId], now: Timestamp) {
        let lanes: BTreeSet<Lane> =
            runs.iter().filter_map(|id| self.run(*id)).map(|run| Lane::of(&run.terms)).collect();
        lanes.iter().for_each(|lane| self.lanes.take_turn(lane, now));
    }

    /// A run that was just claimed; `later` are the runs that were claimed with it and do not come before it.
    pub(crate) fn claimed(&self, id: RunId, later: &[RunId]) -> ClaimedRun {
        let run = self.world.runs[&id].clone();
        let record = run.schedule.and_then(|id| self.world.schedules.get(&id));
        let siblings = run.schedule.and_then(|id| self.order.schedules.get(&id));
        let is_busy = siblings.is_some_and(|siblings| siblings.active.iter().any(|other| !later.contains(other)));
        ClaimedRun { schedule: record.map(|record| Arc::clone(&record.schedule)), is_busy, run }
    }

    /// When a claim would give something that it does not give now, as far as time alone can tell.
    pub(crate) fn next_at(&mut self, request: &ClaimRequest) -> Option<Timestamp> {
        self.settle(request.now);
        let (due_at, noted) = self.next_due_at(request);
        noted.moves.into_iter().for_each(|(lane, gate)| self.lanes.move_lane(&lane, gate));
        // At its last instant a run may still begin: its time is over a moment later.
        let expired_at = self.expiring.first().and_then(|(at, _)| at.checked_add(MOMENT).ok());
        let overlaps_at = self.order.overlapping.first().map(|(at, ..)| *at);
        let wait_until = self.waiting.first().map(|(at, _)| *at);
        [due_at, expired_at, overlaps_at, wait_until].into_iter().flatten().min()
    }

    /// Brings everything up to date that follows from what has changed.
    pub(crate) fn settle(&mut self, now: Timestamp) {
        self.settle_order();
        self.lanes.settle(now);
    }
}

//! The world: schedules and runs as the journal has them.
//!
//! In: [`Entry`]s, in order. Out: what the store's rows must say. The model store is this fold; `verify` compares it with the
//! rows of a real one. Invariant: an entry that cannot have happened changes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use super::entry::{Attempt, Body, Entry, PlanEntry};
use super::error::JournalError;
use super::outages::{NotedOutage, Outages};
use crate::plan::Outage;
use crate::run::{Run, RunEvent, RunState, Terms};
use crate::schedule::{Overlap, Schedule};
use crate::time::SlotKey;
use crate::{RunId, ScheduleId, Shared, Token, TokenId};

/// Schedules and runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct World {
    /// The number of the last entry taken in; 0 before the first.
    pub seq: u64,
    /// Every schedule that exists.
    pub schedules: BTreeMap<ScheduleId, ScheduleRecord>,
    /// Every run that is not over. One that is over is history: its last entry says what it came to.
    pub runs: BTreeMap<RunId, Arc<Run>>,
    /// The last day that has begun, by zone.
    pub days: BTreeMap<String, Date>,
    /// The times in which no node planned, as far as a schedule may have to catch up with them.
    pub outages: Arc<Outages>,
    /// Every epoch is higher than this.
    pub epoch_floor: u64,
    /// The tokens.
    pub tokens: Arc<BTreeMap<TokenId, Token>>,
}

/// A schedule, and how far its planning has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScheduleRecord {
    /// The schedule.
    pub schedule: Arc<Schedule>,
    /// When planning has something to do.
    pub plan_at: Option<Timestamp>,
    /// The version of the zone data that its plan was made with.
    pub zone_data: Shared<String>,
    /// What is left of the outages that it knows. [`Outages::of`] says what it has to catch up with in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outage: Option<Outage>,
    /// The number of the entry that noted the last outage that it knows.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub outage_seq: u64,
}

impl ScheduleRecord {
    /// A schedule that has just been written: planning has everything to do.
    pub fn new(schedule: Schedule, at: Timestamp) -> ScheduleRecord {
        let schedule = Arc::new(schedule);
        ScheduleRecord { schedule, plan_at: Some(at), zone_data: Shared::default(), outage: None, outage_seq: 0 }
    }
}

impl World {
    /// The runs that are not over, by id.
    pub fn live_runs(&self) -> impl DoubleEndedIterator<Item = &Run> {
        self.runs.values().map(|run| &**run)
    }

    /// Takes in the next entry, whole or not at all.
    pub fn apply(&mut self, entry: &Entry) -> Result<(), JournalError> {
        if entry.seq != self.seq + 1 {
            return Err(JournalError::OutOfOrder { after: self.seq, found: entry.seq });
        }
        self.check(entry)?;
        self.take(entry);
        self.seq = entry.seq;
        Ok(())
    }

    /// Whether an entry can have happened: every error is found here, before anything changes.
    fn check(&self, entry: &Entry) -> Result<(), JournalError> {
        match &entry.body {
            Body::ScheduleChanged { .. }
            | Body::NodeJoined { .. }
            | Body::NodeLeft { .. }
            | Body::PlannerTaken { .. }
            | Body::Restored { .. } => Ok(()),
            Body::TokenMade { token, .. } if self.tokens.contains_key(&token.id) => {
                Err(JournalError::DuplicateToken(token.id))
            }
            Body::TokenMade { .. } => Ok(()),
            Body::TokenRevoked { token, .. } if self.tokens.contains_key(token) => Ok(()),
            Body::TokenRevoked { token, .. } => Err(JournalError::UnknownToken(*token)),
            Body::ScheduleDeleted { schedule, .. } => self.schedule(*schedule).map(drop),
            Body::Planned(plan) => self.check_plan(plan),
            Body::Skipped(skip) => self.schedule(skip.schedule).map(drop),
            Body::DayStarted { zone, date } => match self.days.get(zone) {
                Some(begun) if date <= begun => Err(JournalError::DayAgain { zone: zone.clone(), date: *date }),
                _ => Ok(()),
            },
            Body::RunAsked { run, .. } => self.check_asked(run),
            Body::RunsClaimed { owner, runs } => {
                check_once(runs.iter().copied())?;
                let event = RunEvent::Claimed { owner: *owner, at: entry.at };
                runs.iter().try_for_each(|run| self.check_event(*run, &event))
            }
            Body::RunsStarted { runs } => {
                check_once(runs.iter().copied())?;
                runs.iter().try_for_each(|run| self.check_event(*run, &RunEvent::Started))
            }
            Body::RunChanged(change) => {
                self.check_epoch(change.run, change.epoch)?;
                self.check_event(change.run, &change.event)
            }
            Body::AttemptEnded(attempt) => {
                self.check_epoch(attempt.run, attempt.epoch)?;
                self.check_event(attempt.run, &attempt.event)
            }
        }
    }

    fn check_plan(&self, plan: &PlanEntry) -> Result<(), JournalError> {
        let schedule = &self.schedule(plan.schedule)?.schedule;
        if schedule.version != plan.version {
            let version = schedule.version;
            return Err(JournalError::OtherVersion { schedule: schedule.id, version, planned: plan.version });
        }
        let changed = || plan.withdrawn.iter().copied().chain(plan.moved.iter().map(|moved| moved.id));
        check_once(changed())?;
        for id in changed() {
            let run = self.run(id)?;
            if run.schedule != Some(plan.schedule) {
                return Err(JournalError::NotIts(id));
            }
            if run.planned_for().is_none() {
                return Err(JournalError::NotPlanned(id));
            }
        }
        for id in &plan.withdrawn {
            if !self.run(*id)?.is_untouched() {
                return Err(JournalError::NotPlanned(*id));
            }
        }
        if plan.runs.is_empty() {
            return Ok(());
        }
        let gone: BTreeSet<RunId> = plan.withdrawn.iter().copied().collect();
        let mut keys: BTreeSet<&SlotKey> = self.keys_of(plan.schedule, &gone).collect();
        let mut ids = BTreeSet::new();
        for run in &plan.runs {
            if self.runs.contains_key(&run.id) || !ids.insert(run.id) {
                return Err(JournalError::DuplicateRun(run.id));
            }
            if !keys.insert(&run.key) {
                return Err(JournalError::DuplicateSlot { schedule: plan.schedule, key: run.key.clone() });
            }
        }
        Ok(())
    }

    /// The slots of a schedule that have a run, those in `gone` aside.
    fn keys_of(&self, schedule: ScheduleId, gone: &BTreeSet<RunId>) -> impl Iterator<Item = &SlotKey> {
        let is_its = move |run: &&Run| run.schedule == Some(schedule) && !gone.contains(&run.id);
        self.live_runs().filter(is_its).map(|run| &run.key)
    }

    fn check_asked(&self, run: &Run) -> Result<(), JournalError> {
        if self.runs.contains_key(&run.id) {
            return Err(JournalError::DuplicateRun(run.id));
        }
        let Some(schedule) = run.schedule else { return Ok(()) };
        self.schedule(schedule)?;
        if self.keys_of(schedule, &BTreeSet::new()).any(|key| *key == run.key) {
            return Err(JournalError::DuplicateSlot { schedule, key: run.key.clone() });
        }
        Ok(())
    }

    fn check_epoch(&self, run: RunId, found: u64) -> Result<(), JournalError> {
        let epoch = self.run(run)?.epoch();
        if epoch == found { Ok(()) } else { Err(JournalError::StaleEpoch { run, epoch, found }) }
    }

    fn check_event(&self, id: RunId, event: &RunEvent) -> Result<(), JournalError> {
        self.run(id)?.can_take(event).map_err(|cause| JournalError::Illegal { run: id, cause })
    }

    /// Carries out what has been checked.
    fn take(&mut self, entry: &Entry) {
        let at = entry.at;
        match &entry.body {
            Body::ScheduleChanged { schedule, .. } => self.take_schedule(schedule, at),
            Body::ScheduleDeleted { schedule, .. } => drop(self.schedules.remove(schedule)),
            Body::Planned(plan) => self.take_plan(plan),
            // The cursor moves with the plan; a node's lease is not the journal's.
            Body::Skipped(_) | Body::NodeJoined { .. } | Body::NodeLeft { .. } => {}
            Body::DayStarted { zone, date } => drop(self.days.insert(zone.clone(), *date)),
            Body::RunAsked { run, .. } => {
                let mut run = (**run).clone();
                run.state.raise_epoch(self.epoch_floor);
                self.runs.insert(run.id, Arc::new(run));
            }
            Body::RunsClaimed { owner, runs } => {
                let event = RunEvent::Claimed { owner: *owner, at };
                runs.iter().for_each(|id| self.take_event(*id, &event, at));
            }
            Body::RunsStarted { runs } => runs.iter().for_each(|id| self.take_event(*id, &RunEvent::Started, at)),
            Body::RunChanged(change) => self.take_event(change.run, &change.event, at),
            Body::AttemptEnded(attempt) => self.take_attempt(attempt, at),
            Body::PlannerTaken { outage, .. } => {
                let noted = outage.map(|outage| NotedOutage { seq: entry.seq, outage });
                noted.into_iter().for_each(|noted| Arc::make_mut(&mut self.outages).note(noted));
            }
            Body::TokenMade { token, .. } => {
                Arc::make_mut(&mut self.tokens).insert(token.id, (**token).clone());
            }
            Body::TokenRevoked { token, .. } => drop(Arc::make_mut(&mut self.tokens).remove(token)),
            Body::Restored { epoch_floor } => {
                self.epoch_floor = *epoch_floor;
                self.runs.values_mut().for_each(|run| Arc::make_mut(run).state.raise_epoch(*epoch_floor));
            }
        }
    }

    fn take_schedule(&mut self, schedule: &Schedule, at: Timestamp) {
        let mut schedule = schedule.clone();
        let before = self.schedules.get(&schedule.id);
        if let Some(record) = before {
            // What its runs have done goes on, whatever the edit knew of it.
            schedule.runs_started = record.schedule.runs_started;
            schedule.read_until = record.schedule.read_until;
            schedule.early = record.schedule.early.clone();
        }
        let outage = before.and_then(|record| self.outages.of(record));
        let id = schedule.id;
        let terms = Arc::new(Terms::of(&schedule));
        // What nobody has taken yet is carried out as the schedule is now.
        let untouched = |run: &&mut Arc<Run>| run.schedule == Some(id) && run.key.is_slot() && run.is_untouched();
        for run in self.runs.values_mut().filter(untouched).map(Arc::make_mut) {
            run.version = schedule.version;
            run.terms = Arc::clone(&terms);
        }
        let outage_seq = self.outages.last_seq();
        self.schedules.insert(id, ScheduleRecord { outage, outage_seq, ..ScheduleRecord::new(schedule, at) });
    }

    fn take_plan(&mut self, plan: &PlanEntry) {
        for id in &plan.withdrawn {
            self.runs.remove(id);
        }
        for moved in &plan.moved {
            let run = Arc::make_mut(self.runs.get_mut(&moved.id).expect("the entry has been checked"));
            run.scheduled_at = moved.scheduled_at;
            run.follows = moved.follows;
            // What has been on time once rests as long as its retry says, and is never too late any more.
            if run.is_untouched() {
                run.expires_at = moved.expires_at;
                run.due_at = moved.due_at;
                run.state = RunState::planned(moved.due_at, run.epoch());
            }
        }
        let record = self.schedules.get_mut(&plan.schedule).expect("the entry has been checked");
        let schedule = Arc::make_mut(&mut record.schedule);
        schedule.cursor = plan.cursor.clone();
        schedule.early = plan.early.clone();
        record.plan_at = plan.plan_at;
        if record.zone_data != plan.zone_data {
            record.zone_data = plan.zone_data.as_str().into();
        }
        (record.outage, record.outage_seq) = (plan.outage, self.outages.last_seq());
        if plan.runs.is_empty() {
            return;
        }
        let terms = Arc::new(Terms::of(&record.schedule));
        for planned in &plan.runs {
            let run = Run::of_slot(&record.schedule, &terms, planned, self.epoch_floor);
            self.runs.insert(run.id, Arc::new(run));
        }
    }

    fn take_event(&mut self, id: RunId, event: &RunEvent, at: Timestamp) {
        self.take_event_of_live(id, event, at);
        if self.runs[&id].state.is_final() {
            self.runs.remove(&id);
        }
    }

    fn take_event_of_live(&mut self, id: RunId, event: &RunEvent, at: Timestamp) {
        let run = Arc::make_mut(self.runs.get_mut(&id).expect("the entry has been checked"));
        let had_started = run.has_started;
        run.take(event, at).expect("the entry has been checked");
        let counts = run.has_started && !had_started;
        let Some(record) = run.schedule.and_then(|id| self.schedules.get_mut(&id)) else { return };
        // A run counts for its schedule once, when it first starts.
        if counts {
            Arc::make_mut(&mut record.schedule).runs_started += 1;
        }
        let reads = run.terms.work.inputs_policy().is_some();
        if reads && *event == RunEvent::Succeeded && record.schedule.read_until < Some(run.scheduled_at) {
            Arc::make_mut(&mut record.schedule).read_until = Some(run.scheduled_at);
        }
        // Time alone brings nothing more. Now that a run has started or is over, the schedule may be over too, or have a place
        // for another run.
        if (counts || run.state.is_final()) && record.plan_at.is_none() && record.schedule.is_active() {
            self.outages.settle(record);
            record.plan_at = Some(at);
        }
    }

    fn take_attempt(&mut self, attempt: &Attempt, at: Timestamp) {
        self.take_event(attempt.run, &attempt.event, at);
        let Some(run) = self.runs.get_mut(&attempt.run) else { return };
        let run = Arc::make_mut(run);
        run.last_end = Some(attempt.last_end(run.state));
    }

    /// Whether a planned run has to let others of its schedule go first.
    ///
    /// Under `queue` only the earliest of a schedule's planned runs may be claimed, and only while no other is at work. A
    /// run that was parked waits for the one at work under every policy, and one that follows another waits for its start.
    pub fn is_blocked(&self, run: &Run) -> bool {
        self.is_blocked_by(run, self.live_runs())
    }

    /// The same where only some of the other runs are known to matter: those of its schedule are asked, the rest is not.
    pub fn is_blocked_by<'a>(&self, run: &Run, mut others: impl Iterator<Item = &'a Run>) -> bool {
        if self.waits_for_start(run) {
            return true;
        }
        let Some(schedule) = run.schedule else { return false };
        let queues = run.terms.overlap == Overlap::Queue;
        if !queues && !run.is_parked {
            return false;
        }
        let place = |run: &Run| run.planned_for().map(|due_at| (due_at, run.id));
        // One that waits for another's start holds up nobody: it may be this one's that it waits for.
        let is_before =
            |other: &Run| place(other).is_some_and(|it| Some(it) < place(run)) && !self.waits_for_start(other);
        let goes_first = |other: &Run| other.is_active() || queues && is_before(other);
        others.any(|other| other.schedule == Some(schedule) && other.id != run.id && goes_first(other))
    }

    /// Whether a planned run finds another of its schedule at work that it gives way to, or replaces: it is answered as
    /// soon as it is due, whether there is a place for it or not.
    pub fn overlaps(&self, run: &Run) -> bool {
        let is_asked = matches!(run.state, RunState::Planned { resumes: false, .. }) && !run.is_parked;
        if !is_asked || !run.terms.overlap.answers_at_once() || self.waits_for_start(run) {
            return false;
        }
        let is_other = |other: &&Run| other.schedule == run.schedule && other.id != run.id;
        run.schedule.is_some() && self.live_runs().filter(is_other).any(Run::is_active)
    }

    /// Whether it follows a run that has not started yet, and still may.
    pub fn waits_for_start(&self, run: &Run) -> bool {
        let leader = run.follows.and_then(|id| self.runs.get(&id));
        leader.is_some_and(|leader| !leader.has_started && !leader.state.is_final())
    }

    fn schedule(&self, id: ScheduleId) -> Result<&ScheduleRecord, JournalError> {
        self.schedules.get(&id).ok_or(JournalError::UnknownSchedule(id))
    }

    fn run(&self, id: RunId) -> Result<&Run, JournalError> {
        self.runs.get(&id).map(|run| &**run).ok_or(JournalError::UnknownRun(id))
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Whether no run stands twice in one entry: what is true of each would not be true of the second.
fn check_once(mut ids: impl Iterator<Item = RunId>) -> Result<(), JournalError> {
    let mut seen = BTreeSet::new();
    ids.find(|id| !seen.insert(*id)).map_or(Ok(()), |id| Err(JournalError::NotIts(id)))
}

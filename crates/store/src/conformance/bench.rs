//! The bench: a store, a clock that is set by hand, and short ways to say what claims are about.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use punctual_core::journal::{Entry, PlanEntry, PlannedRun, ScheduleRecord};
use punctual_core::plan::{Limits, expires_at};
use punctual_core::run::{FailureCode, Outcome, Report, Run, RunEvent, RunState, Terms};
use punctual_core::schedule::Schedule;
use punctual_core::time::{SlotKey, Zones};
use punctual_core::{Elapsed, NodeId, RunId, ScheduleId};
use serde_json::{Value, json};
use uuid::Uuid;

use super::block_on;
use crate::{
    About, AttemptReport, ClaimRequest, Claimed, Decision, Expected, NodeRecord, PlanWrite, Renewal, Result, RunFilter,
    RunWritten, ScheduleChange, Settlement, Sign, Store, Written,
};

/// How long a node's lease lasts on the bench.
pub const LEASE: Elapsed = Elapsed::from_seconds(30);

/// The zone data that plans are made with on the bench.
pub const ZONE_DATA: &str = "2026a";

/// More than there ever is on the bench.
pub const ALL: usize = 1_000_000;

/// A store with a clock and ids of its own. It is 09:00 on Monday, 5 January 2026, UTC.
pub struct Bench {
    /// The store.
    pub store: Box<dyn Store>,
    /// The time. Nothing but a claim moves it.
    pub now: Timestamp,
    /// How many runs may be at work.
    pub limits: Limits,
    ids: u128,
}

/// An instant: `10:00` or `10:00:30` of the bench's day, or a whole timestamp.
pub fn at(text: &str) -> Timestamp {
    let whole = if text.contains('T') { text.to_owned() } else { format!("2026-01-05T{text}Z") };
    whole.parse().unwrap_or_else(|error| panic!("{text} is no time: {error}"))
}

/// The key of the slot at an instant.
pub fn slot_key(at: Timestamp) -> SlotKey {
    serde_json::from_value(json!(format!("i:{}", at.as_second()))).expect("a key is text")
}

/// A failure that another try may help.
pub fn failed(at: Timestamp) -> RunEvent {
    RunEvent::Failed { at, code: FailureCode::Error, is_retryable: true, retry_after: None }
}

/// What a node says when it ends an attempt in a few words.
pub fn said(summary: &str) -> Report {
    Report { summary: Some(summary.to_owned()), ..Report::default() }
}

impl Bench {
    /// A bench around an empty store.
    pub fn new(store: Box<dyn Store>) -> Bench {
        Bench { store, now: at("09:00:00"), limits: Limits::default(), ids: 0 }
    }

    /// An id that is behind all before it.
    pub fn id(&mut self) -> Uuid {
        self.ids += 1;
        // The bits that make it a UUIDv7, as every id is one outside of tests.
        Uuid::from_u128(0x019b_8b4c_0000_7000_8000_0000_0000_0000 | self.ids)
    }

    /// The id of a run that is scheduled at an instant, behind all before it of that time: ids begin with their run's time, as
    /// everywhere outside of tests.
    pub fn run_id(&mut self, scheduled_at: Timestamp) -> RunId {
        self.ids += 1;
        // The bits that make it a UUIDv7.
        let first = RunId::first_at(scheduled_at).0.as_u128();
        RunId(Uuid::from_u128(first | 0x7000_8000_0000_0000_0000 | self.ids))
    }

    /// Sets the clock.
    pub fn go(&mut self, time: &str) {
        self.now = at(time);
    }

    /// Lets time pass.
    pub fn pass(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
    }

    // Schedules and their plans.

    /// A schedule that is not written yet. `fields` overrides the most permissive schedule there is.
    pub fn draft(&mut self, fields: Value) -> Schedule {
        let mut schedule = json!({
            "id": self.id(),
            "version": 1,
            "work": {"agent": {"agent": "reporter"}},
            "trigger": {"cron": [{"expression": "0 9 * * *"}]},
            "zone": "UTC",
            "cursor": {"at": self.now},
            "policy": {"overlap": "allow", "max_concurrent": 1000, "max_delay": "none"},
        });
        for (name, value) in fields.as_object().expect("fields are an object") {
            match (name.as_str(), value.as_object()) {
                ("policy", Some(policy)) => policy.iter().for_each(|(name, value)| {
                    schedule["policy"][name] = value.clone();
                }),
                ("agent", _) => schedule["work"] = json!({"agent": {"agent": value}}),
                _ => schedule[name] = value.clone(),
            }
        }
        serde_json::from_value(schedule).unwrap_or_else(|error| panic!("{fields} makes no schedule: {error}"))
    }

    /// A schedule, written and planned up to now, with nothing to do until somebody says so.
    pub fn add(&mut self, fields: Value) -> ScheduleId {
        let schedule = self.draft(fields);
        let plan = Some(plan_entry(&schedule));
        let write =
            PlanWrite { expected: Expected::New, plan, ..change(ScheduleChange::Put(Box::new(schedule.clone()))) };
        assert_eq!(self.write(write), Written::Done);
        schedule.id
    }

    /// Writes one planning decision.
    pub fn write(&self, write: PlanWrite) -> Written {
        self.writes(vec![write])[0]
    }

    /// Writes planning decisions.
    pub fn writes(&self, writes: Vec<PlanWrite>) -> Vec<Written> {
        block_on(self.store.plan(self.now, writes)).unwrap()
    }

    /// The schedule as it is.
    pub fn schedule(&self, id: ScheduleId) -> Schedule {
        block_on(self.store.schedule(id)).unwrap().unwrap_or_else(|| panic!("schedule {id} is gone"))
    }

    /// A write for a schedule as it is now, with a plan that changes nothing yet.
    pub fn write_for(&self, schedule: ScheduleId) -> PlanWrite {
        let subject = block_on(self.store.subject(schedule, self.now)).unwrap().expect("it exists");
        let ScheduleRecord { schedule, outage, .. } = subject.task.record;
        let (version, cursor) = (schedule.version, schedule.cursor.clone());
        let early = schedule.early.clone();
        let expected = Expected::At { schedule: schedule.id, version, cursor, early, outage };
        PlanWrite { expected, plan: Some(plan_entry(&schedule)), ..change(ScheduleChange::None) }
    }

    /// A run for the slot at an instant, due then.
    pub fn planned_run(&mut self, schedule: ScheduleId, scheduled_at: Timestamp) -> PlannedRun {
        let schedule = self.schedule(schedule);
        let zone = Zones::bundled().get(&schedule.zone).expect("the zone exists");
        let key = slot_key(scheduled_at);
        let expires_at = expires_at(schedule.policy.max_delay, &zone, &key, scheduled_at, scheduled_at);
        PlannedRun { id: self.run_id(scheduled_at), key, scheduled_at, due_at: scheduled_at, expires_at, follows: None }
    }

    /// A write that plans runs for the slots at these times, and moves the cursor to the last of them.
    pub fn plan_write(&mut self, schedule: ScheduleId, times: &[&str]) -> (PlanWrite, Vec<RunId>) {
        let runs: Vec<PlannedRun> = times.iter().map(|time| self.planned_run(schedule, at(time))).collect();
        let ids = runs.iter().map(|run| run.id).collect();
        let mut write = self.write_for(schedule);
        let plan = write.plan.as_mut().expect("it has a plan");
        plan.cursor.at = runs.iter().map(|run| run.scheduled_at).max().unwrap_or(plan.cursor.at);
        plan.runs = runs;
        (write, ids)
    }

    /// Plans runs for the slots at these times.
    pub fn plan(&mut self, schedule: ScheduleId, times: &[&str]) -> Vec<RunId> {
        let (write, ids) = self.plan_write(schedule, times);
        assert_eq!(self.write(write), Written::Done);
        ids
    }

    /// A new schedule with one run that is due now.
    pub fn due_run(&mut self, fields: Value) -> RunId {
        let schedule = self.add(fields);
        let now = self.now.to_string();
        self.plan(schedule, &[&now])[0]
    }

    /// Edits a schedule: a new version, with a plan that changes nothing else.
    pub fn edit(&self, id: ScheduleId, edit: impl FnOnce(&mut Schedule)) {
        let before = self.schedule(id);
        let mut after = before.clone();
        after.version += 1;
        edit(&mut after);
        let plan = Some(plan_entry(&after));
        let write = PlanWrite { plan, ..change_of(&before, ScheduleChange::Put(Box::new(after))) };
        assert_eq!(self.write(write), Written::Done);
    }

    /// Deletes a schedule, and withdraws these runs.
    pub fn delete(&self, id: ScheduleId, withdrawn: &[RunId]) {
        let withdrawn = withdrawn.to_vec();
        let write = change_of(&self.schedule(id), ScheduleChange::Delete { withdrawn, next_gone: None });
        assert_eq!(self.write(write), Written::Done);
    }

    // Runs.

    /// A run as it is, if it is there.
    pub fn find(&self, id: RunId) -> Option<Run> {
        block_on(self.store.run(id)).unwrap()
    }

    /// A run as it is.
    pub fn run(&self, id: RunId) -> Run {
        self.find(id).unwrap_or_else(|| panic!("run {id} is gone"))
    }

    /// The name of a run's state.
    pub fn state(&self, id: RunId) -> &'static str {
        self.run(id).state.name()
    }

    /// The runs of a schedule, by scheduled time.
    pub fn runs_of(&self, schedule: ScheduleId) -> Vec<Run> {
        let filter = crate::RunFilter { schedule: Some(schedule), limit: ALL, ..crate::RunFilter::default() };
        block_on(self.store.runs(&filter)).unwrap()
    }

    /// How a run ended, if it did.
    pub fn outcome(&self, id: RunId) -> Option<Outcome> {
        match self.run(id).state {
            RunState::Finished { outcome, .. } => Some(outcome),
            _ => None,
        }
    }

    /// Every run, over or not.
    pub fn all_runs(&self) -> Vec<Run> {
        block_on(self.store.runs(&RunFilter { limit: ALL, ..RunFilter::default() })).unwrap()
    }

    /// A run that a person asks for now, not yet written.
    pub fn manual_run(&mut self, schedule: ScheduleId) -> Run {
        let id = self.run_id(self.now);
        let schedule = self.schedule(schedule);
        asked_run(id, SlotKey::manual(id), &schedule, self.now)
    }

    // Nodes.

    /// A node that lives, with every agent that claims use.
    pub fn join(&mut self, name: &str) -> NodeId {
        let node = NodeId(self.id());
        self.joined(&self.sign(node, name)).unwrap();
        node
    }

    /// A node comes to life.
    pub fn joined(&self, sign: &Sign) -> Result<Renewal> {
        block_on(self.store.join(sign))
    }

    /// What a node says of itself now.
    pub fn sign(&self, node: NodeId, name: &str) -> Sign {
        Sign { node, name: name.to_owned(), now: self.now, lease: LEASE, agents: agents(), about: About::default() }
    }

    /// Renews a node's lease.
    pub fn renew(&self, node: NodeId) -> Result<Renewal> {
        block_on(self.store.renew(&self.sign(node, "renewing")))
    }

    /// The earliest end of another node's lease.
    pub fn others_until(&self, node: NodeId) -> Option<Timestamp> {
        self.renew(node).unwrap().others.iter().map(|lease| lease.until).min()
    }

    /// Buries who has a lease that has ended. How many.
    pub fn bury(&self) -> usize {
        block_on(bury_the_dead(&*self.store, self.now)).unwrap()
    }

    // Claims.

    /// Claims up to `limit` runs. The node's lease is renewed first: leases are not what most claims are about.
    pub fn claim(&self, node: NodeId, limit: usize) -> Vec<Run> {
        self.claimed(node, limit).runs.into_iter().map(|claimed| Run::clone(&claimed.run)).collect()
    }

    /// Claims up to `limit` runs, with all that a claim tells.
    pub fn claimed(&self, node: NodeId, limit: usize) -> Claimed {
        self.renew(node).unwrap();
        self.ask_for(node, limit, &agents()).unwrap()
    }

    /// Claims without renewing.
    pub fn ask_for(&self, node: NodeId, limit: usize, agents: &Arc<BTreeSet<String>>) -> Result<Claimed> {
        let limits = Arc::new(self.limits.clone());
        block_on(self.store.claim(&ClaimRequest { node, now: self.now, limit, agents: Arc::clone(agents), limits }))
    }

    /// Claims one run, which there must be.
    pub fn claim_one(&self, node: NodeId) -> Run {
        self.claim(node, 1).pop().expect("there is a run to claim")
    }

    /// Claims one run, which there must be, and starts it.
    pub fn start_one(&self, node: NodeId) -> Run {
        let run = self.claim_one(node);
        assert!(matches!(self.settle(&run, Decision::Start), RunWritten::Done(RunState::Running { .. })));
        self.run(run.id)
    }

    /// Settles a run under the epoch that it has in `run`.
    pub fn settle(&self, run: &Run, decision: Decision) -> RunWritten {
        let settlement = Settlement { run: run.id, epoch: run.epoch(), decision };
        block_on(self.store.settle(self.now, vec![settlement])).unwrap()[0]
    }

    /// Ends the attempt that `run` is at, under the epoch that it has there.
    pub fn finish(&self, run: &Run, event: RunEvent) -> RunWritten {
        self.report(run, event, Report::default())
    }

    /// Ends an attempt, with a report.
    pub fn report(&self, run: &Run, event: RunEvent, report: Report) -> RunWritten {
        let report = AttemptReport { run: run.id, epoch: run.epoch(), event, report };
        block_on(self.store.finish(self.now, vec![report])).unwrap()[0]
    }

    // The journal.

    /// Every entry that is kept.
    pub fn entries(&self) -> Vec<Entry> {
        block_on(self.store.entries(0, ALL)).unwrap()
    }

    /// The number of the last entry.
    pub fn seq(&self) -> u64 {
        block_on(self.store.head()).unwrap().seq
    }

    /// What happened since an entry, by kind.
    pub fn kinds_since(&self, seq: u64) -> Vec<&'static str> {
        let entries = block_on(self.store.entries(seq, ALL)).unwrap();
        entries.iter().map(|entry| entry.body.kind()).collect()
    }

    /// Does something that must change nothing: neither the journal nor a run.
    pub fn changes_nothing<T>(&mut self, what: &str, action: impl FnOnce(&mut Bench) -> T) -> T {
        let before = (self.seq(), self.all_runs());
        let answer = action(self);
        assert!(before == (self.seq(), self.all_runs()), "{what} has changed something");
        answer
    }
}

/// Buries the nodes whose lease has ended before an instant. How many.
pub async fn bury_the_dead(store: &dyn Store, now: Timestamp) -> Result<usize> {
    let nodes = store.nodes().await?;
    store.bury(now, nodes.iter().map(NodeRecord::lease).filter(|lease| lease.until < now).collect()).await
}

/// The agents of every node on the bench.
pub fn agents() -> Arc<BTreeSet<String>> {
    Arc::new(["reporter", "reader", "writer", "a", "b", "c"].map(str::to_owned).into())
}

/// A plan of a schedule as it is, that changes nothing.
pub fn plan_entry(schedule: &Schedule) -> PlanEntry {
    let record = ScheduleRecord::new(schedule.clone(), schedule.cursor.at);
    PlanEntry { plan_at: None, zone_data: ZONE_DATA.to_owned(), ..PlanEntry::unchanged(&record) }
}

/// A write of a new schedule, without a plan.
pub fn change(change: ScheduleChange) -> PlanWrite {
    PlanWrite { expected: Expected::New, change, skips: vec![], cancelled: vec![], plan: None, by: None }
}

/// A write about a schedule as it is, without a plan.
pub fn change_of(schedule: &Schedule, becomes: ScheduleChange) -> PlanWrite {
    let (version, cursor) = (schedule.version, schedule.cursor.clone());
    let early = schedule.early.clone();
    let expected = Expected::At { schedule: schedule.id, version, cursor, early, outage: None };
    PlanWrite { expected, ..change(becomes) }
}

/// A run that an event or a person asks for.
pub fn asked_run(id: RunId, key: SlotKey, schedule: &Schedule, now: Timestamp) -> Run {
    Run {
        id,
        schedule: Some(schedule.id),
        version: schedule.version,
        key,
        scheduled_at: now,
        due_at: now,
        expires_at: None,
        follows: None,
        terms: Arc::new(Terms::of(schedule)),
        state: RunState::planned(now, 0),
        started_at: None,
        ended_at: None,
        has_started: false,
        is_parked: false,
        is_cancelling: false,
        last_end: None,
    }
}

//! Runs to claim, and a node that claims them: what the benchmarks of the stores have in common.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use punctual_core::journal::{PlanEntry, PlannedRun};
use punctual_core::plan::Limits;
use punctual_core::run::{Report, RunEvent};
use punctual_core::schedule::Schedule;
use punctual_core::{Elapsed, NodeId, RunId};
use punctual_store::conformance::bench::{change, plan_entry, slot_key};
use punctual_store::conformance::block_on;
use punctual_store::{
    AttemptReport, ClaimRequest, Claimed, Decision, Expected, PlanWrite, ScheduleChange, Settlement, Sign, Store,
    Written,
};
use serde_json::json;
use uuid::Uuid;

/// A node on a store.
pub(crate) struct Worker {
    pub(crate) store: Box<dyn Store>,
    pub(crate) now: Timestamp,
    node: NodeId,
    agents: Arc<BTreeSet<String>>,
    limits: Arc<Limits>,
    ids: u128,
}

impl Worker {
    /// The node of this number, with these agents.
    pub(crate) fn join(store: Box<dyn Store>, number: u64, agents: impl IntoIterator<Item = String>) -> Worker {
        let agents: Arc<BTreeSet<String>> = Arc::new(agents.into_iter().collect());
        let mut worker = Worker {
            store,
            node: NodeId(Uuid::nil()),
            now: "2026-01-05T09:00:00Z".parse().expect("it is a time"),
            agents,
            limits: Arc::default(),
            ids: u128::from(number) << 32,
        };
        worker.node = NodeId(worker.id());
        let sign = Sign {
            node: worker.node,
            name: format!("node {number}"),
            now: worker.now,
            lease: Elapsed::from_seconds(86_400),
            agents: Arc::clone(&worker.agents),
            about: Default::default(),
        };
        block_on(worker.store.join(&sign)).expect("a node joins");
        worker
    }

    pub(crate) fn id(&mut self) -> Uuid {
        self.ids += 1;
        Uuid::from_u128(0x019b_8b4c_0000_7000_8000_0000_0000_0000 | self.ids)
    }

    /// A schedule with runs that have been due for a while, the first for longest.
    pub(crate) fn write(&mut self, agent: &str, overlap: &str, max_concurrent: u32, runs: usize) -> PlanWrite {
        let schedule: Schedule = serde_json::from_value(json!({
            "id": self.id(),
            "version": 1,
            "work": {"agent": {"agent": agent, "prompt": "What changed since yesterday?"}},
            "trigger": {"cron": [{"expression": "0 9 * * *"}]},
            "zone": "UTC",
            "cursor": {"at": self.now},
            "policy": {"overlap": overlap, "max_concurrent": max_concurrent},
        }))
        .expect("it is a schedule");
        let run = |worker: &mut Worker, index: usize| {
            let at = worker.now - SignedDuration::from_secs((runs - index) as i64);
            let expires_at = Some(worker.now + SignedDuration::from_hours(16));
            let id = RunId(worker.id());
            PlannedRun { id, key: slot_key(at), scheduled_at: at, due_at: at, expires_at, follows: None }
        };
        let runs = (0..runs).map(|index| run(self, index)).collect();
        let plan = Some(PlanEntry { runs, ..plan_entry(&schedule) });
        PlanWrite { expected: Expected::New, plan, ..change(ScheduleChange::Put(Box::new(schedule))) }
    }

    pub(crate) fn plan(&self, writes: Vec<PlanWrite>) {
        let written = block_on(self.store.plan(self.now, writes)).expect("the plan is written");
        assert!(written.iter().all(|written| *written == Written::Done));
    }

    pub(crate) fn claim(&self, limit: usize) -> Claimed {
        let (agents, limits) = (Arc::clone(&self.agents), Arc::clone(&self.limits));
        let request = ClaimRequest { node: self.node, now: self.now, limit, agents, limits };
        block_on(self.store.claim(&request)).expect("runs are claimed")
    }

    pub(crate) fn start(&self, claimed: &Claimed) {
        let start = |run: RunId, epoch| Settlement { run, epoch, decision: Decision::Start };
        let settlements = claimed.runs.iter().map(|it| start(it.run.id, it.run.epoch())).collect();
        block_on(self.store.settle(self.now, settlements)).expect("runs are started");
    }

    pub(crate) fn finish(&self, claimed: &Claimed) {
        let report = |run: RunId, epoch| AttemptReport {
            run,
            epoch,
            event: RunEvent::Succeeded,
            report: Report { summary: Some("Nothing changed.".to_owned()), ..Report::default() },
        };
        let reports = claimed.runs.iter().map(|it| report(it.run.id, it.run.epoch())).collect();
        block_on(self.store.finish(self.now, reports)).expect("runs are finished");
    }
}

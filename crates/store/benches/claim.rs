//! What a claim costs, with little and with much in its way; and how many rows a second go through.
//!
//! `cargo bench -p punctual-store --bench claim`. A cycle is a claim of one run, its start and its end: three commits. The
//! small store has 1,000 runs that wait, of four agents; in the large one 1,000,000 more wait behind 1,000 agents that have
//! as many at work as they may. Both are measured without waiting for the disk, whose time would hide the store's own, and
//! the small one with it.

#![expect(clippy::disallowed_methods, reason = "a benchmark measures time")]

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use punctual_core::journal::{PlanEntry, PlannedRun};
use punctual_core::plan::Limits;
use punctual_core::run::{Report, RunEvent};
use punctual_core::schedule::{Concurrency, Schedule};
use punctual_core::{Elapsed, NodeId, RunId};
use punctual_store::conformance::bench::{change, plan_entry, slot_key};
use punctual_store::conformance::block_on;
use punctual_store::sqlite::SqliteStore;
use punctual_store::{
    AttemptReport, ClaimRequest, Claimed, Claims, Decision, Expected, Journal, Nodes, Plan, PlanWrite, ScheduleChange,
    Settlement, Sign, Written,
};
use serde_json::json;
use uuid::Uuid;

/// Agents that have places left, in both stores.
const FREE_AGENTS: usize = 4;

/// Agents that have none, in the large store.
const FULL_AGENTS: usize = 1_000;

/// Runs that wait behind each of them.
const RUNS_EACH: usize = 1_000;

/// Cycles that are measured, after as many that are not.
const CYCLES: usize = 300;

fn main() {
    let mut small = Bench::on_disk("small");
    small.add_free(1_000);
    println!("{:>28}: {:?} a cycle", "1,000 wait, on the disk", small.measure_cycles());
    drop(small);

    let mut small = Bench::new(SqliteStore::in_memory().expect("a database can be made"));
    small.add_free(1_000);
    let small_cycle = small.measure_cycles();
    println!("{:>28}: {small_cycle:?} a cycle", "1,000 runs wait");

    let mut large = Bench::new(SqliteStore::in_memory().expect("a database can be made"));
    let start = Instant::now();
    large.add_full();
    let took = start.elapsed();
    let runs = FULL_AGENTS * RUNS_EACH;
    println!("{:>28}: {took:.1?}, {:.0} rows/s", format!("planning {runs} runs"), runs as f64 / took.as_secs_f64());
    large.add_free(1_000);
    let large_cycle = large.measure_cycles();
    println!("{:>28}: {large_cycle:?} a cycle", "1,001,000 runs wait");
    println!("{:>28}: {:.2}", "ratio", large_cycle.as_secs_f64() / small_cycle.as_secs_f64());
    let start = Instant::now();
    assert!(block_on(large.store().verify()).expect("it can be verified").is_empty());
    println!("{:>28}: {:.1?}", "verifying it all", start.elapsed());
    drop((small, large));

    let few = Bench::with_lanes(1_000).measure_cycles();
    println!("{:>28}: {few:?} a cycle", "1,000 lanes of one agent");
    let many = Bench::with_lanes(50_000).measure_cycles();
    println!("{:>28}: {many:?} a cycle", "50,000 lanes of one agent");
    println!("{:>28}: {:.2}", "ratio", many.as_secs_f64() / few.as_secs_f64());

    for batch in [1, 100, 1_000] {
        Bench::on_disk("rows").measure_rows(batch);
    }
}

struct Bench {
    store: Option<SqliteStore>,
    folder: Option<PathBuf>,
    node: NodeId,
    now: Timestamp,
    agents: Arc<BTreeSet<String>>,
    limits: Arc<Limits>,
    ids: u128,
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.store = None;
        if let Some(folder) = &self.folder {
            std::fs::remove_dir_all(folder).expect("the folder is ours");
        }
    }
}

impl Bench {
    /// A store whose commits wait for the disk.
    fn on_disk(name: &str) -> Bench {
        let folder = std::env::temp_dir().join(format!("punctual-bench-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder can be made");
        let store = SqliteStore::open(folder.join("punctual.db")).expect("a database can be made");
        let mut bench = Bench::new(store);
        bench.folder = Some(folder);
        bench
    }

    fn new(store: SqliteStore) -> Bench {
        let agents = (0..FULL_AGENTS).map(full).chain((0..FREE_AGENTS).map(free)).collect();
        let mut bench = Bench {
            store: Some(store),
            folder: None,
            node: NodeId(Uuid::nil()),
            now: "2026-01-05T09:00:00Z".parse().expect("it is a time"),
            agents: Arc::new(agents),
            limits: Arc::default(),
            ids: 0,
        };
        bench.node = NodeId(bench.id());
        let sign = Sign {
            node: bench.node,
            name: "bench".to_owned(),
            now: bench.now,
            lease: Elapsed::from_seconds(86_400),
            agents: Arc::clone(&bench.agents),
            about: Default::default(),
        };
        block_on(bench.store().join(&sign)).expect("a node joins");
        bench
    }

    /// A store in which every run has a key of its own, of one agent that has one place.
    fn with_lanes(lanes: usize) -> Bench {
        let mut bench = Bench::new(SqliteStore::in_memory().expect("a database can be made"));
        for batch in 0..lanes / 1_000 {
            let mut writes = vec![];
            for index in 0..1_000 {
                let mut write = bench.write(&free(0), "allow", 1, 1);
                let ScheduleChange::Put(schedule) = &mut write.change else { unreachable!("it is put") };
                let key = format!("key-{batch}-{index}");
                schedule.policy.concurrency = Some(Concurrency { key, max: NonZeroU32::MIN });
                writes.push(write);
            }
            bench.plan(writes);
        }
        bench
    }

    fn store(&self) -> &SqliteStore {
        self.store.as_ref().expect("it is open")
    }

    fn id(&mut self) -> Uuid {
        self.ids += 1;
        Uuid::from_u128(0x019b_8b4c_0000_7000_8000_0000_0000_0000 | self.ids)
    }

    /// A schedule with runs that have been due for a while, the first for longest.
    fn write(&mut self, agent: &str, overlap: &str, max_concurrent: u32, runs: usize) -> PlanWrite {
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
        let run = |bench: &mut Bench, index: usize| {
            let at = bench.now - SignedDuration::from_secs((runs - index) as i64);
            let expires_at = Some(bench.now + SignedDuration::from_hours(16));
            let id = RunId(bench.id());
            PlannedRun { id, key: slot_key(at), scheduled_at: at, due_at: at, expires_at, follows: None }
        };
        let runs = (0..runs).map(|index| run(self, index)).collect();
        let plan = Some(PlanEntry { runs, ..plan_entry(&schedule) });
        PlanWrite { expected: Expected::New, plan, ..change(ScheduleChange::Put(Box::new(schedule))) }
    }

    fn plan(&self, writes: Vec<PlanWrite>) {
        let written = block_on(self.store().plan(self.now, writes)).expect("the plan is written");
        assert!(written.iter().all(|written| *written == Written::Done));
    }

    fn add_free(&mut self, runs: usize) {
        let each = runs / FREE_AGENTS;
        let writes = (0..FREE_AGENTS).map(|index| self.write(&free(index), "allow", 1_000, each)).collect();
        self.plan(writes);
    }

    fn add_full(&mut self) {
        for tens in 0..FULL_AGENTS / 10 {
            let overlap = if tens % 2 == 0 { "queue" } else { "allow" };
            let agents = tens * 10..(tens + 1) * 10;
            let writes = agents.map(|index| self.write(&full(index), overlap, 1, RUNS_EACH)).collect();
            self.plan(writes);
        }
        let claimed = self.claim(FULL_AGENTS);
        assert_eq!(claimed.runs.len(), FULL_AGENTS, "each agent has one place");
        self.start(&claimed);
        assert_eq!(self.claim(1).runs.len(), 0, "no agent has a place left");
    }

    fn claim(&self, limit: usize) -> Claimed {
        let (agents, limits) = (Arc::clone(&self.agents), Arc::clone(&self.limits));
        let request = ClaimRequest { node: self.node, now: self.now, limit, agents, limits };
        block_on(self.store().claim(&request)).expect("runs are claimed")
    }

    fn start(&self, claimed: &Claimed) {
        let start = |run: RunId, epoch| Settlement { run, epoch, decision: Decision::Start };
        let settlements = claimed.runs.iter().map(|it| start(it.run.id, it.run.epoch())).collect();
        block_on(self.store().settle(self.now, settlements)).expect("runs are started");
    }

    fn finish(&self, claimed: &Claimed) {
        let report = |run: RunId, epoch| AttemptReport {
            run,
            epoch,
            event: RunEvent::Succeeded,
            report: Report { summary: Some("Nothing changed.".to_owned()), ..Report::default() },
        };
        let reports = claimed.runs.iter().map(|it| report(it.run.id, it.run.epoch())).collect();
        block_on(self.store().finish(self.now, reports)).expect("runs are finished");
    }

    /// What a cycle takes: the middle one of many.
    fn measure_cycles(&mut self) -> Duration {
        let mut times = vec![];
        for cycle in 0..2 * CYCLES {
            let start = Instant::now();
            let claimed = self.claim(1);
            assert_eq!(claimed.runs.len(), 1, "there is always one");
            self.start(&claimed);
            self.finish(&claimed);
            if CYCLES <= cycle {
                times.push(start.elapsed());
            }
        }
        times.sort_unstable();
        times[times.len() / 2]
    }

    /// Rows a second, in batches of one size.
    fn measure_rows(mut self, batch: usize) {
        let rounds = if batch == 1 { 500 } else { 20_000 / batch };
        let mut took = [Duration::ZERO; 4];
        let mut timed = |step: usize, work: &mut dyn FnMut()| {
            let start = Instant::now();
            work();
            took[step] += start.elapsed();
        };
        for _ in 0..rounds {
            let write = self.write(&free(0), "allow", 100_000, batch);
            let mut writes = Some(vec![write]);
            timed(0, &mut || self.plan(writes.take().expect("it is written once")));
            let mut claimed = Claimed::nothing(Timestamp::UNIX_EPOCH);
            timed(1, &mut || claimed = self.claim(batch));
            assert_eq!(claimed.runs.len(), batch);
            timed(2, &mut || self.start(&claimed));
            timed(3, &mut || self.finish(&claimed));
        }
        let rows = |step: usize| (rounds * batch) as f64 / took[step].as_secs_f64();
        let name = format!("in batches of {batch}");
        let (planned, claimed, started, finished) = (rows(0), rows(1), rows(2), rows(3));
        println!(
            "{name:>28}: planned {planned:.0}, claimed {claimed:.0}, started {started:.0}, finished {finished:.0} rows/s"
        );
    }
}

fn full(index: usize) -> String {
    format!("full-{index:04}")
}

fn free(index: usize) -> String {
    format!("free-{index}")
}

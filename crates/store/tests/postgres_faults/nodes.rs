//! Two handles of one database, as two nodes have them: every run is claimed once, no limit is exceeded at any commit, and
//! each handle knows what the other does.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use jiff::SignedDuration;
use punctual_core::plan::Limits;
use punctual_core::run::{Report, Run, RunEvent};
use punctual_core::{NodeId, RunId, ScheduleId};
use punctual_store::conformance::bench::{agents, at};
use punctual_store::conformance::{Bench, block_on};
use punctual_store::postgres::PostgresStore;
use punctual_store::{AttemptReport, Claimed, Decision, Journal, Renewal, RunWritten, Runs, Settlement};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::postgres_support::dice::Dice;
use crate::postgres_support::runs::request;
use crate::postgres_support::told::Told;
use crate::postgres_support::{assert_clean, fresh_schema, in_words, open, rounds};

/// What may be held at most: in all, of agent `a`, of project `p`, of agent `c`, and of the schedule that is a queue.
const MOST: [usize; 5] = [16, 8, 6, 5, 1];

/// The limits that all claims name.
fn limits() -> Limits {
    Limits { global: Some(16), agents: [("a".to_owned(), 8)].into(), projects: [("p".to_owned(), 6)].into() }
}

/// Schedules, each with its share of the runs.
fn schedules() -> [(Value, usize); 5] {
    [
        (json!({"agent": "a", "project": "p"}), 6),
        (json!({"agent": "a", "project": "q"}), 6),
        (json!({"agent": "b", "project": "p"}), 6),
        (json!({"agent": "c", "policy": {"max_concurrent": 5}}), 6),
        (json!({"agent": "b", "policy": {"overlap": "queue"}}), 1),
    ]
}

/// Plans runs that have been due for a while.
fn plan(bench: &mut Bench, fields: Value, count: usize) -> ScheduleId {
    let schedule = bench.add(fields);
    for first in (0..count).step_by(100) {
        let time = |index: usize| (at("06:00:00") + SignedDuration::from_secs(index as i64)).to_string();
        let times: Vec<String> = (first..count.min(first + 100)).map(time).collect();
        bench.plan(schedule, &times.iter().map(String::as_str).collect::<Vec<_>>());
    }
    schedule
}

/// One handle, with nodes of its own.
struct Handle {
    bench: Bench,
    nodes: Vec<NodeId>,
}

impl Handle {
    fn new(address: &str, first: u128) -> Handle {
        let nodes = (first..first + 3).map(|number| NodeId(Uuid::from_u128(number))).collect();
        let handle = Handle::open(address, nodes);
        for node in &handle.nodes {
            handle.bench.joined(&handle.bench.sign(*node, "a")).expect("the store answers");
        }
        handle
    }

    fn open(address: &str, nodes: Vec<NodeId>) -> Handle {
        let mut bench = Bench::new(Box::new(open(address)));
        bench.limits = limits();
        Handle { bench, nodes }
    }

    /// A node works until so many runs are done, and keeps what it has then.
    fn work(&self, node: NodeId, dice: &mut Dice, done: &AtomicUsize, until: usize) {
        let mut mine: Vec<Run> =
            self.bench.renew(node).expect("it lives").owned.iter().map(|(run, _)| self.bench.run(*run)).collect();
        loop {
            self.carry_out(&mine);
            let count = done.fetch_add(mine.len(), Ordering::Relaxed) + mine.len();
            mine = self
                .claim(node, 1 + dice.below(16) as usize)
                .runs
                .into_iter()
                .map(|claimed| Run::clone(&claimed.run))
                .collect();
            if until <= count {
                return;
            }
        }
    }

    /// Starts and finishes runs.
    fn carry_out(&self, runs: &[Run]) {
        let (store, now) = (&self.bench.store, self.bench.now);
        let start = |run: &Run| Settlement { run: run.id, epoch: run.epoch(), decision: Decision::Start };
        let started = block_on(store.settle(now, runs.iter().map(start).collect())).expect("the store answers");
        let (event, report) = (RunEvent::Succeeded, Report::default);
        let end = |run: &Run| AttemptReport { run: run.id, epoch: run.epoch(), event, report: report() };
        let ended = block_on(store.finish(now, runs.iter().map(end).collect())).expect("the store answers");
        assert!(!started.contains(&RunWritten::Stale) && !ended.contains(&RunWritten::Stale), "a run had two owners");
    }

    fn claim(&self, node: NodeId, limit: usize) -> Claimed {
        self.bench.ask_for(node, limit, &agents()).expect("the store answers")
    }

    /// What its state says, as far as anybody can ask.
    fn says(&self, nodes: &[NodeId]) -> Vec<(Claimed, Renewal)> {
        let renew = |node| Renewal { at: self.bench.now, ..self.bench.renew(node).expect("it lives") };
        nodes.iter().map(|node| (self.claim(*node, 0), renew(*node))).collect()
    }
}

#[test]
fn two_handles_claim_everything_once_and_within_every_limit() {
    let address = fresh_schema();
    let mut handles = [Handle::new(&address, 1), Handle::new(&address, 11)];
    let share = rounds(3) as usize * 30;
    let planned: Vec<ScheduleId> =
        schedules().map(|(fields, shares)| plan(&mut handles[0].bench, fields, shares * share)).into();
    let nodes: Vec<NodeId> = handles.iter().flat_map(|handle| handle.nodes.clone()).collect();
    let (all, done): (usize, _) = (schedules().iter().map(|(_, shares)| shares * share).sum(), AtomicUsize::new(0));
    for phase in 1..=3 {
        let until = if phase == 3 { all } else { all * phase / 3 };
        std::thread::scope(|scope| {
            for handle in &handles {
                for (index, node) in handle.nodes.iter().enumerate() {
                    let (done, mut dice) = (&done, Dice::new(phase as u64 * 100 + index as u64));
                    scope.spawn(move || handle.work(*node, &mut dice, done, until));
                }
            }
        });
        // Nobody writes now: each handle says what one says that has just been opened.
        let expected = Handle::open(&address, vec![]).says(&nodes);
        for handle in &handles {
            assert_eq!(handle.says(&nodes), expected, "phase {phase}");
            assert_clean(&*handle.bench.store);
        }
    }
    assert_eq!(done.load(Ordering::Relaxed), all);
    check_journal(&handles[1].bench, planned[4], all);
}

fn check_journal(bench: &Bench, queue: ScheduleId, all: usize) {
    let mut most = [0; 5];
    let told = Told::by(&bench.entries(), |entry, held| {
        let count = |counts: &dyn Fn(&Run) -> bool| held.iter().filter(|run| counts(run)).count();
        let agent = |name: &'static str| count(&move |run: &Run| run.terms.work.agent() == name);
        let counts = [
            count(&|_| true),
            agent("a"),
            count(&|run| run.terms.project.as_deref() == Some("p")),
            agent("c"),
            count(&|run| run.schedule == Some(queue)),
        ];
        for (number, (count, max)) in counts.into_iter().zip(MOST).enumerate() {
            assert!(count <= max, "limit {number} is exceeded at entry {}: {count}", entry.seq);
            most[number] = count.max(most[number]);
        }
    });
    assert_eq!(most, MOST, "a limit was never reached");
    let runs: BTreeSet<RunId> = told.claimed.keys().copied().collect();
    assert_eq!(runs.len(), all);
    told.assert_once(&runs);
}

#[test]
fn whatever_the_servers_usual_isolation_is_who_has_the_pen_sees_what_was_written_before() {
    for isolation in ["repeatable%5C%20read", "serializable"] {
        let address = format!("{}%20-c%20default_transaction_isolation%3D{isolation}", fresh_schema());
        let handles = [open(&address), open(&address)];
        let ask = |store: &PostgresStore, number| {
            let asked = block_on(store.ask(at("09:00:00"), request(number), None));
            assert!(asked.unwrap_or_else(|error| panic!("{isolation}: {}", in_words(&error))));
        };
        std::thread::scope(|scope| {
            for (index, handle) in handles.iter().enumerate() {
                let first = index as u128 * 1_000 + 1;
                scope.spawn(move || (first..first + 50).for_each(|number| ask(handle, number)));
            }
        });
        assert_eq!(block_on(handles[0].head()).expect("the store answers").seq, 100);
        handles.iter().for_each(|handle| assert_clean(handle));
    }
}

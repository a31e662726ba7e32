//! Retention: old entries go into the base piece by piece, beside others who read, write and prune.

use std::time::Duration;

use jiff::SignedDuration;
use punctual_core::NodeId;
use punctual_core::run::RunEvent;
use punctual_store::conformance::{Bench, block_on};
use punctual_store::{Journal, StoreError};
use serde_json::json;

use crate::postgres_support::patience::Watch;
use crate::postgres_support::proxy::passing::{Passing, Then};
use crate::postgres_support::session::Session;
use crate::postgres_support::{assert_clean, fresh_schema, is_unavailable, open};

/// Far more than anybody has to wait here.
const GENEROUS: Duration = Duration::from_secs(20);

/// A journal with entries of so many hours, one run each.
struct Scene {
    bench: Bench,
    address: String,
    session: Session,
}

impl Scene {
    fn new(hours: u32) -> Scene {
        Scene::through(hours, |address| address.to_owned())
    }

    /// The same, for a store that goes another way.
    fn through(hours: u32, way: impl FnOnce(&str) -> String) -> Scene {
        let address = fresh_schema();
        let mut bench = Bench::new(Box::new(open(&way(&address))));
        let node = bench.join("a");
        for _ in 0..hours {
            let run = bench.due_run(json!({}));
            let started = bench.start_one(node);
            assert_eq!(started.id, run);
            bench.finish(&started, RunEvent::Succeeded);
            bench.pass(3_600);
        }
        Scene { bench, session: Session::open(&address), address }
    }

    fn prune(&self) -> u64 {
        block_on(self.bench.store.prune(self.bench.now)).expect("the store answers")
    }

    fn first_seq(&self) -> u64 {
        self.session.count("SELECT first_seq FROM pen")
    }

    /// Everything that is kept is kept from the first entry on.
    fn check(&self) {
        let first = self.first_seq();
        for (table, column) in [("journal", "first"), ("history", "seq"), ("subjects", "seq"), ("records", "seq")] {
            let sql = format!("SELECT count(*) FROM {table} WHERE {column} < {first}");
            assert_eq!(self.session.count(&sql), 0, "{table}");
        }
        assert_eq!(block_on(self.bench.store.base()).expect("the store answers").seq, first - 1);
        assert_clean(&*self.bench.store);
    }
}

#[test]
fn what_goes_is_in_the_base_and_a_node_that_starts_then_has_everything() {
    let mut scene = Scene::new(4);
    let seq = scene.bench.seq();
    let all = scene.bench.all_runs();
    scene.bench.now -= SignedDuration::from_hours(2);
    let pruned = scene.prune();
    assert!(0 < pruned && pruned < seq, "{pruned}");
    assert_eq!(scene.first_seq(), pruned + 1);
    assert_eq!(scene.bench.entries()[0].seq, pruned + 1);
    scene.check();
    scene.bench.now += SignedDuration::from_hours(2);
    assert_eq!(scene.prune(), seq - pruned);
    assert_eq!(scene.bench.entries(), []);
    scene.check();
    let live = |bench: &Bench| bench.all_runs().iter().filter(|run| run.ended_at.is_none()).count();
    let fresh = Bench::new(Box::new(open(&scene.address)));
    assert_eq!((live(&fresh), all.len()), (0, 4));
    let run = scene.bench.due_run(json!({}));
    assert_eq!(fresh.run(run).id, run);
    scene.check();
    assert_clean(&*fresh.store);
}

#[test]
fn a_node_that_was_idle_while_entries_went_goes_on() {
    let mut scene = Scene::new(1);
    let mut idle = Bench::new(Box::new(open(&scene.address)));
    let node = NodeId(uuid::Uuid::from_u128(7));
    idle.joined(&idle.sign(node, "idle")).expect("the store answers");
    for _ in 0..2 {
        scene.bench.due_run(json!({}));
        scene.bench.pass(60);
        assert!(0 < scene.prune());
    }
    idle.now = scene.bench.now;
    assert_eq!(idle.all_runs().len(), 2, "what is over went");
    assert_eq!(idle.claim(node, 5).len(), 2);
    assert_clean(&*idle.store);
    scene.check();
}

#[test]
fn who_reads_the_journal_for_long_is_in_nobodys_way() {
    let scene = Scene::new(3);
    let reader = Session::open(&scene.address);
    reader.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM journal");
    let other = Bench::new(Box::new(open(&scene.address)));
    let watch = Watch::start();
    std::thread::scope(|scope| {
        let prune = scope.spawn(|| scene.prune());
        let mut number = 1;
        while !prune.is_finished() {
            let node = NodeId(uuid::Uuid::from_u128(number));
            other.joined(&other.sign(node, "b")).expect("writing works");
            other.entries();
            number += 1;
            assert!(watch.elapsed() < GENEROUS, "pruning waits for who reads");
        }
        assert!(0 < prune.join().expect("nobody fails"));
    });
    assert!(watch.elapsed() < GENEROUS, "somebody waits for who reads");
    reader.run("COMMIT");
    scene.check();
}

#[test]
fn two_that_prune_at_once_let_each_entry_go_once() {
    let scene = Scene::new(20);
    let other = open(&scene.address);
    let (seq, now) = (scene.bench.seq(), scene.bench.now);
    let (first, second) = std::thread::scope(|scope| {
        let first = scope.spawn(|| scene.prune());
        let second = scope.spawn(|| block_on(other.prune(now)).expect("the store answers"));
        (first.join().expect("nobody fails"), second.join().expect("nobody fails"))
    });
    assert_eq!(first + second, seq);
    scene.check();
    assert_clean(&other);
}

#[test]
fn pruning_whose_answer_is_lost_has_its_effect_once() {
    for then in [Then::LoseAnswer, Then::LoseRequest] {
        let mut proxies = vec![];
        let mut scene = Scene::through(3, |direct| {
            proxies.push(Passing::start(direct));
            proxies[0].address(direct)
        });
        let seq = scene.bench.seq();
        proxies[0].at("UPDATE pen SET first_seq", then);
        let error = block_on(scene.bench.store.prune(scene.bench.now)).expect_err("nobody answers");
        assert!(is_unavailable(&error), "{error}");
        assert!(proxies[0].is_done(), "nothing went wrong");
        let left = scene.prune();
        assert_eq!(left, if then == Then::LoseRequest { seq } else { left });
        assert_eq!(scene.first_seq(), seq + 1);
        scene.bench.due_run(json!({}));
        scene.check();
    }
}

#[test]
fn who_only_reads_prunes_nothing_that_the_snapshot_does_not_have() {
    let scene = Scene::new(1);
    scene.session.run("UPDATE snapshot SET seq = 0; TRUNCATE runs, schedules, progress, sums, schedule_sums");
    let reader = punctual_store::postgres::PostgresStore::open_to_read(&scene.address).expect("it opens");
    let refused = block_on(reader.prune(scene.bench.now)).expect_err("it writes no snapshot");
    assert!(matches!(refused, StoreError::Unavailable { .. }), "{refused}");
    assert_eq!(scene.first_seq(), 1);
}

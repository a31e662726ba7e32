//! A day of the journal is a partition: retention drops whole ones, and waits for nobody.

use std::time::Duration;

use jiff::Timestamp;
use punctual_core::NodeId;
use punctual_core::run::RunEvent;
use punctual_store::conformance::bench::at;
use punctual_store::conformance::{Bench, block_on};
use serde_json::json;

use crate::postgres_support::patience::Watch;
use crate::postgres_support::session::Session;
use crate::postgres_support::{assert_clean, fresh_schema, open};

/// Far more than the second that whoever drops a partition waits, far less than whoever reads the journal here.
const GENEROUS: Duration = Duration::from_secs(20);

/// A journal with entries on the first so many days.
struct Scene {
    bench: Bench,
    address: String,
    session: Session,
}

impl Scene {
    fn new(days: u32) -> Scene {
        let address = fresh_schema();
        let mut bench = Bench::new(Box::new(open(&address)));
        let node = bench.join("a");
        for day in 0..days {
            bench.now = day_at(day, "09:00:00");
            let run = bench.due_run(json!({}));
            let started = bench.start_one(node);
            assert_eq!(started.id, run);
            bench.finish(&started, RunEvent::Succeeded);
        }
        Scene { bench, session: Session::open(&address), address }
    }

    /// The days that have a partition, as the server knows them.
    fn days(&self) -> Vec<String> {
        self.session.ask(
            "SELECT (date '1970-01-01' + substring(relname FROM 9)::int)::text
            FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
            WHERE inhparent = 'journal'::regclass ORDER BY 1",
        )
    }

    /// What the store knows of them agrees, and no table is left that belongs to none.
    fn check(&self, days: &[&str]) {
        assert_eq!(self.days(), days);
        assert_eq!(self.session.ask("SELECT day::text FROM journal_days ORDER BY day"), days);
        let tables =
            "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema() AND tablename ~ '^journal_[0-9]'";
        assert_eq!(self.session.count(tables), days.len() as u64);
        assert_clean(&*self.bench.store);
    }

    fn prune(&self, before: Timestamp) -> u64 {
        block_on(self.bench.store.prune(self.bench.now, before)).expect("the store answers")
    }
}

/// A time on a day after the bench's first.
fn day_at(day: u32, time: &str) -> Timestamp {
    at(&format!("2026-01-{:02}T{time}Z", 5 + day))
}

#[test]
fn pruning_drops_the_partitions_of_whole_days() {
    let mut scene = Scene::new(4);
    let all = ["2026-01-05", "2026-01-06", "2026-01-07", "2026-01-08"];
    scene.check(&all);
    // There is no checkpoint yet that is as old as that: one is written, and nothing goes.
    assert_eq!(scene.prune(day_at(3, "08:00:00")), 0);
    scene.check(&all);
    scene.bench.now = day_at(4, "09:00:00");
    assert!(0 < scene.prune(day_at(3, "10:00:00")), "up to the checkpoint of the day before");
    scene.check(&["2026-01-08", "2026-01-09"]);
    // The first day that is left begins with entries that do not count any more.
    assert!(scene.session.count("SELECT count(*) FROM journal WHERE seq < (SELECT first_seq FROM pen)") > 0);
    scene.bench.now = day_at(6, "09:00:00");
    scene.prune(scene.bench.now);
    scene.check(&["2026-01-11"]);
    // A clock that goes back opens no day that is over.
    scene.bench.now = day_at(1, "09:00:00");
    scene.bench.due_run(json!({}));
    scene.check(&["2026-01-11"]);
    // And whoever starts now has everything.
    let fresh = Bench::new(Box::new(open(&scene.address)));
    assert_eq!(fresh.all_runs(), scene.bench.all_runs());
    assert_clean(&*fresh.store);
}

#[test]
fn a_node_that_was_idle_while_its_day_was_dropped_goes_on() {
    let mut scene = Scene::new(1);
    let mut idle = Bench::new(Box::new(open(&scene.address)));
    let node = NodeId(uuid::Uuid::from_u128(7));
    idle.joined(&idle.sign(node, "idle")).expect("the store answers");
    scene.bench.now = day_at(1, "09:00:00");
    scene.prune(scene.bench.now);
    scene.bench.now = day_at(2, "09:00:00");
    let run = scene.bench.due_run(json!({}));
    scene.prune(scene.bench.now);
    scene.check(&["2026-01-07"]);
    idle.now = scene.bench.now;
    assert_eq!(idle.claim_one(node).id, run);
    assert_clean(&*idle.store);
}

#[test]
fn who_reads_the_journal_for_long_is_in_nobodys_way() {
    let mut scene = Scene::new(3);
    scene.prune(day_at(0, "08:00:00"));
    let reader = Session::open(&scene.address);
    reader.run("BEGIN; SELECT count(*) FROM journal");
    scene.bench.now = day_at(3, "09:00:00");
    let other = Bench::new(Box::new(open(&scene.address)));
    let watch = Watch::start();
    std::thread::scope(|scope| {
        let prune = scope.spawn(|| scene.prune(day_at(2, "12:00:00")));
        // While somebody tries to drop a day, others read and write.
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
    // The entries do not count any more, though their days are still there; and a new day has begun.
    scene.check(&["2026-01-05", "2026-01-06", "2026-01-07", "2026-01-08"]);
    let first = scene.session.count("SELECT first_seq FROM pen");
    assert_eq!(scene.bench.entries()[0].seq, first);
    assert!(scene.session.count("SELECT min(seq) FROM journal") < first);
    reader.run("COMMIT");
    scene.prune(day_at(2, "12:00:00"));
    scene.check(&["2026-01-07", "2026-01-08"]);
}

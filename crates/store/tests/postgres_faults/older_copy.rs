//! F22: the server is replaced by an older copy of itself. What is gone is gone: nobody goes on as if it were there.

use punctual_core::NodeId;
use punctual_core::run::{Run, RunEvent};
use punctual_lab::postgres::Server;
use punctual_store::conformance::bench::ALL;
use punctual_store::conformance::{Bench, block_on};
use punctual_store::{Decision, RunWritten, StoreError};
use serde_json::json;

use crate::postgres_support::patience::wait_until;
use crate::postgres_support::{assert_clean, fresh_schema_in, open, start_server};

/// A backlog of runs, a node, and a server of which there is a copy.
struct Scene {
    server: Server,
    address: String,
    bench: Bench,
    node: NodeId,
    seq: u64,
}

impl Scene {
    fn new() -> Scene {
        let mut server = start_server(&[]);
        let address = fresh_schema_in(&server.address());
        let mut bench = Bench::new(Box::new(open(&address)));
        let node = bench.join("a");
        let schedule = bench.add(json!({}));
        let times: Vec<String> = (0..20).map(|minute| format!("08:{minute:02}:00")).collect();
        bench.plan(schedule, &times.iter().map(String::as_str).collect::<Vec<_>>());
        let run = bench.start_one(node);
        bench.finish(&run, RunEvent::Succeeded);
        bench.claim_one(node);
        let seq = bench.seq();
        server.stop("fast").unwrap();
        server.keep_copy().unwrap();
        server.start_again().unwrap();
        let scene = Scene { server, address, bench, node, seq };
        scene.wait_for_server();
        scene
    }

    /// Puts the copy in the place of everything that was written since.
    fn go_back(&mut self) {
        self.server.stop("fast").unwrap();
        self.server.put_copy_back().unwrap();
        self.server.start_again().unwrap();
    }

    /// The first who use connections to a server that is gone are told so.
    fn wait_for_server(&self) {
        wait_until("the server is back", || block_on(self.bench.store.head()).is_ok());
        wait_until("the node lives", || self.bench.renew(self.node).is_ok());
    }

    /// What a node is told that has just been started.
    fn owned_by_rows(&self) -> Vec<(punctual_core::RunId, u64)> {
        let mine = |run: &Run| run.owner() == Some(self.node);
        let mut owned: Vec<_> =
            self.bench.all_runs().iter().filter(|run| mine(run)).map(|run| (run.id, run.epoch())).collect();
        owned.sort();
        owned
    }
}

#[test]
fn a_node_goes_on_with_the_older_copy() {
    let mut scene = Scene::new();
    let late = scene.bench.join("late");
    let lost = scene.bench.claim(scene.node, 3);
    scene.bench.settle(&lost[0], Decision::Start);
    scene.bench.finish(&lost[0], RunEvent::Succeeded);
    assert_eq!(scene.bench.renew(scene.node).expect("it lives").owned.len(), 3);
    scene.go_back();
    scene.wait_for_server();
    let bench = &scene.bench;
    assert_eq!(bench.kinds_since(scene.seq), ["restored"]);
    // What the node is told is its own is what the rows say, and no more what it was.
    let renewed = bench.renew(scene.node).expect("it lived when the copy was made");
    assert_eq!(renewed.owned, scene.owned_by_rows());
    assert_eq!(renewed.owned.len(), 1);
    assert!(matches!(bench.renew(late), Err(StoreError::LeaseEnded)), "it never was there");
    // The same runs are taken once more, in the same order.
    let again = bench.claim(scene.node, 3);
    let ids = |runs: &[Run]| runs.iter().map(|run| run.id).collect::<Vec<_>>();
    assert_eq!(ids(&again), ids(&lost));
    assert_eq!(bench.kinds_since(scene.seq), ["restored", "runs_claimed"]);
    // Whoever works on one of them because of what is lost is not heard, although it is the same node and the same run.
    for (lost, again) in lost.iter().zip(&again) {
        assert!(lost.epoch() < again.epoch());
        assert_eq!(bench.settle(lost, Decision::Start), RunWritten::Stale);
        assert_ne!(bench.settle(again, Decision::Start), RunWritten::Stale);
    }
    assert_eq!(bench.claim(scene.node, ALL).len(), 15);
    assert_clean(&*bench.store);
}

#[test]
fn a_node_that_failed_to_write_meanwhile_notices_all_the_same() {
    let mut scene = Scene::new();
    let lost = scene.bench.claim_one(scene.node);
    scene.server.stop("fast").unwrap();
    let failed = block_on(scene.bench.store.settle(scene.bench.now, vec![]));
    assert!(failed.is_err(), "nobody is there to be written to: {failed:?}");
    scene.server.put_copy_back().unwrap();
    scene.server.start_again().unwrap();
    scene.wait_for_server();
    assert_eq!(scene.bench.kinds_since(scene.seq), ["restored"]);
    let again = scene.bench.claim_one(scene.node);
    assert_eq!(again.id, lost.id);
    assert_eq!(scene.bench.settle(&lost, Decision::Start), RunWritten::Stale);
    assert_clean(&*scene.bench.store);
}

#[test]
fn of_two_nodes_that_notice_only_the_first_takes_work_away() {
    let mut scene = Scene::new();
    let mut other = Bench::new(Box::new(open(&scene.address)));
    scene.bench.claim_one(scene.node);
    let unaware = other.renew(scene.node).expect("it lives");
    assert_eq!(unaware.owned.len(), 2, "it has seen what will be lost");
    scene.go_back();
    scene.wait_for_server();
    let again = scene.bench.claim_one(scene.node);
    wait_until("the other one has noticed", || other.renew(scene.node).is_ok_and(|renewed| renewed.owned.len() == 2));
    other.now = scene.bench.now;
    other.claim_one(scene.node);
    assert_eq!(scene.bench.kinds_since(scene.seq), ["restored", "runs_claimed", "runs_claimed"]);
    assert_ne!(scene.bench.settle(&again, Decision::Start), RunWritten::Stale);
    assert_clean(&*other.store);
}

#[test]
fn a_node_notices_another_journal_although_it_is_as_long() {
    let mut scene = Scene::new();
    let lost: Vec<_> = scene.bench.claim(scene.node, 5).iter().map(|run| run.id).collect();
    let seq = scene.bench.seq();
    scene.go_back();
    // Another node is faster, and writes as much as there had been, about something else.
    let other = Bench::new(Box::new(open(&scene.address)));
    let node = NodeId(uuid::Uuid::from_u128(9));
    other.joined(&other.sign(node, "other")).expect("a node can join");
    let day = block_on(other.store.begin_day(other.now, "UTC", jiff::civil::date(2026, 1, 5)));
    assert!(day.expect("the store answers"));
    assert!(seq < other.seq(), "the journal is longer than it was");
    scene.wait_for_server();
    let renewed = scene.bench.renew(scene.node).expect("it lived when the copy was made");
    assert_eq!(renewed.owned, scene.owned_by_rows());
    assert_eq!(renewed.owned.len(), 1);
    let again: Vec<_> = scene.bench.claim(scene.node, 5).iter().map(|run| run.id).collect();
    assert_eq!(again, lost);
    assert_eq!(other.claim(node, ALL).len(), 13, "and nobody has a run of another");
    assert_clean(&*scene.bench.store);
    assert_clean(&*other.store);
}

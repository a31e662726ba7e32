//! F18: the server crashes again and again while nodes ask, claim, start, finish and renew. What was acknowledged stays,
//! nothing happens twice, and no loop ends.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use punctual_core::run::{RunEvent, RunState};
use punctual_core::{NodeId, RunId};
use punctual_store::conformance::bench::{ALL, LEASE, agents, at};
use punctual_store::conformance::block_on;
use punctual_store::postgres::PostgresStore;
use punctual_store::{
    About, AttemptReport, ClaimRequest, Claims, Decision, Journal, Nodes, Result, RunWritten, Runs, Settlement, Sign,
};
use uuid::Uuid;

use crate::postgres_support::dice::Dice;
use crate::postgres_support::patience::{Watch, rest_for, wait_until};
use crate::postgres_support::runs::request;
use crate::postgres_support::told::Told;
use crate::postgres_support::{assert_clean, fresh_schema_in, in_words, is_unavailable, open, rounds, start_server};

/// How many runs may wait to be done.
const BACKLOG_MAX: u64 = 100;

/// Nodes on two handles, and what they were told.
struct World {
    stores: [PostgresStore; 2],
    is_over: AtomicBool,
    asked: Mutex<BTreeSet<RunId>>,
    claimed: Mutex<Vec<(RunId, NodeId)>>,
    finished: Mutex<BTreeSet<RunId>>,
    /// How often each loop has got through.
    turns: [AtomicU64; 9],
}

/// Asks again while the store says: later. The answer, and whether the first one may have been lost.
fn again<T>(call: impl Fn() -> Result<T>) -> (T, bool) {
    let (watch, mut is_again) = (Watch::start(), false);
    loop {
        match call() {
            Ok(answer) => return (answer, is_again),
            Err(error) => assert!(is_unavailable(&error), "{}", in_words(&error)),
        }
        assert!(watch.has_patience(), "the store does not come back");
        is_again = true;
        rest_for(Duration::from_millis(20));
    }
}

impl World {
    fn store(&self, node: NodeId) -> &PostgresStore {
        &self.stores[node.0.as_u128() as usize % 2]
    }

    fn sign(&self, node: NodeId) -> Sign {
        let (now, name, about) = (at("09:00:00"), format!("node {node}"), About::default());
        Sign { node, name, now, lease: LEASE, agents: agents(), about }
    }

    /// Somebody asks for runs, while there is work for less than a moment.
    fn ask(&self, turns: &AtomicU64) {
        let mut number = 0;
        while !self.is_over.load(Ordering::Relaxed) {
            let finished = self.finished.lock().expect("nobody fails with it").len() as u64;
            if number - finished > BACKLOG_MAX {
                rest_for(Duration::from_millis(1));
                continue;
            }
            number += 1;
            let run = request(number.into());
            let (is_new, is_again) = again(|| block_on(self.stores[0].ask(at("09:00:00"), run.clone(), None)));
            assert!(is_new || is_again, "a run was there before it was asked for");
            self.asked.lock().expect("nobody fails with it").insert(run.id);
            turns.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A node claims, starts and finishes, until there is nothing more to do.
    fn work(&self, node: NodeId, turns: &AtomicU64) {
        let (store, now) = (self.store(node), at("09:00:00"));
        let request = ClaimRequest { node, now, limit: 3, agents: agents(), limits: Default::default() };
        loop {
            let was_over = self.is_over.load(Ordering::Relaxed);
            let (claimed, _) = again(|| block_on(store.claim(&request)));
            // Also what a claim gave whose answer was lost: a node learns of it when it renews its lease.
            let (renewal, _) = again(|| block_on(store.renew(&self.sign(node))));
            for run in claimed.runs.iter().map(|claimed| &claimed.run) {
                assert!(renewal.owned.contains(&(run.id, run.epoch())), "a claim is gone");
                self.claimed.lock().expect("nobody fails with it").push((run.id, node));
            }
            if renewal.owned.is_empty() && was_over {
                return;
            }
            self.finish(store, &renewal.owned);
            turns.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn finish(&self, store: &PostgresStore, owned: &[(RunId, u64)]) {
        let now = at("09:00:00");
        let start = |&(run, epoch): &(RunId, u64)| Settlement { run, epoch, decision: Decision::Start };
        let (started, is_again) = again(|| block_on(store.settle(now, owned.iter().map(start).collect())));
        let has_begun = |written: &RunWritten| matches!(written, RunWritten::Done(RunState::Running { .. }));
        // The second time, what was started the first time is stale.
        assert!(started.iter().all(|written| has_begun(written) || is_again), "{started:?}");
        let end = |&(run, epoch): &(RunId, u64)| AttemptReport {
            run,
            epoch,
            event: RunEvent::Succeeded,
            report: Default::default(),
        };
        let reports: Vec<AttemptReport> = owned.iter().map(end).collect();
        let (ended, _) = again(|| block_on(store.finish(now, reports.clone())));
        let is_over = |written: &RunWritten| matches!(written, RunWritten::Done(RunState::Finished { .. }));
        assert!(ended.iter().all(is_over), "the same end is reported as often as it takes: {ended:?}");
        self.finished.lock().expect("nobody fails with it").extend(owned.iter().map(|(run, _)| *run));
    }

    /// A node renews its lease.
    fn renew(&self, node: NodeId, turns: &AtomicU64) {
        while !self.is_over.load(Ordering::Relaxed) {
            again(|| block_on(self.store(node).renew(&self.sign(node))));
            turns.fetch_add(1, Ordering::Relaxed);
            rest_for(Duration::from_millis(5));
        }
    }

    /// Waits until every loop has got through a few times more.
    fn wait_until_all_go_on(&self) {
        let turns = || self.turns.each_ref().map(|turns| turns.load(Ordering::Relaxed));
        let before = turns();
        wait_until("all loops go on", || turns().iter().zip(before).all(|(now, before)| before + 3 <= *now));
    }
}

#[test]
fn a_server_that_crashes_loses_nothing_and_ends_no_loop() {
    let mut server = start_server(&[]);
    let address = fresh_schema_in(&server.address());
    let stores = [open(&address), open(&address)];
    assert_eq!(stores[0].warnings(), [""; 0], "the server keeps what it acknowledges");
    let world = World {
        stores,
        is_over: AtomicBool::new(false),
        asked: Mutex::default(),
        claimed: Mutex::default(),
        finished: Mutex::default(),
        turns: Default::default(),
    };
    let nodes: Vec<NodeId> = (1..=4).map(|number| NodeId(Uuid::from_u128(number))).collect();
    for node in &nodes {
        block_on(world.store(*node).join(&world.sign(*node))).expect("nothing is wrong yet");
    }
    let mut dice = Dice::new(1);
    std::thread::scope(|scope| {
        let world = &world;
        let stop = StopAtEnd(&world.is_over);
        scope.spawn(|| world.ask(&world.turns[0]));
        for (index, node) in nodes.iter().enumerate() {
            scope.spawn(move || world.work(*node, &world.turns[1 + 2 * index]));
            scope.spawn(move || world.renew(*node, &world.turns[2 + 2 * index]));
        }
        for _ in 0..rounds(3) {
            world.wait_until_all_go_on();
            rest_for(Duration::from_millis(dice.below(100)));
            server.crash().unwrap();
            server.start_again().unwrap();
        }
        world.wait_until_all_go_on();
        drop(stop);
    });
    let fresh = open(&address);
    let entries = block_on(fresh.entries(0, ALL)).expect("the store answers");
    let told = Told::by(&entries, |_, _| {});
    let asked = world.asked.into_inner().expect("nobody fails with it");
    assert!(told.asked.keys().eq(&asked) && told.asked.values().all(|count| *count == 1), "asked for once");
    told.assert_once(&asked);
    for (run, node) in world.claimed.into_inner().expect("nobody fails with it") {
        assert_eq!(told.claimed[&run], [node], "an acknowledged claim");
    }
    assert_eq!(world.finished.into_inner().expect("nobody fails with it"), asked);
    assert!(told.world.runs.is_empty(), "what is done is over");
    world.stores.iter().chain([&fresh]).for_each(|store| assert_clean(store));
}

/// Says that it is over when the test ends, however it does.
struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

//! F21: the pen is in somebody else's hand, and whoever has it goes away or is sent away.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use punctual_core::RunId;
use punctual_core::run::Run;
use punctual_store::conformance::bench::at;
use punctual_store::conformance::{Bench, block_on};
use punctual_store::postgres::PostgresStore;
use punctual_store::{Journal, Nodes, RunFilter, Runs};

use crate::postgres_support::dice::Dice;
use crate::postgres_support::patience::{rest_for, wait_until};
use crate::postgres_support::proxy::passing::{Passing, Then};
use crate::postgres_support::runs::request;
use crate::postgres_support::session::Session;
use crate::postgres_support::{assert_clean, fresh_schema, in_words, is_unavailable, open, rounds};

/// A schema with a store in it, and what can be said about its sessions.
struct Scene {
    address: String,
    name: String,
    store: PostgresStore,
    operator: Session,
}

impl Scene {
    fn new(name: &str) -> Scene {
        let (plain, name) = (fresh_schema(), format!("{name}_{}", std::process::id()));
        let address = format!("{plain}&application_name={name}");
        Scene { store: open(&address), operator: Session::open(&plain), address, name }
    }

    /// Somebody takes the pen, and keeps it.
    fn take_pen(&self) -> Session {
        let holder = Session::open(&self.address.replace(&self.name, "somebody"));
        holder.run("BEGIN; SELECT * FROM pen FOR UPDATE");
        holder
    }

    /// The sessions of the store that wait for a lock.
    fn waiting(&self) -> Vec<String> {
        let sql = "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name =";
        self.operator.ask(&format!("{sql} '{}'", self.name))
    }

    fn wait_until_waiting(&self) {
        wait_until("a write waits for the pen", || !self.waiting().is_empty());
    }

    fn ask(&self, run: Run) -> bool {
        block_on(self.store.ask(at("09:00:00"), run, None)).unwrap_or_else(|error| panic!("{}", in_words(&error)))
    }

    /// Asks again while the store says: later. It is new, unless an answer before may have been lost.
    fn ask_until_it_is_there(&self, run: Run) {
        let mut may_be_there = false;
        loop {
            match block_on(self.store.ask(at("09:00:00"), run.clone(), None)) {
                Ok(is_new) => return assert!(is_new || may_be_there, "{} is not new", run.id),
                Err(error) => assert!(is_unavailable(&error), "{}", in_words(&error)),
            }
            may_be_there = true;
        }
    }

    fn runs(&self) -> Vec<RunId> {
        let all = RunFilter { limit: 100_000, ..RunFilter::default() };
        block_on(self.store.runs(&all)).expect("the store answers").iter().map(|run| run.id).collect()
    }
}

#[test]
fn who_writes_waits_for_the_pen() {
    let scene = &Scene::new("waits");
    let mut bench = Bench::new(Box::new(open(&scene.address)));
    let node = bench.join("a");
    assert!(scene.ask(request(1)));
    let holder = scene.take_pen();
    std::thread::scope(|scope| {
        let writes: Vec<_> = (2..=5).map(|number| scope.spawn(move || scene.ask(request(number)))).collect();
        scene.wait_until_waiting();
        // Neither who reads nor who renews a lease has to wait for long.
        assert_eq!(scene.runs().len(), 1);
        assert!(block_on(scene.store.renew(&bench.sign(node, "a"))).is_ok());
        rest_for(Duration::from_secs(2));
        assert!(writes.iter().all(|write| !write.is_finished()));
        assert_eq!(scene.runs().len(), 1);
        holder.run("COMMIT");
        assert!(writes.into_iter().all(|write| write.join().expect("nobody fails")));
    });
    assert_eq!(scene.runs().len(), 5);
    assert_clean(&scene.store);
}

#[test]
fn who_waits_too_long_for_the_pen_is_told() {
    let scene = &Scene::new("too_long");
    assert!(scene.ask(request(1)));
    let holder = scene.take_pen();
    let error = block_on(scene.store.ask(at("09:00:00"), request(2), None)).expect_err("the pen is not free");
    assert!(is_unavailable(&error), "{}", in_words(&error));
    // Somebody else's transaction is not ours to end, however long it is idle.
    holder.run("COMMIT");
    assert!(scene.ask(request(2)), "it was not written, and is now");
    assert_clean(&scene.store);
}

#[test]
fn who_is_in_a_deadlock_with_somebody_else_tries_again() {
    let scene = &Scene::new("deadlock");
    let bench = &Bench::new(Box::new(open(&scene.address)));
    let sign = |number| bench.sign(punctual_core::NodeId(uuid::Uuid::from_u128(number)), "a");
    bench.joined(&sign(1)).expect("nothing is wrong yet");
    let somebody = Session::open(&scene.address.replace(&scene.name, "somebody"));
    somebody.run("BEGIN; SELECT * FROM nodes FOR UPDATE");
    std::thread::scope(|scope| {
        let join = scope.spawn(|| bench.joined(&sign(2)));
        scene.wait_until_waiting();
        // Either of them is sent away, and nobody knows who.
        let pen = somebody.try_run("SELECT * FROM pen FOR UPDATE");
        somebody.run("ROLLBACK");
        let joined = join.join().expect("nobody fails");
        assert!(joined.is_ok(), "{pen:?} {}", in_words(&joined.expect_err("it is none")));
    });
    assert_eq!(block_on(scene.store.nodes()).expect("the store answers").len(), 2);
    assert_clean(&scene.store);
}

#[test]
fn who_is_sent_away_comes_back() {
    let scene = &Scene::new("sent_away");
    assert!(scene.ask(request(1)));
    let holder = scene.take_pen();
    std::thread::scope(|scope| {
        let write = scope.spawn(|| scene.ask(request(2)));
        for _ in 0..3 {
            scene.wait_until_waiting();
            for session in scene.waiting() {
                scene.operator.run(&format!("SELECT pg_terminate_backend({session})"));
            }
        }
        scene.wait_until_waiting();
        holder.run("COMMIT");
        assert!(write.join().expect("nobody fails"));
    });
    assert_eq!(scene.runs().len(), 2);
    assert_clean(&scene.store);
}

#[test]
fn sessions_that_are_ended_at_any_moment_write_everything_once() {
    let scene = &Scene::new("any_moment");
    let (writers, each) = (4_u128, u128::from(rounds(3)) * 50);
    let left = AtomicU64::new(writers as u64);
    let ended = std::thread::scope(|scope| {
        for writer in 0..writers {
            let left = &left;
            scope.spawn(move || {
                let done = Countdown(left);
                (1..=each).for_each(|number| scene.ask_until_it_is_there(request(writer * 1_000_000 + number)));
                drop(done);
            });
        }
        let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE state <> 'idle' AND application_name =";
        let (sql, mut dice, mut ended) = (format!("{sql} '{}'", scene.name), Dice::new(1), 0);
        while 0 < left.load(Ordering::Relaxed) {
            ended += scene.operator.ask(&sql).len();
            rest_for(Duration::from_millis(dice.below(100)));
        }
        ended
    });
    assert!(0 < ended, "nothing was ended");
    assert_eq!(scene.runs().len() as u128, writers * each);
    assert_eq!(u128::from(block_on(scene.store.head()).expect("the store answers").seq), writers * each);
    assert_clean(&scene.store);
}

/// Counts down when its thread ends, however it does.
struct Countdown<'a>(&'a AtomicU64);

impl Drop for Countdown<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[test]
fn a_node_that_stands_still_with_the_pen_loses_it() {
    let direct = fresh_schema();
    let proxy = Passing::start(&direct);
    let (stuck, other) = (open(&proxy.address(&direct)), open(&direct));
    let ask = |store: &PostgresStore, number| block_on(store.ask(at("09:00:00"), request(number), None));
    assert!(ask(&stuck, 1).expect("nothing is wrong yet"));
    proxy.at_commit(Then::FreezeBefore);
    std::thread::scope(|scope| {
        let write = scope.spawn(|| ask(&stuck, 2));
        proxy.wait_until_done();
        // Less than it would wait if nobody took the pen away.
        assert!(ask(&other, 3).expect("the server has taken the pen from the one that does nothing with it"));
        assert!(!write.is_finished());
        proxy.thaw();
        assert!(write.join().expect("nobody fails").expect("it is tried again"));
    });
    assert_eq!(block_on(other.head()).expect("the store answers").seq, 3);
    assert_clean(&stuck);
    assert_clean(&other);
}

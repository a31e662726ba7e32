//! Connections that stand still: nothing arrives, nothing breaks. Nobody waits for ever, and none of them is used again.

use std::sync::mpsc;
use std::time::Duration;

use punctual_core::NodeId;
use punctual_store::conformance::block_on;
use punctual_store::conformance::{Bench, bench::at};
use punctual_store::postgres::PostgresStore;
use punctual_store::{Journal, Nodes, Result, Runs, Sign};

use crate::postgres_support::patience::wait_until;
use crate::postgres_support::proxy::passing::{Passing, Then};
use crate::postgres_support::runs::request;
use crate::postgres_support::session::Session;
use crate::postgres_support::{assert_clean, fresh_schema, in_words, is_unavailable, open};

/// Longer than anything may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits for an answer, but not for ever.
fn answer<T: Send + 'static>(what: &str, call: impl FnOnce() -> Result<T> + Send + 'static) -> mpsc::Receiver<Result<T>> {
    let (reply, answer) = mpsc::channel();
    std::thread::Builder::new().name(what.to_owned()).spawn(move || drop(reply.send(call()))).expect("a thread can be made");
    answer
}

fn assert_unavailable<T: std::fmt::Debug>(what: &str, answer: &mpsc::Receiver<Result<T>>) {
    let answer = answer.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("{what} waits for ever"));
    assert!(answer.as_ref().is_err_and(is_unavailable), "{what}: {answer:?}");
}

fn sign(node: NodeId) -> Sign {
    Bench::new(Box::new(punctual_store::memory::MemoryStore::new())).sign(node, "a")
}

#[test]
fn whoever_uses_a_connection_that_stands_still_is_told_and_the_next_has_another() {
    let direct = fresh_schema();
    let proxy = Passing::start(&direct);
    let store: &'static PostgresStore = Box::leak(Box::new(open(&proxy.address(&direct))));
    let node = NodeId(uuid::Uuid::from_u128(7));
    let checked = |what: &str, is_ok: bool| assert!(is_ok, "{what} does not work");
    block_on(store.join(&sign(node))).expect("nothing is wrong yet");
    block_on(store.renew(&sign(node))).expect("nothing is wrong yet");
    let before = block_on(store.head()).expect("nothing is wrong yet").seq;

    // The write gets through to the server, and everything else nowhere.
    proxy.at("COMMIT", Then::FreezeBehind);
    let write = answer("a write", || block_on(store.ask(at("09:00:00"), request(1))));
    proxy.wait_until_done();
    let session = Session::open(&direct);
    wait_until("it is committed", || session.count("SELECT count(*) FROM runs") == 1);
    proxy.freeze();
    let reads = [
        answer("a read", || block_on(store.head()).map(drop)),
        answer("a read of several things", || block_on(store.subject_of_nothing())),
    ];
    let renewal = answer("a renewal", move || block_on(store.renew(&sign(node))));
    assert_unavailable("a renewal", &renewal);
    reads.iter().for_each(|read| assert_unavailable("a read", read));
    assert_unavailable("a write", &write);

    // Who connects anew gets through; what stood still still does.
    proxy.let_in();
    let renewed = answer("a renewal", move || block_on(store.renew(&sign(node))));
    checked("renewing", renewed.recv_timeout(PATIENCE).is_ok_and(|renewed| renewed.is_ok()));
    let again = answer("a write", || block_on(store.ask(at("09:00:00"), request(1))));
    let again = again.recv_timeout(PATIENCE).expect("it does not wait for ever");
    assert!(!again.unwrap_or_else(|error| panic!("{}", in_words(&error))), "it had been written");
    let head = answer("a read", || block_on(store.head()));
    let head = head.recv_timeout(PATIENCE).expect("it does not wait for ever").expect("reading works");
    assert_eq!(head.seq, before + 1, "it was written once");

    // And when it goes on, it is too late.
    proxy.thaw();
    assert!(block_on(store.ask(at("09:00:00"), request(2))).expect("writing works"));
    assert_clean(store);
}

/// A read that takes several statements.
trait SeveralStatements {
    async fn subject_of_nothing(&self) -> Result<()>;
}

impl SeveralStatements for PostgresStore {
    async fn subject_of_nothing(&self) -> Result<()> {
        use punctual_store::Plan;
        let nobody = punctual_core::ScheduleId(uuid::Uuid::nil());
        self.subject(nobody, at("09:00:00")).await.map(drop)
    }
}

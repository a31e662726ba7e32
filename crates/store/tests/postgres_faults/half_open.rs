//! Connections that stand still: nothing arrives, nothing breaks. Nobody waits for ever, and none of them is used again.

use std::sync::mpsc;
use std::time::Duration;

use punctual_core::NodeId;
use punctual_store::conformance::block_on;
use punctual_store::conformance::{Bench, bench::at};
use punctual_store::memory::MemoryStore;
use punctual_store::postgres::PostgresStore;
use punctual_store::{Journal, Nodes, Result, Runs, Sign};

use crate::postgres_support::patience::{rest_for, wait_until};
use crate::postgres_support::proxy::passing::{Passing, Then};
use crate::postgres_support::runs::request;
use crate::postgres_support::session::Session;
use crate::postgres_support::{assert_clean, fresh_schema, is_unavailable, open};

/// Longer than anything may take.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn whoever_uses_a_connection_that_stands_still_is_told_and_the_next_has_another() {
    let direct = fresh_schema();
    let proxy = Passing::start(&direct);
    let store: &'static PostgresStore = Box::leak(Box::new(open(&proxy.address(&direct))));
    let node = NodeId(uuid::Uuid::from_u128(7));
    block_on(store.join(&sign(node))).expect("nothing is wrong yet");
    block_on(store.renew(&sign(node))).expect("nothing is wrong yet");
    let before = block_on(store.head()).expect("nothing is wrong yet").seq;

    // A write gets through to the server, a read does not; and then nothing does.
    proxy.at_commit(Then::FreezeBehind);
    let write = ask("a write", || block_on(store.ask(at("09:00:00"), request(1), None)));
    proxy.wait_until_done();
    let session = Session::open(&direct);
    wait_until("it is committed", || session.count("SELECT max(last) FROM journal") == before + 1);
    proxy.at("FROM nodes ORDER BY id", Then::FreezeBefore);
    let read = ask("a read", || block_on(store.nodes()));
    proxy.wait_until_done();
    proxy.freeze();
    let late = ask("a read on a new connection", || block_on(store.head()));
    let renewal = ask("a renewal", move || block_on(store.renew(&sign(node))));
    assert_unavailable("a renewal", &renewal);
    assert_unavailable("a read on a new connection", &late);
    assert_unavailable("a write", &write);
    assert_unavailable("a read", &read);

    // Who connects anew gets through; what stood still still does.
    proxy.let_in();
    let renewal = ask("a renewal", move || block_on(store.renew(&sign(node))));
    assert_eq!(answer("a renewal", &renewal).expect("renewing works").owned, []);
    let write = ask("a write", || block_on(store.ask(at("09:00:00"), request(1), None)));
    assert!(!answer("a write", &write).expect("writing works"), "it had been written");
    let read = ask("a read", || block_on(store.head()));
    assert_eq!(answer("a read", &read).expect("reading works").seq, before + 1, "it was written once");

    // And when it goes on, it is too late.
    proxy.thaw();
    assert!(block_on(store.ask(at("09:00:00"), request(2), None)).expect("writing works"));
    assert_clean(store);
}

#[test]
fn a_write_outlasts_a_server_that_lets_nobody_in_for_a_moment() {
    let direct = fresh_schema();
    let proxy = Passing::start(&direct);
    let store = open(&proxy.address(&direct));
    let node = NodeId(uuid::Uuid::from_u128(7));
    block_on(store.join(&sign(node))).expect("nothing is wrong yet");
    block_on(store.renew(&sign(node))).expect("nothing is wrong yet");
    proxy.refuse();
    proxy.cut();
    std::thread::scope(|scope| {
        let write = scope.spawn(|| block_on(store.ask(at("09:00:00"), request(1), None)));
        assert!(block_on(store.head()).is_err_and(|error| is_unavailable(&error)));
        assert!(block_on(store.renew(&sign(node))).is_err_and(|error| is_unavailable(&error)));
        rest_for(Duration::from_secs(1));
        assert!(!write.is_finished());
        proxy.let_in();
        assert!(write.join().expect("nobody fails").expect("it is tried again"));
    });
    block_on(store.renew(&sign(node))).expect("the next renewal gets through");
    assert_clean(&store);
}

/// Calls on a thread of its own.
fn ask<T: Send + 'static>(what: &str, call: impl FnOnce() -> Result<T> + Send + 'static) -> mpsc::Receiver<Result<T>> {
    let (reply, answer) = mpsc::channel();
    let caller = std::thread::Builder::new().name(what.to_owned());
    caller.spawn(move || drop(reply.send(call()))).expect("a thread can be made");
    answer
}

/// Waits for an answer, but not for ever.
fn answer<T>(what: &str, answer: &mpsc::Receiver<Result<T>>) -> Result<T> {
    answer.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("{what} waits for ever"))
}

fn assert_unavailable<T: std::fmt::Debug>(what: &str, asked: &mpsc::Receiver<Result<T>>) {
    let answer = answer(what, asked);
    assert!(answer.as_ref().is_err_and(is_unavailable), "{what}: {answer:?}");
}

fn sign(node: NodeId) -> Sign {
    Bench::new(Box::new(MemoryStore::new())).sign(node, "a")
}

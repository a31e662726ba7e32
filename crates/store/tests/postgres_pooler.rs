//! PostgreSQL behind a pooler that gives each transaction another session: nothing may depend on one.

mod postgres_support;

use std::collections::BTreeSet;

use postgres_support::proxy::pooler::Pooler;
use postgres_support::session::Session;
use postgres_support::{assert_clean, fresh_schema, open};
use punctual_core::run::RunEvent;
use punctual_store::conformance::{Bench, block_on};
use punctual_store::postgres::PostgresStore;
use serde_json::json;

/// A store in a fresh schema, behind a pooler of its own. The pooler lives as long as the test: its door stays open.
fn pooled_store() -> PostgresStore {
    let direct = fresh_schema();
    let pooler = Box::leak(Box::new(Pooler::start(&direct)));
    open(&pooler.address(&direct))
}

punctual_store::conformance::suite!(pooled_store());

#[test]
fn the_pooler_changes_sessions_between_transactions_and_not_within_one() {
    let direct = fresh_schema();
    let pooler = Pooler::start(&direct);
    let client = Session::open(&pooler.address(&direct));
    let session = || client.count("SELECT pg_backend_pid()");
    let mut last = session();
    for _ in 0..10 {
        let next = session();
        assert_ne!(last, next, "two transactions in a row have one session");
        last = next;
    }
    client.run("BEGIN");
    let within: BTreeSet<u64> = (0..5).map(|_| session()).collect();
    client.run("COMMIT");
    assert_eq!(within.len(), 1, "a transaction has one session");
    assert_eq!(client.ask("SHOW search_path"), [direct.rsplit_once("%3D").expect("it has one").1]);
}

#[test]
fn nothing_is_left_in_a_session() {
    let direct = format!("{}&application_name=punctual", fresh_schema());
    let pooler = Pooler::start(&direct);
    let mut bench = Bench::new(Box::new(open(&pooler.address(&direct))));
    let node = bench.join("a");
    for _ in 0..10 {
        bench.due_run(json!({}));
        let run = bench.start_one(node);
        bench.finish(&run, RunEvent::Succeeded);
        bench.pass(60);
    }
    block_on(bench.store.prune(bench.now)).expect("the store answers");
    assert_clean(&*bench.store);
    // With the same words at the door, this client is given the sessions that the store has had.
    let client = Session::open(&pooler.address(&direct));
    let mut sessions = BTreeSet::new();
    for _ in 0..20 {
        let left = client.ask(
            "SELECT concat_ws(' ', pg_backend_pid(),
                (SELECT count(*) FROM pg_prepared_statements),
                (SELECT count(*) FROM pg_listening_channels() AS channel WHERE channel <> 'punctual'),
                (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()),
                (SELECT count(*) FROM pg_settings WHERE source = 'session'),
                (SELECT count(*) FROM pg_cursors))",
        );
        let (session, left) = left[0].split_once(' ').expect("there are several numbers");
        // The channel of the hints stays in whichever session it was asked for in, and nobody hears it there.
        assert_eq!(left, "0 0 0 0 0", "statements, channels, locks, settings and cursors");
        sessions.insert(session.to_owned());
    }
    assert!(4 <= sessions.len(), "the store and this client share their sessions");
}

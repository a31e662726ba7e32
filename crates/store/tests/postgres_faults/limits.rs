//! F26: a server that has no place for another session, and one that lets nobody write.

use punctual_store::conformance::{Bench, block_on};
use punctual_store::postgres::PostgresStore;
use serde_json::json;

use crate::postgres_support::patience::wait_until;
use crate::postgres_support::session::Session;
use crate::postgres_support::{assert_clean, fresh_schema_in, in_words, is_unavailable, open, start_server};

/// Takes every place that a server has.
fn fill(address: &str) -> Vec<Session> {
    let mut sessions = vec![];
    while let Ok(session) = Session::try_open(address) {
        sessions.push(session);
    }
    sessions
}

#[test]
fn a_server_without_a_place_is_waited_for_and_leases_are_renewed_all_the_while() {
    let server = start_server(&["max_connections=20"]);
    let address = format!("{}&application_name=crowded", fresh_schema_in(&server.address()));
    let mut bench = Bench::new(Box::new(open(&address)));
    let node = bench.join("a");
    let run = bench.due_run(json!({}));
    bench.renew(node).expect("nothing is wrong yet");

    // Somebody ends the store's sessions, all but the one that renews leases, and takes their places.
    let operator = Session::open(&server.address());
    let others =
        "FROM pg_stat_activity WHERE application_name = 'crowded' AND query NOT LIKE '%FROM nodes WHERE id <>%'";
    operator.ask(&format!("SELECT pg_terminate_backend(pid) {others}"));
    wait_until("they are gone", || operator.count(&format!("SELECT count(*) {others}")) == 0);
    let sessions = fill(&server.address());
    assert!(10 < sessions.len(), "there was no place before");
    std::thread::scope(|scope| {
        let cancel = scope.spawn(|| block_on(bench.store.cancel(bench.now, run, None)));
        let mut renewals = 0;
        while !cancel.is_finished() {
            bench.renew(node).unwrap_or_else(|error| panic!("{}", in_words(&error)));
            renewals += 1;
        }
        assert!(1 < renewals);
        let error = cancel.join().expect("nobody fails").expect_err("there is no connection to write with");
        assert!(is_unavailable(&error), "{}", in_words(&error));
    });
    let error = block_on(bench.store.run(run)).expect_err("there is no connection to read with");
    assert!(is_unavailable(&error), "{}", in_words(&error));
    let error = PostgresStore::open(&address).expect_err("there is no place for another node");
    assert!(is_unavailable(&error), "{}", in_words(&error));

    // It gets better while somebody waits.
    std::thread::scope(|scope| {
        let claim = scope.spawn(|| bench.claim_one(node));
        drop(sessions);
        assert_eq!(claim.join().expect("nobody fails").id, run);
    });
    assert_clean(&*bench.store);
}

#[test]
fn a_server_that_lets_nobody_write_is_read_from_and_waited_for() {
    let server = start_server(&[]);
    let mut bench = Bench::new(Box::new(open(&fresh_schema_in(&server.address()))));
    let node = bench.join("a");
    let run = bench.due_run(json!({}));
    let seq = bench.seq();
    let operator = Session::open(&server.address());
    let set = |change: &str| {
        operator.run(&format!("ALTER SYSTEM {change}"));
        operator.run("SELECT pg_reload_conf()");
    };
    let only_reads = |is_so: &str| {
        wait_until("the server has heard it", || operator.ask("SHOW default_transaction_read_only") == [is_so]);
    };
    set("SET default_transaction_read_only = on");
    only_reads("on");
    let error = block_on(bench.store.cancel(bench.now, run, None)).expect_err("nobody may write");
    assert!(is_unavailable(&error), "{}", in_words(&error));
    let error = bench.renew(node).expect_err("nobody may write");
    assert!(is_unavailable(&error), "{}", in_words(&error));
    assert_eq!((bench.state(run), bench.seq()), ("planned", seq), "reading works");
    assert_clean(&*bench.store);
    set("RESET default_transaction_read_only");
    only_reads("off");
    wait_until("every session has heard it", || bench.renew(node).is_ok());
    assert_eq!(bench.claim_one(node).id, run);
    assert_clean(&*bench.store);
}

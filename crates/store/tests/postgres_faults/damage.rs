//! Rows that somebody else has changed: what cannot be is refused by whoever opens it, and found by who verifies.

use punctual_core::run::RunEvent;
use punctual_store::conformance::{Bench, block_on};
use punctual_store::{Journal, Runs, StoreError};
use serde_json::json;

use crate::postgres_support::patience::wait_until;
use crate::postgres_support::session::Session;
use crate::postgres_support::{assert_clean, fresh_schema, in_words, open};

/// What no snapshot can be.
const SNAPSHOT: [&str; 13] = [
    "UPDATE runs SET body = 'nothing'",
    "UPDATE runs SET body = '{}'",
    r#"UPDATE runs SET body = replace(body, '"planned"', '"asleep"')"#,
    r#"UPDATE runs SET body = replace(body, '"has_started":true', '"has_started":false')"#,
    r#"UPDATE runs SET body = regexp_replace(body, '"started_at":"[^"]*",', '') WHERE state = 'running'"#,
    r#"UPDATE runs SET body = replace(body, '"attempt":1', '"attempt":0') WHERE state = 'running'"#,
    r#"UPDATE runs SET body = replace(body, '"attempt":', '"attempt":-')"#,
    r#"UPDATE runs SET body = replace(body, '"version":1', '"version":7')"#,
    "UPDATE runs SET terms = '{}'",
    "UPDATE schedules SET definition = '{}'",
    "UPDATE progress SET progress = '{}'",
    "DELETE FROM progress",
    "UPDATE snapshot SET seq = seq + 1",
];

/// What a snapshot, a journal and a history can be, and are not.
const OTHER: [(&str, &str); 9] = [
    ("DELETE FROM runs WHERE state = 'planned'", "is in the journal and not in the snapshot"),
    (r#"UPDATE runs SET body = replace(body, '"is_parked":false', '"is_parked":true')"#, "differs"),
    ("UPDATE rest SET body = replace(body, '\"epoch_floor\":0', '\"epoch_floor\":1')", "the epoch floor"),
    ("UPDATE journal SET change = replace(change, 'succeeded', 'cancelled')", "are not what their checksum says"),
    (
        "UPDATE journal SET detail = replace(detail, '\"attempts\":1', '\"attempts\":2')",
        "are not what their checksum says",
    ),
    ("DELETE FROM journal WHERE first = 2", "follows entry 1"),
    ("UPDATE history SET agent = 'somebody'", "is not in history as the journal has it"),
    ("DELETE FROM history", "is not in history as the journal has it"),
    ("UPDATE history SET seq = seq + 1000", "entries that the journal does not have"),
];

/// A store with a run that is done, one at work and one that waits, and a snapshot that has them.
fn scene() -> (Bench, String, Session) {
    let address = fresh_schema();
    let mut bench = Bench::new(Box::new(open(&address)));
    let node = bench.join("a");
    bench.due_run(json!({}));
    let done = bench.start_one(node);
    bench.finish(&done, RunEvent::Succeeded);
    bench.due_run(json!({}));
    bench.start_one(node);
    bench.due_run(json!({}));
    let session = Session::open(&address);
    wait_until("the snapshot has everything", || session.count("SELECT seq FROM snapshot") == bench.seq());
    assert_eq!(session.ask("SELECT state FROM runs ORDER BY state"), ["planned", "running"]);
    for table in ["runs", "schedules", "progress", "snapshot", "rest", "journal", "history"] {
        session.run(&format!("CREATE TABLE {table}_as_it_was AS SELECT * FROM {table}"));
    }
    (bench, address, session)
}

/// Puts everything back.
fn repair(session: &Session) {
    for table in ["runs", "schedules", "progress", "snapshot", "rest", "journal", "history"] {
        session.run(&format!("TRUNCATE {table}; INSERT INTO {table} SELECT * FROM {table}_as_it_was"));
    }
}

#[test]
fn a_snapshot_that_contradicts_itself_is_refused() {
    let (bench, address, session) = scene();
    let run = bench.all_runs()[0].id;
    for change in SNAPSHOT {
        session.run(change);
        let store = open(&address);
        let refused = [
            block_on(store.run(run)).map(drop).expect_err(change),
            block_on(store.cancel(bench.now, run, None)).map(drop).expect_err(change),
        ];
        for error in refused {
            assert!(matches!(error, StoreError::Damaged { .. }), "{change}: {}", in_words(&error));
        }
        let found = block_on(store.verify());
        assert!(found.as_ref().map_or_else(StoreError::is_fatal, |found| !found.is_empty()), "{change}: {found:?}");
        repair(&session);
    }
    assert_clean(&open(&address));
}

#[test]
fn what_is_not_what_the_journal_comes_to_is_found() {
    let (_, address, session) = scene();
    for (change, said) in OTHER {
        session.run(change);
        let found = block_on(open(&address).verify()).unwrap_or_else(|error| panic!("{change}: {}", in_words(&error)));
        assert!(found.iter().any(|found| found.contains(said)), "{change}: {found:?}");
        repair(&session);
    }
    assert_clean(&open(&address));
}

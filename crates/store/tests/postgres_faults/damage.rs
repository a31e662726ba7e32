//! Rows that somebody else has changed: what no run can be is refused by whoever reads it, and nothing is written over what was
//! not read.

use punctual_store::conformance::{Bench, block_on};
use punctual_store::{Decision, Journal, RunWritten, Runs, StoreError};
use serde_json::json;

use crate::postgres_support::session::Session;
use crate::postgres_support::{assert_clean, fresh_schema, in_words, open};

/// Columns of a run that is planned, and of one that is running, each with what does not go with the others.
const PLANNED: [&str; 13] = [
    "state = 'asleep'",
    "state = 'claimed'",
    "state = 'succeeded'",
    "ready_at = NULL",
    "owner = id",
    "wait_for = 'approval'",
    "wait_until = due_at",
    "reason = 'late'",
    "started_at = due_at",
    "ended_at = due_at",
    "attempt = -1",
    "epoch = -1",
    "version = -1",
];
const RUNNING: [&str; 10] = [
    "state = 'planned'",
    "state = 'waiting', owner = NULL, wait_for = 'sleep', wait_until = due_at, started_at = NULL",
    "ready_at = due_at",
    "resumes = true",
    "owner = NULL",
    "started_at = NULL",
    "has_started = false",
    "attempt = 0",
    "losses = -1",
    "state = 'failed', owner = NULL, started_at = NULL, ended_at = due_at",
];

#[test]
fn a_row_that_contradicts_itself_is_refused() {
    let address = fresh_schema();
    let mut bench = Bench::new(Box::new(open(&address)));
    let node = bench.join("a");
    let running = bench.due_run(json!({}));
    bench.start_one(node);
    let planned = bench.due_run(json!({}));
    let session = Session::open(&address);
    session.run("CREATE TABLE as_it_was AS SELECT * FROM runs");
    let cases = PLANNED.iter().map(|change| (planned, change)).chain(RUNNING.iter().map(|change| (running, change)));
    for (run, change) in cases {
        session.run(&format!("UPDATE runs SET {change} WHERE id = '{run}'"));
        let store = open(&address);
        let refused = [
            block_on(store.run(run)).map(drop).expect_err(change),
            block_on(store.verify()).map(drop).expect_err(change),
            block_on(store.cancel(bench.now, run, None)).map(drop).expect_err(change),
        ];
        for error in refused {
            assert!(matches!(error, StoreError::Damaged { .. }), "{change}: {}", in_words(&error));
        }
        session.run("TRUNCATE runs; INSERT INTO runs SELECT * FROM as_it_was");
    }
    assert_clean(&open(&address));
}

#[test]
fn a_step_is_written_over_nothing_but_the_row_that_was_read() {
    for change in ["epoch = epoch + 1", "state = 'planned', owner = NULL, ready_at = due_at"] {
        let address = fresh_schema();
        let mut bench = Bench::new(Box::new(open(&address)));
        let node = bench.join("a");
        bench.due_run(json!({}));
        let claimed = bench.claim_one(node);
        let session = Session::open(&address);
        session.run(&format!("UPDATE runs SET {change}"));
        let row = || session.ask("SELECT runs::text FROM runs");
        let before = row();
        // The step fails, everything is read again, and it turns out to be another's.
        let written = bench.settle(&claimed, Decision::Start);
        assert_eq!(written, RunWritten::Stale, "{change}");
        assert_eq!(row(), before, "{change}");
    }
}

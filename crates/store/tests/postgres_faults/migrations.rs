//! Migrations: many nodes that start at once, and schemas that are not what this binary knows.

use std::sync::Barrier;

use punctual_store::conformance::{Bench, block_on};
use punctual_store::postgres::PostgresStore;
use punctual_store::{Journal, StoreError};
use serde_json::json;

use crate::postgres_support::session::Session;
use crate::postgres_support::{assert_clean, fresh_schema, in_words, open, rounds};

#[test]
fn nodes_that_start_at_once_make_the_schema_once() {
    const NODES: usize = 6;
    let usual = ["", "%20-c%20default_transaction_isolation%3Dserializable"];
    for isolation in usual.into_iter().cycle().take(2 * rounds(2) as usize) {
        let address = format!("{}{isolation}", fresh_schema());
        let barrier = Barrier::new(NODES);
        let stores: Vec<PostgresStore> = std::thread::scope(|scope| {
            let open = || {
                barrier.wait();
                PostgresStore::open(&address).unwrap_or_else(|error| panic!("{}", in_words(&error)))
            };
            let nodes: Vec<_> = (0..NODES).map(|_| scope.spawn(open)).collect();
            nodes.into_iter().map(|node| node.join().expect("nobody fails")).collect()
        });
        let session = Session::open(&address);
        let made = session.ask("SELECT number || ' ' || name FROM migrations ORDER BY number");
        assert_eq!(made, ["1 0001_first", "2 0002_steps"]);
        assert_eq!(session.count("SELECT count(*) FROM pen"), 1);
        for (number, store) in stores.into_iter().enumerate() {
            assert_eq!(block_on(store.head()).expect("the store answers").seq, number as u64);
            let bench = Bench::new(Box::new(store));
            let node = punctual_core::NodeId(uuid::Uuid::from_u128(number as u128 + 1));
            bench.joined(&bench.sign(node, "a")).expect("each of them works");
            assert_clean(&*bench.store);
        }
    }
}

/// A schema with something in it, which somebody changes behind the store's back.
struct Changed {
    address: String,
    session: Session,
}

impl Changed {
    fn new(sql: &str) -> Changed {
        let address = fresh_schema();
        let mut bench = Bench::new(Box::new(open(&address)));
        bench.due_run(json!({}));
        let session = Session::open(&address);
        session.run(sql);
        Changed { address, session }
    }

    /// It is refused to whoever comes, by the error that is meant, and nothing is changed.
    fn check(&self, is_meant: impl Fn(&StoreError) -> bool) {
        let rows = || self.session.ask("SELECT number || name || checksum FROM migrations ORDER BY number");
        let before = rows();
        for open in [PostgresStore::open, PostgresStore::open_to_read] {
            let error = open(&self.address).expect_err("this is not what it knows");
            assert!(is_meant(&error), "{}", in_words(&error));
        }
        assert_eq!(rows(), before);
    }

    fn is_fine_after(&self, sql: &str) {
        self.session.run(sql);
        assert_clean(&open(&self.address));
    }
}

#[test]
fn a_newer_schema_is_refused() {
    let changed = Changed::new("INSERT INTO migrations VALUES (3, '0003_third', 0)");
    changed.check(|error| matches!(error, StoreError::NewerSchema { found: 3, known: 2 }));
    changed.is_fine_after("DELETE FROM migrations WHERE number = 3");
}

#[test]
fn a_schema_that_was_made_by_something_else_is_refused() {
    let changed = Changed::new("UPDATE migrations SET checksum = checksum + 1 WHERE number = 2");
    changed.check(|error| matches!(error, StoreError::Damaged { .. }));
    changed.is_fine_after("UPDATE migrations SET checksum = checksum - 1 WHERE number = 2");
    let changed = Changed::new("UPDATE migrations SET name = '0001_another' WHERE number = 1");
    changed.check(|error| matches!(error, StoreError::Damaged { .. }));
    changed.is_fine_after("UPDATE migrations SET name = '0001_first' WHERE number = 1");
}

//! A real PostgreSQL for tests: each has a schema of its own in the server that `cargo xtask test` starts.

#![expect(dead_code, reason = "each test file uses what it needs")]

pub(crate) mod dice;
pub(crate) mod in_turns;
pub(crate) mod patience;
pub(crate) mod proxy;
pub(crate) mod runs;
pub(crate) mod session;
pub(crate) mod told;

use std::sync::atomic::{AtomicU32, Ordering};

use punctual_lab::postgres::{Durability, Server};
use punctual_store::conformance::block_on;
use punctual_store::postgres::PostgresStore;
use punctual_store::{Journal, StoreError};

use session::Session;

/// The address of the server that tests may use.
pub(crate) fn address() -> String {
    std::env::var("PUNCTUAL_TEST_POSTGRES").unwrap_or_else(|_| {
        panic!("this test needs a PostgreSQL server: cargo xtask postgres -- cargo nextest run -p punctual-store")
    })
}

/// The address of a schema that nobody else has.
pub(crate) fn fresh_schema() -> String {
    fresh_schema_in(&address())
}

/// The address of a schema that nobody else has, in a given server.
pub(crate) fn fresh_schema_in(address: &str) -> String {
    static SCHEMAS: AtomicU32 = AtomicU32::new(0);
    let number = SCHEMAS.fetch_add(1, Ordering::Relaxed);
    let since = std::time::SystemTime::UNIX_EPOCH.elapsed().expect("it is later than 1970").as_nanos();
    let name = format!("t{}_{since}_{number}", std::process::id());
    Session::open(address).run(&format!("CREATE SCHEMA {name}"));
    format!("{address}?options=-c%20search_path%3D{name}")
}

/// A server of a test's own, which it may crash and replace. It keeps what it acknowledges.
pub(crate) fn start_server(settings: &[&str]) -> Server {
    Server::start_with(Durability::On, settings).expect("a server can be started")
}

/// A store in a schema that nobody else has.
pub(crate) fn fresh_store() -> PostgresStore {
    open(&fresh_schema())
}

pub(crate) fn open(address: &str) -> PostgresStore {
    PostgresStore::open(address).expect("a store can be opened")
}

pub(crate) fn assert_clean(store: &dyn Journal) {
    let found = block_on(store.verify()).expect("it can be verified");
    assert!(found.is_empty(), "{found:#?}");
}

/// An error that says: later. A test that meets another one has found something.
pub(crate) fn is_unavailable(error: &StoreError) -> bool {
    matches!(error, StoreError::Unavailable { .. })
}

/// An error with its causes, for whoever reads that a test has failed.
pub(crate) fn in_words(error: &StoreError) -> String {
    format!("{error}: {:?}", std::error::Error::source(error).map(ToString::to_string))
}

/// How often what is left to chance is repeated: as often as the environment says, or so many times.
pub(crate) fn rounds(usual: u64) -> u64 {
    std::env::var("PUNCTUAL_FAULT_ROUNDS").map_or(usual, |text| text.parse().expect("a number of rounds"))
}

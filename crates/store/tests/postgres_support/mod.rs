//! A real PostgreSQL for tests: each has a schema of its own in the server that `cargo xtask test` starts.

use std::sync::atomic::{AtomicU32, Ordering};

use punctual_store::postgres::PostgresStore;

/// The address of the server that tests may use.
pub(crate) fn address() -> String {
    std::env::var("PUNCTUAL_TEST_POSTGRES").unwrap_or_else(|_| {
        panic!("this test needs a PostgreSQL server: cargo xtask postgres -- cargo nextest run -p punctual-store")
    })
}

/// The address of a schema that nobody else has.
pub(crate) fn fresh_schema() -> String {
    static SCHEMAS: AtomicU32 = AtomicU32::new(0);
    let number = SCHEMAS.fetch_add(1, Ordering::Relaxed);
    let since = std::time::SystemTime::UNIX_EPOCH.elapsed().expect("it is later than 1970").as_nanos();
    let name = format!("t{}_{since}_{number}", std::process::id());
    let address = address();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be made");
    runtime.block_on(async {
        let (client, connection) =
            tokio_postgres::connect(&address, tokio_postgres::NoTls).await.expect("the server answers");
        let connection = tokio::spawn(connection);
        client.batch_execute(&format!("CREATE SCHEMA {name}")).await.expect("a schema can be made");
        drop(client);
        drop(connection.await);
    });
    format!("{address}?options=-c%20search_path%3D{name}")
}

/// A store in a schema that nobody else has.
pub(crate) fn fresh_store() -> PostgresStore {
    PostgresStore::open(&fresh_schema()).expect("a fresh store can be opened")
}

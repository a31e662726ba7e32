//! The stores under the world: a SQLite file, and a schema of a PostgreSQL server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use jiff::Timestamp;
use punctual_lab::postgres::ADDRESS;
use punctual_store::Store;
use punctual_store::postgres::PostgresStore;
use punctual_store::sqlite::SqliteStore;
use tokio::runtime::Builder;
use tokio_postgres::{Client, NoTls};

/// Runs a test on a fresh SQLite store.
pub(crate) fn on_sqlite(test: impl AsyncFnOnce(Base)) {
    on(test, || Base::Sqlite);
}

/// Runs a test in a fresh schema of the server that `cargo xtask test` starts.
pub(crate) fn on_postgres(test: impl AsyncFnOnce(Base)) {
    let server = std::env::var(ADDRESS).unwrap_or_else(|_| {
        panic!("this test needs a PostgreSQL server: cargo xtask postgres -- cargo nextest run -p punctual-server")
    });
    on(test, || Base::Postgres { server });
}

/// On one thread, so that between two steps of the test everything that can go on has gone on.
fn on(test: impl AsyncFnOnce(Base), base: impl FnOnce() -> Base) {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime can be made");
    runtime.block_on(test(base()));
}

/// Where a store is to be opened.
pub(crate) enum Base {
    Sqlite,
    Postgres { server: String },
}

/// A store that shows the world's time, and nobody else's.
pub(crate) struct Opened {
    pub(crate) store: Arc<dyn Store>,
    wall: Option<Wall>,
}

impl Base {
    pub(super) async fn open(self, now: Timestamp) -> Opened {
        match self {
            Base::Sqlite => {
                let store = SqliteStore::in_memory().expect("a store can be made");
                Opened { store: Arc::new(store), wall: None }
            }
            Base::Postgres { server } => {
                let wall = Wall::hang(&server, now).await;
                Opened { store: open_schema(&wall.address), wall: Some(wall) }
            }
        }
    }
}

impl Opened {
    /// The store of another process: where one server has the store for itself, there is only this one.
    pub(super) fn open_again(&self) -> Arc<dyn Store> {
        self.wall.as_ref().map_or_else(|| Arc::clone(&self.store), |wall| open_schema(&wall.address))
    }

    /// The clock is about to show this.
    pub(super) async fn set_time(&self, now: Timestamp) {
        if let Some(wall) = &self.wall {
            wall.set(now).await;
        }
    }
}

fn open_schema(address: &str) -> Arc<dyn Store> {
    let address = address.to_owned();
    // It is opened before there is anything else, and waits: that is not for a thread on which tasks run.
    let opened = std::thread::spawn(move || PostgresStore::open(&address)).join().expect("opening does not panic");
    Arc::new(opened.expect("a store can be opened"))
}

/// The clock on the wall of a PostgreSQL schema. All nodes go by the database's clock: in this schema `clock_timestamp()` is a
/// function that shows what the test has set, found before the server's own.
struct Wall {
    client: Client,
    address: String,
}

impl Wall {
    async fn hang(server: &str, now: Timestamp) -> Wall {
        static SCHEMAS: AtomicU32 = AtomicU32::new(0);
        let number = SCHEMAS.fetch_add(1, Ordering::Relaxed);
        let since = std::time::SystemTime::UNIX_EPOCH.elapsed().expect("it is later than 1970").as_nanos();
        let schema = format!("seed{}_{since}_{number}", std::process::id());
        let (client, connection) = tokio_postgres::connect(server, NoTls).await.expect("the server answers");
        tokio::spawn(connection);
        let sql = format!(
            "CREATE SCHEMA {schema};
            SET search_path = {schema}, pg_catalog;
            CREATE TABLE wall (at timestamptz NOT NULL);
            INSERT INTO wall VALUES ('{now}');
            CREATE FUNCTION clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
                AS 'SELECT at FROM {schema}.wall';"
        );
        client.batch_execute(&sql).await.expect("a schema can be made");
        let address = format!("{server}?options=-c%20search_path%3D{schema}%2Cpg_catalog");
        Wall { client, address }
    }

    async fn set(&self, now: Timestamp) {
        let sql = format!("UPDATE wall SET at = '{now}'");
        self.client.batch_execute(&sql).await.expect("the clock can be set");
    }
}

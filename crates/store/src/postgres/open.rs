//! Opening: the first connection, what the server is, and the schema.

use std::sync::{Arc, Mutex};

use tokio::runtime::Builder;
use tokio::sync::{mpsc, oneshot};
use tokio_postgres::Client;

use super::connect::{Address, Connections};
use super::fault::Done;
use super::heart::Heart;
use super::listen::Listeners;
use super::migrate::{MIGRATIONS, applied, migrate};
use super::ownership::Ownership;
use super::time::Time;
use super::tls;
use super::values::At;
use super::writer::Writer;
use super::{PostgresStore, ReadsOf, Threads};
use crate::error::{Result, StoreError};
use crate::panics::FailedPart;

/// The oldest server that has what is needed.
const OLDEST: i32 = 140_000;

impl PostgresStore {
    /// Opens the database at an address, and brings its schema up to date.
    pub fn open(address: &str) -> Result<PostgresStore> {
        PostgresStore::open_and(address, true)
    }

    /// Opens a database that a server has made, to look at it.
    pub fn open_to_read(address: &str) -> Result<PostgresStore> {
        PostgresStore::open_and(address, false)
    }

    fn open_and(address: &str, migrates: bool) -> Result<PostgresStore> {
        const DOING: &str = "opening the database";
        tls::install_provider();
        let address = Address::parse(address)?;
        let failed = |error: std::io::Error| StoreError::Unavailable { doing: DOING, source: error.into() };
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("postgres")
            .enable_all()
            .build()
            .map_err(failed)?;
        let connections = address.usual_connections()?;
        let (reply, answer) = std::sync::mpsc::channel();
        let (first, time) = (connections.clone(), Time::default());
        let clock = time.clone();
        runtime.spawn(async move { drop(reply.send(prepare(&first, &clock, migrates).await)) });
        let lost = |_| StoreError::Unavailable { doing: DOING, source: "it ended without an answer".into() };
        let warnings = answer.recv().map_err(lost)?.map_err(|fault| fault.while_doing(DOING))?;
        let ownership = Ownership::default();
        let (commands, queue) = mpsc::unbounded_channel();
        let (questions, asked) = mpsc::unbounded_channel();
        let writer = Writer::new(connections.clone(), ownership.clone(), asked, !migrates);
        let failed_part = FailedPart::default();
        let (ends, ended) = std::sync::mpsc::channel::<()>();
        let write = failed_part.clone().watch("writer of the database", writer.run(queue));
        runtime.spawn(async move {
            write.await;
            drop(ends);
        });
        let listeners = Listeners::default();
        if migrates {
            let listening = listeners.clone().listen(address.clone());
            runtime.spawn(failed_part.clone().watch("listener of the database", listening));
        }
        let heart = Heart::start(&address, time.clone(), failed_part.clone()).map_err(failed)?;
        let threads = Arc::new(Threads { runtime: Some(runtime), ended: Mutex::new(ended) });
        let reads = ReadsOf::Engine;
        Ok(PostgresStore {
            commands,
            questions,
            address,
            connections,
            reads,
            ownership,
            heart,
            time,
            listeners,
            warnings,
            failed_part,
            threads,
        })
    }
}

async fn prepare(connections: &Connections, time: &Time, migrates: bool) -> Done<Vec<String>> {
    connections.with(async |client: &Client| prepare_with(client, time, migrates).await).await
}

async fn prepare_with(client: &Client, time: &Time, migrates: bool) -> Done<Vec<String>> {
    let warnings = look_at(client, time).await?;
    if migrates {
        migrate(client, MIGRATIONS).await?;
    } else if applied(client, MIGRATIONS).await? < MIGRATIONS.len() {
        let why = "it has no schema of Punctual, or an older one: `punctual up` brings it up to date".to_owned();
        return Err(StoreError::BadAddress { why }.into());
    }
    Ok(warnings)
}

/// Looks at what the server is: refuses one that cannot be used, and warns of one that may lose what it has acknowledged.
async fn look_at(client: &Client, time: &Time) -> Done<Vec<String>> {
    let sql =
        "SELECT current_setting('server_version_num')::int, current_setting('server_version'), pg_is_in_recovery(),
        current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit'),
        clock_timestamp()";
    let asked = Time::ask();
    let row = client.query_typed_one(sql, &[]).await?;
    time.answer(&asked, row.get::<_, At>(6).0);
    let refuse = |why: String| Err(StoreError::BadAddress { why }.into());
    if row.get::<_, i32>(0) < OLDEST {
        return refuse(format!(
            "the server is PostgreSQL {}, and 14 is the oldest that will do",
            row.get::<_, &str>(1)
        ));
    }
    if row.get(2) {
        return refuse("the server is a standby: give the address of the primary".to_owned());
    }
    let mut warnings = vec![];
    for (setting, column) in [("fsync", 3), ("full_page_writes", 4), ("synchronous_commit", 5)] {
        if row.get::<_, &str>(column) == "off" {
            warnings.push(format!("{setting} is off: a crash of the database can lose what was acknowledged"));
        }
    }
    Ok(warnings)
}

/// So that the queue's type is named in one place.
pub(super) type Reply<T> = oneshot::Sender<Result<T>>;

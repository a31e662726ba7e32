//! PostgreSQL: the store that many nodes share.
//!
//! Each process has a writer ([`writer`]) with a mirror of schedules and live runs in memory. Whoever writes takes the pen,
//! reads what others have written since, decides in memory, and writes rows and entries in one more round trip. Leases are
//! renewed beside that, on a thread and a connection of their own ([`heart`]).
//!
//! Callers never hold a connection: what they ask for is done on the store's own threads, and goes on when they stop
//! waiting for it.

mod answers;
mod claims;
mod command;
mod connect;
mod fault;
mod heart;
mod history;
mod import;
mod journal;
mod listen;
mod load;
mod migrate;
mod nodes;
mod open;
mod output;
mod ownership;
mod partitions;
mod pen;
mod plan;
mod records;
mod rows;
mod runs;
mod save;
mod time;
mod tls;
mod tokens;
mod values;
mod verify;
mod writer;

pub use import::import;

use std::future::Future;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::sync::{mpsc, oneshot};

use self::command::{Asked, Command};
use self::connect::Connections;
use self::fault::{Done, Fault};
use self::heart::Heart;
use self::listen::Listeners;
use self::ownership::Ownership;
use self::time::Time;
use crate::error::{Result, StoreError};
use crate::panics::FailedPart;
use crate::writing::{Needs, Writing};

/// How long a read may take before it is given up. A connection that stands still would be waited for for ever.
const READ_MAX: Duration = Duration::from_secs(30);

/// A store in a PostgreSQL database.
///
/// Times are kept in microseconds; a finer one is refused.
pub struct PostgresStore {
    commands: mpsc::UnboundedSender<Box<dyn Command>>,
    connections: Connections,
    ownership: Ownership,
    heart: Heart,
    time: Time,
    listeners: Listeners,
    /// What is worth a warning about the server.
    warnings: Vec<String>,
    /// What of it is gone for good, if anything.
    failed_part: FailedPart,
    /// Dropped last, without waiting: nobody is left who wants to know.
    runtime: Option<Runtime>,
}

impl PostgresStore {
    /// What whoever runs the server should know: settings under which what was acknowledged can be lost.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Has the writer do something, and waits until it is committed. It may be done again if its transaction fails.
    async fn write<T: Send + 'static>(
        &self,
        doing: &'static str,
        needs: Needs,
        work: impl FnMut(&mut Writing<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.failed_part.check()?;
        let gone = || StoreError::Unavailable { doing, source: "the store has stopped".into() };
        let (reply, answer) = oneshot::channel();
        let command = Box::new(Asked { doing, needs, work, result: None, reply });
        self.commands.send(command).map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }

    /// Reads something on the store's own threads, and gives up when that takes too long.
    async fn read<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl Future<Output = Done<T>> + Send + 'static,
    ) -> Result<T> {
        let slow = |_| Err(Fault::Slow(READ_MAX.as_secs()));
        self.read_on(doing, async move { tokio::time::timeout(READ_MAX, work).await.unwrap_or_else(slow) }).await
    }

    /// Reads something on the store's own threads, however long it takes.
    async fn read_on<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl Future<Output = Done<T>> + Send + 'static,
    ) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        let runtime = self.runtime.as_ref().expect("it is there until the store is dropped");
        runtime.spawn(async move { drop(reply.send(work.await)) });
        let gone = |_| StoreError::Unavailable { doing, source: "the store has stopped".into() };
        answer.await.map_err(gone)?.map_err(|fault| fault.while_doing(doing))
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl std::fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresStore").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use tokio::runtime::Builder;

    use super::*;

    /// A store in a schema of its own.
    fn fresh_store() -> PostgresStore {
        let address = std::env::var("PUNCTUAL_TEST_POSTGRES").unwrap_or_else(|_| {
            panic!("this test needs a PostgreSQL server: cargo xtask postgres -- cargo nextest run -p punctual-store")
        });
        let name = format!("t{}", uuid::Uuid::now_v7().simple());
        let sql = format!("CREATE SCHEMA {name}");
        block_on(async {
            let (client, connection) = tokio_postgres::connect(&address, tokio_postgres::NoTls).await?;
            tokio::select! {
                ended = connection => ended,
                made = client.batch_execute(&sql) => made,
            }
        })
        .expect("a schema can be made");
        PostgresStore::open(&format!("{address}?options=-c%20search_path%3D{name}")).expect("a store can be opened")
    }

    fn block_on<F: Future>(future: F) -> F::Output {
        Builder::new_current_thread().enable_all().build().expect("a runtime can be made").block_on(future)
    }

    #[test]
    fn a_panic_is_the_commands_own_and_the_writer_goes_on() {
        let store = fresh_store();
        let panics = store.write("panicking", Needs::default(), |_| -> Result<()> { panic!("this is a test") });
        let fine = store.write("looking", Needs::default(), |_| Ok(7));
        let (panicked, fine) = block_on(async { tokio::join!(panics, fine) });
        let error = panicked.expect_err("it panics");
        let source = std::error::Error::source(&error).expect("it says why").to_string();
        assert!(!error.is_fatal() && source.contains("this is a test"), "{error}: {source}");
        assert_eq!(fine.expect("it is not to blame"), 7);
        assert_eq!(block_on(store.write("looking", Needs::default(), |_| Ok(8))).expect("the writer lives"), 8);
    }

    #[test]
    fn a_panic_of_a_part_is_fatal_for_whoever_asks_afterwards() {
        let store = fresh_store();
        block_on(store.failed_part.clone().watch("listener", async { panic!("this is a test") }));
        let error = block_on(store.write("looking", Needs::default(), |_| Ok(()))).expect_err("a part is gone");
        assert!(error.is_fatal() && error.to_string().contains("listener has panicked: this is a test"), "{error}");
    }
}

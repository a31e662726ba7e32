//! SQLite: the default store, in one file that one server has for itself.
//!
//! In: commands of the kernel, and questions. Out: a journal, and history beside it. The kernel decides, in memory; what is here
//! is how commits are appended ([`save`]), how its state is opened ([`load`]) and how the snapshot follows it ([`snapshot`]). One
//! thread writes and has the state ([`writer`]), a few read the past ([`readers`]). All of them are the store's own, so that its
//! futures can be polled by any executor.
//!
//! Invariants: nothing is acknowledged before it is on the disk; a second server is refused; after the disk has failed,
//! nothing is acknowledged any more.

mod answers;
mod backup;
mod base;
mod fault;
mod history;
mod import;
mod journal;
mod load;
mod lock;
mod migrate;
mod nodes;
mod open;
mod output;
#[cfg(test)]
mod query_plans;
mod queue;
mod readers;
mod records;
mod save;
mod session;
mod snapshot;
mod sums;
mod tokens;
mod values;
mod verify;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use punctual_core::RunId;
use punctual_core::journal::Entry;
use punctual_kernel::state::State;
use punctual_kernel::transaction::{Needs, Transaction};
use rusqlite::Connection;
use tokio::sync::Semaphore;
use uuid::Uuid;

pub use backup::{Restore, restore};
pub use import::import;

use self::fault::{Done, Fault};
use self::history::{ends_between, past_of_run};
use self::open::connect_to_read;
use self::readers::{API_LONG_READERS, API_READERS, Readers};
use self::writer::Writer;
use crate::error::{Result, StoreError};
use crate::kept::{EndedBetween, Kept};
use crate::roles::Journal;

/// A store in a file.
///
/// Dropping it carries out what has been asked for, and lets go of the file. Times are kept in microseconds; a finer one
/// is refused.
pub struct SqliteStore {
    // The order matters: the last connection to be closed is the writer's, which empties the write-ahead log; then its
    // lock is let go, and a scratch folder removed.
    readers: Arc<Readers>,
    /// Those of long reads, where they have their own.
    long_readers: Option<Arc<Readers>>,
    /// Has the state. It writes only if this store is the server's.
    writer: Arc<Writer>,
    is_server: bool,
    /// What requests of the API may take of the writer's time.
    looks: Option<Looks>,
    path: PathBuf,
    _scratch: Option<Arc<Scratch>>,
}

/// The most looks at the state that the API has waiting: the writer carries out all that wait between two commits.
const API_LOOKS: usize = 32;

/// What requests of the API may take of the writer's time.
#[derive(Debug, Clone)]
struct Looks {
    places: Arc<Semaphore>,
    time_max: Duration,
}

/// A folder that is removed when it is dropped.
struct Scratch(PathBuf);

impl SqliteStore {
    /// Where its file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The same store for requests of the API. Its reads have places of their own, so that they take none of the engine's; each
    /// may take so long and is then cut off, and one that its caller does not wait for any more is dropped. Where too many
    /// wait or the time is over, it is [`StoreError::Overloaded`]. What is written goes through the same writer.
    pub fn for_api(&self, time_max: Duration) -> Result<SqliteStore> {
        let connect = |count| (0..count).map(|_| connect_to_read(&self.path)).collect::<Done<Vec<Connection>>>();
        let start = |count| connect(count).and_then(|it| Readers::start(it, Some(time_max))).map(Arc::new);
        let start_long = |count| connect(count).and_then(|it| Readers::start_long(it, time_max)).map(Arc::new);
        let failed = |fault: Fault| fault.while_doing("opening the database for the API");
        Ok(SqliteStore {
            readers: start(API_READERS).map_err(failed)?,
            long_readers: Some(start_long(API_LONG_READERS).map_err(failed)?),
            writer: Arc::clone(&self.writer),
            is_server: self.is_server,
            looks: Some(Looks { places: Arc::new(Semaphore::new(API_LOOKS)), time_max }),
            path: self.path.clone(),
            _scratch: self._scratch.clone(),
        })
    }

    /// Has the writer carry out statements, and waits until they are on the disk.
    async fn write<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl FnMut(&Connection) -> Done<T> + Send + 'static,
    ) -> Result<T> {
        self.server(doing)?.write(doing, work).await
    }

    async fn read<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&Connection) -> Done<T> + Send + 'static,
    ) -> Result<T> {
        self.readers.read(doing, work).await
    }

    /// Reads something whose work grows with the history. It takes no place of what is quickly read.
    async fn read_long<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&Connection) -> Done<T> + Send + 'static,
    ) -> Result<T> {
        self.long_readers.as_ref().unwrap_or(&self.readers).read(doing, work).await
    }

    fn server(&self, doing: &'static str) -> Result<&Writer> {
        let none = || StoreError::Database { doing, source: "the database was opened only to read it".into() };
        self.is_server.then_some(&*self.writer).ok_or_else(none)
    }
}

/// What comes within a time; `None` if it takes longer. Where no clock of Tokio's goes, it may take as long as it likes.
async fn within<T>(time_max: Duration, work: impl Future<Output = T>) -> Option<T> {
    if tokio::runtime::Handle::try_current().is_err() {
        return Some(work.await);
    }
    tokio::time::timeout(time_max, work).await.ok()
}

impl Kept for SqliteStore {
    async fn commit<T: Send + 'static>(
        &self,
        doing: &'static str,
        needs: Needs,
        work: impl FnMut(&mut Transaction<'_>) -> punctual_kernel::Result<T> + Send + 'static,
    ) -> Result<T> {
        self.server(doing)?.commit(doing, needs, work).await
    }

    async fn look<T: Send + 'static>(
        &self,
        doing: &'static str,
        look: impl FnMut(&State) -> T + Send + 'static,
    ) -> Result<T> {
        let Some(Looks { places, time_max }) = &self.looks else { return self.writer.look(doing, look).await };
        let overloaded = |why| StoreError::Overloaded { doing, why };
        let looked = async {
            let place = places.acquire().await;
            let looked = self.writer.look(doing, look).await;
            drop(place);
            looked
        };
        match within(*time_max, looked).await {
            Some(looked) => looked,
            None => Err(overloaded("it takes longer than a request may")),
        }
    }

    async fn past_of_run(&self, run: RunId, limit: usize) -> Result<Vec<Entry>> {
        self.read("reading the history of a run", move |connection| past_of_run(connection, run, limit)).await
    }

    async fn ends_between(&self, ended: EndedBetween) -> Result<Vec<Entry>> {
        self.read("reading runs that are over", move |connection| ends_between(connection, &ended)).await
    }

    async fn entries_about(&self, subjects: Vec<Uuid>, each: usize) -> Result<Vec<Entry>> {
        self.about(&subjects, each).await
    }
}

impl std::fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqliteStore").field("path", &self.path).finish_non_exhaustive()
    }
}

//! SQLite: the default store, in one file that one server has for itself.
//!
//! In: the roles. Out: rows and a journal that commit together. The kernel decides, in memory; what is here is how its state
//! is read ([`load`]) and written ([`save`]). One thread writes ([`writer`]), a few read ([`readers`]). All of them are the
//! store's own, so that its futures can be polled by any executor.
//!
//! Invariants: nothing is acknowledged before it is on the disk; a second server is refused; after the disk has failed,
//! nothing is acknowledged any more.

mod answers;
mod backup;
mod claims;
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
mod plan;
#[cfg(test)]
mod query_plans;
mod queue;
mod readers;
mod records;
mod rows;
mod runs;
mod save;
mod session;
mod tokens;
mod values;
mod verify;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use punctual_kernel::transaction::{Needs, Transaction};
use rusqlite::Connection;

pub use backup::{Restore, restore};
pub use import::import;

use self::fault::{Done, Fault};
use self::open::connect_to_read;
use self::readers::{API_LONG_READERS, API_READERS, Readers};
use self::writer::Writer;
use crate::commands::Commits;
use crate::error::{Result, StoreError};

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
    writer: Option<Arc<Writer>>,
    path: PathBuf,
    _scratch: Option<Arc<Scratch>>,
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
            writer: self.writer.clone(),
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
        self.writer(doing)?.write(doing, work).await
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

    fn writer(&self, doing: &'static str) -> Result<&Writer> {
        let none = || StoreError::Database { doing, source: "the database was opened only to read it".into() };
        self.writer.as_deref().ok_or_else(none)
    }
}

impl Commits for SqliteStore {
    async fn commit<T: Send + 'static>(
        &self,
        doing: &'static str,
        needs: Needs,
        work: impl FnMut(&mut Transaction<'_>) -> punctual_kernel::Result<T> + Send + 'static,
    ) -> Result<T> {
        self.writer(doing)?.commit(doing, needs, work).await
    }
}

impl std::fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqliteStore").field("path", &self.path).finish_non_exhaustive()
    }
}

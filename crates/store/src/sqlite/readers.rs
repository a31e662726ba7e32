//! Readers: a few threads, each with a connection that can only read.
//!
//! They never wait for the writer, nor it for them. Each read sees one state of the database, and is cut off when it does
//! more work than any sensible one would: a reader that never ends keeps the write-ahead log from being emptied.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::fault::{Done, Fault};
use crate::error::{Result, StoreError};

/// How many read at once.
pub(super) const READERS: usize = 3;

/// The most reads that wait for a reader; whoever comes next waits for a place in the queue.
const WAITING_MAX: usize = 1_024;

/// How many steps of SQLite's machine are between two looks at the bound.
const STEPS: i32 = 100_000;

/// How many such looks a read may take: some seconds of work.
const LOOKS_MAX: u32 = 3_000;

type Read = Box<dyn FnOnce(&Reader) + Send>;

/// A handle to the readers. Dropping it ends the threads.
pub(super) struct Readers {
    queue: Option<mpsc::Sender<Read>>,
    threads: Vec<JoinHandle<()>>,
}

struct Reader {
    connection: Connection,
    looks: Arc<AtomicU32>,
}

impl Readers {
    /// Starts a thread for each connection.
    pub(super) fn start(connections: Vec<Connection>) -> Done<Readers> {
        let (queue, reads) = mpsc::channel::<Read>(WAITING_MAX);
        let reads = Arc::new(Mutex::new(reads));
        let mut threads = vec![];
        for mut connection in connections {
            let looks = Arc::new(AtomicU32::new(0));
            let counted = Arc::clone(&looks);
            let is_over = move || LOOKS_MAX < counted.fetch_add(1, Ordering::Relaxed);
            connection.progress_handler(STEPS, Some(is_over))?;
            let reader = Reader { connection, looks };
            let reads = Arc::clone(&reads);
            let work = move || run(&reader, &reads);
            let thread = std::thread::Builder::new().name("sqlite-reader".to_owned()).spawn(work);
            threads.push(thread.map_err(Fault::other)?);
        }
        Ok(Readers { queue: Some(queue), threads })
    }

    /// Reads something, from one state of the database.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&Connection) -> Done<T> + Send + 'static,
    ) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        let read: Read = Box::new(move |reader| drop(reply.send(reader.read(work))));
        let ended = || StoreError::Panicked { part: "readers of the database", why: "they have ended".to_owned() };
        let queue = self.queue.as_ref().ok_or_else(ended)?;
        queue.send(read).await.map_err(|_| ended())?;
        let answer = answer.await.map_err(|_| StoreError::Database { doing, source: "a panic".into() })?;
        answer.map_err(|fault| read_error(fault, doing))
    }
}

/// A disk that cannot be read has not swallowed a write: other reads may work.
pub(super) fn read_error(fault: Fault, doing: &'static str) -> StoreError {
    match fault {
        Fault::Sql(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::SystemIoFailure) => {
            StoreError::Database { doing, source: Box::new(error) }
        }
        fault => fault.while_doing(doing),
    }
}

impl Reader {
    fn read<T>(&self, work: impl FnOnce(&Connection) -> Done<T>) -> Done<T> {
        self.looks.store(0, Ordering::Relaxed);
        in_one_state(&self.connection, work)
    }
}

/// Reads from one state of the database, whatever is written meanwhile.
pub(super) fn in_one_state<T>(connection: &Connection, work: impl FnOnce(&Connection) -> Done<T>) -> Done<T> {
    let transaction = connection.unchecked_transaction()?;
    let read = work(&transaction)?;
    transaction.finish()?;
    Ok(read)
}

fn run(reader: &Reader, reads: &Mutex<mpsc::Receiver<Read>>) {
    loop {
        let read = reads.lock().unwrap_or_else(PoisonError::into_inner).blocking_recv();
        let Some(read) = read else { return };
        // A panic is the caller's: it hears of it by the end of its channel.
        drop(catch_unwind(AssertUnwindSafe(|| read(reader))));
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.queue = None;
        for thread in self.threads.drain(..) {
            drop(thread.join());
        }
    }
}

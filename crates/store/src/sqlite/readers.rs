//! Readers: a few threads, each with a connection that can only read.
//!
//! They never wait for the writer, nor it for them. Each read sees one state of the database, and is cut off when it does
//! more work than any sensible one would, or takes longer than it may: a reader that never ends keeps the write-ahead log from
//! being emptied. A read that no caller waits for any more is not begun, and not gone on with.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

use super::fault::{Done, Fault};
use crate::error::{Result, StoreError};

/// How many of the engine's reads go on at once.
pub(super) const READERS: usize = 3;

/// How many reads of the API go on at once, apart from long ones.
pub(super) const API_READERS: usize = 2;

/// How many long reads of the API go on at once: sums and searches, whose work grows with the history.
pub(super) const API_LONG_READERS: usize = 2;

/// The most reads that wait for a reader: more than there are connections. The engine's wait for a place in the queue; the API's
/// are refused.
const WAITING_MAX: usize = 1_024;

/// The same for long reads of the API, each of which keeps the others waiting for long.
const LONG_WAITING_MAX: usize = 64;

/// How many steps of SQLite's machine are between two looks at the bound: about a millisecond.
const STEPS: i32 = 100_000;

/// How many such looks a read may take: some seconds of work.
const LOOKS_MAX: u32 = 3_000;

type Read = Box<dyn FnOnce(&Reader) + Send>;

/// A handle to the readers. Dropping it ends the threads.
pub(super) struct Readers {
    queue: Option<mpsc::Sender<Read>>,
    threads: Vec<JoinHandle<()>>,
    /// How long a read may take, from when it is asked for. Without it, only the work is bounded.
    time_max: Option<Duration>,
}

struct Reader {
    connection: Connection,
    /// The read that goes on.
    current: Arc<Mutex<Option<Arc<Question>>>>,
}

/// One read: how long it may go on, and whether a caller still waits for it.
struct Question {
    deadline: Option<Instant>,
    looks: AtomicU32,
    is_dropped: AtomicBool,
}

impl Question {
    fn new(time_max: Option<Duration>) -> Question {
        let deadline = time_max.map(|max| now() + max);
        Question { deadline, looks: AtomicU32::new(0), is_dropped: AtomicBool::new(false) }
    }

    fn is_late(&self) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= now())
    }

    /// Whether it is not to be gone on with. Asked between two pieces of work.
    fn is_over(&self) -> bool {
        let is_too_much = self.deadline.is_none() && LOOKS_MAX < self.looks.fetch_add(1, Ordering::Relaxed);
        is_too_much || self.is_late() || self.is_dropped.load(Ordering::Relaxed)
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a query that takes too long is ended by real time, whatever clock the caller has"
)]
pub(super) fn now() -> Instant {
    Instant::now()
}

/// Tells the reader when its caller has stopped waiting.
struct DropsQuestion(Arc<Question>);

impl Drop for DropsQuestion {
    fn drop(&mut self) {
        self.0.is_dropped.store(true, Ordering::Relaxed);
    }
}

impl Readers {
    /// Starts a thread for each connection. With a time, reads have a deadline, and are refused when too many wait.
    pub(super) fn start(connections: Vec<Connection>, time_max: Option<Duration>) -> Done<Readers> {
        Readers::start_with(connections, time_max, WAITING_MAX)
    }

    /// The same for long reads of the API.
    pub(super) fn start_long(connections: Vec<Connection>, time_max: Duration) -> Done<Readers> {
        Readers::start_with(connections, Some(time_max), LONG_WAITING_MAX)
    }

    fn start_with(connections: Vec<Connection>, time_max: Option<Duration>, waiting_max: usize) -> Done<Readers> {
        let (queue, reads) = mpsc::channel::<Read>(waiting_max);
        let reads = Arc::new(Mutex::new(reads));
        let mut threads = vec![];
        for mut connection in connections {
            let current: Arc<Mutex<Option<Arc<Question>>>> = Arc::default();
            let watched = Arc::clone(&current);
            let is_over = move || lock(&watched).as_ref().is_some_and(|question| question.is_over());
            connection.progress_handler(STEPS, Some(is_over))?;
            let reader = Reader { connection, current };
            let reads = Arc::clone(&reads);
            let work = move || run(&reader, &reads);
            let thread = std::thread::Builder::new().name("sqlite-reader".to_owned()).spawn(work);
            threads.push(thread.map_err(Fault::other)?);
        }
        Ok(Readers { queue: Some(queue), threads, time_max })
    }

    /// Reads something, from one state of the database.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&Connection) -> Done<T> + Send + 'static,
    ) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        let question = Arc::new(Question::new(self.time_max));
        let asked = Arc::clone(&question);
        let drops_question = DropsQuestion(Arc::clone(&question));
        let read: Read = Box::new(move |reader| drop(reply.send(reader.read(asked, work))));
        let ended = || StoreError::Panicked { part: "readers of the database", why: "they have ended".to_owned() };
        let queue = self.queue.as_ref().ok_or_else(ended)?;
        if self.time_max.is_none() {
            queue.send(read).await.map_err(|_| ended())?;
        } else {
            queue.try_send(read).map_err(|refused| match refused {
                TrySendError::Full(_) => StoreError::Overloaded { doing, why: "too many requests wait for it" },
                TrySendError::Closed(_) => ended(),
            })?;
        }
        let answer = answer.await.map_err(|_| StoreError::Database { doing, source: "a panic".into() })?;
        drop(drops_question);
        answer.map_err(|fault| match fault {
            Fault::Sql(error) if is_interrupt(&error) && question.is_late() => {
                StoreError::Overloaded { doing, why: "it takes longer than a request may" }
            }
            fault => read_error(fault, doing),
        })
    }
}

fn is_interrupt(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(rusqlite::ErrorCode::OperationInterrupted)
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
    fn read<T>(&self, question: Arc<Question>, work: impl FnOnce(&Connection) -> Done<T>) -> Done<T> {
        if question.is_over() {
            let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_INTERRUPT);
            return Err(Fault::Sql(rusqlite::Error::SqliteFailure(code, None)));
        }
        *lock(&self.current) = Some(question);
        let read = in_one_state(&self.connection, work);
        *lock(&self.current) = None;
        read
    }
}

fn lock(current: &Mutex<Option<Arc<Question>>>) -> std::sync::MutexGuard<'_, Option<Arc<Question>>> {
    current.lock().unwrap_or_else(PoisonError::into_inner)
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

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;
    use crate::roles::{History, Schedules};
    use crate::sqlite::SqliteStore;

    const ENDLESS: &str = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n";

    fn block_on<F: Future>(future: F) -> F::Output {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime can be made")
            .block_on(future)
    }

    /// A long read that ends by its bound alone.
    async fn endless(store: &SqliteStore) -> Result<i64> {
        store.read_long("counting for ever", |it| Ok(it.query_row(ENDLESS, [], |row| row.get(0))?)).await
    }

    fn begun<F: Future>(future: std::pin::Pin<&mut F>) {
        assert!(matches!(future.poll(&mut Context::from_waker(Waker::noop())), Poll::Pending));
    }

    #[test]
    fn long_reads_of_the_api_take_no_place_of_others_and_end_at_their_deadline() {
        let store = SqliteStore::in_memory().expect("a database can be made");
        let api = store.for_api(Duration::from_secs(3)).expect("it opens");
        let mut reads: Vec<_> = (0..API_LONG_READERS + 3).map(|_| Box::pin(endless(&api))).collect();
        reads.iter_mut().for_each(|read| begun(read.as_mut()));
        // All places of long reads are taken. The engine reads on, also its history, and the API what is quickly read.
        block_on(async {
            assert_eq!(store.count_history(&Default::default()).await.expect("the engine reads"), 0);
            assert_eq!(api.count_schedules().await.expect("the API reads"), 0);
        });
        for read in reads {
            let error = block_on(read).expect_err("it is cut off, or was never begun");
            assert!(matches!(error, StoreError::Overloaded { .. }), "{error:?}");
        }
        assert_eq!(block_on(api.count_history(&Default::default())).expect("the places are free again"), 0);
    }

    #[test]
    fn a_caller_that_stops_waiting_is_not_worked_for() {
        let store = SqliteStore::in_memory().expect("a database can be made");
        // So long a deadline that only the end of its caller can end a read within this test.
        let api = store.for_api(Duration::from_secs(3_600)).expect("it opens");
        for _ in 0..3 {
            let mut running: Vec<_> = (0..API_LONG_READERS + 3).map(|_| Box::pin(endless(&api))).collect();
            running.iter_mut().for_each(|read| begun(read.as_mut()));
            drop(running);
            assert_eq!(block_on(api.count_history(&Default::default())).expect("the places are free again"), 0);
        }
    }

    #[test]
    fn more_than_may_wait_are_refused_at_once() {
        let store = SqliteStore::in_memory().expect("a database can be made");
        let api = store.for_api(Duration::from_secs(3_600)).expect("it opens");
        let mut waiting: Vec<_> = (0..API_LONG_READERS + LONG_WAITING_MAX).map(|_| Box::pin(endless(&api))).collect();
        waiting.iter_mut().for_each(|read| drop(read.as_mut().poll(&mut Context::from_waker(Waker::noop()))));
        let refused = (0..API_LONG_READERS + 1).find_map(|_| {
            let mut one_more = pin!(endless(&api));
            match one_more.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(answer) => Some(answer.expect_err("there is no place")),
                Poll::Pending => None,
            }
        });
        assert!(matches!(refused, Some(StoreError::Overloaded { .. })), "{refused:?}");
        // What is quickly read has a queue of its own.
        assert_eq!(block_on(api.count_schedules()).expect("the API reads"), 0);
    }
}

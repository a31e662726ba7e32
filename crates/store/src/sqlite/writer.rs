//! The one writer: a thread that owns the connection that writes, and commits what waits in groups.
//!
//! In: commands, from any number of callers. Out: an answer to each, after what it changed is on the disk. Invariant: a
//! command is carried out whole or not at all, whether or not its caller is still there; nothing is acknowledged that a
//! crash could take back; after a disk has failed, nothing is acknowledged at all.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::oneshot;
use tracing::{error, warn};

use super::fault::{Done, Fault, Severity};
use super::lock::Lock;
use super::open::BUSY_TIMEOUT;
use super::queue::{Next, Queue};
use super::session::Session;
use crate::error::{Result, StoreError};
use crate::panics::panic_text;

/// The most commands that share a commit.
const GROUP_MAX: usize = 256;

/// After so long without a command, the write-ahead log is emptied into the database.
const IDLE_AFTER: Duration = Duration::from_secs(1);

/// How large the write-ahead log may get before it is emptied with force, and a warning says who is in the way.
const WAL_MAX: u64 = 64 * 1024 * 1024;

/// After so many commits the size of the write-ahead log is looked at.
const WAL_LOOK_EVERY: u32 = 64;

/// What the writer is called in messages.
const PART: &str = "writer of the database";

/// A handle to the writer. Dropping it carries out what waits, and ends the thread.
pub(super) struct Writer {
    queue: Arc<Queue<Box<dyn Command>>>,
    thread: Option<JoinHandle<()>>,
}

/// Something to be done in a transaction.
trait Command: Send {
    /// Carries it out, without telling anybody.
    fn carry_out(&mut self, session: &mut Session) -> Result<(), Failure>;
    /// It failed for a reason that is not its own.
    fn fail(&mut self, failure: &Failure);
    /// Tells the caller.
    fn answer(self: Box<Self>);
}

/// Why a command, or a group of them, came to nothing.
#[derive(Debug, Clone)]
enum Failure {
    DiskFull,
    Broken,
    Damaged(String),
    /// The writer itself has panicked, not one of its commands.
    Panicked(String),
    /// Nothing is wrong with the command: the same may work later.
    Moment {
        text: String,
    },
    Other {
        text: String,
    },
}

struct Job<T, W> {
    doing: &'static str,
    now: Timestamp,
    work: Option<W>,
    answer: Option<Result<T>>,
    reply: oneshot::Sender<Result<T>>,
}

impl<T, W> Command for Job<T, W>
where
    T: Send,
    W: FnOnce(&mut Session) -> Done<T> + Send,
{
    fn carry_out(&mut self, session: &mut Session) -> Result<(), Failure> {
        let work = self.work.take().expect("a command is carried out once");
        let done = work(session).and_then(|answer| session.settle_derived(self.now).map(|()| answer));
        let (answer, failed) = match done {
            Ok(answer) => (Ok(answer), Ok(())),
            Err(fault) => {
                let failure = Failure::of(&fault);
                (Err(fault.while_doing(self.doing)), Err(failure))
            }
        };
        self.answer = Some(answer);
        failed
    }

    fn fail(&mut self, failure: &Failure) {
        // What has failed by itself keeps its own reason.
        if !matches!(self.answer, Some(Err(_))) {
            self.answer = Some(Err(failure.error(self.doing)));
        }
    }

    fn answer(self: Box<Self>) {
        let nothing = || Err(Failure::other("it was not carried out").error(self.doing));
        // A caller that has gone away does not want to know.
        drop(self.reply.send(self.answer.unwrap_or_else(nothing)));
    }
}

impl Failure {
    fn of(fault: &Fault) -> Failure {
        match (fault.severity(), fault) {
            (Severity::DiskFull, _) => Failure::DiskFull,
            (Severity::Ordinary, _) if fault.is_passing() => Failure::Moment { text: fault.to_string() },
            (Severity::Ordinary, _) => Failure::other(fault),
            (Severity::Fatal, Fault::Sql(error)) => match error.sqlite_error_code() {
                Some(rusqlite::ErrorCode::SystemIoFailure) => Failure::Broken,
                _ => Failure::Damaged(error.to_string()),
            },
            (Severity::Fatal, Fault::Store(StoreError::Broken { .. })) => Failure::Broken,
            (Severity::Fatal, _) => Failure::Damaged(fault.to_string()),
        }
    }

    fn other(text: impl ToString) -> Failure {
        Failure::Other { text: text.to_string() }
    }

    fn is_fatal(&self) -> bool {
        matches!(self, Failure::Broken | Failure::Damaged(_) | Failure::Panicked(_))
    }

    /// The same, for the other commands of the group that it has undone.
    fn for_others(&self) -> Failure {
        match self {
            Failure::Other { text } => Failure::Moment { text: text.clone() },
            failure => failure.clone(),
        }
    }

    fn error(&self, doing: &'static str) -> StoreError {
        match self {
            Failure::DiskFull => StoreError::DiskFull,
            Failure::Broken => StoreError::Broken { doing },
            Failure::Damaged(what) => StoreError::Damaged { what: what.clone() },
            Failure::Panicked(why) => StoreError::Panicked { part: PART, why: why.clone() },
            Failure::Moment { text } => StoreError::Unavailable { doing, source: text.clone().into() },
            Failure::Other { text } => StoreError::Database { doing, source: text.clone().into() },
        }
    }
}

impl Writer {
    /// Starts the thread.
    pub(super) fn start(session: Session, wal: PathBuf, lock: Arc<Lock>) -> std::io::Result<Writer> {
        let queue = Arc::new(Queue::new());
        let theirs = Arc::clone(&queue);
        let work = move || {
            // However the thread ends, nobody is left waiting for it.
            let abandons = Abandons(Arc::clone(&theirs));
            Writing::new(session, wal, lock).run(&theirs);
            drop(abandons);
        };
        let thread = std::thread::Builder::new().name("sqlite-writer".to_owned()).spawn(work)?;
        Ok(Writer { queue, thread: Some(thread) })
    }

    /// Has something done, and waits until it is on the disk.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        doing: &'static str,
        now: Timestamp,
        is_urgent: bool,
        work: impl FnOnce(&mut Session) -> Done<T> + Send + 'static,
    ) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        let job = Job { doing, now, work: Some(work), answer: None, reply };
        // It ends when its handle is dropped, and otherwise only by a bug.
        let ended = || Failure::Panicked("it has ended".to_owned()).error(doing);
        self.queue.put(Box::new(job), is_urgent).await.map_err(|_| ended())?;
        answer.await.unwrap_or_else(|_| Err(ended()))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.queue.close();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            error!("the writer of the database has panicked");
        }
    }
}

/// Empties the queue when the writer ends, in whatever way.
struct Abandons(Arc<Queue<Box<dyn Command>>>);

impl Drop for Abandons {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

/// The thread's own things.
struct Writing {
    session: Session,
    wal: PathBuf,
    lock: Arc<Lock>,
    /// Why nothing is written any more.
    failed: Option<Failure>,
    commits: u32,
    /// Whether something was written since the write-ahead log was last emptied.
    is_dirty: bool,
    is_wal_large: bool,
    /// Whether a command found no space.
    is_full: bool,
}

impl Writing {
    fn new(session: Session, wal: PathBuf, lock: Arc<Lock>) -> Writing {
        let (failed, commits) = (None, 0);
        Writing { session, wal, lock, failed, commits, is_dirty: false, is_wal_large: false, is_full: false }
    }

    fn run(mut self, queue: &Queue<Box<dyn Command>>) {
        loop {
            match catch_unwind(AssertUnwindSafe(|| self.step(queue))) {
                Ok(true) => {}
                Ok(false) => return,
                // Whoever asks from now on is told why nothing is written any more.
                Err(panic) => self.give_up(&Failure::Panicked(panic_text(panic.as_ref()))),
            }
        }
    }

    /// Does what comes next. Whether there can be more.
    fn step(&mut self, queue: &Queue<Box<dyn Command>>) -> bool {
        match queue.next(self.is_dirty.then_some(IDLE_AFTER)) {
            Next::Command { command, is_urgent } => self.commit_group(command, is_urgent, queue),
            Next::Idle => self.empty_wal(),
            Next::Closed => return false,
        }
        true
    }

    /// Carries out a command and those that wait behind it, commits, and answers.
    fn commit_group(&mut self, first: Box<dyn Command>, is_urgent: bool, queue: &Queue<Box<dyn Command>>) {
        let mut group: Vec<Box<dyn Command>> = vec![];
        let done = catch_unwind(AssertUnwindSafe(|| self.transaction(first, is_urgent, queue, &mut group)))
            .unwrap_or_else(|panic| Err(Failure::Panicked(panic_text(panic.as_ref()))));
        if let Err(failure) = &done {
            self.give_up(failure);
            let shared = failure.for_others();
            group.iter_mut().for_each(|command| command.fail(&shared));
        }
        for command in group {
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| command.answer())) {
                self.give_up(&Failure::Panicked(panic_text(panic.as_ref())));
            }
        }
        if done.is_ok() {
            self.after_commit();
        }
        if std::mem::take(&mut self.is_full) {
            // The log may have the very space that is missing.
            self.empty_wal();
        }
    }

    fn transaction(
        &mut self,
        first: Box<dyn Command>,
        mut is_urgent: bool,
        queue: &Queue<Box<dyn Command>>,
        group: &mut Vec<Box<dyn Command>>,
    ) -> Result<(), Failure> {
        group.push(first);
        if let Some(failure) = &self.failed {
            return Err(failure.clone());
        }
        self.execute("BEGIN IMMEDIATE")?;
        let head = self.session.head;
        let floor = self.session.epoch_floor;
        loop {
            let command = group.last_mut().expect("there is at least one");
            self.carry_out(command)?;
            // Whoever is in a hurry is not kept waiting by those behind.
            if is_urgent || GROUP_MAX <= group.len() {
                break;
            }
            match queue.next_now() {
                None => break,
                Some((command, urgent)) => {
                    group.push(command);
                    is_urgent = urgent;
                }
            }
        }
        if self.session.head != head || self.session.epoch_floor != floor {
            self.session.write_head().map_err(|fault| Failure::of(&fault))?;
        }
        self.execute("COMMIT")?;
        self.lock.note_head(self.session.head);
        Ok(())
    }

    /// Carries out one command, so that its failure is its own. Fails if the whole transaction is lost.
    fn carry_out(&mut self, command: &mut Box<dyn Command>) -> Result<(), Failure> {
        self.execute("SAVEPOINT command")?;
        let before = self.session.before();
        let session = &mut self.session;
        let done = catch_unwind(AssertUnwindSafe(|| command.carry_out(session)));
        let failure = match done {
            Ok(Ok(())) => return self.execute("RELEASE command"),
            Ok(Err(failure)) => failure,
            Err(panic) => {
                let failure = Failure::other(format!("a panic: {}", panic_text(panic.as_ref())));
                command.fail(&failure);
                failure
            }
        };
        self.is_full |= matches!(failure, Failure::DiskFull);
        let is_lost = self.session.connection.is_autocommit();
        if failure.is_fatal() || is_lost {
            return Err(failure);
        }
        self.session.go_back(before);
        self.execute("ROLLBACK TO command")?;
        self.execute("RELEASE command")
    }

    fn execute(&self, sql: &str) -> Result<(), Failure> {
        let done = self.session.connection.prepare_cached(sql).and_then(|mut statement| statement.execute([]));
        done.map(drop).map_err(|error| Failure::of(&Fault::Sql(error)))
    }

    /// Rolls the transaction back. After a failure of the disk, nothing is written any more.
    fn give_up(&mut self, failure: &Failure) {
        self.is_full |= matches!(failure, Failure::DiskFull);
        if failure.is_fatal() && self.failed.is_none() {
            error!("the database failed, nothing more is written: {}", failure.error("writing"));
            self.failed = Some(failure.clone());
        }
        if !self.session.connection.is_autocommit()
            && let Err(rollback) = self.execute("ROLLBACK")
        {
            self.failed.get_or_insert(rollback);
        }
        if let Err(fault) = self.session.read_again() {
            let failure = Failure::of(&fault);
            warn!("the database cannot be read again after a failure: {fault}");
            self.failed.get_or_insert(failure);
        }
    }

    fn after_commit(&mut self) {
        self.is_dirty = true;
        self.commits = self.commits.wrapping_add(1);
        if !self.commits.is_multiple_of(WAL_LOOK_EVERY) {
            return;
        }
        let size = std::fs::metadata(&self.wal).map_or(0, |file| file.len());
        if size <= WAL_MAX {
            self.is_wal_large = false;
            return;
        }
        self.empty_wal();
        if !self.is_wal_large && WAL_MAX < std::fs::metadata(&self.wal).map_or(0, |file| file.len()) {
            self.is_wal_large = true;
            warn!(bytes = size, "the write-ahead log grows: a reader keeps it from being emptied");
        }
    }

    /// Empties the write-ahead log into the database. Where a reader is in the way, as far as that goes.
    fn empty_wal(&mut self) {
        self.is_dirty = false;
        if self.failed.is_some() {
            return;
        }
        let connection = &self.session.connection;
        // Whoever reads is not waited for: writing must go on, and the next time may work.
        let emptied = connection
            .busy_timeout(Duration::ZERO)
            .and_then(|()| connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())))
            .and(connection.busy_timeout(BUSY_TIMEOUT));
        let Err(error) = emptied else { return };
        let failure = Failure::of(&Fault::Sql(error));
        match failure {
            // Nothing is lost: it is all in the log.
            Failure::DiskFull | Failure::Moment { .. } | Failure::Other { .. } => {}
            Failure::Broken | Failure::Damaged(_) | Failure::Panicked(_) => self.give_up(&failure),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::SqliteStore;

    fn block_on<F: Future>(future: F) -> F::Output {
        tokio::runtime::Builder::new_current_thread().build().expect("a runtime can be made").block_on(future)
    }

    fn insert(session: &mut Session, zone: &str) -> Done<()> {
        session.connection.execute("INSERT INTO days VALUES (?1, '2026-01-01')", [zone])?;
        Ok(())
    }

    fn days(store: &SqliteStore) -> i64 {
        let sql = "SELECT count(*) FROM days";
        block_on(store.read("counting", move |it| Ok(it.query_row(sql, [], |row| row.get(0))?))).expect("it reads")
    }

    #[test]
    fn a_panic_is_the_commands_own_and_the_writer_goes_on() {
        let store = SqliteStore::in_memory().expect("a database can be made");
        let now = Timestamp::UNIX_EPOCH;
        let panics = store.write("panicking", now, |session| -> Done<()> {
            insert(session, "half")?;
            panic!("this is a test");
        });
        let error = block_on(panics).expect_err("it panics");
        let source = std::error::Error::source(&error).expect("it says why").to_string();
        assert!(source.contains("this is a test"), "{source}");
        assert_eq!(days(&store), 0, "half of a command is nothing");
        block_on(store.write("inserting", now, |session| insert(session, "whole"))).expect("the writer lives");
        assert_eq!(days(&store), 1);
    }

    #[test]
    fn a_command_that_fails_is_rolled_back_alone() {
        let store = SqliteStore::in_memory().expect("a database can be made");
        let now = Timestamp::UNIX_EPOCH;
        std::thread::scope(|scope| {
            // They may share a commit, or not: it makes no difference.
            for zone in ["a", "b", "c"] {
                let store = &store;
                scope.spawn(move || {
                    let done = block_on(store.write("inserting", now, move |session| {
                        insert(session, zone)?;
                        if zone == "b" { insert(session, zone) } else { Ok(()) }
                    }));
                    assert_eq!(done.is_err(), zone == "b", "{done:?}");
                });
            }
        });
        assert_eq!(days(&store), 2);
    }

    #[test]
    fn when_the_writer_has_ended_callers_are_told() {
        let store = SqliteStore::in_memory().expect("a database can be made");
        let writer = store.writer.as_ref().expect("it writes");
        writer.queue.abandon();
        let late = store.write("inserting", Timestamp::UNIX_EPOCH, |session| insert(session, "a"));
        let error = block_on(late).expect_err("nobody is there");
        assert!(error.is_fatal(), "{error}");
    }

    /// A command that takes the writer with it.
    struct Poison;

    impl Command for Poison {
        fn carry_out(&mut self, _: &mut Session) -> Result<(), Failure> {
            Ok(())
        }

        fn fail(&mut self, _: &Failure) {}

        fn answer(self: Box<Self>) {
            panic!("this is a test");
        }
    }

    #[test]
    fn a_panic_of_the_writer_itself_is_fatal_for_whoever_asks_afterwards() {
        let store = SqliteStore::in_memory().expect("a database can be made");
        block_on(store.writer.as_ref().expect("it writes").queue.put(Box::new(Poison), false)).expect("it is there");
        // It may have come into the same commit, or not.
        block_on(store.write("inserting", Timestamp::UNIX_EPOCH, |session| insert(session, "a"))).ok();
        let written = days(&store);
        for _ in 0..2 {
            let late = store.write("inserting", Timestamp::UNIX_EPOCH, |session| insert(session, "b"));
            let error = block_on(late).expect_err("nothing is written any more");
            assert!(error.is_fatal() && error.to_string().contains("panicked: this is a test"), "{error}");
        }
        assert_eq!(days(&store), written, "reading goes on");
    }

    #[test]
    fn a_read_that_never_ends_is_cut_off() {
        let store = SqliteStore::in_memory().expect("a database can be made");
        let endless = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n";
        let read =
            store.read("counting for ever", move |it| Ok(it.query_row(endless, [], |row| row.get::<_, i64>(0))?));
        let error = block_on(read).expect_err("it is cut off");
        assert!(matches!(error, StoreError::Database { .. }), "{error}");
        assert_eq!(days(&store), 0, "the reader reads on");
    }

    #[test]
    fn a_time_finer_than_a_microsecond_is_refused_and_not_changed() {
        let store = SqliteStore::in_memory().expect("a database can be made");
        let fine = Timestamp::from_nanosecond(1).expect("it is a time");
        let write = store.write("writing", fine, move |session| {
            session.append(fine, &punctual_core::journal::Body::RunsForgotten { before: fine })
        });
        assert!(block_on(write).is_err());
    }
}

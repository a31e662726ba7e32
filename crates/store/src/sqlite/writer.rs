//! The one writer: a thread that owns the connection that writes and the state, and commits what waits in groups.
//!
//! In: commands and looks, from any number of callers. Out: an answer to each, after what it changed is on the disk. Invariant: a
//! command is carried out whole or not at all, whether or not its caller is still there; nothing is acknowledged that a
//! crash could take back; after a disk has failed, nothing is acknowledged at all; nobody sees what is not committed.
//!
//! Where the database is only read, the thread follows what its server writes, and looks are all that it carries out.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use punctual_kernel::state::{State, Undo};
use punctual_kernel::transaction::{Needs, Transaction};
use rusqlite::Connection;
use tokio::sync::oneshot;
use tracing::{error, warn};

use super::fault::{Done, Fault, Severity};
use super::lock::Lock;
use super::open::BUSY_TIMEOUT;
use super::queue::{Next, Queue};
use super::readers::now;
use super::session::Session;
use super::{load, save};
use crate::command::{Asked, Command};
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

/// How often the snapshot follows while there is always something to do.
const FOLLOW_EVERY: Duration = Duration::from_secs(1);

/// So many changes the snapshot is behind the state at most: the writer waits while it follows.
const UNSAVED_MAX: usize = 20_000;

/// What the writer is called in messages.
const PART: &str = "writer of the database";

/// A handle to the writer. Dropping it carries out what waits, and ends the thread.
pub(super) struct Writer {
    queue: Arc<Queue<Job>>,
    thread: Option<JoinHandle<()>>,
}

/// Something to be done in a transaction. It may be done more than once, if its transaction has to be repeated; the last time
/// counts.
pub(super) enum Job {
    /// The kernel decides, and what came of it is written.
    Kernel(Box<dyn Command>),
    /// SQL alone, about what the kernel knows nothing of.
    Sql(Box<dyn SqlJob>),
    /// The snapshot is to follow now.
    Snapshot(oneshot::Sender<()>),
    /// A look at the state as it is committed.
    Look(Look),
}

/// What looks at the state, or hears why there is none.
type Look = Box<dyn FnOnce(Result<&State, Failure>) + Send>;

/// Statements that are carried out whole or not at all.
pub(super) trait SqlJob: Send {
    /// Carries it out, without telling anybody.
    fn carry_out(&mut self, connection: &Connection) -> Result<(), Failure>;
    /// Tells the caller what came of it, or why nothing did.
    fn answer(self: Box<Self>, failure: Option<&Failure>);
}

/// Why a command, or a group of them, came to nothing.
#[derive(Debug, Clone)]
pub(super) enum Failure {
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

struct Statements<T, W> {
    doing: &'static str,
    work: W,
    answer: Option<Result<T>>,
    reply: oneshot::Sender<Result<T>>,
}

impl<T, W> SqlJob for Statements<T, W>
where
    T: Send,
    W: FnMut(&Connection) -> Done<T> + Send,
{
    fn carry_out(&mut self, connection: &Connection) -> Result<(), Failure> {
        let done = (self.work)(connection);
        let failed = done.as_ref().map(drop).map_err(Failure::of);
        self.answer = Some(done.map_err(|fault| fault.while_doing(self.doing)));
        failed
    }

    fn answer(self: Box<Self>, failure: Option<&Failure>) {
        let Statements { doing, answer, reply, .. } = *self;
        let nothing = || Err(Failure::other("it was not carried out").error(doing));
        let answer = match (failure, answer) {
            // What has failed by itself keeps its own reason.
            (Some(failure), None | Some(Ok(_))) => Err(failure.error(doing)),
            (_, answer) => answer.unwrap_or_else(nothing),
        };
        // A caller that has gone away does not want to know.
        drop(reply.send(answer));
    }
}

impl Job {
    fn needs(&self) -> Option<&Needs> {
        match self {
            Job::Kernel(command) => Some(command.needs()),
            Job::Sql(_) | Job::Look(_) | Job::Snapshot(_) => None,
        }
    }

    fn answer(self, failure: Option<&Failure>) {
        match self {
            Job::Kernel(command) => {
                let doing = command.doing();
                command.answer(failure.map_or(Ok(()), |failure| Err(failure.error(doing))));
            }
            Job::Sql(job) => job.answer(failure),
            Job::Look(_) | Job::Snapshot(_) => {}
        }
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
    /// Starts the thread of a server.
    pub(super) fn start(session: Session, wal: PathBuf, lock: Arc<Lock>) -> std::io::Result<Writer> {
        Writer::start_as(Writing::new(session, Some(Served { wal, lock })))
    }

    /// Starts a thread that only follows what a server writes.
    pub(super) fn start_reading(session: Session) -> std::io::Result<Writer> {
        Writer::start_as(Writing::new(session, None))
    }

    fn start_as(writing: Writing) -> std::io::Result<Writer> {
        let queue = Arc::new(Queue::new());
        let theirs = Arc::clone(&queue);
        let work = move || {
            // However the thread ends, nobody is left waiting for it.
            let abandons = Abandons(Arc::clone(&theirs));
            writing.run(&theirs);
            drop(abandons);
        };
        let thread = std::thread::Builder::new().name("sqlite-writer".to_owned()).spawn(work)?;
        Ok(Writer { queue, thread: Some(thread) })
    }

    /// Has the kernel decide something, and waits until it is on the disk.
    pub(super) async fn commit<T: Send + 'static>(
        &self,
        doing: &'static str,
        needs: Needs,
        work: impl FnMut(&mut Transaction<'_>) -> punctual_kernel::Result<T> + Send + 'static,
    ) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        let is_urgent = needs.is_urgent;
        let command = Box::new(Asked { doing, needs, work, result: None, reply });
        self.have_done(doing, Job::Kernel(command), is_urgent, answer).await
    }

    /// Looks at the state as it is committed.
    pub(super) async fn look<T: Send + 'static>(
        &self,
        doing: &'static str,
        mut look: impl FnMut(&State) -> T + Send + 'static,
    ) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        let look = move |state: Result<&State, Failure>| {
            let looked = state.and_then(|state| {
                let looked = catch_unwind(AssertUnwindSafe(|| look(state)));
                looked.map_err(|panic| Failure::other(format!("a panic: {}", panic_text(panic.as_ref()))))
            });
            drop(reply.send(looked.map_err(|failure| failure.error(doing))));
        };
        self.have_done(doing, Job::Look(Box::new(look)), false, answer).await
    }

    /// Has the snapshot follow the state, as far as that can be done.
    pub(super) async fn snapshot(&self) {
        let (reply, answer) = oneshot::channel();
        if self.queue.put(Job::Snapshot(reply), false).await.is_ok() {
            answer.await.ok();
        }
    }

    /// Has statements carried out, and waits until they are on the disk.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl FnMut(&Connection) -> Done<T> + Send + 'static,
    ) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        let job = Box::new(Statements { doing, work, answer: None, reply });
        self.have_done(doing, Job::Sql(job), false, answer).await
    }

    async fn have_done<T>(
        &self,
        doing: &'static str,
        job: Job,
        is_urgent: bool,
        answer: oneshot::Receiver<Result<T>>,
    ) -> Result<T> {
        // It ends when its handle is dropped, and otherwise only by a bug.
        let ended = || Failure::Panicked("it has ended".to_owned()).error(doing);
        self.queue.put(job, is_urgent).await.map_err(|_| ended())?;
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
struct Abandons(Arc<Queue<Job>>);

impl Drop for Abandons {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

/// What a server has beside its database.
struct Served {
    wal: PathBuf,
    lock: Arc<Lock>,
}

/// The thread's own things.
struct Writing {
    session: Session,
    /// None where the database is only read.
    served: Option<Served>,
    /// Why nothing is written any more.
    failed: Option<Failure>,
    commits: u32,
    /// Whether something was written since the write-ahead log was last emptied.
    is_dirty: bool,
    is_wal_large: bool,
    /// Whether a command found no space.
    is_full: bool,
    decided: Decided,
    /// When the snapshot last followed.
    followed_at: Instant,
}

/// What has been changed in memory and is not committed.
enum Decided {
    Nothing,
    /// Commands decide: if that comes to no end, nobody knows what they have changed.
    Something,
    Whole(Undo),
}

/// Carries out statements, so that their failure is their own. Whether they found no space. Fails if the whole transaction is
/// lost.
fn carry_out_alone(connection: &Connection, job: &mut dyn SqlJob) -> Result<bool, Failure> {
    let execute = |sql: &str| {
        let done = connection.prepare_cached(sql).and_then(|mut statement| statement.execute([]));
        done.map(drop).map_err(|error| Failure::of(&Fault::Sql(error)))
    };
    execute("SAVEPOINT command")?;
    let Err(failure) = job.carry_out(connection) else {
        execute("RELEASE command")?;
        return Ok(false);
    };
    if failure.is_fatal() || connection.is_autocommit() {
        return Err(failure);
    }
    execute("ROLLBACK TO command")?;
    execute("RELEASE command")?;
    Ok(matches!(failure, Failure::DiskFull))
}

impl Writing {
    fn new(session: Session, served: Option<Served>) -> Writing {
        Writing {
            session,
            served,
            failed: None,
            commits: 0,
            is_dirty: false,
            is_wal_large: false,
            is_full: false,
            decided: Decided::Nothing,
            followed_at: now(),
        }
    }

    fn run(mut self, queue: &Queue<Job>) {
        loop {
            match catch_unwind(AssertUnwindSafe(|| self.step(queue))) {
                Ok(true) => {}
                Ok(false) => break,
                // Whoever asks from now on is told why nothing is written any more.
                Err(panic) => self.give_up(&Failure::Panicked(panic_text(panic.as_ref()))),
            }
        }
        // The next start has less to fold.
        self.follow_with_snapshot();
    }

    /// Does what comes next. Whether there can be more.
    fn step(&mut self, queue: &Queue<Job>) -> bool {
        match queue.next(self.is_dirty.then_some(IDLE_AFTER)) {
            Next::Command { command, is_urgent } => self.commit_group(command, is_urgent, queue),
            Next::Idle => {
                self.follow_with_snapshot();
                self.empty_wal();
            }
            Next::Closed => return false,
        }
        true
    }

    /// Carries out a command and those that wait with it, commits, and answers.
    fn commit_group(&mut self, first: Job, is_urgent: bool, queue: &Queue<Job>) {
        let group = self.gather(first, is_urgent, queue);
        if !group.is_empty() {
            self.carry_out(group);
        }
        if std::mem::take(&mut self.is_full) {
            // The log may have the very space that is missing.
            self.empty_wal();
        }
        let is_time = || FOLLOW_EVERY <= now().duration_since(self.followed_at) && queue.is_empty();
        if UNSAVED_MAX <= self.session.state.unsaved() || is_time() {
            self.follow_with_snapshot();
        }
    }

    /// A command, and those that wait and share its transaction. Looks are carried out on the way: nothing is decided yet.
    fn gather(&mut self, first: Job, is_urgent: bool, queue: &Queue<Job>) -> Vec<Job> {
        let (mut group, mut looks) = (vec![], vec![]);
        let mut next = Some((first, is_urgent));
        while let Some((job, is_urgent)) = next.take() {
            match job {
                Job::Look(look) => looks.push(look),
                Job::Snapshot(reply) => {
                    self.follow_with_snapshot();
                    reply.send(()).ok();
                }
                job => group.push(job),
            }
            // What is urgent is not kept waiting by what comes after it.
            if !is_urgent && group.len() < GROUP_MAX && looks.len() < GROUP_MAX {
                next = queue.next_now();
            }
        }
        if !looks.is_empty() {
            let followed = if self.served.is_none() { self.session.follow() } else { Ok(()) };
            let failed = followed.err().map(|fault| Failure::of(&fault));
            for look in looks {
                look(failed.clone().map_or(Ok(&self.session.state), Err));
            }
        }
        group
    }

    /// Brings the snapshot to where the state is.
    fn follow_with_snapshot(&mut self) {
        if self.served.is_none() || self.failed.is_some() || self.session.is_saved() {
            return;
        }
        self.followed_at = now();
        let written = self.execute("BEGIN IMMEDIATE").and_then(|()| {
            self.session.write_snapshot().map_err(|fault| Failure::of(&fault))?;
            self.execute("COMMIT")
        });
        match written {
            Ok(()) => {
                self.session.state.note_saved();
                self.session.snapshot_seq = self.session.state.seq();
            }
            Err(failure) => {
                warn!("the snapshot could not be written: {}", failure.error("writing the snapshot"));
                self.give_up(&failure);
            }
        }
    }

    /// Carries out commands in one transaction. If one of them cannot be written, each has a transaction of its own: it must not
    /// take the others with it.
    fn carry_out(&mut self, mut group: Vec<Job>) {
        let done = catch_unwind(AssertUnwindSafe(|| self.transaction(&mut group)));
        let done = done.unwrap_or_else(|panic| Err(Failure::other(format!("a panic: {}", panic_text(panic.as_ref())))));
        if let Err(failure) = &done {
            self.give_up(failure);
            if 1 < group.len() && matches!(failure, Failure::Other { .. }) {
                return group.into_iter().for_each(|job| self.carry_out(vec![job]));
            }
        }
        for job in group {
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| job.answer(done.as_ref().err()))) {
                self.give_up(&Failure::Panicked(panic_text(panic.as_ref())));
            }
        }
        if done.is_ok() {
            self.after_commit();
        }
    }

    fn transaction(&mut self, group: &mut [Job]) -> Result<(), Failure> {
        if let Some(failure) = &self.failed {
            return Err(failure.clone());
        }
        self.execute("BEGIN IMMEDIATE")?;
        let needs = Needs::of_all(group.iter().filter_map(Job::needs));
        let Session { connection, state, cluster, head, .. } = &mut self.session;
        let found = load::find(connection, state, &needs).map_err(|fault| Failure::of(&fault))?;
        self.decided = Decided::Something;
        let mut transaction = Transaction::new(state, *head, std::mem::take(cluster), found);
        for job in group.iter_mut() {
            match job {
                Job::Kernel(command) => command.work(&mut transaction),
                Job::Look(_) | Job::Snapshot(_) => unreachable!("they are carried out before"),
                Job::Sql(job) => self.is_full |= carry_out_alone(connection, &mut **job)?,
            }
        }
        let Transaction { head, changes, cluster, undo, .. } = transaction;
        (self.session.cluster, self.decided) = (cluster, Decided::Whole(undo));
        let saved = save::append(&self.session.connection, &changes).and_then(|()| self.session.put_head(head));
        saved.map_err(|fault| Failure::of(&fault))?;
        self.execute("COMMIT")?;
        self.decided = Decided::Nothing;
        if let Some(served) = &self.served {
            served.lock.note_head(self.session.head);
        }
        Ok(())
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
        let went_back = match std::mem::replace(&mut self.decided, Decided::Nothing) {
            Decided::Nothing => Ok(()),
            Decided::Something => self.session.read_again(),
            Decided::Whole(undo) => self.session.take_back(undo),
        };
        if let Err(fault) = went_back {
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
        let Some(wal) = self.served.as_ref().map(|served| served.wal.clone()) else { return };
        let size = std::fs::metadata(&wal).map_or(0, |file| file.len());
        if size <= WAL_MAX {
            self.is_wal_large = false;
            return;
        }
        self.empty_wal();
        if !self.is_wal_large && WAL_MAX < std::fs::metadata(&wal).map_or(0, |file| file.len()) {
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
    use crate::kept::Kept;
    use crate::sqlite::SqliteStore;

    fn block_on<F: Future>(future: F) -> F::Output {
        tokio::runtime::Builder::new_current_thread().build().expect("a runtime can be made").block_on(future)
    }

    fn insert(connection: &Connection, zone: &str) -> Done<()> {
        connection.execute("INSERT INTO agents_seen VALUES (?1, 1)", [zone])?;
        Ok(())
    }

    fn days(store: &SqliteStore) -> i64 {
        let sql = "SELECT count(*) FROM agents_seen";
        block_on(store.read("counting", move |it| Ok(it.query_row(sql, [], |row| row.get(0))?))).expect("it reads")
    }

    fn entries(store: &SqliteStore) -> usize {
        use crate::roles::Journal;
        block_on(store.entries(0, 10)).expect("it reads").len()
    }

    #[test]
    fn a_panic_is_the_commands_own_and_the_writer_goes_on() {
        let store = SqliteStore::in_memory().expect("a database can be made");
        let panics = store.write("panicking", |connection| -> Done<()> {
            insert(connection, "half")?;
            panic!("this is a test");
        });
        let error = block_on(panics).expect_err("it panics");
        let source = std::error::Error::source(&error).expect("it says why").to_string();
        assert!(source.contains("this is a test"), "{source}");
        assert_eq!(days(&store), 0, "half of a command is nothing");
        block_on(store.write("inserting", |connection| insert(connection, "whole"))).expect("the writer lives");
        assert_eq!(days(&store), 1);
    }

    #[test]
    fn a_panic_while_the_kernel_decides_leaves_no_trace_in_memory() {
        let store = SqliteStore::in_memory().expect("a database can be made");
        let (now, day) = (jiff::Timestamp::UNIX_EPOCH, jiff::civil::date(2026, 1, 1));
        let panics = store.commit("panicking", Needs::default(), move |transaction| -> punctual_kernel::Result<()> {
            transaction.begin_day(now, "UTC", day);
            panic!("this is a test");
        });
        block_on(panics).expect_err("it panics");
        let begin = || crate::commands::begin_day(&store, now, "UTC", day);
        assert!(block_on(begin()).expect("the writer lives"), "the day has not begun before");
        assert!(!block_on(begin()).expect("the writer lives"));
        assert_eq!(entries(&store), 1);
    }

    #[test]
    fn what_cannot_be_written_is_taken_back_alone() {
        let store = SqliteStore::in_memory().expect("a database can be made");
        let (now, day) = (jiff::Timestamp::UNIX_EPOCH, jiff::civil::date(2026, 1, 1));
        let fine = jiff::Timestamp::from_nanosecond(1).expect("it is a time");
        std::thread::scope(|scope| {
            // They may share a commit, or not: it makes no difference.
            for (zone, at) in [("A", now), ("B", fine), ("C", now)] {
                let store = &store;
                scope.spawn(move || {
                    let done = block_on(crate::commands::begin_day(store, at, zone, day));
                    assert_eq!(done.is_err(), zone == "B", "{done:?}");
                });
            }
        });
        assert_eq!(entries(&store), 2);
        assert!(block_on(crate::commands::begin_day(&store, now, "B", day)).expect("it is fine now"));
    }

    #[test]
    fn a_command_that_fails_is_rolled_back_alone() {
        let store = SqliteStore::in_memory().expect("a database can be made");
        std::thread::scope(|scope| {
            // They may share a commit, or not: it makes no difference.
            for zone in ["a", "b", "c"] {
                let store = &store;
                scope.spawn(move || {
                    let done = block_on(store.write("inserting", move |connection| {
                        insert(connection, zone)?;
                        if zone == "b" { insert(connection, zone) } else { Ok(()) }
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
        let writer = &store.writer;
        writer.queue.abandon();
        let late = store.write("inserting", |connection| insert(connection, "a"));
        let error = block_on(late).expect_err("nobody is there");
        assert!(error.is_fatal(), "{error}");
    }

    /// A command that takes the writer with it.
    struct Poison;

    impl SqlJob for Poison {
        fn carry_out(&mut self, _: &Connection) -> Result<(), Failure> {
            Ok(())
        }

        fn answer(self: Box<Self>, _: Option<&Failure>) {
            panic!("this is a test");
        }
    }

    #[test]
    fn a_panic_of_the_writer_itself_is_fatal_for_whoever_asks_afterwards() {
        let store = SqliteStore::in_memory().expect("a database can be made");
        let queue = &store.writer.queue;
        block_on(queue.put(Job::Sql(Box::new(Poison)), false)).expect("it is there");
        // It may have come into the same commit, or not.
        block_on(store.write("inserting", |connection| insert(connection, "a"))).ok();
        let written = days(&store);
        for _ in 0..2 {
            let late = store.write("inserting", |connection| insert(connection, "b"));
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
}

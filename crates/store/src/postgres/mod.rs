//! PostgreSQL: the store that many nodes share.
//!
//! Each process has a writer ([`writer`]) with the state of the kernel. Whoever writes takes the pen, reads what others have
//! written since, decides in memory, and appends entries in one more round trip; whoever looks reads what others have written, and
//! takes no pen. The snapshot follows beside that ([`saver`]). Leases are renewed on a thread and a connection of their own
//! ([`heart`]).
//!
//! Callers never hold a connection: what they ask for is done on the store's own threads, and goes on when they stop
//! waiting for it.

mod answers;
mod connect;
mod copies;
mod fault;
mod heart;
mod history;
mod import;
mod journal;
mod listen;
mod load;
mod look;
mod migrate;
mod nodes;
mod open;
mod output;
mod ownership;
mod pen;
mod prune;
mod records;
mod rows;
mod save;
mod saver;
mod statement;
mod sums;
mod tail;
mod time;
mod tls;
mod tokens;
mod values;
mod verify;
mod writer;

pub use import::import;

use std::future::Future;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use punctual_core::RunId;
use punctual_core::journal::Entry;
use punctual_kernel::state::State;
use punctual_kernel::transaction::{Needs, Transaction};
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::AbortHandle;
use uuid::Uuid;

use self::connect::{Address, Connections};
use self::fault::{Done, Fault};
use self::heart::Heart;
use self::listen::Listeners;
use self::look::{AskedLook, Question};
use self::ownership::Ownership;
use self::time::Time;
use crate::command::{Asked, Command};
use crate::error::{Result, StoreError};
use crate::kept::{EndedBetween, Kept};
use crate::panics::FailedPart;

/// How long a read may take before it is given up. A connection that stands still would be waited for for ever.
const READ_MAX: Duration = Duration::from_secs(30);

/// How long closing waits for the last piece of the snapshot.
const CLOSE_MAX: Duration = Duration::from_secs(2);

/// How many reads of the API go on or wait at once, more than there are connections of clients; more are refused.
const API_ASKED_MAX: usize = 1_024;

/// How many of them may be long ones.
const API_LONG_ASKED_MAX: usize = 64;

/// How many looks of the API at the state wait for it at once.
const API_LOOKS_MAX: usize = 32;

/// How many long reads of the API go on at once: sums and searches, whose work grows with the history.
const API_LONG_MAX: usize = 2;

/// A store in a PostgreSQL database.
///
/// Times are kept in microseconds; a finer one is refused.
pub struct PostgresStore {
    commands: mpsc::UnboundedSender<Box<dyn Command>>,
    questions: mpsc::UnboundedSender<Question>,
    address: Address,
    connections: Connections,
    /// Who reads through this handle.
    reads: ReadsOf,
    ownership: Ownership,
    heart: Heart,
    time: Time,
    listeners: Listeners,
    /// What is worth a warning about the server.
    warnings: Vec<String>,
    /// What of it is gone for good, if anything.
    failed_part: FailedPart,
    threads: Arc<Threads>,
}

/// The store's own threads. They end with the last handle, when the writer has brought the snapshot to where the state is, or
/// cannot do that in time.
struct Threads {
    runtime: Option<Runtime>,
    /// Closed when the writer has ended.
    ended: Mutex<Receiver<()>>,
}

impl Threads {
    fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().expect("it is there until it is dropped")
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        let ended = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner);
        // Nothing is ever sent. The next process that opens folds what is missing.
        ended.recv_timeout(CLOSE_MAX).ok();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Who reads through a handle, and under which bounds.
#[derive(Clone)]
enum ReadsOf {
    /// The engine: nothing waits for a place but a connection.
    Engine,
    /// Requests of the API.
    Api {
        time_max: Duration,
        /// For all that go on or wait.
        asked: Arc<Semaphore>,
        /// The same for long ones.
        long_asked: Arc<Semaphore>,
        /// For long ones that go on.
        long: Arc<Semaphore>,
        /// For looks at the state.
        looks: Arc<Semaphore>,
    },
}

/// Ends a task when whoever waits for it is gone.
struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl PostgresStore {
    /// The same store for requests of the API. Its reads have connections of their own, so that they take none of the engine's;
    /// each may take so long and is then ended by the server, and one that its caller does not wait for any more is
    /// cancelled. Where too many wait or the time is over, it is [`StoreError::Overloaded`]. What is written goes through the
    /// same writer.
    pub fn for_api(&self, time_max: Duration) -> Result<PostgresStore> {
        let _on_its_threads = self.threads.runtime().enter();
        let reads = ReadsOf::Api {
            time_max,
            asked: Arc::new(Semaphore::new(API_ASKED_MAX)),
            long_asked: Arc::new(Semaphore::new(API_LONG_ASKED_MAX)),
            long: Arc::new(Semaphore::new(API_LONG_MAX)),
            looks: Arc::new(Semaphore::new(API_LOOKS_MAX)),
        };
        Ok(PostgresStore {
            commands: self.commands.clone(),
            questions: self.questions.clone(),
            address: self.address.clone(),
            connections: self.address.api_connections(time_max)?,
            reads,
            ownership: self.ownership.clone(),
            heart: self.heart.clone(),
            time: self.time.clone(),
            listeners: self.listeners.clone(),
            warnings: vec![],
            failed_part: self.failed_part.clone(),
            threads: Arc::clone(&self.threads),
        })
    }

    /// What whoever runs the server should know: settings under which what was acknowledged can be lost.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Reads something on the store's own threads, and gives up when that takes too long.
    async fn read<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl Future<Output = Done<T>> + Send + 'static,
    ) -> Result<T> {
        match &self.reads {
            ReadsOf::Engine => self.read_slowly(doing, work).await,
            ReadsOf::Api { time_max, asked, .. } => self.read_in_time(doing, *time_max, asked, work).await,
        }
    }

    /// Reads something whose work grows with the history. It leaves places for what is quickly read.
    async fn read_long<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl Future<Output = Done<T>> + Send + 'static,
    ) -> Result<T> {
        let ReadsOf::Api { time_max, long_asked, long, .. } = &self.reads else {
            return self.read_slowly(doing, work).await;
        };
        let long = Arc::clone(long);
        let work = async move {
            let _place = long.acquire_owned().await;
            work.await
        };
        self.read_in_time(doing, *time_max, long_asked, work).await
    }

    /// Reads something for the engine.
    async fn read_slowly<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl Future<Output = Done<T>> + Send + 'static,
    ) -> Result<T> {
        let slow = |_| Err(Fault::Slow(READ_MAX.as_secs()));
        self.read_on(doing, async move { tokio::time::timeout(READ_MAX, work).await.unwrap_or_else(slow) }).await
    }

    /// Reads something for a request of the API: in time, and only as long as its caller waits.
    async fn read_in_time<T: Send + 'static>(
        &self,
        doing: &'static str,
        time_max: Duration,
        asked: &Arc<Semaphore>,
        work: impl Future<Output = Done<T>> + Send + 'static,
    ) -> Result<T> {
        let overloaded = |why| StoreError::Overloaded { doing, why };
        let place = Arc::clone(asked).try_acquire_owned();
        let place = place.map_err(|_| overloaded("too many requests wait for it"))?;
        let reading = self.threads.runtime().spawn(async move {
            let read = tokio::time::timeout(time_max, work).await;
            drop(place);
            read
        });
        let _ends_with_its_caller = AbortOnDrop(reading.abort_handle());
        match reading.await {
            Ok(Ok(Ok(read))) => Ok(read),
            Ok(Ok(Err(fault))) if fault.is_cut_off() => Err(overloaded("it takes longer than a request may")),
            Ok(Ok(Err(fault))) => Err(fault.while_doing(doing)),
            Ok(Err(_)) => Err(overloaded("it takes longer than a request may")),
            Err(_) => Err(stopped(doing)),
        }
    }

    /// Does something on the store's own threads, however long it takes.
    async fn read_on<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl Future<Output = Done<T>> + Send + 'static,
    ) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        self.threads.runtime().spawn(async move { drop(reply.send(work.await)) });
        answer.await.map_err(|_| stopped(doing))?.map_err(|fault| fault.while_doing(doing))
    }
}

impl Kept for PostgresStore {
    async fn commit<T: Send + 'static>(
        &self,
        doing: &'static str,
        needs: Needs,
        work: impl FnMut(&mut Transaction<'_>) -> punctual_kernel::Result<T> + Send + 'static,
    ) -> Result<T> {
        self.failed_part.check()?;
        let (reply, answer) = oneshot::channel();
        let command = Box::new(Asked { doing, needs, work, result: None, reply });
        self.commands.send(command).map_err(|_| stopped(doing))?;
        answer.await.map_err(|_| stopped(doing))?
    }

    async fn look<T: Send + 'static>(
        &self,
        doing: &'static str,
        look: impl FnMut(&State) -> T + Send + 'static,
    ) -> Result<T> {
        self.failed_part.check()?;
        let questions = self.questions.clone();
        let ask = async move {
            let (reply, answer) = oneshot::channel();
            let look = Question::Look(Box::new(AskedLook { doing, look, reply }));
            questions.send(look).map_err(|_| stopped(doing))?;
            answer.await.map_err(|_| stopped(doing))?
        };
        let ReadsOf::Api { time_max, asked, looks, .. } = &self.reads else { return ask.await };
        let looks = Arc::clone(looks);
        let ask = async move {
            let _place = looks.acquire_owned().await;
            Ok(ask.await?)
        };
        self.read_in_time(doing, *time_max, asked, ask).await
    }

    async fn past_of_run(&self, run: RunId, limit: usize) -> Result<Vec<Entry>> {
        self.read_past_of_run(run, limit).await
    }

    async fn ends_between(&self, ended: EndedBetween) -> Result<Vec<Entry>> {
        self.read_ends_between(ended).await
    }

    async fn entries_about(&self, subjects: Vec<Uuid>, each: usize) -> Result<Vec<Entry>> {
        self.read_about(subjects, each).await
    }
}

/// What whoever asks a store is told that is no more.
fn stopped(doing: &'static str) -> StoreError {
    StoreError::Unavailable { doing, source: "the store has stopped".into() }
}

impl std::fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresStore").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use punctual_core::NodeId;
    use punctual_core::journal::Body;
    use tokio::runtime::Builder;

    use super::*;
    use crate::requests::Head;

    /// A store in a schema of its own.
    fn fresh_store() -> PostgresStore {
        PostgresStore::open(&fresh_schema()).expect("a store can be opened")
    }

    fn fresh_schema() -> String {
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
        format!("{address}?options=-c%20search_path%3D{name}")
    }

    fn block_on<F: Future>(future: F) -> F::Output {
        Builder::new_current_thread().enable_all().build().expect("a runtime can be made").block_on(future)
    }

    #[test]
    fn a_panic_is_the_commands_own_and_the_writer_goes_on() {
        let store = fresh_store();
        let panics = store
            .commit("panicking", Needs::default(), |_| -> punctual_kernel::Result<()> { panic!("this is a test") });
        let fine = store.commit("looking", Needs::default(), |_| Ok(7));
        let (panicked, fine) = block_on(async { tokio::join!(panics, fine) });
        let error = panicked.expect_err("it panics");
        let source = std::error::Error::source(&error).expect("it says why").to_string();
        assert!(!error.is_fatal() && source.contains("this is a test"), "{error}: {source}");
        assert_eq!(fine.expect("it is not to blame"), 7);
        assert_eq!(block_on(store.commit("looking", Needs::default(), |_| Ok(8))).expect("the writer lives"), 8);
    }

    #[test]
    fn a_panic_of_a_part_is_fatal_for_whoever_asks_afterwards() {
        let store = fresh_store();
        block_on(store.failed_part.clone().watch("listener", async { panic!("this is a test") }));
        let error = block_on(store.commit("looking", Needs::default(), |_| Ok(()))).expect_err("a part is gone");
        assert!(error.is_fatal() && error.to_string().contains("listener has panicked: this is a test"), "{error}");
    }

    #[test]
    fn who_is_far_behind_reads_a_page_with_the_pen_and_the_rest_without_it() {
        let address = fresh_schema();
        let open = || PostgresStore::open(&address).expect("a store can be opened");
        let (writing, lagging) = (open(), open());
        block_on(lagging.look("looking", |_| ())).expect("it has seen the beginning");
        let commits = 2 * tail::ROWS_MAX_WITH_PEN as u64;
        for number in 0..commits {
            let joined = move || Body::NodeJoined { node: NodeId(Uuid::from_u128(number.into())), name: String::new() };
            let write =
                writing.commit("writing", Needs::default(), move |it| it.append(Timestamp::UNIX_EPOCH, joined()));
            block_on(write).expect("it is written");
        }
        let (tail, _) = block_on(async {
            let connection = lagging.address.config.connect(tokio_postgres::NoTls).await.expect("a connection");
            tokio::select! {
                taken = pen::take(&connection.0, Head::default(), false) => taken.expect("the pen is free"),
                _ = connection.1 => panic!("the connection ended"),
            }
        });
        assert_eq!((tail.rows(), tail.is_whole), (tail::ROWS_MAX_AT_ONCE, false));
        // Who decides knows everything all the same.
        let head = block_on(lagging.commit("deciding", Needs::default(), |it| Ok(it.head))).expect("it decides");
        assert_eq!(head.seq, commits);
    }
}

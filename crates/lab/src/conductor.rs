//! A small Conductor: starts of workflows over HTTP, on a port of its own, and the bad days of a server on request.
//!
//! In: requests, and what a test wants to happen to them. Out: what was started, and what was asked, in order. It understands
//! idempotency keys, so that a test sees whether a retry would have been a second start. Workflows run until they are
//! [finished](Conductor::finish); nothing is carried out.
//!
//! One thread and no limit on connections: a thousand starts at once are a thousand tasks.
//!
//! ```no_run
//! let conductor = punctual_lab::conductor::Conductor::start()?;
//! conductor.lose_answers(1);
//! // … something that starts a workflow at `conductor.url()`, and does so again when the answer is lost …
//! assert_eq!(conductor.starts().len(), 1);
//! # Ok::<(), std::io::Error>(())
//! ```

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use serde_json::Value;
use tokio::net::TcpSocket;
use tokio::sync::mpsc;

use self::answers::State;
use self::serve::Order;

mod answers;
mod http;
mod serve;

/// A Conductor that answers until it is dropped.
pub struct Conductor {
    port: u16,
    /// Bound and never listening: nobody else gets the port while connections are refused.
    _place: TcpSocket,
    state: Shared,
    orders: Option<mpsc::UnboundedSender<Order>>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread and the test share.
type Shared = Arc<Mutex<State>>;

/// A workflow that was started.
#[derive(Debug, Clone, PartialEq)]
pub struct Start {
    /// The name of its definition.
    pub name: String,
    /// The id that was answered.
    pub id: String,
    /// The whole request.
    pub body: Value,
    /// When.
    pub at: SystemTime,
}

/// A request as it came, whatever became of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// The method.
    pub method: String,
    /// The path, without the query.
    pub path: String,
    /// What follows the question mark; empty without one.
    pub query: String,
    /// The headers in their order, the names in small letters.
    pub headers: Vec<(String, String)>,
    /// The body; null where it is no JSON.
    pub body: Value,
}

impl Seen {
    /// The value of a header, by its name in small letters.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

impl Conductor {
    /// Starts one on a free port of this machine.
    pub fn start() -> io::Result<Conductor> {
        let place = serve::socket(0)?;
        let port = place.local_addr()?.port();
        let state = Shared::default();
        let (orders, taken) = mpsc::unbounded_channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let shared = Arc::clone(&state);
        let work = move || runtime.block_on(serve::serve(port, shared, taken));
        let thread = std::thread::Builder::new().name("conductor".to_owned()).spawn(work)?;
        let conductor = Conductor { port, _place: place, state, orders: Some(orders), thread: Some(thread) };
        conductor.accept()?;
        Ok(conductor)
    }

    /// The base of its API, without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://{}/api", SocketAddr::from((Ipv4Addr::LOCALHOST, self.port)))
    }

    /// Every workflow that was started, in order.
    pub fn starts(&self) -> Vec<Start> {
        self.state().starts.clone()
    }

    /// Every definition of a workflow that was registered, in order.
    pub fn definitions(&self) -> Vec<Value> {
        self.state().definitions.clone()
    }

    /// How many requests came, whatever became of them.
    pub fn requests(&self) -> usize {
        self.state().seen.len()
    }

    /// Every request that came, in order.
    pub fn seen(&self) -> Vec<Seen> {
        self.state().seen.clone()
    }

    /// Answers the next requests with this instead of carrying them out. Requests for tokens are left alone.
    pub fn fail_next(&self, count: usize, status: u16, body: impl Into<String>) {
        self.state().failing = Some(answers::Failing { count, status, body: body.into(), headers: vec![] });
    }

    /// The same, with headers: `("retry-after", "3")`.
    pub fn fail_next_with(&self, count: usize, status: u16, headers: &[(&str, &str)], body: impl Into<String>) {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        self.state().failing = Some(answers::Failing { count, status, body: body.into(), headers });
    }

    /// Carries the next starts out, and closes the connection instead of answering.
    pub fn lose_answers(&self, count: usize) {
        self.state().losing = count;
    }

    /// From now on every answer waits for this long, after what was asked is done.
    pub fn delay(&self, delay: Duration) {
        self.state().delay = delay;
    }

    /// Closes every connection and refuses new ones, until [`accept`](Conductor::accept). True when this returns.
    pub fn refuse(&self) -> io::Result<()> {
        self.order(false)
    }

    /// Takes connections again, on the same port, with all that is known. True when this returns.
    pub fn accept(&self) -> io::Result<()> {
        self.order(true)
    }

    /// Gives a workflow this status, such as `COMPLETED` or `PAUSED`. One that was not started has none.
    pub fn finish(&self, id: &str, status: &str) {
        self.finish_because(id, status, None);
    }

    /// The same, with its `reasonForIncompletion`.
    pub fn finish_because(&self, id: &str, status: &str, reason: Option<&str>) {
        if let Some(workflow) = self.state().workflows.get_mut(id) {
            workflow.status = status.to_owned();
            workflow.reason = reason.map(str::to_owned);
        }
    }

    /// From now on only holders of a token get in, and only this key gets one. Tokens that were given are void.
    pub fn require_key(&self, id: &str, secret: &str) {
        let mut state = self.state();
        state.key = Some((id.to_owned(), secret.to_owned()));
        state.tokens += 1;
    }

    /// Voids the tokens that were given.
    pub fn expire_tokens(&self) {
        self.state().tokens += 1;
    }

    /// What `GET /api/scheduler/schedules` answers: an array.
    pub fn set_schedules(&self, schedules: Value) {
        self.state().schedules = schedules;
    }

    /// What `GET /api/scheduler/nextFewSchedules` answers: an array of milliseconds of the Unix epoch.
    pub fn set_next_few(&self, times: &[i64]) {
        self.state().next_few = times.into();
    }

    /// The schedules as they are now: some may have been paused.
    pub fn schedules(&self) -> Value {
        self.state().schedules.clone()
    }

    /// From now on schedules are paused by GET, and PUT is refused: as on servers of Orkes.
    pub fn pause_by_get(&self) {
        self.state().pauses_by_get = true;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }

    fn order(&self, is_open: bool) -> io::Result<()> {
        let (done, is_done) = std::sync::mpsc::sync_channel(1);
        let is_sent = self.orders.as_ref().is_some_and(|orders| orders.send(Order { is_open, done }).is_ok());
        let answer = is_done.recv().ok().filter(|_| is_sent);
        answer.unwrap_or_else(|| Err(io::Error::other("the thread of the Conductor is gone")))
    }
}

impl Drop for Conductor {
    fn drop(&mut self) {
        // The thread ends when nobody can give it orders any more.
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

/// What is shared is whole between statements, so a panic of a test elsewhere spoils nothing.
fn locked(state: &Shared) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

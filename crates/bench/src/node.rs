//! Whole nodes in this process, whose work is nothing: what is measured is Punctual's own.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, bail};
use async_trait::async_trait;
use jiff::Timestamp;
use punctual_core::plan::{AgentApproval, Limits};
use punctual_core::run::Report;
use punctual_core::time::Zones;
use punctual_core::{Elapsed, RunId};
use punctual_engine::clock::{Clock, SteadyClock, StoreClock};
use punctual_engine::edit::Editor;
use punctual_engine::ids::RandomIds;
use punctual_engine::node::{self, NodeError, Nudges, Parts};
use punctual_engine::roster::{AgentInfo, Agents, Risk, Roster};
use punctual_engine::runner::{Assignment, Ending, Finish, RunContext, Runner, Runners, Stop, StopLevel};
use punctual_engine::settings::Settings;
use punctual_engine::spawn::TokioSpawn;
use punctual_store::Store;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::database::Database;

/// The agent whose work is nothing.
pub(crate) const AGENT: &str = "bench";

/// How many runs a node carries out at once: more than it starts in one go.
const POOL_SIZE: usize = 5_000;

/// How long to wait between two looks at what has no nudge.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// One start of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Start {
    /// Which run.
    pub(crate) run: RunId,
    /// When it was to start.
    pub(crate) scheduled_at: Timestamp,
    /// When its work began.
    pub(crate) started_at: Timestamp,
}

impl Start {
    /// How late it was, in milliseconds; less than nothing is early.
    pub(crate) fn late_ms(&self) -> f64 {
        self.started_at.duration_since(self.scheduled_at).as_secs_f64() * 1_000.0
    }
}

/// The starts that nodes have seen.
#[derive(Default)]
pub(crate) struct Starts {
    list: Mutex<Vec<Start>>,
    count: AtomicU64,
    changed: Notify,
}

impl Starts {
    fn add(&self, start: Start) {
        self.list.lock().unwrap_or_else(PoisonError::into_inner).push(start);
        self.count.fetch_add(1, Ordering::AcqRel);
        self.changed.notify_waiters();
    }

    /// How many there were.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// All of them, in their order. From now on there are none again.
    pub(crate) fn take(&self) -> Vec<Start> {
        let list = std::mem::take(&mut *self.list.lock().unwrap_or_else(PoisonError::into_inner));
        self.count.store(0, Ordering::Release);
        list
    }

    /// Waits until there were so many, for so long at most.
    pub(crate) async fn reach(&self, count: u64, at_most: Duration) -> anyhow::Result<()> {
        let reached = async {
            loop {
                let changed = self.changed.notified();
                if count <= self.count() {
                    return;
                }
                changed.await;
            }
        };
        let waited = tokio::time::timeout(at_most, reached).await;
        waited.with_context(|| format!("only {} of {count} runs started within {at_most:?}", self.count()))
    }
}

/// Does nothing, and says when.
struct NoOp {
    clock: Arc<dyn Clock>,
    starts: Arc<Starts>,
}

#[async_trait]
impl Runner for NoOp {
    async fn run(&self, assignment: Assignment, _: Stop) -> Finish {
        let RunContext { run_id: run, scheduled_at, .. } = assignment.context;
        self.starts.add(Start { run, scheduled_at, started_at: self.clock.now() });
        Finish { ending: Ending::Succeeded, report: Report::default() }
    }
}

/// Goes on until its node stops: keeps its agent at its limit.
struct Endless;

#[async_trait]
impl Runner for Endless {
    async fn run(&self, _: Assignment, mut stop: Stop) -> Finish {
        stop.reached(StopLevel::Ask).await;
        Finish { ending: Ending::Stopped, report: Report::default() }
    }
}

/// What nodes of a measurement have in common.
#[derive(Debug, Clone)]
pub(crate) struct Agency {
    /// The agent whose work is nothing.
    pub(crate) agent: String,
    /// So many agents more, each with one run at work that never ends.
    pub(crate) busy: usize,
}

impl Default for Agency {
    fn default() -> Agency {
        Agency { agent: AGENT.to_owned(), busy: 0 }
    }
}

/// The name of an agent that is at its limit.
pub(crate) fn busy_agent(number: usize) -> String {
    format!("busy-{number:04}")
}

impl Agency {
    fn roster(&self) -> Roster {
        let info = |max_concurrent| AgentInfo {
            runner: "process",
            risk: Risk::Exec,
            approval: AgentApproval::Schedule,
            timeout: Elapsed::from_seconds(86_400),
            max_concurrent,
        };
        let busy: Vec<String> = (0..self.busy).map(busy_agent).collect();
        let limits = Limits { agents: busy.iter().map(|name| (name.clone(), 1)).collect(), ..Limits::default() };
        let infos = busy.into_iter().map(|name| (name, info(Some(1))));
        Roster::new(Agents::new(infos.chain([(self.agent.clone(), info(None))]).collect(), limits))
    }

    fn runners(&self, clock: &Arc<dyn Clock>, starts: &Arc<Starts>) -> Runners {
        let (endless, no_op): (Arc<dyn Runner>, Arc<dyn Runner>) =
            (Arc::new(Endless), Arc::new(NoOp { clock: Arc::clone(clock), starts: Arc::clone(starts) }));
        let mut runners: BTreeMap<String, Arc<dyn Runner>> =
            (0..self.busy).map(|number| (busy_agent(number), Arc::clone(&endless))).collect();
        runners.insert(self.agent.clone(), no_op);
        Runners::new(runners)
    }
}

/// A node, and what tests and people do beside it.
pub(crate) struct Node {
    /// Its store.
    pub(crate) store: Arc<dyn Store>,
    /// Its clock.
    pub(crate) clock: Arc<dyn Clock>,
    /// Its settings.
    pub(crate) settings: Arc<Settings>,
    /// Asks it for things.
    pub(crate) editor: Editor,
    /// Wakes it.
    pub(crate) nudges: Arc<Nudges>,
    parts: Parts,
    running: Option<(CancellationToken, JoinHandle<Result<(), NodeError>>)>,
}

impl Node {
    /// Opens a database for a node, which is not started yet.
    pub(crate) async fn open(
        database: &Database,
        name: &str,
        agency: &Agency,
        starts: &Arc<Starts>,
    ) -> anyhow::Result<Node> {
        let store = database.open().await?;
        let clock: Arc<dyn Clock> = Arc::new(SteadyClock::new(StoreClock::new(Arc::clone(&store))));
        let settings = Arc::new(Settings {
            places: POOL_SIZE,
            remote_places: POOL_SIZE,
            roster: Arc::new(agency.roster()),
            // What never ends is not waited for.
            drain: Elapsed::from_seconds(if 0 < agency.busy { 1 } else { 30 }),
            ..Settings::new(name, Default::default(), Zones::bundled())
        });
        let nudges = Arc::new(Nudges::default());
        let heard = Arc::clone(&nudges);
        store.tell(Arc::new(move |hint| heard.hear(hint)));
        let ids = Arc::new(RandomIds);
        let parts = Parts {
            store: Arc::clone(&store),
            clock: Arc::clone(&clock),
            ids: ids.clone(),
            settings: Arc::clone(&settings),
            runners: Arc::new(agency.runners(&clock, starts)),
            nudges: Arc::clone(&nudges),
            spawn: Arc::new(TokioSpawn),
            meters: Default::default(),
        };
        let editor = Editor::new(Arc::clone(&store), ids, Arc::clone(&settings));
        Ok(Node { store, clock, settings, editor, nudges, parts, running: None })
    }

    /// The time, as the node has it.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Starts it.
    pub(crate) fn start(&mut self) {
        let stop = CancellationToken::new();
        let task = tokio::spawn(node::run(self.parts.clone(), stop.clone()));
        self.running = Some((stop, task));
    }

    /// Starts it, and waits until it has joined and would work, if it were not paused.
    pub(crate) async fn start_paused(&mut self) -> anyhow::Result<()> {
        self.nudges.pause();
        self.start();
        self.joined().await?;
        // The first round after joining is not what is measured: planning, the lease, a first look at the queue.
        tokio::time::sleep(Duration::from_millis(300)).await;
        Ok(())
    }

    /// Waits until it has joined.
    async fn joined(&self) -> anyhow::Result<()> {
        loop {
            let nodes = self.store.nodes().await?;
            if nodes.iter().any(|node| node.name == self.settings.name) {
                return Ok(());
            }
            if self.running.as_ref().is_none_or(|(_, task)| task.is_finished()) {
                bail!("the node ended before it had joined");
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Waits until nothing is due, claimed or running, as the store says: everything that started has its end stored.
    pub(crate) async fn all_ended(&self, left: u64) -> anyhow::Result<()> {
        loop {
            let counts = self.store.live_counts(self.now()).await?;
            if counts.due + counts.claimed + counts.running <= left {
                return Ok(());
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Stops it, if it runs, and closes its database.
    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        if let Some((stop, task)) = self.running.take() {
            stop.cancel();
            task.await.context("the node")??;
        }
        // Closing waits for the disk or the network.
        tokio::task::spawn_blocking(move || drop(self)).await.context("closing the database")
    }
}

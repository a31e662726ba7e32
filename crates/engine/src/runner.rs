//! Runners: what a run does, as the engine sees it.
//!
//! In: an [`Assignment`], and a [`Stop`] that may be pulled at any time. Out: one [`Finish`], when no part of the work
//! lives any more. Not here: how a process, a call or an agent's loop is carried out (`agents`).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use async_trait::async_trait;
use jiff::Timestamp;
use punctual_core::run::{FailureCode, Report};
use punctual_core::schedule::{InputType, InputsPolicy, Window, Workflow};
use punctual_core::{Elapsed, RunId, ScheduleId};
use serde::Serialize;
use serde_json::{Map, Value};
use tokio::sync::watch;

use crate::output::Printer;

/// Carries out attempts of one agent.
#[async_trait]
pub trait Runner: Send + Sync {
    /// Carries out one attempt and returns when nothing of it lives any more, however it was ended.
    ///
    /// Never panics on what the work does, and never waits for it longer than its grace once `stop` is pulled.
    async fn run(&self, assignment: Assignment, stop: Stop) -> Finish;
}

/// What carries out the runs of each agent. It is exchanged as a whole when the configuration is read again.
#[derive(Default)]
pub struct Runners(RwLock<Arc<BTreeMap<String, Arc<dyn Runner>>>>);

impl Runners {
    /// The runners of these agents.
    pub fn new(runners: BTreeMap<String, Arc<dyn Runner>>) -> Runners {
        Runners(RwLock::new(Arc::new(runners)))
    }

    /// What carries out the runs of an agent.
    pub fn get(&self, agent: &str) -> Option<Arc<dyn Runner>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(agent).cloned()
    }

    /// Puts others in force. What is at work goes on with its own.
    pub fn exchange(&self, runners: BTreeMap<String, Arc<dyn Runner>>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(runners);
    }
}

/// One attempt to be carried out.
#[derive(Debug, Clone)]
pub struct Assignment {
    /// What the work is told.
    pub context: RunContext,
    /// How long the work may run.
    pub timeout: Elapsed,
    /// Takes what the work prints.
    pub printer: Printer,
    /// The workflow that is to be started, as this run asks for it.
    pub workflow: Option<Box<Workflow>>,
}

/// The run context: standard input of a process, body of a call.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunContext {
    /// The run.
    pub run_id: RunId,
    /// The same, under the name of the executions face.
    pub execution_id: RunId,
    /// The same for every attempt of the run: a target that knows it has seen this work before.
    pub idempotency_key: String,
    /// Which try this is; 1 is the first.
    pub attempt: u32,
    /// The epoch under which the node holds the run.
    pub epoch: u64,
    /// When the slot was scheduled.
    pub scheduled_at: Timestamp,
    /// The same in milliseconds of the Unix epoch.
    pub scheduled_time: i64,
    /// When the work began, in milliseconds of the Unix epoch.
    pub execution_time: i64,
    /// The schedule, if the run has one.
    pub schedule_id: Option<ScheduleId>,
    /// The schedule's name, if it has one.
    pub schedule_name: Option<String>,
    /// The agent.
    pub agent_id: String,
    /// The project, if the run belongs to one.
    pub project_id: Option<String>,
    /// The session, for agents that have one.
    pub session_id: Option<String>,
    /// What the agent is asked to do.
    pub prompt: String,
    /// What it is given.
    pub inputs: Map<String, Value>,
    /// What it is to read, with the window of this run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inputs_policy: Option<InputsGiven>,
    /// The workflow that the agent stands in for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow: Option<WorkflowGiven>,
    /// Whether a person asked for the run.
    pub manual: bool,
}

/// What an agent is to read: the policy of its schedule, with the window of one run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InputsGiven {
    /// Which kind of window.
    pub input_type: InputType,
    /// Behind this instant; none is from the beginning.
    pub since: Option<Timestamp>,
    /// Up to this instant.
    pub until: Timestamp,
    /// How long a window of the latest intake is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_minutes: Option<u32>,
    /// Which threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread_filter: Option<String>,
}

impl InputsGiven {
    /// The window of a run for the slot `until`, when successful runs have read up to `read_until`.
    pub fn new(policy: &InputsPolicy, until: Timestamp, read_until: Option<Timestamp>) -> InputsGiven {
        let Window { since, until } = policy.window(until, read_until);
        InputsGiven {
            input_type: policy.input_type,
            since,
            until,
            window_minutes: policy.window_minutes,
            thread_filter: policy.thread_filter.clone(),
        }
    }
}

/// The workflow that an agent stands in for. Its input is the agent's.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowGiven {
    /// The name of its definition.
    pub name: String,
    /// The version of its definition; the latest when absent.
    pub version: Option<i32>,
    /// What it is found by.
    pub correlation_id: Option<String>,
}

impl WorkflowGiven {
    /// What an agent is told of a workflow.
    pub fn new(workflow: &Workflow) -> WorkflowGiven {
        let Workflow { name, version, correlation_id, .. } = workflow.clone();
        WorkflowGiven { name, version, correlation_id }
    }
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finish {
    /// Whether the work was done.
    pub ending: Ending,
    /// What it says about itself.
    pub report: Report,
}

/// Whether the work was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// It was.
    Succeeded,
    /// It was not.
    Failed {
        /// Why.
        code: FailureCode,
        /// Whether another try may help.
        is_retryable: bool,
        /// How long the target asked us to stay away.
        retry_after: Option<Elapsed>,
    },
    /// It was stopped before its end, because `stop` was pulled.
    Stopped,
}

/// How hard the work is to be stopped. Only ever grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StopLevel {
    /// Not at all.
    GoOn,
    /// Ask it to stop, and end it when its grace is over.
    Ask,
    /// End it at once.
    Now,
}

/// Tells a runner to stop; the engine holds the other end.
#[derive(Debug, Clone)]
pub struct Stop {
    level: watch::Receiver<StopLevel>,
    direct: Arc<Direct>,
}

/// Pulls a [`Stop`]. Dropping it pulls [`StopLevel::Now`]: work without an owner must not go on.
#[derive(Debug)]
pub struct Stopper {
    level: watch::Sender<StopLevel>,
    direct: Arc<Direct>,
}

type Call = Box<dyn Fn(StopLevel) + Send>;

/// What is called when a stop is pulled, on the thread that pulls it.
#[derive(Default)]
struct Direct(Mutex<Option<Call>>);

impl Direct {
    fn call(&self) -> MutexGuard<'_, Option<Call>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Direct {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Direct").finish_non_exhaustive()
    }
}

/// A stop that has not been pulled, and what pulls it.
pub fn stop_pair() -> (Stopper, Stop) {
    let (sender, receiver) = watch::channel(StopLevel::GoOn);
    let direct = Arc::<Direct>::default();
    (Stopper { level: sender, direct: Arc::clone(&direct) }, Stop { level: receiver, direct })
}

impl Stopper {
    /// Raises the level; a lower one than before changes nothing.
    pub fn pull(&self, level: StopLevel) {
        let has_risen = self.level.send_if_modified(|current| {
            let rises = *current < level;
            *current = level.max(*current);
            rises
        });
        if has_risen && let Some(call) = &*self.direct.call() {
            call(level);
        }
    }
}

impl Stop {
    /// The level now.
    pub fn level(&self) -> StopLevel {
        if self.level.has_changed().is_err() { StopLevel::Now } else { *self.level.borrow() }
    }

    /// Has something called with each level that is reached from now on, on the thread that pulls: work outside this process has
    /// to be stopped in time also when no thread is left for the task that waits for it. It must not wait for anything.
    pub fn call_directly(&self, call: impl Fn(StopLevel) + Send + 'static) {
        *self.direct.call() = Some(Box::new(call));
    }

    /// Returns when the level is at least this.
    pub async fn reached(&mut self, level: StopLevel) {
        // An error means that the other end is gone, which is the highest level.
        drop(self.level.wait_for(|current| level <= *current).await);
    }
}

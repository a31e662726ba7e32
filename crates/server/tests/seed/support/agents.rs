//! What agents do. The test says how their work goes; they note how they were called.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use punctual_core::RunId;
use punctual_core::run::{FailureCode, Report, ReportedError, RunState};
use punctual_engine::clock::Clock;
use punctual_engine::runner::{Assignment, Ending, Finish, RunContext, Runner, Stop, StopLevel};
use punctual_store::Store;

use super::clock::VirtualClock;

/// How the work of an agent goes.
#[derive(Debug, Clone)]
pub(crate) enum Way {
    /// It is done after so long, and reports this.
    Succeeds(SignedDuration, Box<Report>),
    /// It fails after so long.
    Fails(SignedDuration),
    /// It goes on until it is stopped.
    Stays,
}

impl Way {
    /// It is done after so long, and has nothing to say.
    pub(crate) fn takes(time: SignedDuration) -> Way {
        Way::Succeeds(time, Box::default())
    }
}

/// A call of an agent.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) context: RunContext,
    /// When it was called.
    pub(crate) at: Timestamp,
    /// The run's state, as the store had it when the agent was called.
    pub(crate) found: Option<RunState>,
}

/// All agents of the world.
pub(crate) struct Agents {
    clock: Arc<VirtualClock>,
    store: Arc<dyn Store>,
    ways: Mutex<BTreeMap<String, VecDeque<Way>>>,
    calls: Mutex<Vec<Call>>,
}

impl Agents {
    pub(super) fn new(clock: Arc<VirtualClock>, store: Arc<dyn Store>) -> Agents {
        Agents { clock, store, ways: Mutex::default(), calls: Mutex::default() }
    }

    /// How the next attempts of an agent go, one after another; the last way is for all that follow.
    pub(crate) fn go(&self, agent: &str, ways: impl IntoIterator<Item = Way>) {
        self.ways.lock().expect("nobody panics with it").insert(agent.to_owned(), ways.into_iter().collect());
    }

    /// The calls so far, in order.
    pub(crate) fn calls(&self) -> Vec<Call> {
        self.calls.lock().expect("nobody panics with it").clone()
    }

    /// The calls for one run.
    pub(crate) fn calls_for(&self, run: RunId) -> Vec<Call> {
        self.calls().into_iter().filter(|call| call.context.run_id == run).collect()
    }

    fn way(&self, agent: &str) -> Way {
        let mut ways = self.ways.lock().expect("nobody panics with it");
        let Some(ways) = ways.get_mut(agent) else { return Way::takes(SignedDuration::ZERO) };
        if 1 < ways.len() {
            return ways.pop_front().expect("there are two");
        }
        ways.front().cloned().unwrap_or_else(|| Way::takes(SignedDuration::ZERO))
    }
}

#[async_trait]
impl Runner for Agents {
    async fn run(&self, assignment: Assignment, mut stop: Stop) -> Finish {
        let context = assignment.context;
        let way = self.way(&context.agent_id);
        let at = self.clock.now();
        let found = self.store.run(context.run_id).await.expect("the store answers").map(|run| run.state);
        self.calls.lock().expect("nobody panics with it").push(Call { context, at, found });
        let time = match &way {
            Way::Succeeds(time, _) | Way::Fails(time) => Some(*time),
            Way::Stays => None,
        };
        let ends_at = time.map_or(Timestamp::MAX, |time| at + time);
        tokio::select! {
            biased;
            () = stop.reached(StopLevel::Ask) => return Finish { ending: Ending::Stopped, report: Report::default() },
            () = self.clock.sleep_until(ends_at) => {}
        }
        match way {
            Way::Succeeds(_, report) => Finish { ending: Ending::Succeeded, report: *report },
            Way::Fails(_) | Way::Stays => {
                let error = ReportedError { code: "TOOL_FAILURE".to_owned(), message: "the tool broke".to_owned() };
                let ending = Ending::Failed { code: FailureCode::Error, is_retryable: true, retry_after: None };
                Finish { ending, report: Report { error: Some(error), ..Report::default() } }
            }
        }
    }
}

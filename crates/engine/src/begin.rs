//! Beginning: from a run that is written as running to the work of its runner, and to its end.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use punctual_core::RunId;
use punctual_core::run::{FailureCode, Report, ReportedError, Run};
use punctual_core::schedule::{Occasion, Schedule, Workflow};
use punctual_core::time::Zones;
use tokio::sync::mpsc;
use tracing::{error, info, warn};

use crate::claimer::{StartedRun, idempotency_key};
use crate::node::Parts;
use crate::output::{Press, Printer};
use crate::runner::{Assignment, Ending, Finish, InputsGiven, RunContext, Stop, WorkflowGiven};

/// How the work of an attempt ended.
pub(crate) struct WorkEnd {
    pub(crate) run: RunId,
    pub(crate) epoch: u64,
    pub(crate) finish: Finish,
}

/// Tells of the end of work however it comes, also when its runner panics.
struct EndOnDrop {
    to: mpsc::UnboundedSender<WorkEnd>,
    run: RunId,
    epoch: u64,
    finish: Option<Finish>,
}

impl EndOnDrop {
    fn tell(mut self, finish: Finish) {
        self.finish = Some(finish);
    }
}

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        let finish = self.finish.take().unwrap_or_else(|| {
            error!(run.id = %self.run, "the runner of run {} has failed", self.run);
            panicked()
        });
        // A node that is gone does not ask any more.
        self.to.send(WorkEnd { run: self.run, epoch: self.epoch, finish }).ok();
    }
}

/// A run whose work begins. However that goes, its end is told.
pub(crate) struct Beginning {
    started: StartedRun,
    stop: Stop,
    end: EndOnDrop,
}

impl Beginning {
    pub(crate) fn new(started: StartedRun, stop: Stop, to: mpsc::UnboundedSender<WorkEnd>) -> Beginning {
        let end = EndOnDrop { to, run: started.run.id, epoch: started.run.epoch(), finish: None };
        Beginning { started, stop, end }
    }

    /// Has its runner carry it out.
    pub(crate) fn begin(self, parts: &Parts, press: Option<&Press>, now: Timestamp) {
        let Beginning { started, stop, end } = self;
        let run = &started.run;
        let (id, epoch, attempt) = (run.id, run.epoch(), run.state.tally().attempt);
        parts.meters.began(run, now);
        let printer = press.map_or_else(Printer::nowhere, |press| press.printer(id, epoch, attempt));
        let assignment = assignment(&started, &parts.settings.zones, printer.clone(), now);
        let runner = parts.runners.get(run.terms.work.agent());
        let clock = Arc::clone(&parts.clock);
        info!(run.id = %id, "{} begins, try {attempt}", Label(&started));
        parts.spawn.spawn(Box::pin(async move {
            let finish = match runner {
                Some(runner) => runner.run(assignment, stop).await,
                None => no_runner(),
            };
            // Here and not in the loop: a store that is slow to take output must not keep the lease waiting.
            if !printer.flush(&*clock).await {
                warn!(run.id = %id, "the output of run {id} is not stored yet; its end is told without it");
            }
            end.tell(finish);
        }));
    }
}

/// What people call a run: its schedule and the time that it answers.
pub(crate) struct Label<'a>(pub(crate) &'a StartedRun);

impl fmt::Display for Label<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StartedRun { run, schedule } = self.0;
        let name = schedule.as_ref().and_then(|schedule| schedule.name.as_deref());
        write!(f, "{} of {}", name.unwrap_or(run.terms.work.agent()), run.scheduled_at)
    }
}

fn assignment(started: &StartedRun, zones: &Zones, printer: Printer, now: Timestamp) -> Assignment {
    let run = &started.run;
    let work = &run.terms.work;
    let workflow = work.workflow().map(|workflow| workflow_of(workflow, started, zones, now));
    let inputs = workflow.as_ref().map_or_else(|| work.inputs(), |workflow| &workflow.input);
    let read_until = started.schedule.as_ref().and_then(|schedule| schedule.read_until);
    let context = RunContext {
        run_id: run.id,
        execution_id: run.id,
        idempotency_key: idempotency_key(run),
        attempt: run.state.tally().attempt,
        epoch: run.epoch(),
        scheduled_at: run.scheduled_at,
        scheduled_time: run.scheduled_at.as_millisecond(),
        execution_time: now.as_millisecond(),
        schedule_id: run.schedule,
        schedule_name: started.schedule.as_ref().and_then(|schedule| schedule.name.clone()),
        agent_id: work.agent().to_owned(),
        project_id: run.terms.project.clone(),
        session_id: None,
        prompt: work.prompt().to_owned(),
        inputs: inputs.clone(),
        inputs_policy: work.inputs_policy().map(|policy| InputsGiven::new(policy, run.scheduled_at, read_until)),
        workflow: workflow.as_deref().map(WorkflowGiven::new),
        manual: run.key.is_manual(),
    };
    Assignment { context, timeout: run.terms.timeout, printer, workflow }
}

/// The workflow that a run asks for, told about its times.
fn workflow_of(workflow: &Workflow, started: &StartedRun, zones: &Zones, now: Timestamp) -> Box<Workflow> {
    let run = &started.run;
    let cron =
        started.schedule.as_deref().filter(|_| run.key.is_slot()).and_then(|schedule| cron_of(schedule, run, zones));
    let idempotency_key = idempotency_key(run);
    Box::new(workflow.on(&Occasion {
        run: run.id,
        scheduled_at: run.scheduled_at,
        started_at: now,
        cron: cron.as_deref(),
        idempotency_key: &idempotency_key,
    }))
}

/// The cron that gave a run its slot, with its zone.
fn cron_of(schedule: &Schedule, run: &Run, zones: &Zones) -> Option<String> {
    let (cron, zone) = schedule.cron_at(run.scheduled_at, zones)?;
    Some(format!("{} {zone}", cron.text()))
}

fn no_runner() -> Finish {
    failed("agent_missing", "this node has no runner for the agent")
}

fn panicked() -> Finish {
    failed("runner_failed", "the runner failed; this is a bug in Punctual")
}

fn failed(code: &str, message: &str) -> Finish {
    let error = Some(ReportedError { code: code.to_owned(), message: message.to_owned() });
    let ending = Ending::Failed { code: FailureCode::Error, is_retryable: true, retry_after: None };
    Finish { ending, report: Report { error, ..Report::default() } }
}

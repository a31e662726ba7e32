//! A Conductor, a runner that knows it, and the attempts of one run.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use punctual_agents::secrets::SecretSource;
use punctual_agents::workflow::{ConductorServer, WorkflowRunner};
use punctual_core::run::FailureCode;
use punctual_core::schedule::{IdempotencyStrategy, Workflow};
use punctual_core::{Elapsed, RunId};
use punctual_engine::output::{Overheard, Printer};
use punctual_engine::runner::{Assignment, Ending, Finish, RunContext, Runner, Stop, stop_pair};
use punctual_lab::conductor::Conductor;
use tokio::time::{sleep, timeout};
use uuid::Uuid;

/// Far more than anything here takes, on a machine that has other things to do.
pub(crate) const LONG: Duration = Duration::from_secs(60);

pub(crate) struct Scene {
    pub(crate) conductor: Conductor,
    pub(crate) runner: WorkflowRunner,
    pub(crate) assignment: Assignment,
    pub(crate) heard: Overheard,
}

impl Scene {
    /// A server that lets everybody in.
    pub(crate) fn new() -> Scene {
        Scene::with(|server| server)
    }

    /// The same, where the server is known as this.
    pub(crate) fn with(change: impl FnOnce(ConductorServer) -> ConductorServer) -> Scene {
        let conductor = Conductor::start().unwrap();
        let runner = WorkflowRunner::new(Some(change(ConductorServer::new(conductor.url())))).unwrap();
        let (assignment, heard) = assignment("report");
        Scene { conductor, runner, assignment, heard }
    }

    /// The same run, whose workflow is followed.
    pub(crate) fn followed(mut self) -> Scene {
        self.workflow().is_followed = true;
        self
    }

    pub(crate) fn workflow(&mut self) -> &mut Workflow {
        self.assignment.workflow.as_mut().unwrap()
    }

    /// The next attempt of the run.
    pub(crate) async fn attempt(&mut self) -> Finish {
        let finish = self.run(Elapsed::from_seconds(60)).await;
        self.assignment.context.attempt += 1;
        finish
    }

    /// An attempt that may take so long.
    pub(crate) async fn run(&self, time: Elapsed) -> Finish {
        let (_stopper, stop) = stop_pair();
        self.run_until(time, stop).await
    }

    /// An attempt that somebody else may stop.
    pub(crate) async fn run_until(&self, time: Elapsed, stop: Stop) -> Finish {
        let assignment = Assignment { timeout: time, ..self.assignment.clone() };
        timeout(LONG, self.runner.run(assignment, stop)).await.expect("an attempt comes to its end")
    }

    /// Waits until a workflow is started, and returns its id.
    pub(crate) async fn started(&self) -> String {
        loop {
            if let Some(start) = self.conductor.starts().first() {
                return start.id.clone();
            }
            sleep(Duration::from_millis(5)).await;
        }
    }

    /// How many requests came to a place.
    pub(crate) fn requests_to(&self, path: &str) -> usize {
        self.conductor.seen().iter().filter(|seen| seen.path == path).count()
    }
}

/// A run that starts a workflow, as the engine asks for it.
pub(crate) fn assignment(workflow: &str) -> (Assignment, Overheard) {
    let run_id = RunId(Uuid::now_v7());
    let context = RunContext {
        run_id,
        execution_id: run_id,
        idempotency_key: run_id.to_string(),
        attempt: 1,
        epoch: 1,
        scheduled_at: "2026-03-09T13:00:00Z".parse().unwrap(),
        scheduled_time: 0,
        execution_time: 0,
        schedule_id: None,
        schedule_name: None,
        agent_id: "workflow".to_owned(),
        project_id: None,
        session_id: None,
        prompt: String::new(),
        inputs: serde_json::Map::new(),
        inputs_policy: None,
        workflow: None,
        manual: false,
    };
    let workflow = Workflow {
        name: workflow.to_owned(),
        idempotency_key: Some(run_id.to_string()),
        idempotency_strategy: Some(IdempotencyStrategy::ReturnExisting),
        ..Workflow::default()
    };
    let (printer, heard) = Printer::overheard();
    let timeout = Elapsed::from_seconds(60);
    (Assignment { context, timeout, printer, workflow: Some(Box::new(workflow)) }, heard)
}

/// The ending in a line: what went wrong, and whether another try may help.
pub(crate) fn say(finish: &Finish) -> String {
    let word = finish.report.error.as_ref().map_or("", |error| error.code.as_str());
    match &finish.ending {
        Ending::Succeeded => "succeeded".to_owned(),
        Ending::Stopped => "stopped".to_owned(),
        Ending::Failed { code, is_retryable, retry_after } => {
            let code = if *code == FailureCode::Error { String::new() } else { format!("{code:?} ") };
            let again = if *is_retryable { "again" } else { "final" };
            let after = retry_after.map(|it| format!(" after {} s", it.milliseconds() / 1000)).unwrap_or_default();
            format!("{code}{word}, {again}{after}")
        }
    }
}

/// What people are told of a failure.
pub(crate) fn message(finish: &Finish) -> &str {
    finish.report.error.as_ref().map_or("", |error| error.message.as_str())
}

/// A file with a secret, for its owner's eyes only.
pub(crate) fn secret_file(secret: &str) -> SecretSource {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("secret-{}", Uuid::now_v7()));
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).unwrap();
    writeln!(file, "{secret}").unwrap();
    SecretSource::File(path)
}

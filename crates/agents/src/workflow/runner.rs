//! The runner: one attempt, which ends when it is over, when its time is, or when it is stopped.

use std::time::Duration;

use async_trait::async_trait;
use punctual_core::run::FailureCode;
use punctual_core::schedule::Workflow;
use punctual_engine::runner::{Assignment, Finish, Runner, Stop, StopLevel};
use tokio::time::sleep;

use super::attempt::Attempt;
use super::client::Client;
use super::notes::{End, Notes};
use super::server::{ConductorServer, ServerError};
use super::trouble::Trouble;

/// Starts workflows at a Conductor server.
#[derive(Debug)]
pub struct WorkflowRunner {
    client: Option<Client>,
}

impl WorkflowRunner {
    /// A runner whose workflows are started at this server. Without one, every attempt fails and says what is missing.
    pub fn new(server: Option<ConductorServer>) -> Result<WorkflowRunner, ServerError> {
        Ok(WorkflowRunner { client: server.map(Client::new).transpose()? })
    }

    /// Where workflows are started, and which; or why none can be.
    fn means<'a>(&'a self, workflow: Option<&'a Workflow>) -> Result<(&'a Client, &'a Workflow), Trouble> {
        let workflow = workflow
            .ok_or_else(|| Trouble::lasting("no_workflow", "the run names no workflow to start").before_the_start())?;
        let client = self.client.as_ref().ok_or_else(|| {
            let name = &workflow.name;
            let message =
                format!("workflow {name:?} has no agent in [conductor.workflows], and [conductor] names no server_url");
            Trouble::lasting("no_server", message).before_the_start()
        })?;
        Ok((client, workflow))
    }
}

#[async_trait]
impl Runner for WorkflowRunner {
    /// Dropping the future closes the connection that waits for an answer. A workflow that was started goes on, whatever becomes of
    /// the attempt; the next attempt of the run finds it by its key.
    async fn run(&self, assignment: Assignment, mut stop: Stop) -> Finish {
        let Assignment { context, timeout, printer, workflow } = assignment;
        let mut notes = Notes::new(printer);
        if StopLevel::Ask <= stop.level() {
            return notes.finish(End::Stopped);
        }
        let (client, workflow) = match self.means(workflow.as_deref()) {
            Ok(means) => means,
            Err(trouble) => return notes.finish(End::Failed(trouble)),
        };
        let attempt = Attempt { client, workflow, number: context.attempt, notes: &mut notes };
        let end = tokio::select! {
            // What is over by itself was neither stopped nor late.
            biased;
            end = attempt.carry_out() => end,
            () = stop.reached(StopLevel::Ask) => End::Stopped,
            () = sleep(Duration::from_millis(timeout.milliseconds().unsigned_abs())) => {
                End::Failed(too_late(&workflow.name, notes.know_the_workflow()))
            }
        };
        notes.finish(end)
    }
}

fn too_late(name: &str, is_started: bool) -> Trouble {
    let message = if is_started {
        format!("the time of the run was over before workflow {name:?} ended; it is left alone")
    } else {
        format!("the time of the run was over before an answer came; workflow {name:?} may have been started")
    };
    Trouble { code: FailureCode::TimedOut, ..Trouble::passing("timed_out", message) }
}

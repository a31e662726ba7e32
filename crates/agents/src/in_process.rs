//! A runner made from an async function: for tests, simulations and benchmarks.
//!
//! Never reachable from configuration: no agent of an operator's names it. The work is a task of this process, so it
//! ends only where it awaits; one that never does cannot be stopped.

use std::time::Duration;

use async_trait::async_trait;
use punctual_core::run::{FailureCode, Report, ReportedError};
use punctual_engine::runner::{Assignment, Ending, Finish, Runner, Stop, StopLevel};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// How long the function has after it is asked to stop. It sees its `Stop` itself.
const GRACE: Duration = Duration::from_secs(1);

/// Runs a function.
#[derive(Debug, Clone)]
pub struct InProcess<F> {
    work: F,
}

impl<F, T> InProcess<F>
where
    F: Fn(Assignment, Stop) -> T + Send + Sync,
    T: Future<Output = Finish> + Send + 'static,
{
    /// A runner whose attempts are calls of `work`.
    pub fn new(work: F) -> InProcess<F> {
        InProcess { work }
    }
}

#[async_trait]
impl<F, T> Runner for InProcess<F>
where
    F: Fn(Assignment, Stop) -> T + Send + Sync,
    T: Future<Output = Finish> + Send + 'static,
{
    async fn run(&self, assignment: Assignment, mut stop: Stop) -> Finish {
        let time = Duration::from_millis(assignment.timeout.milliseconds().unsigned_abs());
        // A task of its own, so that its panic is not ours; in a set, so that it ends when this future is dropped.
        let mut tasks = JoinSet::new();
        tasks.spawn((self.work)(assignment, stop.clone()));
        let ending = tokio::select! {
            finish = finished(&mut tasks) => return finish,
            () = sleep(time) => failed(FailureCode::TimedOut),
            () = stop.reached(StopLevel::Ask) => {
                let in_time = tokio::select! {
                    result = timeout(GRACE, finished(&mut tasks)) => result.ok(),
                    () = stop.reached(StopLevel::Now) => None,
                };
                if let Some(finish) = in_time {
                    return finish;
                }
                Ending::Stopped
            }
        };
        tasks.shutdown().await;
        Finish { ending, report: Report::default() }
    }
}

/// What the function returned, or that it panicked.
async fn finished(tasks: &mut JoinSet<Finish>) -> Finish {
    match tasks.join_next().await {
        Some(Ok(finish)) => finish,
        Some(Err(_)) | None => {
            let error = ReportedError { code: "panic".to_owned(), message: "the function panicked".to_owned() };
            let report = Report { error: Some(error), ..Report::default() };
            Finish { ending: failed(FailureCode::Error), report }
        }
    }
}

fn failed(code: FailureCode) -> Ending {
    Ending::Failed { code, is_retryable: true, retry_after: None }
}

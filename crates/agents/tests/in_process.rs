//! The runner of functions keeps the contract of runners.

use std::future::pending;

use punctual_agents::in_process::InProcess;
use punctual_core::run::{FailureCode, Report};
use punctual_core::{Elapsed, RunId};
use punctual_engine::output::Printer;
use punctual_engine::runner::{Assignment, Ending, Finish, RunContext, Runner, StopLevel, stop_pair};

fn assignment(timeout: Elapsed) -> Assignment {
    let run_id = RunId(uuid::Uuid::now_v7());
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
        agent_id: "function".to_owned(),
        project_id: None,
        session_id: None,
        prompt: "hello".to_owned(),
        inputs: serde_json::Map::new(),
        inputs_policy: None,
        workflow: None,
        manual: true,
    };
    Assignment { context, timeout, printer: Printer::nowhere(), workflow: None }
}

fn succeeded(summary: &str) -> Finish {
    Finish { ending: Ending::Succeeded, report: Report { summary: Some(summary.to_owned()), ..Report::default() } }
}

fn failed(code: FailureCode) -> Ending {
    Ending::Failed { code, is_retryable: true, retry_after: None }
}

#[tokio::test]
async fn a_function_gets_its_assignment_and_answers() {
    let runner = InProcess::new(async |assignment: Assignment, _| succeeded(&assignment.context.prompt));
    let (_stopper, stop) = stop_pair();
    assert_eq!(runner.run(assignment(Elapsed::MAX), stop).await, succeeded("hello"));
}

#[tokio::test]
async fn a_panic_is_a_failure() {
    let runner = InProcess::new(async |_, _| -> Finish { panic!("on purpose") });
    let (_stopper, stop) = stop_pair();
    assert_eq!(runner.run(assignment(Elapsed::MAX), stop).await.ending, failed(FailureCode::Error));
}

#[tokio::test]
async fn a_function_that_takes_too_long_is_dropped() {
    let runner = InProcess::new(async |_, _| pending::<Finish>().await);
    let (_stopper, stop) = stop_pair();
    let timeout = Elapsed::from_milliseconds(10).unwrap();
    assert_eq!(runner.run(assignment(timeout), stop).await.ending, failed(FailureCode::TimedOut));
}

#[tokio::test]
async fn a_function_that_is_stopped_may_answer_itself() {
    let runner = InProcess::new(async |_, mut stop: punctual_engine::runner::Stop| {
        stop.reached(StopLevel::Ask).await;
        succeeded("in time")
    });
    let (stopper, stop) = stop_pair();
    stopper.pull(StopLevel::Ask);
    assert_eq!(runner.run(assignment(Elapsed::MAX), stop).await, succeeded("in time"));
}

#[tokio::test]
async fn a_function_that_does_not_stop_is_dropped() {
    let runner = InProcess::new(async |_, _| pending::<Finish>().await);
    for level in [StopLevel::Ask, StopLevel::Now] {
        let (stopper, stop) = stop_pair();
        stopper.pull(level);
        assert_eq!(runner.run(assignment(Elapsed::MAX), stop).await.ending, Ending::Stopped);
    }
}

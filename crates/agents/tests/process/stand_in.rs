//! A stand-in for the `punctual` binary: a supervisor when asked to be one, and a server that carries out one attempt.
//!
//! `stand-in serve <marker> <script>` runs the script with the shell and prints what the report says was printed.

use std::process::ExitCode;

use punctual_agents::process::{ProcessAgent, ProcessRunner, Supervisor, supervise_if_asked};
use punctual_core::{Elapsed, RunId};
use punctual_engine::output::Printer;
use punctual_engine::runner::{Assignment, RunContext, Runner, stop_pair};

fn main() -> ExitCode {
    if let Some(code) = supervise_if_asked() {
        return code;
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [role, marker, script] = arguments.as_slice() else { return ExitCode::FAILURE };
    if role != "serve" {
        return ExitCode::FAILURE;
    }
    let mut agent = ProcessAgent::new(["sh", "-c", script]);
    agent.env.insert("MARKER".to_owned(), marker.clone());
    let runner = ProcessRunner::new(agent, Supervisor::this_program()).expect("the settings are in order");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let (_stopper, stop) = stop_pair();
    let finish = runtime.block_on(runner.run(assignment(), stop));
    print!("{}", finish.report.output);
    ExitCode::SUCCESS
}

fn assignment() -> Assignment {
    let run_id = RunId("019a8b1c-0000-7000-8000-000000000001".parse().expect("an id"));
    let context = RunContext {
        run_id,
        execution_id: run_id,
        idempotency_key: run_id.to_string(),
        attempt: 1,
        epoch: 1,
        scheduled_at: "2026-03-09T13:00:00Z".parse().expect("a time"),
        scheduled_time: 1_773_061_200_000,
        execution_time: 1_773_061_200_004,
        schedule_id: None,
        schedule_name: None,
        agent_id: "stand-in".to_owned(),
        project_id: None,
        session_id: None,
        prompt: String::new(),
        inputs: serde_json::Map::new(),
        inputs_policy: None,
        workflow: None,
        manual: false,
    };
    Assignment { context, timeout: Elapsed::from_seconds(600), printer: Printer::nowhere(), workflow: None }
}

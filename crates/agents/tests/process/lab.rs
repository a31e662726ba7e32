//! A place to run nasty commands in, and to see that nothing of them is left.

use std::fs;
use std::time::Duration;

use punctual_agents::process::{ProcessAgent, ProcessRunner, Supervisor};
use punctual_core::run::FailureCode;
use punctual_core::{Elapsed, RunId};
use punctual_engine::output::Printer;
use punctual_engine::runner::{Assignment, Ending, Finish, RunContext, Runner, Stop, StopLevel, stop_pair};
use tokio::time::{sleep, timeout};
use uuid::Uuid;

/// The program that becomes the supervisor.
pub(crate) const STAND_IN: &str = env!("CARGO_BIN_EXE_stand-in");

/// Far more than anything here takes, on a machine that has other things to do.
pub(crate) const LONG: Duration = Duration::from_secs(90);

/// One attempt of one command. Its processes carry a marker in their environment, by which they are found.
pub(crate) struct Lab {
    pub(crate) agent: ProcessAgent,
    pub(crate) assignment: Assignment,
    pub(crate) marker: String,
}

impl Lab {
    /// For a command.
    pub(crate) fn new<'a>(command: impl IntoIterator<Item = &'a str>) -> Lab {
        let run_id = RunId(Uuid::now_v7());
        let marker = format!("marker-{run_id}");
        let mut agent = ProcessAgent::new(command);
        agent.env.insert("MARKER".to_owned(), marker.clone());
        Lab { agent, assignment: assignment(run_id), marker }
    }

    /// For a script of the shell, which is the command here and no part of the runner.
    pub(crate) fn sh(script: &str) -> Lab {
        Lab::new(["sh", "-c", script])
    }

    pub(crate) fn grace(mut self, grace: Duration) -> Lab {
        self.agent.grace = grace;
        self
    }

    pub(crate) fn timeout_seconds(mut self, seconds: u32) -> Lab {
        self.assignment.timeout = Elapsed::from_seconds(seconds);
        self
    }

    /// Runs it to its end, and sees that nothing of it lives.
    pub(crate) async fn run(&self) -> Finish {
        let (_stopper, stop) = stop_pair();
        self.run_until(stop).await
    }

    /// The same, when somebody else may stop it.
    pub(crate) async fn run_until(&self, stop: Stop) -> Finish {
        let runner = ProcessRunner::new(self.agent.clone(), Supervisor::at(STAND_IN)).unwrap();
        let finish = timeout(LONG, runner.run(self.assignment.clone(), stop)).await.expect("the run ends");
        assert_eq!(living(&self.marker), Vec::<i32>::new(), "nothing of a finished run lives");
        finish
    }

    /// The same, and once it has as many processes, it is stopped.
    pub(crate) async fn run_and_stop(&self, processes: usize, level: StopLevel) -> Finish {
        let (stopper, stop) = stop_pair();
        let stopping = async {
            until("the work is under way", || processes <= self.living()).await;
            stopper.pull(level);
        };
        // The stopper must outlive the run: without it, the run would be stopped at once.
        tokio::join!(self.run_until(stop), stopping).0
    }

    /// How many processes of the run live.
    pub(crate) fn living(&self) -> usize {
        living(&self.marker).len()
    }
}

/// The processes that carry the marker. The dead have no environment.
pub(crate) fn living(marker: &str) -> Vec<i32> {
    let marker = format!("MARKER={marker}");
    let pids = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter(|pid: &i32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == marker.as_bytes())
    })
    .collect()
}

/// The parent of a process, if that lives. Who has to collect the dead may take its time.
pub(crate) fn parent(pid: i32) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    if status.contains("State:\tZ") {
        return None;
    }
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

/// Waits until it is so, and fails if that takes too long.
pub(crate) async fn until(what: &str, condition: impl Fn() -> bool) {
    let waiting = async {
        while !condition() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(LONG, waiting).await.unwrap_or_else(|_| panic!("{what}: not in time"));
}

/// A folder for one test.
pub(crate) fn folder(name: &str) -> std::path::PathBuf {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// What a failed attempt failed of, and whether another may help.
#[track_caller]
pub(crate) fn failure(finish: &Finish) -> (FailureCode, bool) {
    match finish.ending {
        Ending::Failed { code, is_retryable, .. } => (code, is_retryable),
        _ => panic!("it did not fail: {finish:?}"),
    }
}

/// The code of the error in the report.
#[track_caller]
pub(crate) fn error_code(finish: &Finish) -> &str {
    &finish.report.error.as_ref().expect("an error is reported").code
}

fn assignment(run_id: RunId) -> Assignment {
    let context = RunContext {
        run_id,
        execution_id: run_id,
        idempotency_key: run_id.to_string(),
        attempt: 3,
        epoch: 7,
        scheduled_at: "2026-03-09T13:00:00Z".parse().unwrap(),
        scheduled_time: 1_773_061_200_000,
        execution_time: 1_773_061_200_004,
        schedule_id: None,
        schedule_name: Some("morning-report".to_owned()),
        agent_id: "reporter".to_owned(),
        project_id: None,
        session_id: None,
        prompt: "What is new?".to_owned(),
        inputs: serde_json::Map::new(),
        inputs_policy: None,
        workflow: None,
        manual: false,
    };
    Assignment { context, timeout: Elapsed::from_seconds(60), printer: Printer::nowhere(), workflow: None }
}

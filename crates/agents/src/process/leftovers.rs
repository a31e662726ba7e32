//! The last resort: what is left of a run whose supervisor is gone.
//!
//! A supervisor can be killed, by the kernel when memory is short or by the work itself. Then nobody collects the
//! orphans of the run, and all that is known of them is the environment they were given.
//! Not found here: processes that wiped their environment.

use std::fs;
use std::time::Duration;

use punctual_engine::runner::RunContext;
use rustix::process::Signal;

use super::environment::{RUN_ATTEMPT, RUN_ID};
use super::processes::{self, Process};

/// How long leftovers are looked for and killed.
const SWEEP_MAX: Duration = Duration::from_secs(2);
/// How long the killed have to be gone before the next look.
const SWEEP_EVERY: Duration = Duration::from_millis(20);

/// Kills every process of the attempt until none is found, or for as long as [`SWEEP_MAX`].
pub(super) async fn end(context: &RunContext) {
    let marks = [format!("{RUN_ID}={}", context.run_id), format!("{RUN_ATTEMPT}={}", context.attempt)];
    let sweeps = async {
        loop {
            let marks = marks.clone();
            // An error is a panic of the sweep, and another sweep would not do better.
            if tokio::task::spawn_blocking(move || kill_marked(&marks)).await.unwrap_or(0) == 0 {
                return;
            }
            tokio::time::sleep(SWEEP_EVERY).await;
        }
    };
    if tokio::time::timeout(SWEEP_MAX, sweeps).await.is_err() {
        tracing::error!(run.id = %context.run_id, "processes of run {} outlived their supervisor", context.run_id);
    }
}

/// Kills what carries all marks, and returns how many that were.
fn kill_marked(marks: &[String]) -> usize {
    let marked = processes::all().into_iter().filter(|process| is_marked(process, marks));
    marked.inspect(|process| process.signal(Signal::KILL)).count()
}

fn is_marked(process: &Process, marks: &[String]) -> bool {
    // What cannot be read belongs to another user, or is gone.
    let Ok(environment) = fs::read(format!("/proc/{}/environ", process.pid)) else { return false };
    marks.iter().all(|mark| environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes()))
}

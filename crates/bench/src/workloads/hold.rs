//! A node in a process of its own: started on a database that is there, watched, and told to stop. The program starts itself again for
//! it, so that memory and the time of a start are those of a node and of nothing else.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use tokio::process::{Child, Command};

use crate::args::Args;
use crate::database::{Database, Place};
use crate::measure::{Stopwatch, resident_mb};
use crate::node::{Agency, Node, Starts};

/// A start that takes longer has failed.
const START_MAX: Duration = Duration::from_secs(25 * 60);

/// A node that has started something may still be busy with its start: it has come to rest when it needs less than this of a core.
const REST_BELOW: f64 = 0.05;

/// How long it may take to come to rest.
const REST_WITHIN: Duration = Duration::from_secs(120);

/// The agent whose run is waited for.
pub(crate) const HELD_AGENT: &str = "held";

/// What such a node tells when it ends.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Held {
    /// From the start of the process until its database was open.
    pub(crate) open_s: f64,
    /// From the start of the process until the first run began.
    pub(crate) first_start_s: f64,
    /// From then until it had nothing more to do; none if that did not come.
    pub(crate) rest_s: Option<f64>,
    /// What it needed of a core while it had nothing to do, in percent.
    pub(crate) idle_cpu_percent: f64,
    /// Its resident memory then.
    pub(crate) rss_mb: Option<f64>,
}

/// Starts the process.
pub(crate) fn start(database: &Database, seconds: u64) -> anyhow::Result<Child> {
    let program = std::env::current_exe().context("finding this program")?;
    let mut command = Command::new(program);
    command.args(["hold", "--database", &database.to_string(), "--seconds", &seconds.to_string()]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true).spawn().context("starting another process")
}

/// Waits for its end, and reads what it tells.
pub(crate) async fn end(child: Child) -> anyhow::Result<Held> {
    let output = child.wait_with_output().await?;
    if !output.status.success() {
        bail!("the other process ended with {}", output.status);
    }
    serde_json::from_slice(&output.stdout).context("reading what the other process tells")
}

/// What the process does.
pub(crate) async fn hold(args: &Args, since: Stopwatch) -> anyhow::Result<()> {
    let database = match &args.database {
        Place::Sqlite(path) => Database::Sqlite(path.clone()),
        Place::Postgres(address) => Database::Postgres(address.clone()),
    };
    let starts = Arc::<Starts>::default();
    let agency = Agency { agent: HELD_AGENT.to_owned(), busy: 0 };
    let mut node = Node::open(&database, "held", &agency, &starts).await?;
    let open_s = since.elapsed().as_secs_f64();
    node.start();
    starts.reach(1, START_MAX).await?;
    let first_start_s = since.elapsed().as_secs_f64();
    let rest_s = rest().await.map(|rest| rest.as_secs_f64());
    let watch = Stopwatch::start();
    tokio::time::sleep(Duration::from_secs(args.seconds_or(3, 20))).await;
    let idle_cpu_percent = watch.cpu().as_secs_f64() / watch.elapsed().as_secs_f64() * 100.0;
    let held = Held { open_s, first_start_s, rest_s, idle_cpu_percent, rss_mb: resident_mb() };
    node.stop().await?;
    println!("{}", serde_json::to_string(&held)?);
    Ok(())
}

/// Waits until this process needs little of a core for a second. How long that took; none if it did not come.
async fn rest() -> Option<Duration> {
    let all = Stopwatch::start();
    while all.elapsed() < REST_WITHIN {
        let (before, watch) = (all.elapsed(), Stopwatch::start());
        tokio::time::sleep(Duration::from_secs(1)).await;
        if watch.cpu().as_secs_f64() < REST_BELOW {
            return Some(before);
        }
    }
    None
}

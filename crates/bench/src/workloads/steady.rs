//! `steady`: so many runs a second for a while, and how late each starts.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::late::each_once;
use super::{World, measurement};
use crate::args::Args;
use crate::measure::{Spread, Stopwatch, resident_mb};
use crate::node::{AGENT, Agency, Node, Start};
use crate::report::{Measurement, per_second, round};
use crate::seed;

/// Runs a second.
pub(crate) const RATE: usize = 200;

/// What is not there so long after its time does not come any more.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) async fn steady(args: &Args) -> anyhow::Result<()> {
    let runs = args.runs_or(RATE * 3, RATE * 10);
    let mut world = World::open(args, &Agency::default()).await?;
    world.nodes.iter_mut().for_each(Node::start);
    let beat = begin(&world, runs).await?;
    let watch = Stopwatch::start();
    let starts = beat.end(&world).await?;
    let (took, cpu) = (watch.elapsed(), watch.cpu());
    let rss_mb = resident_mb().map(round);
    world.close().await?;
    let late: Vec<f64> = starts.iter().map(Start::late_ms).collect();
    let early = late.iter().filter(|late| late.is_sign_negative()).count();
    let measured = Measurement {
        runs_per_s: Some(round(per_second(runs as u64, took))),
        cpu_us_per_run: Some(round(cpu.as_secs_f64() * 1e6 / runs as f64)),
        rss_mb,
        ..measurement(args, "steady", runs)
    };
    measured.late(Spread::of(late)).and("early", early as f64).print()
}

/// Runs that begin to be due soon, one after the other.
pub(crate) struct Beat {
    runs: usize,
    ends_at: Timestamp,
}

/// Creates one-shot schedules, [`RATE`] for each second, and returns just before the first is due.
pub(crate) async fn begin(world: &World, runs: usize) -> anyhow::Result<Beat> {
    let node = world.node();
    let now = node.now();
    let first = now + SignedDuration::from_millis(1_500 + runs as i64 * 2);
    let gap = SignedDuration::from_micros(1_000_000 / RATE as i64);
    let due = move |number: usize| first + gap * i32::try_from(number).unwrap_or(i32::MAX);
    let each = move |number| seed::schedule(AGENT, seed::once(due(number)), now);
    seed::create(node, runs, seed::CALLERS, each).await?;
    world.nodes.iter().for_each(|node| node.nudges.schedules_changed());
    let left = Duration::try_from(first.duration_since(node.now())).unwrap_or_default();
    tokio::time::sleep(left.saturating_sub(Duration::from_millis(20))).await;
    Ok(Beat { runs, ends_at: due(runs) })
}

impl Beat {
    /// Waits for the last of them. Each of them started, and none twice.
    pub(crate) async fn end(self, world: &World) -> anyhow::Result<Vec<Start>> {
        let left = Duration::try_from(self.ends_at.duration_since(world.node().now())).unwrap_or_default();
        world.starts.reach(self.runs as u64, left + PATIENCE).await?;
        let starts = world.starts.take();
        each_once(&starts, self.runs)?;
        Ok(starts)
    }
}

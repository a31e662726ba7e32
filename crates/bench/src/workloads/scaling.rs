//! `scaling`: how fast runs start beside many that wait, beside agents at their limit, and with a long history, and how long the
//! sums of that history take, each against a small database in the same run, in turns.

use std::time::Duration;

use punctual_store::HistoryFilter;

use super::{World, measurement};
use crate::args::Args;
use crate::measure::{Stopwatch, median, resident_mb};
use crate::node::{AGENT, Agency, Node, busy_agent};
use crate::report::{Measurement, per_second, round};
use crate::seed;

/// A node that starts nothing for so long has failed.
const PATIENCE: Duration = Duration::from_secs(900);

/// How often sums are asked for.
const SUMS: usize = 50;

/// What is in the way.
#[derive(Debug, Clone, Copy)]
enum Ballast {
    /// Runs that wait for one agent.
    Waiting(usize),
    /// Agents at their limit, each with a run that waits.
    Agents(usize),
    /// Runs that have ended.
    History(usize),
}

impl Ballast {
    fn name(self) -> &'static str {
        match self {
            Ballast::Waiting(_) => "scaling: waiting",
            Ballast::Agents(_) => "scaling: agents at their limit",
            Ballast::History(_) => "scaling: history",
        }
    }

    fn size(self) -> usize {
        match self {
            Ballast::Waiting(size) | Ballast::Agents(size) | Ballast::History(size) => size,
        }
    }

    fn agency(self) -> Agency {
        let busy = match self {
            Ballast::Waiting(_) => 1,
            Ballast::Agents(agents) => agents,
            Ballast::History(_) => 0,
        };
        Agency { busy, ..Agency::default() }
    }

    /// Puts it there. How many live runs that leaves.
    async fn put(self, world: &World) -> anyhow::Result<()> {
        let node = world.node();
        match self {
            Ballast::Waiting(runs) => seed::ask_for_runs(node, &busy_agent(0), runs + 1).await?,
            Ballast::Agents(agents) => {
                for number in 0..agents {
                    seed::ask_for_runs(node, &busy_agent(number), 2).await?;
                }
            }
            Ballast::History(runs) => {
                seed::ask_for_runs_of_schedules(node, AGENT, runs).await?;
                node.nudges.runs_changed();
                world.starts.reach(runs as u64, PATIENCE.max(Duration::from_millis(runs as u64))).await?;
                world.starts.take();
            }
        }
        node.nudges.runs_changed();
        Ok(())
    }
}

pub(crate) async fn scaling(args: &Args) -> anyhow::Result<()> {
    let runs = args.runs_or(1_000, 5_000);
    let waiting = Ballast::Waiting(args.count_or(5_000, 1_000_000));
    let agents = Ballast::Agents(args.count.map_or(if args.full { 1_000 } else { 50 }, |count| (count / 1_000).max(1)));
    let history = Ballast::History(args.count_or(5_000, 1_000_000));
    for ballast in [waiting, agents, history] {
        compare(args, ballast, runs).await?;
    }
    Ok(())
}

async fn compare(args: &Args, ballast: Ballast, runs: usize) -> anyhow::Result<()> {
    let mut small = World::open(args, &Agency::default()).await?;
    let mut large = World::open(args, &ballast.agency()).await?;
    small.nodes.iter_mut().chain(&mut large.nodes).for_each(Node::start);
    ballast.put(&large).await?;
    // The first is not measured: caches fill, statements are prepared.
    started_per_second(&small, runs).await?;
    started_per_second(&large, runs).await?;
    let (mut in_small, mut in_large, mut times) = (vec![], vec![], vec![]);
    for round in 0..args.rounds {
        // Each goes first in every other round, so that being first is worth nothing.
        let (few, many) = if round % 2 == 0 {
            let few = started_per_second(&small, runs).await?;
            (few, started_per_second(&large, runs).await?)
        } else {
            let many = started_per_second(&large, runs).await?;
            (started_per_second(&small, runs).await?, many)
        };
        times.push(few / many);
        in_small.push(few);
        in_large.push(many);
    }
    let rss_mb = resident_mb().map(round);
    let sums = times_for_sums(&small, &large).await?;
    small.close().await?;
    large.close().await?;
    let measured =
        Measurement { runs_per_s: median(in_large).map(round), rss_mb, ..measurement(args, ballast.name(), runs) };
    let measured = measured.and("ballast", ballast.size() as f64).and("small_per_s", median(in_small));
    measured.and("times_small", median(times)).and("sums_times_small", sums).print()
}

/// How many times as long the sums of the large history take.
async fn times_for_sums(small: &World, large: &World) -> anyhow::Result<Option<f64>> {
    // The snapshot follows when nothing else is to be done, and the sums with it.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let mut times = vec![];
    for _ in 0..SUMS {
        let mut took = vec![];
        for world in [small, large] {
            let watch = Stopwatch::start();
            world.node().store.totals(&HistoryFilter::default()).await?;
            took.push(watch.elapsed().as_secs_f64());
        }
        times.push(took[1] / took[0]);
    }
    Ok(median(times))
}

/// Asks for runs while the nodes are paused, and lets them start: how many a second.
async fn started_per_second(world: &World, runs: usize) -> anyhow::Result<f64> {
    world.nodes.iter().for_each(|node| node.nudges.pause());
    // A round that has begun goes on.
    tokio::time::sleep(Duration::from_millis(100)).await;
    seed::ask_for_runs(world.node(), AGENT, runs).await?;
    super::none_started(world)?;
    let watch = Stopwatch::start();
    world.nodes.iter().for_each(|node| node.nudges.resume());
    world.starts.reach(runs as u64, PATIENCE).await?;
    let took = watch.elapsed();
    world.starts.take();
    // Their ends are written before the next are asked for.
    tokio::time::sleep(Duration::from_millis(500)).await;
    Ok(per_second(runs as u64, took))
}

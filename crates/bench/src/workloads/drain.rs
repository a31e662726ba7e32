//! `drain`: runs that are all due, and how many a second go through. `limit`: the same by plain SQL, alone.

use std::time::Duration;

use anyhow::ensure;
use punctual_store::HistoryFilter;

use super::late::each_once;
use super::{World, measurement};
use crate::args::Args;
use crate::limit;
use crate::measure::{Stopwatch, median, resident_mb};
use crate::node::{AGENT, Agency};
use crate::report::{Measurement, per_second, round};
use crate::seed;

/// A node that gets nothing done for so long has failed.
const PATIENCE: Duration = Duration::from_secs(900);

/// What one round of ours came to.
pub(crate) struct Drained {
    pub(crate) per_s: f64,
    pub(crate) cpu_us: f64,
    pub(crate) rss_mb: Option<f64>,
}

pub(crate) async fn drain(args: &Args) -> anyhow::Result<()> {
    let runs = args.runs_or(5_000, 100_000);
    let (mut ours, mut plain, mut shares) = (vec![], vec![], vec![]);
    for _ in 0..args.rounds {
        let limit = per_second(runs as u64, limit::drain(&args.database, runs).await?);
        let world = World::open(args, &Agency::default()).await?;
        let drained = one_round(world, runs).await?;
        shares.push(drained.per_s / limit);
        plain.push(limit);
        ours.push(drained);
    }
    let of = |part: fn(&Drained) -> f64| median(ours.iter().map(part)).map(round);
    let measured = Measurement {
        runs_per_s: of(|it| it.per_s),
        limit_per_s: median(plain.iter().copied()).map(round),
        share: median(shares.iter().copied()).map(round),
        cpu_us_per_run: of(|it| it.cpu_us),
        rss_mb: median(ours.iter().filter_map(|it| it.rss_mb)).map(round),
        ..measurement(args, "drain", runs)
    };
    // How far the rounds lie apart says how far to trust the middle one.
    let (low, high) =
        (|it: &[f64]| it.iter().copied().reduce(f64::min), |it: &[f64]| it.iter().copied().reduce(f64::max));
    let rates: Vec<f64> = ours.iter().map(|it| it.per_s).collect();
    let measured = measured.and("lowest_per_s", low(&rates)).and("highest_per_s", high(&rates));
    let measured = measured.and("limit_lowest_per_s", low(&plain)).and("limit_highest_per_s", high(&plain));
    measured.and("share_lowest", low(&shares)).and("share_highest", high(&shares)).print()
}

async fn one_round(mut world: World, runs: usize) -> anyhow::Result<Drained> {
    for node in &mut world.nodes {
        node.start_paused().await?;
    }
    seed::ask_for_runs_of_schedules(world.node(), AGENT, runs).await?;
    let drained = start_and_wait(&world, runs, 0).await?;
    each_once(&world.starts.take(), runs)?;
    let stored = HistoryFilter { agent: Some(AGENT.to_owned()), ..HistoryFilter::default() };
    let stored = world.node().store.count_history(&stored).await?;
    ensure!(stored == runs as u64, "{stored} ends are stored, not {runs}");
    world.close().await?;
    Ok(drained)
}

/// Lets paused nodes go on, and waits until so many runs have started and all but `left` have ended.
pub(crate) async fn start_and_wait(world: &World, runs: usize, left: u64) -> anyhow::Result<Drained> {
    super::none_started(world)?;
    let watch = Stopwatch::start();
    world.nodes.iter().for_each(|node| node.nudges.resume());
    world.starts.reach(runs as u64, PATIENCE).await?;
    world.node().all_ended(left).await?;
    let (took, cpu) = (watch.elapsed(), watch.cpu());
    let (per_s, cpu_us) = (per_second(runs as u64, took), cpu.as_secs_f64() * 1e6 / runs as f64);
    Ok(Drained { per_s, cpu_us, rss_mb: resident_mb() })
}

pub(crate) async fn limit(args: &Args) -> anyhow::Result<()> {
    let runs = args.runs_or(5_000, 100_000);
    let (mut rates, mut cpu) = (vec![], vec![]);
    for _ in 0..args.rounds {
        let watch = Stopwatch::start();
        rates.push(per_second(runs as u64, limit::drain(&args.database, runs).await?));
        cpu.push(watch.cpu().as_secs_f64() * 1e6 / runs as f64);
    }
    let measured = Measurement {
        nodes: 0,
        limit_per_s: median(rates).map(round),
        cpu_us_per_run: median(cpu).map(round),
        ..measurement(args, "limit", runs)
    };
    measured.print()
}

//! `join`: another process joins a database with many schedules and live runs, while a node works.

use anyhow::bail;

use super::hold::{self, HELD_AGENT};
use super::schedules::create_idle;
use super::steady::{self, RATE};
use super::{World, measurement};
use crate::args::Args;
use crate::database::Place;
use crate::measure::Spread;
use crate::node::{Agency, Node, Start, busy_agent};
use crate::report::{Measurement, round};
use crate::seed;

pub(crate) async fn join(args: &Args) -> anyhow::Result<()> {
    if matches!(args.database, Place::Sqlite(_)) {
        bail!("SQLite has one node; join is for postgres://");
    }
    let (count, runs) = (args.count_or(2_000, 100_000), args.runs_or(RATE * 3, RATE * 10));
    let mut world = World::open(args, &Agency { busy: 1, ..Agency::default() }).await?;
    world.nodes.iter_mut().for_each(Node::start);
    create_idle(world.node(), count).await?;
    seed::ask_for_runs(world.node(), &busy_agent(0), count).await?;
    let quiet = steady::begin(&world, runs).await?.end(&world).await?;
    // Nobody here has its agent: it waits for whoever joins.
    seed::ask_for_runs(world.node(), HELD_AGENT, 1).await?;
    let beat = steady::begin(&world, runs).await?;
    let child = hold::start(&world.scratch.database, 2)?;
    let starts = beat.end(&world).await?;
    let held = hold::end(child).await?;
    world.close().await?;
    let p99 = |starts: &[Start]| Spread::of(starts.iter().map(Start::late_ms)).map(|it| it.p99);
    let measured = Measurement { nodes: 2, rss_mb: held.rss_mb.map(round), ..measurement(args, "join", count) };
    let measured = measured.late(Spread::of(starts.iter().map(Start::late_ms))).and("quiet_p99_ms", p99(&quiet));
    measured.and("join_s", held.first_start_s).and("open_s", held.open_s).print()
}

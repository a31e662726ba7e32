//! `retention`: old runs and journal entries are let go while runs start.

use std::sync::Arc;
use std::time::Duration;

use punctual_store::Store;

use super::steady::{self, RATE};
use super::{World, measurement};
use crate::args::Args;
use crate::measure::{Spread, Stopwatch, resident_mb};
use crate::node::{AGENT, Agency, Node, Start};
use crate::report::{Measurement, round};
use crate::seed;

/// A node that gets nothing done for so long has failed.
const PATIENCE: Duration = Duration::from_secs(1_800);

pub(crate) async fn retention(args: &Args) -> anyhow::Result<()> {
    let (entries, runs) = (args.count_or(10_000, 1_000_000), args.runs_or(RATE * 3, RATE * 10));
    let mut world = World::open(args, &Agency::default()).await?;
    world.nodes.iter_mut().for_each(Node::start);
    // Each run leaves at least its end in the journal.
    let (mut ended, node) = (0_usize, world.node());
    while node.store.head().await?.seq < entries as u64 {
        let more = 5_000.min(entries);
        seed::ask_for_runs(node, AGENT, more).await?;
        node.nudges.runs_changed();
        world.starts.reach(more as u64, PATIENCE).await?;
        world.starts.take();
        node.all_ended(0).await?;
        ended += more;
    }
    let quiet = steady::begin(&world, runs).await?.end(&world).await?;
    let beat = steady::begin(&world, runs).await?;
    let letting_go = tokio::spawn(let_go(Arc::clone(&node.store), node.now()));
    let starts = beat.end(&world).await?;
    let gone = letting_go.await??;
    let rss_mb = resident_mb().map(round);
    world.close().await?;
    let p99 = |starts: &[Start]| Spread::of(starts.iter().map(Start::late_ms)).map(|it| it.p99);
    let measured = Measurement { rss_mb, ..measurement(args, "retention", entries) };
    let measured = measured.late(Spread::of(starts.iter().map(Start::late_ms))).and("quiet_p99_ms", p99(&quiet));
    let measured = measured.and("runs_before", ended as f64);
    measured.and("entries_gone", gone.entries as f64).and("took_s", gone.took.as_secs_f64()).print()
}

/// What was let go.
struct Gone {
    entries: u64,
    took: Duration,
}

/// Lets go of everything that is old by this instant.
async fn let_go(store: Arc<dyn Store>, now: jiff::Timestamp) -> anyhow::Result<Gone> {
    let watch = Stopwatch::start();
    let entries = store.prune(now).await?;
    Ok(Gone { entries, took: watch.elapsed() })
}

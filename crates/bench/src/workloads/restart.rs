//! `restart`: schedules spread over the day, a stop, and a start: until the first run, and what the outage cost.

use std::time::Duration;

use punctual_core::journal::Verdict;
use punctual_store::HistoryFilter;

use super::hold::{self, HELD_AGENT};
use super::schedules::stop_and_leave_a_run;
use super::{World, measurement};
use crate::args::Args;
use crate::node::{Agency, Node};
use crate::report::{Measurement, round};
use crate::seed;

/// How long no node lives.
const OUTAGE: Duration = Duration::from_secs(5);

pub(crate) async fn restart(args: &Args) -> anyhow::Result<()> {
    let count = args.count_or(2_000, 100_000);
    // The first node has the agent of the schedules too, so that nothing waits for another reason than the outage.
    let agency = Agency { agent: HELD_AGENT.to_owned(), ..Agency::default() };
    let mut world = World::open(args, &agency).await?;
    world.nodes.iter_mut().for_each(Node::start);
    let now = world.node().now();
    let mut triggers = vec![];
    for number in 0..count.min(86_400) {
        triggers.push(seed::daily(u32::try_from(number * 86_400 / count.min(86_400))?)?);
    }
    let each = move |number: usize| seed::schedule(HELD_AGENT, triggers[number % triggers.len()].clone(), now);
    seed::create(world.node(), count, seed::CALLERS, each).await?;
    stop_and_leave_a_run(&mut world).await?;
    tokio::time::sleep(OUTAGE).await;
    let held = hold::end(hold::start(&world.scratch.database, args.seconds_or(3, 20))?).await?;
    let store = world.scratch.database.open().await?;
    let skipped = HistoryFilter { verdict: Some(Verdict::Skipped), ..HistoryFilter::default() };
    let (skipped, all) = (store.count_history(&skipped).await?, store.count_history(&HistoryFilter::default()).await?);
    tokio::task::spawn_blocking(move || drop(store)).await?;
    world.close().await?;
    let measured = Measurement { rss_mb: held.rss_mb.map(round), ..measurement(args, "restart", count) };
    let measured = measured.and("restart_s", held.first_start_s).and("open_s", held.open_s).and("rest_s", held.rest_s);
    measured.and("skipped", skipped as f64).and("ended", (all - skipped) as f64).print()
}

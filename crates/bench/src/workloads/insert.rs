//! `insert`: creating schedules, by one caller, by 64, and by as many as fit into a batch, beside plain SQL.

use super::schedules::second_of_day;
use super::{World, measurement};
use crate::args::Args;
use crate::limit;
use crate::measure::{Stopwatch, median};
use crate::node::{AGENT, Agency, Node};
use crate::report::{Measurement, per_second, round};
use crate::seed;

pub(crate) async fn insert(args: &Args) -> anyhow::Result<()> {
    let count = args.count_or(2_000, 20_000);
    let (mut one, mut many, mut bulk, mut plain, mut shares, mut times) =
        (vec![], vec![], vec![], vec![], vec![], vec![]);
    for _ in 0..args.rounds {
        let mut world = World::open(args, &Agency::default()).await?;
        world.nodes.iter_mut().for_each(Node::start);
        let node = world.node();
        let now = node.now();
        let schedule = seed::schedule(AGENT, seed::daily(second_of_day(now) + 11 * 3_600)?, now);
        let definition = serde_json::to_string(&schedule)?;
        let limit = limit::insert(&args.database, &vec![definition; count]).await?;
        let create = async |count: usize, callers: usize| {
            let (schedule, watch) = (schedule.clone(), Stopwatch::start());
            seed::create(node, count, callers, move |_| schedule.clone()).await?;
            anyhow::Ok(per_second(count as u64, watch.elapsed()))
        };
        let (by_one, by_many) = (create((count / 20).max(1), 1).await?, create((count / 2).max(1), 64).await?);
        let by_all = create(count, limit::BATCH).await?;
        world.close().await?;
        let limit = per_second(count as u64, limit);
        times.push(by_many / by_one);
        shares.push(by_all / limit);
        one.push(by_one);
        many.push(by_many);
        bulk.push(by_all);
        plain.push(limit);
    }
    let measured = Measurement {
        runs_per_s: median(bulk).map(round),
        limit_per_s: median(plain).map(round),
        share: median(shares).map(round),
        ..measurement(args, "insert", count)
    };
    let measured = measured.and("one_per_s", median(one)).and("callers_64_per_s", median(many));
    measured.and("callers_64_times_one", median(times)).print()
}

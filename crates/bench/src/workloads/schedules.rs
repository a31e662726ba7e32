//! `schedules`: many that do nothing for now, and what they cost; or many at an interval, and whether the rate is held.

use std::time::Duration;

use anyhow::Context;
use jiff::{SignedDuration, Timestamp};
use punctual_core::Elapsed;
use punctual_core::schedule::Trigger;
use punctual_core::time::Every;

use super::hold::{self, HELD_AGENT};
use super::{World, measurement};
use crate::args::Args;
use crate::measure::{Spread, Stopwatch, resident_mb};
use crate::node::{AGENT, Agency, Node, Start};
use crate::report::{Measurement, per_second, round};
use crate::seed;

/// The second of the day, in UTC.
pub(crate) fn second_of_day(at: Timestamp) -> u32 {
    u32::try_from(at.as_second().rem_euclid(86_400)).unwrap_or_default()
}

/// Creates schedules that fire once a day, in the two hours that begin in eleven hours. How many a second.
pub(crate) async fn create_idle(node: &Node, count: usize) -> anyhow::Result<f64> {
    let now = node.now();
    let from = second_of_day(now) + 11 * 3_600;
    let mut triggers = vec![];
    for second in 0..7_200_u32.min(u32::try_from(count).unwrap_or(u32::MAX)) {
        triggers.push(seed::daily(from + second)?);
    }
    let watch = Stopwatch::start();
    let each = move |number: usize| seed::schedule(HELD_AGENT, triggers[number % triggers.len()].clone(), now);
    seed::create(node, count, seed::CALLERS, each).await?;
    Ok(per_second(count as u64, watch.elapsed()))
}

/// Stops all nodes, and leaves a run behind that the next one can start at once.
pub(crate) async fn stop_and_leave_a_run(world: &mut World) -> anyhow::Result<()> {
    for node in std::mem::take(&mut world.nodes) {
        node.stop().await?;
    }
    let node = Node::open(&world.scratch.database, "bench", &Agency::default(), &world.starts).await?;
    seed::ask_for_runs(&node, HELD_AGENT, 1).await?;
    node.stop().await
}

pub(crate) async fn daily(args: &Args) -> anyhow::Result<()> {
    let count = args.count_or(2_000, 100_000);
    let mut world = World::open(args, &Agency::default()).await?;
    world.nodes.iter_mut().for_each(Node::start);
    let created = create_idle(world.node(), count).await?;
    stop_and_leave_a_run(&mut world).await?;
    let held = hold::end(hold::start(&world.scratch.database, args.seconds_or(3, 20))?).await?;
    world.close().await?;
    let measured = Measurement { rss_mb: held.rss_mb.map(round), ..measurement(args, "schedules", count) };
    let measured = measured.and("restart_s", held.first_start_s).and("open_s", held.open_s).and("rest_s", held.rest_s);
    measured.and("idle_cpu_percent", held.idle_cpu_percent).and("create_per_s", created).print()
}

pub(crate) async fn at_interval(args: &Args, interval: Elapsed) -> anyhow::Result<()> {
    let (count, seconds) = (args.count_or(300, 100_000), args.seconds_or(15, 600));
    let mut world = World::open(args, &Agency::default()).await?;
    world.nodes.iter_mut().for_each(Node::start);
    let node = world.node();
    let yearly = create_yearly(node, count.min(2_000)).await?;
    let spread = Phases::new(node.now(), interval, count)?;
    let watch = Stopwatch::start();
    let (triggers, now) = (spread.triggers.clone(), node.now());
    seed::create(node, count, seed::CALLERS, move |number| seed::schedule(AGENT, triggers[number].clone(), now))
        .await?;
    let created = per_second(count as u64, watch.elapsed());
    world.nodes.iter().for_each(|node| node.nudges.schedules_changed());
    // What creating them has left to do is not what is measured.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let (from, watch) = (world.node().now(), Stopwatch::start());
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let until = world.node().now();
    let (took, cpu) = (watch.elapsed(), watch.cpu());
    // The last of them may be a little late.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let rss_mb = resident_mb().map(round);
    let is_inside = |start: &Start| from < start.scheduled_at && start.scheduled_at <= until;
    let starts: Vec<Start> = world.starts.take().into_iter().filter(is_inside).collect();
    world.close().await?;
    let wanted = spread.slots(from, until);
    let middle = from + SignedDuration::try_from(took / 2)?;
    let (first, second): (Vec<Start>, Vec<Start>) = starts.iter().partition(|start| start.scheduled_at <= middle);
    let p99 = |starts: &[Start]| Spread::of(starts.iter().map(Start::late_ms)).map(|it| it.p99);
    let measured = Measurement {
        runs_per_s: Some(round(per_second(starts.len() as u64, took))),
        cpu_us_per_run: Some(round(cpu.as_secs_f64() * 1e6 / starts.len().max(1) as f64)),
        rss_mb,
        ..measurement(args, "schedules --every", count)
    };
    let measured = measured.late(Spread::of(starts.iter().map(Start::late_ms)));
    let measured = measured.and("held_share", starts.len() as f64 / wanted.max(1) as f64);
    let measured = measured.and("p99_first_half_ms", p99(&first)).and("p99_second_half_ms", p99(&second));
    measured.and("create_per_s", created).and("create_times_yearly", yearly / created).print()
}

/// Creates schedules that fire once a year. How many a second.
async fn create_yearly(node: &Node, count: usize) -> anyhow::Result<f64> {
    let now = node.now();
    let at = now + SignedDuration::from_hours(365 * 24);
    let watch = Stopwatch::start();
    seed::create(node, count, seed::CALLERS, move |_| seed::schedule(HELD_AGENT, seed::once(at), now)).await?;
    Ok(per_second(count as u64, watch.elapsed()))
}

/// Schedules of one interval, spread evenly over it.
struct Phases {
    triggers: std::sync::Arc<[Trigger]>,
    anchors_ms: Vec<i64>,
    interval_ms: i64,
}

impl Phases {
    fn new(now: Timestamp, interval: Elapsed, count: usize) -> anyhow::Result<Phases> {
        let interval_ms = interval.milliseconds();
        let base = now.as_millisecond() - 86_400_000;
        let anchors_ms: Vec<i64> = (0..count as i64).map(|number| base + number * interval_ms / count as i64).collect();
        let trigger =
            |at: &i64| anyhow::Ok(Trigger::Every(Every::from_anchor(interval, Timestamp::from_millisecond(*at)?)?));
        let triggers: Vec<Trigger> = anchors_ms.iter().map(trigger).collect::<Result<_, _>>().context("an interval")?;
        Ok(Phases { triggers: triggers.into(), anchors_ms, interval_ms })
    }

    /// How many slots lie behind one instant, up to another.
    fn slots(&self, from: Timestamp, until: Timestamp) -> usize {
        let up_to = |anchor: i64, at: Timestamp| (at.as_millisecond() - anchor).div_euclid(self.interval_ms);
        let of = |anchor: &i64| usize::try_from(up_to(*anchor, until) - up_to(*anchor, from)).unwrap_or_default();
        self.anchors_ms.iter().map(of).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_of_schedules_spread_over_an_interval_come_evenly() {
        let now: Timestamp = "2026-01-05T09:00:00Z".parse().expect("it is a time");
        let spread = Phases::new(now, Elapsed::from_seconds(300), 600).expect("it is an interval");
        let seconds = SignedDuration::from_secs;
        assert_eq!(spread.slots(now, now + seconds(10)), 20);
        assert_eq!(spread.slots(now, now + seconds(300)), 600);
        assert_eq!(spread.slots(now, now), 0);
    }
}

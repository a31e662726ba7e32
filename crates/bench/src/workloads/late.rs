//! `late`: many runs due at one instant, and how late each starts.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::ensure;
use jiff::{SignedDuration, Timestamp};
use punctual_core::schedule::{Crons, Trigger};
use punctual_core::time::Cron;

use super::{World, measurement};
use crate::args::Args;
use crate::limit;
use crate::measure::{Spread, Stopwatch, resident_mb};
use crate::node::{AGENT, Agency, Start};
use crate::report::{Measurement, round};
use crate::seed;

/// What is not there so long after its time does not come any more.
const PATIENCE: Duration = Duration::from_secs(300);

/// Creating a schedule takes less than this, even on a slow machine.
const CREATE_MAX: SignedDuration = SignedDuration::from_millis(2);

pub(crate) async fn late(args: &Args) -> anyhow::Result<()> {
    let runs = args.runs_or(1_000, 1_000);
    let (mut ours, mut plain, mut cpu, mut early) = (vec![], vec![], vec![], 0);
    for _ in 0..args.rounds {
        plain.extend(Spread::of(limit::late(&args.database, runs).await?));
        let lead = SignedDuration::from_secs(2).saturating_add(CREATE_MAX * i32::try_from(runs)?);
        let round = one_round(args, runs, |now| (now + lead, seed::once(now + lead))).await?;
        early += round.early;
        cpu.push(round.cpu_us);
        ours.extend(Spread::of(round.late));
    }
    print(args, "late", runs, &ours, &plain, cpu, early)
}

pub(crate) async fn cron(args: &Args) -> anyhow::Result<()> {
    let count = args.count_or(1_000, 10_000);
    let lead = SignedDuration::from_secs(3).saturating_add(CREATE_MAX * i32::try_from(count)?);
    let mut plain = vec![];
    plain.extend(Spread::of(limit::late(&args.database, count).await?));
    // One minute of waiting is enough: a cron has no finer time.
    let round = one_round(args, count, |now| {
        let at = next_minute(now + lead);
        (at, at_minute(at))
    })
    .await?;
    // Once before and once after: a disk is not always equally fast.
    plain.extend(Spread::of(limit::late(&args.database, count).await?));
    let spread = Spread::of(round.late);
    print(args, "late --cron", count, &Vec::from_iter(spread), &plain, vec![round.cpu_us], round.early)
}

fn print(
    args: &Args,
    workload: &str,
    runs: usize,
    ours: &[Spread],
    plain: &[Spread],
    cpu: Vec<f64>,
    early: usize,
) -> anyhow::Result<()> {
    let (spread, plain) = (Spread::median_of(ours), Spread::median_of(plain));
    let times = spread.zip(plain).map(|(ours, plain)| ours.p99 / plain.p99);
    let measured = Measurement {
        cpu_us_per_run: crate::measure::median(cpu).map(round),
        rss_mb: resident_mb().map(round),
        ..measurement(args, workload, runs)
    };
    let measured = measured.late(spread).and("first_ms", spread.map(|it| it.first)).and("early", early as f64);
    let measured = measured.and("plain_p50_ms", plain.map(|it| it.p50)).and("plain_p99_ms", plain.map(|it| it.p99));
    measured.and("times_plain_p99", times).print()
}

/// What one round came to.
struct Round {
    late: Vec<f64>,
    cpu_us: f64,
    early: usize,
}

async fn one_round(
    args: &Args,
    count: usize,
    plan: impl FnOnce(Timestamp) -> (Timestamp, Trigger),
) -> anyhow::Result<Round> {
    let mut world = World::open(args, &Agency::default()).await?;
    world.nodes.iter_mut().for_each(crate::node::Node::start);
    let now = world.node().now();
    let (at, trigger) = plan(now);
    let schedule = seed::schedule(AGENT, trigger, now);
    seed::create(world.node(), count, seed::CALLERS, move |_| schedule.clone()).await?;
    world.nodes.iter().for_each(|node| node.nudges.schedules_changed());
    let now = world.node().now();
    ensure!(now < at, "creating {count} schedules took until {now}, and they were due at {at}: nothing is measured");
    let rest = Duration::try_from(at.duration_since(now)).unwrap_or_default();
    tokio::time::sleep(rest.saturating_sub(Duration::from_millis(50))).await;
    let watch = Stopwatch::start();
    world.starts.reach(count as u64, PATIENCE).await?;
    world.node().all_ended(0).await?;
    let cpu_us = watch.cpu().as_secs_f64() * 1e6 / count as f64;
    let starts = world.starts.take();
    each_once(&starts, count)?;
    world.close().await?;
    let late: Vec<f64> = starts.iter().map(Start::late_ms).collect();
    let early = late.iter().filter(|late| late.is_sign_negative()).count();
    Ok(Round { late, cpu_us, early })
}

/// Every run has started, and none twice.
pub(crate) fn each_once(starts: &[Start], count: usize) -> anyhow::Result<()> {
    let runs: BTreeSet<_> = starts.iter().map(|start| start.run).collect();
    ensure!(
        starts.len() == count && runs.len() == count,
        "{} starts of {} runs, not {count}",
        starts.len(),
        runs.len()
    );
    Ok(())
}

/// The first whole minute behind an instant.
fn next_minute(after: Timestamp) -> Timestamp {
    let second = (after.as_second().div_euclid(60) + 1) * 60;
    Timestamp::from_second(second).unwrap_or(after)
}

/// A cron for the minute of this instant, every day.
fn at_minute(at: Timestamp) -> Trigger {
    let minute = at.as_second().div_euclid(60);
    let text = format!("{} {} * * *", minute.rem_euclid(60), minute.div_euclid(60).rem_euclid(24));
    Trigger::Cron(Crons::one(Cron::parse(&text, None).expect("it is a cron")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_minute_lies_behind_and_has_its_cron() {
        let at = |text: &str| -> Timestamp { text.parse().expect("it is a time") };
        let next = next_minute(at("2026-01-05T23:59:00Z"));
        assert_eq!(next, at("2026-01-06T00:00:00Z"));
        let Trigger::Cron(crons) = at_minute(at("2026-01-05T17:08:00Z")) else { panic!("it is a cron") };
        assert_eq!(crons.iter().next().expect("there is one").cron.text(), "8 17 * * *");
    }

    #[test]
    fn a_run_that_starts_twice_is_noticed() {
        let now = Timestamp::UNIX_EPOCH;
        let start =
            |id| Start { run: punctual_core::RunId(uuid::Uuid::from_u128(id)), scheduled_at: now, started_at: now };
        assert!(each_once(&[start(1), start(2)], 2).is_ok());
        assert!(each_once(&[start(1), start(1)], 2).is_err());
        assert!(each_once(&[start(1)], 2).is_err());
    }
}

//! `list`: the first page of a day's plan, as the API gives it, while runs start.

use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use jiff::Timestamp;
use punctual_core::Elapsed;
use punctual_core::schedule::Schedule;
use punctual_engine::ids::RandomIds;
use punctual_server::auth::Doors;
use punctual_server::{App, ConductorRules, HouseRules, Pulse};
use tokio_util::sync::CancellationToken;

use super::hold::HELD_AGENT;
use super::steady::{self, RATE};
use super::{World, measurement};
use crate::args::Args;
use crate::measure::{Spread, Stopwatch, resident_mb};
use crate::node::{Agency, Node, Start};
use crate::report::{Measurement, ms, round};
use crate::seed;

/// How long between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// What is asked: today, the first page.
const FIRST_PAGE: &str = "/api/executions/future?size=100";

pub(crate) async fn list(args: &Args) -> anyhow::Result<()> {
    let (count, runs) = (args.count_or(2_000, 100_000), args.runs_or(RATE * 3, RATE * 10));
    let mut world = World::open(args, &Agency::default()).await?;
    world.nodes.iter_mut().for_each(Node::start);
    create_for_today(world.node(), count).await?;
    let quiet = steady::begin(&world, runs).await?.end(&world).await?;
    let app = app(world.node())?;
    let beat = steady::begin(&world, runs).await?;
    let end = CancellationToken::new();
    let looking = tokio::spawn(look(app, end.clone()));
    let starts = beat.end(&world).await?;
    end.cancel();
    let looks = looking.await??;
    let rss_mb = resident_mb().map(round);
    world.close().await?;
    let p99 = |starts: &[Start]| Spread::of(starts.iter().map(Start::late_ms)).map(|it| it.p99);
    let measured = Measurement { rss_mb, ..measurement(args, "list", count) };
    let measured = measured.and("looks", looks.len() as f64).late(Spread::of(looks));
    measured.and("steady_p99_ms", p99(&starts)).and("quiet_p99_ms", p99(&quiet)).print()
}

/// Daily schedules, spread over what is left of the day, in a zone where it is morning.
async fn create_for_today(node: &Node, count: usize) -> anyhow::Result<()> {
    let now = node.now();
    let zone = morning_zone(now);
    let (from, hours) = (9 * 3_600, 14 * 3_600);
    let mut triggers = vec![];
    for second in 0..hours.min(u32::try_from(count)?) {
        triggers.push(seed::daily(from + second)?);
    }
    let triggers = Arc::new(triggers);
    let each = move |number: usize| {
        let trigger = triggers[number % triggers.len()].clone();
        Schedule { zone: zone.as_str().into(), ..seed::schedule(HELD_AGENT, trigger, now) }
    };
    seed::create(node, count, seed::CALLERS, each).await
}

/// A zone in which it is between six and seven in the morning.
fn morning_zone(now: Timestamp) -> String {
    let hour = now.as_second().div_euclid(3_600).rem_euclid(24);
    // The names count west of Greenwich as positive.
    let west = if 18 < hour { hour - 30 } else { hour - 6 };
    format!("Etc/GMT{west:+}")
}

/// Asks for the first page again and again. How long each took, in milliseconds.
async fn look(app: App, end: CancellationToken) -> anyhow::Result<Vec<f64>> {
    let mut took = vec![];
    while !end.is_cancelled() {
        let watch = Stopwatch::start();
        let answer = punctual_server::look(app.clone(), FIRST_PAGE).await?;
        took.push(ms(watch.elapsed()));
        let said = String::from_utf8_lossy(&answer.body);
        ensure!(answer.status == 200, "the list ended with {}: {said}", answer.status);
        tokio::time::sleep(LOOK_EVERY).await;
    }
    Ok(took)
}

fn app(node: &Node) -> anyhow::Result<App> {
    let utc = node.settings.zones.get("UTC")?;
    Ok(App {
        store: Arc::clone(&node.store),
        editor: node.editor.clone(),
        clock: Arc::clone(&node.clock),
        ids: Arc::new(RandomIds),
        settings: Arc::clone(&node.settings),
        rules: Arc::new(HouseRules {
            default_zone: utc.clone(),
            min_interval: Elapsed::from_seconds(1),
            runs_per_day_warning: usize::MAX,
            conductor: ConductorRules::new(utc),
        }),
        nudges: Arc::clone(&node.nudges),
        meters: Default::default(),
        doors: Arc::new(Doors::new(vec![])),
        pulse: Pulse::new(CancellationToken::new()),
        calculations: Default::default(),
    })
}

#[cfg(test)]
mod tests {
    use punctual_core::time::Zones;

    use super::*;

    #[test]
    fn it_is_morning_somewhere_at_every_hour() {
        for hour in 0..24 {
            let now: Timestamp = format!("2026-01-05T{hour:02}:30:00Z").parse().expect("it is a time");
            let zone = Zones::bundled().get(&morning_zone(now)).expect("it is a zone");
            let local = (now.as_second() + i64::from(zone.offset_at(now))).rem_euclid(86_400);
            assert_eq!(local, 6 * 3_600 + 1_800, "{hour}");
        }
    }
}

//! Schedules of every kind, with every policy, as somebody might ask for them.

use std::num::NonZeroU32;

use jiff::{SignedDuration, Timestamp};
use punctual_core::Elapsed;
use punctual_core::run::{AfterLoss, Backoff, RetryPolicy};
use punctual_core::schedule::{
    After, At, Bounds, CatchUp, CatchUpMode, Concurrency, Crons, DstPolicy, GapPolicy, Immediate, MaxDelay, OnEvent,
    Overlap, Policy, Priority, RepeatPolicy, Schedule, Trigger, Work, ZonedCron,
};
use punctual_core::time::{Cron, Every, TimesOfDay, Zones};

use crate::random::Random;
use crate::setup::{AGENTS, PROJECTS, ZONES};

/// Patterns that meet clock changes, midnights and each other.
const CRONS: [&str; 14] = [
    "0 9 * * *",
    "30 2 * * *",
    "30 1 * * *",
    "0 0 * * *",
    "15 0 * * *",
    "0 * * * *",
    "*/30 * * * *",
    "15,45 */2 * * *",
    "0 0 * * MON-FRI",
    "59 23 * * *",
    "0 2-3 * * *",
    "0 0 3 1/2 * ?",
    "0 0/20 0-6 * * *",
    "*/15 22-23 * * *",
];

/// A schedule that nobody has asked for yet.
pub(crate) fn schedule(random: &mut Random, zones: &Zones, now: Timestamp) -> Schedule {
    let zone = random.pick(&ZONES).to_string();
    let (trigger, is_fast) = trigger(random, zones, &zone, now);
    let draft = Schedule::draft(work(random), trigger, zone, now);
    Schedule {
        project: random.chance(60).then(|| random.pick(&PROJECTS).to_string()).into(),
        calendar: random.chance(15).then(|| "office".to_owned()).into(),
        bounds: bounds(random, now, is_fast).into(),
        jitter: if random.chance(25) { seconds(random, 1, 1_800) } else { Elapsed::ZERO },
        policy: policy(random).into(),
        ..draft
    }
}

fn work(random: &mut Random) -> Work {
    let agent = random.weighted(&[(30, 0), (30, 1), (30, 2), (8, 3), (2, 4)]);
    Work::Agent {
        agent: AGENTS[agent].into(),
        prompt: Default::default(),
        inputs: Default::default(),
        inputs_policy: Default::default(),
    }
}

/// When it fires, and whether it does so many times a minute.
pub(crate) fn trigger(random: &mut Random, zones: &Zones, zone: &str, now: Timestamp) -> (Trigger, bool) {
    let zone = zones.get(zone).expect("the zone data has it");
    let ahead = |random: &mut Random| now + SignedDuration::from_secs(random.between(0, 2 * 86_400) as i64);
    let trigger = match random.below(100) {
        0..35 => {
            let count = random.weighted(&[(70, 1), (20, 2), (10, 3)]);
            let crons = (0..count).map(|index| cron(random, index)).collect();
            Trigger::Cron(Crons::new(crons).expect("there is one"))
        }
        35..50 => {
            let times: Vec<String> = (0..random.between(1, 4)).map(|_| time_of_day(random)).collect();
            Trigger::Times(TimesOfDay::parse(&times).expect("these are times"))
        }
        50..75 => {
            let interval = Elapsed::from_seconds(*random.pick(&[900, 1_000, 1_800, 3_600, 5_400, 7_200, 21_600]));
            Trigger::Every(Every::anchored(interval, &zone, now).expect("it is long enough"))
        }
        75..82 => Trigger::At(At(ahead(random))),
        82..87 => Trigger::After(After { delay: seconds(random, 1, 86_400), from: now }),
        87..92 => Trigger::Immediate(Immediate { at: now }),
        92..98 => Trigger::OnEvent(OnEvent::new("Something", seconds(random, 0, 3_600)).expect("it has a name")),
        _ => {
            let interval = Elapsed::from_seconds(random.between(1, 20) as u32);
            let every = Every::from_anchor(interval, now).expect("it is long enough");
            return (Trigger::Every(every), true);
        }
    };
    (trigger, false)
}

fn cron(random: &mut Random, index: u64) -> ZonedCron {
    let text = random.pick(&CRONS);
    let zone = (0 < index && random.chance(50)).then(|| random.pick(&ZONES).to_string());
    ZonedCron { cron: Cron::parse(text, None).expect("these are crons"), zone }
}

fn time_of_day(random: &mut Random) -> String {
    let odd = ["00:00", "00:30", "01:30", "02:00", "02:30", "03:00", "23:59:59"];
    if random.chance(50) {
        return random.pick(&odd).to_string();
    }
    format!("{:02}:{:02}", random.below(24), random.below(60))
}

/// Fast ones are short: a history has hundreds of runs, not thousands.
fn bounds(random: &mut Random, now: Timestamp, is_fast: bool) -> Bounds {
    let after = |random: &mut Random, last| now + SignedDuration::from_secs(random.between(60, last) as i64);
    let start_at = random.chance(10).then(|| after(random, 86_400));
    let end_at = if is_fast {
        Some(start_at.unwrap_or(now) + SignedDuration::from_secs(random.between(30, 120) as i64))
    } else {
        random.chance(10).then(|| start_at.unwrap_or(now) + SignedDuration::from_hours(random.between(1, 60) as i64))
    };
    let max_runs = random.chance(15).then(|| random.between(1, 12));
    Bounds::new(start_at, end_at, max_runs).expect("the end lies behind the start")
}

/// How it behaves.
pub(crate) fn policy(random: &mut Random) -> Policy {
    let modes = [CatchUpMode::None, CatchUpMode::First, CatchUpMode::Latest, CatchUpMode::All];
    let catch_up = CatchUp {
        mode: *random.pick(&modes),
        max: *random.pick(&[1, 3, 10, 100]),
        window: random.chance(25).then(|| seconds(random, 600, 86_400)),
        covers_pauses: random.chance(25),
    };
    let max_delay = match random.below(3) {
        0 => MaxDelay::Day,
        1 => MaxDelay::Duration(seconds(random, 60, 4 * 3_600)),
        _ => MaxDelay::None,
    };
    let retry = RetryPolicy {
        max_attempts: NonZeroU32::new(random.between(1, 5) as u32).expect("it is not 0"),
        backoff: *random.pick(&[Backoff::Fixed, Backoff::Exponential]),
        delay: seconds(random, 0, 600),
        delay_max: Elapsed::from_seconds(1_800),
        jitter: seconds(random, 0, 60),
    };
    let dst = DstPolicy {
        gap: *random.pick(&[GapPolicy::After, GapPolicy::Skip]),
        repeat: *random.pick(&[RepeatPolicy::Once, RepeatPolicy::Both]),
    };
    Policy {
        dst,
        catch_up,
        overlap: *random.pick(&[Overlap::Allow, Overlap::Skip, Overlap::Queue, Overlap::Replace]),
        max_delay,
        retry,
        after_loss: *random.pick(&[AfterLoss::Retry, AfterLoss::Hold]),
        timeout: seconds(random, 60, 3_600),
        priority: Priority::new(random.between(1, 10) as u8).expect("it is 1 to 10"),
        max_concurrent: NonZeroU32::new(random.between(1, 4) as u32).expect("it is not 0"),
        concurrency: random.chance(15).then(|| Concurrency {
            key: random.pick(&["account", "machine"]).to_string(),
            max: NonZeroU32::new(random.between(1, 2) as u32).expect("it is not 0"),
        }),
        risk_gate: false,
    }
}

fn seconds(random: &mut Random, first: u64, last: u64) -> Elapsed {
    Elapsed::from_seconds(random.between(first, last) as u32)
}

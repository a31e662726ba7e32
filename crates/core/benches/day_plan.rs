//! The day plan of 100,000 schedules on one core: what a node does with a full house at midnight.
//!
//! The mix is fixed, so that two versions of the code do the same work: 11 schedules of 20 at times of day, 6 at a rhythm,
//! and 3 rare ones that have nothing on most days.

use std::sync::LazyLock;

use divan::counter::ItemsCount;
use divan::{AllocProfiler, Bencher, black_box};
use jiff::Timestamp;
use jiff::civil::{Date, date};
use punctual_core::schedule::{Crons, DstPolicy, Trigger};
use punctual_core::time::{Cron, Dialect, Elapsed, Every, TimesOfDay, Timetable, Zones};

#[global_allocator]
static ALLOCATIONS: AllocProfiler = AllocProfiler::system();

const SCHEDULES: usize = 100_000;

const ZONES: [&str; 10] = [
    "America/New_York",
    "America/Los_Angeles",
    "America/Sao_Paulo",
    "Europe/London",
    "Europe/Paris",
    "Africa/Cairo",
    "Asia/Kolkata",
    "Asia/Tokyo",
    "Australia/Sydney",
    "UTC",
];

/// A Monday like any other, and the Sunday on which Europe's clocks go forward.
const DAYS: [Date; 2] = [date(2026, 6, 15), date(2026, 3, 29)];

static TIMETABLES: LazyLock<Vec<Timetable>> = LazyLock::new(|| {
    let zones = Zones::bundled();
    (0..SCHEDULES)
        .map(|number| {
            // Twenty kinds, then ten zones, then the next time of day: no zone is tied to a kind.
            let (kind, zone, turn) = (number % 20, number / 20 % 10, number / 200);
            let trigger = trigger(kind, turn);
            Timetable::new(&trigger, ZONES[zone], DstPolicy::default(), &zones).unwrap()
        })
        .collect()
});

fn main() {
    for day in DAYS {
        println!("{day}: {SCHEDULES} schedules have {} slots", slots_on(day));
    }
    divan::main();
}

/// The throughput is in slots.
#[divan::bench(args = DAYS, sample_count = 10, sample_size = 1)]
fn day_plans(bencher: Bencher<'_, '_>, day: Date) {
    bencher.counter(ItemsCount::new(slots_on(day))).bench_local(|| {
        for timetable in TIMETABLES.iter() {
            black_box(timetable.day_plan(black_box(day)));
        }
    });
}

fn slots_on(day: Date) -> usize {
    TIMETABLES.iter().map(|timetable| timetable.day_plan(day).len()).sum()
}

fn trigger(kind: usize, turn: usize) -> Trigger {
    let (minute, hour, day) = (turn * 7 % 60, turn % 24, turn % 28 + 1);
    match kind {
        0..=4 => cron(&format!("{minute} {hour} * * MON-FRI")),
        5..=7 => cron(&format!("{minute} {hour} * * *")),
        8 => cron(&format!("{minute} 9,12,17 * * *")),
        9 => cron("*/5 9-17 * * MON-FRI"),
        10 => cron("*/15 * * * *"),
        11 => cron(&format!("{minute} * * * *")),
        12 => cron(&format!("{minute} */2 * * SAT,SUN")),
        13 => cron(&format!("{minute} {hour} {day} * *")),
        14 => cron(&format!("0 {minute} {hour} L * ?")),
        15 => quartz(&format!("0 {minute} {hour} ? * 6#2")),
        16..=17 => times(&["09:00", "13:00", "17:30"]),
        18 => every("30m"),
        _ => every("7h"),
    }
}

fn cron(text: &str) -> Trigger {
    Trigger::Cron(Crons::one(Cron::parse(text, None).unwrap()))
}

fn quartz(text: &str) -> Trigger {
    Trigger::Cron(Crons::one(Cron::parse(text, Some(Dialect::Quartz)).unwrap()))
}

fn times(times: &[&str]) -> Trigger {
    Trigger::Times(TimesOfDay::parse(times).unwrap())
}

fn every(interval: &str) -> Trigger {
    let anchor: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    Trigger::Every(Every::from_anchor(Elapsed::parse(interval).unwrap(), anchor).unwrap())
}

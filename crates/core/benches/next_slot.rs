//! How long "when does this fire next?" takes, for us and for the cron crates of the ecosystem, in America/New_York.
//!
//! Each row is timed in two forms. *Fresh*: compiled once, then asked for the slot behind one of 64 instants of 2026, so that
//! no answer can be remembered. *Chained*: one slot after another, as an iterator gives them. Before anything is timed, all
//! engines must agree on the answers: engines that do different work cannot be compared.
//!
//! Compare only within one run. A result without lines about allocations below it has made none; Croner's iterator copies its
//! pattern, so a short chain that begins again shows a few.

mod engines;

use divan::{AllocProfiler, Bencher};
use punctual_core::schedule::{Crons, DstPolicy, Trigger};
use punctual_core::time::{Timetable, Zones};

use engines::{Cron, Croner, Cronexpr, Engine, Punctual};

#[global_allocator]
static ALLOCATIONS: AllocProfiler = AllocProfiler::system();

/// 2026-01-01T00:00:00Z.
const YEAR_STARTS: i64 = 1_767_225_600;
/// A sample goes through all of them four times.
const STARTS: usize = 64;
/// 64 of these are a little less than a year, and no two starts share their time of day.
const STEP: i64 = 490_877;
/// 2090-01-01T00:00:00Z. Chains begin again here: `cron` knows no year behind 2100.
const CHAIN_ENDS: i64 = 3_786_912_000;

fn main() {
    for row in [WEEKDAYS, OFFICE_HOURS, LEAP_DAY, LAST_DAY, INTERVAL, TIMES] {
        check_agreement::<Croner>(&row, row.croner);
        check_agreement::<Cron>(&row, row.cron);
    }
    // Without `LAST_DAY`, where `cronexpr` loses every 31 December; the other eleven months are the same work.
    for row in [WEEKDAYS, OFFICE_HOURS, LEAP_DAY, INTERVAL, TIMES] {
        check_agreement::<Cronexpr>(&row, row.cronexpr);
    }
    divan::main();
}

/// One row of the table: the same times in the dialect of each engine, `None` where it cannot say them.
struct Row {
    punctual: Rule,
    croner: Option<&'static str>,
    cron: Option<&'static str>,
    cronexpr: Option<&'static str>,
}

enum Rule {
    Cron(&'static str),
    Every(&'static str),
    Times(&'static [&'static str]),
}

const WEEKDAYS: Row = Row {
    punctual: Rule::Cron("0 9 * * MON-FRI"),
    croner: Some("0 9 * * MON-FRI"),
    cron: Some("0 0 9 * * MON-FRI"),
    cronexpr: Some("0 9 * * MON-FRI America/New_York"),
};
const OFFICE_HOURS: Row = Row {
    punctual: Rule::Cron("*/5 9-17 * * MON-FRI"),
    croner: Some("*/5 9-17 * * MON-FRI"),
    cron: Some("0 */5 9-17 * * MON-FRI"),
    cronexpr: Some("*/5 9-17 * * MON-FRI America/New_York"),
};
const LEAP_DAY: Row = Row {
    punctual: Rule::Cron("0 0 29 2 *"),
    croner: Some("0 0 29 2 *"),
    cron: Some("0 0 0 29 2 *"),
    cronexpr: Some("0 0 29 2 * America/New_York"),
};
/// `cron` has no `L`. `cronexpr` has no seconds and says the same in five fields.
const LAST_DAY: Row = Row {
    punctual: Rule::Cron("0 0 0 L * ?"),
    croner: Some("0 0 0 L * *"),
    cron: None,
    cronexpr: Some("0 0 L * * America/New_York"),
};
/// The others know no elapsed time. `*/30` is the same wherever clocks change by whole hours, as they do in this zone.
const INTERVAL: Row = Row {
    punctual: Rule::Every("30m"),
    croner: Some("*/30 * * * *"),
    cron: Some("0 */30 * * * *"),
    cronexpr: Some("*/30 * * * * America/New_York"),
};
/// On the hour, so that the others can say it in one expression: for times like 17:30 among them they would need two.
const TIMES: Row = Row {
    punctual: Rule::Times(&["09:00", "13:00", "17:00"]),
    croner: Some("0 9,13,17 * * *"),
    cron: Some("0 0 9,13,17 * * *"),
    cronexpr: Some("0 9,13,17 * * * America/New_York"),
};

#[divan::bench_group(name = "1: 0 9 * * MON-FRI", sample_count = 50, sample_size = 256)]
mod weekdays {
    use super::*;

    #[divan::bench(types = [Punctual, Croner, Cron, Cronexpr])]
    fn fresh<E: Engine>(bencher: Bencher<'_, '_>) {
        time_fresh::<E>(bencher, &WEEKDAYS);
    }

    #[divan::bench(types = [Punctual, Croner, Cron, Cronexpr])]
    fn chained<E: Engine>(bencher: Bencher<'_, '_>) {
        time_chained::<E>(bencher, &WEEKDAYS);
    }
}

#[divan::bench_group(name = "2: */5 9-17 * * MON-FRI", sample_count = 50, sample_size = 256)]
mod office_hours {
    use super::*;

    #[divan::bench(types = [Punctual, Croner, Cron, Cronexpr])]
    fn fresh<E: Engine>(bencher: Bencher<'_, '_>) {
        time_fresh::<E>(bencher, &OFFICE_HOURS);
    }

    #[divan::bench(types = [Punctual, Croner, Cron, Cronexpr])]
    fn chained<E: Engine>(bencher: Bencher<'_, '_>) {
        time_chained::<E>(bencher, &OFFICE_HOURS);
    }
}

#[divan::bench_group(name = "3: 0 0 29 2 *", sample_count = 50, sample_size = 256)]
mod leap_day {
    use super::*;

    #[divan::bench(types = [Punctual, Croner, Cron, Cronexpr])]
    fn fresh<E: Engine>(bencher: Bencher<'_, '_>) {
        time_fresh::<E>(bencher, &LEAP_DAY);
    }

    #[divan::bench(types = [Punctual, Croner, Cron, Cronexpr])]
    fn chained<E: Engine>(bencher: Bencher<'_, '_>) {
        time_chained::<E>(bencher, &LEAP_DAY);
    }
}

#[divan::bench_group(name = "4: 0 0 0 L * ?", sample_count = 50, sample_size = 256)]
mod last_day {
    use super::*;

    #[divan::bench(types = [Punctual, Croner, Cronexpr])]
    fn fresh<E: Engine>(bencher: Bencher<'_, '_>) {
        time_fresh::<E>(bencher, &LAST_DAY);
    }

    #[divan::bench(types = [Punctual, Croner, Cronexpr])]
    fn chained<E: Engine>(bencher: Bencher<'_, '_>) {
        time_chained::<E>(bencher, &LAST_DAY);
    }
}

#[divan::bench_group(name = "5: every 30m", sample_count = 50, sample_size = 256)]
mod interval {
    use super::*;

    #[divan::bench(types = [Punctual, Croner, Cron, Cronexpr])]
    fn fresh<E: Engine>(bencher: Bencher<'_, '_>) {
        time_fresh::<E>(bencher, &INTERVAL);
    }

    #[divan::bench(types = [Punctual, Croner, Cron, Cronexpr])]
    fn chained<E: Engine>(bencher: Bencher<'_, '_>) {
        time_chained::<E>(bencher, &INTERVAL);
    }
}

#[divan::bench_group(name = "6: 09:00, 13:00, 17:00", sample_count = 50, sample_size = 256)]
mod times {
    use super::*;

    #[divan::bench(types = [Punctual, Croner, Cron, Cronexpr])]
    fn fresh<E: Engine>(bencher: Bencher<'_, '_>) {
        time_fresh::<E>(bencher, &TIMES);
    }

    #[divan::bench(types = [Punctual, Croner, Cron, Cronexpr])]
    fn chained<E: Engine>(bencher: Bencher<'_, '_>) {
        time_chained::<E>(bencher, &TIMES);
    }
}

/// What proves that there is no 30 February. The others are left out: they stop looking after some years, or burn a core.
#[divan::bench(name = "7: 0 0 30 2 * (never)", sample_count = 50, sample_size = 16)]
fn never(bencher: Bencher<'_, '_>) {
    let trigger =
        Trigger::Cron(Crons::one(punctual_core::time::Cron::parse("0 0 30 2 *", None).expect("it is a cron")));
    let zones = Zones::bundled();
    let timetable = Timetable::new(&trigger, "America/New_York", DstPolicy::default(), &zones).expect("it is a zone");
    let start = jiff::Timestamp::from_second(YEAR_STARTS).expect("it is an instant");
    bencher.bench_local(|| assert!(timetable.slots(start).next().is_none()));
}

fn time_fresh<E: Engine>(bencher: Bencher<'_, '_>, row: &Row) {
    let engine = E::compile(row);
    let starts: Vec<E::Start> = starts().map(E::start).collect();
    let mut turn = 0;
    bencher.bench_local(|| {
        turn = (turn + 1) % STARTS;
        engine.next(&starts[turn])
    });
}

fn time_chained<E: Engine>(bencher: Bencher<'_, '_>, row: &Row) {
    let engine = E::compile(row);
    let start = E::start(YEAR_STARTS);
    let mut chain = engine.chain(start.clone());
    bencher.bench_local(|| {
        let second = chain.next().expect("no rule ends before the chain does");
        if CHAIN_ENDS < second {
            chain = engine.chain(start.clone());
        }
        second
    });
}

fn starts() -> impl Iterator<Item = i64> {
    (0..STARTS as i64).map(|turn| YEAR_STARTS + turn * STEP)
}

/// From each start and along a chain, an engine gives the slots that we give.
fn check_agreement<E: Engine>(row: &Row, expression: Option<&str>) {
    let Some(expression) = expression else { return };
    let (ours, theirs) = (Punctual::compile(row), E::compile(row));
    for second in starts() {
        let (our_start, their_start) = (Punctual::start(second), E::start(second));
        let found = theirs.next(&their_start);
        assert_eq!(found, ours.next(&our_start), "{expression} after {second}");
        let found: Vec<i64> = theirs.chain(their_start).take(10).collect();
        let expected: Vec<i64> = ours.chain(our_start).take(10).collect();
        assert_eq!(found, expected, "{expression} along a chain from {second}");
    }
}

//! The engines that are compared, each used as its own documentation shows.

use std::str::FromStr;

use chrono::DateTime;
use chrono_tz::Tz;
use jiff::Timestamp;
use punctual_core::schedule::{Crons, DstPolicy, Trigger};
use punctual_core::time::{Elapsed, Every, TimesOfDay, Timetable, Zones};

use crate::{Row, Rule};

const ZONE: &str = "America/New_York";

/// What can say when a row fires next. Answers are UTC seconds, made inside the timed part, so that no engine drops its own
/// value for free.
pub(crate) trait Engine {
    /// An instant in the type that the engine asks for, so that no conversion is timed.
    type Start: Clone;

    fn compile(row: &Row) -> Self;
    fn start(second: i64) -> Self::Start;
    /// The next time behind `start`.
    fn next(&self, start: &Self::Start) -> i64;
    /// The times behind `start`, one after another.
    fn chain(&self, start: Self::Start) -> impl Iterator<Item = i64>;
}

pub(crate) struct Punctual(Timetable);

impl Engine for Punctual {
    type Start = Timestamp;

    fn compile(row: &Row) -> Punctual {
        let zones = Zones::bundled();
        let trigger = match row.punctual {
            Rule::Cron(text) => Trigger::Cron(Crons::one(punctual_core::time::Cron::parse(text, None).unwrap())),
            Rule::Every(text) => {
                let interval = Elapsed::parse(text).unwrap();
                let zone = zones.get(ZONE).unwrap();
                let set_at = Punctual::start(crate::YEAR_STARTS);
                Trigger::Every(Every::anchored(interval, &zone, set_at).unwrap())
            }
            Rule::Times(times) => Trigger::Times(TimesOfDay::parse(times).unwrap()),
        };
        Punctual(Timetable::new(&trigger, ZONE, DstPolicy::default(), &zones).unwrap())
    }

    fn start(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn next(&self, start: &Timestamp) -> i64 {
        self.0.slots(*start).next().unwrap().scheduled_at.as_second()
    }

    fn chain(&self, start: Timestamp) -> impl Iterator<Item = i64> {
        self.0.slots(start).map(|slot| slot.scheduled_at.as_second())
    }
}

/// With chrono, its default and the faster of its two: jiff costs it up to a tenth more.
pub(crate) struct Croner(croner::Cron);

impl Engine for Croner {
    type Start = DateTime<Tz>;

    fn compile(row: &Row) -> Croner {
        Croner(croner::Cron::from_str(row.croner.unwrap()).unwrap())
    }

    fn start(second: i64) -> DateTime<Tz> {
        in_chrono(second)
    }

    fn next(&self, start: &DateTime<Tz>) -> i64 {
        self.0.find_next_occurrence(start, false).unwrap().timestamp()
    }

    fn chain(&self, start: DateTime<Tz>) -> impl Iterator<Item = i64> {
        self.0.iter_after(start).map(|time| time.timestamp())
    }
}

pub(crate) struct Cron(cron::Schedule);

impl Engine for Cron {
    type Start = DateTime<Tz>;

    fn compile(row: &Row) -> Cron {
        Cron(cron::Schedule::from_str(row.cron.unwrap()).unwrap())
    }

    fn start(second: i64) -> DateTime<Tz> {
        in_chrono(second)
    }

    fn next(&self, start: &DateTime<Tz>) -> i64 {
        self.0.after(start).next().unwrap().timestamp()
    }

    fn chain(&self, start: DateTime<Tz>) -> impl Iterator<Item = i64> {
        self.0.after(&start).map(|time| time.timestamp())
    }
}

pub(crate) struct Cronexpr(cronexpr::Crontab);

impl Engine for Cronexpr {
    type Start = cronexpr::MakeTimestamp;

    fn compile(row: &Row) -> Cronexpr {
        Cronexpr(cronexpr::parse_crontab(row.cronexpr.unwrap()).unwrap())
    }

    fn start(second: i64) -> cronexpr::MakeTimestamp {
        cronexpr::MakeTimestamp::from_second(second).unwrap()
    }

    fn next(&self, start: &cronexpr::MakeTimestamp) -> i64 {
        self.0.find_next(*start).unwrap().timestamp().as_second()
    }

    fn chain(&self, start: cronexpr::MakeTimestamp) -> impl Iterator<Item = i64> {
        self.0.iter_after(start).unwrap().map(|time| time.unwrap().timestamp().as_second())
    }
}

fn in_chrono(second: i64) -> DateTime<Tz> {
    DateTime::from_timestamp_secs(second).unwrap().with_timezone(&chrono_tz::America::New_York)
}

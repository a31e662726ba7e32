//! The zones and the moments at which their clocks change.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use jiff::civil::date;
use jiff::tz::{Offset, TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp};

use super::clock::timestamp;

/// A zone whose clock goes its own way between 2000 and 2037.
pub(crate) struct City {
    pub(crate) name: String,
    /// The changes of its clock; for a clock that never changes, some quiet instants.
    pub(crate) instants: Vec<i64>,
    /// Whether the clock never changes.
    pub(crate) is_quiet: bool,
}

static DATABASE: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// A zone of Jiff's own database, which knows nothing of the library.
pub(crate) fn zone_named(name: &str) -> TimeZone {
    DATABASE.get(name).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Zones whose clocks do something unusual, and when. They come first and stand for their twins.
const UNUSUAL: [(&str, &[i16]); 20] = [
    ("UTC", &[2000]),
    ("America/New_York", &[2006, 2026]),
    ("Europe/London", &[2026]),
    ("Australia/Lord_Howe", &[2026]),          // Half an hour.
    ("Africa/Casablanca", &[2012, 2026]),      // Back for Ramadan; a negative summer time.
    ("Africa/Cairo", &[2010]),                 // Four changes, at midnight.
    ("America/Santiago", &[2024]),             // At midnight, so that a day begins at one.
    ("Pacific/Apia", &[2011]),                 // A day left out.
    ("Pacific/Fakaofo", &[2011]),              // The same, without summer time.
    ("Europe/Dublin", &[2026]),                // A negative winter time.
    ("America/St_Johns", &[2010]),             // At one minute past midnight.
    ("Asia/Kathmandu", &[2000]),               // Never, and at a quarter of an hour.
    ("Asia/Pyongyang", &[2015, 2018]),         // Half an hour, across midnight.
    ("Antarctica/Troll", &[2026]),             // Two hours.
    ("America/Caracas", &[2007, 2016]),        // Half an hour.
    ("America/Nuuk", &[2023, 2026]),           // On Saturday evening.
    ("America/Havana", &[2026]),               // From midnight to one.
    ("Asia/Gaza", &[2011, 2023]),              // For Ramadan, four times in a year.
    ("Antarctica/Casey", &[2009, 2010, 2020]), // Two and three hours.
    ("Asia/Kolkata", &[2000]),
];

/// Every zone that differs from the others in the tested years.
pub(crate) fn distinct() -> Vec<City> {
    let names: BTreeSet<String> = DATABASE.available().map(|name| name.as_str().to_owned()).collect();
    let mut seen = BTreeSet::new();
    let unusual = UNUSUAL.into_iter().map(|(name, _)| name.to_owned());
    unusual.chain(names).filter(|name| seen.insert(history(name))).map(City::new).collect()
}

impl City {
    fn new(name: String) -> City {
        let (_, changes) = history(&name);
        // The walk by minutes relies on it.
        let is_by_the_minute = changes.iter().all(|(at, offset)| at % 60 == 0 && offset % 60 == 0);
        assert!(is_by_the_minute, "{name} changes within a minute");
        let mut instants: Vec<i64> = changes.into_iter().map(|(at, _)| at).collect();
        let is_quiet = instants.is_empty();
        if is_quiet {
            instants = quiet_instants(if name == "UTC" { 1 } else { 48 });
        }
        City { name, instants, is_quiet }
    }

    /// The instants in the years for which an unusual zone is known.
    pub(crate) fn unusual_instants(&self) -> Option<Vec<i64>> {
        let (_, years) = UNUSUAL.into_iter().find(|(name, _)| *name == self.name)?;
        let year = |at: i64| Offset::UTC.to_datetime(timestamp(at)).year();
        Some(self.instants.iter().copied().filter(|&at| years.contains(&year(at))).collect())
    }
}

/// The first offset, and every change with the offset behind it, all in seconds.
fn history(name: &str) -> (i32, Vec<(i64, i32)>) {
    let zone = zone_named(name);
    let utc = |year: i16| Offset::UTC.to_timestamp(date(year, 1, 1).at(0, 0, 0, 0)).expect("a year of the test");
    let (first, end): (Timestamp, Timestamp) = (utc(2000), utc(2038));
    // What follows an instant does not include it.
    let changes = zone.following(first - SignedDuration::from_secs(1)).take_while(|change| change.timestamp() < end);
    let changes = changes.map(|change| (change.timestamp().as_second(), change.offset().seconds()));
    (zone.to_offset(first).seconds(), changes.collect())
}

/// The beginning and the middle of every so many months.
fn quiet_instants(every_months: usize) -> Vec<i64> {
    let months = (2000..2038).flat_map(|year| (1..=12).map(move |month| (year, month)));
    let instant = |(year, month, day): (i16, i8, i8)| {
        let start = date(year, month, day).at(0, 0, 0, 0);
        Offset::UTC.to_timestamp(start).expect("a month of the test").as_second()
    };
    months.step_by(every_months).flat_map(|(year, month)| [(year, month, 1), (year, month, 15)]).map(instant).collect()
}

/// An instant as text, for messages.
pub(crate) fn text_of(second: i64) -> String {
    timestamp(second).to_string()
}

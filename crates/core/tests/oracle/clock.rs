//! What the clocks of the zones show, instant by instant.
//!
//! In: a zone of Jiff's own database and a window. Out: every reading of its clock, and every reading it jumps over. Jumps
//! are noticed the way a person at the wall would: by comparing each reading with the ones before.

use std::collections::HashMap;

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::{Offset, TimeZone};

use super::zones::zone_named;

/// A stretch of time, both ends exclusive, in UTC seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) after: i64,
    pub(crate) until: i64,
    /// How far apart the looks at the clock are.
    pub(crate) step: i64,
}

impl Window {
    /// Three days, by the minute.
    pub(crate) fn by_minutes(middle: i64) -> Window {
        Window { after: middle - 36 * 3600, until: middle + 36 * 3600, step: 60 }
    }

    /// Two hours, by the second.
    pub(crate) fn by_seconds(middle: i64) -> Window {
        Window { after: middle - 3600, until: middle + 3600, step: 1 }
    }
}

/// One time that a clock shows, or jumps over.
pub(crate) struct Reading {
    /// The instant of the look; for a time that is jumped over, the first one behind the jump.
    pub(crate) at: i64,
    /// How far the clock is ahead of UTC at that instant, in seconds.
    pub(crate) offset: i64,
    /// Which of the [`Readings::dates`] it is on.
    pub(crate) day: usize,
    pub(crate) hour: i8,
    pub(crate) minute: i8,
    pub(crate) second: i8,
    pub(crate) kind: ReadingKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadingKind {
    Shown,
    /// Shown before, and again after the clock went back.
    ShownAgain,
    /// Never shown: the clock jumped this many seconds ahead.
    Missing {
        gap_seconds: i64,
    },
}

/// All readings of one clock in a window, in the order in which a slot would come.
pub(crate) struct Readings {
    pub(crate) zone: TimeZone,
    pub(crate) dates: Vec<Date>,
    pub(crate) readings: Vec<Reading>,
}

/// Longer than any clock was ever set back in the years of the test.
const LOOK_BACK: i64 = 4 * 3600;

impl Readings {
    pub(crate) fn of(zone: TimeZone, window: Window) -> Readings {
        let mut all = Readings { zone, dates: vec![], readings: vec![] };
        let mut latest_shown: Option<i64> = None;
        let mut at = window.after - LOOK_BACK;
        while at < window.until {
            let local = all.zone.to_datetime(timestamp(at));
            let shown = seconds_on_the_clock(local);
            let latest = latest_shown.unwrap_or(shown - window.step);
            assert!(latest - shown < LOOK_BACK, "a clock went back further than the walk looks");
            if window.after < at {
                let first_missing = latest + window.step;
                let gap_seconds = shown - first_missing;
                for missing in (first_missing..shown).step_by(window.step as usize) {
                    let local = Offset::UTC.to_datetime(timestamp(missing));
                    all.push(at, shown - at, local, ReadingKind::Missing { gap_seconds });
                }
                let is_again = shown <= latest;
                all.push(at, shown - at, local, if is_again { ReadingKind::ShownAgain } else { ReadingKind::Shown });
            }
            latest_shown = Some(latest.max(shown));
            at += window.step;
        }
        all
    }

    fn push(&mut self, at: i64, offset: i64, local: DateTime, kind: ReadingKind) {
        let day = match self.dates.iter().rposition(|&date| date == local.date()) {
            Some(day) => day,
            None => {
                self.dates.push(local.date());
                self.dates.len() - 1
            }
        };
        let (hour, minute, second) = (local.hour(), local.minute(), local.second());
        self.readings.push(Reading { at, offset, day, hour, minute, second, kind });
    }

    /// The local time of a reading.
    pub(crate) fn local(&self, reading: &Reading) -> DateTime {
        self.dates[reading.day].at(reading.hour, reading.minute, reading.second, 0)
    }
}

/// The clocks of all zones that a pattern asks for, in one window.
pub(crate) struct Clocks {
    window: Window,
    by_zone: HashMap<String, Readings>,
}

impl Clocks {
    pub(crate) fn new(window: Window) -> Clocks {
        Clocks { window, by_zone: HashMap::new() }
    }

    /// Looks at a zone's clock, once for all patterns.
    pub(crate) fn observe(&mut self, zone: &str) {
        if !self.by_zone.contains_key(zone) {
            self.by_zone.insert(zone.to_owned(), Readings::of(zone_named(zone), self.window));
        }
    }

    /// What an observed clock showed.
    pub(crate) fn readings(&self, zone: &str) -> &Readings {
        &self.by_zone[zone]
    }
}

pub(crate) fn timestamp(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("an instant of the tested years")
}

fn seconds_on_the_clock(local: DateTime) -> i64 {
    Offset::UTC.to_timestamp(local).expect("a time of the tested years").as_second()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(zone: &str, middle: &str, window: fn(i64) -> Window) -> Readings {
        let middle: Timestamp = middle.parse().unwrap();
        Readings::of(zone_named(zone), window(middle.as_second()))
    }

    fn texts(readings: &Readings, is_wanted: impl Fn(ReadingKind) -> bool) -> Vec<String> {
        let wanted = readings.readings.iter().filter(|reading| is_wanted(reading.kind));
        wanted.map(|reading| readings.local(reading).to_string()).collect()
    }

    #[test]
    fn a_jump_ahead_leaves_out_an_hour() {
        let readings = around("America/New_York", "2026-03-08T07:00Z", Window::by_minutes);
        let missing = texts(&readings, |kind| kind == ReadingKind::Missing { gap_seconds: 3600 });
        assert_eq!(missing.len(), 60);
        assert_eq!((&*missing[0], &*missing[59]), ("2026-03-08T02:00:00", "2026-03-08T02:59:00"));
        assert!(texts(&readings, |kind| kind == ReadingKind::ShownAgain).is_empty());
        assert_eq!(readings.readings.len(), 72 * 60 - 1 + 60);
    }

    #[test]
    fn a_jump_back_shows_an_hour_again() {
        let readings = around("America/New_York", "2026-11-01T06:00Z", Window::by_seconds);
        let again = texts(&readings, |kind| kind == ReadingKind::ShownAgain);
        assert_eq!(again.len(), 3600);
        assert_eq!((&*again[0], &*again[3599]), ("2026-11-01T01:00:00", "2026-11-01T01:59:59"));
        assert_eq!(readings.readings.len(), 2 * 3600 - 1);
    }

    #[test]
    fn a_window_that_begins_in_the_second_pass_knows_the_first() {
        let start = |middle: i64| Window::by_seconds(middle + 3600 + 1800);
        let readings = around("America/New_York", "2026-11-01T06:00Z", start);
        let again = texts(&readings, |kind| kind == ReadingKind::ShownAgain);
        assert_eq!((&*again[0], again.len()), ("2026-11-01T01:30:01", 1799));
    }

    #[test]
    fn samoa_leaves_out_a_day() {
        let readings = around("Pacific/Apia", "2011-12-30T10:00Z", Window::by_minutes);
        let missing = texts(&readings, |kind| kind == ReadingKind::Missing { gap_seconds: 86_400 });
        assert_eq!((&*missing[0], missing.len()), ("2011-12-30T00:00:00", 1440));
    }
}

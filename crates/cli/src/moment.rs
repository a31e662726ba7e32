//! A time as people write it: the one reader of every option that takes one.
//!
//! Whatever a command prints as a time can be given back to another one. Whose clock is meant, and which side of now, is known
//! only later: [`Moment::instant`] decides.

use std::str::FromStr;

use jiff::civil::{Date, DateTime, Time};
use jiff::{SignedDuration, Timestamp};
use punctual_core::schedule::{At, Pass};
use punctual_core::time::Zones;

use crate::times::{Wall, span_read};

/// What can be written.
const FORMS: &str = "use 2026-03-09 15:00:00, 2026-03-09, 15:00, 2026-03-09T15:00:00Z, today, yesterday, tomorrow or a duration like 10m, \
                     2h or 3d";

/// A time, as far as its text says.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Moment {
    /// An instant.
    Instant(Timestamp),
    /// What a clock shows; that of a zone, if one is named.
    Local(DateTime, Option<String>),
    /// A day.
    Day(Date),
    /// So many days from today.
    DaysAway(i32),
    /// What a clock shows on any day.
    TimeOfDay(Time),
    /// So long from now, to the side that was said.
    Away(SignedDuration, Option<Side>),
    /// Now.
    Now,
}

/// Which side of now is meant where the text does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// `10m` is ten minutes ago, and `15:00` the last one.
    Past,
    /// `10m` is in ten minutes, and `15:00` the next one.
    Future,
    /// `10m` is ten minutes ago, and `15:00` that of today.
    Today,
}

impl FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Moment, String> {
        read(text.trim()).ok_or_else(|| FORMS.to_owned())
    }
}

fn read(text: &str) -> Option<Moment> {
    match text.to_ascii_lowercase().as_str() {
        "now" => return Some(Moment::Now),
        "today" => return Some(Moment::DaysAway(0)),
        "yesterday" => return Some(Moment::DaysAway(-1)),
        "tomorrow" => return Some(Moment::DaysAway(1)),
        _ => {}
    }
    let text = without_weekday(text);
    // A zone in brackets would be a second opinion beside the offset.
    if let Some(at) = text.parse().ok().filter(|_| !text.contains('[')) {
        return Some(Moment::Instant(at));
    }
    let (clock, zone) = zone_apart(text);
    if clock.contains([':', 'T', 't'])
        && let Ok(local) = clock.parse::<DateTime>()
    {
        return Some(Moment::Local(local, zone));
    }
    if zone.is_some() {
        return None;
    }
    if let Some(day) = date(text) {
        return Some(Moment::Day(day));
    }
    if let Some(time) =
        text.parse().ok().filter(|_| text.contains(':') && text.starts_with(|c: char| c.is_ascii_digit()))
    {
        return Some(Moment::TimeOfDay(time));
    }
    away(text)
}

/// A day by its date alone.
fn date(text: &str) -> Option<Date> {
    let is_bare = text.chars().all(|letter| letter.is_ascii_digit() || letter == '-');
    text.parse().ok().filter(|_| is_bare)
}

/// How far from now: `10m`, `2h 5min`, `10m ago`, `in 10m`.
fn away(text: &str) -> Option<Moment> {
    if let Some(text) = text.strip_prefix("in ") {
        return Some(Moment::Away(span_read(text).filter(|it| !it.is_negative())?, Some(Side::Future)));
    }
    if let Some(text) = text.strip_suffix(" ago") {
        return Some(Moment::Away(span_read(text).filter(|it| !it.is_negative())?, Some(Side::Past)));
    }
    Some(Moment::Away(span_read(text).filter(|it| !it.is_negative())?, None))
}

/// A text without the day of the week that tables show before a date.
fn without_weekday(text: &str) -> &str {
    const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
    match text.split_once(' ') {
        Some((day, rest)) if DAYS.contains(&day.to_ascii_lowercase().as_str()) => rest.trim_start(),
        _ => text,
    }
}

/// A text, and the name of a zone behind it.
fn zone_apart(text: &str) -> (&str, Option<String>) {
    match text.rsplit_once(' ') {
        Some((clock, name))
            if name.starts_with(|c: char| c.is_ascii_alphabetic()) && Zones::bundled().get(name).is_ok() =>
        {
            (clock.trim_end(), Some(name.to_owned()))
        }
        _ => (text, None),
    }
}

impl Moment {
    /// The instant that is meant; of a day, its beginning.
    pub(crate) fn instant(&self, wall: &Wall, side: Side) -> Result<Timestamp, String> {
        match self {
            Moment::Instant(at) => Ok(*at),
            Moment::Local(local, None) => at_clock(*local, wall),
            Moment::Local(local, Some(zone)) => {
                let zone = Zones::bundled().get(zone).map_err(|error| error.to_string())?;
                at_clock(*local, &Wall { zone, now: wall.now })
            }
            Moment::Day(_) | Moment::DaysAway(_) => Ok(wall.zone.day_start(self.day(wall).unwrap_or(Date::MAX))),
            Moment::TimeOfDay(time) => time_of_day(*time, wall, side),
            Moment::Away(length, said) => {
                let is_later = said.unwrap_or(side) == Side::Future;
                let at = if is_later { wall.now.checked_add(*length) } else { wall.now.checked_sub(*length) };
                at.map_err(|_| "that is too far away".to_owned())
            }
            Moment::Now => Ok(wall.now),
        }
    }

    /// The instant up to which is meant: of a day, its end.
    pub(crate) fn end(&self, wall: &Wall, side: Side) -> Result<Timestamp, String> {
        match self.day(wall) {
            Some(day) => Ok(wall.zone.day_end(day)),
            None => self.instant(wall, side),
        }
    }

    /// The day, if it is one.
    pub(crate) fn day(&self, wall: &Wall) -> Option<Date> {
        match self {
            Moment::Day(day) => Some(*day),
            Moment::DaysAway(days) => {
                Some(wall.zone.day_of(wall.now).saturating_add(jiff::Span::new().days(i64::from(*days))))
            }
            _ => None,
        }
    }
}

fn at_clock(local: DateTime, wall: &Wall) -> Result<Timestamp, String> {
    At::parse(&local.to_string(), &wall.zone, Pass::First).map(|At(at)| at).map_err(|error| error.to_string())
}

/// Today's, the last one that has come, or the next one.
fn time_of_day(time: Time, wall: &Wall, side: Side) -> Result<Timestamp, String> {
    let today = wall.zone.day_of(wall.now);
    let on = |day: Date| at_clock(day.to_datetime(time), wall);
    let at = on(today)?;
    let day = match side {
        Side::Past if wall.now < at => today.yesterday(),
        Side::Future if at <= wall.now => today.tomorrow(),
        _ => return Ok(at),
    };
    on(day.unwrap_or(today))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wall() -> Wall {
        Wall { zone: Zones::bundled().get("Europe/Paris").unwrap(), now: "2026-11-18T11:30:00Z".parse().unwrap() }
    }

    fn check(text: &str, side: Side, expected: &str) {
        let at = text.parse::<Moment>().and_then(|moment| moment.instant(&wall(), side));
        assert_eq!(at.as_ref().map(ToString::to_string), Ok(expected.to_owned()), "{text}");
    }

    #[test]
    fn a_time_is_written_in_many_ways() {
        for (text, past, future) in [
            ("2026-11-18T00:12:00Z", "2026-11-18T00:12:00Z", "2026-11-18T00:12:00Z"),
            ("2026-11-18T00:12:00+01:00", "2026-11-17T23:12:00Z", "2026-11-17T23:12:00Z"),
            ("2026-11-18 00:12:00", "2026-11-17T23:12:00Z", "2026-11-17T23:12:00Z"),
            ("2026-11-18T00:12", "2026-11-17T23:12:00Z", "2026-11-17T23:12:00Z"),
            ("2026-11-18 00:12:00 Asia/Tokyo", "2026-11-17T15:12:00Z", "2026-11-17T15:12:00Z"),
            ("Wed 2026-11-18 00:12:00 UTC", "2026-11-18T00:12:00Z", "2026-11-18T00:12:00Z"),
            ("2026-11-18", "2026-11-17T23:00:00Z", "2026-11-17T23:00:00Z"),
            ("yesterday", "2026-11-16T23:00:00Z", "2026-11-16T23:00:00Z"),
            ("Tomorrow", "2026-11-18T23:00:00Z", "2026-11-18T23:00:00Z"),
            ("now", "2026-11-18T11:30:00Z", "2026-11-18T11:30:00Z"),
            ("00:12", "2026-11-17T23:12:00Z", "2026-11-18T23:12:00Z"),
            ("18:00:05", "2026-11-17T17:00:05Z", "2026-11-18T17:00:05Z"),
            ("10m", "2026-11-18T11:20:00Z", "2026-11-18T11:40:00Z"),
            ("2h 5min", "2026-11-18T09:25:00Z", "2026-11-18T13:35:00Z"),
            ("3d", "2026-11-15T11:30:00Z", "2026-11-21T11:30:00Z"),
            ("10m ago", "2026-11-18T11:20:00Z", "2026-11-18T11:20:00Z"),
            ("in 10m", "2026-11-18T11:40:00Z", "2026-11-18T11:40:00Z"),
        ] {
            check(text, Side::Past, past);
            check(text, Side::Future, future);
        }
        check("18:00", Side::Today, "2026-11-18T17:00:00Z");
        check("08:00", Side::Today, "2026-11-18T07:00:00Z");
    }

    #[test]
    fn whatever_is_printed_can_be_typed() {
        let wall = wall();
        let at: Timestamp = "2026-11-17T08:05:09Z".parse().unwrap();
        let printed = [
            wall.date_time(at),
            wall.day_time(at),
            format!("{} {}", wall.date_time(at), wall.zone.name()),
            format!("{} {}", wall.day_time(at), wall.zone.name()),
        ];
        for text in printed {
            check(&text, Side::Past, &at.to_string());
        }
        let time = wall.time("2026-11-18T08:05:09Z".parse().unwrap());
        check(&time, Side::Past, "2026-11-18T08:05:09Z");
        check(&wall.passed("2026-11-18T09:25:00Z".parse().unwrap()), Side::Future, "2026-11-18T09:25:00Z");
        check(&wall.until("2026-11-18T13:35:00Z".parse().unwrap()), Side::Past, "2026-11-18T13:35:00Z");
    }

    #[test]
    fn the_end_of_a_day_is_the_next_midnight() {
        let end = |text: &str| text.parse::<Moment>().unwrap().end(&wall(), Side::Past).unwrap().to_string();
        assert_eq!(end("2026-11-17"), "2026-11-17T23:00:00Z");
        assert_eq!(end("yesterday"), "2026-11-17T23:00:00Z");
        assert_eq!(end("2026-11-17 10:00"), "2026-11-17T09:00:00Z");
    }

    #[test]
    fn what_is_no_time_is_answered_with_those_that_are() {
        for text in
            ["soon", "", "25:00", "2026-13-01", "10", "-5m", "2026-11-18 Europe/Paris", "20261118T", "99999999999d"]
        {
            let error = text.parse::<Moment>().and_then(|it| it.instant(&wall(), Side::Past)).unwrap_err();
            assert!(error.contains("use 2026-03-09") || error.contains("too far"), "{text}: {error}");
        }
        let gap = "2026-03-29 02:30".parse::<Moment>().unwrap().instant(&wall(), Side::Past).unwrap_err();
        assert!(gap.contains("does not exist in Europe/Paris") && gap.contains("use 2026-03-29T"), "{gap}");
    }
}

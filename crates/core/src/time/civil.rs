//! Calendar arithmetic on plain integers: the inner loop of every search.
//!
//! A local time is the number of seconds since 1970-01-01T00:00:00 *on that clock*, so that a zone's segment turns it
//! into an instant by one subtraction. Values stay inside the years that jiff knows (−9999 to 9999).

use jiff::civil::{Date, DateTime};

/// Seconds in a civil day. Civil days have no gaps; only zones do.
pub(crate) const DAY: i64 = 86_400;

/// A date as the search sees it: year, month 1–12, day 1–31.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ymd {
    pub(crate) year: i32,
    pub(crate) month: u32,
    pub(crate) day: u32,
}

/// The date of a day number (day 0 is 1970-01-01).
///
/// Years are counted from 1 March, so that the leap day is the last of its year and months have a closed formula.
pub(crate) fn date_of(day_number: i64) -> Ymd {
    // Shifted by whole 400-year cycles, so that every supported date is positive and the divisions are unsigned.
    const CYCLE: i64 = 146_097;
    const SHIFT: i64 = 30 * CYCLE;
    let days = (day_number + 719_468 + SHIFT) as u32;
    let cycle = days / CYCLE as u32;
    let day_of_cycle = days % CYCLE as u32;
    let year_of_cycle = (day_of_cycle - day_of_cycle / 1_460 + day_of_cycle / 36_524 - day_of_cycle / 146_096) / 365;
    let day_of_year = day_of_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = (cycle * 400 + year_of_cycle) as i32 - 30 * 400 + i32::from(month <= 2);
    Ymd { year, month, day }
}

/// The day number of a date: the inverse of [`date_of`].
pub(crate) fn day_number(year: i32, month: u32, day: u32) -> i64 {
    let year = i64::from(year) - i64::from(month <= 2);
    let cycle = year.div_euclid(400);
    let year_of_cycle = year.rem_euclid(400);
    let march_month = i64::from((month + 9) % 12);
    let day_of_year = (153 * march_month + 2) / 5 + i64::from(day) - 1;
    let day_of_cycle = year_of_cycle * 365 + year_of_cycle / 4 - year_of_cycle / 100 + day_of_year;
    cycle * 146_097 + day_of_cycle - 719_468
}

/// How many days a month has.
pub(crate) fn month_length(year: i32, month: u32) -> u32 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The weekday of a day number: 0 is Sunday.
pub(crate) fn weekday(day_number: i64) -> u32 {
    (day_number + 4).rem_euclid(7) as u32
}

/// The local time of a civil date and time.
pub(crate) fn local_of(datetime: DateTime) -> i64 {
    let date = datetime.date();
    let seconds = i64::from(datetime.hour()) * 3_600 + i64::from(datetime.minute()) * 60 + i64::from(datetime.second());
    local_of_date(date) + seconds
}

/// The local time at which a date begins.
pub(crate) fn local_of_date(date: Date) -> i64 {
    day_number(i32::from(date.year()), date.month() as u32, date.day() as u32) * DAY
}

/// The civil date and time of a local time.
pub(crate) fn datetime_of(local: i64) -> DateTime {
    let Ymd { year, month, day } = date_of(local.div_euclid(DAY));
    let second = local.rem_euclid(DAY);
    DateTime::new(
        year as i16,
        month as i8,
        day as i8,
        (second / 3_600) as i8,
        (second / 60 % 60) as i8,
        (second % 60) as i8,
        0,
    )
    .expect("local times stay inside the years that jiff knows")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_from_year_minus_9999_to_9999_agrees_with_jiff() {
        let mut date = Date::MIN;
        let mut number = day_number(-9999, 1, 1);
        loop {
            let Ymd { year, month, day } = date_of(number);
            assert_eq!((year as i16, month as i8, day as i8), (date.year(), date.month(), date.day()));
            assert_eq!(day_number(year, month, day), number);
            assert_eq!(month_length(year, month), date.days_in_month() as u32);
            assert_eq!(weekday(number), date.weekday().to_sunday_zero_offset() as u32);
            let Ok(next) = date.tomorrow() else { break };
            (date, number) = (next, number + 1);
        }
        assert_eq!(date_of(0), Ymd { year: 1970, month: 1, day: 1 });
    }

    #[test]
    fn local_times_round_trip() {
        for text in ["1970-01-01T00:00:00", "2026-03-08T02:30:15", "1969-12-31T23:59:59", "9999-12-31T23:59:59"] {
            let datetime: DateTime = text.parse().unwrap();
            assert_eq!(datetime_of(local_of(datetime)), datetime);
        }
    }
}

//! A naive cron: its text taken apart with `split`, its fields kept as written-out sets.

use std::collections::BTreeSet;

use jiff::civil::{Date, Weekday};
use punctual_core::time::Dialect;

use super::numbers::Domain;

/// A cron, or the times of a day, as the rules read it.
pub(crate) struct Matcher {
    seconds: Vec<bool>,
    minutes: Vec<bool>,
    hours: Vec<bool>,
    /// Hour, minute and second of times of day; for these the sets above are the times' own.
    times: Option<BTreeSet<(i8, i8, i8)>>,
    days: Vec<MonthDay>,
    months: BTreeSet<i32>,
    weekdays: Vec<WeekDay>,
    years: BTreeSet<i32>,
    is_either_day_enough: bool,
    /// Whether the cron means a rhythm and not times of day.
    pub(crate) is_interval_like: bool,
}

/// One item of the day-of-month field.
enum MonthDay {
    OneOf(BTreeSet<i32>),
    /// `L-3`: so many days before the last.
    FromLast(i32),
    /// `15W`.
    NearestWorkday(i32),
    /// `L-3W`.
    NearestWorkdayFromLast(i32),
}

/// One item of the day-of-week field; Sunday is 0.
enum WeekDay {
    OneOf(BTreeSet<i32>),
    Last(i32),
    Nth(i32, i32),
}

impl Matcher {
    /// Reads an expression that is known to be valid.
    pub(crate) fn cron(text: &str, dialect: Option<Dialect>) -> Matcher {
        let text = text.to_ascii_uppercase();
        match text.as_str() {
            "@YEARLY" | "@ANNUALLY" => return Matcher::cron("0 0 1 1 *", Some(Dialect::Unix)),
            "@MONTHLY" => return Matcher::cron("0 0 1 * *", Some(Dialect::Unix)),
            "@WEEKLY" => return Matcher::cron("0 0 * * 0", Some(Dialect::Unix)),
            "@DAILY" | "@MIDNIGHT" => return Matcher::cron("0 0 * * *", Some(Dialect::Unix)),
            "@HOURLY" => return Matcher::cron("0 * * * *", Some(Dialect::Unix)),
            _ => {}
        }
        let fields: Vec<&str> = text.split_whitespace().collect();
        let (second, [minute, hour, day, month, weekday], year) = match fields[..] {
            [minute, hour, day, month, weekday] => ("0", [minute, hour, day, month, weekday], "*"),
            [second, minute, hour, day, month, weekday] => (second, [minute, hour, day, month, weekday], "*"),
            [second, minute, hour, day, month, weekday, year] => (second, [minute, hour, day, month, weekday], year),
            _ => panic!("{text:?} has {} fields", fields.len()),
        };
        let default = if fields.len() == 5 { Dialect::Unix } else { Dialect::Spring };
        let dialect = dialect.unwrap_or(default);
        let is_any = |field: &str| field.starts_with(['*', '?']);
        Matcher {
            seconds: flags(second, Domain::SECONDS),
            minutes: flags(minute, Domain::MINUTES),
            hours: flags(hour, Domain::HOURS),
            times: None,
            days: day.split(',').map(MonthDay::read).collect(),
            months: set(month, Domain::MONTHS),
            weekdays: weekday.split(',').map(|item| WeekDay::read(item, dialect)).collect(),
            years: set(year, Domain::YEARS),
            is_either_day_enough: dialect == Dialect::Unix && !is_any(day) && !is_any(weekday),
            is_interval_like: [second, minute, hour].iter().any(|field| field.contains(['*', '-', '/'])),
        }
    }

    /// The same times on every day.
    pub(crate) fn times(texts: &[String]) -> Matcher {
        let number = |text: Option<&str>| text.map_or(0, |text| text.parse::<i8>().expect("a number"));
        let read = |text: &String| {
            let mut parts = text.split(':');
            (number(parts.next()), number(parts.next()), number(parts.next()))
        };
        let times: BTreeSet<(i8, i8, i8)> = texts.iter().map(read).collect();
        let mut every_day = Matcher::cron("* * * * * *", None);
        every_day.seconds = (0..60).map(|second| times.iter().any(|time| time.2 == second)).collect();
        every_day.times = Some(times);
        every_day.is_interval_like = false;
        every_day
    }

    /// Whether it fires at whole minutes only, so that a walk by minutes sees all of it.
    pub(crate) fn is_by_the_minute(&self) -> bool {
        self.seconds[0] && !self.seconds[1..].contains(&true)
    }

    /// Whether a clock that shows this time of day may mean a slot.
    pub(crate) fn matches_time(&self, hour: i8, minute: i8, second: i8) -> bool {
        self.seconds[second as usize]
            && self.minutes[minute as usize]
            && self.hours[hour as usize]
            && self.times.as_ref().is_none_or(|times| times.contains(&(hour, minute, second)))
    }

    /// Whether a calendar that shows this date may mean a slot.
    pub(crate) fn matches_date(&self, date: Date) -> bool {
        let day = self.days.iter().any(|item| item.matches(date));
        let weekday = self.weekdays.iter().any(|item| item.matches(date));
        self.years.contains(&i32::from(date.year()))
            && self.months.contains(&i32::from(date.month()))
            && if self.is_either_day_enough { day || weekday } else { day && weekday }
    }
}

fn set(field: &str, domain: Domain) -> BTreeSet<i32> {
    field.split(',').flat_map(|item| domain.numbers(item)).collect()
}

fn flags(field: &str, domain: Domain) -> Vec<bool> {
    let set = set(field, domain);
    (domain.min..=domain.max).map(|number| set.contains(&number)).collect()
}

impl MonthDay {
    fn read(item: &str) -> MonthDay {
        let number = |text: &str| Domain::DAYS.number(text);
        let from_last = |text: &str| text.strip_prefix('-').map_or(0, |n| n.parse().expect("days"));
        match (item.strip_prefix('L'), item.strip_suffix('W')) {
            (Some(rest), Some(_)) => MonthDay::NearestWorkdayFromLast(from_last(rest.trim_end_matches('W'))),
            (Some(rest), None) => MonthDay::FromLast(from_last(rest)),
            (None, Some(day)) => MonthDay::NearestWorkday(number(day)),
            (None, None) => MonthDay::OneOf(Domain::DAYS.numbers(item)),
        }
    }

    fn matches(&self, date: Date) -> bool {
        let today = i32::from(date.day());
        let last = i32::from(date.days_in_month());
        match self {
            MonthDay::OneOf(days) => days.contains(&today),
            MonthDay::FromLast(before) => today == last - before,
            MonthDay::NearestWorkday(day) => nearest_workday(date, *day) == Some(today),
            MonthDay::NearestWorkdayFromLast(before) => nearest_workday(date, last - before) == Some(today),
        }
    }
}

/// The day from Monday to Friday nearest to `day`, in the month of `date`; none if the month has no such day.
fn nearest_workday(date: Date, day: i32) -> Option<i32> {
    let last = i32::from(date.days_in_month());
    if !(1..=last).contains(&day) {
        return None;
    }
    let is_workday = |day: i32| {
        let weekday = date.with().day(day as i8).build().expect("a day of the month").weekday();
        weekday != Weekday::Saturday && weekday != Weekday::Sunday
    };
    // No two are equally near: a weekend has a workday right before or right behind it.
    (1..=last).filter(|&candidate| is_workday(candidate)).min_by_key(|candidate| (candidate - day).abs())
}

impl WeekDay {
    fn read(item: &str, dialect: Dialect) -> WeekDay {
        let (domain, sunday) = match dialect {
            Dialect::Quartz => (Domain::QUARTZ_WEEKDAYS, 1),
            Dialect::Unix | Dialect::Spring => (Domain::WEEKDAYS, 0),
        };
        let from_sunday = |number: i32| (number - sunday) % 7;
        if let Some((weekday, nth)) = item.split_once('#') {
            return WeekDay::Nth(from_sunday(domain.number(weekday)), nth.parse().expect("a number"));
        }
        match item.strip_suffix('L') {
            Some(weekday) => WeekDay::Last(from_sunday(domain.number(weekday))),
            None => WeekDay::OneOf(domain.numbers(item).into_iter().map(from_sunday).collect()),
        }
    }

    fn matches(&self, date: Date) -> bool {
        let today = i32::from(date.weekday().to_sunday_zero_offset());
        match self {
            WeekDay::OneOf(weekdays) => weekdays.contains(&today),
            WeekDay::Last(weekday) => *weekday == today && date.days_in_month() - date.day() < 7,
            WeekDay::Nth(weekday, nth) => *weekday == today && (i32::from(date.day()) - 1) / 7 + 1 == *nth,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The days of a month on which an expression fires.
    fn check(text: &str, dialect: Dialect, (year, month): (i16, i8), expected: &[i8]) {
        let matcher = Matcher::cron(text, Some(dialect));
        let first = jiff::civil::date(year, month, 1);
        let days: Vec<i8> = (1..=first.days_in_month())
            .filter(|&day| matcher.matches_date(jiff::civil::date(year, month, day)))
            .collect();
        assert_eq!(days, expected, "{text} in {year}-{month:02}");
    }

    #[test]
    fn unix_takes_either_day_field_unless_one_begins_with_a_star() {
        check("0 9 13 * FRI", Dialect::Unix, (2026, 3), &[6, 13, 20, 27]);
        check("0 9 10 * FRI", Dialect::Unix, (2026, 3), &[6, 10, 13, 20, 27]);
        check("0 9 */9 * FRI", Dialect::Unix, (2026, 2), &[]);
        check("0 9 */4 * FRI", Dialect::Unix, (2026, 3), &[13]);
        check("0 9 ? * 7", Dialect::Unix, (2026, 3), &[1, 8, 15, 22, 29]);
    }

    #[test]
    fn spring_and_quartz_take_both_day_fields() {
        check("0 0 9 13 * FRI", Dialect::Spring, (2026, 3), &[13]);
        check("0 0 9 10 * FRI", Dialect::Spring, (2026, 3), &[]);
        check("0 0 9 ? * 6", Dialect::Spring, (2026, 3), &[7, 14, 21, 28]);
        check("0 0 9 ? * 6", Dialect::Quartz, (2026, 3), &[6, 13, 20, 27]);
        check("0 0 9 ? * 6L", Dialect::Quartz, (2026, 3), &[27]);
        check("0 0 9 ? * 5#2", Dialect::Spring, (2026, 3), &[13]);
    }

    #[test]
    fn special_days_stay_within_their_month() {
        check("0 9 L * *", Dialect::Unix, (2028, 2), &[29]);
        check("0 9 L-3 * *", Dialect::Unix, (2026, 2), &[25]);
        check("0 9 LW * *", Dialect::Unix, (2026, 5), &[29]);
        check("0 9 1W * *", Dialect::Unix, (2026, 8), &[3]);
        check("0 9 1W * *", Dialect::Unix, (2026, 3), &[2]);
        check("0 9 31W * *", Dialect::Unix, (2026, 5), &[29]);
        check("0 9 31W * *", Dialect::Unix, (2026, 6), &[]);
        check("0 9 L-1W * *", Dialect::Unix, (2026, 2), &[27]);
        check("0 9 L-28W * *", Dialect::Unix, (2026, 2), &[]);
    }

    #[test]
    fn months_and_years_limit_the_days() {
        check("0 0 9 29 2 ? 2028", Dialect::Quartz, (2028, 2), &[29]);
        check("0 0 9 29 2 ? 2028", Dialect::Quartz, (2024, 2), &[]);
        check("0 9 1 NOV-FEB *", Dialect::Unix, (2026, 3), &[]);
        check("@yearly", Dialect::Quartz, (2026, 1), &[1]);
        check("@weekly", Dialect::Quartz, (2026, 3), &[1, 8, 15, 22, 29]);
    }

    #[test]
    fn rhythms_are_told_from_times_of_day() {
        let is_rhythm = |text: &str| Matcher::cron(text, None).is_interval_like;
        assert!(["0 * * * *", "0/30 2 * * *", "30 1-3 * * *", "* 0 2 * * *", "@hourly"].into_iter().all(is_rhythm));
        assert!(!["30 2 * * *", "0,30 1,2,3 */2 1-6 MON-FRI", "5 30 2 L-3 * *", "@daily"].into_iter().any(is_rhythm));
    }

    #[test]
    fn times_of_day_are_not_every_combination_of_their_parts() {
        let times = Matcher::times(&["09:00".to_owned(), "17:30:15".to_owned()]);
        assert!(times.matches_time(9, 0, 0) && times.matches_time(17, 30, 15));
        assert!(!times.matches_time(17, 30, 0) && !times.matches_time(9, 0, 15));
        assert!(!times.is_by_the_minute() && !times.is_interval_like);
    }
}

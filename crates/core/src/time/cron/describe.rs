//! A cron in plain English: `At 09:00, Monday to Friday`. The zone is the caller's to add.

use super::Cron;
use super::days::bits;
use crate::words::{list, ordinal, run_items, runs};

const WEEKDAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// So many times of day are listed one by one; more are told as a pattern.
const TIMES_LISTED: usize = 6;
/// The same for years.
const YEARS_LISTED: usize = 6;

impl Cron {
    /// What the expression means, without its zone.
    pub fn describe(&self) -> String {
        let mut parts = vec![self.describe_clock()];
        parts.push(self.describe_days());
        if self.months != 0x1ffe {
            let months: Vec<u32> = bits(self.months.into()).collect();
            parts.push(format!("in {}", runs(&months, |month| MONTHS[month as usize - 1].to_owned())));
        }
        if let Some(set) = &self.years.0 {
            let years: Vec<u32> = set.iter().map(|year| year as u32).collect();
            parts.push(format!("in {}", describe_years(&years)));
        }
        parts.join(", ")
    }

    fn describe_clock(&self) -> String {
        let seconds = Series::of(self.clock.seconds, 60);
        let minutes = Series::of(self.clock.minutes, 60);
        let hours = Series::of(self.clock.hours.into(), 24);
        let times = seconds.values.len() * minutes.values.len() * hours.values.len();
        if times <= TIMES_LISTED && !(self.is_interval_like && 2 < times) {
            return format!("At {}", list(&self.times(&hours, &minutes, &seconds), "and"));
        }
        let at_second = match seconds.values.as_slice() {
            [0] => String::new(),
            [second] => format!(" at second {second}"),
            _ => return self.describe_seconds(&hours, &minutes, &seconds),
        };
        match (hours.step, minutes.values.as_slice()) {
            (Some(step), [minute]) if hours.first() == 0 => {
                let at_minute = if *minute == 0 { String::new() } else { format!(" at minute {minute}") };
                format!("{}{at_minute}{at_second}", every(step, "hour"))
            }
            (Some(step), [minute]) => {
                format!("{} from {:02}:{minute:02}{at_second}", every(step, "hour"), hours.first())
            }
            (_, [minute]) if hours.is_run() => {
                let (first, last) = (hours.first(), hours.last());
                format!("Every hour from {first:02}:{minute:02} to {last:02}:{minute:02}{at_second}")
            }
            _ => {
                let minutes_phrase = match minutes.step {
                    Some(step) if minutes.first() == 0 => every(step, "minute"),
                    Some(step) => {
                        format!("{} from minute {}", every(step, "minute"), minutes.first())
                    }
                    None => format!("At {}", minutes.named("minute")),
                };
                let in_hours = if hours.is_all() {
                    if minutes.step.is_some() { String::new() } else { " of every hour".to_owned() }
                } else if hours.is_run() && minutes.step.is_some() {
                    let last_minute = minutes.last();
                    format!(" from {:02}:{:02} to {:02}:{last_minute:02}", hours.first(), minutes.first(), hours.last())
                } else {
                    format!(" of {}", hours.named("hour"))
                };
                format!("{minutes_phrase}{in_hours}{at_second}")
            }
        }
    }

    /// More than one second in a minute.
    fn describe_seconds(&self, hours: &Series, minutes: &Series, seconds: &Series) -> String {
        let mut phrase = match seconds.step {
            Some(step) if seconds.first() == 0 => every(step, "second"),
            Some(step) => format!("{} from second {}", every(step, "second"), seconds.first()),
            None => format!("At {}", seconds.named("second")),
        };
        if !minutes.is_all() {
            phrase += &format!(" of {}", minutes.named("minute"));
        } else if seconds.step.is_none() {
            phrase += " of every minute";
        }
        if !hours.is_all() {
            phrase += &format!(" of {}", hours.named("hour"));
        } else if !minutes.is_all() {
            phrase += " of every hour";
        }
        phrase
    }

    fn times(&self, hours: &Series, minutes: &Series, seconds: &Series) -> Vec<String> {
        let mut times = vec![];
        for hour in &hours.values {
            for minute in &minutes.values {
                for second in &seconds.values {
                    times.push(hour * 3_600 + minute * 60 + second);
                }
            }
        }
        clock_times(&times)
    }

    fn describe_days(&self) -> String {
        let any_day = self.days.any_day_of_month();
        let any_weekday = self.days.any_day_of_week();
        match (any_day, any_weekday) {
            (true, true) => "every day".to_owned(),
            (true, false) if !self.days.either => self.describe_weekdays("and"),
            (false, true) if !self.days.either => self.describe_days_of_month(),
            // Vixie's rule: a field that lists all its days without a star makes every day match.
            (true, _) | (_, true) if self.days.either => "every day".to_owned(),
            _ if self.days.either => {
                format!("{} or {}", self.describe_days_of_month(), self.on_weekdays())
            }
            _ => format!("{} if it is {}", self.describe_days_of_month(), self.describe_weekdays("or")),
        }
    }

    fn on_weekdays(&self) -> String {
        let weekdays = self.describe_weekdays("and");
        if weekdays.starts_with("the ") || weekdays.starts_with("on ") { weekdays } else { format!("on {weekdays}") }
    }

    fn describe_days_of_month(&self) -> String {
        let days = &self.days;
        let mut items = vec![];
        let plain: Vec<u32> = bits(days.days).collect();
        match plain.as_slice() {
            [] => {}
            [day] => items.push(format!("day {day}")),
            plain => items.push(format!("days {}", runs(plain, |day| day.to_string()))),
        }
        let from_last = |offset: u32| match offset {
            0 => "the last day".to_owned(),
            1 => "the day before the last day".to_owned(),
            offset => format!("the {} day before the last day", ordinal(offset)),
        };
        items.extend(bits(days.from_last).map(from_last));
        items.extend(bits(days.nearest).map(|day| format!("the weekday nearest day {day}")));
        items.extend(bits(days.nearest_from_last).map(|offset| match offset {
            0 => "the last weekday".to_owned(),
            offset => format!("the weekday nearest {}", from_last(offset)),
        }));
        format!("on {} of the month", list(&items, "and"))
    }

    fn describe_weekdays(&self, last: &str) -> String {
        let days = &self.days;
        let mut items = vec![];
        if days.weekdays != 0 {
            items.extend(weekday_items(days.weekdays));
        }
        for (n, weekdays) in (1..).zip(days.nth) {
            items.extend(
                bits(weekdays.into()).map(|day| format!("the {} {} of the month", ordinal(n), weekday_name(day))),
            );
        }
        items.extend(bits(days.last.into()).map(|day| format!("the last {} of the month", weekday_name(day))));
        list(&items, last)
    }
}

/// The English name of a weekday; 0 is Sunday.
fn weekday_name(weekday: u32) -> &'static str {
    WEEKDAYS[weekday as usize]
}

/// Times of day as `09:00`, with seconds only where there are any.
pub(crate) fn clock_times(seconds_of_day: &[u32]) -> Vec<String> {
    let text = |second: &u32| match (second / 3_600, second / 60 % 60, second % 60) {
        (hour, minute, 0) => format!("{hour:02}:{minute:02}"),
        (hour, minute, second) => format!("{hour:02}:{minute:02}:{second:02}"),
    };
    seconds_of_day.iter().map(text).collect()
}

/// `Monday to Friday`, also around the week's end: `Friday to Monday`.
fn weekday_items(weekdays: u8) -> Vec<String> {
    if weekdays == super::days::ALL_WEEKDAYS {
        return vec!["any day of the week".to_owned()];
    }
    let has = |day: u32| weekdays >> (day % 7) & 1 == 1;
    // A range around the week's end starts where it starts; everything else starts on Monday.
    let mut starts = (1..=7).filter(|day| has(*day) && !has(day + 6));
    let first = match (starts.next(), starts.next()) {
        (Some(start), None) => start,
        _ => 1,
    };
    let days: Vec<u32> = (first..first + 7).filter(|day| has(*day)).collect();
    run_items(&days, |day| weekday_name(day % 7).to_owned())
}

fn describe_years(years: &[u32]) -> String {
    let items = run_items(years, |year| year.to_string());
    match years {
        [first, second, .., last] if YEARS_LISTED < items.len() => {
            let step = second - first;
            let is_even = years.windows(2).all(|pair| pair[1] - pair[0] == step);
            let which = if is_even { format!("every {step} years") } else { format!("{} years", years.len()) };
            format!("{which} from {first} to {last}")
        }
        _ => list(&items, "and"),
    }
}

fn every(step: u32, unit: &str) -> String {
    if step == 1 { format!("Every {unit}") } else { format!("Every {step} {unit}s") }
}

/// The values of one field of the clock, and the rhythm in them if there is one.
struct Series {
    values: Vec<u32>,
    size: u32,
    /// The step of values that go on evenly around the clock. `*/7` has none: "every 7 minutes" is untrue at the hour.
    step: Option<u32>,
}

impl Series {
    fn of(set: u64, size: u32) -> Series {
        let values: Vec<u32> = (0..size).filter(|value| set >> value & 1 == 1).collect();
        let step = match values.as_slice() {
            [first, second, ..] => Some(second - first).filter(|step| {
                let even = values.windows(2).all(|pair| pair[1] - pair[0] == *step);
                even && size.is_multiple_of(*step) && first < step && size <= values[values.len() - 1] + step
            }),
            _ => None,
        };
        Series { values, size, step }
    }

    fn first(&self) -> u32 {
        self.values[0]
    }

    fn last(&self) -> u32 {
        self.values[self.values.len() - 1]
    }

    fn is_all(&self) -> bool {
        self.values.len() == self.size as usize
    }

    fn is_run(&self) -> bool {
        1 < self.values.len() && self.last() - self.first() + 1 == self.values.len() as u32
    }

    fn named(&self, unit: &str) -> String {
        match self.values.as_slice() {
            [value] => format!("{unit} {value}"),
            values => format!("{unit}s {}", runs(values, |value| value.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Cron, Dialect};

    #[test]
    fn expressions_read_as_english() {
        for (text, expected) in [
            ("0 9 * * MON-FRI", "At 09:00, Monday to Friday"),
            ("30 2 * * *", "At 02:30, every day"),
            ("0 9,17 * * *", "At 09:00 and 17:00, every day"),
            ("15 0 9 * * *", "At 09:00:15, every day"),
            ("* * * * *", "Every minute, every day"),
            ("* * * * * *", "Every second, every day"),
            ("*/10 * * * * *", "Every 10 seconds, every day"),
            ("30 * * * * *", "Every minute at second 30, every day"),
            ("*/5 * * * *", "Every 5 minutes, every day"),
            ("5/20 * * * *", "Every 20 minutes from minute 5, every day"),
            ("0 1/2 * * *", "Every 2 hours from 01:00, every day"),
            ("5,20 * * * *", "At minutes 5 and 20 of every hour, every day"),
            ("*/7 * * * *", "At minutes 0, 7, 14, 21, 28, 35, 42, 49 and 56 of every hour, every day"),
            ("*/5 9-17 * * MON-FRI", "Every 5 minutes from 09:00 to 17:55, Monday to Friday"),
            ("*/15 9,17 * * *", "Every 15 minutes of hours 9 and 17, every day"),
            ("0 * * * *", "Every hour, every day"),
            ("30 * * * *", "Every hour at minute 30, every day"),
            ("0 */2 * * *", "Every 2 hours, every day"),
            ("0 9-17 * * *", "Every hour from 09:00 to 17:00, every day"),
            ("0 22-2 * * *", "At minute 0 of hours 0 to 2, 22 and 23, every day"),
            ("*/10 0 9 * * *", "Every 10 seconds of minute 0 of hour 9, every day"),
            (
                "5,10,40 */2 9 * * *",
                "At seconds 5, 10 and 40 of minutes 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34, 36, 38, 40, 42, 44, 46, 48, 50, 52, 54, 56 and 58 of hour 9, every day",
            ),
            ("0 0 1 * *", "At 00:00, on day 1 of the month"),
            ("0 0 1,15 * *", "At 00:00, on days 1 and 15 of the month"),
            ("0 0 L * *", "At 00:00, on the last day of the month"),
            ("0 0 L-3 * *", "At 00:00, on the 3rd day before the last day of the month"),
            ("0 0 LW * *", "At 00:00, on the last weekday of the month"),
            ("0 0 15W * *", "At 00:00, on the weekday nearest day 15 of the month"),
            ("0 0 L-2W * *", "At 00:00, on the weekday nearest the 2nd day before the last day of the month"),
            ("0 0 * * 5L", "At 00:00, the last Friday of the month"),
            ("0 0 * * FRI#2", "At 00:00, the 2nd Friday of the month"),
            ("0 0 13 * FRI", "At 00:00, on day 13 of the month or on Friday"),
            ("0 0 13 * 5L", "At 00:00, on day 13 of the month or the last Friday of the month"),
            ("0 0 0 13 * FRI", "At 00:00, on day 13 of the month if it is Friday"),
            ("0 0 0 13 * TUE,FRI", "At 00:00, on day 13 of the month if it is Tuesday or Friday"),
            ("0 0 1-31 * MON", "At 00:00, every day"),
            ("0 0 * * FRI-MON", "At 00:00, Friday to Monday"),
            ("0 0 * * SAT,SUN", "At 00:00, Saturday and Sunday"),
            ("0 0 * * 1/2", "At 00:00, Monday, Wednesday, Friday and Sunday"),
            ("0 0 * * 1,3,5", "At 00:00, Monday, Wednesday and Friday"),
            ("0 0 29 2 *", "At 00:00, on day 29 of the month, in February"),
            ("0 12 * JUN-AUG *", "At 12:00, every day, in June to August"),
            ("0 0 12 ? * 6#5 2026-2060", "At 12:00, the 5th Saturday of the month, in 2026 to 2060"),
            ("0 0 12 * * ? 2026/4", "At 12:00, every day, in every 4 years from 2026 to 9998"),
            ("0 0 12 * * ? 2026,2030", "At 12:00, every day, in 2026 and 2030"),
            ("0 0 12 * * ? 2026/500,2027/500", "At 12:00, every day, in 32 years from 2026 to 9527"),
            ("@hourly", "Every hour, every day"),
            ("@weekly", "At 00:00, Sunday"),
        ] {
            assert_eq!(Cron::parse(text, None).unwrap().describe(), expected, "{text}");
        }
        let quartz = Cron::parse("0 15 10 ? * 6L", Some(Dialect::Quartz)).unwrap();
        assert_eq!(quartz.describe(), "At 10:15, the last Friday of the month");
    }
}

//! Times of day: the same moments of every local day.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::civil::DAY;
use super::cron::clock_times;
use crate::error::{ParseError, quoted};
use crate::words::list;

/// The most times of day that one trigger may list: one a minute.
const TIMES_MAX: usize = 1_440;

/// Times of day, sorted and without duplicates; never empty.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
#[schemars(with = "Vec<String>", extend("examples" = [["09:00", "17:30:15"]]))]
pub struct TimesOfDay {
    /// Seconds since local midnight.
    seconds: Box<[u32]>,
}

impl TimesOfDay {
    /// Reads times written `HH:MM` or `HH:MM:SS`, in any order.
    pub fn parse<T: AsRef<str>>(times: &[T]) -> Result<TimesOfDay, ParseError> {
        if times.is_empty() || TIMES_MAX < times.len() {
            let problem = format!("there are {} times", times.len());
            let fix = format!("use 1 to {TIMES_MAX}, like 09:00 or 17:30:15");
            return Err(ParseError::value("times", problem, fix));
        }
        let mut seconds = vec![];
        for (position, time) in times.iter().enumerate() {
            let second = parse_time(time.as_ref()).map_err(|error| error.within(format!("times[{position}]")))?;
            seconds.push(second);
        }
        seconds.sort_unstable();
        seconds.dedup();
        Ok(TimesOfDay { seconds: seconds.into() })
    }

    /// What the times mean, without their zone.
    pub fn describe(&self) -> String {
        format!("At {}, every day", list(&clock_times(&self.seconds), "and"))
    }

    pub(crate) fn next(&self, local: i64) -> Option<i64> {
        let (day, second) = (local.div_euclid(DAY), local.rem_euclid(DAY) as u32);
        let position = self.seconds.partition_point(|time| *time < second);
        Some(match self.seconds.get(position) {
            Some(time) => day * DAY + i64::from(*time),
            None => (day + 1) * DAY + i64::from(self.seconds[0]),
        })
    }

    pub(crate) fn previous(&self, local: i64) -> Option<i64> {
        let (day, second) = (local.div_euclid(DAY), local.rem_euclid(DAY) as u32);
        let position = self.seconds.partition_point(|time| *time <= second);
        Some(match position.checked_sub(1) {
            Some(position) => day * DAY + i64::from(self.seconds[position]),
            None => (day - 1) * DAY + i64::from(self.seconds[self.seconds.len() - 1]),
        })
    }

    pub(crate) fn matches(&self, local: i64) -> bool {
        self.seconds.binary_search(&(local.rem_euclid(DAY) as u32)).is_ok()
    }
}

/// Reads `HH:MM` or `HH:MM:SS` as seconds since midnight.
pub(crate) fn parse_time(text: &str) -> Result<u32, ParseError> {
    let wrong = |at: usize, problem: String, fix: &str| ParseError::at_byte(text, at, "time", problem, fix);
    let mut second = 0;
    let mut at = 0;
    let parts: Vec<&str> = text.split(':').collect();
    if !(2..=3).contains(&parts.len()) {
        return Err(wrong(0, format!("{} is not a time of day", quoted(text)), "use HH:MM or HH:MM:SS"));
    }
    for (part, (name, max)) in parts.iter().zip([("hour", 23), ("minute", 59), ("second", 59)]) {
        if part.is_empty() || 2 < part.len() || !part.bytes().all(|byte| byte.is_ascii_digit()) {
            let article = if name == "hour" { "an" } else { "a" };
            let problem = format!("{} is not {article} {name}", quoted(part));
            return Err(wrong(at, problem, "use HH:MM or HH:MM:SS"));
        }
        let number = part.bytes().fold(0, |number, digit| number * 10 + u32::from(digit - b'0'));
        if max < number {
            return Err(wrong(at, format!("the {name} {number} is out of range"), &format!("use 0 to {max}")));
        }
        second = second * 60 + number;
        at += part.len() + 1;
    }
    Ok(if parts.len() == 2 { second * 60 } else { second })
}

impl TryFrom<Vec<String>> for TimesOfDay {
    type Error = ParseError;

    fn try_from(times: Vec<String>) -> Result<TimesOfDay, ParseError> {
        TimesOfDay::parse(&times)
    }
}

impl From<TimesOfDay> for Vec<String> {
    fn from(times: TimesOfDay) -> Vec<String> {
        clock_times(&times.seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_sorted_and_unique() {
        let times = TimesOfDay::parse(&["17:30:15", "9:00", "09:00:00"]).unwrap();
        assert_eq!(Vec::from(times.clone()), ["09:00", "17:30:15"]);
        assert_eq!(times.describe(), "At 09:00 and 17:30:15, every day");
    }

    #[test]
    fn errors_name_the_entry_and_the_place() {
        for (times, message) in [
            (&["09:00", "24:00"][..], "times[1]: the hour 24 is out of range at position 0; use 0 to 23"),
            (&["09:60"], "times[0]: the minute 60 is out of range at position 3; use 0 to 59"),
            (&["09:00:61"], "times[0]: the second 61 is out of range at position 6; use 0 to 59"),
            (&["0900"], "times[0]: \"0900\" is not a time of day at position 0; use HH:MM or HH:MM:SS"),
            (&["09:0x"], "times[0]: \"0x\" is not a minute at position 3; use HH:MM or HH:MM:SS"),
            (&["+9:00"], "times[0]: \"+9\" is not an hour at position 0; use HH:MM or HH:MM:SS"),
            (&["009:00"], "times[0]: \"009\" is not an hour at position 0; use HH:MM or HH:MM:SS"),
            (&[], "times: there are 0 times; use 1 to 1440, like 09:00 or 17:30:15"),
        ] {
            assert_eq!(TimesOfDay::parse(times).unwrap_err().to_string(), message);
        }
    }
}

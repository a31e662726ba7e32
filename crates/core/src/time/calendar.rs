//! Named calendars: when a schedule may run at all.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use jiff::civil::{Date, Weekday};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::civil::{DAY, datetime_of};
use super::cron::clock_times;
use super::times_of_day::parse_time;
use crate::error::ParseError;

/// A named calendar: weekly opening windows, closed dates and extra open dates, in one zone.
///
/// A slot outside is skipped with reason `calendar`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "CalendarText", into = "CalendarText")]
#[schemars(with = "CalendarText")]
pub struct Calendar {
    name: String,
    zone: String,
    /// Windows per weekday, Sunday first; `None` is open all week.
    weekly: Option<[Vec<Window>; 7]>,
    closed: BTreeSet<Date>,
    open: BTreeMap<Date, Vec<Window>>,
}

impl Calendar {
    /// The name by which schedules refer to it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The IANA name of the zone in which windows and dates are meant.
    pub fn zone(&self) -> &str {
        &self.zone
    }

    /// Whether the calendar is open when its zone's clock shows `local`.
    pub(crate) fn is_open(&self, local: i64) -> bool {
        let date = datetime_of(local).date();
        if self.closed.contains(&date) {
            return false;
        }
        let second = local.rem_euclid(DAY) as u32;
        let yesterday = date.yesterday().ok().filter(|date| !self.closed.contains(date));
        // A window over midnight belongs to the day on which it opens.
        self.has_window(date, |window| window.contains(second))
            || yesterday.is_some_and(|date| self.has_window(date, |window| window.reaches_into_next_day(second)))
    }

    fn has_window(&self, date: Date, matches: impl Fn(&Window) -> bool) -> bool {
        match (self.open.get(&date), &self.weekly) {
            (Some(windows), _) => windows.iter().any(matches),
            (None, Some(weekly)) => weekly[date.weekday().to_sunday_zero_offset() as usize].iter().any(matches),
            (None, None) => matches(&Window::ALL_DAY),
        }
    }
}

/// A stretch of the local day: `09:00-17:00`, without its end; `22:00-02:00` reaches into the next day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", extend("examples" = ["09:00-17:00", "22:00-02:00"]))]
pub struct Window {
    from: u32,
    /// Less than or equal to `from` for a window over midnight.
    until: u32,
}

impl Window {
    const ALL_DAY: Window = Window { from: 0, until: DAY as u32 };

    /// Reads `HH:MM-HH:MM`; seconds are allowed, and `24:00` as an end.
    pub fn parse(text: &str) -> Result<Window, ParseError> {
        let Some((from, until)) = text.split_once('-') else {
            let fix = "use HH:MM-HH:MM";
            return Err(ParseError::at_byte(text, 0, "window", "there is no -", fix));
        };
        let shifted = |error: ParseError, by: usize| ParseError { position: error.position.map(|at| at + by), ..error };
        let until_at = from.chars().count() + 1;
        let from = parse_time(from).map_err(|error| error.within("window"))?;
        let until = match until {
            "24:00" | "24:00:00" => DAY as u32,
            until => parse_time(until).map_err(|error| shifted(error.within("window"), until_at))?,
        };
        Ok(Window { from, until })
    }

    fn is_over_midnight(&self) -> bool {
        self.until <= self.from
    }

    fn contains(&self, second: u32) -> bool {
        self.from <= second && (second < self.until || self.is_over_midnight())
    }

    fn reaches_into_next_day(&self, second: u32) -> bool {
        self.is_over_midnight() && second < self.until
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // 24:00 is written as such by the same arithmetic.
        f.write_str(&clock_times(&[self.from, self.until]).join("-"))
    }
}

impl TryFrom<String> for Window {
    type Error = ParseError;

    fn try_from(text: String) -> Result<Window, ParseError> {
        Window::parse(&text)
    }
}

impl From<Window> for String {
    fn from(window: Window) -> String {
        window.to_string()
    }
}

/// A calendar as it is written.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a calendar")]
#[schemars(rename = "Calendar")]
struct CalendarText {
    /// The name by which schedules refer to it.
    name: String,
    /// The IANA zone in which windows and dates are meant.
    zone: String,
    /// Opening windows by weekday. A weekday that is absent is closed; without this field every day is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    weekly: Option<BTreeMap<WeekdayName, Vec<Window>>>,
    /// Dates on which it is closed from midnight to midnight.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    closed: BTreeSet<Date>,
    /// Dates with windows of their own, whatever the weekday says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    open: Vec<OpenDate>,
}

/// An extra open date.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a date with its windows")]
struct OpenDate {
    date: Date,
    /// All day when absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    windows: Vec<Window>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum WeekdayName {
    Mon,
    Tue,
    Wed,
    Thu,
    Fri,
    Sat,
    Sun,
}

impl WeekdayName {
    const ALL: [WeekdayName; 7] = {
        use WeekdayName::{Fri, Mon, Sat, Sun, Thu, Tue, Wed};
        [Mon, Tue, Wed, Thu, Fri, Sat, Sun]
    };

    fn sunday_zero(self) -> usize {
        let weekday = Weekday::from_monday_zero_offset(self as i8).expect("there are seven names");
        weekday.to_sunday_zero_offset() as usize
    }
}

impl TryFrom<CalendarText> for Calendar {
    type Error = ParseError;

    fn try_from(text: CalendarText) -> Result<Calendar, ParseError> {
        let wrong = |field: &str, problem: String, fix: &str| ParseError::value(field, problem, fix);
        if text.name.is_empty() {
            return Err(wrong("name", "the calendar has no name".to_owned(), "name it, like office-hours"));
        }
        let mut open = BTreeMap::new();
        for OpenDate { date, windows } in text.open {
            if text.closed.contains(&date) {
                return Err(wrong("open", format!("{date} is both closed and open"), "list it once"));
            }
            let windows = if windows.is_empty() { vec![Window::ALL_DAY] } else { windows };
            if open.insert(date, windows).is_some() {
                return Err(wrong("open", format!("{date} is listed twice"), "list it once, with all its windows"));
            }
        }
        let weekly = text.weekly.map(|weekly| {
            let mut by_day: [Vec<Window>; 7] = Default::default();
            for (name, windows) in weekly {
                by_day[name.sunday_zero()] = windows;
            }
            by_day
        });
        Ok(Calendar { name: text.name, zone: text.zone, weekly, closed: text.closed, open })
    }
}

impl From<Calendar> for CalendarText {
    fn from(calendar: Calendar) -> CalendarText {
        let weekly = calendar.weekly.map(|mut by_day| {
            WeekdayName::ALL
                .into_iter()
                .map(|name| (name, std::mem::take(&mut by_day[name.sunday_zero()])))
                .filter(|(_, windows)| !windows.is_empty())
                .collect()
        });
        let open = calendar.open.into_iter().map(|(date, windows)| OpenDate { date, windows }).collect();
        CalendarText { name: calendar.name, zone: calendar.zone, weekly, closed: calendar.closed, open }
    }
}

#[cfg(test)]
mod tests {
    use super::super::civil::local_of;
    use super::*;

    fn calendar(json: &str) -> Calendar {
        serde_json::from_str(json).unwrap()
    }

    fn check(calendar: &Calendar, local: &str, expected: bool) {
        assert_eq!(calendar.is_open(local_of(local.parse().unwrap())), expected, "{local}");
    }

    #[test]
    fn windows_dates_and_midnight() {
        let bar = calendar(
            r#"{"name":"bar","zone":"Europe/Paris",
                "weekly":{"fri":["18:00-02:00"],"sat":["12:00-14:00","18:00-24:00"]},
                "closed":["2026-12-25"],"open":[{"date":"2026-12-24"},{"date":"2026-12-30","windows":["10:00-11:00"]}]}"#,
        );
        check(&bar, "2026-11-13T17:59:59", false); // A Friday.
        check(&bar, "2026-11-13T18:00:00", true);
        check(&bar, "2026-11-14T01:59:59", true); // Friday's window, on Saturday.
        check(&bar, "2026-11-14T02:00:00", false);
        check(&bar, "2026-11-14T13:59:59", true);
        check(&bar, "2026-11-14T14:00:00", false);
        check(&bar, "2026-11-14T23:59:59", true);
        check(&bar, "2026-11-15T00:00:00", false);
        check(&bar, "2026-12-24T03:00:00", true); // An extra open Thursday.
        check(&bar, "2026-12-25T19:00:00", false); // A closed Friday,
        check(&bar, "2026-12-26T01:00:00", false); // whose night is closed as well.
        check(&bar, "2026-12-30T10:30:00", true);
        check(&bar, "2026-12-30T12:00:00", false);
    }

    #[test]
    fn without_windows_every_day_is_open_but_the_closed_ones() {
        let holidays = calendar(r#"{"name":"holidays","zone":"UTC","closed":["2026-12-25"]}"#);
        check(&holidays, "2026-12-24T23:59:59", true);
        check(&holidays, "2026-12-25T00:00:00", false);
        check(&holidays, "2026-12-26T00:00:00", true);
    }

    #[test]
    fn a_calendar_is_written_as_it_was_read() {
        let json = r#"{"name":"x","zone":"UTC","weekly":{"mon":["09:00-17:00"],"sun":["22:00-24:00"]},"closed":["2026-01-01"]}"#;
        assert_eq!(serde_json::to_string(&calendar(json)).unwrap(), json);
    }

    #[test]
    fn mistakes_are_named() {
        for (json, message) in [
            (r#"{"name":"","zone":"UTC"}"#, "name: the calendar has no name"),
            (r#"{"name":"x","zone":"UTC","weekly":{"monday":[]}}"#, "unknown variant `monday`"),
            (
                r#"{"name":"x","zone":"UTC","weekly":{"mon":["9-17"]}}"#,
                "window: \"9\" is not a time of day at position 0",
            ),
            (
                r#"{"name":"x","zone":"UTC","weekly":{"mon":["09:00-25:00"]}}"#,
                "window: the hour 25 is out of range at position 6",
            ),
            (r#"{"name":"x","zone":"UTC","weekly":{"mon":["09:00"]}}"#, "window: there is no -"),
            (r#"{"name":"x","zone":"UTC","closed":["2026-02-30"]}"#, "parameter 'day'"),
            (
                r#"{"name":"x","zone":"UTC","closed":["2026-02-03"],"open":[{"date":"2026-02-03"}]}"#,
                "2026-02-03 is both closed and open",
            ),
            (r#"{"name":"x","zone":"UTC","hours":[]}"#, "unknown field `hours`"),
        ] {
            let error = serde_json::from_str::<Calendar>(json).unwrap_err().to_string();
            assert!(error.contains(message), "{json}: {error}");
        }
    }
}

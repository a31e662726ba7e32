//! Reading cron text, with errors that point.

use super::days::{ALL_DAYS, ALL_WEEKDAYS, DaySet};
use super::search::{ClockSet, FIRST_YEAR, YearSet, Years};
use super::{Cron, Dialect};
use crate::error::{ParseError, quoted};

/// The longest text that is looked at. The longest sensible expression lists every second, minute and hour.
const TEXT_MAX: usize = 1_000;

const MACROS: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * SUN"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

const MONTHS: [&str; 12] = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

/// What a field accepts.
struct FieldRule {
    name: &'static str,
    min: u32,
    max: u32,
    /// Names for the values from `min` on.
    names: &'static [&'static str],
}

const SECOND: FieldRule = FieldRule { name: "second", min: 0, max: 59, names: &[] };
const MINUTE: FieldRule = FieldRule { name: "minute", min: 0, max: 59, names: &[] };
const HOUR: FieldRule = FieldRule { name: "hour", min: 0, max: 23, names: &[] };
const DAY_OF_MONTH: FieldRule = FieldRule { name: "day-of-month", min: 1, max: 31, names: &[] };
const MONTH: FieldRule = FieldRule { name: "month", min: 1, max: 12, names: &MONTHS };
/// Sunday is 0 and 7 at once: steps and ranges may pass through either.
const DAY_OF_WEEK: FieldRule = FieldRule { name: "day-of-week", min: 0, max: 7, names: &WEEKDAYS };
const QUARTZ_DAY_OF_WEEK: FieldRule = FieldRule { name: "day-of-week", min: 1, max: 7, names: &WEEKDAYS };
const YEAR: FieldRule = FieldRule { name: "year", min: FIRST_YEAR as u32, max: 9_999, names: &[] };

/// A plain item of a field: every `step`-th value from `from` to `until`, which may lie before `from`.
struct Span {
    from: u32,
    until: u32,
    step: u32,
    /// Where `until` stands in the text.
    until_at: usize,
}

pub(super) fn parse(text: &str, dialect: Option<Dialect>) -> Result<Cron, ParseError> {
    if TEXT_MAX < text.len() {
        let problem = format!("the text has {} bytes", text.len());
        return Err(ParseError::at_byte(text, TEXT_MAX, "cron", problem, format!("use at most {TEXT_MAX}")));
    }
    let trimmed = text.trim();
    if let Some(after_at) = trimmed.strip_prefix('@') {
        let expansion = MACROS.iter().find(|(name, _)| name[1..].eq_ignore_ascii_case(after_at));
        let Some((_, expansion)) = expansion else {
            let at = text.len() - text.trim_start().len();
            let problem = format!("{} is not a macro", quoted(trimmed));
            let fix = "use @yearly, @annually, @monthly, @weekly, @daily, @midnight or @hourly";
            return Err(ParseError::at_byte(text, at, "cron", problem, fix));
        };
        let cron = parse_fields(expansion, Some(dialect.unwrap_or(Dialect::Unix)))?;
        return Ok(Cron { text: text.into(), ..cron });
    }
    parse_fields(text, dialect)
}

fn parse_fields(text: &str, dialect: Option<Dialect>) -> Result<Cron, ParseError> {
    let fields = split(text);
    let (second, rest, year) = match fields.as_slice() {
        rest if rest.len() == 5 => (None, rest, None),
        [second, rest @ ..] if rest.len() == 5 => (Some(second), rest, None),
        [second, rest @ .., year] if rest.len() == 5 => (Some(second), rest, Some(year)),
        _ => {
            let at = fields.get(7).map_or(text.trim_end().len(), |(at, _)| *at);
            let problem = format!("there are {} fields", fields.len());
            let fix = "use 5 (minute hour day-of-month month day-of-week), 6 (second first) or 7 (year last)";
            return Err(ParseError::at_byte(text, at, "cron", problem, fix));
        }
    };
    let [minute, hour, day_of_month, month, day_of_week] =
        [0, 1, 2, 3, 4].map(|position| Reader::new(text, rest[position]));
    let second = second.map(|field| Reader::new(text, *field));
    let year = year.map(|field| Reader::new(text, *field));
    let dialect = dialect.unwrap_or(if second.is_none() { Dialect::Unix } else { Dialect::Spring });

    let is_rhythm = |field: &Reader| field.text().contains(['*', '-', '/']);
    let is_interval_like = second.as_ref().is_some_and(is_rhythm) || is_rhythm(&minute) || is_rhythm(&hour);
    let is_star = |field: &Reader| field.text().starts_with(['*', '?']);
    let either = dialect == Dialect::Unix && !is_star(&day_of_month) && !is_star(&day_of_week);

    // In the order of the text, so that the first mistake is the one reported.
    let seconds = second.map_or(Ok(1), |field| plain_set(field, &SECOND))?;
    let minutes = plain_set(minute, &MINUTE)?;
    let hours = plain_set(hour, &HOUR)? as u32;
    let mut days = DaySet { either, ..DaySet::default() };
    days_of_month(day_of_month, &mut days)?;
    let months = plain_set(month, &MONTH)? as u16;
    days_of_week(day_of_week, dialect, &mut days)?;
    let years = year.map_or(Ok(Years::default()), years)?;

    let clock = ClockSet { seconds, minutes, hours };
    Ok(Cron { text: text.into(), dialect, clock, days, months, years, is_interval_like })
}

/// The fields of a text with the byte at which each starts.
fn split(text: &str) -> Vec<(usize, &str)> {
    text.split_whitespace().map(|field| (field.as_ptr() as usize - text.as_ptr() as usize, field)).collect()
}

/// Seconds, minutes, hours and months: values, ranges and steps, nothing else.
fn plain_set(mut field: Reader<'_>, rule: &FieldRule) -> Result<u64, ParseError> {
    let mut set = 0;
    field.each_item(rule, |item| {
        let span = item.span(rule)?;
        set |= expand(&span, rule);
        Ok(())
    })?;
    Ok(set)
}

fn days_of_month(mut field: Reader<'_>, days: &mut DaySet) -> Result<(), ParseError> {
    let rule = &DAY_OF_MONTH;
    if field.text() == "?" {
        days.days = ALL_DAYS;
        return Ok(());
    }
    field.each_item(rule, |item| {
        if item.eat('L') {
            let offset = if item.eat('-') { item.number(rule, 0, 30)? } else { 0 };
            let set = if item.eat('W') { &mut days.nearest_from_last } else { &mut days.from_last };
            *set |= 1 << offset;
            return Ok(());
        }
        let start = item.at;
        let span = item.span(rule)?;
        if item.eat('W') {
            if !item.text_since(start).trim_end_matches(['W', 'w']).bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(item.error_at(start, rule, "W stands behind one day", "use 15W or LW"));
            }
            days.nearest |= 1 << span.from;
            return Ok(());
        }
        days.days |= expand(&span, rule) as u32;
        Ok(())
    })
}

fn days_of_week(mut field: Reader<'_>, dialect: Dialect, days: &mut DaySet) -> Result<(), ParseError> {
    let is_quartz = dialect == Dialect::Quartz;
    let rule = if is_quartz { &QUARTZ_DAY_OF_WEEK } else { &DAY_OF_WEEK };
    if field.text() == "?" {
        days.weekdays = ALL_WEEKDAYS;
        return Ok(());
    }
    let weekday = |value: u32| (value - rule.min) % 7;
    field.each_item(rule, |item| {
        let start = item.at;
        if item.eat('L') {
            if !is_quartz {
                return Err(item.error_at(
                    start,
                    rule,
                    "L needs a day before it",
                    "use 5L or FRIL for the last Friday",
                ));
            }
            // Quartz: `L` alone is the last day of the week, Saturday.
            days.weekdays |= 1 << 6;
            return Ok(());
        }
        let span = item.span(rule)?;
        let is_one_day = !item.text_since(start).contains(['*', '-', '/']);
        let suffix_at = item.at;
        if item.eat('L') {
            days.last |= 1 << weekday(span.from);
        } else if item.eat('#') {
            let n = item.number(rule, 1, 5).map_err(|error| ParseError {
                fix: "use 1 to 5: a month has no more of one weekday".to_owned(),
                ..error
            })?;
            days.nth[n as usize - 1] |= 1 << weekday(span.from);
        } else {
            let set = expand(&span, rule);
            for value in rule.min..=rule.max {
                if set >> value & 1 == 1 {
                    days.weekdays |= 1 << weekday(value);
                }
            }
            return Ok(());
        }
        if is_one_day {
            return Ok(());
        }
        Err(item.error_at(suffix_at, rule, "L and # stand behind one day", "use FRIL or FRI#2"))
    })
}

fn years(mut field: Reader<'_>) -> Result<Years, ParseError> {
    if field.text() == "*" {
        return Ok(Years::default());
    }
    let mut years = vec![];
    field.each_item(&YEAR, |item| {
        let Span { from, until, step, until_at } = item.span(&YEAR)?;
        if until < from {
            return Err(item.error_at(until_at, &YEAR, "the range runs backwards", "put the earlier year first"));
        }
        years.extend((from as i32..=until as i32).step_by(step as usize));
        Ok(())
    })?;
    Ok(Years(Some(Box::new(YearSet::new(years.into_iter())))))
}

/// The values of a span as bits. A range whose end lies before its start goes on at the bottom of the field.
fn expand(span: &Span, rule: &FieldRule) -> u64 {
    // Sunday is both 0 and 7, but only one day of the circle.
    let circle = if rule.max == 7 { 7 } else { rule.max - rule.min + 1 };
    let length =
        if span.from <= span.until { span.until - span.from } else { (span.until + circle - span.from) % circle };
    let value = |offset: u32| {
        let value = span.from + offset;
        if rule.max < value || span.until < span.from { rule.min + (value - rule.min) % circle } else { value }
    };
    (0..=length).step_by(span.step as usize).fold(0, |set, offset| set | 1 << value(offset))
}

/// Reads one field, knowing where in the whole text it is.
struct Reader<'a> {
    whole: &'a str,
    start: usize,
    at: usize,
    end: usize,
}

impl<'a> Reader<'a> {
    fn new(whole: &'a str, (start, field): (usize, &str)) -> Reader<'a> {
        Reader { whole, start, at: start, end: start + field.len() }
    }

    fn text(&self) -> &'a str {
        &self.whole[self.start..self.end]
    }

    fn text_since(&self, start: usize) -> &'a str {
        &self.whole[start..self.at]
    }

    fn rest(&self) -> &'a str {
        &self.whole[self.at..self.end]
    }

    /// Takes one character of the syntax, in either case.
    fn eat(&mut self, wanted: char) -> bool {
        let found = self.rest().chars().next().is_some_and(|next| next.eq_ignore_ascii_case(&wanted));
        self.at += usize::from(found);
        found
    }

    /// Reads the items of a comma-separated list; each must end at a comma or at the end.
    fn each_item(
        &mut self,
        rule: &FieldRule,
        mut read: impl FnMut(&mut Self) -> Result<(), ParseError>,
    ) -> Result<(), ParseError> {
        loop {
            read(self)?;
            if self.rest().is_empty() {
                return Ok(());
            }
            if !self.eat(',') {
                return Err(self.unexpected(rule));
            }
        }
    }

    /// `*`, a value, a range, each with an optional step.
    fn span(&mut self, rule: &FieldRule) -> Result<Span, ParseError> {
        let (from, until, until_at, is_value);
        if self.eat('*') {
            (from, until, until_at, is_value) = (rule.min, rule.max, self.at, false);
        } else {
            from = self.value(rule)?;
            if self.eat('-') {
                until_at = self.at;
                (until, is_value) = (self.value(rule)?, false);
            } else {
                (until, until_at, is_value) = (from, self.at, true);
            }
        }
        if !self.eat('/') {
            return Ok(Span { from, until, step: 1, until_at });
        }
        let step_at = self.at;
        let step = self.number(rule, 1, u32::MAX)?;
        if rule.max < step {
            let problem = format!("a step of {step} never takes a second step");
            return Err(self.error_at(step_at, rule, problem, format!("use 1 to {}, or one value", rule.max)));
        }
        // `0/30` counts from 0 to the end of the field.
        Ok(Span { from, until: if is_value { rule.max } else { until }, step, until_at })
    }

    /// A number or a name of this field.
    fn value(&mut self, rule: &FieldRule) -> Result<u32, ParseError> {
        if !self.rest().starts_with(|next: char| next.is_ascii_alphabetic()) {
            return self.number(rule, rule.min, rule.max);
        }
        let name = self.rest().get(..3).unwrap_or(self.rest());
        match rule.names.iter().position(|known| known.eq_ignore_ascii_case(name)) {
            Some(position) => {
                self.at += name.len();
                Ok(rule.min + position as u32)
            }
            None => Err(self.unexpected(rule)),
        }
    }

    fn number(&mut self, rule: &FieldRule, min: u32, max: u32) -> Result<u32, ParseError> {
        let start = self.at;
        let digits = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            return Err(self.unexpected(rule));
        }
        self.at += digits;
        let number = self.text_since(start).parse().ok().filter(|number| (min..=max).contains(number));
        number.ok_or_else(|| {
            let problem = format!("{} is out of range", self.text_since(start));
            let fix = if max == u32::MAX { format!("use {min} or more") } else { format!("use {min} to {max}") };
            self.error_at(start, rule, problem, fix)
        })
    }

    fn unexpected(&self, rule: &FieldRule) -> ParseError {
        let found = match self.rest().chars().next() {
            None => "the field ends too early".to_owned(),
            Some(',') => "an item of the list is empty".to_owned(),
            Some(_) => format!("{} is not understood", quoted(self.rest())),
        };
        let values = match rule.names {
            [] => format!("{} to {}", rule.min, rule.max),
            [first, .., last] => format!("{} to {} or {first} to {last}", rule.min, rule.max),
            [_] => unreachable!("no field has one name"),
        };
        let also = match rule.name {
            "day-of-month" => ", and L, L-3, LW, 15W or ?",
            "day-of-week" => ", and 5L, 5#2 or ?",
            _ => "",
        };
        self.error_at(self.at, rule, found, format!("use {values}, with * , - /{also}"))
    }

    fn error_at(&self, at: usize, rule: &FieldRule, problem: impl Into<String>, fix: impl Into<String>) -> ParseError {
        ParseError::at_byte(self.whole, at, rule.name, problem, fix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weekdays(text: &str, dialect: Dialect) -> u8 {
        Cron::parse(&format!("0 0 * * {text}"), Some(dialect)).unwrap().days.weekdays
    }

    fn hours(text: &str) -> Vec<u32> {
        let set = Cron::parse(&format!("0 {text} * * *"), None).unwrap().clock.hours;
        (0..24).filter(|hour| set >> hour & 1 == 1).collect()
    }

    #[test]
    fn ranges_wrap_and_steps_count_from_their_start() {
        assert_eq!(hours("22-2"), [0, 1, 2, 22, 23]);
        assert_eq!(hours("22-2/2"), [0, 2, 22]);
        assert_eq!(hours("21-2/2"), [1, 21, 23]);
        assert_eq!(hours("8-10/2"), [8, 10]);
        assert_eq!(hours("20/2"), [20, 22]);
        assert_eq!(hours("*/7"), [0, 7, 14, 21]);
        assert_eq!(hours("5,1,5-7"), [1, 5, 6, 7]);
    }

    #[test]
    fn days_of_the_week_count_as_the_dialect_says() {
        use Dialect::{Quartz, Spring, Unix};
        for (text, dialect, expected) in [
            ("MON-FRI", Unix, 0b0111110),
            ("mon-Fri", Quartz, 0b0111110),
            ("1-5", Unix, 0b0111110),
            ("1-5", Quartz, 0b0011111),
            ("FRI-MON", Spring, 0b1100011),
            ("6-2", Quartz, 0b1100011),
            ("0", Unix, 0b0000001),
            ("7", Spring, 0b0000001),
            ("7", Quartz, 0b1000000),
            ("SAT-SUN", Unix, 0b1000001),
            ("5-7", Unix, 0b1100001),
            ("7-1", Unix, 0b0000011),
            ("0-7", Unix, 0b1111111),
            ("MON-SUN", Unix, 0b1111111),
            ("1-7/2", Unix, 0b0101011),
            ("*/2", Unix, 0b1010101),
            ("1/2", Spring, 0b0101011),
            ("*/2", Quartz, 0b1010101),
            ("?", Unix, 0b1111111),
            ("L", Quartz, 0b1000000),
        ] {
            assert_eq!(weekdays(text, dialect), expected, "{text} in {dialect}");
        }
    }

    #[test]
    fn errors_name_the_field_and_the_place_and_the_remedy() {
        for (text, position, message) in [
            ("", 0, "cron: there are 0 fields at position 0; use 5 ("),
            ("* * * *", 7, "cron: there are 4 fields at position 7"),
            ("* * * * * * * *", 14, "cron: there are 8 fields at position 14"),
            ("60 * * * *", 0, "minute: 60 is out of range at position 0; use 0 to 59"),
            ("* 24 * * *", 2, "hour: 24 is out of range at position 2; use 0 to 23"),
            ("* * 0 * *", 4, "day-of-month: 0 is out of range at position 4; use 1 to 31"),
            ("* * * 13 *", 6, "month: 13 is out of range"),
            ("* * * * 8", 8, "day-of-week: 8 is out of range"),
            ("0 0 0 * * * 1969", 12, "year: 1969 is out of range at position 12; use 1970 to 9999"),
            ("0 0 0 * * * 2030-2026", 17, "year: the range runs backwards"),
            ("*/0 * * * *", 2, "minute: 0 is out of range at position 2; use 1 or more"),
            ("*/60 * * * *", 2, "minute: a step of 60 never takes a second step"),
            ("5- * * * *", 2, "minute: the field ends too early at position 2"),
            ("1,,2 * * * *", 2, "minute: an item of the list is empty at position 2"),
            (", * * * *", 0, "minute: an item of the list is empty"),
            ("1, * * * *", 2, "minute: the field ends too early"),
            ("-1 * * * *", 0, "minute: \"-1\" is not understood"),
            ("*5 * * * *", 1, "minute: \"5\" is not understood"),
            ("1.5 * * * *", 1, "minute: \".5\" is not understood"),
            ("? * * * *", 0, "minute: \"?\" is not understood"),
            ("* * * * MONDAY", 11, "day-of-week: \"DAY\" is not understood"),
            ("* * MON * *", 4, "day-of-month: \"MON\" is not understood"),
            ("* * * * L", 8, "day-of-week: L needs a day before it"),
            ("* * * * 5#6", 10, "day-of-week: 6 is out of range at position 10; use 1 to 5: a month"),
            ("* * * * 1-5L", 11, "day-of-week: L and # stand behind one day"),
            ("* * * * *#2", 9, "day-of-week: L and # stand behind one day"),
            ("* * 1-5W * *", 4, "day-of-month: W stands behind one day"),
            ("* * *W * *", 4, "day-of-month: W stands behind one day"),
            ("* * L-31 * *", 6, "day-of-month: 31 is out of range at position 6; use 0 to 30"),
            ("* * L3 * *", 5, "day-of-month: \"3\" is not understood"),
            ("* * 32W * *", 4, "day-of-month: 32 is out of range"),
            ("99999999999999999999 * * * *", 0, "minute: 99999999999999999999 is out of range"),
            ("@every 5m", 0, "cron: \"@every 5m\" is not a macro"),
            ("  @reboot", 2, "cron: \"@reboot\" is not a macro"),
            ("é * * * *", 0, "minute: \"é\" is not understood"),
            ("* é * * *", 2, "hour: \"é\" is not understood"),
            ("* * * * é é é é", 14, "cron: there are 8 fields"),
        ] {
            let error = Cron::parse(text, None).unwrap_err();
            assert!(error.to_string().starts_with(message), "{text:?}: {error}");
            assert_eq!(error.position, Some(position), "{text:?}: {error}");
        }
        let error = Cron::parse("0 0 12 ? * 0", Some(Dialect::Quartz)).unwrap_err();
        assert_eq!(error.to_string(), "day-of-week: 0 is out of range at position 11; use 1 to 7");
        assert!(Cron::parse(&" ".repeat(2_000), None).is_err());
    }

    #[test]
    fn a_star_range_or_step_in_the_clock_makes_a_rhythm() {
        for (text, expected) in [
            ("0 9 * * *", false),
            ("0,30 9,17 * * MON-FRI", false),
            ("0 0 9 */2 * *", false),
            ("* 9 * * *", true),
            ("0 9-17 * * *", true),
            ("0/30 9 * * *", true),
            ("0 */2 * * *", true),
            ("*/10 0 9 * * *", true),
            ("@daily", false),
            ("@hourly", true),
        ] {
            assert_eq!(Cron::parse(text, None).unwrap().is_interval_like(), expected, "{text}");
        }
    }

    #[test]
    fn the_text_is_echoed_and_the_dialect_is_kept() {
        let cron = Cron::parse(" @Daily ", Some(Dialect::Quartz)).unwrap();
        assert_eq!((cron.text(), cron.dialect()), (" @Daily ", Dialect::Quartz));
        assert_eq!(Cron::parse("0 0 9 * * *", None).unwrap().dialect(), Dialect::Spring);
        assert_eq!(Cron::parse("0 9 * * *", None).unwrap().dialect(), Dialect::Unix);
        assert_eq!(Cron::parse("0 0 9 * * ? 2030", None).unwrap().dialect(), Dialect::Spring);
    }
}

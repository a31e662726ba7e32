//! Elapsed time as people write it: `90s`, `1h30m`, `3d`, `PT15M`.

use std::fmt;

use jiff::SignedDuration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{ParseError, quoted};

/// An amount of elapsed time in whole milliseconds, never negative. A day is 24 hours, a week 7 days.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", extend("examples" = ["90s", "1h30m", "3d", "PT15M"]))]
pub struct Elapsed {
    milliseconds: i64,
}

/// A thousand years: far beyond any use, far below any overflow.
const MILLISECONDS_MAX: i64 = 1_000 * 365 * 86_400_000;
const TEXT_MAX: usize = 100;

const UNITS: [(&str, i64); 6] =
    [("w", 604_800_000), ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

impl Elapsed {
    /// No time at all.
    pub const ZERO: Elapsed = Elapsed { milliseconds: 0 };

    /// A thousand years, the most there is.
    pub const MAX: Elapsed = Elapsed { milliseconds: MILLISECONDS_MAX };

    /// So many seconds, at most a thousand years of them.
    pub const fn from_seconds(seconds: u32) -> Elapsed {
        Elapsed { milliseconds: seconds as i64 * 1_000 }
    }

    /// So many milliseconds; `None` when negative or more than a thousand years.
    pub fn from_milliseconds(milliseconds: i64) -> Option<Elapsed> {
        (0..=MILLISECONDS_MAX).contains(&milliseconds).then_some(Elapsed { milliseconds })
    }

    /// Reads `1h30m`, `1h 30m`, `90s`, `250ms`, `2w` or ISO 8601 like `PT1H30M` and `P3D`.
    pub fn parse(text: &str) -> Result<Elapsed, ParseError> {
        let wrong = |at: usize, problem: String, fix: &str| ParseError::at_byte(text, at, "duration", problem, fix);
        let how = "use numbers with w, d, h, m, s or ms, like 90s, 1h30m or PT15M";
        if TEXT_MAX < text.len() {
            return Err(wrong(0, format!("{} is too long", quoted(text)), how));
        }
        let is_iso = text.starts_with(['P', 'p']);
        let mut at = usize::from(is_iso);
        let mut total = 0_i64;
        let mut smallest_so_far = i64::MAX;
        let mut is_clock_part = !is_iso;
        let mut has_part = false;
        while at < text.len() {
            let rest = &text[at..];
            if is_iso && !is_clock_part && rest.starts_with(['T', 't']) {
                is_clock_part = true;
                at += 1;
                has_part = false;
                continue;
            }
            if !is_iso && has_part && rest.starts_with(' ') {
                at += 1;
                continue;
            }
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let letters = rest[digits..].bytes().take_while(u8::is_ascii_alphabetic).count();
            // ISO writes its units one letter each; ours may be two.
            let unit_length = if is_iso { letters.min(1) } else { letters };
            let unit = &rest[digits..digits + unit_length];
            if digits == 0 {
                return Err(wrong(at, format!("{} is not a number", quoted(rest)), how));
            }
            let known = UNITS.iter().find(|(name, size)| {
                let fits_iso = !is_iso || (*size < UNITS[1].1) == is_clock_part && *name != "ms";
                name.eq_ignore_ascii_case(unit) && fits_iso
            });
            let Some((_, size)) = known else {
                let problem = match &rest[digits..] {
                    "" => "a unit is missing".to_owned(),
                    unknown => format!("{} is not a unit", quoted(unknown)),
                };
                return Err(wrong(at + digits, problem, how));
            };
            if smallest_so_far <= *size {
                return Err(wrong(at, "the units are out of order".to_owned(), "put the largest first, each once"));
            }
            smallest_so_far = *size;
            let amount = rest[..digits].parse::<i64>().ok().and_then(|number| number.checked_mul(*size));
            total = amount
                .and_then(|amount| total.checked_add(amount))
                .filter(|total| *total <= MILLISECONDS_MAX)
                .ok_or_else(|| wrong(at, "this is more than a thousand years".to_owned(), "use less"))?;
            at += digits + unit_length;
            has_part = true;
        }
        if !has_part {
            return Err(wrong(at, "the text ends too early".to_owned(), how));
        }
        Ok(Elapsed { milliseconds: total })
    }

    /// In milliseconds.
    pub fn milliseconds(self) -> i64 {
        self.milliseconds
    }

    /// Whether it is no time at all.
    pub fn is_zero(self) -> bool {
        self.milliseconds == 0
    }

    /// [`Elapsed::is_zero`] as serde wants it.
    pub(crate) fn is_zero_ref(&self) -> bool {
        self.is_zero()
    }

    /// As jiff's duration, for arithmetic on instants.
    pub fn duration(self) -> SignedDuration {
        SignedDuration::from_millis(self.milliseconds)
    }

    /// In words: `1 hour 30 minutes`.
    pub fn describe(self) -> String {
        let name = |unit: &str| match unit {
            "w" => "week",
            "d" => "day",
            "h" => "hour",
            "m" => "minute",
            "s" => "second",
            _ => "millisecond",
        };
        let plural = |amount: i64| if amount == 1 { "" } else { "s" };
        let parts: Vec<String> =
            self.parts().map(|(amount, unit)| format!("{amount} {}{}", name(unit), plural(amount))).collect();
        if parts.is_empty() { "0 seconds".to_owned() } else { parts.join(" ") }
    }

    /// Amounts by unit, largest first; weeks stay days, as people read them.
    fn parts(self) -> impl Iterator<Item = (i64, &'static str)> {
        let mut rest = self.milliseconds;
        UNITS[1..].iter().filter_map(move |(unit, size)| {
            let amount = rest / size;
            rest %= size;
            (amount != 0).then_some((amount, *unit))
        })
    }
}

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_zero() {
            return f.write_str("0s");
        }
        self.parts().try_for_each(|(amount, unit)| write!(f, "{amount}{unit}"))
    }
}

impl TryFrom<String> for Elapsed {
    type Error = ParseError;

    fn try_from(text: String) -> Result<Elapsed, ParseError> {
        Elapsed::parse(&text)
    }
}

impl From<Elapsed> for String {
    fn from(elapsed: Elapsed) -> String {
        elapsed.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_and_written() {
        for (text, seconds, written) in [
            ("90s", 90, "1m30s"),
            ("1h30m", 5_400, "1h30m"),
            ("1h 30m", 5_400, "1h30m"),
            ("3d", 259_200, "3d"),
            ("2w", 1_209_600, "14d"),
            ("0s", 0, "0s"),
            ("PT15M", 900, "15m"),
            ("P1DT2H3M4S", 93_784, "1d2h3m4s"),
            ("p2w", 1_209_600, "14d"),
        ] {
            let elapsed = Elapsed::parse(text).unwrap();
            assert_eq!(elapsed, Elapsed::from_seconds(seconds), "{text}");
            assert_eq!(elapsed.to_string(), written, "{text}");
            assert_eq!(Elapsed::parse(written).unwrap(), elapsed, "{text}");
        }
        assert_eq!(Elapsed::parse("1s250ms").unwrap().milliseconds(), 1_250);
        assert_eq!(Elapsed::parse("1d1h1s").unwrap().describe(), "1 day 1 hour 1 second");
        assert_eq!(Elapsed::parse("30m").unwrap().describe(), "30 minutes");
    }

    #[test]
    fn errors_point_at_the_place() {
        for (text, position, problem) in [
            ("", 0, "the text ends too early"),
            ("5", 1, "a unit is missing"),
            ("m", 0, "\"m\" is not a number"),
            ("5 m", 1, "\" m\" is not a unit"),
            ("-5m", 0, "\"-5m\" is not a number"),
            ("1.5h", 1, "\".5h\" is not a unit"),
            ("5x", 1, "\"x\" is not a unit"),
            ("30m1h", 3, "the units are out of order"),
            ("1h1h", 2, "the units are out of order"),
            ("P", 1, "the text ends too early"),
            ("PT", 2, "the text ends too early"),
            ("P1H", 2, "\"H\" is not a unit"),
            ("P1M", 2, "\"M\" is not a unit"),
            ("PT1D", 3, "\"D\" is not a unit"),
            ("1001w1000d99999999999999999999s", 10, "this is more than a thousand years"),
            ("9999999999w", 0, "this is more than a thousand years"),
            ("5é", 1, "\"é\" is not a unit"),
        ] {
            let error = Elapsed::parse(text).unwrap_err();
            assert_eq!((error.position, error.problem.as_str()), (Some(position), problem), "{text}");
        }
        assert!(Elapsed::parse(&"1h".repeat(1_000)).is_err());
    }
}

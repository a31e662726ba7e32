//! Cron: text in three dialects, kept as bit sets that are searched without allocation.
//!
//! In: [`Cron::parse`]. Out: the civil times that match, forwards and backwards; `time/walk.rs` puts them into a zone.
//! Invariant: a `Cron` has at least one time of day and at least one candidate day; the text is echoed as given.

mod days;
mod describe;
mod parse;
mod search;

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use describe::clock_times;

use crate::error::ParseError;
use days::DaySet;
use search::{ClockSet, Years};

/// How the two day fields are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// Vixie cron: either day field may match, unless one starts with `*` or `?`; days of the week 0–7, Sunday 0 or 7.
    Unix,
    /// Spring: both day fields must match; days of the week 0–7, Sunday 0 or 7.
    Spring,
    /// Quartz: both day fields must match; days of the week 1–7, Sunday 1.
    Quartz,
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Dialect::Unix => "unix",
            Dialect::Spring => "spring",
            Dialect::Quartz => "quartz",
        })
    }
}

/// A cron expression that has been checked.
///
/// ```
/// use punctual_core::time::{Cron, Dialect};
///
/// let cron = Cron::parse("0 9 * * MON-FRI", None).unwrap();
/// assert_eq!(cron.dialect(), Dialect::Unix);
///
/// let error = Cron::parse("0 24 * * *", None).unwrap_err();
/// assert_eq!(error.to_string(), "hour: 24 is out of range at position 2; use 0 to 23");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Cron {
    text: Box<str>,
    dialect: Dialect,
    clock: ClockSet,
    days: DaySet,
    /// Bit `m` stands for month `m`, 1–12.
    months: u16,
    years: Years,
    is_interval_like: bool,
}

impl Cron {
    /// Reads 5 fields (minute first), 6 (second first) or 7 (year last), or a macro such as `@daily`.
    ///
    /// Without a dialect, 5 fields and macros are [`Dialect::Unix`], 6 and 7 fields are [`Dialect::Spring`].
    pub fn parse(text: &str, dialect: Option<Dialect>) -> Result<Cron, ParseError> {
        parse::parse(text, dialect)
    }

    /// The text as it was given.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The dialect in which the text is read.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Whether the second, minute or hour field has a `*`, a range or a step.
    ///
    /// Such an expression means "at this rhythm", so it has no slot in a gap and fires in both passes of a repeated
    /// hour; any other means "at this time of day" and follows the schedule's policies.
    pub fn is_interval_like(&self) -> bool {
        self.is_interval_like
    }
}

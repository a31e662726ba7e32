//! The civil search: the next and the previous local time that a cron matches.
//!
//! Local times here know nothing of zones: every civil second exists, once. Each search looks at one month at a time
//! and gives up where the calendar begins to repeat itself, so that "never" is an answer, and a quick one.

use super::Cron;
use crate::time::civil::{DAY, Ymd, date_of, day_number, month_length, weekday};

/// The calendar repeats after 400 years: what has not matched by then never will.
const YEARS_SEARCHED: i32 = 400;
/// The last year of jiff's calendar, and so of ours.
const LAST_YEAR: i32 = 9_999;
/// The first year that a year field can name.
pub(super) const FIRST_YEAR: i32 = 1_970;

impl Cron {
    /// The first matching local time at or after `local`.
    pub(crate) fn next(&self, local: i64) -> Option<i64> {
        let day_at = local.div_euclid(DAY);
        let Ymd { mut year, mut month, day } = date_of(day_at);
        let mut first = day_at - i64::from(day - 1);
        let mut days = self.days_in(year, month, first);
        if days >> day & 1 == 1
            && let Some(second) = self.clock.at_or_after(local.rem_euclid(DAY) as u32)
        {
            return Some(day_at * DAY + i64::from(second));
        }
        days &= u32::MAX << day << 1;
        let last_year = if self.years.is_any() { (year + YEARS_SEARCHED).min(LAST_YEAR) } else { LAST_YEAR };
        while days == 0 {
            (year, month) = self.month_after(year, month)?;
            if last_year < year {
                return None;
            }
            first = day_number(year, month, 1);
            days = self.days.matching(weekday(first), month_length(year, month));
        }
        Some((first + i64::from(days.trailing_zeros()) - 1) * DAY + i64::from(self.clock.first()))
    }

    /// The last matching local time at or before `local`.
    pub(crate) fn previous(&self, local: i64) -> Option<i64> {
        let day_at = local.div_euclid(DAY);
        let Ymd { mut year, mut month, day } = date_of(day_at);
        let mut first = day_at - i64::from(day - 1);
        let mut days = self.days_in(year, month, first);
        if days >> day & 1 == 1
            && let Some(second) = self.clock.at_or_before(local.rem_euclid(DAY) as u32)
        {
            return Some(day_at * DAY + i64::from(second));
        }
        days &= (1 << day) - 1;
        let first_year = if self.years.is_any() { (year - YEARS_SEARCHED).max(-LAST_YEAR) } else { FIRST_YEAR };
        while days == 0 {
            (year, month) = self.month_before(year, month)?;
            if year < first_year {
                return None;
            }
            first = day_number(year, month, 1);
            days = self.days.matching(weekday(first), month_length(year, month));
        }
        Some((first + i64::from(31 - days.leading_zeros()) - 1) * DAY + i64::from(self.clock.last()))
    }

    /// Whether a local time matches.
    pub(crate) fn matches(&self, local: i64) -> bool {
        let day_at = local.div_euclid(DAY);
        let Ymd { year, month, day } = date_of(day_at);
        self.clock.contains(local.rem_euclid(DAY) as u32)
            && self.days_in(year, month, day_at - i64::from(day - 1)) >> day & 1 == 1
    }

    fn days_in(&self, year: i32, month: u32, first: i64) -> u32 {
        if self.months >> month & 1 == 0 || !self.years.contains(year) {
            return 0;
        }
        self.days.matching(weekday(first), month_length(year, month))
    }

    fn month_after(&self, year: i32, month: u32) -> Option<(i32, u32)> {
        if self.years.contains(year)
            && let Some(month) = lowest_from(self.months.into(), month + 1)
        {
            return Some((year, month));
        }
        Some((self.years.at_or_after(year + 1)?, self.months.trailing_zeros()))
    }

    fn month_before(&self, year: i32, month: u32) -> Option<(i32, u32)> {
        if self.years.contains(year)
            && let Some(month) = highest_below(self.months.into(), month)
        {
            return Some((year, month));
        }
        Some((self.years.at_or_before(year - 1)?, 15 - self.months.leading_zeros()))
    }
}

/// Times of day as three sets. Never empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ClockSet {
    pub(super) seconds: u64,
    pub(super) minutes: u64,
    pub(super) hours: u32,
}

impl ClockSet {
    fn first(&self) -> u32 {
        second_of_day(self.hours.trailing_zeros(), self.minutes.trailing_zeros(), self.seconds.trailing_zeros())
    }

    fn last(&self) -> u32 {
        second_of_day(
            31 - self.hours.leading_zeros(),
            63 - self.minutes.leading_zeros(),
            63 - self.seconds.leading_zeros(),
        )
    }

    fn contains(&self, second: u32) -> bool {
        let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
        self.hours >> hour & 1 == 1 && self.minutes >> minute & 1 == 1 && self.seconds >> second & 1 == 1
    }

    fn at_or_after(&self, second: u32) -> Option<u32> {
        let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
        if self.hours >> hour & 1 == 1 {
            if self.minutes >> minute & 1 == 1
                && let Some(second) = lowest_from(self.seconds, second)
            {
                return Some(second_of_day(hour, minute, second));
            }
            if let Some(minute) = lowest_from(self.minutes, minute + 1) {
                return Some(second_of_day(hour, minute, self.seconds.trailing_zeros()));
            }
        }
        let hour = lowest_from(self.hours.into(), hour + 1)?;
        Some(second_of_day(hour, self.minutes.trailing_zeros(), self.seconds.trailing_zeros()))
    }

    fn at_or_before(&self, second: u32) -> Option<u32> {
        let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
        let last_second = 63 - self.seconds.leading_zeros();
        if self.hours >> hour & 1 == 1 {
            if self.minutes >> minute & 1 == 1
                && let Some(second) = highest_below(self.seconds, second + 1)
            {
                return Some(second_of_day(hour, minute, second));
            }
            if let Some(minute) = highest_below(self.minutes, minute) {
                return Some(second_of_day(hour, minute, last_second));
            }
        }
        let hour = highest_below(self.hours.into(), hour)?;
        Some(second_of_day(hour, 63 - self.minutes.leading_zeros(), last_second))
    }
}

/// The year field: any year, or a set of them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct Years(pub(super) Option<Box<YearSet>>);

/// Years as bits, the first for [`FIRST_YEAR`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct YearSet {
    bits: [u64; YEAR_WORDS],
}

const YEAR_WORDS: usize = (LAST_YEAR - FIRST_YEAR) as usize / 64 + 1;

impl YearSet {
    /// A set of years that a year field can name.
    pub(super) fn new(years: impl Iterator<Item = i32>) -> YearSet {
        let mut bits = [0; YEAR_WORDS];
        for year in years {
            let bit = (year - FIRST_YEAR) as usize;
            bits[bit / 64] |= 1 << (bit % 64);
        }
        YearSet { bits }
    }

    /// The years, earliest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = i32> {
        (FIRST_YEAR..=LAST_YEAR).filter(|year| self.contains(*year))
    }

    fn contains(&self, year: i32) -> bool {
        let bit = (year - FIRST_YEAR) as usize;
        (FIRST_YEAR..=LAST_YEAR).contains(&year) && self.bits[bit / 64] >> (bit % 64) & 1 == 1
    }

    fn at_or_after(&self, year: i32) -> Option<i32> {
        let bit = (year.max(FIRST_YEAR) - FIRST_YEAR) as usize;
        let mut rest = self.bits.get(bit / 64)? & u64::MAX << (bit % 64);
        let mut word = bit / 64;
        while rest == 0 {
            word += 1;
            rest = *self.bits.get(word)?;
        }
        Some(FIRST_YEAR + word as i32 * 64 + rest.trailing_zeros() as i32)
    }

    fn at_or_before(&self, year: i32) -> Option<i32> {
        let bit = usize::try_from(year.min(LAST_YEAR) - FIRST_YEAR).ok()?;
        let mut rest = self.bits[bit / 64] & u64::MAX >> (63 - bit % 64);
        let mut word = bit / 64;
        while rest == 0 {
            word = word.checked_sub(1)?;
            rest = self.bits[word];
        }
        Some(FIRST_YEAR + word as i32 * 64 + 63 - rest.leading_zeros() as i32)
    }
}

impl Years {
    fn is_any(&self) -> bool {
        self.0.is_none()
    }

    fn contains(&self, year: i32) -> bool {
        self.0.as_ref().is_none_or(|set| set.contains(year))
    }

    fn at_or_after(&self, year: i32) -> Option<i32> {
        self.0.as_ref().map_or(Some(year), |set| set.at_or_after(year))
    }

    fn at_or_before(&self, year: i32) -> Option<i32> {
        self.0.as_ref().map_or(Some(year), |set| set.at_or_before(year))
    }
}

fn second_of_day(hour: u32, minute: u32, second: u32) -> u32 {
    hour * 3_600 + minute * 60 + second
}

/// The lowest set bit at `from` or above.
fn lowest_from(set: u64, from: u32) -> Option<u32> {
    let rest = set & u64::MAX << from;
    (rest != 0).then(|| rest.trailing_zeros())
}

/// The highest set bit below `until`.
fn highest_below(set: u64, until: u32) -> Option<u32> {
    let rest = set & !(u64::MAX << until);
    (rest != 0).then(|| 63 - rest.leading_zeros())
}

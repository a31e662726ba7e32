//! The numbers that one item of a cron field names, written out one by one.
//!
//! Written from the rules alone: it shares no code and no idea with the library's parser.

use std::collections::BTreeSet;

/// What the numbers of a field may be.
#[derive(Clone, Copy)]
pub(crate) struct Domain {
    pub(crate) min: i32,
    pub(crate) max: i32,
    /// The largest number before a wrapping range begins again at `min`. Not `max` where Sunday is both 0 and 7.
    pub(crate) turn: i32,
    /// Names in order, the first of which means `first_name`.
    pub(crate) names: &'static [&'static str],
    pub(crate) first_name: i32,
}

const MONTHS: [&str; 12] = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

impl Domain {
    pub(crate) const SECONDS: Domain = Domain::plain(0, 59);
    pub(crate) const MINUTES: Domain = Domain::plain(0, 59);
    pub(crate) const HOURS: Domain = Domain::plain(0, 23);
    pub(crate) const DAYS: Domain = Domain::plain(1, 31);
    pub(crate) const MONTHS: Domain = Domain { names: &MONTHS, first_name: 1, ..Domain::plain(1, 12) };
    pub(crate) const YEARS: Domain = Domain::plain(1970, 9999);
    pub(crate) const WEEKDAYS: Domain = Domain { min: 0, max: 7, turn: 6, names: &WEEKDAYS, first_name: 0 };
    pub(crate) const QUARTZ_WEEKDAYS: Domain = Domain { min: 1, max: 7, turn: 7, names: &WEEKDAYS, first_name: 1 };

    const fn plain(min: i32, max: i32) -> Domain {
        Domain { min, max, turn: max, names: &[], first_name: 0 }
    }

    /// One number or name.
    pub(crate) fn number(&self, text: &str) -> i32 {
        if let Some(place) = self.names.iter().position(|name| name.eq_ignore_ascii_case(text)) {
            return self.first_name + place as i32;
        }
        let number = text.parse().unwrap_or_else(|_| panic!("the oracle cannot read {text:?}"));
        assert!((self.min..=self.max).contains(&number), "{number} is out of range");
        number
    }

    /// The numbers of `*`, `?`, `7`, `2-5` or `22-2`, each with or without a step.
    pub(crate) fn numbers(&self, item: &str) -> BTreeSet<i32> {
        let (range, step) = match item.split_once('/') {
            Some((range, step)) => (range, Some(step.parse::<usize>().expect("a step"))),
            None => (item, None),
        };
        let sequence = match range.split_once('-') {
            _ if range == "*" || range == "?" => self.sequence(self.min, self.max),
            Some((first, last)) => self.sequence(self.number(first), self.number(last)),
            None if step.is_some() => self.sequence(self.number(range), self.max),
            None => vec![self.number(range)],
        };
        sequence.into_iter().step_by(step.unwrap_or(1)).collect()
    }

    /// From `first` to `last`, past the turn if `last` is the smaller.
    fn sequence(&self, first: i32, last: i32) -> Vec<i32> {
        if first <= last {
            return (first..=last).collect();
        }
        // A range that begins at the other name of `min` (Sunday as 7) does not turn: it begins at `min`.
        let before_turn = first..=self.turn;
        before_turn.chain(self.min..=last).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(domain: Domain, item: &str, expected: &[i32]) {
        assert_eq!(domain.numbers(item).into_iter().collect::<Vec<_>>(), expected, "{item}");
    }

    #[test]
    fn a_step_counts_from_the_first_number() {
        check(Domain::MINUTES, "0/30", &[0, 30]);
        check(Domain::MINUTES, "7/25", &[7, 32, 57]);
        check(Domain::HOURS, "8-10/2", &[8, 10]);
        check(Domain::HOURS, "*/9", &[0, 9, 18]);
        check(Domain::MONTHS, "*/5", &[1, 6, 11]);
    }

    #[test]
    fn a_wrapping_range_goes_on_behind_the_turn() {
        check(Domain::HOURS, "22-2", &[0, 1, 2, 22, 23]);
        check(Domain::HOURS, "21-3/2", &[1, 3, 21, 23]);
        check(Domain::MINUTES, "50-10/7", &[4, 50, 57]);
        check(Domain::DAYS, "29-4/2", &[2, 4, 29, 31]);
        check(Domain::MONTHS, "nov-Feb", &[1, 2, 11, 12]);
    }

    #[test]
    fn sunday_is_one_day_of_the_week_however_it_is_written() {
        check(Domain::WEEKDAYS, "FRI-MON", &[0, 1, 5, 6]);
        check(Domain::WEEKDAYS, "5-2/2", &[0, 2, 5]);
        check(Domain::WEEKDAYS, "1/2", &[1, 3, 5, 7]);
        check(Domain::WEEKDAYS, "*/2", &[0, 2, 4, 6]);
        check(Domain::WEEKDAYS, "7-2/2", &[0, 2]);
        check(Domain::QUARTZ_WEEKDAYS, "6-2", &[1, 2, 6, 7]);
        check(Domain::QUARTZ_WEEKDAYS, "SUN-TUE", &[1, 2, 3]);
        check(Domain::QUARTZ_WEEKDAYS, "*/2", &[1, 3, 5, 7]);
    }
}

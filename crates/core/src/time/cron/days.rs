//! The two day fields of a cron, resolved for one month at a time.

/// Which days of a month match. Bit `d` stands for day `d` (1–31) or weekday `d` (0 is Sunday).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct DaySet {
    /// Plain days of the month.
    pub(super) days: u32,
    /// `L-n`: bit `n` is the n-th day before the last.
    pub(super) from_last: u32,
    /// `nW`: the weekday nearest to day `n`.
    pub(super) nearest: u32,
    /// `L-nW`: the weekday nearest to the n-th day before the last; `LW` is bit 0.
    pub(super) nearest_from_last: u32,
    /// Plain days of the week.
    pub(super) weekdays: u8,
    /// `d#n`: `nth[n - 1]` has the weekdays whose n-th occurrence matches.
    pub(super) nth: [u8; 5],
    /// `dL`: weekdays whose last occurrence matches.
    pub(super) last: u8,
    /// Whether one matching field is enough (Vixie), instead of both.
    pub(super) either: bool,
}

pub(super) const ALL_DAYS: u32 = 0xffff_fffe;
pub(super) const ALL_WEEKDAYS: u8 = 0x7f;

impl DaySet {
    /// The matching days of a month of `length` days whose first is a `first_weekday`.
    pub(super) fn matching(&self, first_weekday: u32, length: u32) -> u32 {
        let of_month = self.by_day_of_month(first_weekday, length);
        let of_week = self.by_day_of_week(first_weekday, length);
        let combined = if self.either { of_month | of_week } else { of_month & of_week };
        combined & (u32::MAX >> (31 - length))
    }

    /// Whether the day-of-month field holds only plain days, and all of them.
    pub(super) fn any_day_of_month(&self) -> bool {
        self.days == ALL_DAYS
    }

    /// Whether the day-of-week field holds all days.
    pub(super) fn any_day_of_week(&self) -> bool {
        self.weekdays == ALL_WEEKDAYS
    }

    fn by_day_of_month(&self, first_weekday: u32, length: u32) -> u32 {
        let mut matching = self.days;
        for offset in bits(self.from_last) {
            if offset < length {
                matching |= 1 << (length - offset);
            }
        }
        for day in bits(self.nearest) {
            if day <= length {
                matching |= 1 << nearest_weekday(day, first_weekday, length);
            }
        }
        for offset in bits(self.nearest_from_last) {
            if offset < length {
                matching |= 1 << nearest_weekday(length - offset, first_weekday, length);
            }
        }
        matching
    }

    fn by_day_of_week(&self, first_weekday: u32, length: u32) -> u32 {
        // Seven bits, one a day from the 1st on, then as often as a month has weeks.
        let week = week_from(self.weekdays, first_weekday);
        let mut matching = (u64::from(week) * 0x1020_4081) << 1;
        for (weeks, weekdays) in (0..).zip(self.nth) {
            matching |= u64::from(week_from(weekdays, first_weekday)) << (1 + 7 * weeks);
        }
        if self.last != 0 {
            matching |= u64::from(week_from(self.last, (first_weekday + length) % 7)) << (length - 6);
        }
        matching as u32
    }
}

/// The weekdays as days of a week that starts with `first_weekday`: bit 0 is that day.
fn week_from(weekdays: u8, first_weekday: u32) -> u8 {
    let twice = u32::from(weekdays) << 7 | u32::from(weekdays);
    (twice >> first_weekday) as u8 & ALL_WEEKDAYS
}

/// Monday to Friday nearest to `day`, never leaving the month.
fn nearest_weekday(day: u32, first_weekday: u32, length: u32) -> u32 {
    match (first_weekday + day - 1) % 7 {
        6 if day == 1 => 3,
        6 => day - 1,
        0 if day == length => day - 2,
        0 => day + 1,
        _ => day,
    }
}

/// The positions of the set bits, lowest first.
pub(super) fn bits(set: u32) -> impl Iterator<Item = u32> {
    let mut rest = set;
    std::iter::from_fn(move || {
        (rest != 0).then(|| {
            let lowest = rest.trailing_zeros();
            rest &= rest - 1;
            lowest
        })
    })
}

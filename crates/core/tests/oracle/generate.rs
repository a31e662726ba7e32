//! Random patterns over the whole grammar, built from parts so that a failure shrinks to the parts that matter.

use jiff::civil::{Date, DateTime};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use punctual_core::schedule::DstPolicy;
use punctual_core::time::Dialect;

use super::numbers::Domain;
use super::pattern::{CronText, POLICIES, Pattern};

/// A pattern, and where and how to look at it.
#[derive(Debug, Clone)]
pub(crate) struct Scene {
    pub(crate) pattern: Pattern,
    pub(crate) policy: DstPolicy,
    /// Which zone.
    pub(crate) zone: Index,
    /// Which of its changes is in the middle of the window.
    pub(crate) instant: Index,
    /// So many days off.
    pub(crate) days_off: i64,
    /// Whether the pattern is made to match on the day of the change only, so that nothing is before or behind it.
    pub(crate) is_only_once: bool,
    /// Whether the pattern is made to match in one hour only, so many before the one that the change leads to.
    pub(crate) hours_before: Option<i8>,
    /// Where in the window to begin and to end, in thousandths of it.
    pub(crate) ends: [u16; 2],
    /// A part of a second by which both ends are late.
    pub(crate) nanoseconds: i64,
}

impl Scene {
    /// The pattern, drawn to the local time at which the clock changes as far as the scene asks for it.
    pub(crate) fn pattern_at(&self, change: DateTime) -> Pattern {
        let Pattern::Crons(crons) = &self.pattern else { return self.pattern.clone() };
        let mut crons = crons.clone();
        for cron in &mut crons {
            if let Some(hours) = self.hours_before {
                cron.pin_hour((change.hour() + 24 - hours) % 24);
            }
            if self.is_only_once {
                cron.pin_date(change.date());
            }
        }
        Pattern::Crons(crons)
    }
}

impl CronText {
    fn pin_hour(&mut self, hour: i8) {
        let mut fields: Vec<String> = self.text.split(' ').map(str::to_owned).collect();
        let place = if fields.len() == 5 { 1 } else { 2 };
        fields[place] = hour.to_string();
        self.text = fields.join(" ");
    }

    fn pin_date(&mut self, date: Date) {
        let fields: Vec<&str> = self.text.split(' ').collect();
        let time = if fields.len() == 5 { format!("0 {}", fields[..2].join(" ")) } else { fields[..3].join(" ") };
        self.text = format!("{time} {} {} ? {}", date.day(), date.month(), date.year());
    }
}

pub(crate) fn scene() -> impl Strategy<Value = Scene> {
    let days_off = prop_oneof![4 => Just(0i64), 1 => 0..180i64];
    let nanoseconds = select(vec![0i64, 1, 500_000_000, 999_999_999]);
    let place = (any::<Index>(), any::<Index>(), days_off);
    let ends = [prop_oneof![Just(0u16), 0..600u16], prop_oneof![Just(1000u16), 400..1000u16]];
    let pattern = (pattern(), prop::bool::weighted(0.2), prop::option::weighted(0.6, select(vec![1i8, 1, 0, 2])));
    (pattern, select(&POLICIES[..]), place, ends, nanoseconds).prop_map(
        |((pattern, is_only_once, hours_before), policy, (zone, instant, days_off), ends, nanoseconds)| Scene {
            pattern,
            is_only_once,
            hours_before,
            policy,
            zone,
            instant,
            days_off,
            ends,
            nanoseconds,
        },
    )
}

fn pattern() -> impl Strategy<Value = Pattern> {
    prop_oneof![
        6 => cron().prop_map(|cron| Pattern::Crons(vec![CronText { zone: None, ..cron }])),
        3 => prop::collection::vec(cron(), 1..=3).prop_map(Pattern::Crons),
        1 => times().prop_map(Pattern::Times),
    ]
}

fn times() -> impl Strategy<Value = Vec<String>> {
    let time =
        (hour(), minute(), prop_oneof![3 => Just(0), 1 => 0..60u32]).prop_map(|(hour, minute, second)| match second {
            0 => format!("{hour:02}:{minute:02}"),
            second => format!("{hour:02}:{minute:02}:{second:02}"),
        });
    prop::collection::btree_set(time, 1..=4).prop_map(|times| times.into_iter().rev().collect())
}

/// An hour, more often one in which clocks are changed.
fn hour() -> impl Strategy<Value = u32> {
    prop_oneof![4 => 0..4u32, 1 => 22..24u32, 1 => 0..24u32]
}

/// A minute, more often one at which clocks are changed.
fn minute() -> impl Strategy<Value = u32> {
    prop_oneof![3 => select(vec![0u32, 15, 30, 45]), 1 => 0..60u32]
}

/// Zones of single crons; some jump at the same instant.
const ZONES: [&str; 5] = ["America/New_York", "Europe/London", "Europe/Paris", "Asia/Kolkata", "Australia/Lord_Howe"];

fn cron() -> impl Strategy<Value = CronText> {
    let dialect = select(vec![None, Some(Dialect::Unix), Some(Dialect::Spring), Some(Dialect::Quartz)]);
    let zone = prop_oneof![2 => Just(None), 1 => select(&ZONES[..]).prop_map(Some)];
    let clock = (time_field(Domain::MINUTES, minute()), time_field(Domain::HOURS, hour()));
    let calendar = (day_field(), any_or(numbers(Domain::MONTHS)), weekday_field());
    let ends = prop_oneof![
        3 => Just(None),
        2 => (second_field(), Just(None)).prop_map(Some),
        1 => (second_field(), any_or(year_items()).prop_map(Some)).prop_map(Some),
    ];
    (dialect, zone, clock, calendar, ends).prop_map(|(dialect, zone, clock, calendar, ends)| {
        let (minute, hour) = clock;
        let (day, month, weekday) = calendar;
        let is_quartz = dialect == Some(Dialect::Quartz);
        // Quartz has no day 0; the other dialects call the same day 7.
        let weekday = if is_quartz { weekday.replace('0', "7") } else { weekday };
        let five = format!("{minute} {hour} {day} {month} {weekday}");
        let text = match ends {
            None => five,
            Some((second, None)) => format!("{second} {five}"),
            Some((second, Some(year))) => format!("{second} {five} {year}"),
        };
        CronText { text, dialect, zone: zone.map(str::to_owned) }
    })
}

fn second_field() -> impl Strategy<Value = String> {
    prop_oneof![2 => Just("0".to_owned()), 1 => time_field(Domain::SECONDS, 0..60u32)]
}

/// Plain numbers, which make times of day, more often than rhythms.
fn time_field(domain: Domain, number: impl Strategy<Value = u32>) -> impl Strategy<Value = String> {
    prop_oneof![
        5 => list(number.prop_map(|number| number.to_string())),
        1 => list(numbers(domain)),
        1 => Just("*".to_owned()),
    ]
}

fn day_field() -> impl Strategy<Value = String> {
    let special = prop_oneof![
        select(vec!["L", "LW", "l"]).prop_map(str::to_owned),
        (0..=30).prop_map(|before| format!("L-{before}")),
        (1..=31).prop_map(|day| format!("{day}W")),
        (0..=30).prop_map(|before| format!("L-{before}W")),
    ];
    any_day_or(prop_oneof![2 => numbers(Domain::DAYS), 1 => special])
}

fn weekday_field() -> impl Strategy<Value = String> {
    let number = || number(Domain::WEEKDAYS);
    let special = prop_oneof![
        number().prop_map(|weekday| format!("{weekday}L")),
        (number(), 1..=5).prop_map(|(weekday, nth)| format!("{weekday}#{nth}")),
    ];
    any_day_or(prop_oneof![2 => numbers(Domain::WEEKDAYS), 1 => special])
}

fn year_items() -> impl Strategy<Value = String> {
    let year = || 2000..=2037i32;
    prop_oneof![
        year().prop_map(|year| year.to_string()),
        (year(), 0..30).prop_map(|(year, more)| format!("{year}-{}", year + more)),
        (year(), 0..30, 1..9).prop_map(|(year, more, n)| format!("{year}-{}/{n}", year + more)),
        (year(), 1..9).prop_map(|(year, n)| format!("{year}/{n}")),
        (1..9).prop_map(|n| format!("*/{n}")),
    ]
}

/// `*` more often than a list, so that enough days match.
fn any_or(item: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    prop_oneof![3 => Just("*".to_owned()), 1 => list(item)]
}

fn any_day_or(item: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    prop_oneof![4 => any_or(item), 1 => Just("?".to_owned())]
}

fn list(item: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    prop::collection::vec(item, 1..=3).prop_map(|items| items.join(","))
}

/// A number of the domain, or its name.
fn number(domain: Domain) -> impl Strategy<Value = String> {
    (domain.min..=domain.max, 0..6u8).prop_map(move |(number, style)| {
        let place = (number - domain.first_name) as usize;
        match (domain.names.get(place), style) {
            (Some(name), 4) => (*name).to_owned(),
            (Some(name), 5) => name.to_ascii_lowercase(),
            _ => number.to_string(),
        }
    })
}

/// A number, range or step; ranges may wrap.
fn numbers(domain: Domain) -> impl Strategy<Value = String> {
    let number = move || number(domain);
    let step = move || 1..=(domain.max - domain.min);
    prop_oneof![
        3 => number(),
        2 => (number(), number()).prop_map(|(first, last)| format!("{first}-{last}")),
        1 => (number(), number(), step()).prop_map(|(first, last, n)| format!("{first}-{last}/{n}")),
        1 => (number(), step()).prop_map(|(first, n)| format!("{first}/{n}")),
        1 => step().prop_map(|n| format!("*/{n}")),
    ]
}

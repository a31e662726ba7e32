//! The fields of a schedule as flags: `add` gives some, `edit` changes some.

use clap::Args;
use clap::builder::PossibleValuesParser;
use jiff::{SignedDuration, Timestamp};
use punctual_core::time::Zones;
use serde_json::{Map, Value, json};

use crate::client::Failure;
use crate::moment::{Moment, Side};
use crate::times::{Wall, ZoneArgs};

/// The fields of the API, and the options that give them.
pub(super) const OPTIONS: [(&str, &str); 31] = [
    ("agentId", "--agent"),
    ("name", "--name"),
    ("cronExpr", "--cron"),
    ("timesOfDay", "--times"),
    ("intervalMinutes", "--every"),
    ("runAt", "--at"),
    ("dialect", "--dialect"),
    ("timezone", "--zone"),
    ("prompt", "--prompt"),
    ("inputs", "--inputs"),
    ("projectId", "--project"),
    ("overlap", "--overlap"),
    ("catchUp", "--catch-up"),
    ("catchUpMax", "--catch-up-max"),
    ("catchUpWindow", "--catch-up-window"),
    ("maxDelay", "--max-delay"),
    ("jitter", "--jitter"),
    ("startAt", "--start"),
    ("endAt", "--end"),
    ("maxRuns", "--max-runs"),
    ("calendar", "--calendar"),
    ("dstGap", "--dst-gap"),
    ("dstRepeat", "--dst-repeat"),
    ("enabled", "--enabled"),
    ("priority", "--priority"),
    ("maxAttempts", "--max-attempts"),
    ("retryBackoffMs", "--retry-delay"),
    ("retryDelay", "--retry-delay"),
    ("maxConcurrent", "--max-concurrent"),
    ("riskGate", "--risk-gate"),
    ("scheduleType", "--cron, --times, --every, --at or --now"),
];

/// What a schedule is made of.
#[derive(Debug, Default, Args)]
pub(super) struct FieldArgs {
    /// Its name, once in its project; an agent may have one schedule without a name in each
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    #[command(flatten)]
    when: WhenArgs,

    /// How the cron's day fields are read [default: unix for 5 fields, spring for 6 and 7]
    #[arg(long, value_name = "DIALECT", value_parser = PossibleValuesParser::new(["unix", "spring", "quartz"]))]
    dialect: Option<String>,

    /// The zone of its times, like Europe/Paris [default: default_timezone]
    #[arg(long, value_name = "ZONE")]
    zone: Option<String>,

    /// What the agent is asked to do
    #[arg(long, value_name = "TEXT")]
    prompt: Option<String>,

    /// What the agent is given: a JSON object
    #[arg(long, value_name = "JSON", value_parser = object)]
    inputs: Option<Map<String, Value>>,

    /// The project that it belongs to
    #[arg(long, value_name = "PROJECT")]
    project: Option<String>,

    /// What happens when a run is due while another is at work [default: queue]
    #[arg(long, value_name = "POLICY", value_parser = PossibleValuesParser::new(["allow", "skip", "queue", "replace"]))]
    overlap: Option<String>,

    /// Which slots that an outage missed are run [default: latest]
    #[arg(long, value_name = "POLICY", value_parser = PossibleValuesParser::new(["latest", "first", "all", "none"]))]
    catch_up: Option<String>,

    /// With --catch-up all: at most so many
    #[arg(long, value_name = "N")]
    catch_up_max: Option<u32>,

    /// Only missed slots that are not older, like 6h
    #[arg(long, value_name = "DURATION")]
    catch_up_window: Option<String>,

    /// How late a run may start: day, none or a duration [default: day]
    #[arg(long, value_name = "DELAY")]
    max_delay: Option<String>,

    /// Each run is due up to so much later, like 5m
    #[arg(long, value_name = "DURATION")]
    jitter: Option<String>,

    /// No slot before this time, like 2026-12-01, "2026-12-01 09:00" or 3d; by the clock of --zone, else of this terminal
    #[arg(long, value_name = "TIME")]
    start: Option<Moment>,

    /// No slot after this time
    #[arg(long, value_name = "TIME")]
    end: Option<Moment>,

    /// How many runs may start
    #[arg(long, value_name = "N")]
    max_runs: Option<u64>,

    /// A calendar of the configuration: slots outside are skipped
    #[arg(long, value_name = "NAME")]
    calendar: Option<String>,

    /// A time of day that the clock jumps over runs after the gap, or is skipped [default: after]
    #[arg(long, value_name = "POLICY", alias = "gap", value_parser = PossibleValuesParser::new(["after", "skip"]))]
    dst_gap: Option<String>,

    /// A time of day that the clock shows twice runs once, or both times [default: once]
    #[arg(long, value_name = "POLICY", alias = "repeat", value_parser = PossibleValuesParser::new(["once", "both"]))]
    dst_repeat: Option<String>,

    /// How urgent its runs are: 1 to 10 [default: 5]
    #[arg(long, value_name = "N")]
    priority: Option<u8>,

    /// Tries in all [default: 3]
    #[arg(long, value_name = "N")]
    max_attempts: Option<u32>,

    /// The rest between two tries, like 1m [default: 1m]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    retry_delay: Option<SignedDuration>,

    /// How many runs of its agent may be at work when one of its own starts [default: 1]
    #[arg(long, value_name = "N")]
    max_concurrent: Option<u32>,

    /// A person approves each run of an agent that may write or execute
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    risk_gate: Option<bool>,

    /// Whether it produces runs [default: true]
    #[arg(long, value_name = "BOOL")]
    enabled: Option<bool>,
}

/// When it fires: one of these.
#[derive(Debug, Default, Args)]
#[group(multiple = false)]
struct WhenArgs {
    /// A cron expression of 5, 6 (seconds first) or 7 fields, or a macro like @daily
    #[arg(long, value_name = "EXPRESSION")]
    cron: Option<String>,

    /// The same times every day, like 09:00,17:00
    #[arg(long, value_name = "TIMES", alias = "time", value_delimiter = ',', value_parser = trimmed)]
    times: Vec<String>,

    /// Again and again, like 30m or 6h: whole minutes of elapsed time
    #[arg(long, value_name = "DURATION", value_parser = minutes)]
    every: Option<u32>,

    /// Once: 2026-12-24 18:00:00, 18:00 (the next one), in 10m; by the clock of --zone, else of this terminal
    #[arg(long, value_name = "TIME")]
    at: Option<Moment>,

    /// Once, at once
    #[arg(long, alias = "immediate")]
    now: bool,
}

impl WhenArgs {
    fn is_empty(&self) -> bool {
        self.cron.is_none() && self.times.is_empty() && self.every.is_none() && self.at.is_none() && !self.now
    }

    fn fields(&self, zone: Option<&str>) -> Result<Map<String, Value>, Failure> {
        let fields = if let Some(cron) = &self.cron {
            json!({ "scheduleType": "CRON", "cronExpr": cron })
        } else if !self.times.is_empty() {
            json!({ "scheduleType": "FIXED_TIMES", "timesOfDay": self.times })
        } else if let Some(minutes) = self.every {
            json!({ "scheduleType": "INTERVAL", "intervalMinutes": minutes })
        } else if let Some(at) = &self.at {
            json!({ "scheduleType": "AT", "runAt": once(at, zone)? })
        } else if self.now {
            json!({ "scheduleType": "IMMEDIATE" })
        } else {
            json!({})
        };
        Ok(match fields {
            Value::Object(fields) => fields,
            _ => Map::new(),
        })
    }
}

/// The clock that times are by: that of the schedule's zone if it is given, else that of this terminal.
fn wall(zone: Option<&str>) -> Result<Wall, Failure> {
    let wall = ZoneArgs::default_wall().map_err(|error| Failure::input(error.to_string()))?;
    let Some(name) = zone else { return Ok(wall) };
    let zone = Zones::bundled().get(name).map_err(|error| Failure::input(format!("--zone: {error}")))?;
    Ok(Wall { zone, ..wall })
}

/// A local time of a zone that is given stays one: the schedule has its own clock. Everything else is an instant.
fn once(at: &Moment, zone: Option<&str>) -> Result<String, Failure> {
    match (at, zone) {
        (Moment::Local(local, None), Some(_)) => Ok(local.to_string()),
        _ => instant("--at", at, zone).map(|at| at.to_string()),
    }
}

fn instant(option: &str, at: &Moment, zone: Option<&str>) -> Result<Timestamp, Failure> {
    at.instant(&wall(zone)?, Side::Future).map_err(|problem| Failure::input(format!("{option}: {problem}")))
}

impl FieldArgs {
    /// The body of a request that has what was given, and nothing else.
    pub(super) fn body(&self, agent: Option<&str>) -> Result<Map<String, Value>, Failure> {
        let zone = self.zone.as_deref();
        let mut body = self.when.fields(zone)?;
        let start = self.start.as_ref().map(|at| instant("--start", at, zone)).transpose()?;
        let end = self.end.as_ref().map(|at| instant("--end", at, zone)).transpose()?;
        body.extend(given([
            ("agentId", json!(agent)),
            ("name", json!(self.name)),
            ("dialect", json!(self.dialect)),
            ("timezone", json!(self.zone)),
            ("prompt", json!(self.prompt)),
            ("inputs", json!(self.inputs)),
            ("projectId", json!(self.project)),
            ("overlap", json!(self.overlap)),
            ("catchUp", json!(self.catch_up)),
            ("catchUpMax", json!(self.catch_up_max)),
            ("catchUpWindow", json!(self.catch_up_window)),
            ("maxDelay", json!(self.max_delay)),
            ("jitter", json!(self.jitter)),
            ("startAt", json!(start)),
            ("endAt", json!(end)),
            ("maxRuns", json!(self.max_runs)),
            ("calendar", json!(self.calendar)),
            ("dstGap", json!(self.dst_gap)),
            ("dstRepeat", json!(self.dst_repeat)),
            ("enabled", json!(self.enabled)),
        ]));
        let policy: Map<String, Value> = given([
            ("priority", json!(self.priority)),
            ("maxAttempts", json!(self.max_attempts)),
            ("retryBackoffMs", json!(self.retry_delay.map(|delay| delay.as_millis() as u64))),
            ("maxConcurrent", json!(self.max_concurrent)),
            ("riskGate", json!(self.risk_gate)),
        ])
        .collect();
        if !policy.is_empty() {
            body.insert("executorPolicy".to_owned(), policy.into());
        }
        Ok(body)
    }

    /// Says how to say when, to whoever has not.
    pub(super) fn must_say_when(&self) -> Result<(), Failure> {
        if self.when.is_empty() {
            let text = "when? use one of --cron \"0 9 * * MON-FRI\", --times 09:00,17:00, --every 30m, --at 2026-12-24T18:00:00 or --now";
            return Err(Failure::input(text));
        }
        Ok(())
    }
}

fn given<const N: usize>(fields: [(&str, Value); N]) -> impl Iterator<Item = (String, Value)> {
    fields.map(|(name, value)| (name.to_owned(), value)).into_iter().filter(|(_, value)| !value.is_null())
}

fn trimmed(text: &str) -> Result<String, String> {
    Ok(text.trim().to_owned())
}

pub(crate) fn object(text: &str) -> Result<Map<String, Value>, String> {
    serde_json::from_str(text).map_err(|error| format!("{error}; use a JSON object, like {{\"depth\": 2}}"))
}

fn duration(text: &str) -> Result<SignedDuration, String> {
    let read = text.parse::<SignedDuration>().ok().filter(|it| !it.is_negative());
    read.ok_or_else(|| "use a duration, like 90s, 30m or 6h".to_owned())
}

fn minutes(text: &str) -> Result<u32, String> {
    let seconds = duration(text)?.as_secs();
    if seconds % 60 != 0 || seconds == 0 {
        return Err("use whole minutes, like 30m or 6h".to_owned());
    }
    u32::try_from(seconds / 60).map_err(|_| "that is too long".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_whole_minutes() {
        for (text, expected) in
            [("30m", Some(30)), ("6h", Some(360)), ("1h 30m", Some(90)), ("90s", None), ("0m", None)]
        {
            assert_eq!(minutes(text).ok(), expected, "{text}");
        }
        assert!(minutes("soon").unwrap_err().contains("use a duration"));
    }

    #[test]
    fn only_what_is_given_is_asked_for() {
        let args = FieldArgs { priority: Some(7), prompt: Some("Go".to_owned()), ..FieldArgs::default() };
        assert_eq!(
            Value::from(args.body(None).unwrap()),
            json!({ "prompt": "Go", "executorPolicy": { "priority": 7 } })
        );
    }
}

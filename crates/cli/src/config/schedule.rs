//! Schedules kept in the file.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use punctual_core::Elapsed;
use punctual_core::run::RetryPolicy;
use punctual_core::schedule::{
    Bounds, CatchUp, Concurrency, DstPolicy, InputType, InputsPolicy, MaxDelay, Policy, Priority, Work,
};
use punctual_core::time::{Calendar, Zone, Zones};
use serde_json::{Map, Value as Json, json};

use super::agent::{Agent, read_cap};
use super::keys::SCHEDULE;
use super::section::Section;
use super::trigger::{FileTrigger, Gate, read_instant, read_zone};
use super::value::{Value, short};
use super::words::Word;

/// A schedule as the file says it: everything but what only the store knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileSchedule {
    /// Its name, once in its project.
    pub(crate) name: String,
    /// The project that it belongs to.
    pub(crate) project: Option<String>,
    /// What is to be done.
    pub(crate) work: Work,
    /// What makes it fire.
    pub(crate) trigger: FileTrigger,
    /// Its zone.
    pub(crate) zone: Zone,
    /// The calendar outside of which its slots are skipped.
    pub(crate) calendar: Option<String>,
    /// From when, until when, how often.
    pub(crate) bounds: Bounds,
    /// Each run is due up to so much later.
    pub(crate) jitter: Elapsed,
    /// How it behaves where time, load or failure leave a choice.
    pub(crate) policy: Policy,
    /// Whether it produces runs.
    pub(crate) enabled: bool,
}

/// What the rest of the file says that a schedule refers to. What was refused is there as `None`.
pub(super) struct Known<'a> {
    pub(super) zones: &'a Zones,
    pub(super) default_zone: &'a Zone,
    pub(super) agents: &'a BTreeMap<String, Option<Agent>>,
    pub(super) calendars: &'a BTreeMap<String, Option<Calendar>>,
}

impl FileSchedule {
    /// Reads a schedule; `None` if something that it cannot do without is missing or wrong.
    pub(super) fn read(value: &Value<'_>, known: &Known<'_>) -> Option<FileSchedule> {
        let section = value.section(&SCHEDULE)?;
        let name = section.require("name", "\"morning-report\"").and_then(Value::name);
        let agent_name =
            section.require("agent", "\"reporter\"").and_then(|value| read_known("agent", value, known.agents));
        let agent = agent_name.and_then(|name| known.agents.get(name)?.as_ref());
        let calendar_name = section.get("calendar").and_then(|value| read_known("calendar", value, known.calendars));
        let own_zone =
            section.get("timezone").and_then(|value| value.text().and_then(|name| read_zone(value, name, known.zones)));
        let zone = own_zone.unwrap_or_else(|| known.default_zone.clone());
        let bounds = read_bounds(&section, &zone);
        let policy = read_policy(&section, agent);
        let work = Work::Agent {
            agent: agent_name.unwrap_or_default().into(),
            prompt: section.get("prompt").and_then(Value::text).unwrap_or_default().into(),
            inputs: section.get("inputs").and_then(read_inputs).unwrap_or_default(),
            inputs_policy: read_inputs_policy(&section).into(),
        };
        let trigger = FileTrigger::read(&section, &zone, known.zones);
        if let Some(trigger) = &trigger {
            let calendar = calendar_name.and_then(|name| known.calendars.get(name)?.as_ref());
            trigger.refuse_never(&section, &zone, &Gate { dst: policy.dst, bounds, calendar }, known.zones);
        }
        let project = section.get("project").and_then(Value::name).map(str::to_owned);
        let jitter = section.get("jitter").and_then(Value::duration).unwrap_or_default();
        let enabled = section.get("enabled").and_then(Value::boolean).unwrap_or(true);
        Some(FileSchedule {
            name: name?.to_owned(),
            project,
            work,
            trigger: trigger?,
            zone,
            calendar: calendar_name.map(str::to_owned),
            bounds,
            jitter,
            policy,
            enabled,
        })
    }

    /// Every key of the schedule and its value.
    pub(super) fn settings(&self) -> Map<String, Json> {
        let reads = self.work.inputs_policy().cloned().unwrap_or_default();
        let Policy { dst, catch_up, overlap, max_delay, retry, after_loss, timeout, priority, .. } = &self.policy;
        let Policy { max_concurrent, concurrency, risk_gate, .. } = &self.policy;
        let settings = json!({
            "name": self.name,
            "project": self.project,
            "agent": self.work.agent(),
            "prompt": self.work.prompt(),
            "inputs": self.work.inputs(),
            "input_type": reads.input_type.word(),
            "window_minutes": reads.window_minutes,
            "thread_filter": reads.thread_filter,
            "timezone": self.zone.name(),
            "calendar": self.calendar,
            "start_at": self.bounds.start_at(),
            "end_at": self.bounds.end_at(),
            "max_runs": self.bounds.max_runs(),
            "jitter": self.jitter,
            "overlap": overlap.word(),
            "catch_up": catch_up.mode.word(),
            "catch_up_max": catch_up.max,
            "catch_up_window": catch_up.window,
            "max_delay": match max_delay {
                MaxDelay::Day => "day".to_owned(),
                MaxDelay::None => "none".to_owned(),
                MaxDelay::Duration(delay) => delay.to_string(),
            },
            "dst_gap": dst.gap.word(),
            "dst_repeat": dst.repeat.word(),
            "max_attempts": retry.max_attempts,
            "backoff": retry.backoff.word(),
            "retry_delay": retry.delay,
            "retry_delay_max": retry.delay_max,
            "retry_jitter": retry.jitter,
            "after_loss": after_loss.word(),
            "timeout": timeout,
            "priority": priority.get(),
            "max_concurrent": max_concurrent,
            "concurrency_key": concurrency.as_ref().map(|concurrency| &concurrency.key),
            "concurrency_max": concurrency.as_ref().map(|concurrency| concurrency.max),
            "risk_gate": risk_gate,
            "enabled": self.enabled,
        });
        let mut settings = super::print::object(settings);
        settings.extend(self.trigger.settings());
        settings
    }
}

/// Reads the name of something that must be defined elsewhere in the file.
pub(super) fn read_known<'a, T>(what: &str, value: &Value<'a>, known: &BTreeMap<String, T>) -> Option<&'a str> {
    let name = value.text()?;
    if known.contains_key(name) {
        return Some(name);
    }
    let problem = format!("there is no {what} {} in this file", short(name));
    if known.is_empty() {
        value.refuse(problem, format!("define it under [{what}s.NAME]"));
    } else {
        value.refuse_name(name, problem, known.keys().map(String::as_str));
    }
    None
}

fn read_inputs(value: &Value<'_>) -> Option<Map<String, Json>> {
    // Its shape is told in its own words, before JSON's.
    value.named()?;
    match value.json()? {
        Json::Object(inputs) => Some(inputs),
        _ => None,
    }
}

fn read_bounds(section: &Section<'_>, zone: &Zone) -> Bounds {
    let instant = |key| section.get(key).and_then(|value| read_instant(value, zone));
    let max_runs = section.get("max_runs").and_then(|value| value.integer(1..=u64::MAX));
    let bounds = Bounds::new(instant("start_at"), instant("end_at"), max_runs);
    bounds.unwrap_or_else(|error| {
        section.get("end_at").expect("an end is before a start").refuse(error.problem, error.fix);
        Bounds::default()
    })
}

fn read_policy(section: &Section<'_>, agent: Option<&Agent>) -> Policy {
    let default = Policy::default();
    let duration = |key, default| section.get(key).and_then(Value::duration).unwrap_or(default);
    let agent_timeout = agent.map_or(default.timeout, |agent| agent.timeout);
    let agent_cap = agent.and_then(|agent| agent.max_concurrent).unwrap_or(default.max_concurrent);
    let retry = RetryPolicy {
        max_attempts: section
            .get("max_attempts")
            .and_then(|value| value.integer(1..=1_000)?.try_into().ok())
            .and_then(NonZeroU32::new)
            .unwrap_or(default.retry.max_attempts),
        backoff: section.get("backoff").and_then(Value::word).unwrap_or(default.retry.backoff),
        delay: duration("retry_delay", default.retry.delay),
        delay_max: duration("retry_delay_max", default.retry.delay_max),
        jitter: duration("retry_jitter", default.retry.jitter),
    };
    if retry.delay_max < retry.delay
        && let Some(value) = section.get("retry_delay").or_else(|| section.get("retry_delay_max"))
    {
        let problem = format!("retry_delay, {}, is longer than retry_delay_max, {}", retry.delay, retry.delay_max);
        value.refuse(problem, "raise retry_delay_max, or lower retry_delay");
    }
    Policy {
        dst: DstPolicy {
            gap: section.get("dst_gap").and_then(Value::word).unwrap_or_default(),
            repeat: section.get("dst_repeat").and_then(Value::word).unwrap_or_default(),
        },
        catch_up: CatchUp {
            mode: section.get("catch_up").and_then(Value::word).unwrap_or(default.catch_up.mode),
            max: section
                .get("catch_up_max")
                .and_then(|value| value.integer(1..=10_000)?.try_into().ok())
                .unwrap_or(default.catch_up.max),
            window: section.get("catch_up_window").and_then(Value::some_duration),
            ..default.catch_up
        },
        overlap: section.get("overlap").and_then(Value::word).unwrap_or_default(),
        max_delay: section.get("max_delay").and_then(read_max_delay).unwrap_or_default(),
        retry,
        after_loss: section.get("after_loss").and_then(Value::word).unwrap_or_default(),
        timeout: section.get("timeout").and_then(Value::some_duration).unwrap_or(agent_timeout),
        priority: section
            .get("priority")
            .and_then(|value| value.integer(1..=10)?.try_into().ok())
            .and_then(|priority| Priority::new(priority).ok())
            .unwrap_or_default(),
        max_concurrent: section.get("max_concurrent").and_then(read_cap).unwrap_or(agent_cap),
        concurrency: read_concurrency(section),
        risk_gate: section.get("risk_gate").and_then(Value::boolean).unwrap_or(false),
    }
}

/// Which window the agent is told to read; none unless the schedule says something of it.
fn read_inputs_policy(section: &Section<'_>) -> Option<InputsPolicy> {
    let input_type = section.get("input_type").and_then(Value::word);
    let window = section.get("window_minutes");
    let thread_filter = section.get("thread_filter").and_then(Value::text).map(str::to_owned);
    if let Some(window) = window.filter(|_| input_type != Some(InputType::LatestIntakeWindow)) {
        window
            .refuse("window_minutes is for a window of the latest intake", "set input_type = \"latest_intake_window\"");
    }
    let window_minutes = window.and_then(|value| value.integer(1..=525_600)?.try_into().ok());
    let policy = InputsPolicy { input_type: input_type.unwrap_or_default(), window_minutes, thread_filter };
    Some(policy).filter(|policy| *policy != InputsPolicy::default())
}

fn read_concurrency(section: &Section<'_>) -> Option<Concurrency> {
    let max = section.get("concurrency_max").map(|value| (value, read_cap(value)));
    match (section.get("concurrency_key"), max) {
        (Some(key), max) => {
            let max = max.and_then(|(_, max)| max).unwrap_or(NonZeroU32::MIN);
            Some(Concurrency { key: key.text()?.to_owned(), max })
        }
        (None, Some((value, _))) => {
            value.refuse("concurrency_max has no key to count by", "set concurrency_key too");
            None
        }
        (None, None) => None,
    }
}

fn read_max_delay(value: &Value<'_>) -> Option<MaxDelay> {
    match value.text()? {
        "day" => Some(MaxDelay::Day),
        "none" => Some(MaxDelay::None),
        text if text.starts_with(|first: char| first.is_ascii_digit() || "Pp".contains(first)) => {
            value.duration().map(MaxDelay::Duration)
        }
        text => {
            value.refuse(format!("{} is no delay", short(text)), "use \"day\", \"none\" or a duration like \"2h\"");
            None
        }
    }
}

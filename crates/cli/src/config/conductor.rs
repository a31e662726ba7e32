//! What the operator says about workflows: who starts them, and how the schedules of Conductor's API behave.

use std::collections::BTreeMap;
use std::path::Path;

use punctual_agents::process::SecretSource;
use punctual_core::Elapsed;
use punctual_core::schedule::CatchUp;
use punctual_core::time::{Zone, Zones};
use punctual_store::Keep;
use serde_json::{Map, Value as Json, json};

use super::agent::{read_secret, shown};
use super::schedule::read_known;
use super::section::Section;
use super::trigger::read_zone;
use super::value::Value;

/// Who starts workflows, and how their schedules behave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConductorConfig {
    /// The server that starts workflows.
    pub(crate) server_url: Option<String>,
    /// The id of the key that the server wants.
    pub(crate) key_id: Option<String>,
    /// Where its secret is.
    pub(crate) key_secret: Option<SecretSource>,
    /// Agents that stand in for workflows, by the names of these.
    pub(crate) workflows: BTreeMap<String, String>,
    /// How many starts a node has at work.
    pub(crate) max_running: u32,
    /// The zone of crons that name none.
    pub(crate) scheduler_time_zone: String,
    /// Each run is due up to so much later.
    pub(crate) jitter: Elapsed,
    /// How many missed slots are made up for at most.
    pub(crate) catch_up_max: u32,
    /// How many records a schedule keeps.
    pub(crate) keep: Keep,
    /// Settings that mean nothing here, as they were written.
    pub(crate) without_meaning: Vec<&'static str>,
}

/// Settings of Conductor's scheduler that mean nothing here: there is no poll, no cache and no archive to be set.
const WITHOUT_MEANING: [&str; 13] = [
    "enabled",
    "polling_thread_count",
    "polling_interval",
    "poll_batch_size",
    "initial_delay_ms",
    "archival_thread_count",
    "archival_poll_batch_size",
    "archival_maintenance_interval_record_count",
    "archival_maintenance_lock_seconds",
    "archival_maintenance_lock_try_seconds",
    "cache_enabled",
    "user_cache_expire_after_write_seconds",
    "user_cache_max_size",
];

impl ConductorConfig {
    /// Reads the table; all defaults, if there is none.
    pub(super) fn read<T>(
        section: &Section<'_>,
        folder: &Path,
        agents: &BTreeMap<String, T>,
        zones: &Zones,
        utc: &Zone,
    ) -> ConductorConfig {
        let number =
            |key: &str, range, default: u64| section.get(key).and_then(|value| value.integer(range)).unwrap_or(default);
        let zone = section.get("scheduler_time_zone");
        let zone = zone.and_then(|value| value.text().and_then(|name| read_zone(value, name, zones)));
        let threshold = number("archival_max_record_threshold", 1..=1_000_000, 10) as usize;
        let max = number("archival_max_records", 1..=1_000_000, 5.min(threshold as u64)) as usize;
        if let Some(value) = section.get("archival_max_records").filter(|_| threshold < max) {
            value.refuse("it is more than archival_max_record_threshold", "keep at most as many as there may be");
        }
        // The adaptive jitter of newer servers has a maximum, too.
        let jitter = number("jitter_max_ms", 0..=86_400_000, number("max_schedule_jitter_ms", 0..=86_400_000, 0));
        if let Some(value) = section.get("key_id").filter(|_| section.get("key_secret").is_none()) {
            value.refuse("a key has a secret", "add key_secret, as in { env = \"NAME\" } or { file = \"PATH\" }");
        }
        if let Some(value) = section.get("key_secret").filter(|_| section.get("key_id").is_none()) {
            value.refuse("a secret belongs to a key", "add key_id");
        }
        let is_given = |key: &&'static str| section.get(key).is_some();
        ConductorConfig {
            server_url: section.get("server_url").and_then(read_url),
            key_id: section.get("key_id").and_then(Value::text).map(str::to_owned),
            key_secret: section.get("key_secret").and_then(|value| read_secret(value, folder)),
            workflows: section.get("workflows").map(|value| read_workflows(value, agents)).unwrap_or_default(),
            max_running: number("max_running", 1..=100_000, 64) as u32,
            scheduler_time_zone: zone.unwrap_or_else(|| utc.clone()).name().to_owned(),
            jitter: Elapsed::from_milliseconds(jitter as i64).unwrap_or(Elapsed::ZERO),
            catch_up_max: number("catch_up_max", 1..=u64::from(u32::MAX - 1), CatchUp::UNLIMITED.into()) as u32,
            keep: Keep { max, threshold },
            without_meaning: WITHOUT_MEANING.into_iter().filter(is_given).collect(),
        }
    }

    /// What only comes into force with a start.
    pub(super) fn without_what_is_reloaded(&self) -> ConductorConfig {
        ConductorConfig { server_url: None, key_id: None, key_secret: None, workflows: BTreeMap::new(), ..self.clone() }
    }

    /// Every key of the table and its value.
    pub(super) fn settings(&self) -> Map<String, Json> {
        super::print::object(json!({
            "server_url": self.server_url,
            "key_id": self.key_id,
            "key_secret": self.key_secret.as_ref().map(shown),
            "workflows": self.workflows,
            "max_running": self.max_running,
            "scheduler_time_zone": self.scheduler_time_zone,
            "jitter_max_ms": self.jitter.milliseconds(),
            "catch_up_max": Some(self.catch_up_max).filter(|max| *max != CatchUp::UNLIMITED),
            "archival_max_records": self.keep.max,
            "archival_max_record_threshold": self.keep.threshold,
        }))
    }
}

fn read_url(value: &Value<'_>) -> Option<String> {
    let text = value.text()?;
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    if rest.is_none_or(|rest| rest.is_empty() || rest.starts_with('/') || rest.contains(char::is_whitespace)) {
        value.refuse("it is no address of a server", "use one like http://conductor.example:8080/api");
        return None;
    }
    Some(text.trim_end_matches('/').to_owned())
}

fn read_workflows<T>(value: &Value<'_>, agents: &BTreeMap<String, T>) -> BTreeMap<String, String> {
    let entries = value.named().unwrap_or_default().into_iter();
    entries
        .filter_map(|(workflow, value)| Some((workflow.to_owned(), read_known("agent", &value, agents)?.to_owned())))
        .collect()
}

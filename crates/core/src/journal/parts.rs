//! The two parts of an entry: the change, which applying it needs, and the detail, which only people and history read.
//!
//! Each part is JSON of its own, so that whoever follows the journal reads and decodes the changes alone. Together they are the
//! body again. What an entry is made of is said once, in [`Body`]; which of its fields are needed is said here.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::entry::{Body, Entry, checksum};

/// The body of an entry, as the journal keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts<T> {
    /// What applying it needs.
    pub change: T,
    /// Everything else; empty if there is nothing else.
    pub detail: T,
}

/// Whether a field of a kind of entry is needed to apply it.
fn is_needed(kind: &str, field: &str) -> bool {
    match kind {
        "attempt_ended" => matches!(field, "run" | "epoch" | "schedule" | "event" | "digest"),
        "run_changed" => matches!(field, "run" | "epoch" | "schedule" | "event"),
        "skipped" => field == "schedule",
        "planned" => !matches!(field, "next" | "next_gone" | "was_next"),
        _ => field != "by",
    }
}

/// What stands for a detail that has not been read, where a body must have one.
fn blank_detail(change: &str) -> &'static str {
    let is = |kind: &str| change.starts_with(kind);
    if is(r#"{"attempt_ended""#) {
        r#"{"attempt":0,"key":"","agent":"","scheduled_at":"1970-01-01T00:00:00Z"}"#
    } else if is(r#"{"run_changed""#) {
        r#"{"key":"","agent":"","scheduled_at":"1970-01-01T00:00:00Z"}"#
    } else if is(r#"{"skipped""#) {
        r#"{"version":0,"agent":"","first":"","first_at":"1970-01-01T00:00:00Z","last":"","last_at":"1970-01-01T00:00:00Z","count":0,"reason":"paused"}"#
    } else {
        ""
    }
}

impl Parts<String> {
    /// Takes a body apart.
    pub fn of(body: &Body) -> Parts<String> {
        let kind = body.kind();
        let text = serde_json::to_string(body).expect("what is journalled is plain data");
        // These are long, and have no detail.
        if matches!(body, Body::RunsClaimed { .. } | Body::RunsStarted { .. }) {
            return Parts { change: text, detail: String::new() };
        }
        let body: BTreeMap<&str, BTreeMap<&str, &RawValue>> =
            serde_json::from_str(&text).expect("a body is an object in an object");
        let (needed, others): (Vec<_>, Vec<_>) =
            body.into_values().flatten().partition(|(field, _)| is_needed(kind, field));
        let change = format!("{{\"{kind}\":{}}}", object(&needed));
        let detail = if others.is_empty() { String::new() } else { object(&others) };
        Parts { change, detail }
    }

    /// The parts, to be read.
    pub fn as_ref(&self) -> Parts<&str> {
        Parts { change: &self.change, detail: &self.detail }
    }
}

impl Parts<&str> {
    /// The whole body.
    pub fn body(self) -> serde_json::Result<Body> {
        if self.detail.is_empty() {
            return serde_json::from_str(self.change);
        }
        let change = self.change.strip_suffix("}}").unwrap_or_default();
        let detail = self.detail.strip_prefix('{').unwrap_or_default();
        serde_json::from_str(&[change, ",", detail, "}"].concat())
    }

    /// A body of which only the change was read. It can be applied; what else it says is blank.
    pub fn bare_body(change: &str) -> serde_json::Result<Body> {
        Parts { change, detail: blank_detail(change) }.body()
    }
}

impl Entry {
    /// Its checksum, behind an entry with the checksum `before`.
    pub fn checksum(&self, before: u64) -> u64 {
        checksum(before, self.seq, self.at, Parts::of(&self.body).as_ref())
    }
}

fn object(fields: &[(&str, &RawValue)]) -> String {
    let fields: Vec<String> = fields.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    format!("{{{}}}", fields.join(","))
}

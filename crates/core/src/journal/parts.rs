//! The two parts of an entry: the change, which applying it needs, and the detail, which only people and history read.
//!
//! Each part is JSON of its own, so that a process that follows the journal reads and decodes the changes alone. Together they are the
//! body again. What an entry is made of is said once, in [`Body`]; which of its fields are needed is said here.

use std::iter::from_fn;

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
        // It is `{"kind":{…}}`.
        let start = kind.len() + r#"{"":{"#.len();
        let (mut change, mut detail) = (text[..start].to_owned(), "{".to_owned());
        for field in fields(&text[start..text.len() - 2]) {
            let name = field.split('"').nth(1).expect("a field has a name");
            let part = if is_needed(kind, name) { &mut change } else { &mut detail };
            if !part.ends_with('{') {
                part.push(',');
            }
            part.push_str(field);
        }
        change.push_str("}}");
        detail.push('}');
        if detail == "{}" {
            detail.clear();
        }
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
    /// Its checksum, after an entry with the checksum `before`.
    pub fn checksum(&self, before: u64) -> u64 {
        checksum(before, self.seq, self.at, Parts::of(&self.body).as_ref())
    }
}

/// The fields of an object that was just written, each with its name and value.
fn fields(mut rest: &str) -> impl Iterator<Item = &str> {
    from_fn(move || {
        let field = &rest[..field_end(rest.as_bytes())];
        rest = rest.get(field.len() + 1..).unwrap_or_default();
        (!field.is_empty()).then_some(field)
    })
}

/// Where the first field ends: at a comma that is in no text and in no value.
fn field_end(fields: &[u8]) -> usize {
    let (mut depth, mut is_in_text, mut is_escaped) = (0, false, false);
    let is_end = |byte: &u8| {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'"' => is_in_text = !is_in_text,
            b'\\' => is_escaped = true,
            _ if is_in_text => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            b',' => return depth == 0,
            _ => {}
        }
        false
    };
    fields.iter().position(is_end).unwrap_or(fields.len())
}

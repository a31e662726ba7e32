//! Answers of a server, and what to make of them. Pure.

use std::fmt;

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;
use punctual_core::Elapsed;
use reqwest::StatusCode;
use reqwest::header::{DATE, HeaderMap, HeaderName, RETRY_AFTER};
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

/// The longest id of a workflow, in bytes.
const ID_MAX: usize = 1024;

/// We stay away no longer than this, whatever a server asks for.
const RETRY_AFTER_MAX: Elapsed = Elapsed::from_seconds(24 * 60 * 60);

/// What a server answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    /// How long it asks us to stay away.
    pub(super) retry_after: Option<Elapsed>,
    /// The beginning of the body, which is mostly all of it.
    pub(super) body: Vec<u8>,
}

impl Answer {
    /// The id of the workflow that was started, as plain text or as a JSON string. None if this is no id: pages and documents that a
    /// proxy or another server may answer with are not taken for one.
    pub(super) fn workflow_id(&self) -> Option<String> {
        let text = str::from_utf8(&self.body).ok()?.trim();
        let id = serde_json::from_str::<String>(text).unwrap_or_else(|_| text.to_owned());
        let is_id = id.starts_with(char::is_alphanumeric) && id.len() <= ID_MAX;
        Some(id).filter(|id| is_id && !id.contains(|c: char| c.is_whitespace() || c.is_control()))
    }

    /// Whether another try may help, of an answer that is not a success.
    pub(super) fn may_go_away(&self) -> bool {
        self.status.is_server_error() || matches!(self.status.as_u16(), 408 | 425 | 429)
    }

    /// Whether the server wants another token.
    pub(super) fn wants_token(&self) -> bool {
        matches!(self.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
    }

    /// The text of the body.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).trim().to_owned()
    }
}

/// How long a server asks us to stay away. A date is held against the server's own: our clocks may differ.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Elapsed> {
    let text = |name: HeaderName| headers.get(name)?.to_str().ok().map(str::trim);
    let asked = text(RETRY_AFTER)?;
    let milliseconds = match asked.parse::<u32>() {
        Ok(seconds) => i64::from(seconds) * 1000,
        Err(_) => {
            let instant = |text: &str| -> Option<Timestamp> { DateTimeParser::new().parse_timestamp(text).ok() };
            instant(asked)?.as_millisecond() - instant(text(DATE)?)?.as_millisecond()
        }
    };
    let bounded = milliseconds.clamp(0, RETRY_AFTER_MAX.milliseconds());
    Elapsed::from_milliseconds(bounded)
}

/// What a server says about a workflow that is followed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Progress {
    /// `RUNNING`, `PAUSED`, or how it ended.
    pub(super) status: Option<String>,
    pub(super) reason: Option<String>,
}

impl Progress {
    /// Reads a workflow, also one whose end is cut off: inputs and outputs may be long, and the status stands before them.
    pub(super) fn read(body: &[u8]) -> Progress {
        let mut progress = Progress::default();
        // An error only means that nothing more can be read.
        serde_json::Deserializer::from_slice(body).deserialize_map(&mut progress).ok();
        progress
    }
}

impl<'de> Visitor<'de> for &mut Progress {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a workflow")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(field) = map.next_key::<String>()? {
            match field.as_str() {
                "status" => self.status = map.next_value()?,
                "reasonForIncompletion" => self.reason = map.next_value()?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_told_from_what_is_none() {
        let id = |body: &[u8]| {
            let answer = Answer { status: StatusCode::OK, retry_after: None, body: body.to_vec() };
            answer.workflow_id()
        };
        let uuid = "0b5c9f7e-1111-4222-8333-444455556666";
        assert_eq!(id(uuid.as_bytes()).as_deref(), Some(uuid));
        assert_eq!(id(format!("\"{uuid}\"\n").as_bytes()).as_deref(), Some(uuid));
        assert!(id(&[b'a'; ID_MAX]).is_some());
        for body in [&b""[..], b" \n", b"\"\"", b"{\"id\":1}", b"<html></html>", b"a b", b"a\0b", b"..", b"\xff"] {
            assert_eq!(id(body), None, "{}", String::from_utf8_lossy(body));
        }
        assert_eq!(id(&[b'a'; ID_MAX + 1]), None);
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let asked = |pairs: &[(HeaderName, &'static str)]| {
            let headers = pairs.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect();
            retry_after(&headers).map(|it| it.milliseconds() / 1000)
        };
        let (later, now) = ("Mon, 09 Mar 2026 13:01:30 GMT", "Mon, 09 Mar 2026 13:00:00 GMT");
        assert_eq!(asked(&[]), None);
        assert_eq!(asked(&[(RETRY_AFTER, "7")]), Some(7));
        assert_eq!(asked(&[(RETRY_AFTER, "4000000000")]), Some(86_400));
        assert_eq!(asked(&[(RETRY_AFTER, later), (DATE, now)]), Some(90));
        assert_eq!(asked(&[(RETRY_AFTER, now), (DATE, later)]), Some(0));
        for wrong in ["soon", "-1", "99999999999", later] {
            assert_eq!(asked(&[(RETRY_AFTER, wrong)]), None, "{wrong}");
        }
    }

    #[test]
    fn the_status_is_read_also_when_the_end_is_missing() {
        let whole =
            br#"{"ownerApp":"x","status":"FAILED","input":{"status":"no","a":[1,{}]},"reasonForIncompletion":"why"}"#;
        let read = Progress::read(whole);
        assert_eq!((read.status.as_deref(), read.reason.as_deref()), (Some("FAILED"), Some("why")));
        assert_eq!(Progress::read(&whole[..50]).status.as_deref(), Some("FAILED"));
        for end in 0..whole.len() {
            Progress::read(&whole[..end]);
        }
        for wrong in [&b"[]"[..], b"7", b"", b"{\"status\":7}", b"{\"status\":null}"] {
            assert_eq!(Progress::read(wrong), Progress::default());
        }
        let deep = "{\"a\":".repeat(10_000);
        assert_eq!(Progress::read(deep.as_bytes()), Progress::default());
    }
}

//! What the work says about itself: the last line of its standard output, if that is a JSON object.
//!
//! Unknown fields are ignored, as a program may print JSON for others too. Known fields of a wrong type are ignored with
//! a note, as their author would want to know.

use crate::text::{cut, without_nul};
use jiff::Timestamp;
use serde_json::{Map, Value};

/// The longest line that is read as a report. With it, whatever a report holds is bounded as well.
pub(super) const REPORT_LINE_MAX: usize = 64 * 1024;
/// The longest summary, in bytes.
const SUMMARY_MAX: usize = 16 * 1024;
/// The longest code of an error, in bytes.
const ERROR_CODE_MAX: usize = 100;
/// The longest message of an error, in bytes.
pub(super) const ERROR_MESSAGE_MAX: usize = 4 * 1024;
/// The code of an error that was reported without one.
const ERROR_CODE: &str = "error";

/// A report as the work wrote it.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Reported {
    pub(super) summary: Option<String>,
    pub(super) refs: Map<String, Value>,
    pub(super) llm: Map<String, Value>,
    pub(super) tools: Map<String, Value>,
    pub(super) facts: Map<String, Value>,
    pub(super) next_run_at: Option<Timestamp>,
    pub(super) error: Option<WorkError>,
    /// What was ignored, and why.
    pub(super) notes: Vec<String>,
}

/// An error as the work reported it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WorkError {
    pub(super) code: String,
    pub(super) message: String,
    pub(super) is_retryable: bool,
}

impl Reported {
    /// Reads the last line of what the work printed. Anything but an object is not a report.
    pub(super) fn read(line: &[u8]) -> Reported {
        let mut reported = Reported::default();
        if line.first() != Some(&b'{') {
            return reported;
        }
        if REPORT_LINE_MAX < line.len() {
            reported.notes.push(format!("the last line is longer than {REPORT_LINE_MAX} bytes: not read as a report"));
            return reported;
        }
        let Ok(mut fields) = serde_json::from_slice::<Map<String, Value>>(line) else { return reported };
        fields = without_nul_map(fields);
        match fields.remove("summary") {
            None | Some(Value::Null) => {}
            Some(Value::String(text)) => reported.summary = Some(cut(text, SUMMARY_MAX)),
            Some(other) => reported.ignore("summary", &other, "a string"),
        }
        reported.refs = reported.object(&mut fields, "refs");
        reported.llm = reported.object(&mut fields, "llm");
        reported.tools = reported.object(&mut fields, "tools");
        reported.facts = reported.object(&mut fields, "facts");
        match fields.remove("nextRunAt") {
            None | Some(Value::Null) => {}
            Some(Value::String(text)) => match text.parse() {
                Ok(at) => reported.next_run_at = Some(at),
                Err(_) => reported.notes.push(format!(
                    "the reported `nextRunAt` is {:?}, not an instant like 2026-03-09T15:00:00Z: ignored",
                    cut(text, 40)
                )),
            },
            Some(other) => reported.ignore("nextRunAt", &other, "an instant"),
        }
        reported.error = fields.remove("error").and_then(|error| reported.error(error));
        reported
    }

    fn object(&mut self, fields: &mut Map<String, Value>, name: &str) -> Map<String, Value> {
        match fields.remove(name) {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(object)) => object,
            Some(other) => {
                self.ignore(name, &other, "an object");
                Map::new()
            }
        }
    }

    /// Whatever is there and is neither `null` nor `false` is an error: taking a failure for a success is worse than
    /// the other way round.
    fn error(&mut self, error: Value) -> Option<WorkError> {
        let mut result = WorkError {
            code: ERROR_CODE.to_owned(),
            message: "the work reports an error".to_owned(),
            is_retryable: true,
        };
        match error {
            Value::Null | Value::Bool(false) => return None,
            Value::String(message) => result.message = cut(message, ERROR_MESSAGE_MAX),
            Value::Object(mut fields) => {
                match fields.remove("code") {
                    None | Some(Value::Null) => {}
                    Some(Value::String(code)) => result.code = cut(code, ERROR_CODE_MAX),
                    Some(Value::Number(code)) => result.code = code.to_string(),
                    Some(other) => self.ignore("error.code", &other, "a string"),
                }
                match fields.remove("message") {
                    None | Some(Value::Null) => {}
                    Some(Value::String(message)) => result.message = cut(message, ERROR_MESSAGE_MAX),
                    Some(other) => self.ignore("error.message", &other, "a string"),
                }
                match fields.remove("retryable") {
                    None | Some(Value::Null) => {}
                    Some(Value::Bool(is_retryable)) => result.is_retryable = is_retryable,
                    Some(other) => self.ignore("error.retryable", &other, "true or false"),
                }
            }
            other => self.ignore("error", &other, "an object"),
        }
        Some(result)
    }

    fn ignore(&mut self, name: &str, value: &Value, wanted: &str) {
        let found = match value {
            Value::Null => "null",
            Value::Bool(_) => "true or false",
            Value::Number(_) => "a number",
            Value::String(_) => "a string",
            Value::Array(_) => "a list",
            Value::Object(_) => "an object",
        };
        self.notes.push(format!("the reported `{name}` is {found}, not {wanted}: ignored"));
    }
}

fn without_nul_map(map: Map<String, Value>) -> Map<String, Value> {
    map.into_iter().map(|(name, value)| (without_nul(name), without_nul_value(value))).collect()
}

/// As deep as the JSON parser lets a value be, which is 128.
fn without_nul_value(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(without_nul(text)),
        Value::Array(values) => Value::Array(values.into_iter().map(without_nul_value).collect()),
        Value::Object(map) => Value::Object(without_nul_map(map)),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: &Value) -> Reported {
        Reported::read(value.to_string().as_bytes())
    }

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[track_caller]
    fn check_error(error: Value, expected: Option<(&str, &str, bool)>) {
        let error = read(&json!({ "error": error })).error;
        let found = error.as_ref().map(|error| (error.code.as_str(), error.message.as_str(), error.is_retryable));
        assert_eq!(found, expected);
    }

    #[test]
    fn known_fields_are_taken_and_unknown_ones_ignored() {
        let reported = read(&json!({"summary": "done", "refs": {"a": 1}, "llm": {"b": 2}, "tools": {"c": 3},
            "facts": {"d": 4}, "colour": "green"}));
        let expected = Reported {
            summary: Some("done".into()),
            refs: object(json!({"a": 1})),
            llm: object(json!({"b": 2})),
            tools: object(json!({"c": 3})),
            facts: object(json!({"d": 4})),
            ..Reported::default()
        };
        assert_eq!(reported, expected);
    }

    #[test]
    fn what_is_no_object_is_no_report() {
        for line in ["", "done", "[1]", "\"{}\"", "{", "{\"summary\":", "3", "\u{feff}{}"] {
            assert_eq!(Reported::read(line.as_bytes()), Reported::default(), "{line}");
        }
        assert_eq!(Reported::read(b"{\"summary\":\"\xff\"}"), Reported::default());
        assert_eq!(Reported::read("{\"a\":".repeat(1000).as_bytes()), Reported::default());
    }

    #[test]
    fn wrong_types_are_ignored_with_a_note() {
        let reported = read(&json!({"summary": 3, "refs": [], "facts": "x", "llm": null}));
        assert_eq!(
            reported.notes,
            [
                "the reported `summary` is a number, not a string: ignored",
                "the reported `refs` is a list, not an object: ignored",
                "the reported `facts` is a string, not an object: ignored",
            ]
        );
        assert_eq!(reported.summary, None);
    }

    #[test]
    fn the_next_run_is_an_instant() {
        let next = |value: Value| {
            let reported = read(&json!({ "nextRunAt": value }));
            (reported.next_run_at.map(|at| at.to_string()), reported.notes.len())
        };
        assert_eq!(next(json!("2026-03-09T16:00:00+01:00")), (Some("2026-03-09T15:00:00Z".to_owned()), 0));
        assert_eq!(next(json!(null)), (None, 0));
        for wrong in [json!("tomorrow"), json!("2026-03-09T15:00:00"), json!(1_700_000_000)] {
            assert_eq!(next(wrong), (None, 1));
        }
    }

    #[test]
    fn an_error_is_what_is_there_and_not_false() {
        check_error(json!(null), None);
        check_error(json!(false), None);
        check_error(json!("boom"), Some(("error", "boom", true)));
        check_error(json!({}), Some(("error", "the work reports an error", true)));
        check_error(json!(7), Some(("error", "the work reports an error", true)));
        check_error(json!({"code": "quota", "message": "full"}), Some(("quota", "full", true)));
        check_error(json!({"code": 429, "message": "slow", "retryable": false}), Some(("429", "slow", false)));
        check_error(json!({"message": "x", "retryable": "no"}), Some(("error", "x", true)));
    }

    #[test]
    fn a_report_is_bounded() {
        let long = "x".repeat(REPORT_LINE_MAX);
        let reported = read(&json!({ "summary": long }));
        assert_eq!(reported.summary, None);
        assert_eq!(reported.notes, ["the last line is longer than 65536 bytes: not read as a report"]);
        let reported = read(&json!({ "summary": "ä".repeat(SUMMARY_MAX) }));
        assert_eq!(reported.summary.unwrap().len(), SUMMARY_MAX + '…'.len_utf8());
    }

    #[test]
    fn nul_is_made_visible_wherever_it_hides() {
        let reported = Reported::read(br#"{"summary":"a\u0000b","facts":{"k\u0000":["\u0000"]}}"#);
        assert_eq!(reported.summary.as_deref(), Some("a\u{2400}b"));
        assert_eq!(reported.facts, object(json!({"k\u{2400}": ["\u{2400}"]})));
    }
}

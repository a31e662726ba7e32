use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::civil::Date;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::*;

/// A little of everything that bodies and queries have.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Everything {
    name: Option<String>,
    count: Option<u32>,
    small: u8,
    signed: Option<i64>,
    is_on: bool,
    id: Option<Uuid>,
    at: Option<Timestamp>,
    day: Option<Date>,
    kind: Option<Kind>,
    inner: Inner,
    list: Vec<Inner>,
    map: BTreeMap<String, String>,
    inputs: Option<Map<String, Value>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
enum Kind {
    Early,
    TooLate,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(dead_code, reason = "what is read is not looked at")]
struct Inner {
    wanted_field: String,
}

fn of_body(text: &str) -> (Option<String>, String) {
    let refused = json::<Everything>(text.as_bytes()).expect_err(text);
    (refused.problem().field.clone(), refused.detail().to_owned())
}

#[test]
fn what_is_wrong_in_a_body_is_named_and_said_in_our_words() {
    for (body, field, detail) in [
        (json!({"name": 5}), "name", "name: it is 5; give a text"),
        (json!({"count": "5"}), "count", "count: it is the text \"5\"; give a whole number from 0 to 4294967295"),
        (json!({"count": -5}), "count", "count: -5 is out of range; give a whole number from 0 to 4294967295"),
        (json!({"small": 256}), "small", "small: 256 is out of range; give a whole number from 0 to 255"),
        (json!({"small": null}), "small", "small: it is null; give a whole number from 0 to 255"),
        (json!({"signed": 1.5}), "signed", "signed: it is 1.5; give a whole number"),
        (json!({"isOn": "true"}), "isOn", "isOn: it is the text \"true\"; give true or false"),
        (json!({"id": "x"}), "id", "id: \"x\" cannot be used; give an id like 0198f0c1-6f3a-7c44-9d1b-2f6c0e5a9b10"),
        (json!({"at": "noon"}), "at", "at: \"noon\" cannot be used; give a time like 2026-03-09T15:00:00Z"),
        (json!({"at": {}}), "at", "at: it is an object; give a time like 2026-03-09T15:00:00Z"),
        (json!({"day": "9 March"}), "day", "day: \"9 March\" cannot be used; give a day like 2026-03-09"),
        (json!({"kind": "LATE"}), "kind", "kind: \"LATE\" is no word of it; use EARLY or TOO_LATE"),
        (json!({"kind": 1}), "kind", "kind: it is 1; give EARLY or TOO_LATE"),
        (json!({"inner": []}), "inner", "inner: it is a list; give an object"),
        (json!({"inner": {}}), "inner.wantedField", "inner.wantedField: it is missing; give it"),
        (
            json!({"list": [{"wantedField": ""}, {"wantedField": []}]}),
            "list[1].wantedField",
            "list[1].wantedField: it is a list; give a text",
        ),
        (json!({"map": {"a": 1}}), "map.a", "map.a: it is 1; give a text"),
        (json!({"inputs": []}), "inputs", "inputs: it is a list; give an object"),
        (json!({"naem": ""}), "naem", "naem: there is no such field; did you mean name?"),
        (json!({"inner": {"colour": 1}}), "inner.colour", "inner.colour: there is no such field; use wantedField"),
    ] {
        assert_eq!(of_body(&body.to_string()), (Some(field.to_owned()), detail.to_owned()));
    }
    assert_eq!(of_body(r#"{"name": "a", "name": "b"}"#).1, "name: it is given twice; give it once");
}

#[test]
fn a_body_that_is_none_has_no_field_and_a_place() {
    for (text, detail) in [
        ("[]", "the body: it is a list; give an object"),
        (r#"{"name": "#, "the body is no JSON: it ends too early, in line 1, column 9"),
        ("{\n  name: 1}", "the body is no JSON: it cannot be read from line 2, column 3 on"),
        ("\"\\ud800\"", "the body is no JSON: it cannot be read from line 1, column 8 on"),
    ] {
        assert_eq!(of_body(text), (None, detail.to_owned()));
    }
    assert!(of_body(&"[".repeat(1_000)).1.starts_with("the body is nested too deeply"));
}

#[test]
fn what_is_wrong_in_a_query_is_named_and_said_in_our_words() {
    let of_query = |name: &str, value: &str| {
        let refused = query::<Everything>(vec![(name.to_owned(), value.to_owned())]).expect_err(value);
        assert_eq!(refused.problem().field.as_deref(), Some(name));
        refused.detail().to_owned()
    };
    assert_eq!(of_query("count", "many"), "count: it is the text \"many\"; give a whole number from 0 to 4294967295");
    assert_eq!(of_query("count", ""), "count: it is the text \"\"; give a whole number from 0 to 4294967295");
    assert_eq!(of_query("count", "-1"), "count: -1 is out of range; give a whole number from 0 to 4294967295");
    assert_eq!(of_query("isOn", "yes"), "isOn: it is the text \"yes\"; give true or false");
    assert_eq!(of_query("kind", "never"), "kind: \"never\" is no word of it; use EARLY or TOO_LATE");
    assert_eq!(of_query("cuont", "1"), "cuont: there is no such parameter; did you mean count?");
}

#[test]
fn what_is_right_is_read_as_it_was_meant() {
    let pairs = [("count", "7"), ("signed", "-7"), ("isOn", "true"), ("name", "12"), ("kind", "TOO_LATE")];
    let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let read: Everything = query(pairs.into()).unwrap();
    assert_eq!((read.count, read.signed, read.is_on, read.kind), (Some(7), Some(-7), true, Some(Kind::TooLate)));
    assert_eq!(read.name.as_deref(), Some("12"), "a text that looks like a number is a text");
    let inputs = json!({"deep": [{"a": null, "b": 1.5, "c": -1, "d": u64::MAX, "e": "é"}]});
    let read: Everything = json(json!({"inputs": inputs, "count": null}).to_string().as_bytes()).unwrap();
    assert_eq!((read.count, json!(read.inputs)), (None, inputs));
}

//! The native form of a schedule: strict JSON, and the JSON Schema that describes it.

use punctual_core::schedule::Schedule;
use serde_json::{Value, json};

/// What `docs/schedule.schema.json` must be. It is written anew by running this test with `PUNCTUAL_BLESS=1`.
const SCHEMA_FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schedule.schema.json");

fn minimal() -> Value {
    json!({
        "id": "018f4e9c-0000-7000-8000-000000000001",
        "version": 1,
        "work": {"agent": {"agent": "reporter"}},
        "trigger": {"cron": [{"expression": "0 9 * * MON-FRI"}]},
        "zone": "Europe/Paris",
        "cursor": {"at": "2026-01-05T00:00:00Z"},
    })
}

fn full() -> Value {
    json!({
        "id": "018f4e9c-0000-7000-8000-000000000001",
        "version": 7,
        "face": "conductor",
        "name": "morning-report",
        "project": "atlas",
        "origin": "file",
        "work": {"agent": {"agent": "reporter", "prompt": "What changed?", "inputs": {"depth": 2},
            "inputs_policy": {"input_type": "threads_since_last_run", "window_minutes": 30, "thread_filter": "open"}}},
        "trigger": {"cron": [
            {"expression": "0 9 * * MON-FRI", "dialect": "unix"},
            {"expression": "0 0 12 ? * 6L", "dialect": "quartz", "zone": "Asia/Tokyo"},
        ]},
        "zone": "Europe/Paris",
        "calendar": "office",
        "bounds": {"start_at": "2026-01-01T00:00:00Z", "end_at": "2026-12-31T23:59:59Z", "max_runs": 100},
        "jitter": "5m",
        "policy": {
            "dst": {"gap": "skip", "repeat": "both"},
            "catch_up": {"mode": "all", "max": 10, "window": "1d", "covers_pauses": true},
            "overlap": "replace",
            "max_delay": {"duration": "1h"},
            "retry": {"max_attempts": 5, "backoff": "exponential", "delay": "30s", "delay_max": "1h", "jitter": "5s"},
            "after_loss": "hold",
            "timeout": "10m",
            "priority": 8,
            "max_concurrent": 2,
            "risk_gate": true,
        },
        "state": {"paused": {"kind": "disabled", "at": "2026-01-05T00:00:00Z", "source": "ada", "reason": "holiday"}},
        "cursor": {"at": "2026-01-05T00:00:00Z", "reached": {"Europe/Paris": "2026-01-05T09:00:00"}},
        "early": ["2026-01-06T09:00:00/0@Europe/Paris"],
        "runs_started": 12,
        "read_until": "2026-01-05T08:00:00Z",
        "description": "What changed, every morning",
        "tags": [{"key": "team", "type": "METADATA", "value": "finance"}],
        "created_by": "ada",
        "updated_by": "bob",
        "created_at": "2026-01-01T00:00:00Z",
        "updated_at": "2026-01-02T00:00:00Z",
    })
}

fn read(value: Value) -> Result<Schedule, String> {
    // As text: what is strict about JSON is lost on values.
    serde_json::from_str(&value.to_string()).map_err(|error| error.to_string())
}

#[test]
fn a_schedule_is_written_as_it_was_read() {
    let schedule = read(full()).unwrap();
    assert_eq!(serde_json::to_value(&schedule).unwrap(), full());
    let schedule = read(minimal()).unwrap();
    assert_eq!(read(serde_json::to_value(&schedule).unwrap()).unwrap(), schedule);
}

#[test]
fn every_trigger_form_survives_json() {
    for trigger in [
        json!({"cron": [{"expression": "@daily", "dialect": "spring"}]}),
        json!({"times": ["09:00", "17:30:15"]}),
        json!({"every": {"interval": "1h30m", "anchor": "2026-01-05T00:00:00Z"}}),
        json!({"at": "2026-01-05T00:00:00Z"}),
        json!({"after": {"delay": "1m30s", "from": "2026-01-05T00:00:00Z"}}),
        json!({"immediate": {"at": "2026-01-05T00:00:00Z"}}),
        json!({"on_event": {"event": "TicketCreated", "delay": "4h"}}),
    ] {
        let mut value = full();
        value["trigger"] = trigger;
        assert_eq!(serde_json::to_value(read(value.clone()).unwrap()).unwrap(), value);
    }
}

#[test]
fn unknown_fields_and_wrong_values_are_errors_that_say_what_is_wrong() {
    for (pointer, value, message) in [
        ("/colour", json!("red"), "unknown field `colour`"),
        ("/policy/overlaps", json!("skip"), "unknown field `overlaps`"),
        ("/policy/dst/gaps", json!("skip"), "unknown field `gaps`"),
        ("/policy/retry/max_attempts", json!(0), "expected a nonzero u32"),
        ("/policy/priority", json!(11), "priority: 11 is out of range; use 1 to 10"),
        ("/policy/overlap", json!("never"), "unknown variant `never`"),
        ("/bounds/max_runs", json!(0), "max_runs: a schedule with no runs never does anything"),
        ("/bounds/end_at", json!("2025-01-01T00:00:00Z"), "end_at: the end 2025-01-01T00:00:00Z lies before the start"),
        ("/jitter", json!("5 parsecs"), "duration: \" parsecs\" is not a unit at position 1"),
        ("/trigger", json!({"cron": []}), "cron: there are 0 crons"),
        (
            "/trigger",
            json!({"cron": [{"expression": "0 24 * * *"}]}),
            "hour: 24 is out of range at position 2; use 0 to 23",
        ),
        ("/trigger", json!({"cron": [{"expression": "0 9 * * *", "tz": "UTC"}]}), "unknown field `tz`"),
        ("/trigger", json!({"times": ["9"]}), "times[0]: \"9\" is not a time of day"),
        (
            "/trigger",
            json!({"every": {"interval": "500ms", "anchor": "2026-01-05T00:00:00Z"}}),
            "an interval of 500ms is too short",
        ),
        ("/trigger", json!({"weekly": {}}), "unknown variant `weekly`, expected one of `cron`, `times`, `every`"),
        ("/trigger", json!({"on_event": {"event": " "}}), "on_event: the event has no name"),
        ("/work", json!({"shell": "rm"}), "unknown variant `shell`"),
    ] {
        let mut schedule = full();
        let (parent, field) = pointer.rsplit_once('/').unwrap();
        schedule.pointer_mut(parent).unwrap()[field] = value;
        let error = read(schedule).unwrap_err();
        assert!(error.contains(message), "{pointer}: {error}");
    }
    let mut twice = minimal().to_string();
    twice.insert_str(1, r#""zone":"UTC","#);
    assert!(serde_json::from_str::<Schedule>(&twice).unwrap_err().to_string().contains("duplicate field `zone`"));
}

#[test]
fn the_published_schema_is_that_of_the_types() {
    let schema = format!("{:#}\n", Schedule::json_schema().to_value());
    if std::env::var_os("PUNCTUAL_BLESS").is_some() {
        std::fs::write(SCHEMA_FILE, &schema).unwrap();
    }
    let published = std::fs::read_to_string(SCHEMA_FILE).unwrap_or_default();
    assert!(published == schema, "docs/schedule.schema.json is out of date: run this test with PUNCTUAL_BLESS=1");
}

#[test]
fn the_schema_knows_every_field_and_refuses_others() {
    let schema = Schedule::json_schema().to_value();
    let full = full();
    let mut fields: Vec<&String> = full.as_object().unwrap().keys().collect();
    let mut described: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
    fields.sort();
    described.sort();
    assert_eq!(described, fields);
    assert_eq!(schema["additionalProperties"], json!(false));
}

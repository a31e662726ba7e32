//! Slots that are not due yet: seen, explained, cancelled and moved by edits, though they are stored nowhere.

use punctual_lab::postgres::{Durability, Server as Postgres};
use serde_json::{Value, json};

use crate::client::Client;
use crate::support::Place;

const CONFIG: &str = "[agents.quick]\nrunner = \"process\"\ncommand = [\"true\"]\n";

/// The day on which everything is looked at.
const DAY: &str = "2031-03-10";

fn schedule() -> Value {
    json!({"agentId": "quick", "name": "thrice", "scheduleType": "FIXED_TIMES", "timesOfDay": ["08:00", "12:00", "18:00"],
        "timezone": "UTC"})
}

fn listed(api: &Client) -> Vec<Value> {
    api.get(&format!("/api/executions/future?dateKey={DAY}")).json(200).as_array().unwrap().clone()
}

fn ids(listed: &[Value]) -> Vec<String> {
    listed.iter().map(|run| run["executionId"].as_str().unwrap().to_owned()).collect()
}

/// How many runs have a record in the history.
fn records(api: &Client) -> u64 {
    api.get("/api/executions/past").json(200)["totalElements"].as_u64().unwrap()
}

#[test]
fn a_slot_ahead_is_shown_explained_and_cancelled_on_sqlite() {
    slots_ahead(&Place::new("slots-ahead", CONFIG));
}

#[test]
fn a_slot_ahead_is_shown_explained_and_cancelled_on_postgres() {
    let postgres = Postgres::start(Durability::Off).expect("PostgreSQL starts");
    slots_ahead(&Place::new("slots-ahead-pg", CONFIG).with_database(&postgres.address()));
}

fn slots_ahead(place: &Place) {
    let server = place.up();
    let api = Client::of(place);
    let made = api.post("/api/schedules", schedule()).json(201);
    let path = format!("/api/schedules/{}", made["scheduleId"].as_str().unwrap());
    let first = listed(&api);
    assert_eq!(first.len(), 3, "{first:?}");
    assert!(first.iter().all(|run| run["execStatus"] == "READY" && run["scheduleName"] == "thrice"), "{first:?}");
    assert_eq!(ids(&listed(&api)), ids(&first), "who looks again sees the same ids");
    let [_, noon, evening] = <[String; 3]>::try_from(ids(&first)).unwrap();

    // Each is there by its id, though none has a record.
    let shown = api.get(&format!("/api/executions/{noon}")).json(200);
    assert_eq!((&shown["scheduledAt"], &shown["execStatus"]), (&json!("2031-03-10T12:00:00Z"), &json!("READY")));
    let why = api.get(&format!("/api/executions/{noon}/why")).json(200);
    assert_eq!(why["causes"][0]["code"], "not_due", "{why}");
    let why = api.get(&format!("{path}/why?at=2031-03-10T12:00:00")).json(200);
    assert_eq!((&why["executionId"], &why["causes"][0]["code"]), (&json!(noon), &json!("not_due")));
    assert_eq!(api.get(&format!("/api/executions/{noon}/output")).json(200)["isOver"], json!(false));
    assert_eq!(records(&api), 0);

    // What a person cancels before its time stays cancelled, whatever happens to the schedule.
    let cancelled = api.post(&format!("/api/executions/future/{noon}/cancel"), json!({})).json(200);
    assert_eq!(cancelled["execStatus"], "CANCELLED", "{cancelled}");
    api.post(&format!("/api/executions/future/{noon}/cancel"), json!({})).json(200);
    let states = |listed: &[Value]| listed.iter().map(|run| run["execStatus"].clone()).collect::<Vec<_>>();
    assert_eq!(states(&listed(&api)), ["READY", "CANCELLED", "READY"]);
    assert_eq!(records(&api), 1);
    api.put(&path, json!({"timesOfDay": ["12:00", "20:00"]})).json(200);
    let edited = listed(&api);
    assert_eq!(states(&edited), ["CANCELLED", "READY"]);
    assert_eq!(ids(&edited)[0], noon);
    // An id that an edit has made void names nothing.
    assert_eq!(api.get(&format!("/api/executions/{evening}")).problem(404), "not_found");
    assert_eq!(api.post(&format!("/api/executions/future/{evening}/cancel"), json!({})).problem(404), "not_found");

    // Pages, filters and rights hold for what is computed, too.
    let page = api.get(&format!("/api/executions/future?dateKey={DAY}&page=1&size=1"));
    assert_eq!(page.header("x-total-count"), Some("2"));
    assert_eq!(ids(page.json(200).as_array().unwrap()), ids(&edited)[1..]);
    for none in ["agentId=other", "execStatus=RUNNING", "projectId=other"] {
        assert_eq!(api.get(&format!("/api/executions/future?dateKey={DAY}&{none}")).json(200), json!([]), "{none}");
    }
    let made = api.post("/api/tokens", json!({"name": "ada", "role": "viewer", "projects": ["other"]})).json(201);
    let ada = api.with_token(made["secret"].as_str());
    let reached = ada.get(&format!("/api/executions/{}", ids(&edited)[1]));
    assert_eq!(reached.status, ada.get(&path).status, "who sees the schedule sees its slots");
    assert!(server.stop().success());
    // Without a server the command line computes the same.
    let plan = place.punctual(&["plan", DAY, "--all", "--json", "--utc"]);
    let plan: Value = serde_json::from_slice(&plan.stdout).unwrap();
    assert_eq!(plan["future"].as_array().unwrap().len(), 2, "{plan}");
    assert!(place.punctual(&["verify"]).status.success());
}

//! Runs that wait for a yes, in the real binary, on both stores.

use punctual_lab::postgres::{Durability, Server as Postgres};
use serde_json::{Value, json};

use crate::client::Client;
use crate::support::Place;

const CONFIG: &str = r#"
[agents.writer]
runner = "process"
command = ["sh", "-c", "echo $PUNCTUAL_RUN_ID >> effects"]
risk = "write"
"#;

/// The runs that wait.
fn waiting(api: &Client) -> Vec<Value> {
    api.get("/api/approvals").json(200)["items"].as_array().unwrap().clone()
}

/// Triggers a gated schedule and gives what is asked for.
fn ask(place: &Place, api: &Client, schedule: &str) -> Value {
    api.post("/api/executions/trigger", json!({"scheduleId": schedule, "inputs": {"depth": 2}})).json(202);
    place.until("it asks", |_| waiting(api).len() == 1);
    waiting(api).remove(0)
}

fn a_gated_run_waits_for_a_yes(place: &Place) {
    let server = place.up();
    let api = Client::of(place);
    let schedule = json!({
        "agentId": "writer", "scheduleType": "CRON", "cronExpr": "0 0 1 1 *", "prompt": "Tidy up", "name": "tidy",
        "executorPolicy": {"riskGate": true},
    });
    let schedule = api.post("/api/schedules", schedule).json(201)["scheduleId"].as_str().unwrap().to_owned();
    let asked = ask(place, &api, &schedule);
    assert_eq!(
        (&asked["prompt"], &asked["inputs"], &asked["risk"], &asked["scheduleName"]),
        (&json!("Tidy up"), &json!({"depth": 2}), &json!("write"), &json!("tidy"))
    );
    let id = asked["runId"].as_str().unwrap().to_owned();
    let queue = api.get("/api/executions/future?agentId=writer&execStatus=PENDING").json(200);
    assert_eq!((&queue[0]["executionId"], &queue[0]["waitingFor"]), (&json!(id), &json!("approval")));
    let why = api.get(&format!("/api/executions/{id}/why")).json(200);
    assert!(why.to_string().contains("approval"), "{why}");

    // Nobody but an admin answers, and only for what was shown.
    let editor = api.post("/api/tokens", json!({"name": "ed", "role": "editor"})).json(201);
    let editor = api.with_token(editor["secret"].as_str());
    let (yes, no) = (format!("/api/approvals/{id}/approve"), format!("/api/approvals/{id}/deny"));
    let answer = json!({"digest": asked["digest"], "reason": "looks right"});
    for path in [&yes, &no] {
        assert_eq!(editor.post(path, answer.clone()).problem(403), "not_allowed");
        assert_eq!(api.post(path, json!({"digest": "0"})).problem(409), "other_digest");
        assert_eq!(api.post(path, json!({})).status, 400, "{path}");
    }
    assert!(place.effects().is_empty());

    // It survives a restart, and begins once.
    assert!(server.stop().success());
    place.write("log", "");
    let server = place.up();
    let api = Client::of(place);
    assert_eq!(waiting(&api)[0]["digest"], asked["digest"]);
    let key = [("Idempotency-Key", "approve-1")];
    api.send("POST", &yes, &key, Some(answer.clone())).json(200);
    assert!(waiting(&api).is_empty());
    place.until("it has run", |place| place.effects() == [id.clone()]);
    api.send("POST", &yes, &key, Some(answer.clone())).json(200);
    assert_eq!(api.post(&yes, answer).problem(409), "not_waiting");
    let past = format!("/api/executions/past?executionId={id}");
    place.until("it is in the history", |_| api.get(&past).json(200)["totalElements"] == 1);
    assert_eq!(api.get(&past).json(200)["content"][0]["resultStatus"], "SUCCESS");
    let journal = api.get("/api/journal?limit=1000").text;
    assert!(journal.contains("looks right"), "who said yes, and why, is kept");

    // A no is an end, and said so.
    let asked = ask(place, &api, &schedule);
    let id = asked["runId"].as_str().unwrap().to_owned();
    let answer = json!({"digest": asked["digest"], "reason": "not today"});
    assert_eq!(api.post(&format!("/api/approvals/{id}/deny"), answer).json(200)["execStatus"], "CANCELLED");
    let why = api.get(&format!("/api/executions/{id}/why")).json(200);
    assert!(why.to_string().contains("not today"), "{why}");
    assert!(server.stop().success());
    assert_eq!(place.effects().len(), 1);
    place.verify();
}

#[test]
fn a_gated_run_waits_for_a_yes_on_sqlite() {
    a_gated_run_waits_for_a_yes(&Place::new("approvals", CONFIG));
}

#[test]
fn a_gated_run_waits_for_a_yes_on_postgres() {
    let postgres = Postgres::start(Durability::Off).expect("PostgreSQL starts");
    a_gated_run_waits_for_a_yes(&Place::new("approvals-pg", CONFIG).with_database(&postgres.address()));
}

#[test]
fn silence_is_a_no() {
    let place = Place::new("approvals-silence", &format!("[engine]\napproval_wait_seconds = 2\n{CONFIG}"));
    let server = place.up();
    let api = Client::of(&place);
    let schedule = json!({"agentId": "writer", "scheduleType": "IMMEDIATE", "executorPolicy": {"riskGate": true}});
    api.post("/api/schedules", schedule).json(201);
    place.until("it asks", |_| waiting(&api).len() == 1);
    let id = waiting(&api)[0]["runId"].as_str().unwrap().to_owned();
    place.until("the time is over", |_| waiting(&api).is_empty());
    let why = api.get(&format!("/api/executions/{id}/why")).json(200);
    assert!(why.to_string().contains("not_approved"), "{why}");
    assert!(server.stop().success());
    assert!(place.effects().is_empty());
}

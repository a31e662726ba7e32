//! `[agents.X] approval = "always"`: the operator's word holds on every path to the agent, on both stores.

use punctual_lab::postgres::{Durability, Server as Postgres};
use serde_json::{Value, json};

use crate::client::Client;
use crate::support::Place;

/// The agent only reads, so no schedule's gate would ask for it. It does what the file `mode` says.
const CONFIG: &str = r#"
[engine]
min_interval_seconds = 1

[agents.writer]
runner = "process"
command = ["sh", "agent.sh"]
risk = "read"
approval = "always"
max_concurrent = 20

[conductor.workflows]
mapped = "writer"

[[schedules]]
name = "of-the-file"
agent = "writer"
immediate = true
"#;

const AGENT: &str = r#"
mode=$(cat mode 2>/dev/null)
echo "$PUNCTUAL_RUN_ID $PUNCTUAL_RUN_ATTEMPT" >> effects
case "$mode" in
  fail) exit 1 ;;
  next) echo "{\"nextRunAt\": \"2000-01-01T00:00:00Z\"}" ;;
esac
"#;

/// The one run that waits.
fn asked(place: &Place, api: &Client) -> Value {
    let waiting = || api.get("/api/approvals").json(200)["items"].as_array().unwrap().clone();
    place.until("it asks", |_| !waiting().is_empty());
    let mut waiting = waiting();
    assert_eq!(waiting.len(), 1, "{waiting:?}");
    waiting.remove(0)
}

/// Answers the one run that waits. Nothing of it has begun before.
fn answer(place: &Place, api: &Client, verb: &str) -> String {
    let before = place.effects().len();
    let asked = asked(place, api);
    let id = asked["runId"].as_str().unwrap().to_owned();
    let why = api.get(&format!("/api/executions/{id}/why")).text;
    assert!(why.contains("waiting_approval"), "{why}");
    assert_eq!(place.effects().len(), before, "nothing of it has begun");
    api.post(&format!("/api/approvals/{id}/{verb}"), json!({"digest": asked["digest"]})).json(200);
    if verb == "approve" {
        place.until("it has run", |place| place.effects().len() == before + 1);
    }
    id
}

fn every_path_asks(place: &Place) {
    place.write("agent.sh", AGENT);
    let server = place.up();
    let api = Client::of(place);
    let editor = api.post("/api/tokens", json!({"name": "ed", "role": "editor"})).json(201);
    let editor = api.with_token(editor["secret"].as_str());

    // A schedule of the file, and one of an editor, that ask for nothing.
    answer(place, &api, "approve");
    let policy = json!({"maxAttempts": 2, "retryBackoffMs": 1, "riskGate": false});
    let schedule = json!({
        "agentId": "writer", "scheduleType": "CRON", "cronExpr": "0 0 1 1 *", "name": "yearly", "executorPolicy": policy,
    });
    let schedule = editor.post("/api/schedules", schedule).json(201)["scheduleId"].as_str().unwrap().to_owned();
    let once = json!({"agentId": "writer", "scheduleType": "IMMEDIATE", "name": "once", "executorPolicy": policy});
    editor.post("/api/schedules", once).json(201);
    answer(place, &api, "approve");

    // A trigger of the schedule, and of the agent alone.
    for body in [json!({"scheduleId": schedule}), json!({"agentId": "writer", "prompt": "quickly"})] {
        editor.post("/api/executions/trigger", body).json(202);
        let run = answer(place, &api, "approve");
        place
            .until("it is over", |_| api.get(&format!("/api/executions/{run}")).json(200)["execStatus"] == "SUCCEEDED");
        let why = api.get(&format!("/api/executions/{run}/why")).text;
        assert!(why.contains("approved it"), "who approved it is told: {why}");
    }
    let told = place.punctual(&["trigger", "writer"]);
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    assert!(told.contains("It may wait for an approval"), "{told}");
    answer(place, &api, "deny");

    // Conductor's paths.
    assert_eq!(editor.post("/api/workflow", json!({"name": "mapped"})).status, 200);
    answer(place, &api, "approve");
    let often = json!({
        "name": "often", "cronExpression": "* * * * * *", "zoneId": "UTC",
        "startWorkflowRequest": {"name": "mapped", "version": 1},
    });
    assert_eq!(editor.post("/api/scheduler/schedules", often).status, 200);
    place.until("its runs wait", |_| !api.get("/api/approvals").json(200)["items"].as_array().unwrap().is_empty());
    assert_eq!(editor.delete("/api/scheduler/schedules/often").status, 200);
    let before = place.effects().len();
    for run in api.get("/api/approvals").json(200)["items"].as_array().unwrap() {
        let no = format!("/api/approvals/{}/deny", run["runId"].as_str().unwrap());
        api.post(&no, json!({"digest": run["digest"]})).json(200);
    }
    assert_eq!(place.effects().len(), before);

    // The next try, and the run that a result asks for.
    place.write("mode", "fail");
    editor.post("/api/executions/trigger", json!({"scheduleId": schedule})).json(202);
    let run = answer(place, &api, "approve");
    place.write("mode", "next");
    assert_eq!(answer(place, &api, "approve"), run, "the second try asks again");
    place.until("the second try has begun", |place| place.effects().contains(&format!("{run} 2")));
    place.write("mode", "");
    assert_ne!(answer(place, &api, "approve"), run, "what a result asks for asks, too");

    // A reload changes it for what is claimed from then on.
    let agents = place.json(&["agents", "--json"]);
    assert_eq!(agents[0]["approval"], "always", "{agents}");
    let shown = place.punctual(&["agents"]);
    assert!(String::from_utf8_lossy(&shown.stdout).contains("always"));
    place.write("punctual.toml", &CONFIG.replace("approval = \"always\"\n", ""));
    server.signal("HUP");
    place.until("it is read again", |_| api.get("/api/agents").json(200)[0]["approval"] == "schedule");
    let before = place.effects().len();
    editor.post("/api/executions/trigger", json!({"agentId": "writer"})).json(202);
    place.until("it begins by itself", |place| place.effects().len() == before + 1);
    place.write("punctual.toml", CONFIG);
    server.signal("HUP");
    place.until("it is read again", |_| api.get("/api/agents").json(200)[0]["approval"] == "always");
    editor.post("/api/executions/trigger", json!({"agentId": "writer"})).json(202);
    answer(place, &api, "deny");

    assert!(server.stop().success());
    place.verify();
}

#[test]
fn every_path_to_an_agent_asks_on_sqlite() {
    every_path_asks(&Place::new("agent-approval", CONFIG));
}

#[test]
fn every_path_to_an_agent_asks_on_postgres() {
    let postgres = Postgres::start(Durability::Off).expect("PostgreSQL starts");
    every_path_asks(&Place::new("agent-approval-pg", CONFIG).with_database(&postgres.address()));
}

#[test]
fn an_agent_stands_for_its_run_that_waits() {
    let place = Place::new("agent-waits", &CONFIG.replace("immediate = true", "every = \"1h\""));
    place.write("agent.sh", AGENT);
    let server = place.up();
    let api = Client::of(&place);
    let none = place.punctual(&["why", "writer"]);
    let told = String::from_utf8_lossy(&none.stderr);
    assert!(told.contains("agent \"writer\" has no run") && !told.contains("did you mean"), "{told}");
    // The last one that ran is not what is meant while another waits.
    for verb in ["approve", "deny"] {
        let made = place.json(&["trigger", "writer", "--json"]);
        let id = made["executionId"].as_str().unwrap();
        asked(&place, &api);
        assert_eq!(place.json(&["show", "writer", "--json"])["execution"]["executionId"], id);
        assert_eq!(place.json(&["why", "writer", "--json"])["executionId"], id);
        assert!(place.punctual(&[verb, "writer", "--yes"]).status.success());
        place.until("it is decided", |_| api.get(&format!("/api/executions/{id}")).json(200)["outcome"].is_string());
    }
    assert_eq!(place.effects().len(), 1);
    assert!(server.stop().success());
}

//! The public client for JavaScript, as it is, and the way to start a workflow that it takes.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;

use super::{On, Scene, on_both};

on_both![the_public_client_for_javascript_finds_everything_as_it_expects, a_workflow_is_started_by_its_name];

/// Looks at every answer itself, and says what it has looked at.
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/javascript/scheduler.cjs");

/// Signing in, every call of the scheduler's client, and starting a workflow.
const CALLS: [&str; 25] = [
    "keys",
    "saveSchedule",
    "search",
    "getSchedule",
    "pauseSchedule",
    "resumeSchedule",
    "deleteSchedule",
    "getAllSchedules",
    "getNextFewSchedules",
    "pauseAllSchedules",
    "requeueAllExecutionRecords",
    "resumeAllSchedules",
    "setSchedulerTags",
    "getSchedulerTags",
    "deleteSchedulerTags",
    "save",
    "get",
    "listForAgent",
    "pause",
    "resume",
    "delete",
    "runNow",
    "previewNext",
    "reconcile",
    "startWorkflow",
];

fn the_public_client_for_javascript_finds_everything_as_it_expects(on: On) {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("it lies in the target folder");
    let modules = punctual_lab::node::find(&target.join("node")).unwrap_or_else(|error| panic!("{error:#}"));
    // It counts records, and none of them may go meanwhile.
    let scene = Scene::with("javascript", on, "archival_max_records = 1000\narchival_max_record_threshold = 1000");
    let mut script = Command::new("node");
    script.arg(SCRIPT).args([&scene.api.url(), scene.api.token().unwrap()]).stdin(Stdio::null());
    script.env("NODE_PATH", modules).current_dir(scene.place.path(""));
    // Whoever runs the tests may have a Conductor of their own.
    for (variable, _) in std::env::vars_os() {
        if variable.to_string_lossy().starts_with("CONDUCTOR_") {
            script.env_remove(variable);
        }
    }
    let output = script.output().expect("Node starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let checked: BTreeSet<&str> =
        said.lines().filter_map(|line| Some(line.strip_prefix("checked ")?.split_once(':')?.0)).collect();
    assert_eq!(checked, BTreeSet::from(CALLS), "{said}");

    // What the client was told is what Conductor was asked for.
    let starts = scene.conductor.starts();
    let by_hand: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix("started ")).collect();
    let inputs = [json!({"depth": 2}), json!({"by": "hand"})];
    assert_eq!(by_hand.len(), inputs.len(), "{said}");
    for (id, input) in by_hand.iter().zip(inputs) {
        let start = starts.iter().find(|start| start.id == *id).expect("Conductor has started it");
        assert_eq!((start.name.as_str(), &start.body["input"]), ("report", &input));
    }
    let by_schedule = starts.iter().filter(|it| it.body["input"]["_startedByScheduler"] == "tick").count();
    assert!(2 <= by_schedule && starts.len() == by_schedule + 2, "{starts:?}");
    scene.end();
}

fn a_workflow_is_started_by_its_name(on: On) {
    let scene = Scene::new("by-name", on);
    // On the server that has it, with what the query says of it.
    let path = "/api/workflow/report?version=3&correlationId=order-1&priority=7";
    let answer = scene.api.post(path, json!({"depth": 2}));
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("text/plain;charset=utf-8")), "{answer:?}");
    let start = scene.conductor.starts().pop().expect("it was started");
    assert_eq!((start.id.as_str(), start.name.as_str()), (answer.text.as_str(), "report"));
    assert_eq!(start.body["input"], json!({"depth": 2}));
    assert_eq!((&start.body["version"], &start.body["priority"]), (&json!(3), &json!(7)));
    assert_eq!(start.body["correlationId"], "order-1");
    // Under a key it is started once.
    let header = [("X-Idempotency-Key", "order-1")];
    let once = scene.api.send("POST", "/api/workflow/report", &header, Some(json!({})));
    let again = scene.api.send("POST", "/api/workflow/report", &header, Some(json!({})));
    assert_eq!((once.status, &once.text), (again.status, &again.text));
    let fail = [header[0], ("X-On-Conflict", "FAIL")];
    assert_eq!(scene.api.send("POST", "/api/workflow/report", &fail, Some(json!({}))).status, 409);
    assert_eq!(scene.conductor.starts().len(), 2);
    // By an agent that stands in for it; without a body it is given nothing.
    let run = scene.api.send("POST", "/api/workflow/mapped", &[], None);
    assert_eq!(run.status, 200, "{run:?}");
    scene.place.until("the agent has run", |place| !place.effects().is_empty());
    // What cannot be started is told.
    let refused = scene.api.post("/api/workflow/report?priority=100", json!({})).json(400);
    assert_eq!(refused["validationErrors"][0]["path"], "priority");
    let refused = scene.api.post("/api/workflow/report?version=latest", json!({})).json(400);
    assert_eq!(refused["message"], "version: it is the text \"latest\"; give a whole number");
    let viewer = scene.api.post("/api/tokens", json!({"name": "eyes", "role": "viewer"})).json(201);
    let viewer = scene.api.with_token(viewer["secret"].as_str());
    assert_eq!(viewer.post("/api/workflow/report", json!({})).status, 403);
    scene.end();
}

//! Workflows that are started on a server, or by agents that stand in for them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{On, Scene, now_in_seconds, on_both, schedule};
use crate::support::Place;

on_both![
    a_workflow_is_started_once_for_each_slot_and_told_its_times,
    a_server_that_fails_is_asked_again_and_starts_once
];

fn a_workflow_is_started_once_for_each_slot_and_told_its_times(on: On) {
    let scene = Scene::new("told", on);
    let mut wanted = schedule("each-second", "report", "* * * * * *");
    wanted["startWorkflowRequest"]["correlationId"] = json!("demo-${scheduledTime}");
    wanted["startWorkflowRequest"]["input"] =
        json!({"region": "eu", "at": "${scheduledTime}", "executionTime": "mine"});
    scene.save(wanted).json(200);
    let records = scene.until_ended("each-second", 3);
    scene.api.put("/api/scheduler/schedules/each-second/pause", json!(null));
    let starts = scene.conductor.starts();
    for start in &starts {
        let (body, input) = (&start.body, &start.body["input"]);
        let slot = input["scheduledTime"].as_i64().unwrap();
        assert_eq!(slot % 1_000, 0, "a slot is on its second");
        assert!(slot <= input["_executedTime"].as_i64().unwrap(), "never early");
        assert_eq!((&input["_scheduledTime"], &input["region"]), (&json!(slot), &json!("eu")));
        assert_eq!(input["executionTime"], "mine", "what was given stays");
        assert_eq!(input["_startedByScheduler"], "each-second");
        assert_eq!(input["_schedulerCron"], "* * * * * * UTC");
        assert_eq!((&body["correlationId"], &input["at"]), (&json!(format!("demo-{slot}")), &json!(slot.to_string())));
        assert_eq!((&body["name"], &body["version"]), (&json!("report"), &json!(1)));
        assert_eq!(body["idempotencyStrategy"], "RETURN_EXISTING");
    }
    let slots: BTreeSet<i64> = starts.iter().map(|it| it.body["input"]["scheduledTime"].as_i64().unwrap()).collect();
    assert_eq!(slots.len(), starts.len(), "no slot starts two");
    for record in &records {
        assert_eq!(record["state"], "EXECUTED");
        let start = starts.iter().find(|start| record["workflowId"] == start.id.as_str()).expect("it was started");
        assert_eq!(record["executionId"], start.body["input"]["_executionId"]);
        assert_eq!(record["scheduledTime"], start.body["input"]["scheduledTime"]);
    }
    scene.end();
}

fn a_server_that_fails_is_asked_again_and_starts_once(on: On) {
    let scene = Scene::new("asked-again", on);
    scene.conductor.fail_next(2, 503, "not now");
    scene.conductor.lose_answers(1);
    let soon = now_in_seconds() + 3;
    let mut wanted = schedule("once", "report", "* * * * * *");
    wanted["scheduleStartTime"] = json!(soon * 1_000);
    wanted["scheduleEndTime"] = json!(soon * 1_000 + 1);
    scene.save(wanted).json(200);
    let records = scene.until_ended("once", 1);
    assert_eq!(records[0]["state"], "EXECUTED", "{}", records[0]);
    assert_eq!(scene.conductor.starts().len(), 1, "the start whose answer was lost is not a second one");
    assert!(4 <= scene.conductor.requests(), "two failures, a lost answer, and the one that worked");
    let keys: BTreeSet<String> =
        scene.conductor.starts().iter().map(|it| it.body["idempotencyKey"].as_str().unwrap().to_owned()).collect();
    assert_eq!(keys.len(), 1);
    scene.end();
}

#[test]
fn what_a_server_refuses_is_final_and_told() {
    let scene = Scene::new("refused", On::Sqlite);
    scene.conductor.fail_next(1_000, 404, "{\"message\":\"No such workflow found by name\"}");
    scene.save(schedule("sad", "report", "* * * * * *")).json(200);
    let records = scene.until_ended("sad", 2);
    assert_eq!(records[0]["state"], "FAILED");
    let reason = records[0]["reason"].as_str().unwrap();
    assert!(reason.contains("404") && reason.contains("No such workflow"), "{reason}");
    assert_eq!(scene.conductor.starts(), []);
    scene.end();
}

#[test]
fn a_workflow_that_nobody_starts_is_saved_with_a_warning_and_each_run_fails() {
    let place = Place::new("conductor-nobody", "");
    let server = place.up();
    let api = crate::client::Client::of(&place);
    let saved = api.post("/api/scheduler/schedules", schedule("lonely", "report", "* * * * * *")).json(200);
    assert!(saved["warnings"][0].as_str().unwrap().contains("nobody starts workflow 'report'"), "{saved}");
    let mut record = Value::Null;
    place.until("it has failed", |_| {
        record = api.get("/api/scheduler/schedules/lonely/executions").json(200)[0].clone();
        record["state"] == "FAILED"
    });
    assert!(record["reason"].as_str().unwrap().contains("no_server"), "{record}");
    let refused = api.post("/api/workflow", json!({"name": "report"})).json(404);
    assert!(refused["message"].as_str().unwrap().contains("[conductor.workflows]"), "{refused}");
    assert!(server.stop().success());
    place.verify();
}

#[test]
fn an_agent_stands_in_for_a_workflow_and_is_told_the_same() {
    let scene = Scene::new("stand-in", On::Sqlite);
    let mut wanted = schedule("mapped-one", "mapped", "* * * * * *");
    wanted["startWorkflowRequest"]["correlationId"] = json!("c-${scheduledTime}");
    scene.save(wanted).json(200);
    scene.until_ended("mapped-one", 2);
    let effects = scene.place.effects();
    let context: Value = serde_json::from_str(effects.iter().find(|line| line.contains("runId")).unwrap()).unwrap();
    assert_eq!((&context["agentId"], &context["scheduleName"]), (&json!("stand-in"), &json!("mapped-one")));
    let inputs = &context["inputs"];
    assert_eq!((&inputs["from"], &inputs["scheduledTime"]), (&json!("mapped-one"), &context["scheduledTime"]));
    let slot = context["scheduledTime"].as_i64().unwrap();
    assert_eq!(context["workflow"], json!({"name": "mapped", "version": 1, "correlationId": format!("c-{slot}")}));
    assert_eq!(scene.conductor.starts(), []);
    scene.end();
}

#[test]
fn a_workflow_is_started_by_hand() {
    let scene = Scene::new("by-hand", On::Sqlite);
    let started = scene.api.post("/api/workflow", json!({"name": "report", "input": {"a": 1}}));
    assert_eq!(started.status, 200);
    assert!(started.header("content-type").unwrap().starts_with("text/plain"));
    let starts = scene.conductor.starts();
    assert_eq!((starts.len(), starts[0].id.as_str()), (1, started.text.as_str()));
    assert_eq!(starts[0].body["input"], json!({"a": 1}), "no schedule has started it");
    // By an agent, the id is that of its run.
    let run = scene.api.post("/api/workflow", json!({"name": "mapped"}));
    let shown = scene.api.get(&format!("/api/executions/{}", run.text)).json(200);
    assert_eq!(shown["agentId"], "stand-in");
    // The same key is the same start.
    let keyed = |strategy: &str| {
        scene
            .api
            .post("/api/workflow", json!({"name": "mapped", "idempotencyKey": "k1", "idempotencyStrategy": strategy}))
    };
    let first = keyed("RETURN_EXISTING");
    assert_eq!(keyed("RETURN_EXISTING").text, first.text);
    assert_eq!(keyed("FAIL").status, 409);
    scene.conductor.fail_next(1, 400, "bad input");
    let refused = scene.api.post("/api/workflow", json!({"name": "report"})).json(502);
    assert!(refused["message"].as_str().unwrap().contains("bad input"), "{refused}");
    assert_eq!(scene.api.post("/api/workflow", json!({"version": 1})).status, 400);
    scene.end();
}

#[test]
fn a_workflow_is_followed_to_its_end_when_asked() {
    let scene = Scene::new("followed", On::Sqlite);
    let soon = now_in_seconds() + 2;
    let mut wanted = schedule("long", "report", "* * * * * *");
    wanted["followWorkflow"] = json!(true);
    wanted["scheduleStartTime"] = json!(soon * 1_000);
    wanted["scheduleEndTime"] = json!(soon * 1_000 + 1);
    let saved = scene.save(wanted).json(200);
    assert_eq!(saved["followWorkflow"], true);
    scene.place.until("it is accepted", |_| scene.conductor.starts().len() == 1);
    assert_eq!(scene.records("long")[0]["state"], "POLLED", "it is not over");
    scene.conductor.finish(&scene.conductor.starts()[0].id, "FAILED");
    let records = scene.until_ended("long", 1);
    assert_eq!(records[0]["state"], "EXECUTED", "it was started, whatever became of it");
    assert!(records[0]["reason"].as_str().unwrap().contains("FAILED"), "{}", records[0]);
    scene.end();
}

#[test]
fn schedules_follow_the_configuration_to_another_agent() {
    let scene = Scene::new("remap", On::Sqlite);
    scene.save(schedule("moves", "report", "* * * * * *")).json(200);
    scene.until_ended("moves", 1);
    let config = scene.place.read("punctual.toml").replace("mapped = ", "report = \"stand-in\"\nmapped = ");
    scene.place.write("punctual.toml", &config);
    scene.place.until("an agent stands in for it", |place| !place.effects().is_empty());
    scene.end();
}

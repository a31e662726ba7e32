//! Errors, as people and programs get them: which field, what was found, what to give instead, and causes told once.

use std::collections::BTreeSet;

use punctual_lab::postgres::{Durability, Server as Postgres};
use serde_json::{Value, json};

use crate::client::{Answer, Client};
use crate::support::Place;

/// How the library that reads JSON says it.
const NOT_OURS: [&str; 8] = [
    "invalid type",
    "invalid value",
    "expected",
    "at line",
    "missing field",
    "unknown variant",
    "unknown field",
    "deserialize",
];

const CONFIG: &str = "[agents.reporter]\nrunner = \"process\"\ncommand = [\"true\"]\n";

/// A request that is wrong in one place.
struct Wrong {
    method: String,
    path: String,
    body: Option<Value>,
    /// What is at fault.
    field: String,
}

#[test]
fn every_value_of_a_wrong_type_is_refused_in_our_words_and_named() {
    let place = Place::new("errors", CONFIG);
    let server = place.up();
    let api = Client::of(&place);
    let description = api.get("/api/openapi.json").json(200);
    let mut walked = BTreeSet::new();
    let mut count = 0;
    for (path, item) in description["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            // Workflows are not kept here, whatever is sent.
            if path == "/api/metadata/workflow" {
                continue;
            }
            for wrong in wrong_requests(&description, path, method, operation) {
                let is_theirs = operation["tags"][0] == "conductor";
                check(&api, &wrong, is_theirs);
                walked.insert(format!("{method} {path}"));
                count += 1;
            }
        }
    }
    // Most operations take something, and each of theirs was tried.
    assert!(30 <= walked.len() && 300 <= count, "{count} requests to {walked:#?}");
    assert!(server.stop().success());
}

fn check(api: &Client, wrong: &Wrong, is_theirs: bool) {
    let Wrong { method, path, body, field } = wrong;
    let answer = api.send(method, path, &[], body.clone());
    let said = format!("{method} {path} {body:?} is answered with {} {}", answer.status, answer.text);
    assert!(matches!(answer.status, 400 | 422), "{said}");
    let told = told(&answer);
    let (named, kind) = match is_theirs {
        true => (&told["validationErrors"][0]["path"], "application/json"),
        false => (&told["field"], "application/problem+json"),
    };
    assert_eq!(named, field, "{said}");
    assert_eq!(answer.header("content-type"), Some(kind), "{said}");
    assert!(NOT_OURS.iter().all(|phrase| !answer.text.contains(phrase)), "{said}");
}

fn told(answer: &Answer) -> Value {
    serde_json::from_str(&answer.text).unwrap_or_else(|error| panic!("{error}: {}", answer.text))
}

/// A request for each parameter and each field with each kind of value that it cannot have.
fn wrong_requests(description: &Value, path: &str, method: &str, operation: &Value) -> Vec<Wrong> {
    let method = method.to_ascii_uppercase();
    let path = path.replace("{name}", "nightly").split('/').map(filled).collect::<Vec<_>>().join("/");
    let mut wrong = vec![];
    let mut strict = false;
    for parameter in operation["parameters"].as_array().into_iter().flatten().filter(|it| it["in"] == "query") {
        let name = parameter["name"].as_str().unwrap();
        strict = operation["tags"][0] != "conductor";
        for value in wrong_values(description, &parameter["schema"]) {
            // In a query all is text: what is no text elsewhere is a strange one here.
            let Some(text) = value.as_str() else { continue };
            let path = format!("{path}?{name}={text}");
            wrong.push(Wrong { method: method.clone(), path, body: None, field: name.to_owned() });
        }
    }
    if strict {
        let path = format!("{path}?colour=red");
        wrong.push(Wrong { method: method.clone(), path, body: None, field: "colour".to_owned() });
    }
    let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
    for (field, body) in wrong_bodies(description, schema) {
        wrong.push(Wrong { method: method.clone(), path: path.clone(), body: Some(body), field });
    }
    // A body that is not sent is not read where one is due.
    wrong.retain(|wrong| wrong.body.is_some() || wrong.method == "GET" || wrong.method == "DELETE");
    wrong
}

fn filled(part: &str) -> &str {
    if part.starts_with('{') { "0198f0c1-6f3a-7c44-9d1b-2f6c0e5a9b10" } else { part }
}

/// Bodies with one wrong value each, and the path to it.
fn wrong_bodies(description: &Value, schema: &Value) -> Vec<(String, Value)> {
    let schema = followed(description, schema);
    let mut bodies = vec![];
    if schema["additionalProperties"] == false {
        bodies.push(("colour".to_owned(), json!({"colour": "red"})));
    }
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        bodies.extend(wrong_values(description, field).into_iter().map(|value| (name.clone(), json!({name: value}))));
        for (inner, body) in wrong_bodies(description, field) {
            let dot = if inner.starts_with('[') { "" } else { "." };
            bodies.push((format!("{name}{dot}{inner}"), json!({name: body})));
        }
    }
    if let Some(items) = schema.get("items") {
        bodies.extend(wrong_values(description, items).into_iter().map(|value| ("[0]".to_owned(), json!([value]))));
        for (inner, body) in wrong_bodies(description, items) {
            let dot = if inner.starts_with('[') { "" } else { "." };
            bodies.push((format!("[0]{dot}{inner}"), json!([body])));
        }
    }
    bodies
}

/// Values that a schema does not allow.
fn wrong_values(description: &Value, schema: &Value) -> Vec<Value> {
    let schema = followed(description, schema);
    let kinds: Vec<&str> = match &schema["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => return vec![],
    };
    let mut wrong = vec![];
    for (kind, value) in [
        ("boolean", json!(true)),
        ("number", json!(1.5)),
        ("string", json!("nonsense")),
        ("array", json!([[]])),
        ("object", json!({"a": {}})),
    ] {
        let is_allowed = kinds.contains(&kind) || kind == "number" && kinds.contains(&"integer");
        wrong.extend((!is_allowed).then_some(value));
    }
    if kinds.contains(&"integer") {
        wrong.extend([json!(1.5), json!(-1e300)]);
    }
    let format = schema["format"].as_str().unwrap_or_default();
    if schema["enum"].is_array() || matches!(format, "uuid" | "date-time") {
        wrong.push(json!("nonsense"));
    }
    wrong
}

/// The schema that is meant: behind a reference, and without the null that may be in its place.
fn followed<'a>(description: &'a Value, schema: &'a Value) -> &'a Value {
    if let Some(reference) = schema["$ref"].as_str() {
        return followed(description, description.pointer(reference.trim_start_matches('#')).unwrap());
    }
    let choices = schema["oneOf"].as_array();
    match choices.and_then(|choices| choices.iter().find(|choice| choice["type"] != "null")) {
        Some(choice) => followed(description, choice),
        None => schema,
    }
}

#[test]
fn what_a_schema_leaves_open_and_what_is_misspelt_is_named_too() {
    let place = Place::new("errors-more", CONFIG);
    let server = place.up();
    let api = Client::of(&place);
    for (path, body, field, detail) in [
        ("/api/workflow", json!({"name": 5}), "name", "name: it is 5; give a text"),
        ("/api/workflow/report", json!([]), "", "the body: it is a list; give an object"),
        (
            "/api/scheduler/schedules",
            json!({"name": "x", "startWorkflowRequest": {"version": "one"}}),
            "startWorkflowRequest.version",
            "startWorkflowRequest.version: it is the text \"one\"; give a whole number",
        ),
    ] {
        let refused = api.post(path, body).json(400);
        assert_eq!(refused["message"], detail);
        assert_eq!(refused["validationErrors"][0]["path"].as_str().unwrap_or_default(), field);
    }
    let refused = api.post("/api/schedules", json!({"agentId": "reporter", "timezon": "UTC"}));
    assert_eq!(refused.problem(400), "malformed");
    let refused = refused.json(400);
    assert_eq!((&refused["field"], &refused["fix"]), (&json!("timezon"), &json!("did you mean timezone?")));
    let refused = api.get("/api/executions/past?agent=reporter").json(400);
    assert_eq!(refused["detail"], "agent: there is no such parameter; did you mean agentId?");
    let refused = api.get("/api/executions/0198f0c1-6f3a-7c44-9d1b-2f6c0e5a9b10/output?after=nonsense").json(400);
    assert_eq!(refused["field"], "after");
    // Who is lost is shown the way.
    assert!(api.get("/api/nowhere").json(404)["detail"].as_str().unwrap().contains("/api/docs"));
    assert!(api.delete("/api/nodes").json(405)["detail"].as_str().unwrap().contains("/api/docs"));
    assert!(api.get("/api/scheduler/nowhere").json(404)["message"].as_str().unwrap().contains("/api/docs"));
    assert_eq!(api.get("/api/scheduler/schedules/%FF").json(400)["code"], "malformed");
    assert!(server.stop().success());
}

#[test]
fn what_postgres_says_is_told_once() {
    let postgres = Postgres::start(Durability::Off).expect("PostgreSQL starts");
    let address = postgres.address();
    let (server, database) = address.rsplit_once('/').expect("it names a database");
    let options = database.split_once('?').map(|(_, options)| format!("?{options}")).unwrap_or_default();
    for (address, cause) in [
        (format!("{server}/nowhere{options}"), "database \"nowhere\" does not exist"),
        ("postgres://punctual@127.0.0.1:1/punctual".to_owned(), "Connection refused"),
    ] {
        let place = Place::new("errors-postgres", CONFIG).with_database(&address);
        let output = place.punctual(&["verify"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success());
        assert_eq!(said.matches(cause).count(), 1, "{said}");
        assert!(!said.contains("db error"), "{said}");
    }
}

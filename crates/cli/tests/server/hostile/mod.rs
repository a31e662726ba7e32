//! Hostile values through everything that carries one, on the real binary and both stores: an answer that is no failure of the
//! server, or a value that is kept; and a node that runs on, and starts again.

mod corpus;
mod rows;
mod settings;
mod walk;

use std::fmt::Write;

use punctual_lab::postgres::{Durability, Server as Postgres};
use serde_json::{Value, json};

use crate::client::{Answer, Client};
use crate::described::check_answer;
use crate::support::{Place, Server};
use corpus::Hostile;
use walk::Known;

/// Agents that do nothing, and the one whose run shows that all is well.
const CONFIG: &str = r#"
[engine]
executor_pool_size = 16
[conductor.workflows]
report = "reporter"
[agents.reporter]
runner = "process"
command = ["true"]
[agents.fresh]
runner = "process"
command = ["sh", "-c", "echo '{\"summary\": \"well\"}'"]
"#;

/// How many of the less hostile values each place gets; `PUNCTUAL_HOSTILE=all` tries every value everywhere.
const SOME: usize = 3;

/// A place on one of the stores, and what keeps that store.
struct Scene {
    place: Place,
    postgres: Option<Postgres>,
}

impl Scene {
    fn on_sqlite(test: &str, config: &str) -> Scene {
        Scene { place: Place::new(test, config), postgres: None }
    }

    fn on_postgres(test: &str, config: &str) -> Scene {
        let postgres = Postgres::start(Durability::Off).expect("PostgreSQL starts");
        let place = Place::new(&format!("{test}-pg"), config).with_database(&postgres.address());
        Scene { place, postgres: Some(postgres) }
    }

    /// A run that is asked for now comes to its end.
    fn runs_on(&self, api: &Client) {
        let asked = api.post("/api/executions/trigger", json!({"agentId": "fresh"})).json(202);
        let path = format!("/api/executions/past?executionId={}", asked["executionId"].as_str().unwrap());
        self.place.until("a fresh run ends", |_| api.get(&path).json(200)["content"][0]["resultStatus"] == "SUCCESS");
    }

    /// The node runs on; it stops when it is told, starts again, and runs on.
    fn is_well(&self, server: Server, api: &Client) {
        self.runs_on(api);
        assert!(server.stop().success(), "{}", self.place.read("log"));
        let log = self.place.read("log");
        for word in ["panicked", "next try in", "this is a bug"] {
            assert!(!log.contains(word), "{word}: {log}");
        }
        self.place.verify();
        std::fs::remove_file(self.place.path("log")).unwrap();
        let server = self.place.up();
        self.runs_on(&Client::of(&self.place));
        assert!(server.stop().success());
    }
}

/// The values that the place of this number is given.
fn values_for(all: &[Hostile], number: usize) -> Vec<&Hostile> {
    let (worst, others): (Vec<&Hostile>, Vec<&Hostile>) = all.iter().partition(|value| value.is_worst);
    let count = if std::env::var_os("PUNCTUAL_HOSTILE").is_some() { others.len() } else { SOME };
    let turned = others.iter().cycle().skip(number * SOME).take(count).copied();
    worst.into_iter().chain(turned).collect()
}

/// Sends one request as it is. `what` is hostile about it.
fn send(
    api: &Client,
    what: &str,
    method: &str,
    path: &str,
    header: Option<(&str, &[u8])>,
    body: Option<&str>,
) -> Answer {
    let mut head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
    write!(head, "Authorization: Bearer {}\r\n", api.token().unwrap()).unwrap();
    let mut request = head.into_bytes();
    if let Some((name, value)) = header {
        request.extend([name.as_bytes(), b": ", value, b"\r\n"].concat());
    }
    if let Some(body) = body {
        request.extend(format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len()).into_bytes());
    }
    request.extend(b"\r\n");
    request.extend(body.unwrap_or_default().as_bytes());
    let answer = api.raw(&request);
    assert!(
        (200..500).contains(&answer.status),
        "{what}: {method} {} {}: {answer:?}",
        short(path),
        short(body.unwrap_or_default())
    );
    // What is no request at all is answered before anybody has seen which one it is.
    if let Some(kind) = answer.header("content-type") {
        check_answer(method, path, answer.status, Some(kind), &answer.text);
    }
    answer
}

fn short(text: &str) -> String {
    text.chars().take(1_000).collect()
}

fn every_value_of_the_api_may_be_hostile(scene: &Scene) {
    let server = scene.place.up();
    let api = Client::of(&scene.place);
    let schedule = json!({"agentId": "reporter", "name": "first", "scheduleType": "CRON", "cronExpr": "0 9 * * *"});
    let schedule = api.post("/api/schedules", schedule).json(201)["scheduleId"].as_str().unwrap().to_owned();
    let nightly = json!({"name": "nightly-report", "cronExpression": "0 0 9 * * *",
        "startWorkflowRequest": {"name": "report"}});
    assert_eq!(api.post("/api/scheduler/schedules", nightly).status, 200);
    let run = api.post("/api/executions/trigger", json!({"agentId": "reporter"})).json(202);
    let known = Known { schedule, run: run["executionId"].as_str().unwrap().to_owned() };
    let all = corpus::all();
    let cases = walk::cases(&known);
    assert!(200 < cases.len(), "the description is walked: {}", cases.len());
    let mut taken = 0;
    for (number, case) in cases.iter().enumerate() {
        for (turn, value) in values_for(&all, number).into_iter().enumerate() {
            let bytes = value.bytes();
            // A path ends somewhere, and without a name in its place it is another one.
            if case.is_in_path() && (60_000 < bytes.len() || bytes.is_empty()) {
                continue;
            }
            let path = if case.is_in_path() { case.path(&bytes) } else { case.path(b"") };
            // A name is taken once: each request has its own, unless that is what is hostile.
            let body =
                case.body(&value.json).map(|body| body.replace("\"morning-report\"", &format!("\"n{number}-{turn}\"")));
            let header = case.header().map(|name| (name, bytes.as_slice()));
            let answer = send(&api, value.name, &case.method, &path, header, body.as_deref());
            taken += usize::from(answer.status < 300);
        }
    }
    assert!(100 < taken, "much of it is no worse than odd: {taken}");
    // What was let in can be read.
    for path in [
        "/api/schedules?size=1000",
        "/api/executions/future?size=1000",
        "/api/executions/past?size=1000",
        "/api/executions/metrics",
        "/api/journal?limit=1000",
        "/api/projects",
        "/api/approvals",
        "/api/tokens",
        "/api/nodes",
        "/api/scheduler/schedules",
        "/api/scheduler/schedules/search",
        "/api/scheduler/search/executions",
        "/metrics",
    ] {
        assert_eq!(api.get(path).status, 200, "{path}");
    }
    scene.is_well(server, &api);
}

#[test]
fn every_value_of_the_api_may_be_hostile_on_sqlite() {
    every_value_of_the_api_may_be_hostile(&Scene::on_sqlite("hostile-api", CONFIG));
}

#[test]
fn every_value_of_the_api_may_be_hostile_on_postgres() {
    every_value_of_the_api_may_be_hostile(&Scene::on_postgres("hostile-api", CONFIG));
}

/// What an agent may print, with one value in all the places that a result has.
fn results(value: &str) -> [String; 3] {
    [
        format!(
            r#"{{"summary":{value},"refs":{{"k":{value}}},"llm":{{"model":{value},"promptTokens":{value},"completionTokens":{value},"estimatedCostUsd":{value}}},"tools":{{"k":{value}}},"facts":{{"k":{value}}}}}"#
        ),
        format!(r#"{{"nextRunAt":{value},"facts":{{"k":[{value},{{"k":{value}}}]}}}}"#),
        format!(r#"{{"error":{{"code":{value},"message":{value},"retryable":{value}}}}}"#),
    ]
}

fn every_value_of_a_result_may_be_hostile(scene: fn(&str, &str) -> Scene) {
    let mut lines: Vec<String> = corpus::all().iter().flat_map(|value| results(&value.json)).collect();
    lines.push(r#"{"facts":{"a\u0000b":{"\u0000":1}},"summary":"keys"}"#.to_owned());
    lines.push(format!("{{\"summary\":\"{}\"}}", "x".repeat(10 * 1024 * 1024)));
    let mut config = CONFIG.to_owned();
    for number in 0..lines.len() {
        write!(config, "[agents.r{number}]\nrunner = \"process\"\ncommand = [\"cat\", \"result-{number}\"]\n").unwrap();
    }
    let scene = scene("hostile-results", &config);
    lines.iter().enumerate().for_each(|(number, line)| scene.place.write(&format!("result-{number}"), line));
    let server = scene.place.up();
    let api = Client::of(&scene.place);
    for number in 0..lines.len() {
        // Of a schedule, so that the run that it asks for is planned.
        let schedule =
            json!({"agentId": format!("r{number}"), "scheduleType": "IMMEDIATE", "executorPolicy": {"maxAttempts": 1}});
        api.post("/api/schedules", schedule).json(201);
    }
    let ended = |api: &Client| {
        let page = api.get("/api/executions/past?size=1000").json(200);
        page["content"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|it| it["startedAt"].is_string())
            .cloned()
            .collect::<Vec<Value>>()
    };
    scene.place.until("all of them end", |_| lines.len() <= ended(&api).len());
    let history = ended(&api);
    for past in &history {
        assert_ne!(past["errorCode"], "report_refused", "{past}");
        assert!(!past.to_string().contains("report_refused"), "{past}");
    }
    scene.is_well(server, &api);
}

#[test]
fn every_value_of_a_result_may_be_hostile_on_sqlite() {
    every_value_of_a_result_may_be_hostile(Scene::on_sqlite);
}

#[test]
fn every_value_of_a_result_may_be_hostile_on_postgres() {
    every_value_of_a_result_may_be_hostile(Scene::on_postgres);
}

/// An agent whose next time is finer than a store keeps, on a schedule of the file.
const FINE: &str = r#"
[agents.fine]
runner = "process"
command = ["cat", "fine"]
[[schedules]]
name = "fine"
agent = "fine"
cron = "0 0 1 1 *"
"#;

fn a_next_run_at_finer_than_a_microsecond_stops_nothing(scene: fn(&str, &str) -> Scene) {
    let scene = scene("hostile-fine", &format!("{CONFIG}{FINE}"));
    scene.place.write("fine", "{\"nextRunAt\":\"2027-01-01T00:00:00.123456789Z\"}\n");
    let server = scene.place.up();
    let api = Client::of(&scene.place);
    let id = api.get("/api/schedules?name=fine").json(200)[0]["scheduleId"].as_str().unwrap().to_owned();
    let run = api.post("/api/executions/trigger", json!({"scheduleId": id})).json(202);
    let path = format!("/api/executions/past?executionId={}", run["executionId"].as_str().unwrap());
    scene.place.until("it ends", |_| api.get(&path).json(200)["totalElements"] == 1);
    assert_eq!(api.get(&path).json(200)["content"][0]["resultStatus"], "SUCCESS");
    let queue = api.get("/api/executions/future?dateKey=2027-01-01&agentId=fine").json(200);
    let next = queue.as_array().unwrap().iter().find(|it| it["scheduledAt"] == "2027-01-01T00:00:00.123456Z");
    assert!(next.is_some(), "the run that it asks for is there, to the microsecond: {queue}");
    scene.is_well(server, &api);
}

#[test]
fn a_next_run_at_finer_than_a_microsecond_stops_nothing_on_sqlite() {
    a_next_run_at_finer_than_a_microsecond_stops_nothing(Scene::on_sqlite);
}

#[test]
fn a_next_run_at_finer_than_a_microsecond_stops_nothing_on_postgres() {
    a_next_run_at_finer_than_a_microsecond_stops_nothing(Scene::on_postgres);
}

fn a_nul_in_a_name_or_a_filter_is_refused_with_its_field(scene: &Scene) {
    let server = scene.place.up();
    let api = Client::of(&scene.place);
    for (path, body, field) in [
        ("/api/executions/trigger", json!({"agentId": "reporter", "projectId": "a\0b"}), "projectId"),
        ("/api/executions/trigger", json!({"agentId": "reporter", "inputs": {"list": [1, "\0"]}}), "inputs.list[1]"),
        ("/api/schedules", json!({"agentId": "reporter", "scheduleType": "IMMEDIATE", "name": "a\0"}), "name"),
        ("/api/tokens", json!({"name": "ada", "role": "viewer", "projects": ["a\0b"]}), "projects[0]"),
    ] {
        let refused = api.post(path, body).json(422);
        assert_eq!((&refused["code"], &refused["field"]), (&json!("invalid_value"), &json!(field)), "{refused}");
    }
    let long = api.post("/api/executions/trigger", json!({"agentId": "reporter", "projectId": "x".repeat(5_000)}));
    assert_eq!(long.json(422)["field"], "projectId");
    for (path, field) in [
        ("/api/executions/past?agentId=a%00b", "agentId"),
        ("/api/executions/future?projectId=%00", "projectId"),
        ("/api/executions/metrics?from=2026-01-01&projectId=x%00", "projectId"),
        ("/api/schedules?name=%00", "name"),
        ("/api/journal?kind=%00", "kind"),
    ] {
        assert_eq!(api.get(path).json(422)["field"], field, "{path}");
    }
    for path in ["/api/scheduler/search/executions?freeText=%00", "/api/scheduler/schedules/search?name=%00"] {
        assert_eq!(api.get(path).json(400)["code"], "invalid_value", "{path}");
    }
    assert_eq!(api.get("/api/scheduler/schedules/a%00b").status, 404);
    assert_eq!(api.get("/api/schedules/a%00b").status, 404);
    scene.is_well(server, &api);
}

#[test]
fn a_nul_in_a_name_or_a_filter_is_refused_with_its_field_on_sqlite() {
    a_nul_in_a_name_or_a_filter_is_refused_with_its_field(&Scene::on_sqlite("hostile-nul", CONFIG));
}

#[test]
fn a_nul_in_a_name_or_a_filter_is_refused_with_its_field_on_postgres() {
    a_nul_in_a_name_or_a_filter_is_refused_with_its_field(&Scene::on_postgres("hostile-nul", CONFIG));
}

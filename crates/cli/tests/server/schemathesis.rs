//! The description of the API, held against the server by Schemathesis: requests that it makes up from the description, right
//! ones and wrong ones, as an admin and as a viewer.

use std::path::Path;
use std::process::{Command, Stdio};

use punctual_lab::postgres::{Durability, Server as Postgres};
use serde_json::{Value, json};

use crate::client::Client;
use crate::support::Place;

/// Set, it is the long form, with so many cases for each operation on each store: `cargo xtask schemathesis`.
const LONG: &str = "PUNCTUAL_SCHEMATHESIS_CASES";

/// In the long form, another seed is another set of cases.
const SEED: &str = "PUNCTUAL_SCHEMATHESIS_SEED";

/// Where the hooks are.
const HOOKS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python");

/// Agents that do nothing, under the names that the examples of the description have.
const CONFIG: &str = r#"
[agents.reporter]
runner = "process"
command = ["true"]
risk = "read"

[agents.reconciler]
runner = "process"
command = ["true"]
risk = "write"

[agents.failing]
runner = "process"
command = ["sh", "-c", "echo it fails; exit 3"]

[conductor.workflows]
report = "reporter"
broken = "failing"
"#;

/// Checks that are not made, and why.
const LEFT_OUT: [&str; 2] = [
    // Each route is walked with every role in `api.rs`; here it would only fill the time that wrong tokens have to wait.
    "ignored_auth",
    // A schema cannot say which agents, zones and names there are, nor what a cron is: much that fits it is rightly refused.
    "positive_data_acceptance",
];

/// How much is tried.
struct Extent {
    phases: &'static str,
    /// Made-up cases for each operation, besides those that the schemas' edges give.
    cases: &'static str,
    /// What the made-up cases depend on; without one they are the same each time.
    seed: Option<String>,
    /// Fewer than so many cases mean that it has looked at next to nothing.
    cases_min: u64,
}

#[test]
fn every_answer_is_as_described_and_every_wrong_request_is_refused() {
    match std::env::var(LONG) {
        Err(_) => {
            let full = Extent { phases: "examples,coverage,fuzzing", cases: "4", seed: None, cases_min: 1_500 };
            let quick = Extent { phases: "fuzzing", cases: "10", seed: None, cases_min: 300 };
            try_on("schemathesis", None, &full, &quick);
        }
        Ok(cases) => {
            let cases: &'static str = cases.leak();
            let seed = Some(std::env::var(SEED).unwrap_or_else(|_| "1".to_owned()));
            let full = Extent { phases: "examples,coverage,fuzzing,stateful", cases, seed, cases_min: 3_000 };
            try_on("schemathesis-long", None, &full, &full);
            let postgres = Postgres::start(Durability::Off).expect("PostgreSQL starts");
            try_on("schemathesis-pg", Some(&postgres), &full, &full);
        }
    }
}

fn try_on(test: &str, postgres: Option<&Postgres>, as_admin: &Extent, as_viewer: &Extent) {
    let mut place = Place::new(test, CONFIG);
    if let Some(postgres) = postgres {
        place = place.with_database(&postgres.address());
    }
    let server = place.up();
    let admin = Client::of(&place);
    let viewer = admin.post("/api/tokens", json!({"name": "eyes", "role": "viewer"})).json(201);
    let viewer = admin.with_token(viewer["secret"].as_str());
    let known = furnish(&place, &admin);
    try_as(&place, "admin", &admin, &known, as_admin);
    // Somebody may have paused everything, or taken what was there.
    admin.get("/api/scheduler/admin/resume").json(200);
    let known = furnish(&place, &admin);
    try_as(&place, "viewer", &viewer, &known, as_viewer);
    // All of it is written, and none of it has hurt.
    admin.get("/health/ready").json(200);
    let log = place.read("log");
    assert!(!log.contains("ERROR") && !log.contains("panicked"), "{log}");
    assert!(server.stop().success());
    place.verify();
}

/// Makes some of everything, and says under which names and ids it is there.
fn furnish(place: &Place, api: &Client) -> Value {
    let round = api.get("/api/schedules?size=1000").json(200).as_array().map_or(0, Vec::len);
    let id = |answer: Value, field: &str| answer[field].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned();
    let schedules: Vec<String> = (0..4)
        .map(|index| {
            let (name, gate) = (format!("known-{round}-{index}"), json!({"riskGate": index == 0}));
            let body = json!({
                "agentId": if index == 0 { "reconciler" } else { "reporter" }, "name": name, "scheduleType": "CRON",
                "cronExpr": "0 9 * * MON-FRI", "timezone": "America/Denver", "executorPolicy": gate, "maxRuns": 9,
                "inputsPolicy": {"inputType": "all"}, "startAt": "2026-01-01T00:00:00Z", "prompt": "look",
            });
            id(api.post("/api/schedules", body).json(201), "scheduleId")
        })
        .collect();
    let run = |body: Value| id(api.post("/api/executions/trigger", body).json(202), "executionId");
    let waiting = run(json!({"scheduleId": schedules[0]}));
    let runs = [run(json!({"agentId": "reporter"})), run(json!({"scheduleId": schedules[1]})), waiting.clone()];
    let past = || api.get("/api/executions/past?agentId=reporter").json(200)["content"].clone();
    place.until("two runs are over", |_| past().as_array().is_some_and(|items| 2 <= items.len()));
    let past: Vec<String> = past().as_array().unwrap().iter().map(|it| id(it.clone(), "pastExecutionId")).collect();
    let names: Vec<String> = (0..3).map(|index| format!("known-{round}-{index}")).collect();
    for name in &names {
        let body = json!({
            "name": name, "cronExpression": "0 0 9 * * MON-FRI", "zoneId": "Europe/Paris",
            "startWorkflowRequest": {"name": "report", "input": {"region": "eu"}}, "tags": [{"key": "team", "value": "a"}],
        });
        api.post("/api/scheduler/schedules", body).json(200);
    }
    json!({
        "scheduleId": schedules, "executionId": runs, "runId": [waiting, runs[0]], "pastExecutionId": past, "name": names,
    })
}

fn try_as(place: &Place, role: &str, api: &Client, known: &Value, extent: &Extent) {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("it lies in the target folder");
    let python = punctual_lab::python::find(&target.join("python")).unwrap_or_else(|error| panic!("{error:#}"));
    let report = place.path(&format!("schemathesis-{role}.json"));
    let admin = Client::of(place);
    // The tokens that are used here, and what is there for more than one request.
    let tokens = admin.get("/api/tokens").json(200);
    let tokens = tokens.as_array().unwrap().iter().filter(|token| token["name"] == "eyes" || token["role"] == "admin");
    let ids = known.as_object().unwrap().values().flat_map(|values| values.as_array().unwrap());
    let kept: Vec<&Value> = tokens.map(|token| &token["tokenId"]).chain(ids).collect();
    let mut command = Command::new(python);
    command.args(["-B", "-m", "schemathesis.cli", "run", &format!("{}/api/openapi.json", api.url())]);
    command.args(["--header", &format!("Authorization: Bearer {}", api.token().unwrap())]);
    command.args(["--checks", "all", "--exclude-checks", &LEFT_OUT.join(",")]);
    // An answer that is a stream has no end.
    command.args(["--exclude-path-regex", "/stream$"]);
    command.args(["--phases", extent.phases, "--max-examples", extent.cases]);
    match &extent.seed {
        Some(seed) => command.args(["--seed", seed, "--generation-database", "none"]),
        None => command.arg("--generation-deterministic"),
    };
    command.args(["--workers", "1"]);
    command.args(["--continue-on-failure", "--request-timeout", "60", "--suppress-health-check", "all", "--no-color"]);
    command.arg("--report-json-path").arg(&report);
    command.env("SCHEMATHESIS_HOOKS", "api_hooks").env("PYTHONPATH", HOOKS).env("PYTHONDONTWRITEBYTECODE", "1");
    command.env("PUNCTUAL_KNOWN", known.to_string()).env("PUNCTUAL_KEPT", json!(kept).to_string());
    command.env("PUNCTUAL_TOKEN", api.token().unwrap());
    // What it leaves behind goes with the folder.
    command.current_dir(place.path("")).stdin(Stdio::null());
    let output = command.output().expect("Python starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "as {role}:\n{said}{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&std::fs::read(&report).unwrap()).unwrap();
    let cases = report["test_cases"]["generated"].as_u64().unwrap_or(0);
    assert!(extent.cases_min <= cases, "as {role} only {cases} cases were tried:\n{said}");
    println!("as {role}: {cases} cases");
}

//! Results: what agents print about tokens and money is understood, or told; and whatever they print, it can be summed up.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use punctual_lab::postgres::{Durability, Server as Postgres};
use serde_json::{Value, json};

use crate::client::Client;
use crate::support::Place;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// An agent that prints what it is asked.
const CONFIG: &str = r#"
[agents.echo]
runner = "process"
command = ["cat"]
stdin = "prompt"
max_concurrent = 8
[prices]
version = "2026-11"
[prices.models."m-1"]
prompt = 3
completion = 15
cached = 0.3
cache_write = 3.75
"#;

fn recorded(name: &str) -> String {
    fs::read_to_string(format!("{ROOT}/crates/agents/tests/recorded/{name}")).unwrap()
}

/// What became of runs of the agent that printed this, in the same order.
fn printed(place: &Place, api: &Client, outputs: &[String]) -> Vec<Value> {
    let trigger = |output: &String| {
        let asked = api.post("/api/executions/trigger", json!({"agentId": "echo", "prompt": output})).json(202);
        asked["executionId"].as_str().unwrap().to_owned()
    };
    let runs: Vec<String> = outputs.iter().map(trigger).collect();
    let past =
        |run: &String| api.get(&format!("/api/executions/past?executionId={run}")).json(200)["content"][0].clone();
    runs.iter()
        .map(|run| {
            place.until("it has ended", |_| !past(run).is_null());
            past(run)
        })
        .collect()
}

fn results_are_understood_or_told(place: &Place) {
    let server = place.up();
    let api = Client::of(place);
    let indented =
        json!({"summary": "a", "llm": {"model": "m-1", "prompt_tokens": 1_000_000, "completion_tokens": 100_000}});
    let outputs = [
        format!("begin\n{indented:#}\nand a line after it\n"),
        r#"{"summary": "b", "llm": {"model": "gpt-x", "promptTokens": 10, "tokensUsed": 3}}"#.to_owned(),
        r#"{"summary": "c", "llm": "gpt-x"}"#.to_owned(),
        r#"{"sumary": "d"}"#.to_owned(),
        recorded("claude-code.json"),
        recorded("claude-code-error.json"),
    ];
    let past = printed(place, &api, &outputs);
    let told = |past: &Value| (past["responseSummary"].clone(), past["warnings"].clone());
    assert_eq!(told(&past[0]), (json!("a"), json!([])));
    assert_eq!(past[0]["llmMetrics"]["estimatedCostUsd"], json!(4.5));
    let warnings = json!(["result: unknown field llm.tokensUsed", "no price for model gpt-x"]);
    assert_eq!(told(&past[1]), (json!("b"), warnings.clone()));
    assert_eq!(past[1]["llmMetrics"], json!({"model": "gpt-x", "promptTokens": 10, "tokensUsed": 3}));
    let string = "result: llm is a string, not an object: taken for the name of the model";
    assert_eq!(told(&past[2]), (json!("c"), json!([string])));
    assert_eq!(past[2]["llmMetrics"]["model"], "gpt-x");
    assert_eq!(told(&past[3]), (json!(null), json!(["result: unknown field sumary; did you mean summary?"])));
    assert_eq!((&past[4]["llmMetrics"]["estimatedCostUsd"], &past[4]["warnings"]), (&json!(0.0529), &json!([])));
    assert_eq!(past[4]["sessionId"], "550e8400-e29b-41d4-a716-446655440001");
    assert_eq!(
        (&past[5]["resultStatus"], &past[5]["errorMessage"]),
        (&json!("FAIL"), &json!("Invalid API key · Fix external API key"))
    );

    // Wherever somebody looks.
    let run = past[1]["executionId"].as_str().unwrap();
    let all = place.json(&["history", "--json", "--run", run]);
    assert_eq!(all["content"][0]["warnings"], warnings);
    let shown = |args: &[&str]| String::from_utf8(place.punctual(args).stdout).unwrap();
    let history = shown(&["history", "--run", run]);
    assert!(history.contains("[2 warnings] b") && history.contains("punctual why RUN"), "{history}");
    let why = shown(&["why", run]);
    assert!(why.contains("no price for model gpt-x (warning)"), "{why}");
    let log = place.read("log");
    assert!(
        log.lines()
            .any(|line| line.contains("WARN") && line.contains(run) && line.contains("no price for model gpt-x")),
        "{log}"
    );
    assert!(server.stop().success());
    place.verify();
}

#[test]
fn results_are_understood_or_told_on_sqlite() {
    results_are_understood_or_told(&Place::new("results", CONFIG));
}

#[test]
fn results_are_understood_or_told_on_postgres() {
    let postgres = Postgres::start(Durability::Off).expect("PostgreSQL starts");
    results_are_understood_or_told(&Place::new("results-pg", CONFIG).with_database(&postgres.address()));
}

fn hostile_figures_can_be_summed_up(place: &Place) {
    let server = place.up();
    let api = Client::of(place);
    let figures = [
        "1e308",
        "1e999",
        "9223372036854775807",
        "9223372036854775808",
        "18446744073709551615",
        "\"18446744073709551615\"",
        "\"NaN\"",
        "NaN",
        "-Infinity",
        "-1e308",
        "[]",
    ];
    let output = |figure: &&str| {
        let (tokens, cost) =
            (format!("\"promptTokens\": {figure}, \"totalTokens\": {figure}"), format!("\"costUsd\": {figure}"));
        format!("{{\"summary\": \"x\", \"llm\": {{\"model\": \"m-1\", {tokens}, {cost}}}}}")
    };
    let outputs: Vec<String> = figures.iter().map(output).collect();
    let past = printed(place, &api, &outputs);
    for (past, figure) in past.iter().zip(figures) {
        assert_eq!(past["responseSummary"], "x", "{figure}: {past}");
        let warnings = past["warnings"].as_array().unwrap();
        assert!(
            warnings.iter().any(|it| it.as_str().unwrap().starts_with("result: llm.promptTokens is ")),
            "{figure}: {past}"
        );
    }
    // Six are more than anything costs, and are counted as the most; the others as nothing.
    let metrics = api.get("/api/executions/metrics").json(200);
    assert_eq!(
        (&metrics["totalRuns"], &metrics["totalTokens"]),
        (&json!(figures.len()), &json!(6_000_000_000_000_u64)),
        "{metrics}"
    );
    assert_eq!(metrics["estimatedCostUsd"], json!(6_000_000.0), "{metrics}");
    assert!(
        api.get("/metrics")
            .text
            .contains("punctual_llm_tokens_total{agent=\"echo\",result=\"succeeded\"} 6000000000000")
    );
    assert!(server.stop().success());
    place.verify();
}

#[test]
fn hostile_figures_can_be_summed_up_on_sqlite() {
    hostile_figures_can_be_summed_up(&Place::new("results-sums", CONFIG));
}

#[test]
fn hostile_figures_can_be_summed_up_on_postgres() {
    let postgres = Postgres::start(Durability::Off).expect("PostgreSQL starts");
    hostile_figures_can_be_summed_up(&Place::new("results-sums-pg", CONFIG).with_database(&postgres.address()));
}

/// Runs an example of `examples/agents` as it is. In the place of the tool, which would need a key, stands a program that notes how it
/// was called and prints what was recorded.
fn played(example: &str, tool: &str, recording: &str) -> (Place, Value) {
    let place = Place::new(&format!("results-{example}"), "");
    for (name, to) in
        [(format!("{example}.toml"), "punctual.toml".to_owned()), (format!("{example}.sh"), format!("{example}.sh"))]
    {
        if let Ok(text) = fs::read_to_string(format!("{ROOT}/examples/agents/{name}")) {
            place.write(&to, &text);
        }
    }
    fs::create_dir(place.path("bin")).unwrap();
    place.write("recording", &recorded(recording));
    place.write(
        &format!("bin/{tool}"),
        "#!/bin/sh\nprintf '%s\\n' \"$@\" > called\ncat > asked\nenv > environment\ncat recording\n",
    );
    fs::set_permissions(place.path(&format!("bin/{tool}")), fs::Permissions::from_mode(0o755)).unwrap();
    let keys = "ANTHROPIC_API_KEY=key-1 CODEX_API_KEY=key-1 GEMINI_API_KEY=key-1 OPENAI_API_KEY=key-1";
    let starter = format!("{keys} PATH=\"$PWD/bin:$PATH\" exec \"$0\" up");
    let server = place.up_by(Command::new("sh").args(["-c", &starter]));
    let api = Client::of(&place);
    let schedules = api.get("/api/schedules").json(200);
    api.post("/api/executions/trigger", json!({"scheduleId": schedules[0]["scheduleId"]})).json(202);
    place.until("it has ended", |_| api.get("/api/executions/past").json(200)["totalElements"] == 1);
    let past = api.get("/api/executions/past").json(200)["content"][0].clone();
    assert_eq!((&past["resultStatus"], &past["warnings"]), (&json!("SUCCESS"), &json!([])), "{past}");
    assert!(server.stop().success());
    (place, past)
}

/// The summary, the session, all tokens, and the cost.
fn figures(past: &Value) -> (&str, &Value, u64, f64) {
    let llm = &past["llmMetrics"];
    let tokens = llm["promptTokens"].as_u64().unwrap() + llm["completionTokens"].as_u64().unwrap();
    let cost = (llm["estimatedCostUsd"].as_f64().unwrap() * 1e6).round() / 1e6;
    (past["responseSummary"].as_str().unwrap(), &past["sessionId"], tokens, cost)
}

#[test]
fn the_example_of_claude_code_works() {
    let (place, past) = played("claude-code", "claude", "claude-code.json");
    let session = json!("550e8400-e29b-41d4-a716-446655440001");
    assert_eq!(figures(&past), ("Three reminders are due today.\n\n- R-1\n- R-2\n- R-3", &session, 49_781, 0.0529));
    assert!(place.read("asked").starts_with("Which TODOs"));
    assert!(place.read("called").starts_with("-p\n--output-format\njson\n"));
    assert!(place.read("environment").contains("ANTHROPIC_API_KEY=key-1"));
}

#[test]
fn the_example_of_codex_works() {
    let (place, past) = played("codex", "codex", "codex.jsonl");
    let session = json!("0199a213-81c0-7800-8aa1-bbab2a035a53");
    // 315 fresh, 24,448 cached, 122 written.
    assert_eq!(figures(&past), ("There is a README.md in the repository root.", &session, 24_885, 0.00467));
    assert!(place.read("asked").starts_with("Is the README"));
    assert!(place.read("called").starts_with("exec\n--json\n"));
}

#[test]
fn the_example_of_gemini_works() {
    let (place, past) = played("gemini", "gemini", "gemini.json");
    let session = json!("b3c1b5a0-6f3e-4a57-9a3c-0d4e6a2a1f11");
    assert_eq!(figures(&past), ("The capital of France is Paris.", &session, 34_146, 0.020634));
    assert_eq!(past["toolCallSummary"]["totalCalls"], 1);
    assert!(place.read("asked").starts_with("What changed"));
}

#[test]
fn the_examples_of_apis_work() {
    let (place, past) = played("anthropic-api", "curl", "anthropic.json");
    assert_eq!(figures(&past), ("Good morning.", &json!(null), 4_098, 0.01773));
    let called = place.read("called");
    assert!(called.contains("Wish the team a good morning") && !called.contains("key-1"), "{called}");
    assert!(place.read("asked").contains("x-api-key: key-1"));
    let (place, past) = played("openai-api", "curl", "openai-response.json");
    assert_eq!(figures(&past), ("In a peaceful grove a unicorn slept.", &json!(null), 123, 0.000744));
    assert!(place.read("asked").contains("Bearer key-1") && !place.read("called").contains("key-1"));
}

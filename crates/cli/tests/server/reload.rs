//! The configuration changes under a running server.

use serde_json::{Value, json};

use crate::client::Client;
use crate::support::Place;

fn config(agents: &[&str], schedules: &str) -> String {
    let agent = |name: &&str| {
        format!("[agents.{name}]\nrunner = \"process\"\ncommand = [\"sh\", \"-c\", \"echo {name} >> effects\"]\n")
    };
    agents.iter().map(agent).collect::<String>() + schedules
}

fn agents(api: &Client) -> Vec<String> {
    let agents = api.get("/api/agents").json(200);
    agents.as_array().unwrap().iter().map(|agent| agent["agentId"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_changed_file_is_taken_over_and_a_bad_one_is_not() {
    let nightly = "[[schedules]]\nname = \"nightly\"\nagent = \"one\"\ncron = \"0 3 * * *\"\n";
    let place = Place::new("reload", &config(&["one"], nightly));
    let server = place.up();
    let api = Client::of(&place);
    assert_eq!(agents(&api), ["one"]);

    // It is noticed by itself; a new agent can be used at once.
    place.write("punctual.toml", &config(&["one", "two"], nightly));
    place.until("the new agent is there", |_| agents(&api) == ["one", "two"]);
    api.post("/api/executions/trigger", json!({"agentId": "two"})).json(202);
    place.until("it has run", |place| place.effects() == ["two"]);

    // What is wrong changes nothing, and is told.
    for (bad, said) in [
        ("[agents.one\nrunner =", "the old one stays in force"),
        ("[agents.one]\nrunner = \"process\"\ncommand = []\n", "there is no program in it"),
        // Whoever saves a file may empty it first.
        ("", "punctual.toml is empty"),
        ("\n# soon\n", "punctual.toml is empty"),
    ] {
        place.write("log", "");
        place.write("punctual.toml", bad);
        place.until("it is told", |place| place.read("log").contains(said));
        assert_eq!(agents(&api), ["one", "two"]);
        assert_eq!(api.get("/api/schedules").json(200).as_array().map(Vec::len), Some(1));
    }

    let id = api.get("/api/schedules").json(200)[0]["scheduleId"].clone();
    std::fs::remove_file(place.path("punctual.toml")).unwrap();
    place.until("it is told", |place| place.read("log").contains("punctual.toml is gone"));
    place.write("punctual.toml", &config(&["one"], nightly));
    place.until("the file is back", |_| agents(&api) == ["one"]);
    assert_eq!(api.get("/api/schedules").json(200)[0]["scheduleId"], id, "it is the same schedule");

    // A schedule that is gone from the file goes; a run of an agent that is gone ends with its reason.
    let hourly = "[[schedules]]\nname = \"hourly\"\nagent = \"two\"\nevery = \"1h\"\n";
    place.write("punctual.toml", &config(&["two"], hourly));
    server.signal("HUP");
    let names = |api: &Client| -> Vec<Value> {
        api.get("/api/schedules").json(200).as_array().unwrap().iter().map(|it| it["name"].clone()).collect()
    };
    place.until("the schedules are those of the file", |_| names(&api) == [json!("hourly")]);
    assert_eq!(api.post("/api/executions/trigger", json!({"agentId": "one"})).problem(422), "invalid_value");
    assert!(server.stop().success());
    place.verify();
}

#[test]
fn a_start_without_a_file_deletes_nothing() {
    let nightly = "[[schedules]]\nname = \"nightly\"\nagent = \"one\"\ncron = \"0 3 * * *\"\n";
    let place = Place::new("reload-blank", &config(&["one"], nightly));
    let up = |said: &str| {
        place.write("log", "");
        let server = place.up();
        place.until("it is up", |place| place.read("log").contains("has joined"));
        assert!(place.read("log").contains(said), "{said}: {}", place.read("log"));
        let names = place.json(&["schedule", "list", "--json"]);
        assert!(server.stop().success());
        names.as_array().unwrap().len()
    };
    assert_eq!(up("nightly is new"), 1);
    place.write("punctual.toml", "");
    assert_eq!(up("1 schedule of the file stay as they are"), 1);
    std::fs::remove_file(place.path("punctual.toml")).unwrap();
    assert_eq!(up("1 schedule of the file stay as they are"), 1);
    place.write("punctual.toml", &config(&["one"], ""));
    assert_eq!(up("nightly is gone from the file, and deleted"), 0);
}

#[test]
fn a_file_that_anybody_can_write_is_not_read() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new("reload-open", &config(&["one"], ""));
    std::fs::set_permissions(place.path("punctual.toml"), std::fs::Permissions::from_mode(0o666)).unwrap();
    let output = place.punctual(&["up"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("chmod o-w"), "{said}");
}

#[test]
fn an_agent_asks_for_its_next_run_and_its_tokens_have_a_price() {
    let place = Place::new("reload-next", "");
    place.write(
        "punctual.toml",
        r#"
[engine]
min_interval_seconds = 2
[prices]
version = "2026-11"
[prices.models."m-1"]
prompt = 3
completion = 15
[agents.again]
runner = "process"
command = ["sh", "agent.sh"]
"#,
    );
    let report = r#"{"summary": "ok", "nextRunAt": "2020-01-01T00:00:00Z", "llm": {"model": "m-1", "promptTokens": 1000000, "completionTokens": 100000}}"#;
    place.write("agent.sh", &format!("echo $PUNCTUAL_RUN_ID >> effects\necho '{report}'\n"));
    let server = place.up();
    let api = Client::of(&place);
    let schedule = json!({"agentId": "again", "scheduleType": "CRON", "cronExpr": "0 0 1 1 *"});
    let schedule = api.post("/api/schedules", schedule).json(201)["scheduleId"].as_str().unwrap().to_owned();
    api.post("/api/executions/trigger", json!({"scheduleId": schedule})).json(202);
    place.until("it has run three times", |place| 3 <= place.effects().len());
    let past = api.get("/api/executions/past?size=100").json(200);
    let first = past["content"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(
        (&first["llmMetrics"]["estimatedCostUsd"], &first["llmMetrics"]["priceTable"]),
        (&json!(4.5), &json!("2026-11"))
    );
    // The third has left its line, and ends in a moment.
    let cost = || api.get("/api/executions/metrics").json(200)["estimatedCostUsd"].as_f64().unwrap();
    place.until("all three have their price", |_| 13.5 <= cost());
    // Each asked for one more, and not before its time.
    let why = api.get(&format!("/api/executions/{}/why", place.effects()[1])).json(200);
    assert!(why.to_string().contains("asked_by_run"), "{why}");
    assert!(server.stop().success());
    place.verify();
}

#[test]
fn the_demo_shows_something_within_a_minute() {
    let place = Place::new("demo", "");
    std::fs::remove_file(place.path("punctual.toml")).unwrap();
    let server = place.up_with(&["--demo"]);
    let api = Client::of(&place);
    place.until("every agent has succeeded", |_| {
        let metrics = api.get("/api/executions/metrics").json(200);
        let succeeded = metrics["successCount"].as_u64() >= Some(4);
        // One of them is tried a second time.
        let is_retried = metrics["totalRuns"].as_u64() < metrics["totalAttempts"].as_u64();
        succeeded && is_retried && metrics["estimatedCostUsd"].as_f64() > Some(0.0)
    });
    assert_eq!(api.get("/api/schedules").json(200).as_array().map(Vec::len), Some(4));
    assert!(server.stop().success());
    place.verify();
    // It does not come near other schedules.
    place
        .write("punctual.toml", &config(&["one"], "[[schedules]]\nname = \"mine\"\nagent = \"one\"\nevery = \"1h\"\n"));
    place.write("log", "");
    let server = place.up();
    place.until("it is up", |place| place.read("log").contains("has joined"));
    assert!(server.stop().success());
    let refused = place.punctual(&["up", "--demo"]);
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("schedules of its own"));
}

#[test]
fn what_has_fired_can_still_be_changed_and_the_journal_is_filtered() {
    let place = Place::new("reload-fired", &config(&["one"], ""));
    let server = place.up();
    let api = Client::of(&place);
    let once = json!({"agentId": "one", "scheduleType": "IMMEDIATE", "prompt": "a"});
    let id = api.post("/api/schedules", once).json(201)["scheduleId"].as_str().unwrap().to_owned();
    let has_ended = || api.get("/api/journal?kind=schedule_changed").json(200).as_array().map(Vec::len) == Some(2);
    place.until("it is over", |place| place.effects().len() == 1 && has_ended());
    let changed = api.put(&format!("/api/schedules/{id}"), json!({"prompt": "b"})).json(200);
    assert_eq!(changed["prompt"], "b");
    assert_eq!(place.effects().len(), 1);

    let kinds = |query: &str| -> Vec<String> {
        let entries = api.get(&format!("/api/journal?{query}")).json(200);
        entries.as_array().unwrap().iter().map(|entry| entry["kind"].as_str().unwrap().to_owned()).collect()
    };
    // Made, come to its end, changed.
    assert_eq!(kinds("kind=schedule_changed").len(), 3);
    assert!(kinds(&format!("scheduleId={id}")).contains(&"attempt_ended".to_owned()));
    assert_eq!(kinds(&format!("scheduleId={id}&kind=attempt_ended&from=2020-01-01T00:00:00Z")).len(), 1);
    assert!(kinds("to=2020-01-01T00:00:00Z").is_empty());
    // Page by page there are as many.
    let (mut after, mut count) = ("0".to_owned(), 0);
    loop {
        let page = api.get(&format!("/api/journal?limit=3&after={after}"));
        count += page.json(200).as_array().unwrap().len();
        match page.header("x-next-after") {
            Some(next) => after = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(count, kinds("limit=1000").len());
    assert!(server.stop().success());
}

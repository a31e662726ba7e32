//! The API of the real binary, on both stores.

use std::collections::BTreeSet;
use std::io::{BufRead, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use punctual_lab::postgres::{Durability, Server as Postgres};
use serde_json::{Value, json};

use crate::client::Client;
use crate::described::{DESCRIPTION, check, is_written_anew};
use crate::support::Place;

const AGENT: &str = r#"
echo "$PUNCTUAL_RUN_ID $PUNCTUAL_RUN_ATTEMPT" >> effects
cat > context
case "$1" in
  quick) echo '{"summary": "done", "refs": {"ticketIds": ["T-1"]}, "llm": {"promptTokens": 90, "completionTokens": 10, "estimatedCostUsd": 0.25}}' ;;
  slow) sleep 30 ;;
  flaky) [ "$PUNCTUAL_RUN_ATTEMPT" -gt 1 ] || { echo '{"error": {"code": "LLM_TIMEOUT", "message": "the model took too long"}}'; exit 1; } ;;
esac
"#;

const CONFIG: &str = r#"
default_timezone = "America/Denver"
[agents.quick]
runner = "process"
command = ["sh", "agent.sh", "quick"]
[agents.slow]
runner = "process"
command = ["sh", "agent.sh", "slow"]
grace = "1s"
[agents.flaky]
runner = "process"
command = ["sh", "agent.sh", "flaky"]
"#;

fn place(test: &str) -> Place {
    let place = Place::new(test, CONFIG);
    place.write("agent.sh", AGENT);
    place
}

fn cron() -> Value {
    json!({"agentId": "quick", "scheduleType": "CRON", "cronExpr": "0 9 * * MON-FRI"})
}

#[test]
fn a_schedule_is_created_shown_changed_and_deleted() {
    let place = place("api-crud");
    let server = place.up();
    let api = Client::of(&place);
    let created = api.post("/api/schedules", cron());
    let schedule = created.json(201);
    assert_eq!(created.header("etag"), Some("\"1\""));
    assert_eq!(schedule["timezone"], "America/Denver", "the configured default");
    assert_eq!((&schedule["cronExpr"], &schedule["dialect"]), (&json!("0 9 * * MON-FRI"), &json!("unix")));
    assert_eq!(schedule["executorPolicy"]["maxAttempts"], 3);
    assert_eq!(
        (&schedule["enabled"], &schedule["version"], &schedule["name"]),
        (&json!(true), &json!(1), &json!(null))
    );
    assert!(schedule["nextExecutionAt"].is_string());
    let path = format!("/api/schedules/{}", schedule["scheduleId"].as_str().unwrap());
    // An agent has one schedule without a name in a project; with a name it has more.
    assert_eq!(api.post("/api/schedules", cron()).problem(409), "agent_taken");
    let mut named = cron();
    named["name"] = json!("second");
    api.post("/api/schedules", named.clone()).json(201);
    assert_eq!(api.post("/api/schedules", named).problem(409), "name_taken");
    assert_eq!(api.get("/api/schedules?agentId=quick").json(200).as_array().unwrap().len(), 2);
    let listed = api.get("/api/schedules?name=second&enabled=true&size=1");
    assert_eq!((listed.json(200)[0]["name"].as_str(), listed.header("x-total-count")), (Some("second"), Some("1")));

    let change = json!({"cronExpr": "0 10 * * *", "prompt": "What is new?", "executorPolicy": {"priority": 7}});
    let changed = api.put(&path, change).json(200);
    assert_eq!(
        (&changed["cronExpr"], &changed["prompt"], &changed["version"]),
        (&json!("0 10 * * *"), &json!("What is new?"), &json!(2))
    );
    assert_eq!(
        (&changed["executorPolicy"]["priority"], &changed["executorPolicy"]["maxAttempts"]),
        (&json!(7), &json!(3))
    );
    let stale = api.send("PUT", &path, &[("If-Match", "\"1\"")], Some(json!({"prompt": "mine"})));
    assert_eq!(stale.problem(409), "other_version");
    assert_eq!(stale.json(409)["current"]["prompt"], "What is new?");
    api.send("PUT", &path, &[("If-Match", "\"2\"")], Some(json!({"enabled": false}))).json(200);
    let disabled = api.get(&path).json(200);
    assert_eq!((&disabled["enabled"], &disabled["nextExecutionAt"]), (&json!(false), &json!(null)));
    assert!(disabled["pause"]["source"].as_str().unwrap().starts_with("operator@"), "{disabled}");

    assert_eq!(api.delete(&path).status, 204);
    assert_eq!(api.get(&path).problem(404), "not_found");
    assert_eq!(api.delete(&path).problem(404), "not_found");
    // Who did it is in the journal.
    let journal = api.get("/api/journal?limit=1000").json(200);
    let of = |kind: &str| journal.as_array().unwrap().iter().find(|entry| entry["kind"] == kind).cloned().expect(kind);
    let name = of("schedule_deleted")["by"]["actor"]["token"]["name"].as_str().unwrap().to_owned();
    assert!(name.starts_with("operator@"), "{name}: it is named after the node");
    assert_eq!(of("token_made")["by"]["actor"], "operator");
    assert!(!journal.to_string().contains("\"hash\""), "what a token is known by is nobody's business");
    assert!(server.stop().success());
    place.verify();
}

#[test]
fn what_is_wrong_with_a_request_is_said_with_its_place() {
    let place = place("api-wrong");
    let server = place.up();
    let api = Client::of(&place);
    for (change, status, code, said) in [
        (json!({"agentId": null}), 422, "invalid_value", "agentId: it is missing"),
        (json!({"agentId": "nobody"}), 422, "invalid_value", "use one of flaky, quick, slow"),
        (json!({"cronExpr": "0 24 * * *"}), 422, "invalid_value", "cronExpr: hour: 24 is out of range at position 2"),
        (json!({"cronExpr": "* * * * *"}), 422, "invalid_value", "it fires every 1m, and may every 5m at most"),
        (json!({"cronExpr": "0 0 30 2 *"}), 422, "invalid_value", "it never fires"),
        (json!({"timezone": "Mars/Base"}), 422, "invalid_value", "timezone: "),
        (json!({"intervalMinutes": 10}), 422, "invalid_value", "it does not go with CRON"),
        (
            json!({"scheduleType": "AT", "cronExpr": null, "runAt": "2020-01-01T00:00:00Z"}),
            422,
            "invalid_value",
            "its time is past",
        ),
        (json!({"projectScope": "PROJECT"}), 422, "invalid_value", "projectId: it is missing"),
        (json!({"projectScope": "GLOBAL", "projectId": "p"}), 422, "invalid_value", "a GLOBAL schedule has none"),
        (json!({"projectScope": "SPECIFIC"}), 400, "malformed", "is no word of it; use GLOBAL or PROJECT"),
        (json!({"colour": "red"}), 400, "malformed", "colour: there is no such field"),
        (json!({"executorPolicy": {"priority": 11}}), 422, "invalid_value", "executorPolicy.priority"),
        (
            json!({"executorPolicy": {"maxAttempts": 0}}),
            422,
            "invalid_value",
            "executorPolicy.maxAttempts: 0 is out of range",
        ),
        (json!({"name": "@quick"}), 422, "invalid_value", "names that begin with @"),
        (json!({"maxDelay": "soon"}), 422, "invalid_value", "maxDelay"),
        (json!({"calendar": "office"}), 422, "invalid_value", "there is no calendar"),
    ] {
        let mut body = cron();
        body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let answer = api.post("/api/schedules", body);
        assert_eq!(answer.problem(status), code, "{change}");
        assert!(answer.text.contains(said), "{change}: {}", answer.text);
    }
    assert_eq!(api.get("/api/schedules").json(200), json!([]), "nothing of it is there");
    let raw = |kind: &str, body: &str| {
        let head =
            format!("POST /api/schedules HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: {kind}\r\n");
        let token = place.read("punctual.db.token");
        let request =
            format!("{head}Authorization: Bearer {}\r\nContent-Length: {}\r\n\r\n{body}", token.trim(), body.len());
        api.raw(request.as_bytes())
    };
    assert_eq!(raw("text/plain", "{}").problem(415), "not_json");
    assert_eq!(raw("application/json", "{").problem(400), "malformed");
    assert_eq!(raw("application/json", r#"{"agentId": "quick", "agentId": "slow"}"#).problem(400), "malformed");
    assert_eq!(raw("application/json", &"[".repeat(100_000)).problem(400), "malformed");
    assert_eq!(raw("application/json", &format!("\"{}\"", "x".repeat(2_000_000))).problem(413), "too_large");
    assert_eq!(api.get("/api/schedules/nonsense").problem(404), "not_found");
    assert_eq!(api.get("/api/schedules/..%2f..%2fetc").problem(404), "not_found");
    assert_eq!(api.get("/nowhere").problem(404), "no_route");
    assert_eq!(api.send("PATCH", "/api/schedules", &[], None).problem(405), "no_method");
    assert_eq!(api.get("/api/executions/past?size=0").problem(422), "invalid_value");
    assert_eq!(api.get("/api/executions/past?colour=red").problem(400), "malformed");
    assert!(server.stop().success());
}

fn a_run_is_triggered_recorded_and_counted(place: &Place) {
    let server = place.up();
    let api = Client::of(place);
    assert_eq!(api.post("/api/executions/trigger", json!({})).problem(422), "invalid_value");
    let body = json!({"agentId": "quick", "projectId": "atlas", "prompt": "Go", "inputs": {"depth": 2}});
    let asked = api.post("/api/executions/trigger", body).json(202);
    assert_eq!((&asked["plannedHour"], &asked["immediate"], &asked["priority"]), (&json!(-1), &json!(true), &json!(8)));
    assert_eq!((&asked["execStatus"], &asked["maxAttempts"]), (&json!("READY"), &json!(3)));
    let id = asked["executionId"].as_str().unwrap().to_owned();
    let path = format!("/api/executions/past?executionId={id}");
    place.until("it is in the history", |_| api.get(&path).json(200)["totalElements"] == 1);
    let page = api.get(&path).json(200);
    assert_eq!(
        (&page["number"], &page["size"], &page["first"], &page["last"]),
        (&json!(0), &json!(20), &json!(true), &json!(true))
    );
    let past = &page["content"][0];
    assert_eq!(
        (&past["resultStatus"], &past["responseSummary"], &past["attempt"]),
        (&json!("SUCCESS"), &json!("done"), &json!(1))
    );
    assert_eq!((&past["agentId"], &past["projectId"]), (&json!("quick"), &json!("atlas")));
    assert_eq!(past["responseRefs"]["ticketIds"], json!(["T-1"]));
    assert_eq!(past["llmMetrics"]["estimatedCostUsd"], 0.25);
    let shown = api.get(&format!("/api/executions/past/{}", past["pastExecutionId"].as_str().unwrap())).json(200);
    assert!(shown["output"].as_str().unwrap().contains("T-1"));
    assert_eq!(api.get("/api/executions/past/0").problem(404), "not_found");
    let context: Value = serde_json::from_str(&place.read("context")).unwrap();
    assert_eq!(
        (&context["prompt"], &context["inputs"], &context["manual"]),
        (&json!("Go"), &json!({"depth": 2}), &json!(true))
    );
    for (filter, count) in [
        ("agentId=quick", 1),
        ("agentId=slow", 0),
        ("projectId=atlas", 1),
        ("projectId=other", 0),
        ("resultStatus=SUCCESS&agentId=quick", 1),
        ("resultStatus=FAIL", 0),
        ("from=2020-01-01&to=2020-12-31", 0),
        ("from=2020-01-01", 1),
    ] {
        assert_eq!(api.get(&format!("/api/executions/past?{filter}")).json(200)["totalElements"], count, "{filter}");
    }
    let metrics = api.get("/api/executions/metrics?agentId=quick").json(200);
    assert_eq!(
        (&metrics["totalRuns"], &metrics["successCount"], &metrics["failCount"]),
        (&json!(1), &json!(1), &json!(0))
    );
    assert_eq!((&metrics["totalTokens"], &metrics["estimatedCostUsd"]), (&json!(100), &json!(0.25)));
    assert_eq!(metrics["runsByAgent"], json!({"quick": 1}));
    assert_eq!(api.get("/api/agents").json(200)[1]["agentId"], "quick");
    assert_eq!(api.get("/api/nodes").json(200).as_array().unwrap().len(), 1);

    // A run at work is called off only by force.
    let asked = api.post("/api/executions/trigger", json!({"agentId": "slow"})).json(202);
    let id = asked["executionId"].as_str().unwrap().to_owned();
    let status = |api: &Client| {
        let queue = api.get("/api/executions/future?agentId=slow").json(200);
        queue[0]["execStatus"].as_str().unwrap_or_default().to_owned()
    };
    place.until("it is at work", |_| status(&api) == "RUNNING");
    let refused = api.post(&format!("/api/executions/future/{id}/cancel"), json!(null)).json(409);
    assert_eq!(refused["execStatus"], "RUNNING");
    assert!(refused["lockOwner"].is_string() && refused["leaseUntil"].is_string());
    let asked = api.post(&format!("/api/executions/future/{id}/cancel?force=true"), json!(null)).json(202);
    assert_eq!(asked["cancelling"], true);
    place.until("it is called off", |_| status(&api) == "CANCELLED");
    let cancelled = api.get(&format!("/api/executions/past?executionId={id}")).json(200);
    assert_eq!(cancelled["content"][0]["resultStatus"], "CANCELLED");
    assert!(server.stop().success());
    place.verify();
}

#[test]
fn a_run_is_triggered_recorded_and_counted_on_sqlite() {
    a_run_is_triggered_recorded_and_counted(&place("api-trigger"));
}

#[test]
fn a_run_is_triggered_recorded_and_counted_on_postgres() {
    let postgres = Postgres::start(Durability::Off).expect("PostgreSQL starts");
    a_run_is_triggered_recorded_and_counted(&place("api-trigger-pg").with_database(&postgres.address()));
}

#[test]
fn nobody_comes_in_without_a_token_or_from_another_site() {
    let place = place("api-guard");
    let server = place.up();
    let api = Client::of(&place);
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &std::fs::metadata(place.path("punctual.db.token")).unwrap().permissions(),
    );
    assert_eq!(mode & 0o777, 0o600, "only its owner may read it");
    assert_eq!(api.with_token(None).get("/api/schedules").problem(401), "no_token");
    assert_eq!(api.with_token(Some("pt_wrong")).get("/api/schedules").problem(401), "bad_token");
    assert_eq!(api.with_token(None).get("/health/live").json(200)["status"], "ok");
    assert_eq!(api.with_token(None).get("/health/ready").json(200)["status"], "ok");
    for headers in [
        [("Host", "evil.example"), ("X-A", "b")],
        [("Origin", "https://evil.example"), ("X-A", "b")],
        [("Sec-Fetch-Site", "cross-site"), ("X-A", "b")],
    ] {
        let answer = api.send("GET", "/api/schedules", &headers, None);
        assert!(["bad_host", "bad_origin"].contains(&answer.problem(403).as_str()), "{headers:?}");
    }
    let origin = [("Origin", "http://localhost:8470"), ("Sec-Fetch-Site", "same-origin")];
    api.send("GET", "/api/schedules", &origin, None).json(200);
    // A token that is taken back allows nothing, and does not come back with a start.
    let made = api.post("/api/tokens", json!({"name": "ada", "role": "viewer"})).json(201);
    let ada = api.with_token(made["secret"].as_str());
    ada.get("/api/schedules").json(200);
    assert_eq!(ada.post("/api/schedules", cron()).problem(403), "not_allowed");
    assert_eq!(ada.get("/api/tokens").problem(403), "not_allowed");
    let listed = api.get("/api/tokens").json(200).to_string();
    assert!(!listed.contains("pt_") && !listed.contains("hash"), "{listed}");
    assert_eq!(api.delete(&format!("/api/tokens/{}", made["tokenId"].as_str().unwrap())).status, 204);
    assert_eq!(ada.get("/api/schedules").problem(401), "bad_token");
    assert!(server.stop().success());
    // The token of the file itself is taken back: the next start makes another, and the old one stays out.
    let server = place.up();
    place.until("it is up again", |place| place.read("log").matches("has joined").count() == 2);
    let api = Client::of(&place);
    let own = api.get("/api/tokens").json(200)[0]["tokenId"].as_str().unwrap().to_owned();
    assert_eq!(api.delete(&format!("/api/tokens/{own}")).problem(409), "last_admin");
    assert_eq!(api.delete(&format!("/api/tokens/{own}?force=true")).status, 204);
    assert_eq!(api.get("/api/schedules").problem(401), "bad_token");
    assert!(server.stop().success());
    let server = place.up();
    place.until("it is up once more", |place| place.read("log").matches("has joined").count() == 3);
    assert_ne!(place.read("punctual.db.token"), format!("{}\n", api.token().unwrap()));
    Client::of(&place).get("/api/schedules").json(200);
    assert_eq!(Client::of(&place).with_token(api.token()).get("/api/schedules").problem(401), "bad_token");
    assert!(server.stop().success());
    assert!(!place.read("log").contains("pt_"), "no secret is in the log");
}

#[test]
fn every_route_asks_for_the_right_that_it_says_it_needs() {
    let place = place("api-rights");
    let server = place.up();
    let api = Client::of(&place);
    let roles = ["worker", "viewer", "editor", "admin"];
    let clients: Vec<(&str, Client)> = roles
        .iter()
        .map(|role| {
            let made = api.post("/api/tokens", json!({"name": role, "role": role})).json(201);
            (*role, api.with_token(made["secret"].as_str()))
        })
        .collect();
    let description = api.get("/api/openapi.json").json(200);
    let mut walked = 0;
    for (path, item) in description["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let right = operation["x-right"].as_str().unwrap_or_else(|| panic!("{method} {path} names no right"));
            // Ids that nobody has: whoever may come gets to hear that.
            let path = path
                .split('/')
                .map(|part| if part.starts_with('{') { "018f4e9c-0000-7000-8000-000000000001" } else { part });
            let path = path.collect::<Vec<_>>().join("/");
            let method = method.to_ascii_uppercase();
            let body = ["POST", "PUT"].contains(&method.as_str()).then(|| json!({"agentId": "nobody"}));
            let send = |client: &Client| client.send(&method, &path, &[], body.clone()).status;
            assert_eq!(send(&api.with_token(None)) == 401, right != "nobody", "{method} {path} without a token");
            for (role, client) in &clients {
                let is_allowed = match right {
                    "nobody" => true,
                    "viewer" => *role != "worker",
                    "editor" => ["editor", "admin"].contains(role),
                    _ => *role == "admin",
                };
                let status = send(client);
                assert_eq!(status != 403, is_allowed, "{method} {path} as {role}: {status}");
                assert!(status < 500, "{method} {path} as {role}: {status}");
                walked += 1;
            }
        }
    }
    assert!(60 <= walked, "{walked} combinations");
    assert!(server.stop().success());
}

#[test]
fn a_token_for_a_project_sees_and_changes_nothing_else() {
    let place = place("api-projects");
    let server = place.up();
    let api = Client::of(&place);
    let in_project = |project: Value| {
        let mut body = cron();
        body.as_object_mut().unwrap().insert("projectId".to_owned(), project);
        body
    };
    let own = api.post("/api/schedules", in_project(json!("atlas"))).json(201);
    let other = api.post("/api/schedules", in_project(json!("hermes"))).json(201);
    api.post("/api/schedules", cron()).json(201);
    let made = api.post("/api/tokens", json!({"name": "ben", "role": "editor", "projects": ["atlas"]})).json(201);
    let ben = api.with_token(made["secret"].as_str());
    let seen = ben.get("/api/schedules").json(200);
    assert_eq!(seen.as_array().unwrap().iter().map(|it| &it["scheduleId"]).collect::<Vec<_>>(), [&own["scheduleId"]]);
    let path = format!("/api/schedules/{}", other["scheduleId"].as_str().unwrap());
    assert_eq!(ben.get(&path).problem(404), "not_found", "as if it were not there");
    assert_eq!(ben.put(&path, json!({"prompt": "mine"})).problem(404), "not_found");
    assert_eq!(ben.delete(&path).problem(404), "not_found");
    let body = json!({"scheduleId": other["scheduleId"]});
    assert_eq!(ben.post("/api/executions/trigger", body).problem(404), "not_found");
    assert_eq!(ben.post("/api/executions/trigger", json!({"agentId": "quick"})).problem(403), "other_project");
    let mut elsewhere = in_project(json!("hermes"));
    elsewhere["name"] = json!("x");
    assert_eq!(ben.post("/api/schedules", elsewhere).problem(403), "other_project");
    let path = format!("/api/schedules/{}", own["scheduleId"].as_str().unwrap());
    assert_eq!(ben.put(&path, json!({"projectId": "hermes"})).problem(403), "other_project");
    assert_eq!(ben.get("/api/journal").problem(403), "other_project");
    assert!(server.stop().success());
}

/// Reads events until one of a type has come for a run, or any of it. What has come, as (id, type).
fn read_until(stream: &mut impl BufRead, kind: &str, about: &str) -> Vec<(u64, String)> {
    let (mut seen, mut id, mut name) = (vec![], 0, String::new());
    loop {
        let mut line = String::new();
        assert_ne!(stream.read_line(&mut line).unwrap(), 0, "the stream has ended; it had {seen:?}");
        if let Some(text) = line.strip_prefix("id: ") {
            id = text.trim().parse().unwrap();
        } else if let Some(text) = line.strip_prefix("event: ") {
            name = text.trim().to_owned();
        } else if let Some(data) = line.strip_prefix("data: ") {
            seen.push((id, name.clone()));
            if name == kind && data.contains(about) {
                return seen;
            }
        }
    }
}

#[test]
fn what_happens_is_streamed_and_taken_up_again_by_its_number() {
    let place = place("api-stream");
    let server = place.up();
    let api = Client::of(&place);
    let mut stream = api.stream("/api/journal/stream?after=0", &[]);
    let body = json!({
        "agentId": "flaky", "scheduleType": "IMMEDIATE", "executorPolicy": {"retryBackoffMs": 200},
    });
    let schedule = api.post("/api/schedules", body).json(201)["scheduleId"].as_str().unwrap().to_owned();
    let mut seen = read_until(&mut stream, "EXEC_FINISHED", &schedule);
    let path = format!("/api/schedules/{schedule}");
    api.put(&path, json!({"scheduleType": "INTERVAL", "intervalMinutes": 30})).json(200);
    api.put(&path, json!({"enabled": false})).json(200);
    seen.extend(read_until(&mut stream, "SCHEDULE_DISABLED", &schedule));
    // A run that nobody has taken yet is called off.
    let soon = json!({"agentId": "quick", "scheduleType": "INTERVAL", "intervalMinutes": 5, "name": "soon"});
    api.post("/api/schedules", soon).json(201);
    let queue = api.get("/api/executions/future?agentId=quick&execStatus=READY").json(200);
    if let Some(id) = queue[0]["executionId"].as_str() {
        let cancelled = api.post(&format!("/api/executions/future/{id}/cancel"), json!(null)).json(200);
        assert_eq!(cancelled["execStatus"], "CANCELLED");
        seen.extend(read_until(&mut stream, "EXEC_CANCELLED", id));
        let why = api.get(&format!("/api/executions/{id}/why")).json(200);
        let sentence = why["causes"][0]["sentence"].as_str().unwrap();
        assert!(sentence.starts_with("token operator@") && sentence.ends_with(" called it off"), "{sentence}");
    }
    let kinds: BTreeSet<&str> = seen.iter().map(|(_, kind)| kind.as_str()).collect();
    for kind in [
        "EXEC_PLANNED",
        "EXEC_CLAIMED",
        "EXEC_STARTED",
        "EXEC_FINISHED",
        "EXEC_RETRYING",
        "EXEC_CANCELLED",
        "SCHEDULE_CREATED",
        "SCHEDULE_UPDATED",
        "SCHEDULE_DISABLED",
        "MIDNIGHT_REBUILD",
    ] {
        assert!(kinds.contains(kind), "{kind} is missing in {kinds:?}");
    }
    assert!(seen.windows(2).all(|pair| pair[0].0 <= pair[1].0), "in order");
    // Whoever comes again misses nothing and hears nothing twice.
    let middle = seen[seen.len() / 2].0;
    let mut again = api.stream("/api/journal/stream", &[("Last-Event-ID", &middle.to_string())]);
    let last = seen.last().unwrap().clone();
    let mut heard = vec![];
    while heard.last() != Some(&last) {
        let one = read_until(&mut again, &seen[seen.iter().position(|it| middle < it.0).unwrap() + heard.len()].1, "");
        heard.extend(one);
    }
    let expected: Vec<(u64, String)> = seen.iter().filter(|(id, _)| middle < *id).cloned().collect();
    assert_eq!(heard, expected);
    // A stop ends the streams, and does not wait for whoever listens.
    assert!(server.stop().success());
    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();
}

#[test]
fn why_answers_for_runs_and_for_times() {
    let place = place("api-why");
    let server = place.up();
    let api = Client::of(&place);
    let created = api.post("/api/schedules", cron()).json(201);
    let path = format!("/api/schedules/{}", created["scheduleId"].as_str().unwrap());
    let code =
        |at: &str| api.get(&format!("{path}/why?at={at}")).json(200)["causes"][0]["code"].as_str().unwrap().to_owned();
    assert_eq!(code("2026-01-03T09:00:00"), "no_slot", "a Saturday");
    assert_eq!(code("2026-01-05T09:00:00"), "before_creation");
    assert_eq!(code("2099-01-05T09:00:00"), "not_due");
    assert_eq!(api.get(&format!("{path}/why?at=soon")).problem(422), "invalid_value");
    let body = json!({"agentId": "flaky", "scheduleType": "IMMEDIATE", "executorPolicy": {"maxAttempts": 1}});
    let schedule = api.post("/api/schedules", body).json(201);
    let past = format!("/api/executions/past?scheduleId={}", schedule["scheduleId"].as_str().unwrap());
    place.until("it has failed", |_| api.get(&past).json(200)["totalElements"] == 1);
    let failed = api.get(&past).json(200)["content"][0].clone();
    assert_eq!((&failed["resultStatus"], &failed["errorCode"]), (&json!("FAIL"), &json!("LLM_TIMEOUT")));
    let why = api.get(&format!("/api/executions/{}/why", failed["executionId"].as_str().unwrap())).json(200);
    assert_eq!(why["causes"][0]["code"], "failed_error");
    assert!(why["causes"][0]["sentence"].as_str().unwrap().ends_with(": the model took too long"), "{why}");
    assert!(server.stop().success());
}

fn a_request_that_comes_again_is_carried_out_once(place: &Place) {
    let server = place.up();
    let api = Client::of(place);
    let post = |api: &Client, path: &str, key: &str, body: Value| {
        api.send("POST", path, &[("Idempotency-Key", key)], Some(body))
    };
    let first = post(&api, "/api/schedules", "k1", cron());
    let again = post(&api, "/api/schedules", "k1", cron());
    assert_eq!(first.json(201)["scheduleId"], again.json(201)["scheduleId"]);
    assert_eq!((first.header("idempotent-replayed"), again.header("idempotent-replayed")), (None, Some("true")));
    let mut other = cron();
    other["prompt"] = json!("something else");
    assert_eq!(post(&api, "/api/schedules", "k1", other).problem(422), "key_reused");
    assert_eq!(post(&api, "/api/executions/trigger", "k1", json!({"agentId": "slow"})).problem(422), "key_reused");
    assert_eq!(post(&api, "/api/executions/trigger", "", json!({"agentId": "slow"})).problem(400), "malformed");
    let run = post(&api, "/api/executions/trigger", "k2", json!({"agentId": "slow"})).json(202)["executionId"].clone();
    assert_eq!(post(&api, "/api/executions/trigger", "k2", json!({"agentId": "slow"})).json(202)["executionId"], run);
    let path = format!("/api/schedules/{}", first.json(201)["scheduleId"].as_str().unwrap());
    post(&api, &format!("{path}/pause"), "k3", json!({"reason": "noise"})).json(200);
    api.post(&format!("{path}/resume"), json!(null)).json(200);
    let paused_again = post(&api, &format!("{path}/pause"), "k3", json!({"reason": "noise"})).json(200);
    assert_eq!(paused_again["state"], "active", "it was paused once, and resumed since");
    let cancel = format!("/api/executions/future/{}/cancel?force=true", run.as_str().unwrap());
    place.until("it is called off", |_| [200, 202].contains(&post(&api, &cancel, "k4", json!(null)).status));
    let made = post(&api, "/api/tokens", "k5", json!({"name": "ada", "role": "editor"})).json(201);
    let made_again = post(&api, "/api/tokens", "k5", json!({"name": "ada", "role": "editor"})).json(201);
    assert_eq!(
        (&made["tokenId"], &made_again["secret"]),
        (&made_again["tokenId"], &json!(null)),
        "a secret is shown once"
    );
    // A key is its owner's.
    let ada = api.with_token(made["secret"].as_str());
    let theirs = json!({"agentId": "quick", "scheduleType": "INTERVAL", "intervalMinutes": 60, "name": "theirs"});
    post(&ada, "/api/schedules", "k1", theirs).json(201);
    // A crash forgets nothing of it.
    server.kill();
    let server = place.up();
    place.until("it is up again", |place| place.read("log").matches("has joined").count() == 2);
    let api = Client::of(place);
    assert_eq!(post(&api, "/api/schedules", "k1", cron()).json(201)["scheduleId"], first.json(201)["scheduleId"]);
    assert_eq!(api.get("/api/schedules").json(200).as_array().unwrap().len(), 2);
    assert!(server.stop().success());
    place.verify();
}

#[test]
fn a_request_that_comes_again_is_carried_out_once_on_sqlite() {
    a_request_that_comes_again_is_carried_out_once(&place("api-again"));
}

#[test]
fn a_request_that_comes_again_is_carried_out_once_on_postgres() {
    let postgres = Postgres::start(Durability::Off).expect("PostgreSQL starts");
    a_request_that_comes_again_is_carried_out_once(&place("api-again-pg").with_database(&postgres.address()));
}

/// Clients create schedules while the server is killed again and again: what was acknowledged is there, and what was asked for
/// twice is there once.
#[test]
fn what_was_acknowledged_is_there_after_a_kill() {
    let place = place("api-kill");
    let mut created: BTreeSet<String> = BTreeSet::new();
    for round in 0..5_u32 {
        let server = place.up();
        place.until("it is up", |place| place.read("log").matches("has joined").count() == round as usize + 1);
        let api = Client::of(&place);
        let (is_over, answers) = (AtomicBool::new(false), AtomicUsize::new(0));
        let acknowledged = std::thread::scope(|scope| {
            let clients: Vec<_> = (0..4)
                .map(|client| {
                    let (api, is_over, answers) = (api.clone(), &is_over, &answers);
                    scope.spawn(move || {
                        let mut names = vec![];
                        for number in 0.. {
                            if is_over.load(Ordering::Acquire) {
                                break;
                            }
                            let name = format!("{round}-{client}-{number}");
                            let body = json!({"agentId": "quick", "scheduleType": "CRON", "cronExpr": "0 9 * * *", "name": name});
                            let answer = api.try_send("POST", "/api/schedules", &[("Idempotency-Key", &name)], Some(body));
                            if answer.is_some_and(|answer| answer.status == 201) {
                                names.push(name);
                                answers.fetch_add(1, Ordering::AcqRel);
                            }
                        }
                        names
                    })
                })
                .collect();
            place.until("many are answered", |_| 40 <= answers.load(Ordering::Acquire));
            server.kill();
            is_over.store(true, Ordering::Release);
            clients.into_iter().flat_map(|client| client.join().unwrap()).collect::<Vec<_>>()
        });
        assert!(!acknowledged.is_empty(), "somebody was answered");
        created.extend(acknowledged);
    }
    let server = place.up();
    place.until("it is up", |place| place.read("log").matches("has joined").count() == 6);
    let api = Client::of(&place);
    let mut names: Vec<String> = vec![];
    for page in 0.. {
        let listed = api.get(&format!("/api/schedules?page={page}")).json(200);
        let listed = listed.as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap().to_owned());
        let before = names.len();
        names.extend(listed);
        if names.len() == before {
            break;
        }
    }
    let there: BTreeSet<String> = names.iter().cloned().collect();
    assert_eq!(there.len(), names.len(), "none is there twice");
    let lost: Vec<&String> = created.difference(&there).collect();
    assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
    assert!(server.stop().success());
    place.verify();
}

#[test]
fn of_two_editors_one_is_told_that_the_other_was_faster() {
    let place = place("api-editors");
    let server = place.up();
    let api = Client::of(&place);
    let created = api.post("/api/schedules", cron()).json(201);
    let path = format!("/api/schedules/{}", created["scheduleId"].as_str().unwrap());
    for round in 1..=20_u64 {
        let version = format!("\"{round}\"");
        let statuses: Vec<u16> = std::thread::scope(|scope| {
            let edits = ["ada", "ben"].map(|who| {
                let (api, path, version) = (&api, &path, &version);
                scope.spawn(move || {
                    let body = json!({"prompt": format!("{who} {round}")});
                    api.send("PUT", path, &[("If-Match", version)], Some(body)).status
                })
            });
            edits.into_iter().map(|edit| edit.join().unwrap()).collect()
        });
        let mut sorted = statuses.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, [200, 409], "round {round}");
        let winner = if statuses[0] == 200 { "ada" } else { "ben" };
        let shown = api.get(&path).json(200);
        assert_eq!((&shown["prompt"], &shown["version"]), (&json!(format!("{winner} {round}")), &json!(round + 1)));
    }
    assert!(server.stop().success());
}

#[test]
fn a_dry_run_says_what_would_change_and_changes_nothing() {
    let place = place("api-dry");
    let server = place.up();
    let api = Client::of(&place);
    let daily = json!({"agentId": "quick", "scheduleType": "FIXED_TIMES", "timesOfDay": ["09:00"]});
    let would = api.post("/api/schedules?dryRun=true", daily.clone()).json(200);
    assert_eq!(
        (would["added"].as_array().unwrap().len(), &would["kept"], &would["dryRun"]),
        (7, &json!(0), &json!(true))
    );
    assert!(would["added"][0]["localTime"].as_str().unwrap().ends_with("T09:00:00"));
    assert_eq!(api.get("/api/schedules").json(200), json!([]));
    let created = api.post("/api/schedules", daily).json(201);
    let path = format!("/api/schedules/{}", created["scheduleId"].as_str().unwrap());
    let counts = |would: &Value| {
        let count = |what: &str| would[what].as_array().unwrap().len();
        (count("added"), count("removed"), would["kept"].as_u64().unwrap())
    };
    let change = |body: Value| counts(&api.put(&format!("{path}?dryRun=true"), body).json(200));
    assert_eq!(change(json!({"timesOfDay": ["09:00", "17:00"]})), (7, 0, 7));
    assert_eq!(change(json!({"timesOfDay": ["10:00"]})), (7, 7, 0));
    assert_eq!(change(json!({"enabled": false})), (0, 7, 0));
    assert_eq!(change(json!({"prompt": "other"})), (0, 0, 7));
    assert_eq!(counts(&api.delete(&format!("{path}?dryRun=true")).json(200)), (0, 7, 0));
    assert_eq!(api.get(&path).json(200)["version"], 1, "it is as it was");
    assert!(server.stop().success());
}

#[test]
fn metrics_count_what_happened_and_are_what_prometheus_reads() {
    let place = place("api-metrics");
    let server = place.up();
    let api = Client::of(&place);
    assert_eq!(api.with_token(None).get("/metrics").problem(401), "no_token");
    api.post("/api/executions/trigger", json!({"agentId": "quick"})).json(202);
    place.until("it is counted", |_| api.get("/metrics").text.contains("punctual_attempts_total{"));
    let text = api.get("/metrics").text;
    for line in [
        "punctual_attempts_total{agent=\"quick\",result=\"succeeded\"} 1",
        "punctual_llm_tokens_total{agent=\"quick\",result=\"succeeded\"} 100",
        "punctual_llm_cost_usd_total{agent=\"quick\",result=\"succeeded\"} 0.25",
        "punctual_lateness_seconds_count 1",
        "punctual_runs_at_work 0",
        "punctual_runs{state=\"planned\"} 0",
        "punctual_schedules 0",
    ] {
        assert!(text.lines().any(|it| it == line), "{line} is missing in\n{text}");
    }
    // Every family is introduced before its values, once.
    let mut families = BTreeSet::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            assert!(families.insert(rest.split(' ').next().unwrap().to_owned()), "{line} comes twice");
        } else if !line.starts_with('#') {
            let name = line.split(['{', ' ']).next().unwrap();
            let family = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
            assert!(families.contains(family) || families.contains(name), "{line} has no family");
        }
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("prometheus");
    let tool = punctual_lab::promtool::find(&folder).expect("promtool can be found");
    assert_eq!(said_of(&tool, &text), "", "promtool check metrics");
    assert!(server.stop().success());
}

/// What Prometheus' own tool says of metrics: nothing, if they are right.
fn said_of(promtool: &Path, text: &str) -> String {
    let mut tool = Command::new(promtool);
    tool.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut tool = tool.spawn().expect("promtool starts");
    tool.stdin.take().expect("it reads").write_all(text.as_bytes()).expect("it reads all of it");
    let said = tool.wait_with_output().expect("it ends");
    let verdict = if said.status.success() { "" } else { "it refuses them: " };
    format!("{verdict}{}", String::from_utf8_lossy(&[said.stdout, said.stderr].concat()).trim())
}

/// `docs/openapi.json` is written anew by running this test with `PUNCTUAL_BLESS=1`.
#[test]
fn the_description_is_the_published_one_and_complete() {
    let place = place("api-description");
    let server = place.up();
    let api = Client::of(&place);
    let description = api.get("/api/openapi.json").json(200);
    let text = format!("{description:#}\n");
    if is_written_anew() {
        std::fs::write(DESCRIPTION, &text).unwrap();
    }
    let published = std::fs::read_to_string(DESCRIPTION).unwrap_or_default();
    assert!(published == text, "docs/openapi.json is out of date: run this test with PUNCTUAL_BLESS=1");
    assert!(description["openapi"].as_str().unwrap().starts_with("3.1"));
    // What it refers to is there, and every operation says what it is for.
    let mut referred = BTreeSet::new();
    find_references(&description, &mut referred);
    for name in &referred {
        assert!(description.pointer(name.trim_start_matches('#')).is_some(), "{name} is not there");
    }
    for (path, item) in description["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            assert!(operation["summary"].is_string(), "{method} {path} does not say what it is for");
            let responses = operation["responses"].as_object().unwrap();
            for status in ["403", "500", "503"] {
                assert!(responses.contains_key(status), "{method} {path} does not say how it fails");
            }
            for (status, response) in responses.iter().filter(|(status, _)| !status.starts_with('2')) {
                let response = match response["$ref"].as_str() {
                    Some(name) => description.pointer(name.trim_start_matches('#')).unwrap(),
                    None => response,
                };
                // Clients of Conductor read another shape.
                let kind =
                    if operation["tags"][0] == "conductor" { "application/json" } else { "application/problem+json" };
                let problem = &response["content"][kind];
                assert!(problem["examples"]["problem"].is_object(), "{method} {path} {status} has no example");
            }
        }
    }
    for (name, problem) in description["components"]["examples"].as_object().unwrap() {
        let schema = if name.starts_with("Error") { "ErrorResponse" } else { "Problem" };
        let fits = check(&description, &description["components"]["schemas"][schema], &problem["value"]);
        assert_eq!(fits, Ok(()), "{name}");
    }
    // Whatever is an object has an example, which is one.
    for (name, schema) in description["components"]["schemas"].as_object().unwrap() {
        let example = &schema["examples"][0];
        let is_word = schema["enum"].is_array() || schema["oneOf"].is_array();
        assert!(is_word || name == "Problem" || example.is_object(), "{name} has no example");
        if example.is_object() {
            assert_eq!(check(&description, schema, example), Ok(()), "the example of {name}");
            assert!(schema["type"] == "object" || schema["allOf"].is_array(), "there is no schema {name}");
        }
    }
    let page = api.get("/api/docs");
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    assert!(page.text.contains("POST /api/schedules/preview") && page.text.contains("<h3>ScheduleFields</h3>"));
    assert!(!page.text.contains("http"), "it needs nothing else");
    api.post(
        "/api/schedules",
        json!({"agentId": "quick", "scheduleType": "INTERVAL", "intervalMinutes": 60, "projectId": "atlas"}),
    )
    .json(201);
    let projects = json!([{"projectId": "atlas", "schedules": 1, "active": 1, "maxRunning": null}]);
    assert_eq!(api.get("/api/projects").json(200), projects);
    assert!(server.stop().success());
}

#[test]
fn the_requests_that_the_description_shows_are_carried_out() {
    let place = Place::new("api-examples", "[agents.reporter]\nrunner = \"process\"\ncommand = [\"true\"]\n");
    let server = place.up();
    let api = Client::of(&place);
    let description = api.get("/api/openapi.json").json(200);
    let example = |name: &str| description["components"]["schemas"][name]["examples"][0].clone();
    api.post("/api/schedules/preview", example("ScheduleFields")).json(200);
    let schedule = api.post("/api/schedules", example("ScheduleFields")).json(201);
    let path = format!("/api/schedules/{}", schedule["scheduleId"].as_str().unwrap());
    api.post(&format!("{path}/pause"), example("Reason")).json(200);
    let change = json!({"inputsPolicy": example("InputsFields"), "executorPolicy": example("ExecutorFields")});
    api.put(&path, change).json(200);
    api.post("/api/executions/trigger", example("TriggerRequest")).json(202);
    api.post("/api/tokens", example("TokenRequest")).json(201);
    assert!(server.stop().success());
}

fn find_references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            found.extend(fields.get("$ref").and_then(Value::as_str).map(str::to_owned));
            fields.values().for_each(|value| find_references(value, found));
        }
        Value::Array(values) => values.iter().for_each(|value| find_references(value, found)),
        _ => {}
    }
}

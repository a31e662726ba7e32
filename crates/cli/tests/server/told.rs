//! What is told of runs: in the log, in the stream of events, in history, in `why` and in sums; on both stores.

use std::io::BufRead;

use punctual_lab::postgres::{Durability, Server as Postgres};
use serde_json::{Value, json};

use crate::client::Client;
use crate::support::Place;

const CONFIG: &str = r#"
[engine]
min_interval_seconds = 1

[agents.fine]
runner = "process"
command = ["sh", "-c", "echo fine"]

[agents.broken]
runner = "process"
command = ["sh", "-c", "echo out of luck >&2; exit 3"]
"#;

type Claim = fn(&Place, &Client);

/// Holds a claim on SQLite.
fn on_sqlite(name: &str, claim: Claim) {
    served(&Place::new(&format!("told-{name}"), CONFIG), claim);
}

/// Holds a claim on PostgreSQL.
fn on_postgres(name: &str, claim: Claim) {
    let postgres = Postgres::start(Durability::Off).expect("PostgreSQL starts");
    served(&Place::new(&format!("told-{name}-pg"), CONFIG).with_database(&postgres.address()), claim);
}

fn served(place: &Place, claim: Claim) {
    let server = place.up();
    claim(place, &Client::of(place));
    assert!(server.stop().success());
    place.verify();
}

fn create(api: &Client, schedule: Value) -> String {
    api.post("/api/schedules", schedule).json(201)["scheduleId"].as_str().expect("it has an id").to_owned()
}

fn past(api: &Client, query: &str) -> Vec<Value> {
    api.get(&format!("/api/executions/past?{query}")).json(200)["content"].as_array().unwrap().clone()
}

/// A run that fails twice, and no more.
fn failed_for_good(place: &Place, api: &Client) -> String {
    let schedule = json!({
        "agentId": "broken", "name": "doomed", "scheduleType": "IMMEDIATE",
        "executorPolicy": {"maxAttempts": 2, "retryBackoffMs": 1},
    });
    let schedule = create(api, schedule);
    place.until("it has failed twice", |_| past(api, &format!("scheduleId={schedule}")).len() == 2);
    schedule
}

fn final_failures_are_told_apart(place: &Place, api: &Client) {
    let schedule = failed_for_good(place, api);
    api.post("/api/executions/trigger", json!({"agentId": "fine"})).json(202);
    place.until("the other is done", |_| past(api, "resultStatus=SUCCESS").len() == 1);

    // The log: what needs somebody to look at it is a warning, a retry is not.
    let log = place.read("log");
    let level = |what: &str| {
        let line = log.lines().find(|line| line.contains(what)).unwrap_or_else(|| panic!("{what}: {log}"));
        if line.contains("WARN") { "WARN" } else { "INFO" }
    };
    assert_eq!((level("next try at"), level("has failed for good")), ("INFO", "WARN"));

    // History: attempts, and what became of the run.
    let of = format!("scheduleId={schedule}");
    assert_eq!(past(api, &format!("{of}&resultStatus=FAIL")).len(), 2);
    let last = past(api, "final=true&resultStatus=FAIL");
    assert_eq!((last.len(), &last[0]["attempt"]), (1, &json!(2)), "{last:?}");
    assert_eq!(past(api, "final=true").len(), 2);
    assert_eq!(past(api, "final=false").len(), 3);
    for args in [&["history", "--failed", "--json"][..], &["history", "--status", "failed", "--final", "--json"]] {
        let shown = place.json(args);
        assert_eq!((&shown["totalElements"], &shown["content"][0]["attempt"]), (&json!(1), &json!(2)), "{shown}");
    }

    // Sums: a run counts once.
    let metrics = api.get("/api/executions/metrics").json(200);
    let counts = ["totalRuns", "totalAttempts", "successCount", "failCount"].map(|name| metrics[name].as_u64());
    assert_eq!(counts, [2, 3, 1, 1].map(Some), "{metrics}");
    assert_eq!(metrics["runsByAgent"], json!({"broken": 1, "fine": 1}));
}

fn history_does_not_begin_in_the_future(place: &Place, api: &Client) {
    let at = (crate::conductor::now() + jiff::SignedDuration::from_mins(5)).to_string();
    let schedule = create(api, json!({"agentId": "fine", "name": "soon", "scheduleType": "AT", "runAt": at}));
    let queue = || api.get("/api/executions/future?agentId=fine").json(200);
    place.until("it is planned", |_| queue().as_array().is_some_and(|runs| !runs.is_empty()));
    let run = queue()[0]["executionId"].as_str().unwrap().to_owned();
    assert_eq!(queue()[0]["scheduleId"], schedule.as_str());
    api.post(&format!("/api/executions/future/{run}/cancel"), json!(null)).json(200);
    api.post("/api/executions/trigger", json!({"agentId": "fine"})).json(202);
    place.until("both are told", |_| past(api, "").len() == 2);
    let statuses: Vec<Value> = past(api, "").iter().map(|item| item["resultStatus"].clone()).collect();
    assert_eq!(statuses, ["SUCCESS", "CANCELLED"], "what has just run comes first");
    assert_eq!(
        past(api, "")[1]["scheduledAt"].as_str().map(|at| &at[..19]),
        Some(&at[..19]),
        "its slot is told as it is"
    );
    let shown = String::from_utf8_lossy(&place.punctual(&["history"]).stdout).into_owned();
    let line = |what: &str| shown.lines().position(|line| line.contains(what)).unwrap_or_else(|| panic!("{shown}"));
    assert!(line("succeeded") < line("cancelled"), "{shown}");
}

fn a_paused_skip_says_who_paused_and_why_after_the_resume(place: &Place, api: &Client) {
    let schedule =
        create(api, json!({"agentId": "fine", "name": "often", "scheduleType": "CRON", "cronExpr": "* * * * * *"}));
    place.until("it runs", |_| !past(api, "resultStatus=SUCCESS").is_empty());
    let pause = json!({"reason": "the disk is full"});
    api.post(&format!("/api/schedules/{schedule}/pause"), pause).json(200);
    crate::support::rest_for(2_500);
    api.post(&format!("/api/schedules/{schedule}/resume"), json!({})).json(200);
    place.until("the skip is told", |_| !past(api, "resultStatus=SKIPPED").is_empty());
    let skipped = past(api, "resultStatus=SKIPPED").remove(0);
    let said = skipped["errorMessage"].as_str().unwrap_or_default();
    assert!(said.contains("the disk is full") && said.starts_with("by "), "{skipped}");
    let why = api.get(&format!("/api/schedules/{schedule}/why?at={}", skipped["scheduledAt"].as_str().unwrap())).text;
    assert!(why.contains("paused by") && why.contains("the disk is full"), "{why}");
    let shown = String::from_utf8_lossy(&place.punctual(&["history", "--status", "skipped"]).stdout).into_owned();
    assert!(shown.contains("the disk is full"), "{shown}");
}

fn claims_and_starts_carry_their_schedule(_: &Place, api: &Client) {
    // From the beginning, and from the middle, where nothing has told whose the runs are.
    let mut stream = api.stream("/api/journal/stream?after=0", &[]);
    let schedule = create(api, json!({"agentId": "fine", "name": "once", "scheduleType": "IMMEDIATE"}));
    let planned = read_until(&mut stream, "EXEC_PLANNED");
    let run = planned["executionId"].clone();
    for kind in ["EXEC_CLAIMED", "EXEC_STARTED"] {
        let event = read_until(&mut stream, kind);
        assert_eq!((&event["executionId"], event["scheduleId"].as_str()), (&run, Some(&*schedule)), "{event}");
    }
    let mut later = api.stream(&format!("/api/journal/stream?after={}", planned["seq"]), &[]);
    let event = read_until(&mut later, "EXEC_STARTED");
    assert_eq!((&event["executionId"], event["scheduleId"].as_str()), (&run, Some(&*schedule)), "{event}");
}

/// The next event of a kind.
fn read_until(stream: &mut impl BufRead, kind: &str) -> Value {
    for line in stream.lines() {
        let line = line.expect("the stream goes on");
        let Some(data) = line.strip_prefix("data: ") else { continue };
        let event: Value = serde_json::from_str(data).expect("an event is JSON");
        if event["type"] == kind {
            return event;
        }
    }
    panic!("the stream has ended before {kind}");
}

macro_rules! claims {
    ($($claim:ident),+ $(,)?) => {
        mod sqlite { $(#[test] fn $claim() { super::on_sqlite(stringify!($claim), super::$claim); })+ }
        mod postgres { $(#[test] fn $claim() { super::on_postgres(stringify!($claim), super::$claim); })+ }
    };
}

claims! {
    final_failures_are_told_apart,
    history_does_not_begin_in_the_future,
    a_paused_skip_says_who_paused_and_why_after_the_resume,
    claims_and_starts_carry_their_schedule,
}

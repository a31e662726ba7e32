//! The commands of the real binary as clients of a real server: what people read, what programs read, and exit codes.

use serde_json::{Value, json};

use crate::client::Client;
use crate::stand_in::StandIn;
use crate::support::{Place, Server};

const AGENT: &str = r#"
echo "$PUNCTUAL_RUN_ID" >> effects
case "$1" in
  quick) echo '{"summary": "all is well"}' ;;
  wrong) echo '{"error": {"code": "NO_DATA", "message": "there is nothing to read"}}'; exit 1 ;;
  slow) sleep 30 ;;
  flaky) if [ "$PUNCTUAL_RUN_ATTEMPT" -eq 1 ]; then echo '{"error": {"code": "BUSY", "message": "not now"}}'; exit 1; fi; echo fine ;;
esac
"#;

const CONFIG: &str = r#"
default_timezone = "America/Denver"
[agents.quick]
runner = "process"
command = ["sh", "agent.sh", "quick"]
risk = "read"
[agents.wrong]
runner = "process"
command = ["sh", "agent.sh", "wrong"]
[agents.slow]
runner = "process"
command = ["sh", "agent.sh", "slow"]
grace = "1s"
[agents.flaky]
runner = "process"
command = ["sh", "agent.sh", "flaky"]
"#;

/// A run of the API's past that never was.
const RUN: &str = "01a1e55f-1449-71ab-bba6-2fd20e7c946f";

fn place(test: &str) -> Place {
    let place = Place::new(test, CONFIG);
    place.write("agent.sh", AGENT);
    place
}

/// A place with a server that answers.
fn up(test: &str) -> (Place, Server) {
    let place = place(test);
    let server = place.up();
    place.until("the server has joined", |place| place.read("log").contains("has joined"));
    (place, server)
}

/// What a command said, which must have ended so.
fn said(place: &Place, args: &[&str], code: i32) -> String {
    said_with(place, args, &[], code)
}

fn said_with(place: &Place, args: &[&str], env: &[(&str, &str)], code: i32) -> String {
    let output = place.punctual_with(args, env);
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
    assert_eq!(output.status.code(), Some(code), "{args:?}: {text}");
    text
}

fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
}

/// A zone whose day neither begins nor ends while a test looks at it.
#[expect(clippy::disallowed_methods, reason = "the server under test goes by the real clock")]
fn zone_at_noon() -> String {
    let hour = i64::from(jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).hour());
    // These zones have their signs the other way round.
    format!("Etc/GMT{:+}", hour - 12)
}

const DAILY: [&str; 4] = ["--agent", "quick", "--times", "09:00,17:00"];

fn add(place: &Place, name: &str) -> Value {
    let mut args = vec!["schedule", "add", "--name", name, "--json"];
    args.extend(DAILY);
    place.json(&args)
}

#[test]
fn a_schedule_is_added_listed_shown_edited_paused_and_removed() {
    let (place, server) = up("cli-schedule");
    let name = "früh & spät?";
    let text =
        said(&place, &[&["schedule", "add", "--name", name, "--dry-run", "--zone", "UTC"][..], &DAILY].concat(), 0);
    has(&text, &["14 runs more, 0 fewer", "Nothing was changed", "09:00:00 UTC"]);
    let text = said(&place, &[&["schedule", "add", "--name", name, "--dry-run"][..], &DAILY].concat(), 0);
    has(&text, &["09:00:00 America/Denver"]);
    has(&said(&place, &["schedule", "list"], 0), &["There is no schedule"]);
    let text = said(&place, &[&["schedule", "add", "--name", name, "--prompt", "Go"][..], &DAILY].concat(), 0);
    has(&text, &[name, "It fires next:", "America/Denver"]);
    assert_eq!(
        text.matches("09:00:00 America/Denver").count() + text.matches("17:00:00 America/Denver").count(),
        3,
        "{text}"
    );
    has(&said(&place, &["schedule", "list"], 0), &["NAME", "NEXT", name, "quick", "active"]);
    let listed = place.json(&["schedule", "list", "--agent", "quick", "--json"]);
    assert_eq!((&listed[0]["name"], &listed[0]["timesOfDay"]), (&json!(name), &json!(["09:00", "17:00"])));
    assert_eq!(place.json(&["schedule", "list", "--agent", "slow", "--json"]), json!([]));
    has(&said(&place, &["schedule", "show", name], 0), &["prompt    Go", "America/Denver", "tries     3"]);
    // By name, by id, by the beginning of the id.
    let shown = place.json(&["schedule", "show", name, "--json"]);
    let id = shown["scheduleId"].as_str().unwrap();
    assert_eq!(place.json(&["schedule", "show", id, "--json"]), shown);
    assert_eq!(place.json(&["schedule", "show", &id[..20], "--json"])["scheduleId"], id);

    let text = said(&place, &["schedule", "edit", name, "--times", "10:00", "--priority", "7", "--dry-run"], 0);
    has(&text, &["- executorPolicy.priority: 5", "+ executorPolicy.priority: 7", "+ timesOfDay: [\"10:00\"]"]);
    has(&text, &["runs more", "fewer", "Nothing was changed"]);
    assert_eq!(place.json(&["schedule", "show", name, "--json"])["version"], 1, "nothing has changed");
    has(&said(&place, &["schedule", "edit", name, "--every", "6h"], 0), &["Every 6 hours", "version   2"]);
    assert_eq!(place.json(&["schedule", "edit", name, "--every", "6h", "--json"])["version"], 2, "nothing changes");
    let edited = place.json(&["schedule", "edit", name, "--prompt", "Stay", "--json"]);
    assert_eq!((&edited["prompt"], &edited["intervalMinutes"]), (&json!("Stay"), &json!(360)));
    has(&said(&place, &["schedule", "edit", name], 2), &["what is to change?"]);

    has(&said(&place, &["schedule", "pause", name, "--reason", "a rest"], 0), &["is paused: a rest", "runs no more"]);
    has(&said(&place, &["timers", "--all"], 0), &[name]);
    has(&said(&place, &["schedule", "resume", name], 0), &["is active, and runs next at"]);
    assert_eq!(place.json(&["schedule", "pause", name, "--json"])["state"], "paused");
    has(&said(&place, &["schedule", "rm", name, "--dry-run"], 0), &["Nothing was changed"]);
    has(&said(&place, &["schedule", "rm", name, "--yes"], 0), &["is deleted"]);
    has(&said(&place, &["schedule", "show", name], 5), &["there is no schedule"]);
    add(&place, "again");
    assert_eq!(place.json(&["schedule", "rm", "again", "--yes", "--json"])["name"], "again");
    assert!(server.stop().success());
    place.verify();
}

#[test]
fn what_cannot_be_done_is_said_with_an_exit_code() {
    let (place, server) = up("cli-wrong");
    let base = ["schedule", "add", "--agent", "quick"];
    let with = |more: &[&'static str]| [&base[..], more].concat();
    has(&said(&place, &with(&[]), 2), &["when? use one of --cron"]);
    has(
        &said(&place, &with(&["--cron", "0 24 * * *"]), 2),
        &["error: --cron: hour: 24 is out of range", "use 0 to 23"],
    );
    has(&said(&place, &with(&["--every", "90s"]), 2), &["whole minutes"]);
    has(&said(&place, &with(&["--cron", "@daily", "--now"]), 2), &["cannot be used with"]);
    has(
        &said(&place, &["schedule", "add", "--agent", "nobody", "--now"], 2),
        &["there is no agent", "use one of flaky, quick"],
    );
    add(&place, "twice");
    has(&said(&place, &with(&["--name", "twice", "--now"]), 6), &["twice"]);
    // The same name in two projects is a question.
    said(&place, &with(&["--name", "twice", "--project", "atlas", "--cron", "@daily"]), 0);
    let text = said(&place, &["schedule", "show", "twice"], 2);
    has(&text, &["may be any of 2 schedules", "in project atlas"]);
    let all = place.json(&["schedule", "list", "--json"]);
    let ids: Vec<&str> = all.as_array().unwrap().iter().map(|it| it["scheduleId"].as_str().unwrap()).collect();
    let shared = ids[0].bytes().zip(ids[1].bytes()).take_while(|(a, b)| a == b).count();
    if 4 <= shared {
        has(&said(&place, &["schedule", "pause", &ids[0][..shared]], 2), &[ids[0], ids[1]]);
    }
    has(&said(&place, &["why", "nothing"], 5), &["no run and no schedule"]);
    has(&said(&place, &["why", RUN], 5), &["does not exist"]);
    has(&said(&place, &["trigger", "nothing"], 5), &["no schedule and no agent"]);
    has(&said(&place, &["history", "--since", "soon"], 2), &["'soon' for '--since <TIME>': use 2026-03-09"]);
    said(&place, &["history", "--since", "yesterday"], 0);
    has(&said(&place, &with(&["--cron", "@daily", "--zone", "Mars"]), 2), &["error: --zone: \"Mars\" is not"]);
    has(&said(&place, &with(&["--cron", "@daily", "--jitter", "x"]), 2), &["error: --jitter: \"x\""]);
    has(&said(&place, &with(&["--at", "soon"]), 2), &["'soon' for '--at <TIME>': use 2026-03-09"]);
    has(&said(&place, &with(&["--cron", "@daily", "--calendar", "x"]), 2), &["the configuration has none"]);
    has(&said(&place, &["plan", "--day", "tomorrow"], 0), &["A day is planned when it begins"]);
    has(&said(&place, &["plan", "--day", "soon"], 2), &["yesterday, today or tomorrow"]);

    // Tokens that allow less.
    let secret = place.json(&["token", "create", "guest", "--role", "viewer", "--json"])["secret"].clone();
    let guest = [("PUNCTUAL_TOKEN", secret.as_str().unwrap())];
    said_with(&place, &["schedule", "list"], &guest, 0);
    has(&said_with(&place, &["trigger", "quick"], &guest, 4), &["does not allow", "PUNCTUAL_TOKEN"]);
    let wrong = [("PUNCTUAL_TOKEN", "pt_nobody_knows_this_one_at_all_and_it_is_long")];
    has(&said_with(&place, &["plan"], &wrong, 4), &["not known here", "tried: PUNCTUAL_TOKEN", "token create"]);
    has(&said_with(&place, &["doctor"], &wrong, 1), &["not known here"]);
    // Nobody is there.
    for args in
        [&["plan", "--server", "http://127.0.0.1:1"][..], &["trigger", "quick", "--server", "http://127.0.0.1:1"]]
    {
        has(&said(&place, args, 3), &["no server answers at http://127.0.0.1:1", "`punctual up`", "--server"]);
    }
    has(&said(&place, &["plan", "--server", "http://punctual.example"], 2), &["use https://"]);
    has(&said(&place, &["plan", "--server", "elsewhere"], 2), &["is no address"]);
    has(&said(&place, &["--help"], 0), &["Exit codes:", "3  no server answers"]);
    assert!(server.stop().success());
}

#[test]
fn a_run_is_triggered_followed_and_explained() {
    let (place, server) = up("cli-trigger");
    let text = said(&place, &["trigger", "quick", "--wait"], 0);
    has(&text, &["succeeded", "all is well"]);
    add(&place, "morning");
    let done = place.json(&["trigger", "morning", "--prompt", "Now", "--wait", "--json"]);
    assert_eq!((&done["resultStatus"], &done["responseSummary"]), (&json!("SUCCESS"), &json!("all is well")));
    said(
        &place,
        &["schedule", "add", "--agent", "wrong", "--name", "bad", "--cron", "@yearly", "--max-attempts", "1"],
        0,
    );
    has(&said(&place, &["trigger", "bad", "--wait"], 1), &["failed", "NO_DATA: there is nothing to read"]);

    let text = said_with(&place, &["history"], &[("TZ", "America/Denver")], 0);
    has(
        &text,
        &[
            "TIME",
            "ENDED",
            "Times of America/Denver",
            "morning",
            "bad",
            "succeeded",
            "NO_DATA: there is nothing to read",
        ],
    );
    let failed = place.json(&["history", "--schedule", "bad", "--status", "failed", "--since", "1h", "--json"]);
    assert_eq!(failed["content"].as_array().unwrap().len(), 1, "{failed}");
    let run = failed["content"][0]["executionId"].as_str().unwrap();
    assert_eq!(place.json(&["history", "--run", run, "--json"])["content"], failed["content"]);
    assert_eq!(place.json(&["history", "--agent", "quick", "--limit", "1", "--json"])["numberOfElements"], 1);
    has(&said(&place, &["history", "--until", "2020-01-01"], 0), &["Nothing has happened"]);

    has(&said(&place, &["why", run], 0), &[run, "there is nothing to read", "token operator@", "asked for it"]);
    assert_eq!(place.json(&["why", run, "--json"])["executionId"], run);
    assert_eq!(place.json(&["why", "bad", "--json"])["executionId"], run, "a schedule stands for its last run");
    has(&said(&place, &["why", "morning", "--at", "2026-03-09T10:30:00"], 1), &["is none of its times"]);

    // What is at work is seen at work.
    let zone = zone_at_noon();
    let asked = place.json(&["trigger", "slow", "--json"]);
    let slow = asked["executionId"].as_str().unwrap();
    place.until("it is at work", |place| {
        place.json(&["plan", "--live", "--json", "--zone", &zone])["future"]
            .as_array()
            .unwrap()
            .iter()
            .any(|run| run["executionId"] == slow && run["execStatus"] == "RUNNING")
    });
    let text = said(&place, &["plan", "--all", "--ascii", "--zone", &zone], 0);
    has(&text, &["NOW", "00 ", "TIME", "SCHEDULE", "running", "failed", "succeeded", "* done", "> running", slow]);
    assert!(text.is_ascii(), "{text}");
    let narrow = said_with(&place, &["plan", "--zone", &zone], &[("COLUMNS", "50"), ("LC_ALL", "C.UTF-8")], 0);
    has(&narrow, &["▶ running", "● done"]);
    assert!(narrow.lines().take(6).all(|line| line.chars().count() <= 50), "{narrow}");
    let plan = place.json(&["plan", "--json", "--schedule", "bad", "--zone", &zone]);
    assert_eq!(plan["past"][0]["executionId"], run);
    let text = said(&place, &["timers"], 0);
    has(&text, &["NEXT", "LEFT", "LAST", "PASSED", "SCHEDULE", "AGENT", "morning"]);
    let timers = place.json(&["timers", "--json"]);
    let morning = timers.as_array().unwrap().iter().find(|it| it["scheduleName"] == "morning").unwrap();
    assert!(morning["lastStartedAt"].is_string() && morning["nextExecutionAt"].is_string(), "{morning}");
    server.kill();
}

#[test]
fn why_answers_for_a_schedule_in_whatever_state_it_is() {
    let (place, server) = up("cli-why");
    let add = |name: &str, agent: &str, more: &[&str]| {
        said(
            &place,
            &[&["schedule", "add", "--name", name, "--agent", agent, "--cron", "@yearly"][..], more].concat(),
            0,
        )
    };
    let why = |name: &str| said(&place, &["why", name, "--zone", "Europe/Paris"], 0);
    add("fresh", "quick", &[]);
    has(&why("fresh"), &["it has not run yet: its first run is at", "-01-01 ", "Europe/Paris"]);
    said(&place, &["schedule", "pause", "fresh", "--reason", "a rest"], 0);
    has(&why("fresh"), &["its schedule was paused by operator@", ": a rest (paused)"]);

    add("flaky-one", "flaky", &["--retry-delay", "1s"]);
    has(
        &said(&place, &["trigger", "flaky-one", "--wait"], 0),
        &["try 1 of 3 has failed, again in", "succeeded at try 2"],
    );
    let text = why("flaky-one");
    has(&text, &["its work was done at try 2 (succeeded)", "try 1 failed: BUSY: not now (tried_before)"]);
    has(&text, &["token operator@", "asked for it at"]);
    // An agent stands for its runs, too.
    has(&why("flaky"), &["its work was done at try 2"]);
    place.until("what it printed is kept", |place| said(place, &["logs", "flaky"], 0).contains("fine"));
    has(&said(&place, &["logs", "flaky"], 0), &["BUSY", "-- try 2 --"]);
    has(&said(&place, &["logs", "flaky", "--attempt", "7"], 5), &["no output of try 7"]);

    add("gated", "slow", &["--risk-gate"]);
    has(&said(&place, &["trigger", "gated"], 0), &["It may wait for an approval: `punctual approve "]);
    place.until("it waits", |place| place.json(&["approvals", "--json"])["items"][0].is_object());
    has(&why("gated"), &["a person has to approve it until"]);
    has(&said(&place, &["logs", "gated"], 0), &["has printed nothing"]);
    said(&place, &["approve", "gated", "--reason", "looks right", "--yes"], 0);
    place.until("it is at work", |_| why("gated").contains("(running)"));
    has(&why("gated"), &["token operator@", "approved it: looks right (approved)"]);
    said(&place, &["cancel", "gated", "--force"], 0);
    place.until("it is over", |_| why("gated").contains("called it off while it was at work"));

    server.signal("USR1");
    place.until("it is paused", |place| place.read("log").contains("paused: nothing is claimed"));
    said(&place, &["trigger", "flaky-one"], 0);
    has(&why("flaky-one"), &["was told to claim nothing (SIGUSR1)"]);
    has(&said(&place, &["nodes"], 0), &["of 8, paused"]);
    assert!(server.stop().success());
    has(&why("flaky-one"), &["no server is running; it has been due since"]);
}

#[test]
fn a_run_is_called_off() {
    let (place, server) = up("cli-cancel");
    let zone = zone_at_noon();
    let made =
        ["schedule", "add", "--name", "slow-one", "--agent", "slow", "--every", "10m", "--zone", &zone, "--json"];
    let made = place.json(&made);
    // The next one of a schedule that rests.
    let cancelled = place.json(&["cancel", "slow-one", "--yes", "--json"]);
    assert_eq!((&cancelled["execStatus"], &cancelled["outcome"]), (&json!("CANCELLED"), &json!("cancelled")));
    assert_eq!((&cancelled["scheduleName"], &cancelled["scheduledAt"]), (&json!("slow-one"), &made["nextExecutionAt"]));
    let id = cancelled["executionId"].as_str().unwrap();
    // What was called off is not announced as the next one.
    let next = place.json(&["schedule", "show", "slow-one", "--json"])["nextExecutionAt"].clone();
    assert!(cancelled["scheduledAt"].as_str() < next.as_str(), "{next} behind {cancelled}");
    assert_eq!(place.json(&["schedule", "list", "--json"])[0]["nextExecutionAt"], next);
    assert_eq!(place.json(&["timers", "--json"])[0]["nextExecutionAt"], next);
    has(&said(&place, &["cancel", id], 0), &["is cancelled"]);
    has(&said(&place, &["plan", "--all", "--zone", &zone], 0), &["cancelled"]);
    let api = Client::of(&place);
    assert_eq!(api.get(&format!("/api/executions/{id}")).json(200), cancelled);
    let past = api.get(&format!("/api/executions/past?executionId={id}")).json(200);
    assert_eq!(past["content"][0]["scheduleName"], "slow-one");

    // One that is at work: not by the way.
    let run = place.json(&["trigger", "slow-one", "--json"])["executionId"].as_str().unwrap().to_owned();
    place.until("it is at work", |place| !place.effects().is_empty());
    has(&said(&place, &["cancel", "slow-one"], 6), &["is at work; --force stops it", &run]);
    has(&said(&place, &["cancel", &run, "--force"], 0), &[&run, "asked to stop"]);
    place.until("it is over", |_| api.get(&format!("/api/executions/{run}")).json(200)["outcome"] == "cancelled");

    let done = place.json(&["trigger", "quick", "--wait", "--json"])["executionId"].as_str().unwrap().to_owned();
    has(&said(&place, &["cancel", &done], 6), &["is over already: it succeeded"]);
    has(&said(&place, &["cancel", "nobody"], 5), &["there is no schedule \"nobody\""]);
    has(&said(&place, &["cancel", RUN], 5), &["does not exist"]);
    assert!(server.stop().success());
}

#[test]
fn history_is_sorted_by_its_first_column_and_outlives_its_schedule() {
    let (place, server) = up("cli-history");
    let zone = zone_at_noon();
    // One without a name, which is called by its agent, and one of the same agent that is deleted.
    said(&place, &["schedule", "add", "--agent", "quick", "--cron", "@yearly"], 0);
    let made = ["schedule", "add", "--name", "gone", "--agent", "quick", "--times", "23:00", "--zone", &zone, "--json"];
    let id = place.json(&made)["scheduleId"].as_str().unwrap().to_owned();
    said(&place, &["cancel", "gone", "--yes"], 0);
    said(&place, &["trigger", "gone", "--wait"], 0);
    let times = || -> Vec<String> {
        let text = said(&place, &["history", "--zone", &zone], 0);
        text.lines().skip(1).take(2).map(|line| line.trim()[..19].to_owned()).collect()
    };
    // What was cancelled ahead of its time stands where that happened, not at 23:00.
    assert!(times()[1] <= times()[0] && times().iter().all(|time| !time.ends_with("23:00:00")), "{:?}", times());
    let run = place.json(&["history", "--schedule", &id, "--status", "succeeded", "--json"])["content"][0].clone();
    assert!(run["startedAt"].is_string() && run["scheduleDeleted"].is_null(), "{run}");
    let one = Client::of(&place).get(&format!("/api/executions/{}", run["executionId"].as_str().unwrap())).json(200);
    assert_eq!(one["startedAt"], run["startedAt"]);

    said(&place, &["schedule", "rm", "gone", "--yes"], 0);
    let text = said(&place, &["history"], 0);
    has(&text, &["(deleted)"]);
    assert!(!text.contains("@quick"), "{text}");
    let kept = place.json(&["history", "--schedule", &id, "--json"]);
    assert_eq!((&kept["totalElements"], &kept["content"][0]["scheduleDeleted"]), (&json!(2), &json!(true)), "{kept}");
    has(&said(&place, &["history", "--schedule", "gone"], 5), &["there is no schedule", "found by its id"]);
    assert!(server.stop().success());
}

#[test]
fn agents_nodes_tokens_and_the_doctor_say_what_there_is() {
    let (place, server) = up("cli-about");
    has(&said(&place, &["agents"], 0), &["AGENT", "RISK", "quick", "read", "process"]);
    assert_eq!(place.json(&["agents", "--json"])[1]["agentId"], "quick");
    has(&said(&place, &["nodes"], 0), &["NAME", "LEASE", "0 of 8", "flaky, quick, slow, wrong"]);
    assert_eq!(place.json(&["nodes", "--json"])[0]["places"], 8);

    let text = said(&place, &["token", "create", "ada lovelace", "--role", "editor", "--project", "atlas"], 0);
    has(&text, &["ada lovelace", "editor", "atlas", "secret", "pt_", "never shown again"]);
    has(&said(&place, &["token", "list"], 0), &["NAME", "operator", "admin", "ada lovelace", "never"]);
    assert!(!place.json(&["token", "list", "--json"]).to_string().contains("pt_"));
    has(&said(&place, &["token", "revoke", "ada lovelace", "--yes"], 0), &["allows nothing any more"]);
    has(&said(&place, &["token", "revoke", "ada lovelace"], 5), &["there is no token"]);
    // Nobody locks themselves out by the way.
    let tokens = place.json(&["token", "list", "--json"]);
    let first = tokens.as_array().unwrap().iter().find(|token| token["role"] == "admin").unwrap()["name"].as_str();
    has(&said(&place, &["token", "revoke", first.unwrap(), "--yes"], 6), &["last token of an admin", "--force"]);
    place.json(&["token", "create", "second", "--role", "admin", "--json"]);
    has(&said(&place, &["token", "revoke", "second", "--yes"], 0), &["allows nothing any more"]);
    place.json(&["token", "create", "x", "--role", "viewer", "--expires", "2999-01-01T00:00:00Z", "--json"]);
    assert_eq!(place.json(&["token", "revoke", "x", "--yes", "--json"])["revoked"], true);

    let text = said(&place, &["doctor"], 0);
    has(&text, &["CHECK", "server", "answers, release", "token", "punctual.db.token", "clock", "PROTECTION"]);
    let doctor = place.json(&["doctor", "--json"]);
    let good =
        |name: &str| doctor["checks"].as_array().unwrap().iter().find(|it| it["name"] == name).unwrap()["good"].clone();
    assert_eq!((good("server"), good("token"), good("clock")), (json!("yes"), json!("yes"), json!("yes")));
    assert!(doctor["protections"].as_array().is_some_and(|all| !all.is_empty()));
    assert!(server.stop().success());
    let doctor: Value = serde_json::from_str(&said(&place, &["doctor", "--json"], 1)).unwrap();
    assert_eq!((&doctor["checks"][0]["good"], &doctor["checks"][1]["good"]), (&json!("no"), &json!("unknown")));
}

#[test]
fn a_start_that_cannot_be_leaves_no_database_behind() {
    let place = place("cli-start");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let short = [("PUNCTUAL_TOKEN", "short")];
    for (args, env, expected) in [
        (&["up", "--listen", &taken][..], &[][..], "--listen chooses another address"),
        (&["up", "--listen", "0.0.0.0:0"], &[], "--tls-cert"),
        (&["up"], &short, "32 characters or more"),
        (&["up", "--listen", "nowhere"], &[], "use an address of this machine"),
    ] {
        let _held = std::net::TcpListener::bind(&taken);
        has(&said_with(&place, args, env, 2), &[expected]);
        assert!(!place.path("punctual.db").exists(), "{args:?}");
    }
}

#[test]
fn a_server_of_another_folder_is_not_taken_for_none() {
    let (place, server) = up("cli-elsewhere");
    let url = place.read("punctual.db.server").trim().to_owned();
    std::fs::create_dir(place.path("other")).unwrap();
    let missing = ["plan", "--database", "sqlite:other/punctual.db"];
    place.write("other/punctual.db.server", &url);
    has(&said(&place, &missing, 3), &["no server is running here, and other/punctual.db does not exist"]);
    place.write("other/punctual.db", "");
    has(&said(&place, &missing, 4), &["does not let us in", "PUNCTUAL_TOKEN"]);
    assert!(server.stop().success());
    // Whoever looks without a server is told so.
    has(&said(&place, &["timers"], 0), &["note: no server is running here"]);
}

#[test]
fn without_a_server_one_can_look_and_not_touch() {
    let (place, server) = up("cli-offline");
    // Nothing of it becomes due while it is looked at.
    said(&place, &["schedule", "add", "--agent", "quick", "--name", "morning", "--cron", "@yearly"], 0);
    let zone = zone_at_noon();
    said(&place, &["trigger", "morning", "--wait"], 0);
    let file = place.path("punctual.db.server");
    let mode = |path| std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(path).unwrap().permissions()) & 0o777;
    assert_eq!(mode(&file), 0o600);
    let asked: [&[&str]; 6] = [
        &["schedule", "list", "--json"],
        &["schedule", "show", "morning", "--json"],
        &["history", "--json"],
        &["plan", "--json", "--zone", &zone],
        &["timers", "--json"],
        &["why", "morning", "--json"],
    ];
    let before: Vec<Value> = asked.iter().map(|args| place.json(args)).collect();
    assert!(server.stop().success());
    assert!(!file.exists(), "a clean stop takes its address away");
    let look = |when: &str| {
        for (args, before) in asked.iter().zip(&before) {
            assert_eq!(&place.json(args), before, "{when}, {args:?}: the same shape, the same answer");
        }
    };
    look("stopped");
    has(&said(&place, &["nodes"], 0), &["No node serves this database"]);
    assert_eq!(place.json(&["agents", "--json"])[1]["agentId"], "quick", "as the configuration says");
    // An address that a killed server has left: nobody answers there.
    place.write("punctual.db.server", "http://127.0.0.1:1\n");
    look("killed");
    for args in
        [&["trigger", "quick"][..], &["schedule", "pause", "morning"], &["token", "list"], &["logs", "morning", "-f"]]
    {
        has(&said(&place, args, 3), &["no server answers at http://127.0.0.1:1"]);
    }
    // A configuration that is broken does not hide the past.
    place.write("punctual.toml", "[agents");
    has(&said(&place, &["history"], 0), &["all is well", "goes on without the configuration"]);
    place.verify();
}

fn says_output(asked: &crate::stand_in::Asked) -> Option<(&'static str, String)> {
    let item = |seq: u64, stream: &str, text: &str| json!({"seq": seq, "attempt": 1, "stream": stream, "at": "2026-03-09T09:00:00Z", "text": text});
    let items = [item(1, "stdout", "one\n"), item(2, "stderr", "careful\n"), item(3, "stdout", "grün\n")];
    let event = |item: &Value| format!("event: output\nid: {}\ndata: {item}\n\n", item["seq"]);
    let base = format!("GET /api/executions/{RUN}/output");
    if asked.line == format!("{base}?after=2") {
        return Some(("application/json", json!({"items": items[2..], "isCut": false, "isOver": true}).to_string()));
    }
    if asked.line == format!("{base}?after=3") {
        return Some(("application/json", json!({"items": [], "isCut": false, "isOver": true}).to_string()));
    }
    if asked.line == base {
        return Some(("application/json", json!({"items": items[..2], "isCut": false, "isOver": false}).to_string()));
    }
    if asked.line != format!("{base}/stream") {
        return None;
    }
    // The stream breaks off once, and is taken up behind what has come.
    let text = match asked.head.contains("last-event-id: 2") {
        false => format!(": hello\n\n{}{}", event(&items[0]), event(&items[1])),
        true => format!("{}event: over\ndata: {{}}\n\n", event(&items[2])),
    };
    Some(("text/event-stream", text))
}

#[test]
fn output_is_shown_as_it_was_printed_and_followed_over_a_break() {
    let place = place("cli-logs");
    let server = StandIn::new(says_output);
    for more in [&[][..], &["-f"]] {
        let args = [&["logs", RUN, "--server", &server.url][..], more].concat();
        let output = place.punctual(&args);
        assert!(output.status.success(), "{output:?}");
        let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        assert_eq!(text, ["one\ngrün\n", "careful\n"], "{args:?}");
    }
    assert_eq!(server.asked(&format!("GET /api/executions/{RUN}/output/stream")).len(), 2);
    let body = place.json(&["logs", RUN, "--json", "--server", &server.url]);
    assert_eq!((&body["items"][1]["stream"], &body["items"][2]["seq"]), (&json!("stderr"), &json!(3)));
    assert_eq!(body["isOver"], true);
    let lines = said(&place, &["logs", RUN, "-f", "--json", "--server", &server.url], 0);
    assert_eq!(
        lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["seq"].as_u64().unwrap()).sum::<u64>(),
        6
    );
    has(&said(&place, &["logs", &RUN.replace('f', "e"), "--server", &server.url], 5), &["another release"]);
}

fn says_approvals(asked: &crate::stand_in::Asked) -> Option<(&'static str, String)> {
    let one = json!({"runId": RUN, "scheduleId": null, "scheduleName": "nightly clean", "agentId": "cleaner", "projectId": null,
        "risk": "exec", "prompt": "Remove what is old", "inputs": {"days": 30}, "digest": "d1", "scheduledAt": "2026-03-09T09:00:00Z",
        "askedAt": "2026-03-09T09:00:00Z", "expiresAt": "2999-03-09T09:00:00Z"});
    match asked.line.as_str() {
        "GET /api/approvals" => Some(("application/json", json!({"items": [one]}).to_string())),
        line if line.starts_with(&format!("POST /api/approvals/{RUN}/")) => {
            Some(("application/json", json!({"runId": RUN}).to_string()))
        }
        _ => None,
    }
}

#[test]
fn a_run_that_waits_is_approved_or_denied_as_it_was_seen() {
    let place = place("cli-approvals");
    let server = StandIn::new(says_approvals);
    let with = |args: &[&'static str]| -> Vec<String> {
        args.iter().copied().chain(["--server", &server.url]).map(str::to_owned).collect()
    };
    let say = |args: &[&'static str], code: i32| {
        let args = with(args);
        said(&place, &args.iter().map(String::as_str).collect::<Vec<_>>(), code)
    };
    has(&say(&["approvals"], 0), &["SCHEDULED", "nightly clean", "exec", "Remove what is old", RUN]);
    has(&say(&["approvals", "--json"], 0), &["\"digest\": \"d1\""]);
    has(&say(&["approve", "nightly clean", "--yes", "--reason", "looked at it"], 0), &["is approved"]);
    has(&say(&["deny", RUN, "--yes", "--json"], 0), &[RUN]);
    has(&say(&["deny", "another"], 5), &["waits for approval"]);
    let approved = server.asked(&format!("POST /api/approvals/{RUN}/approve"));
    let body: Value = serde_json::from_str(&approved[0].body).unwrap();
    assert_eq!(body, json!({"digest": "d1", "reason": "looked at it"}));
    assert!(approved[0].head.contains("idempotency-key: "), "{}", approved[0].head);
    assert_eq!(server.asked(&format!("POST /api/approvals/{RUN}/deny")).len(), 1);
}

#[test]
fn at_a_terminal_a_person_is_asked() {
    let (place, server) = up("cli-terminal");
    add(&place, "dear");
    let (screen, status) = place.at_terminal(&["schedule", "rm", "dear"], "n");
    has(&screen, &["Delete dear", "[y/N]", "Nothing was deleted"]);
    assert_eq!(status.code(), Some(1), "{screen}");
    assert_eq!(place.json(&["schedule", "show", "dear", "--json"])["name"], "dear");
    has(&place.at_terminal(&["schedule", "rm", "dear"], "y").0, &["dear is deleted"]);
    // How far long work is, is shown to whoever waits for it, and then makes room for the result.
    let (screen, status) = place.at_terminal(&["backup", "copy.db"], "");
    has(&screen, &["copying", "a backup of punctual.db, checked"]);
    assert!(status.success(), "{screen}");
    has(&place.at_terminal(&["verify"], "").0, &["rebuilding everything", "the journal adds up"]);
    assert!(!said(&place, &["verify"], 0).contains("rebuilding"), "nobody watches");
    assert!(server.stop().success());

    let stand_in = StandIn::new(says_approvals);
    let ask = |verb: &str, answer: &str| {
        place.at_terminal(&[verb, "nightly clean", "--reason", "so", "--server", &stand_in.url], answer).0
    };
    has(&ask("approve", "n"), &["Remove what is old", "\"days\": 30", "Approve it?", "Nothing was decided"]);
    assert_eq!(stand_in.asked("POST").len(), 0);
    has(&ask("deny", "y"), &["Remove what is old", "Deny it?", "is denied"]);
    assert_eq!(stand_in.asked("POST").len(), 1);
}

#[test]
fn a_change_that_somebody_else_made_meanwhile_is_a_conflict() {
    let (place, server) = up("cli-conflict");
    let id = add(&place, "shared")["scheduleId"].as_str().unwrap().to_owned();
    // Two editors, one after the other, each on the version that it has seen.
    let api = Client::of(&place);
    let path = format!("/api/schedules/{id}");
    api.send("PUT", &path, &[("If-Match", "\"1\"")], Some(json!({"prompt": "theirs"}))).json(200);
    let stale = api.send("PUT", &path, &[("If-Match", "\"1\"")], Some(json!({"prompt": "mine"})));
    assert_eq!(stale.problem(409), "other_version");
    assert_eq!(
        place.json(&["schedule", "edit", "shared", "--prompt", "mine", "--json"])["version"],
        3,
        "it reads before it writes"
    );
    assert!(server.stop().success());
}

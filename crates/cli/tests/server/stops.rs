//! A node that is told to stop while work goes on: a deploy costs no attempt, and is not told as a death.

use punctual_lab::postgres::{Durability, Server as Postgres};
use serde_json::Value;

use crate::client::Client;
use crate::support::{Place, Server};

/// Works until the file `go` is there.
const AGENT: &str =
    "echo \"$PUNCTUAL_RUN_ATTEMPT\" >> effects; echo began; while [ ! -f go ]; do sleep 0.05; done; echo done";

fn config(more: &str) -> String {
    format!(
        "[engine]\ndrain_seconds = 1\n[agents.slow]\nrunner = \"process\"\ncommand = [\"sh\", \"agent.sh\"]\n\
         [[schedules]]\nname = \"it\"\nagent = \"slow\"\nimmediate = true\n{more}\n"
    )
}

/// A place whose run has begun.
fn at_work(place: &Place) -> Server {
    place.write("agent.sh", AGENT);
    let server = place.up();
    place.until("it is at work", |place| place.effects().len() == 1);
    server
}

fn results(place: &Place) -> Vec<Value> {
    place.history().iter().map(|item| item["result"].clone()).collect()
}

fn text(place: &Place, args: &[&str]) -> String {
    let output = place.punctual(args);
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

/// A deploy in the middle of a run that may be tried once.
fn a_deploy_costs_no_attempt(place: &Place) {
    let server = at_work(place);
    assert!(server.stop().success());
    assert_eq!(results(place), ["stopped"]);
    let run = &place.runs()[0];
    assert_eq!((&run["state"], &run["attempt"]), (&"planned".into(), &0.into()));
    // With no server there, too: it was a stop, and the run goes on.
    let why = text(place, &["why", "it"]);
    assert!(why.contains("its node was stopped while it was at work; the run goes on"), "{why}");
    let history = text(place, &["history"]);
    assert!(history.contains("stopped") && !history.contains("failed"), "{history}");

    place.write("log", "");
    let server = place.up();
    let api = Client::of(place);
    place.until("it has begun again", |place| place.effects().len() == 2);
    place.write("go", "");
    place.until("it is done", |place| results(place) == ["stopped", "succeeded"]);
    assert_eq!(place.effects(), ["1", "1"], "it is the same attempt");
    let past = api.get("/api/executions/past").json(200);
    let shown =
        |index: usize| (past["content"][index]["resultStatus"].clone(), past["content"][index]["attempt"].clone());
    assert_eq!([shown(0), shown(1)], [("SUCCESS".into(), 1.into()), ("STOPPED".into(), 1.into())]);
    assert_eq!(past["content"][1]["errorCode"], "stopped");
    assert_eq!(api.get("/api/executions/past?resultStatus=STOPPED").json(200)["totalElements"], 1);
    assert_eq!(api.get("/api/executions/metrics").json(200)["failCount"], 0, "a stop is no failure");
    let run = place.runs()[0]["run"].as_str().unwrap().to_owned();
    let why = api.get(&format!("/api/executions/{run}/why")).text;
    assert!(why.contains("succeeded") && why.contains("try 1 was stopped with its node"), "{why}");
    assert!(server.stop().success());
    place.verify();
}

#[test]
fn a_deploy_costs_no_attempt_on_sqlite() {
    a_deploy_costs_no_attempt(&Place::new("deploy", &config("max_attempts = 1\nmax_delay = \"1s\"")));
}

#[test]
fn a_deploy_costs_no_attempt_on_postgres() {
    let postgres = Postgres::start(Durability::Off).expect("PostgreSQL starts");
    let config = config("max_attempts = 1\nmax_delay = \"1s\"");
    a_deploy_costs_no_attempt(&Place::new("deploy-pg", &config).with_database(&postgres.address()));
}

#[test]
fn what_must_not_be_done_twice_is_held_by_a_deploy() {
    let place = Place::new("deploy-hold", &config("after_loss = \"hold\""));
    let server = at_work(&place);
    assert!(server.stop().success());
    assert_eq!(place.runs()[0]["state"], "unknown");
    place.write("log", "");
    let server = place.up();
    let api = Client::of(&place);
    let past = api.get("/api/executions/past").json(200);
    assert_eq!(
        (&past["content"][0]["resultStatus"], &past["content"][0]["errorCode"]),
        (&"FAIL".into(), &"stopped".into())
    );
    let why = text(&place, &["why", "it"]);
    assert!(why.contains("its node was stopped while it was at work; whether the work was done is not known"), "{why}");
    assert_eq!(place.effects().len(), 1);
    assert!(server.stop().success());
    place.verify();
}

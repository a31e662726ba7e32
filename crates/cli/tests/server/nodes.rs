//! Two nodes: they share the work, and each survives the other.

use punctual_lab::postgres::{Durability, Server as Postgres};
use serde_json::Value;

use crate::support::{Place, is_alive, rest_for};

/// Leaves a line for each attempt, then does what it is called for. `first` works until somebody stops it, but only the first
/// time.
const AGENT: &str = r#"
echo "$PUNCTUAL_RUN_ID $PUNCTUAL_RUN_ATTEMPT $$" >> effects
case "$1" in
  first) [ "$(wc -l < effects)" -gt 1 ] || while :; do sleep 0.1; done ;;
  busy) end=$(($(date +%s) + 8)); while [ "$(date +%s)" -lt "$end" ]; do :; done ;;
esac
"#;

fn config(agent: &str, engine: &str, more: &str) -> String {
    format!(
        "[engine]\n{engine}\n[agents.{agent}]\nrunner = \"process\"\ncommand = [\"sh\", \"agent.sh\", \"{agent}\"]\n\
         grace = \"1s\"\n[[schedules]]\nname = \"it\"\nagent = \"{agent}\"\n{more}\n"
    )
}

fn place(test: &str, postgres: &Postgres, config: &str) -> Place {
    let place = Place::new(test, config).with_database(&postgres.address());
    place.write("agent.sh", AGENT);
    place
}

fn postgres() -> Postgres {
    Postgres::start(Durability::Off).expect("a server can be started")
}

fn time(value: &Value) -> jiff::Timestamp {
    value.as_str().unwrap_or_else(|| panic!("{value} is no time")).parse().unwrap()
}

fn results(place: &Place) -> Vec<String> {
    place.history().iter().map(|item| item["result"].as_str().unwrap().to_owned()).collect()
}

fn lease_until(place: &Place, name: &str) -> jiff::Timestamp {
    let Value::Array(nodes) = place.json(&["nodes", "--json"]) else { panic!() };
    time(&nodes.iter().find(|node| node["name"] == name).unwrap()["leaseUntil"])
}

#[test]
fn what_a_killed_node_had_at_work_is_taken_over_when_its_lease_has_ended() {
    let postgres = postgres();
    let place = place("killed", &postgres, &config("first", "lease_duration_seconds = 4", "immediate = true"));
    let first = place.up_with(&["--name", "a"]);
    place.until("it is at work", |place| place.effects().len() == 1);
    let second = place.up_with(&["--name", "b"]);
    place.until("both are there", |place| place.json(&["nodes", "--json"]).as_array().unwrap().len() == 2);
    first.kill();
    let until = lease_until(&place, "a");
    place.until("the other has done it", |place| results(place) == ["lost", "succeeded"]);
    let history = place.history();
    let late = time(&history[0]["at"]).duration_since(until);
    println!("taken over {late:#} after the end of the lease");
    assert!(late.is_positive(), "nobody may have it before: {late:#}");
    // Two seconds are the promise; a busy machine may need a moment more.
    assert!(late.as_secs() < 2 + 2, "{late:#}");
    assert!(second.stop().success());
    place.verify();
}

#[test]
fn a_node_that_was_stopped_finds_its_work_taken_over_and_ends_it() {
    let postgres = postgres();
    let place = place("stopped", &postgres, &config("first", "lease_duration_seconds = 3", "immediate = true"));
    let first = place.up_with(&["--name", "a"]);
    place.until("it is at work", |place| place.effects().len() == 1);
    let worker = place.effects()[0].split(' ').nth(2).unwrap().to_owned();
    let second = place.up_with(&["--name", "b"]);
    place.until("both are there", |place| place.json(&["nodes", "--json"]).as_array().unwrap().len() == 2);
    first.signal("STOP");
    place.until("the other has done it", |place| results(place) == ["lost", "succeeded"]);
    first.signal("CONT");
    place.until("its own work has ended", |_| !is_alive(&worker));
    place.until("it has joined again", |place| place.json(&["nodes", "--json"]).as_array().unwrap().len() == 2);
    assert!(first.stop().success());
    assert!(second.stop().success());
    assert_eq!(results(&place), ["lost", "succeeded"], "what it had to say came too late");
    place.verify();
}

#[test]
fn a_node_that_stops_hands_its_work_over_at_once() {
    let postgres = postgres();
    let engine = "lease_duration_seconds = 60\ndrain_seconds = 0";
    let place = place("rolling", &postgres, &config("first", engine, "immediate = true\nmax_attempts = 1"));
    let first = place.up_with(&["--name", "a"]);
    place.until("it is at work", |place| place.effects().len() == 1);
    let second = place.up_with(&["--name", "b"]);
    place.until("both are there", |place| place.json(&["nodes", "--json"]).as_array().unwrap().len() == 2);
    assert!(first.stop().success());
    place.until("the other has done it", |place| results(place) == ["stopped", "succeeded"]);
    let history = place.history();
    let handed_over = time(&history[1]["attempt"]["started_at"]).duration_since(time(&history[0]["at"]));
    println!("handed over within {handed_over:#}");
    assert!(handed_over.as_secs() < 5, "no lease has to end for it: {handed_over:#}");
    let attempts: Vec<&Value> = history.iter().map(|item| &item["attempt"]["attempt"]).collect();
    assert_eq!(attempts, [1, 1], "a stop costs no attempt");
    assert!(second.stop().success());
    place.verify();
}

#[test]
fn nodes_with_different_agents_share_a_store_and_leave_each_other_alone() {
    let postgres = postgres();
    let one = place("agents-one", &postgres, &config("left", "", "immediate = true"));
    let other =
        place("agents-other", &postgres, &config("right", "", "immediate = true").replace("\"it\"", "\"other\""));
    let left = one.up_with(&["--name", "left"]);
    // The first that comes up makes the token, and has it.
    one.until("it has the token", |place| place.path("punctual.token").exists());
    let servers = [left, other.up_with(&["--name", "right"])];
    one.until("both are there", |place| {
        place.punctual(&["nodes", "--json"]).status.success()
            && place.json(&["nodes", "--json"]).as_array().unwrap().len() == 2
    });
    one.until("both are done", |place| results(place) == ["succeeded", "succeeded"]);
    assert_eq!((one.effects().len(), other.effects().len()), (1, 1), "each has done its own");
    // A restart of one does not delete the schedule of the other.
    let [left, right] = servers;
    assert!(left.stop().success());
    let left = one.up_with(&["--name", "left"]);
    one.until("it is up again", |place| place.read("log").matches("has joined").count() == 2);
    let runs = one.runs();
    let mut names: Vec<&str> = runs.iter().map(|run| run["schedule_name"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["it", "other"]);
    assert!(!one.read("log").contains("is gone from the file"), "{}", one.read("log"));
    assert!(left.stop().success());
    assert!(right.stop().success());
    one.verify();
}

#[test]
fn busy_processors_do_not_cost_a_lease() {
    let postgres = postgres();
    let engine = "lease_duration_seconds = 6\nexecutor_pool_size = 16";
    let more = "every = \"1s\"\noverlap = \"allow\"\nmax_concurrent = 32";
    let place = place("busy", &postgres, &config("busy", engine, more));
    let servers = ["a", "b"].map(|name| place.up_with(&["--name", name]));
    place.until("all places are taken", |place| 16 < place.effects().len());
    rest_for(8_000);
    let log = place.read("log");
    assert!(!log.contains("taken for dead") && !log.contains("are dead"), "{log}");
    servers.into_iter().for_each(|server| server.kill());
    place.verify();
}

#[test]
fn many_that_start_at_once_make_the_schedules_of_the_file_once() {
    let postgres = postgres();
    let place = place("start", &postgres, &config("once", "", "immediate = true"));
    let servers = ["a", "b", "c", "d"].map(|name| place.up_with(&["--name", name]));
    place.until("all are there", |place| {
        place.punctual(&["nodes", "--json"]).status.success()
            && place.json(&["nodes", "--json"]).as_array().unwrap().len() == 4
    });
    place.until("it is done", |place| results(place) == ["succeeded"]);
    let tokens = crate::client::Client::of(&place).get("/api/tokens").json(200);
    assert_eq!(tokens.as_array().unwrap().len(), 1, "they share the token of their folder");
    servers.into_iter().for_each(|server| assert!(server.stop().success()));
    assert_eq!(place.effects().len(), 1);
    place.verify();
}

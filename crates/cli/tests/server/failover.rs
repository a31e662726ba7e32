//! A command finds a node that lives when the one of its folder is dead.

use punctual_lab::postgres::{Durability, Server as Postgres};
use serde_json::Value;

use crate::support::Place;

const CONFIG: &str = "[engine]\nlease_duration_seconds = 4\n[agents.quick]\nrunner = \"process\"\ncommand = [\"true\"]\n\
    [agents.slow]\nrunner = \"process\"\ncommand = [\"sleep\", \"2\"]\n";

fn nodes(place: &Place) -> Vec<Value> {
    match place.json(&["nodes", "--json"]) {
        Value::Array(nodes) => nodes,
        other => panic!("{other}"),
    }
}

#[test]
fn commands_go_on_when_their_own_node_was_killed() {
    let postgres = Postgres::start(Durability::Off).expect("PostgreSQL starts");
    let folder = |test| Place::new(test, CONFIG).with_database(&postgres.address());
    let (blue, green) = (folder("failover-blue"), folder("failover-green"));
    let first = blue.up_with(&["--name", "blue"]);
    blue.until("it is up", |place| place.path("punctual.server").exists());
    let second = green.up_with(&["--name", "green"]);
    green.until("it is up", |place| place.path("punctual.server").exists());
    blue.until("both are there", |place| nodes(place).len() == 2);
    let url = |place: &Place| place.read("punctual.server").trim().to_owned();
    let told: Vec<Value> = nodes(&blue).iter().map(|node| node["url"].clone()).collect();
    assert!(told.contains(&url(&blue).into()) && told.contains(&url(&green).into()), "{told:?}");

    // Whoever waits does not notice: the run goes on elsewhere, or its attempt is made again there.
    let run = std::thread::scope(|scope| {
        let waits = scope.spawn(|| blue.json(&["trigger", "slow", "--wait", "--json"]));
        blue.until("it is at work", |place| !place.try_runs().unwrap_or_default().is_empty());
        first.kill();
        waits.join().unwrap()
    });
    assert_eq!(run["resultStatus"], "SUCCESS", "{run}");
    assert!(blue.path("punctual.server").exists(), "it could not take it away");
    // What changes something, and what needs the token: the other node does it.
    let run = blue.json(&["trigger", "quick", "--wait", "--json"]);
    assert_eq!(run["resultStatus"], "SUCCESS", "{run}");
    assert!(blue.json(&["token", "list", "--json"]).is_array());
    blue.until("the dead one is gone", |place| nodes(place).len() == 1);
    assert_eq!(nodes(&blue)[0]["name"], "green");
    // A folder where no node ever was finds one, too, with a token of its own.
    let elsewhere = folder("failover-elsewhere");
    let token = blue.read("punctual.token");
    let output = elsewhere.punctual_with(&["trigger", "quick"], &[("PUNCTUAL_TOKEN", token.trim())]);
    assert!(output.status.success(), "{output:?}");
    // Whoever names several gets the one that answers.
    let both = format!("{},{}", url(&blue), url(&green));
    let output = blue.punctual_with(&["token", "list"], &[("PUNCTUAL_URL", both.as_str())]);
    assert!(output.status.success(), "{output:?}");
    assert!(blue.punctual(&["token", "list", "--server", &url(&blue), "--server", &url(&green)]).status.success());
    // One that was named alone is meant.
    assert_eq!(blue.punctual(&["token", "list", "--server", &url(&blue)]).status.code(), Some(3));

    second.kill();
    blue.until("nobody is left", |place| {
        let output = place.punctual(&["trigger", "quick"]);
        output.status.code() == Some(3) && String::from_utf8_lossy(&output.stderr).contains("no server answers")
    });
}

#[test]
fn a_node_says_where_it_is_as_the_operator_says() {
    let place = Place::new("failover-advertise", CONFIG);
    let server = place.up_with(&["--advertise", "https://blue.example:8470"]);
    place.until("it is up", |place| place.path("punctual.db.server").exists());
    place.until("it has joined", |place| nodes(place).len() == 1);
    assert_eq!(nodes(&place)[0]["url"], "https://blue.example:8470");
    assert!(server.stop().success());
    for (url, expected) in [("http://blue.example", "in the clear"), ("blue", "use the address of a server")] {
        let refused = place.punctual(&["up", "--advertise", url]);
        assert_eq!(refused.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&refused.stderr).contains(expected), "{refused:?}");
    }
}

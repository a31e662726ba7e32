//! The end of a run is told when everything about it can be read.

use punctual_lab::postgres::{Durability, Server as Postgres};

use crate::client::Client;
use crate::support::Place;

const CONFIG: &str = r#"
[agents.talker]
runner = "process"
command = ["sh", "-c", "echo one; printf 'the last word of %s' $PUNCTUAL_RUN_ID"]
"#;

/// Whoever waits for the end of a run reads all of its output at once.
fn output_is_there_when_the_end_is_told(place: &Place) {
    let server = place.up();
    let api = Client::of(place);
    for _ in 0..50 {
        let ended = place.json(&["trigger", "talker", "--wait", "--json"]);
        let run = ended["executionId"].as_str().expect("it names the run").to_owned();
        let logs = place.punctual(&["logs", &run]);
        assert_eq!(String::from_utf8_lossy(&logs.stdout).trim_end(), format!("one\nthe last word of {run}"));
        // Not from what history keeps of it: the output itself.
        let output = api.get(&format!("/api/executions/{run}/output")).json(200);
        let texts = output["items"].as_array().unwrap().iter().map(|item| item["text"].as_str().unwrap());
        assert_eq!(texts.collect::<String>(), format!("one\nthe last word of {run}"));
    }
    assert!(server.stop().success());
}

#[test]
fn output_is_there_when_the_end_is_told_on_sqlite() {
    output_is_there_when_the_end_is_told(&Place::new("ends", CONFIG));
}

#[test]
fn output_is_there_when_the_end_is_told_on_postgres() {
    let postgres = Postgres::start(Durability::Off).expect("PostgreSQL starts");
    output_is_there_when_the_end_is_told(&Place::new("ends-pg", CONFIG).with_database(&postgres.address()));
}

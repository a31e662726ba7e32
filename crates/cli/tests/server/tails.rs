//! What a run printed when its output is gone: `logs` shows what history has, and says so.

use std::sync::Arc;

use punctual_lab::postgres::{Durability, Server as Postgres};
use punctual_store::Store;
use punctual_store::postgres::PostgresStore;
use punctual_store::sqlite::SqliteStore;

use crate::support::Place;

const CONFIG: &str = r#"
[agents.talker]
runner = "process"
command = ["sh", "-c", "echo it says $PUNCTUAL_RUN_ATTEMPT; echo careful >&2; exit 1"]
[[schedules]]
name = "talk"
agent = "talker"
immediate = true
max_attempts = 2
retry_delay = "1s"
"#;

/// A run that has failed twice, of a server that has stopped.
fn talked(place: &Place, database: &str) -> String {
    let server = place.up_with(&["--database", database]);
    place.until("it has failed twice", |place| {
        let found = place.punctual(&["history", "--json", "--database", database]);
        String::from_utf8_lossy(&found.stdout).matches("\"resultStatus\": \"FAIL").count() == 2
    });
    place.until("its output is kept", |place| logs(place, &["talk"], database).0.contains("it says 2"));
    let (out, err) = logs(place, &["talk"], database);
    assert!(out == "it says 1\nit says 2\n" && !err.contains("history"), "{out}{err}");
    assert!(server.stop().success());
    let history = place.json(&["history", "--json", "--database", database]);
    history["content"][0]["executionId"].as_str().unwrap().to_owned()
}

fn logs(place: &Place, what: &[&str], database: &str) -> (String, String) {
    let output = place.punctual(&[&["logs", "--database", database][..], what].concat());
    (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
}

/// What is left is shown, whichever way it is asked for.
fn shows_the_tail(place: &Place, run: &str, database: &str) {
    let (out, err) = logs(place, &[run], database);
    assert_eq!(out, "it says 1\n[stderr]\ncareful\nit says 2\n[stderr]\ncareful\n", "{err}");
    assert!(err.contains("as history has it") && err.contains("-- try 2 --"), "{err}");
    assert_eq!(logs(place, &[run, "--attempt", "2"], database).0, "it says 2\n[stderr]\ncareful\n");
    let body = place.json(&["logs", run, "--json", "--database", database]);
    assert_eq!((&body["isFromHistory"], &body["isOver"]), (&true.into(), &true.into()), "{body}");
    let server = place.up_with(&["--database", database]);
    place.until("it answers", |place| logs(place, &[run, "-f"], database).0.contains("it says 2"));
    let (out, err) = logs(place, &[run, "-f"], database);
    assert!(out.contains("it says 1") && err.contains("as history has it"), "{out}{err}");
    assert!(server.stop().success());
}

fn open(place: &Place, database: &str) -> Arc<dyn Store> {
    match database.strip_prefix("sqlite:") {
        Some(file) => Arc::new(SqliteStore::open(place.path(file)).unwrap()),
        None => Arc::new(PostgresStore::open(database).unwrap()),
    }
}

#[test]
fn logs_fall_back_to_history_after_an_import() {
    let postgres = Postgres::start(Durability::Off).expect("PostgreSQL starts");
    let place = Place::new("tails-import", CONFIG);
    let run = talked(&place, "sqlite:one.db");
    assert!(place.punctual(&["export", "all.jsonl", "--database", "sqlite:one.db"]).status.success());
    for there in ["sqlite:two.db", &postgres.address()] {
        assert!(place.punctual(&["import", "all.jsonl", "--database", there]).status.success());
        // Tokens come along, and those who have one keep it.
        let file = if there.starts_with("sqlite:") { "two.db.token" } else { "punctual.token" };
        std::fs::copy(place.path("one.db.token"), place.path(file)).unwrap();
        shows_the_tail(&place, &run, there);
    }
}

fn logs_fall_back_to_history_after_retention(place: &Place, database: &str) {
    let run = talked(place, database);
    let store = open(place, database);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let later = punctual_engine::clock::now() + jiff::SignedDuration::from_hours(1);
    runtime.block_on(store.forget_output(later)).unwrap();
    drop(store);
    shows_the_tail(place, &run, database);
    let unknown = place.punctual(&["logs", &run.replace('a', "b"), "--database", database]);
    assert_eq!(unknown.status.code(), Some(5));
}

#[test]
fn logs_fall_back_to_history_after_retention_on_sqlite() {
    logs_fall_back_to_history_after_retention(&Place::new("tails-sqlite", CONFIG), "sqlite:punctual.db");
}

#[test]
fn logs_fall_back_to_history_after_retention_on_postgres() {
    let postgres = Postgres::start(Durability::Off).expect("PostgreSQL starts");
    logs_fall_back_to_history_after_retention(&Place::new("tails-postgres", CONFIG), &postgres.address());
}

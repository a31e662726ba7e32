//! What cannot be undone needs a yes: of a person at a terminal, or of whoever writes the command.

use serde_json::{Value, json};

use crate::client::Client;
use crate::support::{Place, Server};

const CONFIG: &str = "[agents.quick]\nrunner = \"process\"\ncommand = [\"true\"]\n";

fn up(test: &str) -> (Place, Server) {
    let place = Place::new(test, CONFIG);
    let server = place.up();
    place.until("the server has joined", |place| place.read("log").contains("has joined"));
    (place, server)
}

/// Everything that can be lost: a schedule with a run of today, one that waits for approval, and a token.
fn precious(place: &Place) {
    let api = Client::of(place);
    let add = |schedule: Value| api.post("/api/schedules", schedule).json(201);
    add(json!({"agentId": "quick", "name": "dear", "scheduleType": "CRON", "cronExpr": "*/5 * * * *"}));
    add(
        json!({"agentId": "quick", "name": "gated", "scheduleType": "IMMEDIATE", "executorPolicy": {"riskGate": true}}),
    );
    api.post("/api/tokens", json!({"name": "ada", "role": "viewer"})).json(201);
    place.until("it waits", |_| api.get("/api/approvals").json(200)["items"].as_array().unwrap().len() == 1);
}

/// What is there of it.
fn left(place: &Place) -> (usize, usize, usize) {
    let api = Client::of(place);
    let count = |path: &str| api.get(path).json(200).as_array().unwrap().len();
    let waiting = api.get("/api/approvals").json(200)["items"].as_array().unwrap().len();
    (count("/api/schedules?name=dear"), waiting, count("/api/tokens"))
}

const COMMANDS: [&[&str]; 5] = [
    &["approve", "gated"],
    &["deny", "gated"],
    &["schedule", "rm", "dear"],
    &["token", "revoke", "ada"],
    &["cancel", "dear"],
];

#[test]
fn what_comes_through_a_pipe_is_no_yes() {
    let (place, server) = up("confirm-pipe");
    precious(&place);
    let before = left(&place);
    for args in COMMANDS {
        for said in ["n\n", "y\n", ""] {
            let output = place.piped(args, said);
            let text = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{args:?}: {text}");
            assert!(text.contains("cannot be undone") && text.contains("--yes"), "{args:?}: {text}");
        }
    }
    assert_eq!(left(&place), before, "nothing is lost");
    assert!(server.stop().success());
}

#[test]
fn a_no_changes_nothing_and_exits_with_1_and_yes_asks_nobody() {
    let (place, server) = up("confirm-terminal");
    precious(&place);
    let before = left(&place);
    for args in COMMANDS {
        let (screen, status) = place.at_terminal(args, "n");
        assert_eq!(status.code(), Some(1), "{args:?}: {screen}");
        assert!(screen.contains("[y/N]") && screen.contains("Nothing was "), "{args:?}: {screen}");
    }
    assert_eq!(left(&place), before, "nothing is lost");
    for args in [COMMANDS[4], COMMANDS[0], COMMANDS[2], COMMANDS[3]] {
        let output = place.piped(&[args, &["--yes"]].concat(), "n\n");
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    assert_eq!(left(&place), (0, 0, before.2 - 1));
    assert!(server.stop().success());
}

#[test]
fn a_database_is_replaced_only_by_a_yes() {
    let (place, server) = up("confirm-restore");
    assert!(server.stop().success());
    assert!(place.punctual(&["backup", "copy.db"]).status.success());
    let before = std::fs::read(place.path("punctual.db")).unwrap();
    let refused = place.piped(&["restore", "copy.db"], "y\n");
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--yes"));
    let (screen, status) = place.at_terminal(&["restore", "copy.db"], "n");
    assert_eq!(status.code(), Some(1), "{screen}");
    assert_eq!(std::fs::read(place.path("punctual.db")).unwrap(), before);
    for flag in ["--yes", "--force"] {
        assert!(place.punctual(&["restore", "copy.db", flag]).status.success());
    }
    // Where there is nothing to lose, nobody is asked.
    assert!(place.punctual(&["restore", "copy.db", "--database", "sqlite:new.db"]).status.success());
}

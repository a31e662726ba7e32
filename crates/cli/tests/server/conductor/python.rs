//! Public clients, as they are: the one for Python drives the server, and what the one for Java sends is sent.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::{On, Scene, on_both, schedule};

on_both![the_public_client_for_python_finds_everything_as_it_expects];

/// Looks at every answer itself, and says what it has looked at.
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/scheduler.py");

/// Every call of the client, and signing in.
const CALLS: [&str; 21] = [
    "keys",
    "save_schedule",
    "get_schedule",
    "get_all_schedules",
    "get_next_few_schedule_execution_times",
    "delete_schedule",
    "pause_schedule",
    "resume_schedule",
    "pause_all_schedules",
    "resume_all_schedules",
    "search_schedule_executions",
    "requeue_all_execution_records",
    "set_scheduler_tags",
    "get_scheduler_tags",
    "delete_scheduler_tags",
    "pause",
    "resume",
    "delete",
    "preview_next",
    "run_now",
    "reconcile",
];

fn the_public_client_for_python_finds_everything_as_it_expects(on: On) {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("it lies in the target folder");
    let python = punctual_lab::python::find(&target.join("python")).unwrap_or_else(|error| panic!("{error:#}"));
    // It counts records, and none of them may go meanwhile.
    let scene = Scene::with("python", on, "archival_max_records = 1000\narchival_max_record_threshold = 1000");
    let mut script = Command::new(python);
    script.arg("-B").arg(SCRIPT).args([&scene.api.url(), scene.api.token().unwrap()]).stdin(Stdio::null());
    // Whoever runs the tests may have a Conductor of their own.
    for variable in ["CONDUCTOR_SERVER_URL", "CONDUCTOR_AUTH_KEY", "CONDUCTOR_AUTH_SECRET"] {
        script.env_remove(variable);
    }
    let output = script.output().expect("Python starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let checked: BTreeSet<&str> =
        said.lines().filter_map(|line| Some(line.strip_prefix("checked ")?.split_once(':')?.0)).collect();
    assert_eq!(checked, BTreeSet::from(CALLS), "{said}");

    // What the client was told is what Conductor was asked for.
    let starts = scene.conductor.starts();
    let by_schedule = |name: &str| starts.iter().filter(|it| it.body["input"]["_startedByScheduler"] == name).count();
    assert!(3 <= by_schedule("tick"), "{starts:?}");
    let by_hand = said.lines().find_map(|line| line.strip_prefix("started ")).expect("it was started");
    let by_hand = starts.iter().find(|start| start.id == by_hand).expect("Conductor has started it");
    assert_eq!((by_hand.name.as_str(), &by_hand.body["input"]), ("report", &json!({"depth": 2})));
    assert_eq!(starts.len(), by_schedule("tick") + 1, "nothing else was started");
    let records = scene.api.get("/api/scheduler/search/executions?query=tick").json(200);
    for record in records["results"].as_array().unwrap() {
        assert!(starts.iter().any(|start| record["workflowId"] == start.id.as_str()), "{record}");
    }
    scene.end();
}

/// The client for Java asks by `GET`, as Orkes' servers have it, and by `PUT` where that is not allowed.
#[test]
fn both_ways_in_which_clients_pause_and_resume_are_right_at_once() {
    let scene = Scene::new("java", On::Sqlite);
    let token = scene.api.token().unwrap().to_owned();
    let java = scene.api.with_token(None);
    let header = [("X-Authorization", token.as_str()), ("Accept", "application/json")];
    scene.save(schedule("nightly", "mapped", "0 0 0 1 1 *")).json(200);
    for method in ["GET", "PUT"] {
        // What `PUT` brings along means nothing: some send nothing, some an empty object.
        for body in [None, Some(json!({}))].into_iter().take(if method == "GET" { 1 } else { 2 }) {
            for (what, is_paused) in [("pause", true), ("resume", false)] {
                let path = format!("/api/scheduler/schedules/nightly/{what}");
                let answer = java.send(method, &path, &header, body.clone());
                assert_eq!((answer.status, answer.text.as_str()), (200, ""), "{method} {what}");
                let shown = java.send("GET", "/api/scheduler/schedules/nightly", &header, None).json(200);
                assert_eq!(shown["paused"], is_paused, "{method} {what}");
            }
        }
    }
    // A method that is not allowed says so, and that is what makes them try the other.
    assert_eq!(java.send("PATCH", "/api/scheduler/schedules/nightly/pause", &header, None).status, 405);
    scene.end();
}

#[test]
fn the_header_of_clients_lets_in_like_a_bearer_and_keeps_out_like_one() {
    let scene = Scene::new("header", On::Sqlite);
    let stranger = scene.api.with_token(None);
    let answers = |token: &str| stranger.send("GET", "/api/scheduler/schedules", &[("X-Authorization", token)], None);
    assert_eq!(answers(scene.api.token().unwrap()).json(200), json!([]));
    for wrong in ["pt_wrong", "", "null"] {
        let refused: Value = answers(wrong).json(401);
        assert_eq!((&refused["status"], &refused["retryable"]), (&json!(401), &json!(false)), "{wrong:?}");
    }
    // A token that may only look may not save.
    let viewer = scene.api.post("/api/tokens", json!({"name": "eyes", "role": "viewer"})).json(201);
    let secret = viewer["secret"].as_str().unwrap();
    assert_eq!(answers(secret).json(200), json!([]));
    let wanted = Some(schedule("nightly", "mapped", "0 0 0 1 1 *"));
    let refused = stranger.send("POST", "/api/scheduler/schedules", &[("X-Authorization", secret)], wanted);
    assert_eq!(refused.status, 403);
    scene.end();
}

//! Starting: what is asked, and what is made of the answer.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Command;

use punctual_agents::workflow::{ConductorServer, WorkflowRunner};
use punctual_core::Elapsed;
use punctual_core::schedule::IdempotencyStrategy;
use punctual_engine::runner::{Assignment, Runner, stop_pair};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::scene::{LONG, Scene, assignment, message, say};

#[tokio::test]
async fn a_start_is_asked_for_whole_and_its_id_is_reported() {
    let mut scene = Scene::with(|server| ConductorServer { url: format!("{}/", server.url), ..server });
    scene.workflow().input = json!({"region": "eu"}).as_object().unwrap().clone();
    let finish = scene.attempt().await;
    assert_eq!(say(&finish), "succeeded");

    let start = &scene.conductor.starts()[0];
    let key = scene.workflow().idempotency_key.clone().unwrap();
    let body = json!({
        "name": "report",
        "input": {"region": "eu"},
        "idempotencyKey": key,
        "idempotencyStrategy": "RETURN_EXISTING",
    });
    assert_eq!(start.body, body);
    assert_eq!(scene.conductor.seen()[0].header("idempotency-key"), Some(key.as_str()));
    assert_eq!(scene.conductor.seen()[0].header("x-authorization"), None);

    assert_eq!(finish.report.summary, Some(format!("workflow report started as {}", start.id)));
    assert_eq!(finish.report.refs["workflowId"], start.id.as_str());
    let line = format!("POST {}/workflow: 200, workflow {}\n", scene.conductor.url(), start.id);
    assert_eq!((scene.heard.text(), finish.report.output), (line.clone(), line));
}

#[tokio::test]
async fn without_a_server_the_attempt_says_what_is_missing() {
    let runner = WorkflowRunner::new(None).unwrap();
    let (_stopper, stop) = stop_pair();
    let finish = runner.run(assignment("report").0, stop.clone()).await;
    assert_eq!(say(&finish), "NotStarted no_server, final");
    let expected = "workflow \"report\" has no agent in [conductor.workflows], and [conductor] names no server_url";
    assert_eq!(message(&finish), expected);

    let finish = runner.run(Assignment { workflow: None, ..assignment("report").0 }, stop).await;
    assert_eq!(say(&finish), "NotStarted no_workflow, final");
}

#[tokio::test]
async fn an_id_may_be_a_json_string_and_nothing_else_may_be_one() {
    let mut scene = Scene::new();
    scene.conductor.fail_next(1, 201, "\"the-id\"");
    assert_eq!(scene.attempt().await.report.refs["workflowId"], "the-id");
    for absurd in ["", "{}", "<html>", &"a".repeat(1025)] {
        scene.conductor.fail_next(1, 200, absurd);
        let finish = scene.attempt().await;
        assert_eq!(say(&finish), "bad_answer, again", "{absurd}");
        assert!(finish.report.refs.is_empty() && finish.report.summary.is_none());
    }
}

#[tokio::test]
async fn a_lost_answer_and_the_next_attempt_are_one_start() {
    let mut scene = Scene::new();
    scene.conductor.lose_answers(1);
    let finish = scene.attempt().await;
    assert_eq!(say(&finish), "answer_lost, again");
    assert!(message(&finish).ends_with("what it was asked may be done"), "{}", message(&finish));
    let finish = scene.attempt().await;
    assert_eq!(say(&finish), "succeeded");
    let starts = scene.conductor.starts();
    assert_eq!((starts.len(), scene.conductor.requests()), (1, 2));
    assert_eq!(finish.report.refs["workflowId"], starts[0].id.as_str());
}

#[tokio::test]
async fn what_may_go_away_is_tried_again_when_the_server_says() {
    let mut scene = Scene::new();
    for status in [500, 502, 503, 504, 408, 425, 429] {
        scene.conductor.fail_next(1, status, "too much to do");
        let finish = scene.attempt().await;
        assert_eq!(say(&finish), "unavailable, again", "{status}");
        assert!(message(&finish).contains(&format!("{status} ")) && message(&finish).ends_with(": too much to do"));
        assert!(scene.heard.text().contains("too much to do"));
    }
    for status in [429, 503] {
        scene.conductor.fail_next_with(1, status, &[("retry-after", "7")], "");
        assert_eq!(say(&scene.attempt().await), "unavailable, again after 7 s");
    }
    let (now, later) = ("Mon, 09 Mar 2026 13:00:00 GMT", "Mon, 09 Mar 2026 13:01:30 GMT");
    scene.conductor.fail_next_with(1, 429, &[("date", now), ("retry-after", later)], "");
    assert_eq!(say(&scene.attempt().await), "unavailable, again after 90 s");
    assert_eq!(say(&scene.attempt().await), "succeeded");
    assert_eq!(scene.conductor.starts().len(), 1);
}

#[tokio::test]
async fn a_refusal_is_final() {
    let mut scene = Scene::new();
    for status in [400, 401, 403, 404, 409, 413, 422] {
        scene.conductor.fail_next_with(1, status, &[("retry-after", "7")], "no");
        assert_eq!(say(&scene.attempt().await), "refused, final", "{status}");
    }
    scene.workflow().name = " ".to_owned();
    let finish = scene.attempt().await;
    assert_eq!(say(&finish), "refused, final");
    assert!(message(&finish).contains("Workflow name cannot be null or empty"), "{}", message(&finish));
}

#[tokio::test]
async fn no_start_is_sent_elsewhere() {
    let mut scene = Scene::new();
    let location = format!("{}/workflow", scene.conductor.url());
    for status in [301, 302, 307, 308] {
        scene.conductor.fail_next_with(1, status, &[("location", &location)], "");
        assert_eq!(say(&scene.attempt().await), "refused, final", "{status}");
    }
    assert_eq!((scene.conductor.requests(), scene.conductor.starts().len()), (4, 0));
}

#[tokio::test]
async fn a_start_that_must_not_come_again_is_refused_for_good() {
    for strategy in [IdempotencyStrategy::Fail, IdempotencyStrategy::FailOnRunning] {
        let mut scene = Scene::new();
        scene.workflow().idempotency_strategy = Some(strategy);
        scene.conductor.lose_answers(1);
        assert_eq!(say(&scene.attempt().await), "answer_lost, again");
        let finish = scene.attempt().await;
        assert_eq!(say(&finish), "refused, final");
        assert!(message(&finish).ends_with("an earlier attempt may have started it"), "{}", message(&finish));
        assert_eq!(scene.conductor.starts().len(), 1);
    }
}

#[tokio::test]
async fn a_server_that_is_away_is_asked_again() {
    let mut scene = Scene::new();
    scene.conductor.refuse().unwrap();
    let finish = scene.attempt().await;
    assert_eq!(say(&finish), "unreachable, again");
    assert!(message(&finish).contains("Connection refused"), "{}", message(&finish));
    scene.conductor.accept().unwrap();
    assert_eq!(say(&scene.attempt().await), "succeeded");
}

#[tokio::test]
async fn whatever_a_server_says_is_shown_short_and_visible() {
    let mut scene = Scene::new();
    for status in [200, 400, 500] {
        let body = format!("\x1b[31m\0no\r\n{}", "é".repeat(5_000_000));
        scene.conductor.fail_next(1, status, body);
        let finish = scene.attempt().await;
        let printed = scene.heard.text();
        for text in [message(&finish), printed.trim_end(), finish.report.output.trim_end()] {
            assert!(text.contains("no") && !text.contains(char::is_control), "{text}");
            assert!(text.chars().count() < 800, "{}", text.chars().count());
        }
    }
}

#[tokio::test]
async fn an_answer_without_an_end_is_cut_off() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/api", listener.local_addr().unwrap());
    let endless = tokio::task::spawn_blocking(move || {
        let (mut stream, _) = listener.accept().unwrap();
        // Whoever answers before he is asked is not listened to.
        assert_ne!(stream.read(&mut [0; 4096]).unwrap(), 0);
        stream.write_all(b"HTTP/1.1 500 \r\n\r\n").unwrap();
        while stream.write_all(&[b'x'; 4096]).is_ok() {}
    });
    let scene = Scene::with(|server| ConductorServer { url, ..server });
    assert_eq!(say(&scene.run(Elapsed::from_seconds(10)).await), "unavailable, again");
    // Its connection was closed, or it would write on.
    timeout(LONG, endless).await.unwrap().unwrap();
}

#[tokio::test]
async fn two_hundred_starts_at_once_are_two_hundred_workflows() {
    let scene = Scene::new();
    let runner = std::sync::Arc::new(scene.runner);
    let mut attempts = JoinSet::new();
    for number in 0..200 {
        let (runner, (assignment, _)) = (runner.clone(), assignment(&format!("w{number}")));
        attempts.spawn(async move {
            let (_stopper, stop) = stop_pair();
            runner.run(assignment, stop).await
        });
    }
    let finishes = attempts.join_all().await;
    assert!(finishes.iter().all(|finish| say(finish) == "succeeded"));
    let told: BTreeSet<_> = finishes.iter().map(|finish| finish.report.refs["workflowId"].to_string()).collect();
    let names: BTreeSet<_> = scene.conductor.starts().into_iter().map(|start| start.name).collect();
    assert_eq!((told.len(), names.len(), scene.conductor.requests()), (200, 200, 200));
}

#[test]
fn proxies_of_the_environment_are_not_asked() {
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", "start::a_start_is_asked_for_whole_and_its_id_is_reported"]);
    let nobody = "http://127.0.0.1:9";
    for variable in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"] {
        again.env(variable, nobody);
    }
    let output = again.env_remove("no_proxy").env_remove("NO_PROXY").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

//! Keys and tokens: got once, renewed once, shown nowhere.

use std::path::PathBuf;
use std::sync::Arc;

use punctual_agents::secrets::SecretSource;
use punctual_core::Elapsed;
use punctual_engine::runner::{Runner, stop_pair};
use tokio::task::JoinSet;

use crate::scene::{Scene, assignment, message, say, secret_file};

const SECRET: &str = "hunter22/+\"secret";

fn scene() -> Scene {
    let scene = Scene::with(|server| server.with_key("key-1", secret_file(SECRET)));
    scene.conductor.require_key("key-1", SECRET);
    scene
}

#[tokio::test]
async fn one_token_does_for_all() {
    let scene = scene();
    let runner = Arc::new(scene.runner);
    let mut attempts = JoinSet::new();
    for _ in 0..20 {
        let (runner, (assignment, _)) = (runner.clone(), assignment("report"));
        attempts.spawn(async move {
            let (_stopper, stop) = stop_pair();
            runner.run(assignment, stop).await
        });
    }
    assert!(attempts.join_all().await.iter().all(|finish| say(finish) == "succeeded"));
    let tokens = scene.conductor.seen().iter().filter(|seen| seen.path == "/api/token").count();
    assert_eq!((tokens, scene.conductor.starts().len()), (1, 20));
}

#[tokio::test]
async fn a_token_that_has_expired_is_renewed_and_the_start_is_sent_again() {
    let mut scene = scene();
    assert_eq!(say(&scene.attempt().await), "succeeded");
    scene.conductor.expire_tokens();
    let (next, _) = assignment("report");
    scene.assignment = next;
    assert_eq!(say(&scene.attempt().await), "succeeded");
    assert_eq!((scene.requests_to("/api/token"), scene.requests_to("/api/workflow")), (2, 3));
    assert_eq!(scene.conductor.starts().len(), 2);
}

#[tokio::test]
async fn a_server_that_refuses_every_token_is_asked_twice() {
    for status in [401, 403] {
        let mut scene = scene();
        scene.conductor.fail_next(100, status, "not you");
        assert_eq!(say(&scene.attempt().await), "refused, final");
        assert_eq!((scene.requests_to("/api/token"), scene.requests_to("/api/workflow")), (2, 2));
    }
}

#[tokio::test]
async fn a_wrong_secret_is_final_and_is_not_told() {
    let mut scene = Scene::with(|server| server.with_key("key-1", secret_file("not-the-secret")));
    scene.conductor.require_key("key-1", SECRET);
    let finish = scene.attempt().await;
    assert_eq!(say(&finish), "refused, final");
    assert!(message(&finish).contains("Access denied for key key-1 with secret [secret of the Conductor key]"));
    assert!(!format!("{finish:?}{}", scene.heard.text()).contains("not-the-secret"));
    assert_eq!((scene.requests_to("/api/token"), scene.requests_to("/api/workflow")), (1, 0));
}

#[tokio::test]
async fn a_secret_that_is_not_there_may_come() {
    let source = SecretSource::File(PathBuf::from("/nowhere/secret"));
    let mut scene = Scene::with(|server| server.with_key("key-1", source));
    let finish = scene.attempt().await;
    assert_eq!(say(&finish), "NotStarted no_key, again");
    assert!(message(&finish).contains("/nowhere/secret"), "{}", message(&finish));
    assert_eq!(scene.conductor.requests(), 0);
}

#[tokio::test]
async fn a_secret_and_its_token_are_shown_nowhere() {
    let mut scene = scene().followed();
    let token = "token-of-the-lab-1";
    let echo = format!("{}: {SECRET} {} {token}", "x".repeat(470), "hunter22%2F%2B%22secret");
    let mut all = String::new();
    let mut add = |finish, heard: String| all += &format!("{finish:?}{heard}");
    for status in [200, 400, 503] {
        scene.conductor.fail_next(1, status, echo.as_str());
        add(scene.attempt().await, scene.heard.text());
    }
    // As an id, which would be a part of addresses.
    scene.conductor.fail_next(1, 200, SECRET);
    let finish = scene.attempt().await;
    assert_eq!(say(&finish), "bad_answer, again");
    add(finish, scene.heard.text());
    // As the reason of a workflow.
    let (finish, ()) = tokio::join!(scene.run(Elapsed::from_seconds(60)), async {
        let id = scene.started().await;
        scene.conductor.finish_because(&id, "FAILED", Some(&echo));
    });
    assert_eq!(say(&finish), "workflow_failed, final");
    add(finish, scene.heard.text());
    all += &format!("{:?}", scene.runner);
    assert!(all.contains("[secret of the Conductor key]") && all.contains(&"x".repeat(400)), "{all}");
    for hidden in ["hunter22", "hunte", "token-of-the-lab"] {
        assert!(!all.contains(hidden), "{hidden}: {all}");
    }
}

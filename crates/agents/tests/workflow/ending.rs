//! Attempts that are cut short.

use std::time::Duration;

use punctual_agents::workflow::{ConductorServer, WorkflowRunner};
use punctual_core::Elapsed;
use punctual_engine::runner::{Runner, StopLevel, stop_pair};

use crate::scene::{LONG, Scene, message, say};

#[tokio::test]
async fn an_attempt_that_is_stopped_does_not_wait_for_its_answer() {
    for level in [StopLevel::Ask, StopLevel::Now] {
        let scene = Scene::new();
        scene.conductor.delay(LONG * 10);
        let (stopper, stop) = stop_pair();
        let (finish, id) = tokio::join!(scene.run_until(Elapsed::MAX, stop), async {
            let id = scene.started().await;
            stopper.pull(level);
            id
        });
        assert_eq!(say(&finish), "stopped");
        assert!(!format!("{finish:?}").contains(&id));
    }
}

#[tokio::test]
async fn an_attempt_that_was_stopped_before_asks_nothing() {
    let scene = Scene::new();
    let (stopper, stop) = stop_pair();
    stopper.pull(StopLevel::Ask);
    assert_eq!(say(&scene.run_until(Elapsed::MAX, stop.clone()).await), "stopped");
    assert_eq!(scene.conductor.requests(), 0);

    // Nor does it look for what is missing.
    let without_server = WorkflowRunner::new(None).unwrap();
    assert_eq!(say(&without_server.run(scene.assignment, stop).await), "stopped");
}

#[tokio::test]
async fn a_run_whose_time_is_over_is_tried_again() {
    let scene = Scene::new();
    scene.conductor.delay(LONG * 10);
    let finish = scene.run(Elapsed::from_milliseconds(200).unwrap()).await;
    assert_eq!(say(&finish), "TimedOut timed_out, again");
    let expected = "the time of the run was over before an answer came; workflow \"report\" may have been started";
    assert_eq!(message(&finish), expected);
    scene.conductor.delay(Duration::ZERO);
    assert_eq!(say(&scene.run(Elapsed::MAX).await), "succeeded");
    assert_eq!(scene.conductor.starts().len(), 1);
}

#[tokio::test]
async fn an_answer_that_takes_too_long_is_given_up_before_the_run_is() {
    let answer_max = Duration::from_millis(200);
    let scene = Scene::with(|server| ConductorServer { answer_max, ..server });
    scene.conductor.delay(LONG * 10);
    let finish = scene.run(Elapsed::MAX).await;
    assert_eq!(say(&finish), "no_answer, again");
    assert!(message(&finish).ends_with("within 200ms; what it was asked may be done"), "{}", message(&finish));
}

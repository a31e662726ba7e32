//! Workflows that are followed to their end.

use std::time::Duration;

use punctual_core::Elapsed;
use punctual_engine::runner::{Finish, StopLevel, stop_pair};
use tokio::time::sleep;

use crate::scene::{Scene, message, say};

/// An attempt whose workflow ends like this.
async fn ended(scene: &Scene, status: &str, reason: Option<&str>) -> (Finish, String) {
    tokio::join!(scene.run(Elapsed::MAX), async {
        let id = scene.started().await;
        scene.conductor.finish_because(&id, status, reason);
        id
    })
}

#[tokio::test]
async fn a_run_ends_with_its_workflow() {
    let mut scene = Scene::new().followed();
    let (finish, id) = ended(&scene, "COMPLETED", None).await;
    assert_eq!(say(&finish), "succeeded");
    assert_eq!(finish.report.summary, Some(format!("workflow report, started as {id}, is COMPLETED")));
    assert_eq!(finish.report.refs["workflowId"], id.as_str());
    assert_eq!(finish.report.refs["workflowStatus"], "COMPLETED");
    let base = scene.conductor.url();
    let printed =
        format!("POST {base}/workflow: 200, workflow {id}\nGET {base}/workflow/{id}?includeTasks=false: COMPLETED\n");
    assert_eq!(scene.heard.text(), printed);
}

#[tokio::test]
async fn a_workflow_that_fails_is_not_started_again() {
    for status in ["FAILED", "TERMINATED", "TIMED_OUT"] {
        let scene = Scene::new().followed();
        let (finish, id) = ended(&scene, status, Some("no\npaper")).await;
        assert_eq!(say(&finish), "workflow_failed, final");
        assert_eq!(message(&finish), format!("workflow report, started as {id}, is {status}: no\\npaper"));
        assert_eq!(finish.report.refs["workflowId"], id.as_str());
        assert_eq!(finish.report.refs["workflowStatus"], status);
    }
}

#[tokio::test]
async fn a_workflow_that_has_not_ended_is_waited_for() {
    let scene = Scene::new().followed();
    let (finish, ()) = tokio::join!(scene.run(Elapsed::MAX), async {
        let id = scene.started().await;
        while scene.conductor.requests() < 2 {
            sleep(Duration::from_millis(10)).await;
        }
        scene.conductor.finish(&id, "PAUSED");
        while scene.conductor.requests() < 3 {
            sleep(Duration::from_millis(10)).await;
        }
        scene.conductor.finish(&id, "COMPLETED");
    });
    assert_eq!(say(&finish), "succeeded");
    assert!(finish.report.output.contains(": RUNNING\n") && finish.report.output.contains(": PAUSED\n"));
}

#[tokio::test]
async fn a_server_that_fails_meanwhile_is_asked_on() {
    let scene = Scene::new().followed();
    let (finish, ()) = tokio::join!(scene.run(Elapsed::MAX), async {
        let id = scene.started().await;
        scene.conductor.fail_next(1, 404, "not here");
        while scene.conductor.requests() < 2 {
            sleep(Duration::from_millis(10)).await;
        }
        // The next look finds nobody.
        scene.conductor.refuse().unwrap();
        sleep(Duration::from_millis(2500)).await;
        scene.conductor.finish(&id, "COMPLETED");
        scene.conductor.accept().unwrap();
    });
    assert_eq!(say(&finish), "succeeded");
    let output = finish.report.output;
    assert!(output.contains("404") && output.contains("not here") && output.contains("no connection"), "{output}");
}

#[tokio::test]
async fn a_run_that_is_stopped_leaves_its_workflow_alone() {
    let scene = Scene::new().followed();
    let (stopper, stop) = stop_pair();
    let (finish, id) = tokio::join!(scene.run_until(Elapsed::MAX, stop), async {
        let id = scene.started().await;
        while scene.conductor.requests() < 2 {
            sleep(Duration::from_millis(10)).await;
        }
        sleep(Duration::from_millis(100)).await;
        stopper.pull(StopLevel::Ask);
        id
    });
    assert_eq!(say(&finish), "stopped");
    assert_eq!(finish.report.refs["workflowId"], id.as_str());
    assert_eq!(finish.report.refs["workflowStatus"], "RUNNING");
    assert_eq!(finish.report.summary, Some(format!("workflow report started as {id}")));
    assert!(scene.conductor.seen().iter().all(|seen| ["POST", "GET"].contains(&seen.method.as_str())));
}

#[tokio::test]
async fn an_attempt_goes_on_with_the_workflow_of_the_one_before() {
    let scene = Scene::new().followed();
    let finish = scene.run(Elapsed::from_milliseconds(1500).unwrap()).await;
    assert_eq!(say(&finish), "TimedOut timed_out, again");
    let expected = "the time of the run was over before workflow \"report\" ended; it is left alone";
    assert_eq!(message(&finish), expected);
    let id = scene.started().await;
    assert_eq!(finish.report.refs["workflowId"], id.as_str());

    scene.conductor.finish(&id, "COMPLETED");
    let finish = scene.run(Elapsed::MAX).await;
    assert_eq!((say(&finish), &finish.report.refs["workflowId"]), ("succeeded".to_owned(), &id.as_str().into()));
    assert_eq!(scene.conductor.starts().len(), 1);
}

//! How attempts end, and what the engine is told.

use std::time::Duration;

use punctual_agents::process::{ProcessRunner, Supervisor};
use punctual_core::run::FailureCode;
use punctual_engine::runner::{Ending, Runner, StopLevel, stop_pair};
use serde_json::json;

use crate::lab::{Lab, STAND_IN, error_code, failure, folder, until};

#[tokio::test]
async fn exit_code_0_is_success() {
    let finish = Lab::sh("echo hello; echo noise >&2").run().await;
    assert_eq!(finish.ending, Ending::Succeeded);
    assert_eq!(finish.report.output, "hello\n");
    assert_eq!(finish.report.output_bytes, 12);
    assert_eq!(finish.report.exit_code, Some(0));
    assert_eq!(finish.report.error, None);
}

#[tokio::test]
async fn another_exit_code_is_a_failure_with_the_last_complaint() {
    let finish = Lab::sh("echo working; echo 'disk is full' >&2; exit 3").run().await;
    assert_eq!(failure(&finish), (FailureCode::Error, true));
    assert_eq!(finish.report.exit_code, Some(3));
    assert_eq!(finish.report.error.unwrap().message, "the command ended with exit code 3: disk is full");
    assert_eq!(finish.report.output, "working\n[stderr]\ndisk is full\n");
}

#[tokio::test]
async fn the_last_line_reports() {
    let script = r#"echo '{"summary":"not this one"}'
        echo '{"summary":"3 new","refs":{"mails":[1]},"llm":{"tokens":5},"tools":{"search":1},"facts":{"last":9}}'
        echo"#;
    let report = Lab::sh(script).run().await.report;
    assert_eq!(report.summary.as_deref(), Some("3 new"));
    assert_eq!(serde_json::Value::Object(report.refs), json!({"mails": [1]}));
    assert_eq!(serde_json::Value::Object(report.llm), json!({"tokens": 5}));
    assert_eq!(serde_json::Value::Object(report.tools), json!({"search": 1}));
    assert_eq!(serde_json::Value::Object(report.facts), json!({"last": 9}));
}

#[tokio::test]
async fn a_reported_error_fails_the_run_whatever_the_exit_code() {
    let script = r#"echo '{"error":{"code":"no_access","message":"the key is old","retryable":false}}'"#;
    let finish = Lab::sh(script).run().await;
    assert_eq!(failure(&finish), (FailureCode::Error, false));
    assert_eq!(error_code(&finish), "no_access");
    assert_eq!(finish.report.exit_code, Some(0));
}

#[tokio::test]
async fn death_by_a_signal_is_a_failure() {
    let finish = Lab::sh("kill -SEGV $$").run().await;
    assert_eq!(failure(&finish), (FailureCode::Error, true));
    assert_eq!(error_code(&finish), "signal");
    assert_eq!(finish.report.exit_code, None);
}

#[tokio::test]
async fn a_missing_program_is_not_started_and_not_tried_again() {
    let finish = Lab::new(["no-such-program-anywhere"]).run().await;
    assert_eq!(failure(&finish), (FailureCode::NotStarted, false));
    assert_eq!(
        finish.report.error.unwrap().message,
        "could not start the command \"no-such-program-anywhere\": No such file or directory (os error 2)"
    );
}

#[tokio::test]
async fn a_file_that_is_no_program_is_not_started() {
    let plain = folder("plain").join("plain.txt");
    std::fs::write(&plain, "hello").unwrap();
    let finish = Lab::new([plain.to_str().unwrap()]).run().await;
    assert_eq!(failure(&finish), (FailureCode::NotStarted, false));
}

#[tokio::test]
async fn a_missing_folder_is_named() {
    let mut lab = Lab::sh("pwd");
    lab.agent.folder = Some("/no/such/folder".into());
    let finish = lab.run().await;
    assert_eq!(failure(&finish), (FailureCode::NotStarted, false));
    assert_eq!(
        finish.report.error.unwrap().message,
        "could not enter the working directory \"/no/such/folder\": No such file or directory (os error 2)"
    );
}

#[tokio::test]
async fn a_missing_supervisor_is_not_started() {
    let lab = Lab::sh("true");
    let runner = ProcessRunner::new(lab.agent, Supervisor::at("/no/such/supervisor")).unwrap();
    let (_stopper, stop) = stop_pair();
    let finish = runner.run(lab.assignment, stop).await;
    assert_eq!(failure(&finish), (FailureCode::NotStarted, false));
}

#[tokio::test]
async fn a_supervisor_that_is_none_is_lost_and_not_waited_for() {
    let lab = Lab::sh("true");
    let runner = ProcessRunner::new(lab.agent, Supervisor::at("true")).unwrap();
    let (_stopper, stop) = stop_pair();
    let finish = runner.run(lab.assignment, stop).await;
    assert_eq!(failure(&finish), (FailureCode::Error, true));
    assert_eq!(error_code(&finish), "supervisor_lost");
}

#[tokio::test]
async fn work_that_runs_too_long_is_ended() {
    let finish = Lab::sh("echo begun; sleep 1000").timeout_seconds(1).run().await;
    assert_eq!(failure(&finish), (FailureCode::TimedOut, true));
    assert!(finish.report.output.starts_with("begun\n"), "{}", finish.report.output);
}

#[tokio::test]
async fn work_that_runs_too_long_and_hears_nothing_is_killed() {
    let lab = Lab::sh("trap '' TERM; while :; do sleep 1; done").grace(Duration::from_millis(300));
    let finish = lab.timeout_seconds(1).run().await;
    assert_eq!(failure(&finish), (FailureCode::TimedOut, true));
}

#[tokio::test]
async fn work_that_is_asked_to_stop_may_tidy_up() {
    let lab = Lab::sh("trap 'echo tidied; exit 0' TERM; sleep 1000 & wait; exit 1");
    let finish = lab.run_and_stop(2, StopLevel::Ask).await;
    assert_eq!(finish.ending, Ending::Stopped);
    assert_eq!(finish.report.output, "tidied\n");
}

#[tokio::test]
async fn work_that_is_asked_to_stop_and_does_not_is_killed_after_its_grace() {
    let lab = Lab::sh("trap '' TERM; sleep 1000; sleep 1000").grace(Duration::from_millis(500));
    let finish = lab.run_and_stop(2, StopLevel::Ask).await;
    assert_eq!(finish.ending, Ending::Stopped);
}

#[tokio::test]
async fn work_that_is_to_stop_now_has_no_grace() {
    // The grace is longer than the test waits.
    let lab = Lab::sh("trap '' TERM; sleep 1000; sleep 1000").grace(Duration::from_secs(1000));
    let finish = lab.run_and_stop(2, StopLevel::Now).await;
    assert_eq!(finish.ending, Ending::Stopped);
}

#[tokio::test]
async fn work_in_its_grace_can_still_be_stopped_now() {
    let lab = Lab::sh("trap 'echo asked' TERM; while :; do sleep 0.1; done").grace(Duration::from_secs(1000));
    let (stopper, stop) = stop_pair();
    let stopping = async {
        until("the work is under way", || 1 < lab.living()).await;
        stopper.pull(StopLevel::Ask);
        tokio::time::sleep(Duration::from_millis(300)).await;
        stopper.pull(StopLevel::Now);
    };
    let (finish, ()) = tokio::join!(lab.run_until(stop), stopping);
    assert_eq!(finish.ending, Ending::Stopped);
}

#[tokio::test]
async fn work_without_an_owner_ends() {
    let lab = Lab::sh("sleep 1000; sleep 1000");
    let (stopper, stop) = stop_pair();
    let letting_go = async {
        until("the work is under way", || lab.living() == 2).await;
        drop(stopper);
    };
    let (finish, ()) = tokio::join!(lab.run_until(stop), letting_go);
    assert_eq!(finish.ending, Ending::Stopped);
}

#[tokio::test]
async fn a_run_that_nobody_waits_for_ends() {
    let lab = Lab::sh("sleep 1000; sleep 1000");
    let (_stopper, stop) = stop_pair();
    tokio::select! {
        _ = lab.run_until(stop) => panic!("it should not have ended by itself"),
        () = until("the work is under way", || lab.living() == 2) => {}
    }
    until("all of it is gone", || lab.living() == 0).await;
}

#[tokio::test]
async fn work_that_is_stopped_before_it_begins_does_not_begin() {
    let folder = folder("never-begun");
    let mut lab = Lab::sh("touch begun");
    lab.agent.folder = Some(folder.clone());
    let (stopper, stop) = stop_pair();
    stopper.pull(StopLevel::Ask);
    assert_eq!(lab.run_until(stop).await.ending, Ending::Stopped);
    assert!(!folder.join("begun").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_runs_at_once_do_not_mix() {
    let runs: Vec<_> = (0..50)
        .map(|number| {
            tokio::spawn(async move {
                let finish = Lab::sh(&format!("cat >/dev/null; echo {number}; sleep 0.2; exit {number}")).run().await;
                (number, finish.report.exit_code, finish.report.output)
            })
        })
        .collect();
    for run in runs {
        let (number, exit_code, output) = run.await.unwrap();
        assert_eq!((exit_code, output), (Some(number), format!("{number}\n")));
    }
}

#[tokio::test]
async fn the_stand_in_refuses_a_person() {
    let output = tokio::process::Command::new(STAND_IN).arg("supervise").output().await.unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("is for the server"));
}

#[test]
fn work_is_stopped_when_every_thread_of_the_runtime_is_busy() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    for level in [StopLevel::Ask, StopLevel::Now] {
        // Asked, it ends by itself.
        let script =
            if level == StopLevel::Ask { "sleep 1000; sleep 1000" } else { "trap '' TERM; sleep 1000; sleep 1000" };
        let lab = std::sync::Arc::new(Lab::sh(script).grace(Duration::from_secs(1000)));
        let (stopper, stop) = stop_pair();
        let attended = std::sync::Arc::clone(&lab);
        let running = runtime.spawn(async move { attended.run_until(stop).await });
        let waiting = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        waiting.block_on(until("the work is under way", || lab.living() == 2));
        // The one thread that attends to the run has something else to do.
        let (is_over, end) = std::sync::mpsc::channel::<()>();
        let (is_busy, busy) = std::sync::mpsc::channel::<()>();
        runtime.spawn(async move {
            is_busy.send(()).unwrap();
            end.recv().ok();
        });
        busy.recv().unwrap();
        stopper.pull(level);
        waiting.block_on(until("all of it is gone", || lab.living() == 0));
        is_over.send(()).unwrap();
        assert_eq!(runtime.block_on(running).unwrap().ending, Ending::Stopped, "{level:?}");
    }
}

//! Work that does not want to end, or leaves others behind.

use std::time::Duration;

use punctual_core::run::FailureCode;
use punctual_engine::runner::{Ending, StopLevel, stop_pair};

use crate::lab::{Lab, error_code, failure, folder, living, parent, until};

#[tokio::test]
async fn what_leaves_the_session_and_ignores_being_asked_ends_with_its_run() {
    let script = "setsid sleep 1000 & trap '' TERM; setsid sh -c 'while :; do sleep 1; done' & wait";
    let lab = Lab::sh(script).grace(Duration::from_millis(300));
    let finish = lab.run_and_stop(4, StopLevel::Ask).await;
    assert_eq!(finish.ending, Ending::Stopped);
}

#[tokio::test]
async fn daemons_end_with_the_run_that_started_them() {
    // Twice a child of a child whose parent is gone, in sessions of their own, the second deaf.
    let script = "(setsid sleep 1000 >/dev/null 2>&1 &)
        trap '' TERM
        (setsid sh -c 'sleep 1000; sleep 1000' >/dev/null 2>&1 &)
        echo done";
    let finish = Lab::sh(script).run().await;
    assert_eq!(finish.ending, Ending::Succeeded);
    assert_eq!(finish.report.output, "done\n");
}

#[tokio::test]
async fn what_holds_the_output_open_holds_up_nothing() {
    let finish = Lab::sh("trap '' TERM; setsid sh -c 'sleep 1000; sleep 1000' & echo done").run().await;
    assert_eq!(finish.ending, Ending::Succeeded);
    assert_eq!(finish.report.output, "done\n");
}

#[tokio::test]
async fn three_hundred_processes_end() {
    let lab = Lab::sh("for n in $(seq 150); do (sleep 1000 & setsid sleep 1000; :) & done; wait");
    let finish = lab.run_and_stop(300, StopLevel::Now).await;
    assert_eq!(finish.ending, Ending::Stopped);
}

#[tokio::test]
async fn three_hundred_generations_end() {
    let folder = folder("generations");
    std::fs::write(folder.join("deeper"), "[ $1 -gt 0 ] || exec sleep 1000\nsh deeper $(($1 - 1)); :\n").unwrap();
    let mut lab = Lab::new(["sh", "deeper", "300"]);
    lab.agent.folder = Some(folder);
    let finish = lab.run_and_stop(301, StopLevel::Now).await;
    assert_eq!(finish.ending, Ending::Stopped);
}

/// Each process leaves for a new one and ends at once: a list of processes is old before it is read. It gives up after
/// some seconds, so that a lost fight is not lost for the whole machine.
async fn fleeing(and_also: &str) -> Ending {
    let script = format!(
        "import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
give_up_at = time.monotonic() + 20
while time.monotonic() < give_up_at:
    if os.fork(): os._exit(0)
    {and_also}
time.sleep(1000)"
    );
    Lab::new(["python3", "-c", &script]).run().await.ending
}

#[tokio::test]
async fn what_flees_from_process_to_process_is_caught() {
    assert_eq!(fleeing("pass").await, Ending::Succeeded);
}

#[tokio::test]
async fn what_flees_from_session_to_session_is_caught() {
    assert_eq!(fleeing("os.setsid()").await, Ending::Succeeded);
}

#[tokio::test]
async fn what_is_halted_can_be_asked_to_stop() {
    let lab =
        Lab::sh("trap 'echo heard; exit 0' TERM; sleep 1000 & kill -STOP $$; wait").grace(Duration::from_secs(60));
    let finish = lab.run_and_stop(2, StopLevel::Ask).await;
    assert_eq!(finish.ending, Ending::Stopped);
    assert_eq!(finish.report.output, "heard\n");
}

#[tokio::test]
async fn work_that_kills_its_group_does_not_reach_its_supervisor() {
    let finish = Lab::sh("sleep 1000 & kill -KILL 0").run().await;
    assert_eq!(failure(&finish), (FailureCode::Error, true));
    assert_eq!(error_code(&finish), "signal");
}

#[tokio::test]
async fn work_that_kills_its_supervisor_ends_with_it() {
    let lab = Lab::sh("setsid sleep 1000 & setsid sh -c 'sleep 1000; :' & sleep 0.2; kill -KILL $PPID; sleep 1000");
    let finish = lab.run().await;
    assert_eq!(failure(&finish), (FailureCode::Error, true));
    assert_eq!(error_code(&finish), "supervisor_lost");
}

#[tokio::test]
async fn work_that_halts_its_supervisor_can_be_stopped() {
    let lab = Lab::sh("kill -STOP $PPID; setsid sleep 1000 & sleep 1000").grace(Duration::from_millis(100));
    let finish = lab.run_and_stop(3, StopLevel::Now).await;
    assert_eq!(finish.ending, Ending::Stopped);
}

#[tokio::test]
async fn a_supervisor_that_is_asked_to_end_asks_the_work() {
    let lab = Lab::sh("trap 'echo asked; exit 5' TERM; sleep 1000 & wait");
    let asked = |lab: &Lab| {
        let pids = living(&lab.marker);
        // The supervisor is the parent that is not of the run.
        let supervisor = pids.iter().filter_map(|pid| parent(*pid)).find(|parent| !pids.contains(parent));
        let is_asked = pids.len() == 2 && supervisor.is_some();
        if let (true, Some(supervisor)) = (is_asked, supervisor) {
            std::process::Command::new("kill").arg(supervisor.to_string()).status().unwrap();
        }
        is_asked
    };
    let (stopper, stop) = stop_pair();
    let acting = until("the work is under way", || asked(&lab));
    let (finish, ()) = tokio::join!(lab.run_until(stop), acting);
    drop(stopper);
    assert_eq!(finish.report.exit_code, Some(5));
    assert!(finish.report.output.starts_with("asked\n"));
}

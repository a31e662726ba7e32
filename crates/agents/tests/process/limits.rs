//! Work that wants more than it may have.

use punctual_core::run::FailureCode;
use punctual_engine::runner::Ending;

use crate::lab::{Lab, error_code, failure, folder};

#[tokio::test]
async fn limits_are_in_force_when_the_command_begins() {
    let mut lab = Lab::new(["cat", "/proc/self/limits"]);
    lab.agent.limits.cpu_seconds = Some(100);
    lab.agent.limits.address_space_bytes = Some(300_000_000);
    lab.agent.limits.open_files = 99;
    lab.agent.limits.processes = Some(5_000);
    lab.agent.limits.file_size_bytes = Some(1_000_000);
    let output = lab.run().await.report.output;
    for expected in [
        "Max cpu time 100 102 seconds",
        "Max file size 1000000 1000000 bytes",
        "Max core file size 0 0 bytes",
        "Max processes 5000 5000 processes",
        "Max open files 99 99 files",
        "Max address space 300000000 300000000 bytes",
    ] {
        let lines = output.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
        assert!(lines.into_iter().any(|line| line == expected), "{expected} is not in\n{output}");
    }
}

#[tokio::test]
async fn without_limits_files_and_cores_are_limited() {
    let output = Lab::sh("ulimit -n; ulimit -c").run().await.report.output;
    assert_eq!(output, "1024\n0\n");
}

#[tokio::test]
async fn work_that_eats_memory_fails_alone() {
    // Without a line end in sight, `tail` keeps everything.
    let mut lab = Lab::sh("head -c 1G /dev/zero | tail -n 1");
    lab.agent.limits.address_space_bytes = Some(100_000_000);
    let finish = lab.run().await;
    assert_eq!(failure(&finish), (FailureCode::Error, true));
}

#[tokio::test]
async fn work_that_leaks_files_fails_alone() {
    let mut lab = Lab::new(["python3", "-c", "kept = [open('/dev/null') for _ in range(5000)]"]);
    lab.agent.limits.open_files = 200;
    let finish = lab.run().await;
    assert_eq!(failure(&finish), (FailureCode::Error, true));
    assert!(finish.report.output.contains("Too many open files"), "{}", finish.report.output);
}

#[tokio::test]
async fn work_that_writes_too_large_a_file_hits_its_limit() {
    for script in ["exec head -c 10M /dev/zero >large", "head -c 10M /dev/zero >large"] {
        let mut lab = Lab::sh(script);
        lab.agent.folder = Some(folder("large"));
        lab.agent.limits.file_size_bytes = Some(1_000_000);
        let finish = lab.run().await;
        assert_eq!(failure(&finish), (FailureCode::ResourceLimit, true), "{script}");
        assert_eq!(error_code(&finish), "resource_limit");
    }
}

#[tokio::test]
async fn a_command_that_is_missing_is_missing_under_every_limit() {
    let mut lab = Lab::new(["no-such-program-anywhere"]);
    lab.agent.limits.file_size_bytes = Some(0);
    lab.agent.limits.processes = Some(0);
    assert_eq!(failure(&lab.run().await), (FailureCode::NotStarted, false));
}

#[tokio::test]
async fn output_is_not_a_file_and_has_no_limit() {
    let mut lab = Lab::sh("head -c 1M /dev/zero");
    lab.agent.limits.file_size_bytes = Some(0);
    assert_eq!(lab.run().await.ending, Ending::Succeeded);
}

#[tokio::test]
async fn work_that_computes_too_long_hits_its_limit() {
    let mut lab = Lab::sh("while :; do :; done");
    lab.agent.limits.cpu_seconds = Some(1);
    let finish = lab.run().await;
    assert_eq!(failure(&finish), (FailureCode::ResourceLimit, true));
}

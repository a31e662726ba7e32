//! What the work finds when it begins: arguments, variables, input, rights.

use std::process::Stdio;

use punctual_engine::runner::Ending;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::lab::{Lab, STAND_IN, folder};

#[tokio::test]
async fn arguments_arrive_as_they_were_written() {
    let arguments = [
        "; touch injected",
        "`touch injected`",
        "$(touch injected)",
        "a\nb",
        "-rf",
        "--",
        "'\"\\",
        "",
        "* ~ $HOME",
        "ü",
    ];
    let folder = folder("arguments");
    let mut lab = Lab::new(["printf", "%s\\0"].into_iter().chain(arguments));
    lab.agent.folder = Some(folder.clone());
    let output = lab.run().await.report.output;
    let arrived: Vec<&str> = output.strip_suffix('\u{2400}').unwrap().split('\u{2400}').collect();
    assert_eq!(arrived, arguments);
    assert!(!folder.join("injected").exists());
}

/// The variables that the script sees when the server itself has these.
async fn variables(server: &[(&str, &str)], script: &str) -> Vec<String> {
    let mut command = Command::new(STAND_IN);
    command.args(["serve", "variables", script]).env_clear().envs(server.iter().copied()).stderr(Stdio::null());
    let output = command.output().await.unwrap();
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn only_listed_variables_of_the_server_arrive() {
    let server = [
        ("PATH", "/usr/bin:/bin"),
        ("HOME", "/"),
        ("LC_TIME", "C"),
        ("PUNCTUAL_TOKEN", "secret"),
        ("PUNCTUAL_RUN_ID", "forged"),
        ("LD_PRELOAD", "/no/such/library.so"),
        ("LD_LIBRARY_PATH", "/no/such"),
        ("BASH_ENV", "/no/such"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
    ];
    let mut names: Vec<String> = Vec::new();
    for line in variables(&server, "exec env").await {
        names.push(line.split('=').next().unwrap().to_owned());
        assert!(!line.contains("secret") && !line.contains("forged") && !line.contains("/no/such"), "{line}");
    }
    names.sort();
    let expected = ["HOME", "LC_TIME", "MARKER", "PATH", "PUNCTUAL_RUN_ATTEMPT", "PUNCTUAL_RUN_ID"];
    assert_eq!(names[..6], expected);
    assert_eq!(names[6], "PUNCTUAL_RUN_SCHEDULED_AT");
    // The shell of the script adds this one itself.
    assert!(names[7..].iter().all(|name| name == "PWD"), "{names:?}");
}

#[tokio::test]
async fn variables_of_the_operator_arrive() {
    let mut lab = Lab::sh(
        "echo $PUNCTUAL_RUN_ID $PUNCTUAL_RUN_ATTEMPT $PUNCTUAL_RUN_SCHEDULED_AT; echo $A $USER $CARGO_PKG_NAME",
    );
    lab.agent.env.extend([("A".to_owned(), "b c".to_owned()), ("USER".to_owned(), "robot".to_owned())]);
    lab.agent.env_pass.push("CARGO_PKG_NAME".to_owned());
    let expected = format!("{} 3 2026-03-09T13:00:00Z\nb c robot punctual-agents\n", lab.assignment.context.run_id);
    assert_eq!(lab.run().await.report.output, expected);
}

#[tokio::test]
async fn the_run_context_is_the_input() {
    let lab = Lab::new(["cat"]);
    let output = lab.run().await.report.output;
    let context: Value = serde_json::from_str(&output).unwrap();
    assert_eq!(context["runId"], json!(lab.assignment.context.run_id));
    assert_eq!(context["executionId"], context["runId"]);
    assert_eq!(context["prompt"], json!("What is new?"));
    assert_eq!(context["attempt"], json!(3));
    assert_eq!(context["epoch"], json!(7));
    assert_eq!(context["scheduledAt"], json!("2026-03-09T13:00:00Z"));
}

#[tokio::test]
async fn a_large_context_arrives_whole() {
    let mut lab = Lab::sh("wc -c");
    lab.assignment.context.prompt = "x".repeat(5_000_000);
    let count: usize = lab.run().await.report.output.trim().parse().unwrap();
    assert_eq!(count, serde_json::to_string(&lab.assignment.context).unwrap().len());
}

#[tokio::test]
async fn a_large_context_that_nobody_reads_does_no_harm() {
    for script in ["echo done", "exec <&-; echo done", "head -c 10 >/dev/null; echo done"] {
        let mut lab = Lab::sh(script);
        lab.assignment.context.prompt = "x".repeat(1_000_000);
        let finish = lab.run().await;
        assert_eq!(finish.ending, Ending::Succeeded, "{script}");
        assert_eq!(finish.report.output, "done\n");
    }
}

#[tokio::test]
async fn the_context_cannot_be_changed() {
    let finish = Lab::sh("echo x >/dev/stdin || cat").run().await;
    assert!(finish.report.output.contains("runId"), "{}", finish.report.output);
}

#[tokio::test]
async fn the_folder_is_where_the_work_begins() {
    let folder = folder("begins-here").canonicalize().unwrap();
    let mut lab = Lab::new(["./tool"]);
    std::fs::write(folder.join("tool"), "#!/bin/sh\npwd\n").unwrap();
    std::fs::set_permissions(folder.join("tool"), std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    lab.agent.folder = Some(folder.clone());
    assert_eq!(lab.run().await.report.output, format!("{}\n", folder.display()));
}

#[tokio::test]
async fn files_of_the_work_are_its_own() {
    assert_eq!(Lab::sh("umask").run().await.report.output, "0077\n");
}

/// One line of what Linux says about the work.
async fn status(name: &str) -> String {
    let output = Lab::new(["cat", "/proc/self/status"]).run().await.report.output;
    output.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned()
}

#[tokio::test]
async fn the_work_gains_no_rights() {
    assert_eq!(status("NoNewPrivs:").await, "1");
}

#[tokio::test]
async fn no_signal_is_held_back_or_ignored() {
    assert_eq!(status("SigBlk:").await, "0000000000000000");
    // What whoever started the test ignores, everybody below ignores. A closed pipe is what we add and must take back.
    let ignored = u64::from_str_radix(&status("SigIgn:").await, 16).unwrap();
    assert_eq!(ignored & 1 << 12, 0, "{ignored:x}");
}

#[tokio::test]
async fn the_work_leads_a_session_of_its_own() {
    // Process, parent, group and session, after the name.
    let stat = Lab::new(["cat", "/proc/self/stat"]).run().await.report.output;
    let fields: Vec<&str> = stat.split(' ').collect();
    assert_eq!((fields[4], fields[5]), (fields[0], fields[0]));
    assert_ne!(fields[3], fields[5]);
}

#[tokio::test]
async fn no_descriptor_of_the_server_arrives() {
    // Whoever starts the server may leave descriptors open; the work finds its three and the one of its listing.
    let script = format!("exec 7</dev/null 8>/dev/null; exec '{STAND_IN}' serve descriptors 'exec ls /proc/self/fd'");
    let output = Command::new("sh").args(["-c", &script]).output().await.unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "0\n1\n2\n3\n");
}

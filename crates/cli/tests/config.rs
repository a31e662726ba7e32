//! `punctual config`, used as a person or a program would.

use std::path::PathBuf;
use std::process::{Command, Output};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn config(args: &[&str], env: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_punctual"));
    command.arg("config").args(args).current_dir(folder()).env_clear().envs(env.iter().copied()).output().unwrap()
}

/// A folder without a configuration of its own.
fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

fn write(name: &str, content: &str) -> String {
    let file = folder().join(name);
    std::fs::write(&file, content).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn a_right_file_is_counted_in_one_line() {
    let file = format!("{ROOT}/examples/punctual.toml");
    let output = config(&["--config", &file], &[]);
    assert_eq!(text(&output.stdout), format!("{file}: 3 agents, 3 schedules\n"));
    assert_eq!((text(&output.stderr), output.status.code()), ("", Some(0)));
    let output = config(&["--config", &file, "--json"], &[]);
    let counts: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(counts, serde_json::json!({"file": file, "agents": 3, "schedules": 3}));
}

#[test]
fn a_wrong_file_ends_in_2_with_all_its_problems() {
    let file = write("wrong.toml", "tzbd = \"newest\"\n[engine]\nlease_duration_seconds = 0\n");
    let output = config(&["--config", &file], &[]);
    let expected = format!(
        "error: {file} has 2 problems:\n\
         {file}:1:1: tzbd: this key is unknown; did you mean tzdb?\n\
         {file}:3:26: engine.lease_duration_seconds: 0 is out of range; use 1 to 3600\n"
    );
    assert_eq!((text(&output.stderr), output.status.code()), (expected.as_str(), Some(2)));
    assert_eq!(text(&output.stdout), "");
    let output = config(&["--config", &file, "--json"], &[]);
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let first = serde_json::json!(
        {"line": 1, "column": 1, "key": "tzbd", "problem": "this key is unknown", "fix": "did you mean tzdb?"}
    );
    assert_eq!((&told["problems"][0], output.status.code()), (&first, Some(2)));
}

#[test]
fn a_file_that_was_named_must_exist_and_the_default_one_need_not() {
    let output = config(&["--config", "missing.toml"], &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).starts_with("error: reading the configuration missing.toml: "), "{output:?}");
    let output = config(&[], &[]);
    assert_eq!(text(&output.stdout), "no punctual.toml here: 0 agents, 0 schedules\n");
}

#[test]
fn what_is_printed_is_a_file_that_says_the_same() {
    let example = format!("{ROOT}/examples/punctual.toml");
    let env = [("PUNCTUAL_ENGINE__LEASE_DURATION_SECONDS", "77"), ("PUNCTUAL_TOKEN", "secret")];
    let printed = config(&["--config", &example, "--print"], &env).stdout;
    assert!(text(&printed).contains("\nlease_duration_seconds = 77 "), "{}", text(&printed));
    let again = config(&["--config", &write("printed.toml", text(&printed)), "--print"], &[]).stdout;
    assert_eq!(text(&again), text(&printed));
    let json = config(&["--config", &example, "--print", "--json"], &env).stdout;
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(json["schedules"][0]["every"], "5s");
}

#[test]
fn zone_data_that_cannot_be_opened_is_a_problem_of_its_key() {
    let file = write("zones.toml", "tzdb = \"no-such-folder\"\n");
    let output = config(&["--config", &file], &[]);
    assert!(text(&output.stderr).contains("zones.toml:1:8: tzdb: "), "{output:?}");
    let output = config(&["--config", &file], &[("PUNCTUAL_TZDB", "bundled")]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

#[test]
fn the_agents_of_the_example_do_what_it_says() {
    for (agent, attempt, succeeds) in
        [("clock", "1", true), ("flaky", "1", false), ("flaky", "2", true), ("report", "1", true)]
    {
        let mut command = Command::new("sh");
        command.args(["agents.sh", agent]).current_dir(format!("{ROOT}/examples")).env("PUNCTUAL_RUN_ATTEMPT", attempt);
        let output = command.stdin(std::process::Stdio::null()).output().unwrap();
        assert_eq!(output.status.success(), succeeds, "{agent}: {output:?}");
        if succeeds {
            let last = text(&output.stdout).lines().last().unwrap();
            let report: serde_json::Value = serde_json::from_str(last).unwrap();
            assert!(report["summary"].is_string(), "{last}");
        }
    }
}

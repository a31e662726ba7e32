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
    assert_eq!(counts, serde_json::json!({"file": file, "agents": 3, "schedules": 3, "missing": []}));
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

/// A file that is right, on a machine that does not have what it names.
const ELSEWHERE: &str = r#"
[agents.good]
runner = "process"
command = ["sh", "-c", "true"]
[agents.gone]
runner = "process"
command = ["no-such-program-anywhere"]
secrets = { A = { env = "NOT_SET_ANYWHERE" }, B = { file = "no/such/secret" } }
[agents.lost]
runner = "process"
command = ["sh"]
folder = "no/such/folder"
"#;

#[test]
fn programs_folders_and_secrets_that_are_not_here_are_told() {
    let file = write("elsewhere.toml", ELSEWHERE);
    let output = config(&["--config", &file], &[]);
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert_eq!(text(&output.stdout), format!("{file}: 3 agents, 0 schedules\n"));
    for expected in [
        "elsewhere.toml:7:1: agents.gone.command: there is no program \"no-such-program-anywhere\" on the PATH",
        "note: ",
        "elsewhere.toml:8:13: agents.gone.secrets.A: the variable NOT_SET_ANYWHERE is not set here",
        "elsewhere.toml:8:47: agents.gone.secrets.B: ",
        "elsewhere.toml:12:1: agents.lost.folder: ",
    ] {
        assert!(told.contains(expected), "{expected}: {told}");
    }
    assert!(!told.contains("agents.good"), "{told}");
    let output = config(&["--config", &file, "--json"], &[("NOT_SET_ANYWHERE", "but here")]);
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let keys: Vec<&str> = told["missing"].as_array().unwrap().iter().map(|it| it["key"].as_str().unwrap()).collect();
    assert_eq!(keys, ["agents.gone.command", "agents.gone.secrets.B", "agents.lost.folder"]);
    assert_eq!((&told["missing"][0]["line"], &told["missing"][0]["certain"]), (&7.into(), &true.into()));
    // What only a variable of the server can tell is no fault.
    let file = write("variable.toml", ELSEWHERE.split("[agents.gone]").next().unwrap());
    std::fs::write(
        &file,
        "[agents.a]\nrunner = \"process\"\ncommand = [\"sh\"]\nsecrets = { A = { env = \"NOT_SET_ANYWHERE\" } }\n",
    )
    .unwrap();
    let output = config(&["--config", &file], &[]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(text(&output.stderr).starts_with("note: "), "{output:?}");
}

#[test]
fn the_doctor_tells_it_too() {
    let file = write("doctor.toml", ELSEWHERE);
    let mut command = Command::new(env!("CARGO_BIN_EXE_punctual"));
    command.args(["doctor", "--json", "--config", &file, "--database", "sqlite:no-such.db"]);
    let output = command.current_dir(folder()).env_clear().output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let checks = told["checks"].as_array().unwrap().iter().filter(|it| it["name"] == "configuration");
    let checks: Vec<(&str, &str)> =
        checks.map(|it| (it["good"].as_str().unwrap(), it["meaning"].as_str().unwrap())).collect();
    assert_eq!(checks.iter().map(|it| it.0).collect::<Vec<_>>(), ["yes", "no", "unknown", "no", "no"], "{checks:?}");
    assert!(
        checks[1].1.contains("no-such-program-anywhere") && checks[4].1.contains("agents.lost.folder"),
        "{checks:?}"
    );
}

#[test]
fn every_mistake_is_told_at_once() {
    let file = write(
        "many.toml",
        r#"
tzdb = "/no/such/zones"
default_timezone = "Mars/Olympus"
[agents.a]
runner = "proces"
command = "x y"
grace = "2h"
env_pass = ["LD_PRELOAD", "BASH_ENV"]
[agents.a.limits]
memory = "1MiB"
open_files = 3
[[schedules]]
agent = "nobody"
every = "0s"
times = ["25:00", "aa"]
"#,
    );
    let output = config(&["--config", &file], &[]);
    assert_eq!(output.status.code(), Some(2));
    let told = text(&output.stderr);
    for expected in [
        "tzdb: ",
        "\"Mars/Olympus\" is not an IANA time zone",
        "did you mean \"process\"?",
        "a command is a list",
        "agents.a.grace: ",
        "agents.a.env_pass: the variable LD_PRELOAD cannot be passed on",
        "agents.a.env_pass: the variable BASH_ENV cannot be passed on",
        "agents.a.limits.memory: ",
        "agents.a.limits.open_files: 3 is out of range; use 16 or more",
        "schedules[0]: name is missing",
        "there is no agent \"nobody\"",
        "times and every are given together",
        "schedules[0].every: ",
        "schedules[0].times[0]: ",
        "schedules[0].times[1]: ",
    ] {
        assert!(told.contains(expected), "{expected}: {told}");
    }
}

//! `punctual-sim` as people and programs call it.

use std::process::{Command, Output};

use punctual_sim::{Report, Violation, simulate};
use serde_json::{Value, json};

/// A seed whose history is short.
const SEED: u64 = 0;

fn sim(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_punctual-sim")).args(args).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn a_wrong_option_is_told_and_ends_with_2() {
    for args in [&["--sead", "1"][..], &["--seeds"], &["--seeds", "many"], &["--seeds", "0"], &["7"]] {
        let output = sim(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(String::from_utf8_lossy(&output.stderr).starts_with("error: "), "{args:?}");
        assert!(output.stdout.is_empty(), "{args:?}");
    }
}

#[test]
fn help_names_every_option_and_exit_code() {
    let output = sim(&["--help"]);
    assert!(output.status.success());
    for word in ["--seeds N", "--from SEED", "--first", "--seed SEED", "--json", "Exit codes: 0", "1 a rule", "2 an"] {
        assert!(stdout(&output).contains(word), "{word}");
    }
}

#[test]
fn another_process_gives_the_same_history() {
    let output = sim(&["--seed", &SEED.to_string()]);
    assert!(output.status.success());
    let last = stdout(&output).lines().last().unwrap().to_owned();
    assert_eq!(last, simulate(SEED, false).to_string(), "the trace goes before, the sum with its hash comes last");
}

#[test]
fn json_is_one_object_with_the_numbers_that_count() {
    let output = sim(&["--seeds", "1", "--from", &SEED.to_string(), "--json"]);
    assert!(output.status.success());
    let mut report: Value = serde_json::from_str(&stdout(&output)).unwrap();
    for number in ["faults", "seeds_per_min"] {
        assert!(report[number].is_u64(), "{report}");
        report[number] = json!(1);
    }
    let expected = json!({"seeds": 1, "faults": 1, "violations": 0, "seeds_per_min": 1, "failures": []});
    assert_eq!(report, expected);
}

#[test]
fn a_failure_comes_with_its_rule_and_the_command_that_replays_it() {
    let mut history = simulate(SEED, false);
    history.violation = Some(Violation { rule: "I1", what: "planted here".to_owned() });
    let text = history.to_string();
    assert!(text.starts_with("seed 0: I1: planted here\n"), "{text}");
    assert!(text.ends_with("\n  replay: cargo xtask sim --seed 0"), "{text}");
    let mut report = Report::default();
    report.add(history);
    let json = report.json(std::time::Duration::from_secs(60));
    assert_eq!(json["violations"], 1);
    assert_eq!(
        json["failures"],
        json!([{"seed": 0, "rule": "I1", "what": "planted here", "replay": "cargo xtask sim --seed 0"}])
    );
}

//! The program itself, on SQLite, with small sizes: it measures, and its lines have the shape that others read.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// The keys that every line has.
const KEYS: [&str; 12] = [
    "workload",
    "database",
    "nodes",
    "runs",
    "runs_per_s",
    "limit_per_s",
    "share",
    "p50_ms",
    "p99_ms",
    "max_ms",
    "cpu_us_per_run",
    "rss_mb",
];

/// A folder that goes with its test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("punctual-bench-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder can be made");
        Folder(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

fn run(folder: &Path, args: &[&str]) -> Output {
    let address = format!("sqlite:{}", folder.join("x.db").display());
    let program = env!("CARGO_BIN_EXE_punctual-bench");
    Command::new(program).args(args).args(["--database", &address]).output().expect("it can be started")
}

fn lines(folder: &Path, args: &[&str]) -> Vec<Value> {
    let output = run(folder, args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("it is text");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("it is JSON")).collect();
    for line in &lines {
        for key in KEYS {
            assert!(line.get(key).is_some(), "{key} is missing in {line}");
        }
    }
    lines
}

#[test]
fn drain_measures_beside_plain_sql_and_leaves_nothing_behind() {
    let folder = Folder::new("drain");
    let lines = lines(&folder.0, &["drain", "--runs", "200", "--rounds", "1"]);
    let [line] = &lines[..] else { panic!("one line, not {lines:?}") };
    assert_eq!((&line["workload"], &line["database"], &line["runs"]), (&"drain".into(), &"sqlite".into(), &200.into()));
    for key in ["runs_per_s", "limit_per_s", "share", "cpu_us_per_run"] {
        assert!(line[key].as_f64().is_some_and(|figure| 0.0 < figure), "{key} of {line}");
    }
    assert_eq!(line["p99_ms"], Value::Null);
    assert_eq!(std::fs::read_dir(&folder.0).expect("it is there").count(), 0, "its databases are gone");
}

#[test]
fn late_tells_how_late_starts_are_beside_plain_sql() {
    let folder = Folder::new("late");
    let lines = lines(&folder.0, &["late", "--runs", "50", "--rounds", "1"]);
    let [line] = &lines[..] else { panic!("one line, not {lines:?}") };
    let figure = |value: &Value| value.as_f64().expect("it is a figure");
    assert!(figure(&line["also"]["first_ms"]) <= figure(&line["p50_ms"]));
    assert!(figure(&line["p50_ms"]) <= figure(&line["p99_ms"]) && figure(&line["p99_ms"]) <= figure(&line["max_ms"]));
    assert_eq!(figure(&line["also"]["early"]), 0.0, "nothing starts before its time");
    assert!(figure(&line["also"]["plain_p99_ms"]) > 0.0);
}

#[test]
fn a_node_in_another_process_tells_of_its_start() {
    let folder = Folder::new("schedules");
    let lines = lines(&folder.0, &["schedules", "--count", "20", "--seconds", "1"]);
    assert!(lines[0]["also"]["restart_s"].as_f64().is_some() && lines[0]["rss_mb"].as_f64().is_some(), "{lines:?}");
}

#[test]
fn what_sqlite_cannot_do_is_said() {
    let folder = Folder::new("nodes");
    for args in [&["drain", "--nodes", "2"][..], &["join"]] {
        let output = run(&folder.0, args);
        assert!(!output.status.success());
        assert!(String::from_utf8_lossy(&output.stderr).contains("SQLite has one node"), "{args:?}");
    }
}

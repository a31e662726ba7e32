//! How answers look to a person at a terminal, and what a person may type: tables, ids, colours, times, names.

use punctual_lab::postgres::{Durability, Server as Postgres};
use serde_json::Value;

use crate::stand_in::StandIn;
use crate::support::{Place, Server};

const CONFIG: &str = r#"
[agents.reporter]
runner = "process"
command = ["sh", "-c", "echo '{\"summary\": \"everything that happened was written down, and more than that was read\"}'"]
[agents.broken]
runner = "process"
command = ["sh", "-c", "exit 3"]
[agents.slow]
runner = "process"
command = ["sh", "-c", "echo begun; sleep 60"]
grace = "1s"
max_concurrent = 4
"#;

fn up(test: &str) -> (Place, Server) {
    let place = Place::new(test, CONFIG);
    let server = place.up();
    place.until("the server has joined", |place| place.read("log").contains("has joined"));
    (place, server)
}

fn said(place: &Place, args: &[&str], code: i32) -> String {
    said_with(place, args, &[], code)
}

fn said_with(place: &Place, args: &[&str], env: &[(&str, &str)], code: i32) -> String {
    let output = place.punctual_with(args, env);
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
    assert_eq!(output.status.code(), Some(code), "{args:?}: {text}");
    text
}

fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
}

fn lacks(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(!text.contains(part), "{part:?} is in:\n{text}");
    }
}

/// A zone whose day neither begins nor ends while a test looks at it.
#[expect(clippy::disallowed_methods, reason = "the server under test goes by the real clock")]
fn zone_at_noon() -> String {
    let hour = i64::from(jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).hour());
    format!("Etc/GMT{:+}", hour - 12)
}

/// A run that fails for good.
fn one_fails(place: &Place) {
    let add = ["schedule", "add", "--agent", "broken", "--name", "bad", "--cron", "@yearly", "--max-attempts", "1"];
    said(place, &add, 0);
    said(place, &["trigger", "bad", "--wait"], 1);
}

fn id_of(run: &Value) -> String {
    run["executionId"].as_str().unwrap().to_owned()
}

#[test]
fn tables_fit_the_terminal_and_a_pipe_gets_everything() {
    let (place, server) = up("looks-tables");
    let zone = zone_at_noon();
    let long = "a-report-with-a-name-that-is-longer-than-most";
    said(&place, &["schedule", "add", "--agent", "reporter", "--name", long, "--every", "10m", "--zone", &zone], 0);
    let run = id_of(&place.json(&["trigger", long, "--wait", "--json"]));
    one_fails(&place);
    let tables: [&[&str]; 7] = [
        &["history"],
        &["plan", "--all", "--zone", &zone],
        &["timers"],
        &["schedule", "list"],
        &["agents"],
        &["nodes"],
        &["token", "list"],
    ];
    for columns in [60, 80, 120] {
        for args in tables {
            let screen = place.screen(columns, args, &[("NO_COLOR", "1")]);
            let end = screen.find("\n\n").filter(|_| args[0] != "plan").unwrap_or(screen.len());
            for line in screen[..end].lines().filter(|line| !line.starts_with("Not shown")) {
                assert!(line.chars().count() <= usize::from(columns), "{args:?} at {columns}: {line:?}\n{screen}");
            }
        }
    }
    let narrow = place.screen(80, &["history"], &[]);
    has(&narrow, &["TIME", "SCHEDULE", "RESULT", "RUN", "Not shown: SLOT, ENDED", "--wide shows all", &run[28..], "…"]);
    lacks(&narrow, &[&run, "more than that was read"]);
    let wide = place.screen(80, &["history", "--wide"], &[]);
    has(&wide, &["SLOT", "ENDED", "COST", &run, "more than that was read", long]);
    let piped = said(&place, &["history"], 0);
    has(&piped, &["SLOT", "ENDED", "COST", &run, "more than that was read", long]);
    lacks(&piped, &["\u{1b}", "Not shown"]);
    assert!(server.stop().success());
}

#[test]
fn states_are_coloured_where_colours_are_wanted() {
    let (place, server) = up("looks-colours");
    said(&place, &["trigger", "reporter", "--wait"], 0);
    one_fails(&place);
    let (green, red) = ("\u{1b}[32msucceeded\u{1b}[0m", "\u{1b}[31mfailed\u{1b}[0m");
    has(&place.screen(120, &["history"], &[]), &[green, red]);
    lacks(&place.screen(120, &["history"], &[("NO_COLOR", "1")]), &["\u{1b}["]);
    lacks(&place.screen(120, &["history", "--color", "never"], &[]), &["\u{1b}["]);
    lacks(&said(&place, &["history"], 0), &["\u{1b}["]);
    has(&said_with(&place, &["--color", "always", "history"], &[("NO_COLOR", "1")], 0), &[green, red]);
    has(&place.screen(120, &["plan", "--utc"], &[]), &["\u{1b}[32m●\u{1b}[0m done"]);
    has(&said(&place, &["history", "--color", "pink"], 2), &["auto", "always", "never"]);
    assert!(server.stop().success());
}

#[test]
fn a_run_is_found_by_either_end_of_its_id() {
    let (place, server) = up("looks-ids");
    let runs: Vec<String> = (0..3).map(|_| id_of(&place.json(&["trigger", "reporter", "--wait", "--json"]))).collect();
    for run in &runs {
        let short = &run[28..];
        for piece in [short, &run[24..], run.as_str(), &short.to_uppercase()] {
            assert_eq!(place.json(&["why", piece, "--json"])["executionId"], **run, "{piece}");
        }
        assert_eq!(place.json(&["history", "--run", short, "--json"])["content"][0]["executionId"], **run);
        assert_eq!(place.json(&["show", short, "--json"])["executionId"], **run);
    }
    // They share their beginning, which is their time.
    let text = said(&place, &["why", &runs[0][..6]], 2);
    has(&text, &["may be any of 3 runs", &runs[0], &runs[1], &runs[2]]);
    has(&said(&place, &["why", "00000000"], 5), &["there is no run", "are looked through"]);
    // A name that looks like a piece of an id is a name.
    let tail = &runs[0][28..];
    said(&place, &["schedule", "add", "--agent", "broken", "--name", tail, "--cron", "@yearly"], 0);
    has(&said(&place, &["why", tail], 0), &["it has not run yet"]);
    let schedule = place.json(&["schedule", "show", tail, "--json"])["scheduleId"].as_str().unwrap().to_owned();
    assert_eq!(place.json(&["schedule", "show", &schedule[24..], "--json"])["name"], *tail);
    // On a terminal the hint for the next command has the id that the next command takes.
    let screen = place.screen(100, &["trigger", "reporter"], &[]);
    let short = screen.split_whitespace().nth(1).unwrap();
    assert_eq!(short.len(), 8, "{screen}");
    has(&screen, &[&format!("`punctual logs {short} -f`")]);
    assert!(place.json(&["why", short, "--json"])["executionId"].as_str().unwrap().ends_with(short));
    assert!(server.stop().success());
}

#[test]
fn times_are_those_of_the_terminal_and_what_is_printed_can_be_typed() {
    let (place, server) = up("looks-times");
    said(&place, &["trigger", "reporter", "--wait"], 0);
    let tokyo = [("TZ", "Asia/Tokyo")];
    let first = |text: &str| text.lines().nth(1).unwrap()[..19].to_owned();
    let shown = said_with(&place, &["history"], &tokyo, 0);
    has(&shown, &["Times of Asia/Tokyo."]);
    let utc = said_with(&place, &["history", "--utc"], &tokyo, 0);
    has(&utc, &["Times of UTC."]);
    has(&said_with(&place, &["history", "--zone", "Europe/Paris"], &tokyo, 0), &["Times of Europe/Paris."]);
    has(&said(&place, &["history", "--utc", "--zone", "Europe/Paris"], 2), &["cannot be used with"]);
    let seconds = |text: &str| text.parse::<jiff::civil::DateTime>().unwrap();
    let apart = seconds(&first(&shown)).duration_since(seconds(&first(&utc)));
    assert_eq!(apart.as_hours(), 9, "{shown}{utc}");
    // A zone that nobody knows is said.
    has(&said_with(&place, &["history"], &[("TZ", "Mars/Base")], 0), &["note: \"Mars/Base\"", "Times of UTC."]);

    let count = |args: &[&str]| {
        let output = place.punctual_with(&[&["history", "--json"][..], args].concat(), &tokyo);
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        let page: Value = serde_json::from_slice(&output.stdout).unwrap();
        page["totalElements"].as_u64().unwrap()
    };
    let (printed, plain) = (first(&shown), first(&utc));
    for since in
        [&printed, &format!("{printed} Asia/Tokyo"), &format!("{plain}Z"), "10m", "1h 5min ago", "today", "2020-01-01"]
    {
        assert_eq!(count(&["--since", since]), 1, "{since}");
    }
    assert_eq!(count(&["--until", &printed]), 0);
    assert_eq!(count(&["--until", "10m"]), 0);
    assert_eq!(count(&["--until", "today"]), 1, "a day is included");
    // The time alone is the last such time: that of the run, to the minute and below it.
    assert_eq!(count(&["--since", &printed[11..16]]), 1, "{printed}");
    has(&said(&place, &["history", "--since", "soon"], 2), &["use 2026-03-09 15:00:00, 2026-03-09, 15:00", "10m"]);
    has(&said(&place, &["plan", "soon"], 2), &["yesterday, today or tomorrow"]);
    said(&place, &["plan", "tomorrow"], 0);

    // A time of a schedule, by the clock that is shown or by its own.
    said(
        &place,
        &["schedule", "add", "--agent", "reporter", "--name", "early", "--times", "06:30", "--zone", "Asia/Tokyo"],
        0,
    );
    for (zone, time) in
        [("Asia/Tokyo", "2031-03-09 06:30"), ("UTC", "2031-03-08T21:30:00"), ("UTC", "2031-03-09 06:30:00")]
    {
        let text = said(&place, &["why", "early", time, "--zone", zone], 0);
        has(&text, &["not_due"]);
    }
    has(&said(&place, &["why", "early", "2031-03-09 07:30", "--utc"], 1), &["is none of its times"]);
    // Once, in the words of whoever sits here.
    for (at, env) in [("in 90d", ""), ("2031-03-09 06:30", "Asia/Tokyo"), ("06:30", "Asia/Tokyo")] {
        let args = ["schedule", "add", "--agent", "reporter", "--name", at, "--at", at, "--json"];
        let output = place.punctual_with(&args, &[("TZ", env)]);
        assert!(output.status.success(), "{at}: {}", String::from_utf8_lossy(&output.stderr));
        let made: Value = serde_json::from_slice(&output.stdout).unwrap();
        let next = made["nextExecutionAt"].as_str().unwrap();
        assert!(env.is_empty() || next.contains("T21:30:00"), "{at}: {made}");
    }
    assert!(server.stop().success());
}

#[test]
fn errors_name_options_and_the_name_that_was_meant() {
    let (place, server) = up("looks-words");
    let add =
        |more: &[&'static str]| [&["schedule", "add", "--agent", "reporter", "--cron", "@daily"][..], more].concat();
    said(&place, &add(&["--name", "morning-report"]), 0);
    for (more, option) in [
        (&["--max-attempts", "0"][..], "--max-attempts"),
        (&["--priority", "11"], "--priority"),
        (&["--catch-up-window", "x"], "--catch-up-window"),
        (&["--max-delay", "x"], "--max-delay"),
        (&["--max-concurrent", "0"], "--max-concurrent"),
        (&["--calendar", "x"], "--calendar"),
    ] {
        let text = said(&place, &add(more), 2);
        has(&text, &[option]);
        lacks(
            &text,
            &["executorPolicy", "maxAttempts", "retryBackoffMs", "catchUpWindow", "maxDelay", "maxConcurrent"],
        );
    }
    has(&said(&place, &["schedule", "edit", "morning-report", "--cron", "61 * * * *"], 2), &["error: --cron: "]);
    has(&said(&place, &["history", "--limit", "0"], 0), &["Nothing has happened"]);

    let meant = "did you mean \"morning-report\"?";
    has(&said(&place, &["schedule", "show", "morning-reprot"], 5), &[meant]);
    has(&said(&place, &["schedule", "pause", "mornin-report"], 5), &[meant]);
    has(&said(&place, &["why", "morning_report"], 5), &[meant]);
    has(&said(&place, &["trigger", "morning-reports"], 5), &[meant]);
    has(&said(&place, &["trigger", "reportr"], 5), &["did you mean \"reporter\"?"]);
    has(&said(&place, &["cancel", "reportr"], 5), &["did you mean \"reporter\"?"]);
    has(
        &said(&place, &["history", "--agent", "reportr"], 0),
        &["There is no agent \"reportr\" now; did you mean \"reporter\"?"],
    );
    has(&said(&place, &["schedule", "list", "--agent", "reportr"], 0), &["did you mean \"reporter\"?"]);
    lacks(&said(&place, &["why", "zzz-nothing-like-it"], 5), &["did you mean"]);
    assert!(server.stop().success());
}

#[test]
fn an_agent_stands_for_its_run_to_cancel() {
    let (place, server) = up("looks-cancel");
    let zone = zone_at_noon();
    has(&said(&place, &["cancel", "slow"], 5), &["agent \"slow\" has no more runs today"]);
    // Nothing is in progress: the next one.
    let add = ["schedule", "add", "--name", "later", "--agent", "slow", "--every", "1h", "--zone", &zone];
    said(&place, &[&add[..], &["--overlap", "allow", "--max-concurrent", "4"]].concat(), 0);
    let next = place.json(&["schedule", "show", "later", "--json"])["nextExecutionAt"].clone();
    let cancelled = place.json(&["cancel", "slow", "--yes", "--json"]);
    assert_eq!((&cancelled["outcome"], &cancelled["scheduledAt"]), (&"cancelled".into(), &next));
    // The one that runs, before those that come.
    let running = |place: &Place| {
        let plan = place.json(&["plan", "--live", "--json", "--zone", &zone]);
        plan["future"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|run| run["execStatus"] == "RUNNING")
            .map(id_of)
            .collect::<Vec<_>>()
    };
    let first = id_of(&place.json(&["trigger", "later", "--json"]));
    place.until("it runs", |place| running(place) == [first.clone()]);
    has(&said(&place, &["cancel", "slow"], 6), &["--force stops it"]);
    // Two of them are a question.
    let second = id_of(&place.json(&["trigger", "later", "--json"]));
    place.until("both run", |place| running(place).len() == 2);
    has(&said(&place, &["cancel", "slow", "--force"], 2), &["2 runs in progress", "--all", &first, &second]);
    has(&said(&place, &["cancel", &second[28..], "--force"], 0), &[&second, "asked to stop"]);
    place.until("one is over", |place| running(place) == [first.clone()]);
    // All of them: what may not be stopped does not keep the others.
    let text = said(&place, &["cancel", "slow", "--all", "--yes"], 6);
    has(&text, &["--force stops it", "later", "is cancelled", " were cancelled"]);
    let all = place.json(&["cancel", "slow", "--all", "--force", "--json"]);
    assert_eq!(all.as_array().unwrap().len(), 1, "{all}");
    place.until("nothing runs", |place| running(place).is_empty());
    has(&said(&place, &["cancel", "slow", "--all", "--yes"], 5), &["has no more runs today"]);
    assert!(server.stop().success());
}

#[test]
fn the_plan_shows_what_comes_and_timers_what_is_paused() {
    let (place, server) = up("looks-plan");
    let zone = zone_at_noon();
    said(&place, &["schedule", "add", "--name", "often", "--agent", "slow", "--every", "10m", "--zone", &zone], 0);
    let done = id_of(&place.json(&["trigger", "reporter", "--wait", "--json"]));
    let plan = said(&place, &["plan", "--zone", &zone], 0);
    lacks(&plan, &[&done]);
    has(&plan, &["NOW", "1 run of this day is over, ", " more come later: --all shows them."]);
    assert_eq!(plan.lines().filter(|line| line.contains(" planned ")).count(), 20, "{plan}");
    let all = said(&place, &["plan", "--all", "--zone", &zone], 0);
    has(&all, &[&done, "succeeded"]);
    assert!(60 < all.lines().filter(|line| line.contains(" planned ")).count(), "{all}");
    lacks(&all, &["--all shows"]);
    assert_eq!(
        said(&place, &["plan", "--limit", "3", "--zone", &zone], 0)
            .lines()
            .filter(|line| line.contains(" planned "))
            .count(),
        3
    );
    assert!(
        60 < place.json(&["plan", "--json", "--zone", &zone])["future"].as_array().unwrap().len(),
        "programs get all"
    );

    said(&place, &["schedule", "add", "--name", "other", "--agent", "broken", "--cron", "@yearly"], 0);
    said(&place, &["schedule", "pause", "often", "--reason", "a rest"], 0);
    let timers = said(&place, &["timers"], 0);
    let row = |name: &str| timers.lines().find(|line| line.contains(name)).unwrap_or_else(|| panic!("{timers}"));
    has(row("often"), &["paused: a rest"]);
    has(row("other"), &["active"]);
    let timers = place.json(&["timers", "--json"]);
    assert_eq!((&timers[1]["scheduleName"], &timers[1]["state"]), (&"often".into(), &"paused".into()), "{timers}");
    assert_eq!(timers[1]["pause"]["reason"], "a rest");
    assert!(server.stop().success());
}

#[test]
fn a_run_is_shown_on_one_page() {
    let (place, server) = up("looks-show");
    let args =
        ["trigger", "reporter", "--prompt", "Look at it\nagain", "--inputs", "{\"depth\": 2}", "--wait", "--json"];
    let run = id_of(&place.json(&args));
    let page = said(&place, &["show", &run], 0);
    has(
        &page,
        &[
            "run        ",
            &run,
            "state      succeeded",
            "agent      reporter",
            "scheduled  ",
            " UTC",
            "started    ",
            "ended      ",
        ],
    );
    has(
        &page,
        &[
            "tries      1 of ",
            "TRY",
            "everything that happened",
            "why\n",
            "its work was done",
            "token operator@",
            " asked for it",
        ],
    );
    has(&page, &["prompt\n  Look at it\n  again", "inputs\n", "\"depth\": 2"]);
    place.until("what it printed is kept", |place| said(place, &["show", "reporter"], 0).contains("output\n  {"));
    let page = place.json(&["show", &run, "--json"]);
    assert_eq!(
        (&page["execution"]["executionId"], &page["past"][0]["executionId"]),
        (&run.clone().into(), &run.clone().into())
    );
    assert_eq!((&page["execution"]["inputs"]["depth"], &page["why"]["executionId"]), (&2.into(), &run.clone().into()));
    assert!(page["output"].as_str().unwrap().contains("everything that happened"), "{page}");

    let slow = id_of(&place.json(&["trigger", "slow", "--json"]));
    place.until("it runs", |place| place.json(&["show", &slow, "--json"])["execution"]["execStatus"] == "RUNNING");
    has(&said(&place, &["show", "slow"], 0), &[&slow, "state      running", "node       ", "lease until"]);
    has(&place.screen(80, &["show", "broken-nothing", "--help"], &[]), &["everything about a run"]);
    has(&said(&place, &["show", "01a1e55f-1449-71ab-bba6-2fd20e7c946f"], 5), &["does not exist"]);
    said(
        &place,
        &[
            "schedule",
            "add",
            "--agent",
            "reporter",
            "--name",
            "later",
            "--times",
            "09:00,21:00",
            "--zone",
            &zone_at_noon(),
        ],
        0,
    );
    let plan = place.json(&["plan", "--schedule", "later", "--json", "--zone", &zone_at_noon()]);
    has(&said(&place, &["show", &id_of(&plan["future"][0])], 0), &["state      planned, due in "]);
    server.kill();
    // Without a server, the database says the same.
    has(&said(&place, &["show", &run[28..]], 0), &["state      succeeded", "Look at it"]);
}

/// What a shell gets when somebody types these words and asks for the last one to be completed.
fn completed(place: &Place, words: &[&str], env: &[(&str, &str)]) -> Vec<String> {
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_punctual")).parent().unwrap();
    let script = format!(
        "PATH={}:$PATH; source <(punctual completions bash); COMP_WORDS=({}); COMP_CWORD={}; COMP_TYPE=9; \
         _clap_complete_punctual punctual \"${{COMP_WORDS[COMP_CWORD]}}\" x; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        program.display(),
        words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" "),
        words.len() - 1,
    );
    let mut shell = std::process::Command::new("bash");
    shell.args(["-c", &script]).current_dir(place.path("")).env_remove("PUNCTUAL_TOKEN").env_remove("PUNCTUAL_URL");
    let output = shell.env_remove("PUNCTUAL_DATABASE").envs(env.iter().copied()).output().unwrap();
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().filter(|line| !line.is_empty()).map(|line| line.trim().to_owned()).collect()
}

#[test]
fn a_shell_completes_names_and_asks_no_stranger() {
    let (place, server) = up("looks-completions");
    let add =
        |name: &str| said(&place, &["schedule", "add", "--agent", "reporter", "--name", name, "--cron", "@yearly"], 0);
    for name in ["morning-report", "morning-mail", "evening", "mor$(touch stolen)"] {
        add(name);
    }
    let run = id_of(&place.json(&["trigger", "reporter", "--wait", "--json"]));
    assert_eq!(completed(&place, &["punctual", "why", "mor"], &[]), ["morning-mail", "morning-report"]);
    assert_eq!(completed(&place, &["punctual", "schedule", "pause", "ev"], &[]), ["evening"]);
    assert_eq!(completed(&place, &["punctual", "trigger", "re"], &[]), ["reporter"]);
    assert_eq!(completed(&place, &["punctual", "history", "--agent", "br"], &[]), ["broken"]);
    assert_eq!(completed(&place, &["punctual", "show", &run[28..33]], &[]), [&run[28..]]);
    assert_eq!(completed(&place, &["punctual", "hist"], &[]), ["history"]);
    assert!(completed(&place, &["punctual", "schedule", "show", "zzz"], &[]).is_empty());
    // A server that stands on the line is somebody else's until the line is sent.
    let stranger = StandIn::new(|_| None);
    let token = [("PUNCTUAL_TOKEN", "pt_a_secret_that_is_long_enough_for_everybody")];
    assert!(completed(&place, &["punctual", "why", "--server", &stranger.url, "mor"], &token).is_empty());
    assert!(stranger.asked("GET").is_empty(), "nothing is sent while somebody types");
    assert!(server.stop().success());
    // Without a server, and without anything at all: what there is, and no word.
    assert_eq!(completed(&place, &["punctual", "why", "mor"], &[]), ["morning-mail", "morning-report"]);
    let empty = Place::new("looks-completions-empty", "this is no configuration");
    assert!(completed(&empty, &["punctual", "why", "mor"], &[]).is_empty());
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        has(&said(&empty, &["completions", shell], 0), &["punctual", "PUNCTUAL_COMPLETE"]);
    }
}

#[test]
fn a_pause_ends_by_itself_on_the_server() {
    let (place, server) = up("looks-pause");
    a_pause_ends(&place);
    assert!(server.stop().success());
    place.verify();
}

#[test]
fn a_pause_ends_by_itself_on_the_server_with_postgres() {
    let postgres = Postgres::start(Durability::Off).expect("PostgreSQL starts");
    let place = Place::new("looks-pause-postgres", CONFIG).with_database(&postgres.address());
    let server = place.up();
    place.until("the server has joined", |place| place.read("log").contains("has joined"));
    a_pause_ends(&place);
    assert!(server.stop().success());
    place.verify();
}

fn a_pause_ends(place: &Place) {
    for name in ["one", "two", "three"] {
        said(place, &["schedule", "add", "--agent", "reporter", "--name", name, "--cron", "*/5 * * * *"], 0);
    }
    let text = said(place, &["pause", "one", "--for", "2s", "--reason", "a rest"], 0);
    has(&text, &["one is paused until ", ": a rest, and runs next at "]);
    // Nobody waits for it here: the server ends it.
    place.until("the pause has ended", |place| place.json(&["schedule", "show", "one", "--json"])["state"] == "active");
    has(&place.read("log"), &["the pause of schedule one has ended"]);
    let until =
        place.json(&["schedule", "pause", "one", "--until", "2031-03-09 06:30", "--json"])["pause"]["until"].clone();
    assert_eq!(until, "2031-03-09T06:30:00Z");
    has(&said(place, &["timers"], 0), &["paused until 2031-03-09 06:30:00"]);
    has(&said(place, &["why", "one"], 0), &["until 2031-03-09 06:30:00"]);
    for (args, problem) in [
        (&["pause", "one", "--for", "0s"][..], "use a duration"),
        (&["pause", "one", "--for", "soon"], "use a duration"),
        (&["pause", "one", "--for", "20000d"], "--for: "),
        (&["pause", "one", "--until", "2020-01-01"], "--until: "),
        (&["pause", "one", "--for", "1h", "--until", "18:00"], "cannot be used with"),
        (&["pause"], "required"),
        (&["pause", "one", "--all"], "cannot be used with"),
    ] {
        has(&said(place, args, 2), &[problem]);
    }
    // All of them, and back: what is paused already keeps its end.
    let all = place.json(&["pause", "--all", "--for", "1h", "--json"]);
    assert_eq!(all.as_array().unwrap().len(), 2, "{all}");
    has(&said(place, &["pause", "--all"], 0), &["There is no schedule to pause"]);
    has(&said(place, &["resume", "--all"], 0), &["one is active", "two is active", "three is active"]);
}

//! What the file may say, and what is said when it may not.

use std::collections::BTreeSet;
use std::path::Path;

use proptest::prelude::*;
use punctual_agents::process::Stdin;
use punctual_core::schedule::{At, MaxDelay, Trigger};
use punctual_core::time::Zones;
use punctual_core::time::zone::bundled_version;
use punctual_core::{Elapsed, ScheduleId};
use serde_json::json;

use punctual_engine::roster::Risk;

use super::agent::{ProcessConfig, RunnerConfig};
use super::engine::OTHER_NAMES;
use super::keys::{
    AGENT, AGENT_LIMITS, CALENDAR, CONDUCTOR, ENGINE, Key, Keys, LIMITS, PRICE, PRICES, RETENTION, SCHEDULE, SECRET,
    SERVER, TOP,
};
use super::schedule::FileSchedule;
use super::trigger::FileTrigger;
use super::{Config, ConfigError};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// An agent for schedules to name.
const AGENTS: &str = "[agents.reporter]\nrunner = \"process\"\ncommand = [\"true\"]\n";

thread_local! {
    // Opening a zone takes longer than reading a file.
    static ZONES: Zones = Zones::bundled();
}

fn parse_in(text: &str, env: &[(&str, &str)]) -> Result<Config, ConfigError> {
    let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    ZONES.with(|zones| Config::parse(text, "punctual.toml", Path::new("/etc/punctual"), zones, env))
}

fn parse(text: &str) -> Config {
    parse_in(text, &[]).unwrap_or_else(|error| panic!("{error}"))
}

/// Reads one schedule, its lines given after those of an agent.
fn schedule(lines: &str) -> FileSchedule {
    parse(&with_schedule(lines)).schedules.remove(0)
}

fn with_schedule(lines: &str) -> String {
    format!("{AGENTS}[[schedules]]\nname = \"x\"\nagent = \"reporter\"\n{lines}\n")
}

fn told(error: &ConfigError) -> Vec<String> {
    error.to_string().lines().skip(1).map(str::to_owned).collect()
}

#[test]
fn nothing_is_a_configuration_of_defaults() {
    let config = parse("");
    assert_eq!(config.default_timezone, "UTC");
    assert_eq!(config.tzdb.to_string(), "newest");
    assert_eq!(
        json!(config.engine.settings()),
        json!({"lease_duration_seconds": 30, "executor_pool_size": 8, "executor_poll_interval_seconds": 5, "enabled": true, "max_running": null, "drain_seconds": 30, "min_interval_seconds": 300, "approval_wait_seconds": 86400, "runs_per_day_warning": 500})
    );
    assert!(config.agents.is_empty() && config.calendars.is_empty() && config.schedules.is_empty());
}

#[test]
fn an_agent_is_read_with_its_folder_beside_the_file() {
    let config = parse(
        r#"
        [agents.reporter]
        runner = "process"
        command = ["./report.sh", "--all"]
        folder = "scripts"
        env = { LEVEL = "2" }
        env_pass = ["HOME", "API_KEY", "HOME"]
        timeout = "90s"
        grace = "5s"
        maxConcurrent = 2
        risk = "write"
        stdin = "prompt"
        model = "m-1"
        limits = { cpu = "1m", memory = "1GiB", open-files = 100, processes = 10, file_size = "5MB" }
        "#,
    );
    let agent = &config.agents["reporter"];
    assert_eq!((agent.timeout, agent.risk), (Elapsed::from_seconds(90), Risk::Write));
    assert_eq!(agent.max_concurrent.map(u32::from), Some(2));
    let RunnerConfig::Process(ProcessConfig { command, folder, env, env_pass, secrets, stdin, model, grace, limits }) =
        &agent.runner;
    assert_eq!(command, &["./report.sh", "--all"]);
    assert_eq!(folder, Path::new("/etc/punctual/scripts"));
    assert_eq!((env["LEVEL"].as_str(), env_pass.as_slice()), ("2", &["HOME".to_owned(), "API_KEY".to_owned()][..]));
    assert!(secrets.is_empty());
    assert_eq!((*stdin, model.as_deref()), (Stdin::Prompt, Some("m-1")));
    assert_eq!(*grace, Elapsed::from_seconds(5));
    let expected = json!({"cpu": "1m", "memory": "1GiB", "open_files": 100, "processes": 10, "file_size": "5MB"});
    assert_eq!(limits.settings(), expected);
    let RunnerConfig::Process(plain) = &parse(AGENTS).agents["reporter"].runner;
    assert_eq!(plain.folder, Path::new("/etc/punctual"));
    assert_eq!((plain.stdin, &plain.model), (Stdin::Context, &None));
}

#[test]
fn every_way_to_say_when_is_read() {
    for (lines, shown) in [
        ("cron = \"0 9 * * MON-FRI\"", json!({"cron": ["0 9 * * MON-FRI"], "dialect": "unix"})),
        ("cron = [\"@daily\", \"0 0 12 * * *;asia/tokyo\"]", json!({"cron": ["@daily", "0 0 12 * * *;Asia/Tokyo"]})),
        ("cron = \"0 0 12 ? * 2\"\ndialect = \"quartz\"", json!({"cron": ["0 0 12 ? * 2"], "dialect": "quartz"})),
        ("times = [\"17:30\", 09:00:00]", json!({"times": ["09:00", "17:30"]})),
        ("every = \"1s\"", json!({"every": "1s"})),
        ("after = \"3d\"\nimmediate = false", json!({"after": "3d"})),
        ("immediate = true", json!({"immediate": true})),
        ("at = \"2026-07-01T09:00:00\"\ntimezone = \"Europe/Paris\"", json!({"at": "2026-07-01T07:00:00Z"})),
        ("at = 2026-07-01T09:00:00\ntimezone = \"Europe/Paris\"", json!({"at": "2026-07-01T07:00:00Z"})),
        ("at = 2026-07-01T09:00:00+01:00", json!({"at": "2026-07-01T08:00:00Z"})),
        // Its time is over, but the file outlives it.
        ("at = 1999-07-01T09:00:00Z", json!({"at": "1999-07-01T09:00:00Z"})),
        ("cron = \"0 0 12 1 1 ? 2999\"", json!({"cron": ["0 0 12 1 1 ? 2999"], "dialect": "spring"})),
        ("cron = \"0 0 12 1 1 ? 1999\"", json!({"cron": ["0 0 12 1 1 ? 1999"], "dialect": "spring"})),
    ] {
        let mut settings = schedule(lines).trigger.settings();
        settings.retain(|_, value| !value.is_null() && *value != false);
        assert_eq!(json!(settings), shown, "{lines}");
    }
    let at = schedule("at = \"2026-07-01T09:00:00Z\"").trigger;
    assert_eq!(at, FileTrigger::Fixed(Trigger::At(At("2026-07-01T09:00:00Z".parse().unwrap()))));
}

#[test]
fn a_schedule_takes_from_its_agent_and_the_top_what_it_does_not_say() {
    let config = parse(
        r#"
        default_timezone = "europe/paris"
        [agents.a]
        runner = "process"
        command = ["true"]
        timeout = "5s"
        max_concurrent = 3
        [calendars.office]
        weekly = { mon = ["09:00-17:00"] }
        closed = [2026-12-28]
        [[schedules]]
        name = "plain"
        agent = "a"
        every = "1m"
        start_at = 2026-01-01T00:00:00
        [[schedules]]
        name = "own"
        agent = "a"
        every = "1m"
        timezone = "UTC"
        timeout = "7s"
        maxConcurrent = 1
        max_delay = "2h"
        project = "atlas"
        calendar = "office"
        [[schedules]]
        name = "own"
        agent = "a"
        every = "1m"
        max_delay = "none"
        inputs = { when = 2026-01-01, deep = [{ a = 0x10, b = 1.5, c = false }] }
        "#,
    );
    let [plain, own, other] = &config.schedules[..] else { panic!("{config:?}") };
    assert_eq!((plain.zone.name(), own.zone.name()), ("Europe/Paris", "UTC"));
    assert_eq!(config.calendars["office"].zone(), "Europe/Paris");
    let timeouts = [plain, own].map(|schedule| schedule.policy.timeout);
    assert_eq!(timeouts, [5, 7].map(Elapsed::from_seconds));
    assert_eq!([plain, own].map(|schedule| schedule.policy.max_concurrent.get()), [3, 1]);
    assert_eq!(plain.bounds.start_at(), Some("2025-12-31T23:00:00Z".parse().unwrap()));
    let delays = [plain, own, other].map(|schedule| schedule.policy.max_delay);
    assert_eq!(delays, [MaxDelay::Day, MaxDelay::Duration(Elapsed::from_seconds(7_200)), MaxDelay::None]);
    let inputs = other.work.inputs();
    assert_eq!(json!(inputs), json!({"when": "2026-01-01", "deep": [{"a": 16, "b": 1.5, "c": false}]}));
}

#[test]
fn what_is_wrong_is_told_with_its_place_and_its_remedy() {
    let mut around: fn(&str) -> String = str::to_owned;
    let mut cases = 0;
    for block in include_str!("refusals.txt").split("\n\n") {
        match block.trim_end() {
            comment if comment.starts_with("# ") => {}
            "## the file" => around = str::to_owned,
            "## an agent" => around = |lines| format!("{AGENTS}{lines}"),
            "## a schedule" => around = with_schedule,
            case => {
                let (lines, expected) = case.split_once("=> ").expect(case);
                let error = parse_in(&around(lines.trim_end()), &[]).expect_err(case);
                assert_eq!(
                    told(&error),
                    [format!("punctual.toml:{}", expected.replace("{tzdata}", bundled_version()))],
                    "{lines}"
                );
                cases += 1;
            }
        }
    }
    assert!(50 < cases, "{cases} cases");
}

#[test]
fn all_problems_are_told_at_once_in_the_order_of_the_file() {
    let text =
        "tzbd = 1\n[agents.a]\nrunner = \"process\"\n[[schedules]]\nagent = \"b\"\ncron = \"x\"\n[engine]\nx = 1\n";
    let error = parse_in(text, &[("PUNCTUAL_ENGINE__Y", "1")]).unwrap_err();
    let places: Vec<String> = told(&error).iter().map(|line| line.split(": ").next().unwrap().to_owned()).collect();
    let file = |place: &str| format!("punctual.toml:{place}");
    let expected = ["1:1", "2:1", "4:1", "5:9", "6:10", "8:1"].map(file);
    assert_eq!(places, [&expected[..], &["PUNCTUAL_ENGINE__Y".to_owned()]].concat(), "{error}");
    assert!(error.to_string().starts_with("punctual.toml has 7 problems:\n"), "{error}");
    let many = (0..80).map(|n| format!("x{n} = 1\n")).collect::<String>();
    assert!(parse_in(&many, &[]).unwrap_err().to_string().ends_with("\nand 30 more"));
}

#[test]
fn the_environment_overrides_single_settings_and_ignores_what_is_none() {
    let file = "default_timezone = \"Asia/Tokyo\"\n[engine]\nlease_duration_seconds = 60\n";
    let env = [
        ("PUNCTUAL_ENGINE__LEASE_DURATION_SECONDS", "90"),
        ("PUNCTUAL_ENGINE__MAX_RUNNING", "7"),
        ("PUNCTUAL_DEFAULT_TIMEZONE", "Europe/Paris"),
        ("PUNCTUAL_TZDB", "bundled"),
        ("PUNCTUAL_TOKEN", "x"),
        ("PUNCTUAL_URL", "x"),
        ("PUNCTUAL_RUN_ID", "x"),
        ("PUNCTUAL_RUN__X", "x"),
        ("ENGINE__LEASE_DURATION_SECONDS", "x"),
    ];
    let config = parse_in(file, &env).unwrap();
    assert_eq!(config.engine.lease_duration_seconds, 90);
    assert_eq!(config.engine.max_running.map(u32::from), Some(7));
    assert_eq!((config.default_timezone.as_str(), config.tzdb.to_string().as_str()), ("Europe/Paris", "bundled"));
    for (variable, value, expected) in [
        ("PUNCTUAL_ENGINE__LEASE", "1", "\"LEASE\" is no setting; did you mean LEASE_DURATION_SECONDS?"),
        ("PUNCTUAL_ENGIN__LEASE", "1", "\"ENGIN\" is no setting; did you mean ENGINE?"),
        ("PUNCTUAL_AGENTS__X", "1", "[agents] cannot be set by a variable; write it into the file"),
        (
            "PUNCTUAL_ENGINE__DRAIN_SECONDS",
            "5s",
            "engine.drain_seconds: this is not a whole number; use 0 to 86400, without quotes",
        ),
        ("PUNCTUAL_ENGINE__DRAIN_SECONDS", "-1", "engine.drain_seconds: -1 is out of range; use 0 to 86400"),
        (
            "PUNCTUAL_DEFAULT_TIMEZONE",
            "Mars",
            "default_timezone: \"Mars\" is not an IANA time zone of tzdata {tzdata}; use a name like \"Europe/Paris\" or \"UTC\"",
        ),
    ] {
        let error = parse_in(file, &[(variable, value)]).expect_err(variable);
        assert_eq!(told(&error), [format!("{variable}: {}", expected.replace("{tzdata}", bundled_version()))]);
    }
}

#[test]
fn a_printed_configuration_reads_back_the_same() {
    let full = r#"
        default_timezone = "Europe/Paris"
        tzdb = "bundled"
        engine = { max_running = 5 }
        limits = { projects = { "a b" = 3 } }
        prices = { version = "1", models = { "m-1" = { prompt = 3, completion = 15.5 } } }
        [agents.'odd "name"']
        runner = "process"
        command = ["sh", "-c", "echo \"\\ \u007f\t é\""]
        env = { A = "line\nline" }
        env_pass = ["HOME"]
        stdin = "prompt"
        model = "m-1"
        secrets = { API_KEY = { env = "KEY" }, TOKEN = { file = "/run/token" } }
        limits = { memory = "1GiB" }
        [calendars.office]
        weekly = { mon = ["09:00-17:00"] }
        open = [{ date = 2026-12-24, windows = ["09:00-12:00"] }]
        [[schedules]]
        name = "one"
        agent = 'odd "name"'
        project = "p"
        cron = ["0 9 * * *", "0 0 9 * * *;Asia/Tokyo"]
        calendar = "office"
        inputs = { a = [1, 2.5, "x", { "b c" = true, d = {} }], when = 2026-01-01T00:00:00Z, big = 1e300 }
        enabled = false
        max_delay = "3h"
        max_runs = 18446744073709551615
        [[schedules]]
        name = "two"
        agent = 'odd "name"'
        at = 2026-01-01T00:00:00
        end_at = 2026-02-01T00:00:00
    "#;
    let example = std::fs::read_to_string(format!("{ROOT}/examples/punctual.toml")).unwrap();
    for text in ["", full, &example] {
        let config = parse(text);
        let printed = config.to_toml();
        assert_eq!(parse(&printed), config, "{printed}");
    }
}

#[test]
fn what_is_printed_has_every_key() {
    let config = parse(&format!("{}[calendars.c]\n", with_schedule("every = \"1m\"")));
    let json = config.to_json();
    let check = |value: &serde_json::Value, keys: &Keys| {
        let shown: BTreeSet<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
        let is_engine = keys.header == ENGINE.header;
        let names = keys.keys.iter().map(|key| key.name);
        let known: BTreeSet<&str> = names.filter(|name| !is_engine || !OTHER_NAMES.contains(name)).collect();
        assert_eq!(shown, known, "{}", keys.header);
    };
    check(&json, &TOP);
    check(&json["engine"], &ENGINE);
    check(&json["retention"], &RETENTION);
    check(&json["server"], &SERVER);
    check(&json["limits"], &LIMITS);
    check(&json["prices"], &PRICES);
    check(&json["agents"]["reporter"], &AGENT);
    check(&json["agents"]["reporter"]["limits"], &AGENT_LIMITS);
    check(&json["calendars"]["c"], &CALENDAR);
    check(&json["schedules"][0], &SCHEDULE);
}

#[test]
fn the_documentation_lists_every_key() {
    let documentation = std::fs::read_to_string(format!("{ROOT}/docs/configuration.md")).unwrap_or_default();
    for keys in [
        TOP,
        ENGINE,
        RETENTION,
        SERVER,
        LIMITS,
        PRICES,
        PRICE,
        CONDUCTOR,
        AGENT,
        AGENT_LIMITS,
        SECRET,
        CALENDAR,
        SCHEDULE,
    ] {
        let row =
            |Key { name, takes, default, meaning }: &Key| format!("| `{name}` | {takes} | {default} | {meaning} |\n");
        let rows: String = keys.keys.iter().map(row).collect();
        let table = format!("| Key | Takes | Default | Meaning |\n| --- | --- | --- | --- |\n{rows}");
        assert!(documentation.contains(&table), "docs/configuration.md lacks, for {}:\n{table}", keys.header);
    }
}

#[test]
fn the_example_is_right_and_its_defaults_are_those_documented() {
    let example = std::fs::read_to_string(format!("{ROOT}/examples/punctual.toml")).unwrap();
    let config = parse(&example);
    assert_eq!((config.agents.len(), config.schedules.len()), (3, 3));
    // A default in the table is a value that changes nothing.
    let plain = parse(&with_schedule("immediate = true"));
    for (keys, place) in
        [(ENGINE, "[engine]"), (RETENTION, "[retention]"), (SERVER, "[server]"), (AGENT, AGENTS), (SCHEDULE, "")]
    {
        for key in keys.keys {
            let Some(value) = key.default.strip_prefix('`').and_then(|value| value.strip_suffix('`')) else { continue };
            if value == "default_timezone" || key.name == "immediate" {
                continue;
            }
            let line = format!("{} = {value}\n", key.name);
            let text = match place {
                "[engine]" | "[retention]" | "[server]" => {
                    format!("{place}\n{line}{}", with_schedule("immediate = true"))
                }
                "" => with_schedule(&format!("immediate = true\n{line}")),
                agents => with_schedule("immediate = true").replace(agents, &format!("{agents}{line}")),
            };
            assert_eq!(parse(&text), plain, "{line}");
        }
    }
}

fn value() -> impl Strategy<Value = &'static str> {
    let values = [
        "1",
        "-1",
        "99999999999999999999",
        "1.5",
        "inf",
        "true",
        "\"x\"",
        "\"reporter\"",
        "\"process\"",
        "\"1h\"",
        "\"0s\"",
        "\"@daily\"",
        "\"* * * * * *;UTC\"",
        "\"0 0 30 2 *\"",
        "[\"09:00\"]",
        "[]",
        "[1, \"x\", {}]",
        "{}",
        "{ mon = [\"9\"] }",
        "{ a = { b = 1 } }",
        "2026-01-01",
        "2026-01-01T00:00:00",
        "9999-12-30T23:59:59Z",
        "09:00:00",
        "\"\\u0000é\"",
        "'''\n'''",
    ];
    prop::sample::select(values.to_vec())
}

/// Pieces of which files are made, right and wrong.
fn piece() -> impl Strategy<Value = String> {
    let keys: Vec<&str> =
        [TOP, ENGINE, RETENTION, SERVER, LIMITS, PRICES, PRICE, AGENT, AGENT_LIMITS, SECRET, CALENDAR, SCHEDULE]
            .iter()
            .flat_map(|keys| keys.keys.iter().map(|key| key.name))
            .collect();
    let headers = [
        "[engine]",
        "[retention]",
        "[server]",
        "[agents.reporter]",
        "[agents.x]",
        "[calendars.c]",
        "[[schedules]]",
        "[limits.projects]",
        AGENTS,
    ];
    prop_oneof![
        5 => (prop::sample::select(keys), value()).prop_map(|(key, value)| format!("{key} = {value}\n")),
        3 => prop::sample::select(headers.to_vec()).prop_map(|header| format!("{header}\n")),
        1 => Just("name = \"x\"\nagent = \"reporter\"\n".to_owned()),
        1 => ".{0,8}".prop_map(|text| format!("{text}\n")),
    ]
}

/// What was just stored needs no edit.
fn check_sync(config: &Config) -> Result<(), TestCaseError> {
    let now = "2026-11-16T10:00:00Z".parse().unwrap();
    for schedule in &config.schedules {
        let stored = schedule.to_schedule(ScheduleId(Default::default()), now, None);
        prop_assert_eq!(schedule.edit_of(&stored, now), None);
    }
    Ok(())
}

proptest! {
    #[test]
    fn no_text_is_fatal(text in any::<String>()) {
        drop(parse_in(&text, &[]));
    }

    #[test]
    fn settings_that_are_right_print_the_same(lines in prop::collection::btree_map(0..SCHEDULE.keys.len(), value(), 0..4)) {
        let is_own = |key: &str| !["name", "agent", "every"].contains(&key);
        let lines = lines.into_iter().map(|(key, value)| (SCHEDULE.keys[key].name, value));
        let lines: String = lines.filter(|(key, _)| is_own(key)).map(|(key, value)| format!("\n{key} = {value}")).collect();
        if let Ok(config) = parse_in(&with_schedule(&format!("every = \"1m\"{lines}")), &[]) {
            prop_assert_eq!(&parse(&config.to_toml()), &config);
            check_sync(&config)?;
        }
    }

    #[test]
    fn no_file_is_fatal_and_what_is_read_prints_the_same(pieces in prop::collection::vec(piece(), 0..12), number in "[-0-9a-z]{0,25}") {
        let text: String = pieces.concat();
        if let Ok(config) = parse_in(&text, &[("PUNCTUAL_ENGINE__DRAIN_SECONDS", &number)]) {
            prop_assert_eq!(parse(&config.to_toml()), config);
        }
        if let Ok(config) = parse_in(&text, &[]) {
            prop_assert_eq!(&parse(&config.to_toml()), &config);
            check_sync(&config)?;
        }
    }
}

#[test]
fn the_names_of_the_executions_design_are_read() {
    let theirs = parse(
        "[engine]\nexecutor_max_pool_size = 3\nexecutor_poll_interval_seconds = 2\npast_execution_ttl_days = 30\n\
         future_execution_ttl_hours = 72\ndefault_timezone = \"Asia/Tokyo\"\nenabled = true\n\
         planner_interval_seconds = 60\nlease_heartbeat_seconds = 10\n",
    );
    let ours = parse(
        "default_timezone = \"Asia/Tokyo\"\n[engine]\nexecutor_pool_size = 3\nexecutor_poll_interval_seconds = 2\n\
         [retention]\nhistory = \"30d\"\n",
    );
    assert_eq!(
        theirs.engine.without_meaning,
        ["planner_interval_seconds", "lease_heartbeat_seconds", "future_execution_ttl_hours"]
    );
    assert_eq!(theirs.to_json(), ours.to_json());
    // A variable goes before the file, under either name.
    let file = "[engine]\nexecutor_max_pool_size = 3\n";
    let config = parse_in(file, &[("PUNCTUAL_ENGINE__EXECUTOR_POOL_SIZE", "5")]).unwrap();
    assert_eq!(config.engine.executor_pool_size, 5);
}

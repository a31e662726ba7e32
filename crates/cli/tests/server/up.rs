//! The real binary: it runs, records, stops cleanly, and says what is wrong.

use crate::support::{Place, is_alive, rest};

const AGENT: &str = r#"
echo "$PUNCTUAL_RUN_ID $PUNCTUAL_RUN_ATTEMPT" >> effects
case "$1" in
  quick) echo '{"summary": "done"}' ;;
  slow) echo $$ > pid; sleep 2; echo done >> finished ;;
  stubborn) trap '' TERM; echo $$ > pid; while :; do sleep 0.1; done ;;
  flaky) [ "$PUNCTUAL_RUN_ATTEMPT" -gt 1 ] || exit 3 ;;
esac
"#;

fn agent(name: &str) -> String {
    format!("[agents.{name}]\nrunner = \"process\"\ncommand = [\"sh\", \"agent.sh\", \"{name}\"]\ngrace = \"1s\"\n")
}

fn place(test: &str, config: &str) -> Place {
    let place = Place::new(test, config);
    place.write("agent.sh", AGENT);
    place
}

#[test]
fn a_schedule_of_the_file_runs_and_is_recorded() {
    let config = agent("quick") + "[[schedules]]\nname = \"now\"\nagent = \"quick\"\nimmediate = true\n";
    let place = place("runs", &config);
    let server = place.up();
    place.until("the run is recorded", |place| !place.effects().is_empty() && has_result(place, "succeeded"));
    assert!(server.stop().success());
    let history = place.history();
    let attempt = &history[0]["attempt"];
    assert_eq!(attempt["report"]["summary"], "done");
    assert_eq!(history[0]["schedule_name"], "now");
    place.verify();
    // Another start finds the same schedule, and nothing to do for it.
    let server = place.up();
    place.until("it is up again", |place| place.read("log").matches("has joined").count() == 2);
    assert!(server.stop().success());
    assert_eq!(place.effects().len(), 1);
}

#[test]
fn a_node_is_called_as_its_machine_is() {
    let place = place("name", &agent("quick"));
    let server = place.up();
    place.until("it is up", |place| place.read("log").contains("has joined"));
    let machine = std::process::Command::new("uname").arg("-n").output().unwrap().stdout;
    assert_eq!(place.json(&["nodes", "--json"])[0]["name"], String::from_utf8(machine).unwrap().trim());
    assert!(server.stop().success());
}

#[test]
fn a_one_shot_that_is_disabled_is_kept_and_runs_when_it_is_enabled() {
    let config = |enabled| {
        agent("quick")
            + &format!("[[schedules]]\nname = \"once\"\nagent = \"quick\"\nimmediate = true\nenabled = {enabled}\n")
    };
    let place = place("disabled", &config(false));
    let server = place.up();
    place.until("it is up", |place| place.read("log").contains("has joined"));
    assert!(server.stop().success());
    assert!(place.effects().is_empty());
    place.write("punctual.toml", &config(true));
    let server = place.up();
    place.until("the run is recorded", |place| has_result(place, "succeeded"));
    assert!(server.stop().success());
    place.verify();
}

#[test]
fn a_failed_run_is_tried_again() {
    let config = agent("flaky")
        + "[[schedules]]\nname = \"twice\"\nagent = \"flaky\"\nimmediate = true\nretry_delay = \"1s\"\nmax_attempts = 2\n";
    let place = place("retry", &config);
    let server = place.up();
    place.until("the second try has succeeded", |place| has_result(place, "succeeded"));
    assert!(server.stop().success());
    let results: Vec<String> = place.history().iter().map(|item| item["result"].as_str().unwrap().to_owned()).collect();
    assert_eq!(results, ["failed", "succeeded"]);
}

#[test]
fn a_stop_waits_for_what_is_at_work() {
    let config = agent("slow") + "[[schedules]]\nname = \"slow\"\nagent = \"slow\"\nimmediate = true\n";
    let place = place("drain", &config);
    let server = place.up();
    place.until("it is at work", |place| !place.read("pid").is_empty());
    assert!(server.stop().success());
    assert_eq!(place.read("finished"), "done\n");
    assert!(has_result(&place, "succeeded"));
}

#[test]
fn what_does_not_end_in_time_is_ended_and_handed_back() {
    let config = "[engine]\ndrain_seconds = 0\n".to_owned()
        + &agent("stubborn")
        + "[[schedules]]\nname = \"stubborn\"\nagent = \"stubborn\"\nimmediate = true\n";
    let place = place("stubborn", &config);
    let server = place.up();
    place.until("it is at work", |place| !place.read("pid").is_empty());
    assert!(server.stop().success());
    assert!(!is_alive(place.read("pid").trim()), "the work lives on");
    assert!(has_result(&place, "stopped"));
    let runs = place.runs();
    assert_eq!(runs[0]["state"], "planned", "it can be tried again at once");
    place.verify();
}

#[test]
fn a_paused_node_claims_nothing_until_it_is_resumed() {
    let config = agent("quick")
        + "[[schedules]]\nname = \"often\"\nagent = \"quick\"\nevery = \"1s\"\noverlap = \"allow\"\nmax_delay = \"none\"\n";
    let place = place("paused", &config);
    let server = place.up();
    place.until("it works", |place| !place.effects().is_empty());
    server.signal("USR1");
    place.until("it is paused", |place| place.read("log").contains("paused"));
    crate::support::rest_for(300);
    let before = place.effects().len();
    crate::support::rest_for(2_500);
    assert_eq!(place.effects().len(), before);
    server.signal("USR2");
    place.until("it makes up for it", |place| before + 2 <= place.effects().len());
    assert!(server.stop().success());
    assert!(place.history().iter().all(|item| item["result"] == "succeeded"), "nothing was lost by the pause");
}

#[test]
fn a_killed_server_takes_its_work_with_it() {
    let config = agent("stubborn") + "[[schedules]]\nname = \"stubborn\"\nagent = \"stubborn\"\nimmediate = true\n";
    let place = place("orphan", &config);
    let server = place.up();
    place.until("it is at work", |place| !place.read("pid").is_empty());
    server.kill();
    place.until("the work is gone", |place| !is_alive(place.read("pid").trim()));
}

#[test]
fn a_second_server_on_the_same_file_is_refused() {
    let place = place("second", &agent("quick"));
    let server = place.up();
    place.until("it is up", |place| place.read("log").contains("has joined"));
    let second = place.punctual(&["up"]);
    assert_eq!(second.status.code(), Some(2));
    let error = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(error.contains("in use by another Punctual server"), "{error}");
    assert!(server.stop().success());
}

#[test]
fn a_schedule_that_is_gone_from_the_file_is_deleted_and_a_changed_one_follows_it() {
    let hourly = |cron: &str| {
        agent("quick")
            + &format!("[[schedules]]\nname = \"hourly\"\nagent = \"quick\"\ncron = \"{cron}\"\nmax_delay = \"none\"\n")
    };
    let place = place("sync", &hourly("7 * * * *"));
    let minutes = |place: &Place| -> Vec<String> {
        let runs = place.runs();
        runs.iter()
            .filter(|run| run["is_over"] == false)
            .map(|run| run["scheduled_at"].as_str().unwrap()[14..16].to_owned())
            .collect()
    };
    let run_once = |place: &Place, times: usize| {
        let server = place.up();
        place.until("it is up", |place| place.read("log").matches("has joined").count() == times);
        assert!(server.stop().success());
    };
    run_once(&place, 1);
    assert!(minutes(&place).iter().all(|minute| minute == "07"));
    place.write("punctual.toml", &hourly("11 * * * *"));
    run_once(&place, 2);
    assert!(minutes(&place).iter().all(|minute| minute == "11"));
    place.write("punctual.toml", &agent("quick"));
    run_once(&place, 3);
    assert_eq!(minutes(&place), Vec::<String>::new());
    place.verify();
}

#[test]
fn what_is_wrong_is_said_and_nothing_is_begun() {
    let place = place("wrong", "[agents.a]\nrunner = \"process\"\n");
    let refused = place.punctual(&["up"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("command"), "{refused:?}");
    assert!(!place.path("punctual.db").exists());
    for (args, code, message) in [
        (&["plan"][..], 3, "does not exist"),
        (&["history"], 3, "does not exist"),
        (&["verify"], 2, "does not exist"),
        (&["plan", "--database", "mysql://x"], 2, "use sqlite:FILE"),
        (&["up", "--config", "nowhere.toml"], 2, "nowhere.toml"),
    ] {
        let output = place.punctual(args);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {error}");
        assert!(error.contains(message), "{args:?}: {error}");
    }
}

#[test]
fn a_damaged_database_is_told_and_not_served() {
    let place = place("damaged", &agent("quick"));
    place.write(
        "punctual.db",
        "this is no database, and it is long enough to be looked at as if it were one, is it not?",
    );
    let refused = place.punctual(&["up"]);
    assert_eq!(refused.status.code(), Some(2));
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(error.contains("damaged"), "{error}");
}

fn has_result(place: &Place, result: &str) -> bool {
    rest();
    // Before the server has joined there may be no database to look at.
    place.read("log").contains("has joined") && place.history().iter().any(|item| item["result"] == result)
}

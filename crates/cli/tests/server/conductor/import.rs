//! `punctual conductor import`: schedules of a Conductor, or of another Punctual, come over as they are.

use std::process::Output;

use serde_json::{Value, json};

use super::{On, Scene, now, on_both, schedule};
use crate::client::Client;
use crate::support::Place;

on_both![everything_that_a_schedule_has_arrives_from_another_punctual];

/// Far enough away that nothing fires.
const NEVER_SOON: &str = "0 0 0 1 1 *";

const SECRET: &str = "s3cret-of-the-key";

/// What a command printed for whoever reads it, and what it said besides.
struct Said {
    code: i32,
    out: String,
    err: String,
}

fn said(output: Output) -> Said {
    let [out, err] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    Said { code: output.status.code().unwrap(), out, err }
}

/// Imports from a server.
fn import(place: &Place, from: &str, more: &[&str]) -> Said {
    let args = [&["conductor", "import", "--from", from, "--zone", "UTC"], more].concat();
    said(place.punctual_with(&args, &[("THEIR_SECRET", SECRET)]))
}

/// The same, for programs: its exit code and its lines, by name.
fn lines(place: &Place, from: &str, more: &[&str]) -> (i32, impl Fn(&str) -> Value + use<>) {
    let Said { code, out, err } = import(place, from, &[&["--json"], more].concat());
    let told: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}{err}"));
    let line = move |name: &str| {
        let lines = told["schedules"].as_array().unwrap();
        lines.iter().find(|line| line["name"] == name).unwrap_or_else(|| panic!("{name}: {told}")).clone()
    };
    (code, line)
}

fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
}

/// The row of a schedule in a table.
fn row<'a>(table: &'a str, name: &str) -> &'a str {
    let mut rows = table.lines().map(str::trim);
    rows.find(|row| row.starts_with(&format!("{name} "))).unwrap_or_else(|| panic!("{name}: {table}"))
}

/// The next time of a cron in milliseconds, as the server here sees it.
fn next_here(scene: &Scene, query: &str) -> i64 {
    scene.api.get(&format!("/api/scheduler/nextFewSchedules?{query}&limit=1")).json(200)[0].as_i64().unwrap()
}

/// Has the Conductor tell when [`NEVER_SOON`] is.
fn tell_next(scene: &Scene) {
    scene.conductor.set_next_few(&[next_here(scene, "cronExpression=0%200%200%201%201%20*")]);
}

fn names_here(scene: &Scene) -> Vec<String> {
    let all = scene.api.get("/api/scheduler/schedules").json(200);
    all.as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect()
}

fn everything_that_a_schedule_has_arrives_from_another_punctual(on: On) {
    let scene = Scene::new("import-all", on);
    let old = Place::new(&format!("conductor-import-old-{}", on == On::Postgres), "");
    let old_server = old.up();
    let source = Client::of(&old);
    let mut full = schedule("full", "mapped", "0 30 2 * * MON-FRI");
    full["zoneId"] = json!("America/New_York");
    full["startWorkflowRequest"] = json!({
        "name": "mapped", "version": 3, "correlationId": "c-${scheduledTime}", "input": {"deep": [1, {"a": null}]},
        "taskToDomain": {"*": "blue"}, "workflowDef": {"tasks": []}, "externalInputPayloadStoragePath": "s3://x",
        "priority": 7, "createdBy": "bob", "idempotencyKey": "k-${scheduledTime}", "idempotencyStrategy": "FAIL",
    });
    full["scheduleStartTime"] = json!((now().as_second() + 86_400) * 1_000);
    full["scheduleEndTime"] = json!((now().as_second() + 400 * 86_400) * 1_000);
    full["runCatchupScheduleInstances"] = json!(true);
    full["catchUpMax"] = json!(9);
    full["overlap"] = json!("skip");
    full["followWorkflow"] = json!(true);
    full["createdBy"] = json!("ada");
    full["updatedBy"] = json!("eve");
    full["description"] = json!("what changed");
    full["tags"] = json!([{"key": "team", "type": "METADATA", "value": "finance"}]);
    let mut several = schedule("several: a/b?", "mapped", "");
    several["cronSchedules"] = json!([
        {"cronExpression": "0 0 9 * * *", "zoneId": "Asia/Tokyo"}, {"cronExpression": "0 0 9 * * *", "zoneId": "Europe/Paris"},
    ]);
    let mut resting = schedule("resting", "mapped", "0 0 12 * * *");
    (resting["paused"], resting["pausedReason"]) = (json!(true), json!("the target is down"));
    for wanted in [full, several, resting] {
        source.post("/api/scheduler/schedules", wanted).json(200);
    }
    let url = format!("{}/api", source.url());
    old.write("key", source.token().unwrap());
    let key = old.path("key");
    std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let keys = ["--key-id", "anything", "--key-secret-file", key.to_str().unwrap()];
    let (code, line) = lines(&scene.place, &url, &keys);
    let without_what_a_server_says = |mut all: Value| {
        for schedule in all.as_array_mut().unwrap() {
            for field in ["createTime", "updatedTime"] {
                schedule.as_object_mut().unwrap().remove(field);
            }
        }
        all
    };
    let there = without_what_a_server_says(source.get("/api/scheduler/schedules").json(200));
    let here = without_what_a_server_says(scene.api.get("/api/scheduler/schedules").json(200));
    assert_eq!(here, there, "also when each fires next");
    assert_eq!(code, 0);
    for name in ["full", "several: a/b?", "resting"] {
        let line = line(name);
        assert_eq!((&line["result"], &line["differs"]), (&json!("imported"), &json!(false)), "{line}");
        assert!(line["theirs"].is_i64() && line["theirs"] == line["ours"], "{line}");
    }
    assert_eq!(line("resting")["state"], "paused");
    assert_eq!(here[2]["pausedReason"], "the target is down");
    // Moved for good: what was active there is paused there, and another import changes nothing.
    let again = [&keys[..], &["--replace", "--pause-there"]].concat();
    for _ in 0..2 {
        let (code, _) = lines(&scene.place, &url, &again);
        assert_eq!(code, 0);
        let there = source.get("/api/scheduler/schedules").json(200);
        assert!(there.as_array().unwrap().iter().all(|it| it["paused"] == true), "{there}");
        let here = scene.api.get("/api/scheduler/schedules").json(200);
        let paused: Vec<bool> = here.as_array().unwrap().iter().map(|it| it["paused"] == true).collect();
        assert_eq!(paused, [false, false, true]);
    }
    assert!(old_server.stop().success());
    scene.end();
}

#[test]
fn next_times_are_compared_and_shown() {
    let scene = Scene::new("import-times", On::Sqlite);
    let noon = next_here(&scene, "cronExpression=0%200%2012%20*%20*%20*");
    let nine_in_tokyo = next_here(&scene, "cronExpression=0%200%209%20*%20*%20*&zoneId=Asia/Tokyo");
    let mut told = schedule("told", "report", "0 0 9 * * *");
    (told["zoneId"], told["nextRunTime"]) = (json!("Asia/Tokyo"), json!(nine_in_tokyo));
    let mut wrong = schedule("wrong", "report", "0 0 9 * * *");
    (wrong["zoneId"], wrong["nextRunTime"]) = (json!("Asia/Tokyo"), json!(nine_in_tokyo + 3_600_000));
    // Times that have passed, and no times: their server is asked, which reads every cron in UTC.
    let mut stale = schedule("stale", "report", "0 0 12 * * *");
    stale["nextRunTime"] = json!(1_000);
    let mut zoned = schedule("zoned", "report", "0 0 12 * * *");
    zoned["zoneId"] = json!("Asia/Tokyo");
    scene.conductor.set_schedules(json!([told, wrong, stale, zoned]));
    scene.conductor.set_next_few(&[noon]);
    let Said { code, out, err } = import(&scene.place, &scene.conductor.url(), &[]);
    assert_eq!(code, 1, "one differs: {out}{err}");
    has(&out, &["NAME", "CRON", "ZONE", "STATE", "THEIRS", "OURS", "RESULT"]);
    let shown = jiff::Timestamp::from_millisecond(nine_in_tokyo).unwrap().strftime("%Y-%m-%d %H:%M:%S").to_string();
    assert_eq!(row(&out, "told").matches(&shown).count(), 2, "{out}");
    has(row(&out, "told"), &["0 0 9 * * *", "Asia/Tokyo", "active"]);
    assert!(row(&out, "told").ends_with("imported"), "{out}");
    assert!(row(&out, "wrong").ends_with("imported, differs"), "{out}");
    assert!(row(&out, "stale").ends_with("imported"), "{out}");
    assert!(row(&out, "zoned").ends_with("imported (their preview knows no zone)"), "{out}");
    has(&err, &["4 are active here and there", "told, wrong, stale, zoned", "--replace --pause-there"]);
    let asked = scene.conductor.seen().into_iter().filter(|seen| seen.path.ends_with("/nextFewSchedules"));
    let queries: Vec<String> = asked.map(|seen| seen.query).collect();
    assert_eq!(queries.len(), 2, "who has said it is not asked: {queries:?}");
    // A cron that fires while it is compared is the same all the same; one that nobody can say anything about is no other.
    let old = Place::new("conductor-import-quick", "");
    let old_server = old.up();
    let source = Client::of(&old);
    source.post("/api/scheduler/schedules", schedule("quick", "report", "* * * * * *")).json(200);
    let token = source.token().unwrap().to_owned();
    let url = format!("{}/api", source.url());
    for _ in 0..5 {
        let args = ["conductor", "import", "--from", &url, "--key-id", "x", "--key-secret-env", "TOKEN", "--replace"];
        let said = said(scene.place.punctual_with(&args, &[("TOKEN", &token)]));
        assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    }
    assert!(old_server.stop().success());
    scene.end();
}

#[test]
fn one_that_is_refused_stops_no_other_and_is_told() {
    let scene = Scene::new("import-refused", On::Sqlite);
    tell_next(&scene);
    let mut nowhere = schedule("nowhere", "report", NEVER_SOON);
    nowhere["zoneId"] = json!("Mars/Olympus");
    let mut idle = schedule("idle", "report", NEVER_SOON);
    idle["startWorkflowRequest"] = json!(null);
    scene.conductor.set_schedules(json!([
        schedule("bad-cron", "report", "0 0 24 * * *"),
        nowhere,
        idle,
        schedule("never", "report", "0 0 0 30 2 *"),
        {"cronExpression": NEVER_SOON, "startWorkflowRequest": {"name": "report"}},
        schedule("good", "report", NEVER_SOON),
    ]));
    let reasons = [
        ("bad-cron", "hour: 24 is out of range"),
        ("nowhere", "Invalid zoneId 'Mars/Olympus'"),
        ("idle", "startWorkflowRequest is required"),
        ("never", "it never fires"),
        ("", "Schedule name is required"),
    ];
    for more in [&["--dry-run"][..], &[]] {
        let (code, line) = lines(&scene.place, &scene.conductor.url(), more);
        assert_eq!(code, 1);
        for (name, reason) in reasons {
            let line = line(name);
            assert_eq!(line["result"], "refused", "{line}");
            assert!(line["reason"].as_str().unwrap().contains(reason), "{line}");
        }
        assert_eq!(line("good")["result"], "imported");
    }
    assert_eq!(names_here(&scene), ["good"]);
    let Said { out, .. } = import(&scene.place, &scene.conductor.url(), &[]);
    has(row(&out, "bad-cron"), &["refused: Invalid cron expression '0 0 24 * * *'"]);
    scene.end();
}

#[test]
fn a_dry_run_changes_nothing_and_says_what_would_be_done() {
    let scene = Scene::new("import-dry", On::Sqlite);
    scene.save(schedule("there", "mapped", NEVER_SOON)).json(200);
    let before = scene.api.get("/api/scheduler/schedules").json(200);
    let mut told = schedule("new", "report", "0 0 9 * * *");
    told["zoneId"] = json!("Europe/Paris");
    told["nextRunTime"] = json!(next_here(&scene, "cronExpression=0%200%209%20*%20*%20*&zoneId=Europe/Paris"));
    scene.conductor.set_schedules(json!([told, schedule("there", "report", NEVER_SOON)]));
    scene.conductor.set_next_few(&[before[0]["nextRunTime"].as_i64().unwrap()]);
    let Said { code, out, err } = import(&scene.place, &scene.conductor.url(), &["--dry-run"]);
    assert_eq!(code, 0, "{out}{err}");
    assert!(row(&out, "new").ends_with("would be imported"), "{out}");
    assert!(row(&out, "there").ends_with("exists already"), "{out}");
    has(&err, &["2 would be active here and there"]);
    let Said { out, .. } = import(&scene.place, &scene.conductor.url(), &["--dry-run", "--replace"]);
    assert!(row(&out, "there").ends_with("would be replaced"), "{out}");
    assert_eq!(scene.api.get("/api/scheduler/schedules").json(200), before);
    let Said { code, err, .. } = import(&scene.place, &scene.conductor.url(), &["--dry-run", "--pause-there"]);
    assert_eq!(code, 2, "{err}");
    assert!(scene.conductor.seen().iter().all(|seen| seen.method == "GET"), "nothing was asked to change there either");
    scene.end();
}

#[test]
fn a_viewer_may_look_and_not_import() {
    let scene = Scene::new("import-viewer", On::Sqlite);
    tell_next(&scene);
    scene.conductor.set_schedules(json!([schedule("a", "report", NEVER_SOON)]));
    let made = scene.api.post("/api/tokens", json!({"name": "looker", "role": "viewer"})).json(201);
    let url = scene.conductor.url();
    let import_as_viewer = |more: &[&str]| {
        let args = [&["conductor", "import", "--from", &url], more].concat();
        said(scene.place.punctual_with(&args, &[("PUNCTUAL_TOKEN", made["secret"].as_str().unwrap())]))
    };
    assert_eq!(import_as_viewer(&["--dry-run"]).code, 0);
    let Said { code, out, err } = import_as_viewer(&["--pause-there"]);
    assert_eq!((code, out.as_str()), (4, ""), "{err}");
    has(&err, &["PUNCTUAL_TOKEN"]);
    assert_eq!((names_here(&scene).len(), &scene.conductor.schedules()[0]["paused"]), (0, &json!(null)));
    // Whoever names this server itself pauses nothing.
    let itself = format!("{}/api", scene.api.url());
    has(&import(&scene.place, &itself, &["--pause-there"]).err, &["401"]);
    let token = [("TOKEN", scene.api.token().unwrap())];
    let args = ["conductor", "import", "--from", &itself, "--key-id", "x", "--key-secret-env", "TOKEN"];
    let Said { code, err, .. } = said(scene.place.punctual_with(&args, &token));
    assert_eq!(code, 2, "{err}");
    has(&err, &["this server itself"]);
    scene.end();
}

#[test]
fn at_a_terminal_the_table_is_what_remains() {
    let scene = Scene::new("import-terminal", On::Sqlite);
    tell_next(&scene);
    let all: Vec<Value> = (0..30).map(|number| schedule(&format!("s-{number}"), "report", NEVER_SOON)).collect();
    scene.conductor.set_schedules(json!(all));
    let url = scene.conductor.url();
    let (screen, status) = scene.place.at_terminal(&["conductor", "import", "--from", &url], "");
    assert!(status.success(), "{screen}");
    has(&screen, &["RESULT", "s-29", "30 are active here and there", "and 10 more"]);
    assert_eq!(screen.matches(" imported").count(), 30, "{screen}");
    scene.end();
}

#[test]
fn what_exists_is_left_alone_unless_it_is_to_be_replaced() {
    let scene = Scene::new("import-replace", On::Sqlite);
    let mut mine = schedule("shared", "mapped", NEVER_SOON);
    mine["description"] = json!("mine");
    let mine = scene.save(mine).json(200);
    let mut other = schedule("shared", "report", NEVER_SOON);
    other["description"] = json!("theirs");
    scene.conductor.set_schedules(json!([other]));
    scene.conductor.set_next_few(&[mine["nextRunTime"].as_i64().unwrap()]);
    let Said { code, out, .. } = import(&scene.place, &scene.conductor.url(), &[]);
    assert_eq!((code, row(&out, "shared").ends_with("exists already")), (0, true), "{out}");
    assert_eq!(scene.show("shared"), mine);
    let Said { code, out, .. } = import(&scene.place, &scene.conductor.url(), &["--replace"]);
    assert_eq!((code, row(&out, "shared").ends_with("replaced")), (0, true), "{out}");
    assert_eq!((&scene.show("shared")["description"], names_here(&scene).len()), (&json!("theirs"), 1));
    // What is here under that name fires at another time than there.
    other["cronExpression"] = json!("0 0 0 2 1 *");
    scene.conductor.set_next_few(&[mine["nextRunTime"].as_i64().unwrap() + 86_400_000]);
    let Said { code, out, .. } = import(&scene.place, &scene.conductor.url(), &[]);
    assert_eq!((code, row(&out, "shared").ends_with("exists already, differs")), (1, true), "{out}");
    scene.end();
}

#[test]
fn schedules_are_paused_there_by_put_or_by_get() {
    let scene = Scene::new("import-pause", On::Sqlite);
    tell_next(&scene);
    let mut resting = schedule("resting", "report", NEVER_SOON);
    resting["paused"] = json!(true);
    for is_by_get in [false, true] {
        let name = if is_by_get { "by-get" } else { "by-put" };
        scene.conductor.set_schedules(json!([
            schedule(name, "report", NEVER_SOON),
            resting,
            schedule("bad", "report", "nonsense"),
        ]));
        if is_by_get {
            scene.conductor.pause_by_get();
        }
        let Said { code, out, err } = import(&scene.place, &scene.conductor.url(), &["--pause-there"]);
        assert_eq!((code, err.contains("fire on both")), (1, false), "the bad one is refused: {out}{err}");
        assert!(row(&out, name).ends_with("imported, paused there"), "{out}");
        let there = scene.conductor.schedules();
        assert_eq!((&there[0]["paused"], &there[2]["paused"]), (&json!(true), &json!(null)), "only what is here");
        assert_eq!((&scene.show(name)["paused"], &scene.show("resting")["paused"]), (&json!(false), &json!(true)));
    }
    let pauses = scene.conductor.seen().into_iter().filter(|seen| seen.path.ends_with("/pause"));
    let methods: Vec<String> = pauses.map(|seen| seen.method).collect();
    assert_eq!(methods, ["PUT", "PUT", "GET"], "what is paused there is left alone");
    scene.end();
}

#[test]
fn a_server_that_wants_a_key_gets_one_and_its_secret_is_never_shown() {
    let scene = Scene::new("import-keys", On::Sqlite);
    tell_next(&scene);
    scene.conductor.set_schedules(json!([schedule("a", "report", NEVER_SOON)]));
    scene.conductor.require_key("our-key", SECRET);
    let url = scene.conductor.url();
    let Said { code, err, .. } = import(&scene.place, &url, &[]);
    assert_eq!(code, 4, "{err}");
    has(&err, &["does not let us in", "--key-id", "--key-secret-env"]);
    let Said { code, err, .. } = import(&scene.place, &url, &["--key-id", "wrong", "--key-secret-env", "THEIR_SECRET"]);
    assert_eq!((code, err.contains(SECRET)), (4, false), "{err}");
    has(&err, &["does not take the key \"wrong\""]);
    let Said { code, err, .. } = import(&scene.place, &url, &["--key-id", "our-key", "--key-secret-env", "NOT_THERE"]);
    assert_eq!(code, 2, "{err}");
    has(&err, &["there is no variable NOT_THERE"]);
    assert_eq!(import(&scene.place, &url, &["--key-id", "our-key"]).code, 2, "a key has a secret");
    let keys = ["--key-id", "our-key", "--key-secret-env", "THEIR_SECRET", "--pause-there"];
    let Said { code, out, err } = import(&scene.place, &url, &keys);
    assert_eq!(code, 0, "{out}{err}");
    assert!(row(&out, "a").ends_with("imported, paused there"), "{out}");
    assert!(!out.contains(SECRET) && !err.contains(SECRET));
    scene.end();
}

#[test]
fn what_is_no_conductor_is_told_with_what_to_do() {
    let scene = Scene::new("import-nobody", On::Sqlite);
    let url = scene.conductor.url();
    has(&import(&scene.place, &url, &[]).out, &["There is no schedule at"]);
    for (status, body, code, said) in [
        (404, "{}", 5, "as in http://host:8080/api"),
        (200, "<html>Conductor UI</html>", 5, "there is no scheduler of Conductor"),
        (500, "{\"message\": \"no database\"}", 3, "no database"),
    ] {
        scene.conductor.fail_next(1, status, body);
        let Said { code: ended, err, .. } = import(&scene.place, &url, &[]);
        assert_eq!(ended, code, "{err}");
        has(&err, &[said, &url]);
    }
    scene.conductor.refuse().unwrap();
    let Said { code, err, .. } = import(&scene.place, &url, &[]);
    assert_eq!(code, 3, "{err}");
    has(&err, &["no Conductor answers at", "is it up"]);
    let Said { code, err, .. } = import(&scene.place, "host:8080", &[]);
    assert_eq!(code, 2, "{err}");
    scene.conductor.accept().unwrap();
    // And nobody to bring them to.
    let nowhere = Place::new("conductor-import-alone", "");
    let Said { code, err, .. } = import(&nowhere, &url, &["--server", "http://127.0.0.1:1"]);
    assert_eq!(code, 3, "{err}");
    has(&err, &["punctual up"]);
    scene.end();
}

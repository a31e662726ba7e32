//! Each trap that servers of Conductor have fallen into, by its number: what would fail if we had it.

use serde_json::json;

use super::{On, Scene, schedule};

const NEVER_SOON: &str = "0 0 0 1 1 *";

#[test]
fn trap_1_what_cannot_be_used_is_refused_when_it_is_saved() {
    let scene = Scene::new("trap1", On::Sqlite);
    let with = |field: &str, value: serde_json::Value| {
        let mut wanted = schedule("a", "mapped", NEVER_SOON);
        wanted[field] = value;
        wanted
    };
    for (wanted, said) in [
        (with("name", json!("")), "Schedule name is required"),
        (with("name", json!(null)), "Schedule name is required"),
        (with("cronExpression", json!(null)), "Cron expression is required"),
        (
            with("cronExpression", json!("0 0 24 * * *")),
            "Invalid cron expression '0 0 24 * * *': hour: 24 is out of range",
        ),
        (with("cronExpression", json!("0 0 0 30 2 *")), "it never fires"),
        (with("cronSchedules", json!([{"cronExpression": "nonsense"}])), "Invalid cron expression 'nonsense'"),
        (with("zoneId", json!("Mars/Olympus")), "Invalid zoneId 'Mars/Olympus'"),
        (with("startWorkflowRequest", json!(null)), "startWorkflowRequest is required"),
        (with("startWorkflowRequest", json!({"version": 1})), "startWorkflowRequest.name"),
        (with("startWorkflowRequest", json!({"name": "x", "priority": 100})), "startWorkflowRequest.priority"),
    ] {
        let refused = scene.save(wanted).json(400);
        assert!(refused["message"].as_str().unwrap().contains(said), "{refused} says {said}");
    }
    let cron = scene.save(with("cronExpression", json!("0 0 24 * * *"))).json(400);
    let message = cron["message"].as_str().unwrap();
    assert!(message.contains("cron") && message.contains("position 4"), "{message}");
    let mut bounded = with("scheduleStartTime", json!(2_000_000_000_000_i64));
    bounded["scheduleEndTime"] = json!(1_900_000_000_000_i64);
    let refused = scene.save(bounded).json(400);
    assert_eq!(refused["message"], "scheduleEndTime must be after scheduleStartTime");
    let preview = scene.api.get("/api/scheduler/nextFewSchedules?cronExpression=nonsense").json(400);
    assert!(preview["message"].as_str().unwrap().contains("cron"), "{preview}");
    assert_eq!(scene.api.get("/api/scheduler/nextFewSchedules").status, 400);
    assert_eq!(scene.api.get("/api/scheduler/schedules").json(200), json!([]), "nothing of it was kept");
    scene.end();
}

#[test]
fn trap_2_bounds_of_zero_are_none() {
    let scene = Scene::new("trap2", On::Sqlite);
    let mut wanted = schedule("a", "mapped", "* * * * * *");
    (wanted["scheduleStartTime"], wanted["scheduleEndTime"]) = (json!(0), json!(0));
    scene.save(wanted).json(200);
    scene.until_ended("a", 1);
    scene.end();
}

#[test]
fn trap_4_nothing_begins_early() {
    let scene = Scene::new("trap4", On::Sqlite);
    scene.save(schedule("a", "report", "* * * * * *")).json(200);
    scene.until_ended("a", 4);
    for start in scene.conductor.starts() {
        let input = &start.body["input"];
        assert!(input["_scheduledTime"].as_i64() <= input["_executedTime"].as_i64(), "{input}");
        let came = start.at.duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as i64;
        assert!(input["_scheduledTime"].as_i64().unwrap() <= came, "{input} came at {came}");
    }
    scene.end();
}

#[test]
fn trap_5_a_preview_knows_zones_several_crons_and_its_limit() {
    let scene = Scene::new("trap5", On::Sqlite);
    let times = |query: &str| -> Vec<i64> {
        let found = scene.api.get(&format!("/api/scheduler/nextFewSchedules?{query}")).json(200);
        found.as_array().unwrap().iter().map(|it| it.as_i64().unwrap()).collect()
    };
    let cron = "cronExpression=0%200%209%20*%20*%20*";
    assert_eq!(times(cron).len(), 5);
    assert_eq!(times(&format!("{cron}&limit=12")).len(), 12, "not capped at 5");
    let (utc, tokyo) = (times(cron)[0], times(&format!("{cron}&zoneId=Asia/Tokyo"))[0]);
    assert_eq!((utc - tokyo).rem_euclid(86_400_000), 9 * 3_600_000);
    let start = utc + 10 * 86_400_000;
    let bounded =
        times(&format!("{cron}&scheduleStartTime={start}&scheduleEndTime={}&limit=100", start + 2 * 86_400_000));
    assert_eq!(bounded, [start, start + 86_400_000, start + 2 * 86_400_000]);
    let mut several = schedule("several", "mapped", "");
    several["cronSchedules"] = json!([
        {"cronExpression": "0 0 9 * * *", "zoneId": "UTC"}, {"cronExpression": "0 0 9 * * *", "zoneId": "Asia/Tokyo"},
    ]);
    scene.save(several).json(200);
    let both = scene.api.get("/api/scheduler/schedules/several/next-execution-times?count=2").json(200);
    let apart = both[1].as_i64().unwrap() - both[0].as_i64().unwrap();
    assert!(apart == 9 * 3_600_000 || apart == 15 * 3_600_000, "{both}");
    scene.end();
}

#[test]
fn trap_6_the_next_time_is_told() {
    let scene = Scene::new("trap6", On::Sqlite);
    let saved = scene.save(schedule("a", "mapped", NEVER_SOON)).json(200);
    let times = scene.api.get("/api/scheduler/schedules/a/next-execution-times?count=1").json(200);
    assert_eq!(saved["nextRunTime"], times[0]);
    assert_eq!(scene.api.get("/api/scheduler/schedules").json(200)[0]["nextRunTime"], times[0]);
    let found = scene.api.get("/api/scheduler/schedules/search").json(200);
    assert_eq!(found["results"][0]["nextRunTime"], times[0]);
    scene.end();
}

#[test]
fn trap_7_one_schedule_that_fails_keeps_no_other_from_its_slots() {
    let scene = Scene::new("trap7", On::Sqlite);
    for number in 0..5 {
        scene.save(schedule(&format!("bad-{number}"), "broken", "* * * * * *")).json(200);
        scene.save(schedule(&format!("good-{number}"), "report", "* * * * * *")).json(200);
    }
    for number in 0..5 {
        let good = scene.until_ended(&format!("good-{number}"), 2);
        assert!(good.iter().all(|record| record["state"] == "EXECUTED"));
        scene.until_ended(&format!("bad-{number}"), 2);
    }
    scene.end();
}

#[test]
fn trap_8_overlap_can_be_chosen_and_places_are_filled() {
    let scene = Scene::new("trap8", On::Sqlite);
    let mut wanted = schedule("a", "mapped", NEVER_SOON);
    wanted["overlap"] = json!("skip");
    assert_eq!(scene.save(wanted.clone()).json(200)["overlap"], "skip");
    wanted["overlap"] = json!("never");
    assert_eq!(scene.save(wanted).status, 400);
    scene.end();
}

#[test]
fn trap_10_names_may_have_a_colon_anywhere() {
    let scene = Scene::new("trap10", On::Sqlite);
    for name in ["team:nightly", "a:b:c", "XXXX:payload", "ümläut & co/ltd?"] {
        let mut wanted = schedule(name, "report", "* * * * * *");
        wanted["startWorkflowRequest"]["input"] = json!({});
        scene.save(wanted).json(200);
        let path: String = name.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let shown = scene.api.get(&format!("/api/scheduler/schedules/{path}")).json(200);
        assert_eq!(shown["name"], name);
        scene.place.until("it fires", |_| {
            scene.conductor.starts().iter().any(|start| start.body["input"]["_startedByScheduler"] == name)
        });
        assert_eq!(scene.api.delete(&format!("/api/scheduler/schedules/{path}")).status, 200);
    }
    scene.end();
}

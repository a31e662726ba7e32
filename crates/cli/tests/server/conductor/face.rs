//! Every path, with what it takes and what it says.

use serde_json::{Value, json};

use super::{On, Scene, on_both, schedule};
use crate::support::rest_for;

on_both![
    a_schedule_is_saved_shown_listed_and_deleted,
    pausing_works_by_put_and_by_get_and_in_bulk,
    tags_are_put_listed_and_taken_off,
    executions_and_schedules_are_searched,
];

/// Far enough away that nothing fires.
const NEVER_SOON: &str = "0 0 0 1 1 *";

fn a_schedule_is_saved_shown_listed_and_deleted(on: On) {
    let scene = Scene::new("saved", on);
    let mut wanted = schedule("nightly", "report", "0 0 9 * * MON-FRI");
    wanted["zoneId"] = json!("Europe/Paris");
    wanted["description"] = json!("what changed");
    wanted["createdBy"] = json!("ada");
    wanted["orgId"] = json!("default");
    wanted["somethingNew"] = json!({"of": "tomorrow"});
    wanted["scheduleStartTime"] = json!(0);
    wanted["scheduleEndTime"] = json!(0);
    let saved = scene.save(wanted.clone()).json(200);
    assert_eq!(saved["cronExpression"], "0 0 9 * * MON-FRI");
    assert_eq!(
        (&saved["zoneId"], &saved["cronSchedules"], &saved["paused"]),
        (&json!("Europe/Paris"), &json!([]), &json!(false))
    );
    assert_eq!(saved["createdBy"], "ada");
    assert!(saved["updatedBy"].as_str().unwrap().starts_with("operator@"), "{saved}");
    assert_eq!(saved["startWorkflowRequest"], json!({"name": "report", "version": 1, "input": {"from": "nightly"}}));
    assert_eq!((&saved["scheduleStartTime"], &saved["scheduleEndTime"]), (&Value::Null, &Value::Null));
    assert!(saved.get("orgId").is_none() && saved.get("warnings").is_none(), "{saved}");
    assert_eq!(scene.show("nightly"), saved);
    let times = scene.api.get("/api/scheduler/schedules/nightly/next-execution-times?count=3").json(200);
    assert_eq!((times.as_array().unwrap().len(), &times[0]), (3, &saved["nextRunTime"]));

    // Saved again, it is the same schedule: who made it and when stays.
    wanted["cronExpression"] = json!("0 30 9 * * *");
    wanted["createdBy"] = json!("mallory");
    wanted["updatedBy"] = json!("bob");
    let again = scene.save(wanted).json(200);
    assert_eq!((&again["createTime"], &again["createdBy"]), (&saved["createTime"], &json!("ada")));
    assert_eq!((&again["updatedBy"], &again["cronExpression"]), (&json!("bob"), &json!("0 30 9 * * *")));

    // Several crons, each in its own zone, come before the one.
    let mut several = schedule("several", "mapped", "not even a cron");
    several["cronSchedules"] = json!([
        {"cronExpression": "0 0 9 * * *", "zoneId": "Asia/Tokyo"}, {"cronExpression": "0 0 9 * * *", "zoneId": "Europe/Paris"},
    ]);
    let several = scene.save(several).json(200);
    assert_eq!(several["cronSchedules"][1], json!({"cronExpression": "0 0 9 * * *", "zoneId": "Europe/Paris"}));

    let names = |path: &str| -> Vec<String> {
        let list = scene.api.get(path).json(200);
        list.as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names("/api/scheduler/schedules"), ["nightly", "several"]);
    assert_eq!(names("/api/scheduler/schedules?workflowName=mapped"), ["several"]);
    assert_eq!(names("/api/scheduler/schedules?workflowName="), ["nightly", "several"]);
    // The native API has schedules of its own.
    assert_eq!(scene.api.get("/api/schedules").json(200), json!([]));
    assert_eq!(scene.api.get("/api/schedules?face=all").json(200).as_array().unwrap().len(), 2);

    let gone = scene.api.delete("/api/scheduler/schedules/nightly");
    assert_eq!((gone.status, gone.text.as_str()), (200, ""));
    assert_eq!(scene.api.delete("/api/scheduler/schedules/nightly").status, 200, "it is gone already");
    let missing = scene.api.get("/api/scheduler/schedules/nightly").json(404);
    assert_eq!(missing["message"], "Schedule 'nightly' not found");
    assert_eq!((&missing["status"], &missing["retryable"]), (&json!(404), &json!(false)));
    assert_eq!(names("/api/scheduler/schedules"), ["several"]);
    scene.end();
}

fn pausing_works_by_put_and_by_get_and_in_bulk(on: On) {
    let scene = Scene::new("paused", on);
    for name in ["a", "b", "c"] {
        scene.save(schedule(name, "mapped", NEVER_SOON)).json(200);
    }
    for method in ["PUT", "GET"] {
        let path = "/api/scheduler/schedules/a/pause?reason=the%20target%20is%20down";
        assert_eq!(scene.api.send(method, path, &[], None).status, 200, "{method}");
        let paused = scene.show("a");
        assert_eq!((&paused["paused"], &paused["pausedReason"]), (&json!(true), &json!("the target is down")));
        assert_eq!(paused["nextRunTime"], Value::Null, "it does not run");
        assert_eq!(scene.api.send(method, "/api/scheduler/schedules/a/resume", &[], None).status, 200);
        assert_eq!(scene.api.send(method, "/api/scheduler/schedules/a/resume", &[], None).status, 200, "once more");
        let resumed = scene.show("a");
        assert_eq!((&resumed["paused"], &resumed["pausedReason"]), (&json!(false), &Value::Null));
        assert!(resumed["nextRunTime"].is_i64());
        assert_eq!(scene.api.send(method, "/api/scheduler/schedules/nobody/pause", &[], None).status, 404);
    }
    let bulk = scene.api.put("/api/scheduler/bulk/pause", json!(["c", "nobody", "a"])).json(200);
    assert_eq!(bulk["bulkSuccessfulResults"], json!(["c", "a"]));
    assert_eq!(bulk["bulkErrorResults"], json!({"nobody": "Schedule 'nobody' not found"}));
    assert_eq!(bulk["message"], "Bulk Request has been processed.");
    let found = scene.api.get("/api/scheduler/schedules/search?paused=true&sort=name:DESC").json(200);
    let names: Vec<&str> = found["results"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!((found["totalHits"].as_u64(), names), (Some(2), vec!["c", "a"]));
    let bulk = scene.api.put("/api/scheduler/bulk/resume", json!(["a", "c"])).json(200);
    assert_eq!(bulk["bulkSuccessfulResults"], json!(["a", "c"]));
    assert_eq!(scene.api.put("/api/scheduler/bulk/resume", json!([])).json(200)["bulkErrorResults"], json!({}));
    // A schedule that is saved as paused is paused, and one that is saved otherwise is not.
    let mut wanted = schedule("a", "mapped", NEVER_SOON);
    wanted["paused"] = json!(true);
    assert_eq!(scene.save(wanted.clone()).json(200)["paused"], true);
    wanted["paused"] = json!(null);
    assert_eq!(scene.save(wanted).json(200)["paused"], false);
    scene.end();
}

fn tags_are_put_listed_and_taken_off(on: On) {
    let scene = Scene::new("tags", on);
    scene.save(schedule("a", "mapped", NEVER_SOON)).json(200);
    let path = "/api/scheduler/schedules/a/tags";
    let (team, stage) = (
        json!({"key": "team", "type": "METADATA", "value": "finance"}),
        json!({"key": "stage", "type": "METADATA", "value": "live"}),
    );
    assert_eq!(scene.api.put(path, json!([team])).status, 200);
    assert_eq!(scene.api.put(path, json!([team, stage])).status, 200);
    assert_eq!(scene.api.get(path).json(200), json!([team, stage]));
    // Saving without a word about tags leaves them.
    assert_eq!(scene.save(schedule("a", "mapped", NEVER_SOON)).json(200)["tags"], json!([team, stage]));
    let off = scene.api.send("DELETE", path, &[], Some(json!([{"key": "team", "value": "finance"}])));
    assert_eq!(off.status, 200);
    assert_eq!(scene.api.get(path).json(200), json!([stage]));
    assert_eq!(scene.api.get("/api/scheduler/schedules/nobody/tags").status, 404);
    scene.end();
}

fn executions_and_schedules_are_searched(on: On) {
    let scene = Scene::new("search", on);
    let started = Value::from(jiff::Timestamp::UNIX_EPOCH.as_millisecond());
    assert!(started.is_i64());
    scene.save(schedule("quick", "mapped", "* * * * * *")).json(200);
    scene.save(schedule("Sad-One", "broken", "* * * * * *")).json(200);
    scene.save(schedule("far", "report", NEVER_SOON)).json(200);
    scene.until_ended("quick", 2);
    scene.until_ended("Sad-One", 2);
    for name in ["quick", "Sad-One"] {
        scene.api.put(&format!("/api/scheduler/schedules/{name}/pause"), json!(null));
    }
    // What was at work comes to its end.
    scene.place.until("nothing is being started", |_| {
        scene.api.get("/api/scheduler/search/executions?query=state%20IN%20(POLLED)").json(200)["totalHits"] == 0
    });
    let found = |query: &str| scene.api.get(&format!("/api/scheduler/search/executions?{query}")).json(200);
    let all = found("");
    let total = all["totalHits"].as_u64().unwrap();
    let names = |found: &Value, field: &str| -> Vec<String> {
        let mut names: Vec<String> = found["results"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it[field].as_str().unwrap_or("-").to_owned())
            .collect();
        names.sort();
        names.dedup();
        names
    };
    assert_eq!(names(&all, "scheduleName"), ["Sad-One", "quick"]);
    let times: Vec<i64> =
        all["results"].as_array().unwrap().iter().map(|it| it["scheduledTime"].as_i64().unwrap()).collect();
    assert!(times.is_sorted_by(|a, b| a >= b), "latest first: {times:?}");
    let quick = found("query=scheduleName%20IN%20(quick)");
    let sad = found("query=scheduleName%20IN%20(Sad-One)");
    assert_eq!(quick["totalHits"].as_u64().unwrap() + sad["totalHits"].as_u64().unwrap(), total);
    assert_eq!(
        (names(&quick, "state"), names(&sad, "state")),
        (vec!["EXECUTED".to_owned()], vec!["FAILED".to_owned()])
    );
    assert!(sad["results"][0]["reason"].as_str().unwrap().contains("exit"), "{}", sad["results"][0]);
    let record = &quick["results"][0];
    assert_eq!((&record["workflowName"], &record["workflowId"]), (&json!("mapped"), &record["executionId"]));
    assert_eq!((&record["zoneId"], &record["startWorkflowRequest"]["name"]), (&json!("UTC"), &json!("mapped")));
    // The same in other words: those of their command line and of their documentation, and what people just type.
    for (query, expected) in [
        ("query=quick", &quick),
        ("query=scheduleName%3D%27quick%27%20AND%20status%3D%27COMPLETED%27", &quick),
        ("query=%20workflowType%20IN%20(mapped)%20%20AND%20status%20IN%20(COMPLETED)%20&sort=startTime:DESC", &quick),
        ("freeText=quick", &quick),
        ("freeText=sad-one", &sad),
        ("query=state%3DFAILED", &sad),
        ("query=workflowName%3Droke", &sad),
    ] {
        assert_eq!(found(query)["totalHits"], expected["totalHits"], "{query}");
    }
    let id = record["executionId"].as_str().unwrap();
    assert_eq!(found(&format!("query=executionId%3D{id}"))["results"][0]["executionId"], id);
    let page = found("start=1&size=1&sort=scheduledTime:ASC");
    assert_eq!((page["results"].as_array().unwrap().len(), page["totalHits"].as_u64()), (1, Some(total)));
    let at = times[times.len() - 1];
    assert_eq!(
        found(&format!("query=scheduledTime%3E{at}&size=1000"))["totalHits"].as_u64().unwrap() as usize,
        times.iter().filter(|it| at < **it).count()
    );
    assert_eq!(found("freeText=nothing-like-it")["totalHits"], 0);
    assert_eq!(scene.api.get("/api/scheduler/search/executions?query=colour%3Dred").status, 400);

    let schedules = |query: &str| -> Vec<String> {
        let found = scene.api.get(&format!("/api/scheduler/schedules/search?{query}")).json(200);
        found["results"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(schedules(""), ["quick", "Sad-One", "far"]);
    assert_eq!(schedules("workflowName=report"), ["far"]);
    assert_eq!(schedules("scheduleName=sad"), ["Sad-One"]);
    assert_eq!(schedules("freeText=REPOR"), ["far"]);
    assert_eq!(schedules("paused=false"), ["far"]);
    assert_eq!(schedules("sort=name:ASC&size=2"), ["Sad-One", "far"]);
    // What a schedule has left behind stays when it goes.
    scene.api.delete("/api/scheduler/schedules/quick");
    assert_eq!(found("query=quick")["totalHits"], quick["totalHits"]);
    scene.end();
}

#[test]
fn clients_sign_in_with_a_key_whose_secret_is_a_token() {
    let scene = Scene::new("token", On::Sqlite);
    let token = scene.api.token().unwrap().to_owned();
    let stranger = scene.api.with_token(None);
    let got = stranger.post("/api/token", json!({"keyId": "anything", "keySecret": token})).json(200);
    assert_eq!(got["token"], json!(token));
    let header = [("X-Authorization", token.as_str())];
    assert_eq!(stranger.send("GET", "/api/scheduler/schedules", &header, None).json(200), json!([]));
    let refused = stranger.post("/api/token", json!({"keyId": "anything", "keySecret": "pt_wrong"})).json(401);
    assert_eq!((&refused["status"], &refused["code"]), (&json!(401), &json!("bad_token")));
    assert_eq!(stranger.get("/api/scheduler/schedules").json(401)["code"], "no_token");
    assert_eq!(stranger.post("/api/token", json!({})).status, 400);
    scene.end();
}

#[test]
fn a_node_that_is_paused_begins_nothing() {
    let scene = Scene::new("admin", On::Sqlite);
    assert_eq!(scene.api.get("/api/scheduler/admin/pause").json(200), json!({"status": "done"}));
    scene.save(schedule("quick", "mapped", "* * * * * *")).json(200);
    rest_for(3_000);
    assert_eq!(scene.records("quick"), Vec::<Value>::new());
    assert_eq!(scene.api.get("/api/scheduler/admin/resume").json(200), json!({"status": "done"}));
    // What became due meanwhile is late, and not lost.
    let records = scene.until_ended("quick", 3);
    assert!(records[0]["executionTime"].as_i64() >= records[0]["scheduledTime"].as_i64());
    let pending = scene.api.get("/api/scheduler/admin/requeue").json(200);
    assert!(pending["recordIds.size"].is_u64() && pending["sampleIds"].is_array(), "{pending}");
    scene.end();
}

#[test]
fn workflows_are_not_kept_here_and_it_says_where() {
    let scene = Scene::new("metadata", On::Sqlite);
    let said = scene.api.post("/api/metadata/workflow", json!({"name": "report"})).json(404);
    assert!(said["message"].as_str().unwrap().contains("server_url"), "{said}");
    assert_eq!(scene.api.get("/api/metadata/workflow").status, 404);
    scene.end();
}

#[test]
fn a_token_of_a_project_sees_its_own_schedules() {
    let scene = Scene::new("projects", On::Sqlite);
    let token = |project: &str| {
        let made = scene.api.post("/api/tokens", json!({"name": project, "role": "editor", "projects": [project]}));
        let made = made.json(201);
        scene.api.with_token(Some(made["secret"].as_str().unwrap()))
    };
    let (red, blue) = (token("red"), token("blue"));
    for api in [&scene.api, &red, &blue] {
        api.post("/api/scheduler/schedules", schedule("nightly", "mapped", NEVER_SOON)).json(200);
    }
    assert_eq!(red.delete("/api/scheduler/schedules/nightly").status, 200);
    assert_eq!(red.get("/api/scheduler/schedules").json(200), json!([]));
    assert_eq!(blue.get("/api/scheduler/schedules").json(200).as_array().unwrap().len(), 1);
    assert_eq!(scene.api.get("/api/scheduler/schedules/nightly").status, 200);
    scene.end();
}

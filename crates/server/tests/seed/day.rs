//! §10: the whole example, hour by hour, through one day in Denver and one in UTC.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use jiff::Timestamp;
use punctual_core::ScheduleId;
use punctual_core::run::Report;
use serde_json::{Value, json};

use crate::support::{Base, MINUTE, SECOND, Way, World, at, fields, on_both_stores};

on_both_stores!(
    the_day_of_the_example_goes_as_it_is_told_on_sqlite,
    the_day_of_the_example_goes_as_it_is_told_on_postgres,
    the_day
);

async fn the_day(base: Base) {
    // Early on the day before: in Denver it is 05:00, and Tuesday too.
    let mut world = World::at(base, "2026-02-17T12:00:00Z").await;
    world.start("a").await;
    let reminders = json!({"reminderIds": ["r1", "r2", "r3"]});
    let blindspots = json!({"blindspotIds": ["b1", "b2"]});
    world.agents.go("thread-extractor", [Way::Succeeds(SECOND * 45, refers_to(&reminders))]);
    world.agents.go("reconciler", [Way::Succeeds(SECOND * 120, refers_to(&blindspots))]);
    world.agents.go("distiller", [Way::takes(SECOND * 20)]);
    let reconciler = json!({"agentId": "reconciler", "scheduleType": "CRON", "cronExpr": "0 0 */2 * * *",
        "timezone": "America/Denver", "projectScope": "PROJECT", "projectId": "xyz"});
    let extractor = json!({"agentId": "thread-extractor", "scheduleType": "FIXED_TIMES", "timesOfDay": ["09:00", "17:00"],
        "timezone": "America/Denver"});
    let distiller = json!({"agentId": "distiller", "scheduleType": "INTERVAL", "intervalMinutes": 30, "timezone": "UTC",
        "projectScope": "GLOBAL"});
    let reconciler = world.create(reconciler).await;
    let extractor = world.create(extractor).await;
    let distiller = world.create(distiller).await;

    midnights(&world, [reconciler, extractor, distiller]).await;
    morning(&world, reconciler, extractor, &reminders, &blindspots).await;
    trigger(&world, &blindspots).await;
    edit(&world, extractor).await;

    // The rest of the day, to its end in both zones.
    world.advance_to("2026-02-19T07:30:00Z").await;
    let denver = |count: i64, step: i64| at("07:00") + MINUTE * i32::try_from(count * step).unwrap();
    let every_two_hours: Vec<Timestamp> = (0..12).map(|count| denver(count, 120)).collect();
    let half_hours: Vec<Timestamp> = (0..48).map(|count| at("00:00") + MINUTE * 30 * count).collect();
    let three_times = ["16:00", "20:00", "2026-02-19T00:00:00Z"].map(at);
    for (id, slots, seconds) in
        [(reconciler, every_two_hours, 120), (extractor, three_times.to_vec(), 45), (distiller, half_hours, 20)]
    {
        let (first, last) = (slots[0], slots[slots.len() - 1]);
        let past = world.past(id).await;
        let of_the_day = past.iter().filter(|it| (first..=last).contains(&instant(&it["scheduledAt"])));
        let of_the_day: Vec<&Value> = of_the_day.collect();
        let found: Vec<Timestamp> = of_the_day.iter().map(|it| instant(&it["scheduledAt"])).collect();
        assert_eq!(found, slots, "each slot of the day has one line of history, and there is no other");
        for item in of_the_day {
            let told = fields(item, ["resultStatus", "durationMs", "attempt"]);
            assert_eq!(told, [json!("SUCCESS"), json!(seconds * 1_000), json!(1)]);
            assert_eq!(item["startedAt"], item["scheduledAt"], "nothing was late");
        }
    }
    // By the day in Denver: 12 and the one of 10:15, 3, and 48.
    let metrics = world.get("/api/executions/metrics?from=2026-02-18T07:00:00Z&to=2026-02-19T07:00:00Z").await;
    assert_eq!(metrics["runsByAgent"], json!({"reconciler": 13, "thread-extractor": 3, "distiller": 48}));
    assert_eq!(fields(&metrics, ["totalRuns", "successCount", "failCount"]), [64, 64, 0].map(|count| json!(count)));
    for id in [reconciler, extractor, distiller] {
        assert!(0 < world.every_slot_has_one_answer(id).await);
    }
    let mut called: BTreeMap<String, usize> = BTreeMap::new();
    for call in world.agents.calls() {
        *called.entry(call.context.idempotency_key).or_default() += 1;
    }
    assert!(called.values().all(|count| *count == 1), "no agent was called twice for one thing: {called:?}");
    world.end().await;
}

fn refers_to(refs: &Value) -> Box<Report> {
    let refs = refs.as_object().expect("it is an object").clone();
    Box::new(Report { refs, ..Report::default() })
}

/// 48 in the day of UTC, 12 and 2 in that of Denver: before a day, when it begins and within it. None of them has a record before
/// its time.
async fn midnights(world: &World, schedules: [ScheduleId; 3]) {
    for time in ["2026-02-17T23:50:00Z", "00:00", "06:59:59", "07:00", "07:10"] {
        world.advance_to(time).await;
        for (agent, count) in [("distiller", 48), ("reconciler", 12), ("thread-extractor", 2)] {
            assert_eq!(of_the_day(world, agent).await, count, "{agent} at {time}");
        }
        for id in schedules {
            let ahead = world.recorded(id).await.into_iter().find(|run| world.now() < run.scheduled_at);
            assert_eq!(ahead, None, "at {time}");
        }
    }
}

/// How many items an agent has on 18 February, as its zone has it: in the queue, or done.
async fn of_the_day(world: &World, agent: &str) -> usize {
    let queue = world.get(&format!("/api/executions/future?dateKey=2026-02-18&agentId={agent}")).await;
    let (from, to) = match agent {
        "distiller" => ("2026-02-18T00:00:00Z", "2026-02-18T23:59:59Z"),
        _ => ("2026-02-18T07:00:00Z", "2026-02-19T06:59:59Z"),
    };
    let done = world.get(&format!("/api/executions/past?agentId={agent}&from={from}&to={to}")).await;
    queue.as_array().expect("it is a list").len() + usize::try_from(done["totalElements"].as_u64().unwrap()).unwrap()
}

/// 09:00: the extractor, for 45 seconds, with 3 reminders. 10:00: the reconciler, for 120, with 2 blind spots.
async fn morning(world: &World, reconciler: ScheduleId, extractor: ScheduleId, reminders: &Value, blindspots: &Value) {
    world.advance_to("16:00").await;
    let item = world.run_at(extractor, "16:00").await.id;
    assert_eq!(world.shown(item).await["execStatus"], "RUNNING");
    world.advance_to("16:00:45").await;
    let names = ["resultStatus", "durationMs", "responseRefs", "startedAt"];
    let last = world.past(extractor).await.pop().expect("it is recorded");
    let expected = [json!("SUCCESS"), json!(45_000), reminders.clone(), json!("2026-02-18T16:00:00Z")];
    assert_eq!(fields(&last, names), expected);
    let queue = world.get("/api/executions/future?agentId=thread-extractor").await;
    assert_eq!(queue.as_array().expect("it is a list").len(), 1, "17:00 is left");
    world.advance_to("17:02").await;
    let last = world.past(reconciler).await.pop().expect("it is recorded");
    let expected = [json!("SUCCESS"), json!(120_000), blindspots.clone(), json!("2026-02-18T17:00:00Z")];
    assert_eq!(fields(&last, names), expected);
}

/// 10:15: somebody triggers the reconciler.
async fn trigger(world: &World, blindspots: &Value) {
    world.advance_to("17:15").await;
    let body = json!({"agentId": "reconciler", "projectId": "xyz"});
    let asked = world.post("/api/executions/trigger", body, StatusCode::ACCEPTED).await;
    let names = ["execStatus", "immediate", "plannedHour", "scheduledAt"];
    assert_eq!(fields(&asked, names), [json!("READY"), json!(true), json!(-1), json!("2026-02-18T17:15:00Z")]);
    world.advance_to("17:15:05").await;
    let calls = world.agents.calls();
    let call = calls.last().expect("it was called");
    assert_eq!(json!(call.context.run_id.to_string()), asked["executionId"]);
    assert!(call.context.manual);
    world.advance_to("17:18").await;
    let path = format!("/api/executions/past?executionId={}", asked["executionId"].as_str().unwrap());
    let item = &world.get(&path).await["content"][0];
    let expected = [json!("SUCCESS"), json!(120_000), blindspots.clone()];
    assert_eq!(fields(item, ["resultStatus", "durationMs", "responseRefs"]), expected);
}

/// 10:30: the extractor gets another time. 17:00 is retained, 13:00 is new, 09:00 has been.
async fn edit(world: &World, extractor: ScheduleId) {
    world.advance_to("17:30").await;
    let queue = async || world.get("/api/executions/future?agentId=thread-extractor&dateKey=2026-02-18").await;
    let (before, nine) = (queue().await, world.run_at(extractor, "16:00").await);
    let edited = world.edit(extractor, json!({"timesOfDay": ["09:00", "13:00", "17:00"]})).await;
    assert_eq!(edited["version"], 2);
    world.advance(MINUTE).await;
    let after = queue().await;
    let [new, kept] = &after.as_array().expect("it is a list")[..] else { panic!("13:00 and 17:00: {after}") };
    let names = ["plannedHour", "execStatus", "scheduledAt"];
    assert_eq!(fields(new, names), [json!(13), json!("READY"), json!("2026-02-18T20:00:00Z")]);
    assert_eq!(fields(kept, names), [json!(17), json!("READY"), json!("2026-02-19T00:00:00Z")]);
    let same = ["executionId", "idempotencyKey", "scheduledAt"];
    assert_eq!(fields(kept, same), fields(&before[0], same));
    assert_eq!(world.run_at(extractor, "16:00").await, nine, "09:00 is as it was");
}

fn instant(value: &Value) -> Timestamp {
    at(value.as_str().expect("it is a text"))
}

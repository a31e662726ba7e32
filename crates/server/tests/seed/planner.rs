//! §13 a, the planner: which items it makes, keeps, and takes away.

use std::collections::BTreeSet;

use punctual_core::RunId;
use punctual_core::journal::{Body, PlanEntry, PlannedRun};
use punctual_core::run::{Run, RunState};
use punctual_store::{Expected, PlanSubject, PlanWrite, ScheduleChange, Written};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::{Base, HOUR, MINUTE, Way, World, at, field, fields, on_both_stores};

on_both_stores!(
    given_a_cron_schedule_the_right_times_are_planned_on_sqlite,
    given_a_cron_schedule_the_right_times_are_planned_on_postgres,
    cron_times
);

async fn cron_times(base: Base) {
    // 23:00 in Denver, the evening before.
    let mut world = World::at(base, "06:00").await;
    world.start("a").await;
    let cron = json!({"agentId": "reconciler", "timezone": "America/Denver", "scheduleType": "CRON",
        "cronExpr": "0 0 */2 * * *", "projectScope": "PROJECT", "projectId": "xyz"});
    let id = world.create(cron).await;
    // What begins within a quarter of an hour behind the day's end is planned with it.
    assert_eq!(world.slots(id).await, ["2026-02-18T07:00:00Z"]);
    world.advance_to("07:00").await;
    let expected: Vec<String> = (0..12).map(|count| (at("07:00") + HOUR * 2 * count).to_string()).collect();
    let mut found = world.slots(id).await;
    // The next day's first, by the same quarter of an hour.
    assert_eq!(found.pop(), Some("2026-02-19T07:00:00Z".to_owned()));
    assert_eq!(found, expected);
    let list = world.get("/api/executions/future?execStatus=READY&dateKey=2026-02-18").await;
    assert_eq!(field(&list, "plannedHour"), (1..12).map(|count| json!(count * 2)).collect::<Vec<_>>());
    assert!(field(&list, "plannedMinute").iter().all(|minute| *minute == 0));
    world.end().await;
}

on_both_stores!(
    given_a_fixed_times_schedule_there_is_an_item_for_each_time_on_sqlite,
    given_a_fixed_times_schedule_there_is_an_item_for_each_time_on_postgres,
    fixed_times
);

async fn fixed_times(base: Base) {
    let mut world = World::at(base, "07:30").await;
    world.start("a").await;
    let times = json!({"agentId": "thread-extractor", "timezone": "America/Denver", "scheduleType": "FIXED_TIMES",
        "timesOfDay": ["17:00", "00:20", "09:00", "12:45"]});
    let id = world.create(times).await;
    // 00:20 is past; the rest in order, whatever the order in which they were given.
    assert_eq!(world.slots(id).await, ["2026-02-18T16:00:00Z", "2026-02-18T19:45:00Z", "2026-02-19T00:00:00Z"]);
    let list = world.get("/api/executions/future").await;
    assert_eq!(field(&list, "plannedHour"), [json!(9), json!(12), json!(17)]);
    assert_eq!(field(&list, "plannedMinute"), [json!(0), json!(45), json!(0)]);
    assert_eq!(field(&list, "dateKey"), ["2026-02-18"; 3]);
    let key = "2026-02-18|thread-extractor|GLOBAL|2026-02-18T16:00:00Z";
    assert_eq!(field(&list, "idempotencyKey")[0], key);
    world.end().await;
}

on_both_stores!(
    given_an_interval_schedule_items_are_at_the_right_intervals_on_sqlite,
    given_an_interval_schedule_items_are_at_the_right_intervals_on_postgres,
    intervals
);

async fn intervals(base: Base) {
    let mut world = World::at(base, "2026-02-17T23:50:00Z").await;
    world.start("a").await;
    let every = json!({"agentId": "distiller", "timezone": "UTC", "scheduleType": "INTERVAL", "intervalMinutes": 30});
    let id = world.create(every).await;
    world.advance_to("00:00").await;
    let expected: Vec<String> = (0..48).map(|count| (at("00:00") + MINUTE * 30 * count).to_string()).collect();
    let mut found = world.slots(id).await;
    assert_eq!(found.pop(), Some("2026-02-19T00:00:00Z".to_owned()));
    assert_eq!(found, expected);
    world.end().await;
}

on_both_stores!(
    version_drift_cancels_stale_items_on_sqlite,
    version_drift_cancels_stale_items_on_postgres,
    version_drift
);

async fn version_drift(base: Base) {
    let mut world = World::at(base, "08:00").await;
    world.start("a").await;
    world.agents.go("reminder", [Way::Stays]);
    let times = json!({"agentId": "reminder", "timezone": "UTC", "scheduleType": "FIXED_TIMES",
        "timesOfDay": ["09:00", "12:00", "15:00", "18:00"]});
    let id = world.create(times).await;
    world.advance_to("10:00").await;
    let stale = world.run_at(id, "12:00").await.id;
    let (at_work, stays) = (world.run_at(id, "09:00").await, world.run_at(id, "15:00").await);
    let edited = world.edit(id, json!({"timesOfDay": ["13:00", "15:00"]})).await;
    assert_eq!(edited["version"], 2);
    assert_eq!(
        world.slots(id).await,
        ["2026-02-18T09:00:00Z", "2026-02-18T13:00:00Z", "2026-02-18T15:00:00Z"],
        "12:00 and 18:00 are of a version that is over"
    );
    // Only what nobody had touched: what is at work goes on under the version that it began with.
    assert_eq!(world.run_at(id, "09:00").await, at_work);
    let versions: Vec<(u64, bool)> = world.runs(id).await.iter().map(|run| (run.version, run.is_untouched())).collect();
    assert_eq!(versions, [(1, false), (2, true), (2, true)], "no untouched item is left of version 1");
    assert_eq!(world.run_at(id, "15:00").await.id, stays.id);
    let entries = world.entries().await;
    let mut withdrawn = entries.iter().filter_map(|entry| match &entry.body {
        Body::Planned(plan) => plan.next_gone.map(|gone| (plan.version, gone)),
        _ => None,
    });
    // The entry that the stream of events tells as EXEC_CANCELLED: of the slot that came next, as no other was told of before.
    assert_eq!(withdrawn.next(), Some((2, stale)));
    assert_eq!(withdrawn.next(), None);
    world.end().await;
}

on_both_stores!(
    the_midnight_rebuild_clears_and_regenerates_on_sqlite,
    the_midnight_rebuild_clears_and_regenerates_on_postgres,
    midnight_rebuild
);

async fn midnight_rebuild(base: Base) {
    let mut world = World::at(base, "20:00").await;
    world.start("a").await;
    world.agents.go("reconciler", [Way::takes(HOUR * 4), Way::takes(MINUTE)]);
    let times = |agent: &str, times: [&str; 2]| json!({"agentId": agent, "timezone": "UTC", "scheduleType": "FIXED_TIMES", "timesOfDay": times});
    let id = world.create(times("reconciler", ["06:00", "21:00"])).await;
    let reminder = world.create(times("reminder", ["06:30", "22:00"])).await;
    world.advance_to("23:59").await;
    let at_work = world.run_at(id, "21:00").await;
    assert!(matches!(at_work.state, RunState::Running { .. }), "{:?}", at_work.state);
    world.advance_to("2026-02-19T00:00:00Z").await;
    // Today's queue is today's alone.
    let today = world.get("/api/executions/future").await;
    assert_eq!(field(&today, "dateKey"), ["2026-02-19"; 4]);
    assert_eq!(field(&today, "plannedHour"), [6, 6, 21, 22].map(|hour| json!(hour)));
    assert_eq!(field(&today, "execStatus"), ["READY"; 4]);
    // What is running is neither cleared nor begun again.
    assert_eq!(world.run_at(id, "21:00").await, at_work);
    assert_eq!(world.agents.calls_for(at_work.id).len(), 1);

    // Nobody is there from 21:30 until half past one: what was to run on the day before is not run on the day behind it.
    world.advance_to("2026-02-19T21:30:00Z").await;
    world.stop("a").await;
    world.advance_to("2026-02-20T01:30:00Z").await;
    world.start("a").await;
    let left = world.run_at(reminder, "2026-02-19T22:00:00Z").await;
    let Some(answer) = world.past(reminder).await.pop() else { panic!("it has an answer") };
    assert_eq!(answer["executionId"], left.id.to_string());
    assert_eq!(fields(&answer, ["resultStatus", "errorCode"]), ["SKIPPED", "day_ended"]);
    assert_eq!(world.agents.calls_for(left.id).len(), 0);
    let today = world.get("/api/executions/future").await;
    assert_eq!(field(&today, "dateKey"), ["2026-02-20"; 4]);
    assert_eq!(field(&today, "execStatus"), ["READY"; 4]);

    // Its entry is what the stream of events tells as MIDNIGHT_REBUILD: once for a zone and a day.
    let entries = world.entries().await;
    let begun = entries.iter().filter_map(|entry| match &entry.body {
        Body::DayStarted { zone, date } => Some(format!("{zone} {date} at {}", entry.at)),
        _ => None,
    });
    let expected = [
        "UTC 2026-02-18 at 2026-02-18T20:00:00Z",
        "UTC 2026-02-19 at 2026-02-19T00:00:00Z",
        "UTC 2026-02-20 at 2026-02-20T01:30:00Z",
    ];
    assert_eq!(begun.collect::<Vec<_>>(), expected);
    assert_eq!(world.every_slot_has_one_answer(id).await, 3);
    assert_eq!(world.every_slot_has_one_answer(reminder).await, 3);
    world.end().await;
}

on_both_stores!(
    idempotency_keys_prevent_duplicates_when_the_planner_runs_again_on_sqlite,
    idempotency_keys_prevent_duplicates_when_the_planner_runs_again_on_postgres,
    planning_again
);

async fn planning_again(base: Base) {
    let mut world = World::at(base, "08:00").await;
    world.start("a").await;
    let cron = json!({"agentId": "reconciler", "timezone": "UTC", "scheduleType": "CRON", "cronExpr": "0 0 * * * *"});
    let id = world.create(cron).await;
    world.advance_to("10:30").await;
    let planned =
        |runs: Vec<Run>| -> Vec<_> { runs.iter().map(|run| (run.id, run.key.to_string(), run.scheduled_at)).collect() };
    let first = planned(world.runs(id).await);
    assert_eq!(first.len(), 16, "09:00 to 24:00");
    // Every edit moves planning back to now, and every start of a node looks at everything anew.
    for round in 0..5 {
        world.edit(id, json!({"prompt": format!("round {round}")})).await;
        world.kill("a").await;
        world.start("a").await;
        world.advance(MINUTE).await;
        assert_eq!(planned(world.runs(id).await), first, "round {round}");
    }
    let list = world.get("/api/executions/future").await;
    let keys: BTreeSet<String> = field(&list, "idempotencyKey").iter().map(Value::to_string).collect();
    assert_eq!(keys.len(), 13, "11:00 to 23:00, each under a key of its own");
    // Whoever plans a slot once more, with everything else as it is, changes nothing.
    let subject = world.store.subject(id, world.now()).await.unwrap().expect("it is there");
    for run in &subject.runs {
        assert_eq!(world.store.plan(world.now(), vec![once_more(&subject, run)]).await.unwrap(), [Written::Conflict]);
    }
    assert_eq!(planned(world.runs(id).await), first);
    let entries = world.entries().await;
    let made = entries.iter().filter_map(|entry| match &entry.body {
        Body::Planned(plan) => Some(plan.runs.len()),
        _ => None,
    });
    assert_eq!(made.sum::<usize>(), 2, "each item was recorded once, when it was due");
    assert_eq!(world.every_slot_has_one_answer(id).await, 2);
    world.end().await;
}

/// A plan of a schedule as it is, with another run for a slot that has one.
fn once_more(subject: &PlanSubject, run: &Run) -> PlanWrite {
    let record = &subject.task.record;
    let (schedule, version, cursor) = (record.schedule.id, record.schedule.version, record.schedule.cursor.clone());
    let another = PlannedRun {
        id: RunId(Uuid::new_v4()),
        key: run.key.clone(),
        scheduled_at: run.scheduled_at,
        due_at: run.due_at,
        expires_at: run.expires_at,
        follows: None,
    };
    let plan = PlanEntry { runs: vec![another], ..PlanEntry::unchanged(record) };
    let early = record.schedule.early.clone();
    PlanWrite {
        expected: Expected::At { schedule, version, cursor, early, outage: record.outage },
        change: ScheduleChange::None,
        skips: vec![],
        cancelled: vec![],
        plan: Some(plan),
        by: None,
    }
}

//! The seed of the Conductor face under a clock that the test moves: those of its nineteen scenarios in which time decides. The others
//! are with the real binary, in `cli/tests/server/conductor/scenarios.rs`.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use punctual_core::ScheduleId;
use punctual_core::journal::Body;
use serde_json::{Value, json};

use crate::support::{Base, HOUR, MINUTE, SECOND, Way, World, at, on_both_stores};

const SCHEDULES: &str = "/api/scheduler/schedules";

/// A schedule of the workflow that the agent `reminder` stands in for.
fn every_minute(name: &str, catches_up: bool) -> Value {
    json!({
        "name": name, "cronExpression": "0 * * * * *", "zoneId": "UTC", "runCatchupScheduleInstances": catches_up,
        "startWorkflowRequest": {"name": "report"},
    })
}

impl World {
    async fn save(&self, schedule: Value) -> Value {
        let saved = self.post(SCHEDULES, schedule, StatusCode::OK).await;
        self.settle().await;
        saved
    }

    async fn pause(&self, name: &str) {
        self.put(&format!("{SCHEDULES}/{name}/pause"), Value::Null).await;
        self.settle().await;
    }

    async fn resume(&self, name: &str) {
        self.put(&format!("{SCHEDULES}/{name}/resume"), Value::Null).await;
        self.settle().await;
    }

    async fn id_of_schedule(&self, name: &str) -> ScheduleId {
        let all = self.get("/api/schedules?face=all").await;
        let own = all.as_array().expect("it is a list").iter().find(|it| it["name"] == name).expect("it is there");
        ScheduleId(crate::support::id_of(&own["scheduleId"]))
    }

    /// The slots of a schedule whose work has begun, in the order in which it did.
    async fn begun(&self, name: &str) -> Vec<String> {
        let (id, mut slots, mut begun) = (self.id_of_schedule(name).await, BTreeMap::new(), vec![]);
        for entry in self.entries().await {
            match entry.body {
                Body::Planned(plan) if plan.schedule == id => {
                    slots.extend(plan.runs.iter().map(|run| (run.id, run.scheduled_at.to_string())));
                }
                Body::RunsStarted { runs } => begun.extend(runs.iter().filter_map(|run| slots.get(run).cloned())),
                _ => {}
            }
        }
        begun
    }

    async fn every_slot_of_face_has_one_answer(&self, name: &str) -> usize {
        self.every_slot_has_one_answer(self.id_of_schedule(name).await).await
    }
}

fn minutes(from: &str, count: i64) -> Vec<String> {
    (0..count).map(|minute| (at(from) + MINUTE * i32::try_from(minute).unwrap_or(0)).to_string()).collect()
}

on_both_stores!(
    scenario_1_a_schedule_fires_every_minute_on_sqlite,
    scenario_1_a_schedule_fires_every_minute_on_postgres,
    basic
);

async fn basic(base: Base) {
    let mut world = World::at(base, "10:00:30").await;
    world.start("a").await;
    world.save(every_minute("a", false)).await;
    world.advance_to("10:10:30").await;
    assert_eq!(world.begun("a").await, minutes("10:01", 10));
    let calls = world.agents.calls();
    assert!(calls.iter().all(|call| call.at == call.context.scheduled_at), "each on its second");
    assert!(calls.iter().all(|call| call.context.inputs["scheduledTime"] == call.at.as_millisecond()));
    assert_eq!(world.every_slot_of_face_has_one_answer("a").await, 10);
    world.end().await;
}

on_both_stores!(
    scenario_2_catching_up_goes_slot_by_slot_in_order_on_sqlite,
    scenario_2_catching_up_goes_slot_by_slot_in_order_on_postgres,
    catching_up
);

async fn catching_up(base: Base) {
    let mut world = World::at(base, "10:00:30").await;
    world.start("a").await;
    world.save(every_minute("all", true)).await;
    world.save(every_minute("first", false)).await;
    world.advance_to("10:02:30").await;
    world.stop("a").await;
    world.advance_to("10:07:30").await;
    world.start("b").await;
    world.advance_to("10:08:30").await;
    assert_eq!(world.begun("all").await, minutes("10:01", 8), "every slot, in order");
    // Without catch-up the slot that was waited for runs late, and then it goes on.
    let expected = [minutes("10:01", 3), minutes("10:08", 1)].concat();
    assert_eq!(world.begun("first").await, expected);
    for name in ["all", "first"] {
        assert_eq!(world.every_slot_of_face_has_one_answer(name).await, 8);
    }
    world.end().await;
}

on_both_stores!(
    scenario_3_the_last_slot_of_a_window_fires_once_on_sqlite,
    scenario_3_the_last_slot_of_a_window_fires_once_on_postgres,
    bounded
);

/// Also trap 3: bounds hold while slots are made up for.
async fn bounded(base: Base) {
    let mut world = World::at(base, "10:00:30").await;
    world.start("a").await;
    for (name, catches_up) in [("plain", false), ("late", true)] {
        let mut schedule = every_minute(name, catches_up);
        schedule["scheduleStartTime"] = json!(at("10:02").as_millisecond());
        schedule["scheduleEndTime"] = json!(at("10:04").as_millisecond());
        world.save(schedule).await;
    }
    world.pause("late").await;
    world.advance_to("10:30").await;
    assert_eq!(world.begun("plain").await, minutes("10:02", 3));
    world.resume("late").await;
    world.advance_to("10:35").await;
    assert_eq!(world.begun("late").await, minutes("10:02", 3), "no slot outside of its bounds, and none twice");
    let shown = world.get(&format!("{SCHEDULES}/plain")).await;
    assert_eq!(shown["nextRunTime"], Value::Null, "it is over");
    world.end().await;
}

on_both_stores!(
    scenario_15_uneven_looks_lose_nothing_and_repeat_nothing_on_sqlite,
    scenario_15_uneven_looks_lose_nothing_and_repeat_nothing_on_postgres,
    uneven
);

async fn uneven(base: Base) {
    let mut world = World::at(base, "10:00:30").await;
    world.start("0").await;
    world.save(every_minute("a", true)).await;
    let names = ["1", "2", "3", "4", "5", "6", "7", "8"];
    let mut last = "0";
    // Nobody looks for a while, then somebody does, now and then in the middle of a minute or at its very edge.
    for (name, (up, down)) in
        names.into_iter().zip([(7, 1), (53, 200), (60, 3), (1, 61), (600, 59), (30, 1_799), (2, 2), (119, 0)])
    {
        world.advance(SECOND * up).await;
        world.stop(last).await;
        world.advance(SECOND * down).await;
        world.start(name).await;
        last = name;
    }
    world.advance(MINUTE).await;
    let called = world.begun("a").await;
    assert_eq!(called, minutes("10:01", called.len() as i64), "each slot once, in order");
    assert_eq!(world.every_slot_of_face_has_one_answer("a").await, called.len());
    world.end().await;
}

on_both_stores!(
    scenario_16_a_pause_in_the_middle_of_catching_up_loses_no_slot_on_sqlite,
    scenario_16_a_pause_in_the_middle_of_catching_up_loses_no_slot_on_postgres,
    pause_in_a_gap
);

async fn pause_in_a_gap(base: Base) {
    let mut world = World::at(base, "10:00:30").await;
    world.start("a").await;
    world.save(every_minute("all", true)).await;
    world.save(every_minute("none", false)).await;
    world.stop("a").await;
    world.advance_to("10:05:30").await;
    // In the gap itself: the node that comes up finds it paused.
    world.pause("all").await;
    world.pause("none").await;
    world.start("b").await;
    world.advance_to("10:08:30").await;
    let before = world.begun("none").await;
    assert_eq!(world.begun("all").await, Vec::<String>::new(), "nothing begins in a pause");
    world.resume("all").await;
    world.resume("none").await;
    world.advance_to("10:09:30").await;
    assert_eq!(world.begun("all").await, minutes("10:01", 9), "each missed slot fires, in order");
    assert_eq!(world.begun("none").await, [before, minutes("10:09", 1)].concat(), "without catch-up it goes on");
    for name in ["all", "none"] {
        assert_eq!(world.every_slot_of_face_has_one_answer(name).await, 9);
    }
    world.end().await;
}

on_both_stores!(
    scenario_19_clock_changes_are_springs_on_sqlite,
    scenario_19_clock_changes_are_springs_on_postgres,
    clock_changes
);

/// Spring's rule: what the clock jumps over is skipped, what it shows twice fires twice.
async fn clock_changes(base: Base) {
    let mut world = World::at(base, "2024-03-09T00:00:00Z").await;
    world.start("a").await;
    let in_new_york = |name: &str, cron: &str| {
        json!({
            "name": name, "cronExpression": cron, "zoneId": "America/New_York", "startWorkflowRequest": {"name": "report"},
        })
    };
    world.save(in_new_york("gap", "0 30 2 * * *")).await;
    world.save(in_new_york("six", "0 0 6 * * ?")).await;
    world.advance_to("2024-03-12T00:00:00Z").await;
    let expected = ["2024-03-09T07:30:00Z", "2024-03-11T06:30:00Z"];
    assert_eq!(world.begun("gap").await, expected, "not on the day without 02:30");
    let expected = ["2024-03-09T11:00:00Z", "2024-03-10T10:00:00Z", "2024-03-11T10:00:00Z"];
    assert_eq!(world.begun("six").await, expected);
    let records = world.get(&format!("{SCHEDULES}/gap/executions")).await;
    let skipped = records.as_array().expect("it is a list").iter().find(|it| it["state"] == "FAILED");
    assert!(skipped.is_some_and(|it| it["reason"].as_str().is_some_and(|why| why.contains("dst_gap"))), "{records}");
    // The months between have no change of the clock.
    world.stop("a").await;
    world.pause("gap").await;
    world.pause("six").await;
    world.advance_to("2024-11-02T00:00:00Z").await;
    world.save(in_new_york("twice", "0 30 1 * * *")).await;
    world.start("b").await;
    world.advance_to("2024-11-05T00:00:00Z").await;
    let expected = ["2024-11-02T05:30:00Z", "2024-11-03T05:30:00Z", "2024-11-03T06:30:00Z", "2024-11-04T06:30:00Z"];
    assert_eq!(world.begun("twice").await, expected);
    world.every_slot_of_face_has_one_answer("twice").await;
    world.end().await;
}

on_both_stores!(
    a_long_workflow_stands_beside_the_next_one_unless_overlap_says_otherwise_on_sqlite,
    a_long_workflow_stands_beside_the_next_one_unless_overlap_says_otherwise_on_postgres,
    stacking
);

/// Scenario 6 in virtual time: ninety seconds of work every sixty.
async fn stacking(base: Base) {
    let mut world = World::at(base, "10:00:30").await;
    world.start("a").await;
    world.agents.go("reminder", [Way::takes(SECOND * 90)]);
    world.save(every_minute("stacks", false)).await;
    let mut queued = every_minute("queues", false);
    queued["overlap"] = json!("queue");
    world.save(queued).await;
    world.advance_to("10:06").await;
    let began = |name: &str| -> Vec<String> {
        let calls = world.agents.calls();
        let own = calls.iter().filter(|call| call.context.schedule_name.as_deref() == Some(name));
        own.map(|call| call.at.to_string()).collect()
    };
    assert_eq!(began("stacks"), minutes("10:01", 6), "each on time, beside the one before");
    assert!(began("queues").len() < 6, "each waits for the one before");
    world.advance(HOUR).await;
    world.end().await;
}

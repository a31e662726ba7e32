//! §13 c: zones. The server's own clock is UTC throughout.

use punctual_core::journal::Body;
use serde_json::json;

use crate::support::{Base, World, at, fields, on_both_stores};

on_both_stores!(
    a_schedule_in_denver_has_the_right_instants_on_a_server_in_utc_on_sqlite,
    a_schedule_in_denver_has_the_right_instants_on_a_server_in_utc_on_postgres,
    denver
);

async fn denver(base: Base) {
    // Friday 6 March 2026, noon in Denver. The clocks go forward on Sunday.
    let mut world = World::at(base, "2026-03-06T19:00:00Z").await;
    world.start("a").await;
    let schedule = json!({"agentId": "reminder", "timezone": "America/Denver", "scheduleType": "FIXED_TIMES",
        "timesOfDay": ["09:00", "23:30"]});
    let id = world.create(schedule).await;
    world.advance_to("2026-03-09T18:00:00Z").await;
    let expected = [
        "2026-03-07T06:30:00Z",
        "2026-03-07T16:00:00Z",
        "2026-03-08T06:30:00Z",
        "2026-03-08T15:00:00Z",
        "2026-03-09T05:30:00Z",
        "2026-03-09T15:00:00Z",
    ];
    let called: Vec<String> = world.agents.calls().iter().map(|call| call.at.to_string()).collect();
    assert_eq!(called, expected);
    // Its day is Denver's, not the server's.
    let list = world.get("/api/executions/future?dateKey=2026-03-09").await;
    let shown = fields(&list[0], ["dateKey", "plannedHour", "plannedMinute", "timezone", "scheduledAt"]);
    let expected = [json!("2026-03-09"), json!(23), json!(30), json!("America/Denver"), json!("2026-03-10T05:30:00Z")];
    assert_eq!(shown, expected);
    assert_eq!(world.every_slot_has_one_answer(id).await, 6);
    world.end().await;
}

on_both_stores!(
    the_midnight_rebuild_is_at_local_midnight_of_each_zone_on_sqlite,
    the_midnight_rebuild_is_at_local_midnight_of_each_zone_on_postgres,
    local_midnights
);

async fn local_midnights(base: Base) {
    let mut world = World::at(base, "2026-02-17T12:00:00Z").await;
    world.start("a").await;
    let zones = ["America/Denver", "Asia/Kolkata", "Pacific/Chatham", "UTC"];
    let mut schedules = vec![];
    for (zone, agent) in zones.iter().zip(["planner", "reconciler", "reminder", "distiller"]) {
        let schedule =
            json!({"agentId": agent, "timezone": zone, "scheduleType": "FIXED_TIMES", "timesOfDay": ["12:00"]});
        schedules.push(world.create(schedule).await);
    }
    world.advance_to("2026-02-18T12:00:00Z").await;
    let entries = world.entries().await;
    let begun = entries.iter().filter(|entry| at("2026-02-17T12:00:00Z") < entry.at);
    let begun = begun.filter_map(|entry| match &entry.body {
        Body::DayStarted { zone, date } => Some(format!("{} {zone} {date}", entry.at)),
        _ => None,
    });
    let expected = [
        "2026-02-17T10:15:00Z Pacific/Chatham 2026-02-18",
        "2026-02-17T18:30:00Z Asia/Kolkata 2026-02-18",
        "2026-02-18T00:00:00Z UTC 2026-02-18",
        "2026-02-18T07:00:00Z America/Denver 2026-02-18",
        "2026-02-18T10:15:00Z Pacific/Chatham 2026-02-19",
    ];
    // At the beginning it was past midnight in Chatham already.
    assert_eq!(begun.collect::<Vec<_>>(), expected[1..]);
    // A slot of the day is recorded when it is due by its zone's clock, not before and not later.
    let noons = ["2026-02-17T19:00:00Z", "06:30", "2026-02-17T22:15:00Z", "12:00"];
    for (schedule, noon) in schedules.iter().zip(noons) {
        let made = entries.iter().filter_map(|entry| match &entry.body {
            Body::Planned(plan) if plan.schedule == *schedule && !plan.runs.is_empty() => Some(entry.at),
            _ => None,
        });
        assert_eq!(made.max(), Some(at(noon)), "{:?}", world.slots(*schedule).await);
        world.every_slot_has_one_answer(*schedule).await;
    }
    world.end().await;
}

on_both_stores!(
    at_half_past_two_a_clock_that_goes_forward_is_handled_on_sqlite,
    at_half_past_two_a_clock_that_goes_forward_is_handled_on_postgres,
    spring_forward
);

/// On 8 March 2026 the clocks in Denver show 03:00 after 01:59: there is no 02:30. It runs once, when the gap is over; or not
/// at all, with a reason, where the schedule says so.
async fn spring_forward(base: Base) {
    let mut world = World::at(base, "2026-03-07T19:00:00Z").await;
    world.start("a").await;
    let times = |agent: &str, gap: &str| {
        json!({"agentId": agent, "timezone": "America/Denver", "scheduleType": "FIXED_TIMES", "timesOfDay": ["02:30"],
            "dstGap": gap})
    };
    let (after, skip) = (world.create(times("reminder", "after")).await, world.create(times("planner", "skip")).await);
    world.advance_to("2026-03-09T19:00:00Z").await;
    let calls = world.agents.calls();
    let called: Vec<String> = calls.iter().map(|call| format!("{} {}", call.context.agent_id, call.at)).collect();
    let expected = ["reminder 2026-03-08T09:00:00Z", "reminder 2026-03-09T08:30:00Z", "planner 2026-03-09T08:30:00Z"];
    assert_eq!(sorted(&called), sorted(&expected.map(str::to_owned)));
    let skipped = world.past(skip).await;
    assert_eq!(fields(&skipped[0], ["resultStatus", "errorCode"]), ["SKIPPED", "dst_gap"]);
    for id in [after, skip] {
        assert_eq!(world.every_slot_has_one_answer(id).await, 2);
    }
    world.end().await;
}

on_both_stores!(
    at_half_past_two_a_clock_that_goes_back_is_handled_on_sqlite,
    at_half_past_two_a_clock_that_goes_back_is_handled_on_postgres,
    fall_back
);

/// On 1 November 2026 the clocks in Denver show 01:00 after 01:59. 02:30 comes once, an hour later than the night before by
/// UTC; 01:30 comes twice, and runs once unless the schedule wants both.
async fn fall_back(base: Base) {
    let mut world = World::at(base, "2026-10-31T18:00:00Z").await;
    world.start("a").await;
    let times = |agent: &str, time: &str, repeat: &str| {
        json!({"agentId": agent, "timezone": "America/Denver", "scheduleType": "FIXED_TIMES", "timesOfDay": [time],
            "dstRepeat": repeat})
    };
    let half_past_two = world.create(times("reminder", "02:30", "once")).await;
    let once = world.create(times("planner", "01:30", "once")).await;
    let both = world.create(times("distiller", "01:30", "both")).await;
    world.advance_to("2026-11-02T18:00:00Z").await;
    let ran = async |id| -> Vec<String> {
        let runs = world.runs(id).await;
        runs.iter().filter(|run| run.has_started).map(|run| run.scheduled_at.to_string()).collect()
    };
    assert_eq!(ran(half_past_two).await, ["2026-11-01T09:30:00Z", "2026-11-02T09:30:00Z"]);
    assert_eq!(ran(once).await, ["2026-11-01T07:30:00Z", "2026-11-02T08:30:00Z"]);
    assert_eq!(ran(both).await, ["2026-11-01T07:30:00Z", "2026-11-01T08:30:00Z", "2026-11-02T08:30:00Z"]);
    assert_eq!(world.agents.calls().len(), 7);
    for id in [half_past_two, once, both] {
        world.every_slot_has_one_answer(id).await;
    }
    world.end().await;
}

fn sorted(texts: &[String]) -> Vec<String> {
    let mut sorted = texts.to_vec();
    sorted.sort();
    sorted
}

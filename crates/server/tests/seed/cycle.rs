//! §13 b: the whole way round, over HTTP.

use std::collections::BTreeSet;
use std::sync::{Arc, Barrier};

use axum::http::StatusCode;
use punctual_core::{NodeId, RunId};
use punctual_engine::claimer::{Claimer, Free};
use punctual_engine::holdings::Hands;
use punctual_store::Store;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::{Base, MINUTE, SECOND, Stepped, Way, World, at, field, fields, on_both_stores};

on_both_stores!(
    full_cycle_from_a_schedule_to_a_recorded_success_on_sqlite,
    full_cycle_from_a_schedule_to_a_recorded_success_on_postgres,
    full_cycle
);

async fn full_cycle(base: Base) {
    let mut world = World::at(base, "08:00").await;
    world.start("a").await;
    world.agents.go("thread-extractor", [Way::takes(SECOND * 30)]);
    let schedule = json!({"agentId": "thread-extractor", "scheduleType": "FIXED_TIMES", "timesOfDay": ["09:00"],
        "prompt": "read the threads"});
    // The schedule is there, with the time of its next run.
    let created = world.post("/api/schedules", schedule, StatusCode::CREATED).await;
    assert_eq!(fields(&created, ["version", "nextExecutionAt"]), [json!(1), json!("2026-02-18T09:00:00Z")]);
    // Its item is there.
    let list = world.get("/api/executions/future?agentId=thread-extractor").await;
    assert_eq!(field(&list, "execStatus"), ["READY"]);
    let execution = &list[0]["executionId"];
    // Nobody touches it before its time.
    world.advance_to("08:59:59").await;
    assert_eq!(world.agents.calls().len(), 0);
    // It is claimed and carried out.
    world.advance_to("09:00").await;
    let list = world.get("/api/executions/future").await;
    assert_eq!(fields(&list[0], ["execStatus", "lockOwner", "attempt"]), [json!("RUNNING"), json!("a"), json!(1)]);
    let calls = world.agents.calls();
    let [call] = &calls[..] else { panic!("it was called once: {calls:?}") };
    assert_eq!((call.at, call.context.prompt.as_str(), call.context.manual), (at("09:00"), "read the threads", false));
    // What became of it is recorded.
    world.advance_to("09:01").await;
    assert_eq!(world.get("/api/executions/future").await, json!([]));
    let past = world.get("/api/executions/past?resultStatus=SUCCESS").await;
    assert_eq!(past["totalElements"], 1);
    let item = &past["content"][0];
    assert_eq!(&item["executionId"], execution);
    assert_eq!(fields(item, ["resultStatus", "durationMs"]), [json!("SUCCESS"), json!(30_000)]);
    world.end().await;
}

on_both_stores!(
    a_manual_trigger_is_picked_up_within_five_seconds_on_sqlite,
    a_manual_trigger_is_picked_up_within_five_seconds_on_postgres,
    manual_trigger
);

async fn manual_trigger(base: Base) {
    let mut world = World::as_in_production(base, "09:00").await;
    // It hears nothing of what is asked for here: only its own look, every five seconds, can find it.
    world.start_elsewhere("a").await;
    world.advance(SECOND * 2).await;
    let trigger = json!({"agentId": "reconciler", "projectId": "xyz"});
    let asked = world.post("/api/executions/trigger", trigger.clone(), StatusCode::ACCEPTED).await;
    let names = ["execStatus", "immediate", "plannedHour", "scheduledAt", "projectId"];
    let expected = [json!("READY"), json!(true), json!(-1), json!("2026-02-18T09:00:02Z"), json!("xyz")];
    assert_eq!(fields(&asked, names), expected);
    world.settle().await;
    assert_eq!(world.agents.calls().len(), 0, "nobody has told it");
    world.advance(SECOND * 5).await;
    let calls = world.agents.calls();
    let [call] = &calls[..] else { panic!("it was found: {calls:?}") };
    assert_eq!((call.context.run_id.to_string(), call.context.manual), (text(&asked["executionId"]), true));
    world.kill("a").await;

    // The node that has the API is told, and begins at once.
    world.start("b").await;
    let asked = world.post("/api/executions/trigger", trigger, StatusCode::ACCEPTED).await;
    world.settle().await;
    let calls = world.agents.calls();
    assert_eq!((calls.len(), calls[1].at), (2, world.now()));
    assert_eq!(calls[1].context.run_id.to_string(), text(&asked["executionId"]));
    let past = world.get("/api/executions/past?agentId=reconciler").await;
    assert_eq!(field(&past["content"], "resultStatus"), ["SUCCESS"; 2]);
    world.end().await;
}

fn text(value: &Value) -> String {
    value.as_str().expect("it is a text").to_owned()
}

on_both_stores!(
    a_schedule_update_cancels_the_old_times_and_creates_the_new_on_sqlite,
    a_schedule_update_cancels_the_old_times_and_creates_the_new_on_postgres,
    schedule_update
);

async fn schedule_update(base: Base) {
    let mut world = World::at(base, "08:00").await;
    world.start("a").await;
    let schedule = json!({"agentId": "reminder", "scheduleType": "FIXED_TIMES", "timesOfDay": ["09:00", "17:00"]});
    let id = world.create(schedule).await;
    let before = world.get("/api/executions/future").await;
    let edited = world.edit(id, json!({"timesOfDay": ["11:00", "17:00", "19:00"]})).await;
    assert_eq!(fields(&edited, ["version", "nextExecutionAt"]), [json!(2), json!("2026-02-18T11:00:00Z")]);
    let after = world.get("/api/executions/future").await;
    assert_eq!(field(&after, "plannedHour"), [11, 17, 19].map(|hour| json!(hour)));
    // What stays is the same item, under the same key.
    for name in ["executionId", "idempotencyKey"] {
        assert_eq!(after[1][name], before[1][name]);
    }
    // Nothing of what is gone is ever called, and everything else once.
    world.advance_to("23:00").await;
    let called: Vec<String> = world.agents.calls().iter().map(|call| call.at.to_string()).collect();
    assert_eq!(called, ["2026-02-18T11:00:00Z", "2026-02-18T17:00:00Z", "2026-02-18T19:00:00Z"]);
    assert_eq!(world.every_slot_has_one_answer(id).await, 3);
    world.end().await;
}

on_both_stores!(
    a_failure_is_retried_and_succeeds_on_attempt_2_on_sqlite,
    a_failure_is_retried_and_succeeds_on_attempt_2_on_postgres,
    failure_and_retry
);

async fn failure_and_retry(base: Base) {
    let mut world = World::at(base, "08:00").await;
    world.start("a").await;
    world.agents.go("reminder", [Way::Fails(SECOND * 5), Way::takes(SECOND * 7)]);
    let schedule = json!({"agentId": "reminder", "scheduleType": "FIXED_TIMES", "timesOfDay": ["09:00"]});
    let id = world.create(schedule).await;
    let run = world.run_at(id, "09:00").await.id;
    let mut seen = vec![];
    // The rest between two tries is a minute when nobody says otherwise.
    for moment in ["08:59:59", "09:00:00", "09:00:05", "09:01:04", "09:01:05"] {
        world.advance_to(moment).await;
        seen.push(fields(&world.shown(run).await, ["execStatus", "attempt"]));
    }
    let (ready, running, failed) = (json!("READY"), json!("RUNNING"), json!("FAILED_RETRYABLE"));
    let expected = [(&ready, 0), (&running, 1), (&failed, 1), (&failed, 1), (&running, 2)];
    assert_eq!(seen, expected.map(|(status, attempt)| [status.clone(), json!(attempt)]));
    world.advance_to("09:01:12").await;
    let past = world.past(id).await;
    let told: Vec<[Value; 3]> = past.iter().map(|it| fields(it, ["resultStatus", "attempt", "durationMs"])).collect();
    assert_eq!(told, [[json!("FAIL"), json!(1), json!(5_000)], [json!("SUCCESS"), json!(2), json!(7_000)]]);
    let calls = world.agents.calls();
    assert_eq!(calls[0].context.idempotency_key, calls[1].context.idempotency_key, "a target knows it again");
    assert_eq!(world.every_slot_has_one_answer(id).await, 1);
    world.end().await;
}

on_both_stores!(
    of_two_executors_that_race_for_an_item_only_one_wins_on_sqlite,
    of_two_executors_that_race_for_an_item_only_one_wins_on_postgres,
    concurrent_claims
);

/// Two executors on two threads, on PostgreSQL with two nodes in two processes as far as the store can tell. On SQLite one
/// server has the store: there both are of one node, which may claim from as many threads as it likes.
async fn concurrent_claims(base: Base) {
    const RUNS: usize = 120;
    let world = World::at(base, "09:00").await;
    let stores = [Arc::clone(&world.store), world.open_again()];
    let is_exclusive = world.store.is_exclusive();
    let nodes = [1, if is_exclusive { 1 } else { 2 }].map(|number| NodeId(Uuid::from_u128(number)));
    for node in nodes {
        let sign = world.settings.sign(node, world.now(), 0);
        world.store.join(&sign).await.unwrap();
        world.store.take_planner(&sign).await.unwrap();
    }
    let mut asked = BTreeSet::new();
    for number in 0..RUNS {
        // Each is alone in its project, so that each can be at work beside all others.
        let schedule = json!({"agentId": "reminder", "scheduleType": "IMMEDIATE", "projectId": format!("p{number}"),
            "executorPolicy": {"maxConcurrent": 1_000}});
        let id = world.create(schedule).await;
        asked.insert(world.runs(id).await[0].id);
    }
    world.advance(MINUTE).await;
    let (now, barrier) = (world.now(), Barrier::new(2));
    let won: Vec<Vec<RunId>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2)
            .map(|index| {
                let claimer =
                    Claimer::new(Arc::<dyn Store>::clone(&stores[index]), Arc::clone(&world.settings), nodes[index]);
                let barrier = &barrier;
                scope.spawn(move || {
                    let (mut won, hands) = (vec![], Hands::default());
                    barrier.wait();
                    // As many times as it takes if each time brings one: both ask for the same ones all the time.
                    for _ in 0..RUNS {
                        let round = Stepped::new(claimer.tick(now, Free::each(1), &hands)).finish().unwrap();
                        won.extend(round.started.iter().map(|started| started.run.id));
                    }
                    won
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(won.iter().map(Vec::len).sum::<usize>(), RUNS, "each was won once");
    assert_eq!(won.iter().flatten().copied().collect::<BTreeSet<_>>(), asked);
    for (node, won) in nodes.iter().zip(&won) {
        for run in won {
            let run = world.store.run(*run).await.unwrap().expect("it is there");
            assert_eq!((run.owner(), run.state.name()), (Some(*node), "running"));
        }
    }
    world.end().await;
}

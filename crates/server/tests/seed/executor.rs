//! §13 a, the executor: claims, starts, ends, tries again, and never more at once than it may.

use std::sync::Arc;

use punctual_core::NodeId;
use punctual_core::journal::Body;
use punctual_core::plan::Limits;
use punctual_core::run::{Outcome, Report, RunState};
use punctual_store::{ClaimRequest, Decision, RunWritten, Settlement};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::{Base, MINUTE, SECOND, Way, World, field, fields, on_both_stores};

fn once(agent: &str, policy: Value) -> Value {
    json!({"agentId": agent, "scheduleType": "IMMEDIATE", "executorPolicy": policy})
}

/// A node of which there are only its calls to the store: it can claim, and be gone.
async fn join(world: &World, number: u128) -> ClaimRequest {
    let (node, now) = (NodeId(Uuid::from_u128(number)), world.now());
    let sign = world.settings.sign(node, now, 0);
    world.store.join(&sign).await.unwrap();
    world.store.take_planner(&sign).await.unwrap();
    let agents = Arc::clone(&world.settings.roster.now().names);
    ClaimRequest { node, now, limit: 10, agents, limits: Arc::new(Limits::default()) }
}

on_both_stores!(a_claim_is_atomic_on_sqlite, a_claim_is_atomic_on_postgres, atomic_claim);

async fn atomic_claim(base: Base) {
    let world = World::at(base, "09:00").await;
    let request = join(&world, 1).await;
    let id = world.create(once("reminder", json!({}))).await;
    let ready = world.runs(id).await.remove(0);
    assert_eq!(world.shown(ready.id).await["execStatus"], "READY");
    let claimed = world.store.claim(&request).await.unwrap().runs;
    let [claimed] = &claimed[..] else { panic!("one was ready: {claimed:?}") };
    assert_eq!((claimed.run.id, claimed.run.owner()), (ready.id, Some(request.node)));
    // All of it is there at once: the state, the owner, the lease, the attempt and the epoch.
    let shown = world.shown(ready.id).await;
    let expected = [json!("PENDING"), json!("server"), json!("2026-02-18T10:00:00Z"), json!(1)];
    assert_eq!(fields(&shown, ["execStatus", "lockOwner", "leaseUntil", "attempt"]), expected);
    assert!(ready.epoch() < claimed.run.epoch());
    // Whoever comes second gets nothing.
    assert_eq!(world.store.claim(&request).await.unwrap().runs, []);
    let settlement = |epoch| vec![Settlement { run: ready.id, epoch, decision: Decision::Start }];
    let stale = world.store.settle(world.now(), settlement(ready.epoch())).await.unwrap();
    assert_eq!(stale, [RunWritten::Stale], "nobody starts what they have not claimed");
    let started = world.store.settle(world.now(), settlement(claimed.run.epoch())).await.unwrap();
    assert!(matches!(started[..], [RunWritten::Done(RunState::Running { .. })]), "{started:?}");
    let claims = world.entries().await.into_iter().filter(|entry| matches!(entry.body, Body::RunsClaimed { .. }));
    assert_eq!(claims.count(), 1);
    world.end().await;
}

on_both_stores!(
    running_is_set_before_the_agent_is_called_on_sqlite,
    running_is_set_before_the_agent_is_called_on_postgres,
    running_first
);

async fn running_first(base: Base) {
    let mut world = World::at(base, "09:00").await;
    world.start("a").await;
    world.agents.go("reminder", [Way::Fails(SECOND), Way::takes(SECOND)]);
    let id = world.create(once("reminder", json!({}))).await;
    world.advance(MINUTE * 2).await;
    let calls = world.agents.calls();
    assert_eq!(calls.len(), 2, "it was tried twice");
    for call in &calls {
        let Some(RunState::Running { tally, .. }) = call.found else { panic!("the store had {:?}", call.found) };
        assert_eq!(tally.attempt, call.context.attempt);
    }
    assert_eq!(world.runs(id).await[0].state.name(), "succeeded");
    world.end().await;
}

on_both_stores!(
    a_success_is_recorded_with_the_right_metrics_on_sqlite,
    a_success_is_recorded_with_the_right_metrics_on_postgres,
    success_recorded
);

async fn success_recorded(base: Base) {
    let mut world = World::at(base, "09:00").await;
    world.start("a").await;
    let map = |value: Value| value.as_object().expect("it is an object").clone();
    let refs = json!({"threadIds": ["t1"], "ticketIds": ["k1", "k2"], "checklistIds": [], "reminderIds": ["r1"],
        "blindspotIds": ["b1"], "memoryKeys": ["m"]});
    let llm = json!({"provider": "anthropic", "model": "claude-sonnet-4-5-20250929", "promptTokens": 1200,
        "completionTokens": 300, "totalTokens": 1500, "llmCalls": 4, "estimatedCostUsd": 0.0125});
    let tools = json!({"totalCalls": 7, "readOnlyCalls": 4, "writeCalls": 2, "execCalls": 1, "failedCalls": 1});
    let report = Report {
        summary: Some("two tickets, one reminder".to_owned()),
        refs: map(refs.clone()),
        llm: map(llm.clone()),
        tools: map(tools.clone()),
        ..Report::default()
    };
    world.agents.go("reconciler", [Way::Succeeds(SECOND * 45, Box::new(report))]);
    let schedule = json!({"agentId": "reconciler", "scheduleType": "FIXED_TIMES", "timesOfDay": ["10:00"],
        "projectScope": "PROJECT", "projectId": "xyz"});
    let id = world.create(schedule).await;
    world.advance_to("10:00:44").await;
    assert_eq!(world.past(id).await.len(), 0, "it is not over");
    let run = world.run_at(id, "10:00").await;
    world.advance_to("10:00:45").await;
    let past = world.past(id).await;
    let [item] = &past[..] else { panic!("one has ended: {past:?}") };
    let one = world.get(&format!("/api/executions/past/{}", item["pastExecutionId"].as_str().unwrap())).await;
    for item in [item, &one] {
        let names = ["executionId", "agentId", "projectId", "scheduleId", "resultStatus", "responseSummary"];
        let (run, id) = (run.id.to_string(), id.to_string());
        assert_eq!(fields(item, names), [&run, "reconciler", "xyz", &id, "SUCCESS", "two tickets, one reminder"]);
        let times = ["2026-02-18T10:00:00Z", "2026-02-18T10:00:00Z", "2026-02-18T10:00:45Z"];
        assert_eq!(fields(item, ["scheduledAt", "startedAt", "endedAt"]), times);
        assert_eq!(fields(item, ["durationMs", "attempt"]), [json!(45_000), json!(1)]);
        assert_eq!(
            fields(item, ["responseRefs", "llmMetrics", "toolCallSummary"]),
            [&refs, &llm, &tools].map(Clone::clone)
        );
    }
    // It has left the day's queue.
    assert_eq!(world.get("/api/executions/future").await, json!([]));
    let metrics = world.get("/api/executions/metrics").await;
    let expected = json!({"totalRuns": 1, "successCount": 1, "failCount": 0, "totalAttempts": 1, "avgDurationMs": 45_000, "totalTokens": 1500,
        "estimatedCostUsd": 0.0125, "runsByAgent": {"reconciler": 1}});
    assert_eq!(metrics, expected);
    world.end().await;
}

on_both_stores!(
    a_failure_counts_the_attempt_and_backs_off_as_failed_retryable_on_sqlite,
    a_failure_counts_the_attempt_and_backs_off_as_failed_retryable_on_postgres,
    failure_backs_off
);

async fn failure_backs_off(base: Base) {
    let mut world = World::at(base, "09:00").await;
    world.start("a").await;
    world.agents.go("reminder", [Way::Fails(SECOND * 10)]);
    let id = world.create(once("reminder", json!({"maxAttempts": 3, "retryBackoffMs": 90_000}))).await;
    let run = world.runs(id).await[0].id;
    assert_eq!(fields(&world.shown(run).await, ["execStatus", "attempt"]), [json!("RUNNING"), json!(1)]);
    let names = ["execStatus", "attempt", "nextAttemptAt", "lockOwner", "leaseUntil"];
    let backing_off =
        |attempt: u32, at: &str| [json!("FAILED_RETRYABLE"), json!(attempt), json!(at), Value::Null, Value::Null];
    world.advance_to("09:00:10").await;
    assert_eq!(fields(&world.shown(run).await, names), backing_off(1, "2026-02-18T09:01:40Z"));
    world.advance_to("09:01:39").await;
    assert_eq!(world.agents.calls().len(), 1, "not before its rest is over");
    world.advance_to("09:01:40").await;
    assert_eq!(fields(&world.shown(run).await, ["execStatus", "attempt"]), [json!("RUNNING"), json!(2)]);
    world.advance_to("09:01:50").await;
    let shown = world.shown(run).await;
    assert_eq!(fields(&shown, ["execStatus", "attempt"]), [json!("FAILED_RETRYABLE"), json!(2)]);
    let past = world.past(id).await;
    let told: Vec<[Value; 3]> = past.iter().map(|it| fields(it, ["resultStatus", "attempt", "errorCode"])).collect();
    let told_by = |attempt: u32| [json!("FAIL"), json!(attempt), json!("TOOL_FAILURE")];
    assert_eq!(told, [told_by(1), told_by(2)]);
    world.end().await;
}

on_both_stores!(
    max_attempts_exceeded_ends_as_cancelled_on_sqlite,
    max_attempts_exceeded_ends_as_cancelled_on_postgres,
    attempts_exceeded
);

async fn attempts_exceeded(base: Base) {
    let mut world = World::at(base, "09:00").await;
    world.start("a").await;
    world.agents.go("reminder", [Way::Fails(SECOND)]);
    let id = world.create(once("reminder", json!({"maxAttempts": 2, "retryBackoffMs": 60_000}))).await;
    world.advance_to("23:00").await;
    assert_eq!(world.agents.calls().len(), 2, "two tries, and no more");
    let run = world.runs(id).await.remove(0);
    assert!(matches!(run.state, RunState::Finished { outcome: Outcome::Failed(_), .. }), "{:?}", run.state);
    // The executions face has one word for what is over without success.
    let shown = world.shown(run.id).await;
    assert_eq!(fields(&shown, ["execStatus", "attempt", "maxAttempts"]), [json!("CANCELLED"), json!(2), json!(2)]);
    let results: Vec<Value> = world.past(id).await.iter().map(|it| it["resultStatus"].clone()).collect();
    assert_eq!(results, ["FAIL", "FAIL"]);
    world.end().await;
}

on_both_stores!(
    the_cap_of_an_agent_is_respected_on_sqlite,
    the_cap_of_an_agent_is_respected_on_postgres,
    cap_respected
);

async fn cap_respected(base: Base) {
    let mut world = World::at(base, "09:00").await;
    world.start("a").await;
    world.agents.go("distiller", [Way::takes(MINUTE * 10)]);
    for project in ["p1", "p2", "p3", "p4", "p5"] {
        let mut schedule = once("distiller", json!({"maxConcurrent": 2}));
        schedule["projectId"] = json!(project);
        world.create(schedule).await;
    }
    // Another agent is not held up by it.
    world.create(once("reminder", json!({}))).await;
    assert_eq!(world.agents.calls().len(), 3);
    let mut seen = vec![];
    for _ in 0..3 {
        let list = world.get("/api/executions/future").await;
        let statuses = field(&list, "execStatus");
        let count = |status: &str| statuses.iter().filter(|it| **it == status).count();
        seen.push((count("RUNNING"), count("READY")));
        world.advance(MINUTE * 10).await;
    }
    assert_eq!(seen, [(2, 3), (2, 1), (1, 0)]);
    // At every commit, not only when the test looked.
    let (mut at_work, mut most) = (0_i32, 0);
    for entry in world.entries().await {
        match &entry.body {
            Body::RunsStarted { runs } => at_work += runs.len() as i32,
            Body::AttemptEnded(attempt) => at_work -= i32::from(attempt.started_at.is_some()),
            _ => continue,
        }
        most = most.max(at_work);
    }
    assert_eq!((at_work, most), (0, 3), "two of the one and one of the other");
    world.end().await;
}

on_both_stores!(
    stale_lease_recovery_resets_stuck_items_on_sqlite,
    stale_lease_recovery_resets_stuck_items_on_postgres,
    stale_lease
);

/// The seed gives a stale lease 30 seconds of grace. Ours has one second, since whoever cannot renew stops its work before the
/// lease ends. Where one server has the store for itself, the next one proves the last one dead and need not wait.
async fn stale_lease(base: Base) {
    let mut world = World::as_in_production(base, "09:00").await;
    let is_exclusive = world.store.is_exclusive();
    world.agents.go("reminder", [Way::Stays, Way::takes(SECOND)]);
    let stuck = {
        // One that was claimed, and whose node is gone before it began.
        let request = join(&world, 1).await;
        let id = world.create(once("planner", json!({}))).await;
        world.store.claim(&request).await.unwrap();
        world.runs(id).await[0].id
    };
    assert_eq!(world.shown(stuck).await["execStatus"], "PENDING");
    if is_exclusive {
        world.start("a").await;
    } else {
        world.start_elsewhere("a").await;
        world.advance(SECOND * 30).await;
        assert_eq!(world.shown(stuck).await["execStatus"], "PENDING", "its lease has not ended");
        world.advance(SECOND * 10).await;
    }
    let calls = world.agents.calls_for(stuck);
    let attempts: Vec<u32> = calls.iter().map(|call| call.context.attempt).collect();
    assert_eq!(attempts, [2], "it is tried once, and the claim stays counted: what kills its node each time must end");

    // One that is at work when its node dies.
    let id = world.create(once("reminder", json!({}))).await;
    world.advance(SECOND * 5).await;
    let run = world.runs(id).await[0].id;
    assert_eq!(fields(&world.shown(run).await, ["execStatus", "lockOwner"]), ["RUNNING", "a"]);
    if !is_exclusive {
        world.start("b").await;
        world.advance(SECOND * 20).await;
    }
    world.kill("a").await;
    let died_at = world.now();
    if is_exclusive {
        world.start("b").await;
    } else {
        world.advance(SECOND * 19).await;
        assert_eq!(world.shown(run).await["lockOwner"], "a", "its lease has not ended");
        world.advance(SECOND * 20).await;
    }
    let calls = world.agents.calls_for(run);
    let [first, second] = &calls[..] else { panic!("it was tried again: {calls:?}") };
    assert_eq!((first.context.attempt, second.context.attempt), (1, 2));
    assert!(first.context.epoch < second.context.epoch);
    assert!(died_at <= second.at);
    assert_eq!(first.context.idempotency_key, second.context.idempotency_key);
    world.advance(SECOND * 5).await;
    let told: Vec<[Value; 2]> =
        world.past(id).await.iter().map(|it| fields(it, ["resultStatus", "errorCode"])).collect();
    assert_eq!(told, [[json!("FAIL"), json!("UNKNOWN")], [json!("SUCCESS"), Value::Null]]);
    world.end().await;
}

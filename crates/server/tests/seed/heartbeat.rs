//! §13 a, the heartbeat: a lease is renewed while its node lives, and not after.
//!
//! The seed renews a lease of 90 seconds for each run every 30 seconds. Ours is a node's, lasts 30 seconds and is renewed three
//! times in that time: the design and the table of failures win over the seed's numbers, the rule is the same.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::support::{Base, SECOND, Way, World, field, fields, on_both_stores};

on_both_stores!(
    a_heartbeat_renews_the_lease_every_third_of_it_on_sqlite,
    a_heartbeat_renews_the_lease_every_third_of_it_on_postgres,
    heartbeat
);

async fn heartbeat(base: Base) {
    let mut world = World::as_in_production(base, "09:00").await;
    world.start("a").await;
    if !world.store.is_exclusive() {
        // Somebody who would take the run as soon as its lease has ended.
        world.start_elsewhere("b").await;
    }
    world.agents.go("reminder", [Way::Stays]);
    let id = world.create(json!({"agentId": "reminder", "scheduleType": "IMMEDIATE"})).await;
    let run = world.runs(id).await.remove(0);
    let lease_until = async || world.shown(run.id).await["leaseUntil"].clone();
    let in_seconds = |seconds: i32| json!((world.now() + SECOND * seconds).to_string());
    assert_eq!(lease_until().await, in_seconds(30));
    // Ten leases long.
    for _ in 0..30 {
        world.advance(SECOND * 9).await;
        assert_eq!(lease_until().await, in_seconds(21), "not before its time");
        world.advance(SECOND).await;
        assert_eq!(lease_until().await, in_seconds(30), "a third of it later");
    }
    assert_eq!(world.runs(id).await[0], run, "it is the same attempt of the same owner, under the same epoch");
    assert_eq!(world.agents.calls().len(), 1);
    world.end().await;
}

on_both_stores!(
    the_heartbeat_stops_on_cancellation_on_sqlite,
    the_heartbeat_stops_on_cancellation_on_postgres,
    heartbeat_stops
);

/// A run that is called off is under no lease any more, while the other of the same node is; when the node itself is asked to
/// stop, nothing is renewed at all.
async fn heartbeat_stops(base: Base) {
    let mut world = World::as_in_production(base, "09:00").await;
    world.start("a").await;
    world.agents.go("reminder", [Way::Stays]);
    world.agents.go("planner", [Way::Stays]);
    let id = world.create(json!({"agentId": "reminder", "scheduleType": "IMMEDIATE"})).await;
    let other = world.create(json!({"agentId": "planner", "scheduleType": "IMMEDIATE"})).await;
    let (run, other) = (world.runs(id).await[0].id, world.runs(other).await[0].id);
    world.advance(SECOND * 10).await;
    let names = ["execStatus", "lockOwner", "leaseUntil"];
    let running = |until: &str| [json!("RUNNING"), json!("a"), json!(until)];
    assert_eq!(fields(&world.shown(run).await, names), running("2026-02-18T09:00:40Z"));
    let path = format!("/api/executions/future/{run}/cancel");
    world.post(&path, json!({}), StatusCode::CONFLICT).await;
    assert_eq!(fields(&world.shown(run).await, names), running("2026-02-18T09:00:40Z"), "not without force");
    world.post(&format!("{path}?force=true"), json!({}), StatusCode::ACCEPTED).await;
    world.settle().await;
    assert_eq!(fields(&world.shown(run).await, names), [json!("CANCELLED"), Value::Null, Value::Null]);
    world.advance(SECOND * 60).await;
    assert_eq!(fields(&world.shown(run).await, names), [json!("CANCELLED"), Value::Null, Value::Null]);
    let shown = world.shown(other).await;
    assert_eq!((&shown["execStatus"], &shown["lockOwner"]), (&json!("RUNNING"), &json!("a")));
    let leases = field(&world.get("/api/nodes").await, "leaseUntil");
    assert_eq!(leases, [shown["leaseUntil"].clone()]);

    world.stop("a").await;
    assert_eq!(world.store.nodes().await.unwrap(), [], "it has said that it is gone");
    world.advance(SECOND * 60).await;
    assert_eq!(world.store.nodes().await.unwrap(), []);
    let shown = world.shown(other).await;
    assert_eq!(fields(&shown, ["lockOwner", "leaseUntil"]), [Value::Null, Value::Null]);
    assert_eq!(world.agents.calls().len(), 2, "nobody is there to try it again");
    world.end().await;
}

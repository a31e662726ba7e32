//! Rows that no edge lets in any more, and that are there: a node runs them, and another takes them over when it dies.

use std::sync::Arc;

use jiff::Timestamp;
use punctual_core::run::{Run, Terms};
use punctual_core::schedule::Schedule;
use punctual_core::time::SlotKey;
use punctual_core::{RunId, ScheduleId};
use punctual_store::Store;
use punctual_store::postgres::PostgresStore;
use punctual_store::sqlite::SqliteStore;
use serde_json::json;
use uuid::Uuid;

use super::{CONFIG, Scene};
use crate::client::Client;

const SLOW: &str = r#"
[agents.slow]
runner = "process"
command = ["sh", "-c", "echo >> effects; sleep 60"]
grace = "1s"
"#;

/// Writes a run past every edge.
async fn ask(store: &dyn Store, agent: &str, project: &str) -> RunId {
    let now: Timestamp = "2026-01-05T09:00:00Z".parse().unwrap();
    let id = RunId(Uuid::now_v7());
    let schedule: Schedule = serde_json::from_value(json!({
        "id": ScheduleId(Uuid::nil()), "version": 1, "work": {"agent": {"agent": agent}}, "zone": "UTC",
        "trigger": {"cron": [{"expression": "0 9 * * *"}]}, "cursor": {"at": now},
        "policy": {"overlap": "allow", "max_delay": "none"},
    }))
    .unwrap();
    let terms = Terms { project: Some(project.to_owned()), ..Terms::of(&schedule) };
    let run = Run::asked(id, None, SlotKey::manual(id), now, Arc::new(terms));
    assert!(store.ask(now, run, None).await.unwrap());
    id
}

fn a_project_that_cannot_be_kept_holds_up_nobody(scene: &Scene, open: impl FnOnce() -> Box<dyn Store>) {
    let place = &scene.place;
    // The first start makes the database and its token.
    let server = place.up();
    scene.runs_on(&Client::of(place));
    assert!(server.stop().success());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let store = open();
    let (quick, slow) = runtime
        .block_on(async { (ask(&*store, "reporter", "a\0b").await, ask(&*store, "slow", &"c\0".repeat(4_000)).await) });
    drop(store);
    std::fs::remove_file(place.path("log")).unwrap();
    let server = place.up();
    let api = Client::of(place);
    let past = format!("/api/executions/past?executionId={quick}");
    place.until("the quick one ends", |_| api.get(&past).json(200)["content"][0]["resultStatus"] == "SUCCESS");
    place.until("the slow one is at work", |place| place.effects().len() == 1);
    server.kill();
    std::fs::remove_file(place.path("log")).unwrap();
    let server = place.up();
    let api = Client::of(place);
    place.until("it is taken over", |place| place.effects().len() == 2);
    api.post(&format!("/api/executions/future/{slow}/cancel?force=true"), json!(null)).json(202);
    let past = format!("/api/executions/past?executionId={slow}");
    place.until("it ends", |_| api.get(&past).json(200)["content"][0]["resultStatus"] == "CANCELLED");
    scene.is_well(server, &api);
}

fn config() -> String {
    format!("{CONFIG}{SLOW}").replace("[engine]\n", "[engine]\nlease_duration_seconds = 3\n")
}

#[test]
fn a_project_that_cannot_be_kept_holds_up_nobody_on_sqlite() {
    let scene = Scene::on_sqlite("hostile-rows", &config());
    let file = scene.place.path("punctual.db");
    a_project_that_cannot_be_kept_holds_up_nobody(&scene, || Box::new(SqliteStore::open(file).unwrap()));
}

#[test]
fn a_project_that_cannot_be_kept_holds_up_nobody_on_postgres() {
    let scene = Scene::on_postgres("hostile-rows", &config());
    let address = scene.postgres.as_ref().unwrap().address();
    a_project_that_cannot_be_kept_holds_up_nobody(&scene, || Box::new(PostgresStore::open(&address).unwrap()));
}

//! What administrators do to this node.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use punctual_core::journal::RecordState;
use punctual_store::RecordFilter;
use serde_json::{Value, json};

use crate::app::App;
use crate::auth::Caller;
use crate::error::ApiError;

/// How many records are named.
const SAMPLED: usize = 10;

/// Have this node begin nothing more, of any face, until it is resumed or started again. What is at work goes on, and other nodes do
/// too.
#[utoipa::path(get, path = "/api/scheduler/admin/pause", tag = "conductor", responses((status = 200, body = Object)))]
pub(crate) async fn pause(State(app): State<App>, caller: Caller) -> Json<Value> {
    tracing::warn!("paused by token {}: this node begins nothing until it is resumed", caller.token.name);
    app.nudges.pause();
    Json(json!({"status": "done"}))
}

/// Let this node begin runs again.
#[utoipa::path(get, path = "/api/scheduler/admin/resume", tag = "conductor", responses((status = 200, body = Object)))]
pub(crate) async fn resume(State(app): State<App>, caller: Caller) -> Json<Value> {
    tracing::info!("resumed by token {}", caller.token.name);
    app.nudges.resume();
    Json(json!({"status": "done"}))
}

/// Look again for runs that are being started, and say which they are. None of them needs it: what a node leaves behind is taken up
/// by another.
#[utoipa::path(get, path = "/api/scheduler/admin/requeue", tag = "conductor", responses((status = 200, body = Object)))]
pub(crate) async fn requeue(
    State(app): State<App>,
    _: Caller,
) -> Result<Json<BTreeMap<&'static str, Value>>, ApiError> {
    let states = Some(vec![RecordState::Polled]);
    let pending = app.store.records(&RecordFilter { states, limit: SAMPLED, ..RecordFilter::default() }).await?;
    app.nudges.schedules_changed();
    let ids: Vec<String> = pending.records.iter().filter_map(|item| Some(item.run?.to_string())).collect();
    Ok(Json(BTreeMap::from([("recordIds.size", json!(pending.total)), ("sampleIds", json!(ids))])))
}

/// Nothing: some clients ask it to see whether they are answered in time.
#[utoipa::path(get, path = "/api/scheduler/test/timeout", tag = "conductor", responses((status = 200, description = "In time")))]
pub(crate) async fn test_timeout(_: Caller) -> StatusCode {
    StatusCode::OK
}

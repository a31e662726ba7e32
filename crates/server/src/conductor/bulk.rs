//! Pausing and resuming many schedules at once.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::schedules::{pause_one, resume_one};
use crate::app::App;
use crate::auth::Caller;
use crate::error::ApiError;
use crate::extract::Body;

/// What became of each.
#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BulkResponse {
    /// Those that it was done for, in the order of the request.
    bulk_successful_results: Vec<String>,
    /// Why it was not done for the others, by name.
    bulk_error_results: BTreeMap<String, String>,
    message: &'static str,
}

impl BulkResponse {
    fn new() -> BulkResponse {
        BulkResponse { message: "Bulk Request has been processed.", ..BulkResponse::default() }
    }

    fn note(&mut self, name: String, done: Result<(), ApiError>) {
        match done {
            Ok(()) => self.bulk_successful_results.push(name),
            Err(error) => drop(self.bulk_error_results.insert(name, error.detail().to_owned())),
        }
    }
}

/// Pause many schedules. One that fails does not stop the others.
#[utoipa::path(put, path = "/api/scheduler/bulk/pause", tag = "conductor", request_body = Vec<String>,
    responses((status = 200, body = BulkResponse)))]
pub(crate) async fn pause(
    State(app): State<App>,
    caller: Caller,
    Body(names): Body<Vec<String>>,
) -> Result<Json<BulkResponse>, ApiError> {
    let mut response = BulkResponse::new();
    for name in names {
        let done = pause_one(&app, &caller, &name, None).await;
        response.note(name, done);
    }
    Ok(Json(response))
}

/// Let many schedules go on. One that fails does not stop the others.
#[utoipa::path(put, path = "/api/scheduler/bulk/resume", tag = "conductor", request_body = Vec<String>,
    responses((status = 200, body = BulkResponse)))]
pub(crate) async fn resume(
    State(app): State<App>,
    caller: Caller,
    Body(names): Body<Vec<String>>,
) -> Result<Json<BulkResponse>, ApiError> {
    let mut response = BulkResponse::new();
    for name in names {
        let done = resume_one(&app, &caller, &name).await;
        response.note(name, done);
    }
    Ok(Json(response))
}

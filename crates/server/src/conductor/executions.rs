//! The records of one schedule.

use axum::Json;
use axum::extract::State;
use punctual_store::{Direction, RecordFilter, RecordOrder};
use serde::Deserialize;
use utoipa::IntoParams;

use super::error::ErrorResponse;
use super::find::{found, project_of};
use super::record::{ExecutionModel, views};
use crate::app::App;
use crate::auth::Caller;
use crate::error::ApiError;
use crate::extract::{Params, PathText};

/// How many records.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct LimitParams {
    /// How many; 10 unless it says otherwise, 1,000 at most.
    limit: Option<usize>,
}

/// What became of the latest runs of a schedule, latest first.
#[utoipa::path(get, path = "/api/scheduler/schedules/{name}/executions", tag = "conductor",
    params(("name" = String, Path), LimitParams),
    responses((status = 200, body = Vec<ExecutionModel>), (status = 404, body = ErrorResponse)))]
pub(crate) async fn of_schedule(
    State(app): State<App>,
    caller: Caller,
    PathText(name): PathText,
    Params(params): Params<LimitParams>,
) -> Result<Json<Vec<ExecutionModel>>, ApiError> {
    let schedule = found(&app, &caller, &name).await?;
    let filter = RecordFilter {
        projects: Some(vec![project_of(&caller)?]),
        schedules: Some(vec![schedule.name.unwrap_or_default()]),
        sort: vec![(RecordOrder::ScheduledAt, Direction::Down)],
        limit: params.limit.unwrap_or(10).min(1_000),
        ..RecordFilter::default()
    };
    let page = app.store.records(&filter).await?;
    views(&app, page.records).await.map(Json)
}

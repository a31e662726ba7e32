//! Searching: schedules, and what became of their runs.

use axum::Json;
use axum::extract::State;
use punctual_store::{Condition, RecordFilter, ScheduleFilter};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::error::{ErrorResponse, refused};
use super::find::{project_of, seen_by, view};
use super::model::WorkflowSchedule;
use super::query;
use super::record::{ExecutionModel, views};
use crate::app::App;
use crate::auth::Caller;
use crate::error::ApiError;
use crate::extract::Params;

/// The most that a page has.
const SIZE_MAX: usize = 1_000;

/// Which schedules.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(crate) struct ScheduleSearchParams {
    /// That start this workflow.
    workflow_name: Option<String>,
    /// In whose name this stands.
    schedule_name: Option<String>,
    /// The same, as some servers have it.
    name: Option<String>,
    /// Only those that are paused, or only those that are not.
    paused: Option<bool>,
    /// In whose name, workflow or description this stands; `*` is all.
    free_text: Option<String>,
    /// Behind so many others.
    start: Option<usize>,
    /// How many; 100 unless it says otherwise, 1,000 at most.
    size: Option<usize>,
    /// `name:ASC`, `name:DESC`, `createTime:ASC` or `createTime:DESC`.
    sort: Option<String>,
}

/// Schedules that were found.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ScheduleResults {
    /// How many there are in all.
    total_hits: u64,
    results: Vec<WorkflowSchedule>,
}

/// Search for schedules.
#[utoipa::path(get, path = "/api/scheduler/schedules/search", tag = "conductor", params(ScheduleSearchParams),
    responses((status = 200, body = ScheduleResults)))]
pub(crate) async fn schedules(
    State(app): State<App>,
    caller: Caller,
    Params(params): Params<ScheduleSearchParams>,
) -> Result<Json<ScheduleResults>, ApiError> {
    let given = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
    let sort = params.sort.unwrap_or_default().to_ascii_lowercase();
    let conditions = params.paused.map(|is_paused| match is_paused {
        true => vec![Condition::Paused, Condition::Disabled],
        false => vec![Condition::Active, Condition::Ended],
    });
    let filter = ScheduleFilter {
        workflow: given(params.workflow_name),
        name_part: given(params.schedule_name).or_else(|| given(params.name)),
        text: query::free_text(params.free_text),
        conditions,
        is_by_name: sort.starts_with("name") || sort.starts_with("schedulename"),
        is_reversed: sort.trim_end().ends_with("desc"),
        offset: params.start.unwrap_or(0),
        limit: params.size.unwrap_or(100).min(SIZE_MAX),
        ..seen_by(&caller)?
    };
    let page = app.store.find_schedules(&filter).await?;
    let mut results = vec![];
    for schedule in &page.schedules {
        results.push(view(&app, schedule).await?);
    }
    Ok(Json(ScheduleResults { total_hits: page.total, results }))
}

/// Which executions.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(crate) struct ExecutionSearchParams {
    /// Clauses joined by `AND`: `scheduleName IN (a,b)`, `state IN (FAILED)`, `scheduledTime>N`, `workflowName=x`, `executionId=x`.
    query: Option<String>,
    /// In whose names, ids or reason this stands; `*` is all.
    free_text: Option<String>,
    /// Behind so many others.
    start: Option<usize>,
    /// How many; 100 unless it says otherwise, 1,000 at most.
    size: Option<usize>,
    /// Fields like `scheduledTime:DESC`, with commas between.
    sort: Option<String>,
}

/// Executions that were found.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ExecutionResults {
    /// How many there are in all.
    total_hits: u64,
    results: Vec<ExecutionModel>,
}

/// Search for what became of runs.
#[utoipa::path(get, path = "/api/scheduler/search/executions", tag = "conductor", params(ExecutionSearchParams),
    responses((status = 200, body = ExecutionResults), (status = 400, body = ErrorResponse)))]
pub(crate) async fn executions(
    State(app): State<App>,
    caller: Caller,
    Params(params): Params<ExecutionSearchParams>,
) -> Result<Json<ExecutionResults>, ApiError> {
    let filter = RecordFilter {
        projects: Some(vec![project_of(&caller)?]),
        text: query::free_text(params.free_text),
        sort: query::sort(params.sort.as_deref()),
        offset: params.start.unwrap_or(0),
        limit: params.size.unwrap_or(100).min(SIZE_MAX),
        ..RecordFilter::default()
    };
    let asked = params.query.as_deref().unwrap_or_default();
    let filter = query::read(asked, filter).map_err(|problem| refused("query", problem))?;
    let page = app.store.records(&filter).await?;
    Ok(Json(ExecutionResults { total_hits: page.total, results: views(&app, page.records).await? }))
}

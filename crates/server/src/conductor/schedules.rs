//! Schedules: saved, listed, shown, deleted, paused and resumed.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use punctual_core::By;
use punctual_core::schedule::{Pause, PauseKind};
use punctual_engine::edit::EditError;
use punctual_store::ScheduleFilter;
use serde::Deserialize;
use utoipa::IntoParams;

use super::error::{ErrorResponse, no_schedule};
use super::find::{find, found, seen_by, view};
use super::model::WorkflowSchedule;
use super::save;
use crate::app::App;
use crate::auth::Caller;
use crate::error::ApiError;
use crate::extract::{Body, Params, PathText};

/// How many schedules are read at once.
const PAGE: usize = 1_000;

/// Save a schedule: it is new, or takes the place of the one of its name.
#[utoipa::path(post, path = "/api/scheduler/schedules", tag = "conductor", request_body = WorkflowSchedule, responses(
    (status = 200, description = "What it is now", body = WorkflowSchedule),
    (status = 400, description = "It cannot be used as it is", body = ErrorResponse),
))]
pub(crate) async fn save(
    State(app): State<App>,
    caller: Caller,
    Body(request): Body<WorkflowSchedule>,
) -> Result<Json<WorkflowSchedule>, ApiError> {
    let (saved, warnings) = save::save(&app, &caller, request).await?;
    let warnings = Some(warnings).filter(|warnings| !warnings.is_empty());
    Ok(Json(WorkflowSchedule { warnings, ..view(&app, &saved).await? }))
}

/// Which schedules.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(crate) struct ListParams {
    /// That start this workflow; blank is all.
    workflow_name: Option<String>,
}

/// All schedules, or those of a workflow, oldest first.
#[utoipa::path(get, path = "/api/scheduler/schedules", tag = "conductor", params(ListParams), responses(
    (status = 200, body = Vec<WorkflowSchedule>),
))]
pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    Params(params): Params<ListParams>,
) -> Result<Json<Vec<WorkflowSchedule>>, ApiError> {
    let workflow = params.workflow_name.filter(|name| !name.trim().is_empty());
    let mut views = vec![];
    loop {
        let filter =
            ScheduleFilter { workflow: workflow.clone(), offset: views.len(), limit: PAGE, ..seen_by(&caller)? };
        let page = app.store.find_schedules(&filter).await?.schedules;
        for schedule in &page {
            views.push(view(&app, schedule).await?);
        }
        if page.len() < PAGE {
            return Ok(Json(views));
        }
    }
}

/// Show a schedule.
#[utoipa::path(get, path = "/api/scheduler/schedules/{name}", tag = "conductor", params(("name" = String, Path)),
    responses((status = 200, body = WorkflowSchedule), (status = 404, body = ErrorResponse)))]
pub(crate) async fn show(
    State(app): State<App>,
    caller: Caller,
    PathText(name): PathText,
) -> Result<Json<WorkflowSchedule>, ApiError> {
    let schedule = found(&app, &caller, &name).await?;
    view(&app, &schedule).await.map(Json)
}

/// Delete a schedule. Its records stay; to delete one that is not there is done already.
#[utoipa::path(delete, path = "/api/scheduler/schedules/{name}", tag = "conductor", params(("name" = String, Path)),
    responses((status = 200, description = "It is not there any more")))]
pub(crate) async fn delete(
    State(app): State<App>,
    caller: Caller,
    PathText(name): PathText,
) -> Result<StatusCode, ApiError> {
    if let Some(schedule) = find(&app, &caller, &name).await? {
        match app.editor_for(&caller.by()).delete(schedule.id, app.now()).await {
            Ok(()) | Err(EditError::NotFound(_)) => app.nudges.schedules_changed(),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(StatusCode::OK)
}

/// Why.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ReasonParams {
    /// Why, for whoever reads it later.
    reason: Option<String>,
}

/// Pause a schedule.
#[utoipa::path(put, path = "/api/scheduler/schedules/{name}/pause", tag = "conductor",
    params(("name" = String, Path), ReasonParams),
    responses((status = 200, description = "It is paused"), (status = 404, body = ErrorResponse)))]
pub(crate) async fn pause(
    State(app): State<App>,
    caller: Caller,
    PathText(name): PathText,
    Params(params): Params<ReasonParams>,
) -> Result<Response, ApiError> {
    pause_one(&app, &caller, &name, params.reason).await?;
    Ok(StatusCode::OK.into_response())
}

/// Pause a schedule, as Orkes' servers have it.
#[utoipa::path(get, path = "/api/scheduler/schedules/{name}/pause", tag = "conductor",
    params(("name" = String, Path), ReasonParams),
    responses((status = 200, description = "It is paused"), (status = 404, body = ErrorResponse)))]
pub(crate) async fn pause_by_get(
    state: State<App>,
    caller: Caller,
    name: PathText,
    params: Params<ReasonParams>,
) -> Result<Response, ApiError> {
    pause(state, caller, name, params).await
}

/// Let a paused schedule go on.
#[utoipa::path(put, path = "/api/scheduler/schedules/{name}/resume", tag = "conductor", params(("name" = String, Path)),
    responses((status = 200, description = "It is not paused any more"), (status = 404, body = ErrorResponse)))]
pub(crate) async fn resume(
    State(app): State<App>,
    caller: Caller,
    PathText(name): PathText,
) -> Result<Response, ApiError> {
    resume_one(&app, &caller, &name).await?;
    Ok(StatusCode::OK.into_response())
}

/// Let a paused schedule go on, as Orkes' servers have it.
#[utoipa::path(get, path = "/api/scheduler/schedules/{name}/resume", tag = "conductor", params(("name" = String, Path)),
    responses((status = 200, description = "It is not paused any more"), (status = 404, body = ErrorResponse)))]
pub(crate) async fn resume_by_get(state: State<App>, caller: Caller, name: PathText) -> Result<Response, ApiError> {
    resume(state, caller, name).await
}

/// Pauses a schedule by name.
pub(super) async fn pause_one(app: &App, caller: &Caller, name: &str, reason: Option<String>) -> Result<(), ApiError> {
    let schedule = found(app, caller, name).await?;
    let now = app.now();
    let source = caller.token.name.clone();
    let pause = Pause { kind: PauseKind::Paused, at: now, source, reason: reason.clone(), until: None };
    let paused = app.editor_for(&By { reason, ..caller.by() }).pause(schedule.id, pause, now).await;
    changed(app, name, paused.map(drop))
}

/// Lets a paused schedule go on, by name.
pub(super) async fn resume_one(app: &App, caller: &Caller, name: &str) -> Result<(), ApiError> {
    let schedule = found(app, caller, name).await?;
    let resumed = app.editor_for(&caller.by()).resume(schedule.id, app.now()).await;
    changed(app, name, resumed.map(drop))
}

fn changed(app: &App, name: &str, changed: Result<(), EditError>) -> Result<(), ApiError> {
    match changed {
        Ok(()) => {
            app.nudges.schedules_changed();
            Ok(())
        }
        Err(EditError::NotFound(_)) => Err(no_schedule(name)),
        Err(error) => Err(error.into()),
    }
}

//! Runs, and what people ask of them.

use std::num::NonZeroU32;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use punctual_core::plan::{run_ahead, slot_ahead};
use punctual_core::run::{Run, RunState, Terms};
use punctual_core::schedule::{Policy, Priority, Work, Workflow};
use punctual_core::{RunId, ScheduleId, Shared};
use punctual_store::{Cancellation, HistoryFilter, HistoryWhat};
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};

use super::again::{again, answered_before};
use super::execution_view::ExecutionView;
use super::future::Surroundings;
use super::schedule_fields::checked_name;
use super::schedules;
use crate::app::App;
use crate::auth::Caller;
use crate::error::{ApiError, Problem};
use crate::extract::{Asked, Id, Nothing, Params};

/// Show a run: one of the day's queue, or one that is over and not yet forgotten.
#[utoipa::path(get, path = "/api/executions/{executionId}", tag = "executions",
    params(("executionId" = uuid::Uuid, Path)), responses((status = 200, body = ExecutionView), (status = 404, body = Problem)))]
pub(crate) async fn show(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<RunId>,
) -> Result<Json<ExecutionView>, ApiError> {
    let run = find(&app, &caller, id).await?;
    let view = view_of(&app, &caller, &run).await?;
    let last = HistoryFilter { run: Some(id), limit: usize::from(run.state.is_final()), ..HistoryFilter::default() };
    let last = app.store.history(&last).await?;
    let started_at = last.first().and_then(|item| match &item.what {
        HistoryWhat::Attempt(attempt) => attempt.started_at,
        _ => None,
    });
    Ok(Json(view.begun(started_at)))
}

/// How to call a run off.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct CancelParams {
    /// Whether one that is at work is stopped.
    #[serde(default)]
    force: bool,
}

/// Call a run off.
///
/// One that is at work is only stopped with `force`: it is asked to end, and ends when its node says so.
#[utoipa::path(post, path = "/api/executions/future/{executionId}/cancel", tag = "executions",
    params(("executionId" = uuid::Uuid, Path), CancelParams), responses(
        (status = 200, body = ExecutionView),
        (status = 202, description = "It is at work, and asked to stop", body = ExecutionView),
        (status = 404, body = Problem),
        (status = 409, description = "It is at work, or over already: this is what it is", body = ExecutionView),
    ))]
pub(crate) async fn cancel(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<RunId>,
    Params(params): Params<CancelParams>,
    Asked { body: Nothing {}, by }: Asked<Nothing>,
) -> Result<Response, ApiError> {
    let run = find(&app, &caller, id).await?;
    let is_at_work = matches!(run.state, RunState::Running { .. });
    if is_at_work && !params.force {
        return Ok((StatusCode::CONFLICT, Json(view_of(&app, &caller, &run).await?)).into_response());
    }
    let cancelled = match app.editor_for(&by).cancel(id, app.now()).await {
        Ok(cancelled) => cancelled,
        Err(error) => {
            answered_before(&by, error)?;
            let run = find(&app, &caller, id).await?;
            let status = if run.state.is_final() { StatusCode::OK } else { StatusCode::ACCEPTED };
            return Ok(again((status, Json(view_of(&app, &caller, &run).await?)).into_response()));
        }
    };
    let status = match cancelled {
        Cancellation::Done => StatusCode::OK,
        Cancellation::Asked => {
            app.nudges.run_cancelled();
            StatusCode::ACCEPTED
        }
        // What was called off before is called off.
        Cancellation::Over(punctual_core::run::Outcome::Cancelled) => StatusCode::OK,
        Cancellation::Over(_) => StatusCode::CONFLICT,
    };
    app.nudges.runs_changed();
    let run = find(&app, &caller, id).await?;
    Ok((status, Json(view_of(&app, &caller, &run).await?)).into_response())
}

/// What is to be run now.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct TriggerRequest {
    /// The agent; that of the schedule when absent.
    #[schema(example = "reconciler")]
    agent_id: Option<String>,
    /// The project that the run belongs to.
    project_id: Option<String>,
    /// The schedule whose prompt and policy it takes over, and in whose history it stands.
    #[schema(value_type = Option<uuid::Uuid>)]
    schedule_id: Option<ScheduleId>,
    /// What the agent is asked to do.
    prompt: Option<String>,
    /// What the agent is given.
    #[schema(value_type = Option<Object>)]
    inputs: Option<Map<String, Value>>,
}

/// Run an agent now, by itself or as its schedule would. The schedule's own times do not move, and a pause does not matter.
#[utoipa::path(post, path = "/api/executions/trigger", tag = "executions", request_body = TriggerRequest, responses(
    (status = 202, body = ExecutionView), (status = 404, body = Problem), (status = 422, body = Problem),
))]
pub(crate) async fn trigger(
    State(app): State<App>,
    caller: Caller,
    Asked { body: request, by }: Asked<TriggerRequest>,
) -> Result<Response, ApiError> {
    let now = app.now();
    let editor = app.editor_for(&by);
    let asked = match request.schedule_id {
        Some(id) => {
            let schedule = schedules::find(&app, &caller, id).await?;
            if request.agent_id.as_ref().is_some_and(|agent| agent != schedule.work.agent()) {
                let problem = format!("schedule {id} is for agent {}", schedule.work.agent());
                return Err(ApiError::invalid("agentId", problem, "leave it out"));
            }
            let TriggerRequest { prompt, inputs, .. } = request;
            editor.trigger_with(id, |terms| told_otherwise(terms, prompt, inputs), now).await
        }
        None => {
            let terms = agent_terms(&app, &caller, request)?;
            editor.run_agent(terms, now).await
        }
    };
    match asked {
        Ok(run) => {
            app.nudges.runs_changed();
            Ok((StatusCode::ACCEPTED, Json(view_of(&app, &caller, &run).await?)).into_response())
        }
        Err(error) => {
            let run = find(&app, &caller, RunId(answered_before(&by, error)?)).await?;
            Ok(again((StatusCode::ACCEPTED, Json(view_of(&app, &caller, &run).await?)).into_response()))
        }
    }
}

/// The terms of a run that an agent alone is asked for.
fn agent_terms(app: &App, caller: &Caller, request: TriggerRequest) -> Result<Terms, ApiError> {
    let agent = request
        .agent_id
        .ok_or_else(|| ApiError::invalid("agentId", "it is missing", "give the name of an agent, or a scheduleId"))?;
    let info = app.agent(&agent)?;
    let project = request.project_id.as_deref().map(|name| checked_name("projectId", name)).transpose()?;
    caller.must_reach(project.as_deref())?;
    let policy = Policy::default();
    Ok(Terms {
        project,
        work: Work::Agent {
            agent: agent.into(),
            prompt: request.prompt.unwrap_or_default().into(),
            inputs: request.inputs.unwrap_or_default(),
            inputs_policy: Default::default(),
        },
        priority: Priority::MANUAL,
        retry: policy.retry,
        after_loss: policy.after_loss,
        timeout: info.timeout,
        overlap: policy.overlap,
        max_delay: policy.max_delay,
        max_concurrent: info.max_concurrent.and_then(NonZeroU32::new).unwrap_or(policy.max_concurrent),
        concurrency: None,
        risk_gate: false,
    })
}

/// Terms with another prompt or other inputs.
fn told_otherwise(terms: Terms, asked: Option<String>, given: Option<Map<String, Value>>) -> Terms {
    let work = match terms.work {
        Work::Agent { agent, prompt, inputs, inputs_policy } => {
            let (prompt, inputs) = (asked.map_or(prompt, Shared::new), given.unwrap_or(inputs));
            Work::Agent { agent, prompt, inputs, inputs_policy }
        }
        Work::Workflow { agent, request } => {
            let input = given.unwrap_or_else(|| request.input.clone());
            Work::Workflow { agent, request: Box::new(Workflow { input, ..*request }) }
        }
    };
    Terms { work, ..terms }
}

/// A run that is recorded, or the one that a slot ahead will have.
pub(crate) async fn run_or_slot(app: &App, id: RunId) -> Result<Option<Run>, ApiError> {
    if let Some(run) = app.store.run(id).await? {
        return Ok(Some(run));
    }
    let Some(schedule) = app.store.schedule_of_slot(id).await? else { return Ok(None) };
    let settings = Arc::clone(&app.settings);
    let slot = move || {
        let schedule = Arc::new(schedule);
        let timetable = settings.timetables().of(&schedule).ok()?;
        let slot = slot_ahead(&schedule, &timetable, id)?;
        Some(run_ahead(&schedule, &timetable, &slot))
    };
    app.calculations.run(slot).await
}

/// A run that is there for whoever asks.
pub(crate) async fn find(app: &App, caller: &Caller, id: RunId) -> Result<Run, ApiError> {
    let run = run_or_slot(app, id).await?.filter(|run| caller.reaches(run.terms.project.as_deref()));
    run.ok_or_else(|| ApiError::not_found("execution", id))
}

pub(crate) async fn view_of(app: &App, caller: &Caller, run: &Run) -> Result<ExecutionView, ApiError> {
    let view = Surroundings::read(app).await?.view(app, caller, run).await?;
    let view = view.ok_or_else(|| ApiError::not_found("execution", run.id))?;
    Ok(view.with_action(run))
}

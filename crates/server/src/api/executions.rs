//! Runs: the day's queue, and what people ask of it.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};
use punctual_core::run::{Run, RunState, Terms};
use punctual_core::schedule::{Policy, Priority, Schedule, Work, Workflow};
use punctual_core::time::Zone;
use punctual_core::{NodeId, RunId, ScheduleId, storable};
use punctual_store::{Cancellation, HistoryFilter, HistoryWhat, NodeRecord, RunFilter};
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};

use super::again::{again, answered_before};
use super::execution_view::{Around, ExecStatus, ExecutionView};
use super::page::{PageParams, total};
use super::past::YEARS;
use super::schedule_fields::checked_name;
use super::schedules;
use crate::app::App;
use crate::auth::Caller;
use crate::error::{ApiError, Problem};
use crate::extract::{Asked, Id, Nothing, Params};

/// No zone's clock is further from UTC.
const OFFSET_MAX: SignedDuration = SignedDuration::from_hours(26);

/// Which runs.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct FutureParams {
    /// Of this agent.
    agent_id: Option<String>,
    /// Of this project.
    project_id: Option<String>,
    /// Of this schedule.
    #[param(value_type = Option<uuid::Uuid>)]
    schedule_id: Option<ScheduleId>,
    /// The day, as each run's own zone has it; today when absent.
    #[param(value_type = Option<String>, example = "2026-03-09")]
    date_key: Option<Date>,
    /// In this state.
    exec_status: Option<ExecStatus>,
    page: Option<usize>,
    #[param(minimum = 1, maximum = 1_000)]
    size: Option<usize>,
}

/// The day's queue, by time: what is planned, at work or waiting, and what ended otherwise than well. Filters combine.
#[utoipa::path(get, path = "/api/executions/future", tag = "executions", params(FutureParams), responses(
    (status = 200, body = Vec<ExecutionView>, headers(("x-total-count" = u64, description = "How many there are in all"))),
))]
pub(crate) async fn future(
    State(app): State<App>,
    caller: Caller,
    Params(params): Params<FutureParams>,
) -> Result<Response, ApiError> {
    let (offset, size) = PageParams { page: params.page, size: params.size }.range(1_000)?;
    let now = app.now();
    let mut surroundings = Surroundings::read(&app).await?;
    let (from, until) = match params.date_key {
        Some(day) => {
            let midnight = day.to_zoned(jiff::tz::TimeZone::UTC).map(|day| day.timestamp()).ok();
            let kept = midnight.filter(|midnight| storable::is_kept(*midnight));
            let midnight = kept.ok_or_else(|| ApiError::invalid("dateKey", "nothing is kept for that year", YEARS))?;
            (midnight, midnight.checked_add(SignedDuration::from_hours(24)).unwrap_or(Timestamp::MAX))
        }
        None => (now, now),
    };
    let mut filter = RunFilter {
        schedule: params.schedule_id,
        from: from.checked_sub(OFFSET_MAX).ok(),
        until: until.checked_add(OFFSET_MAX).ok(),
        limit: RUNS_READ,
        ..RunFilter::default()
    };
    let (mut found, mut views) = (0_usize, vec![]);
    let mut last: Option<(Timestamp, RunId)> = None;
    loop {
        let page = app.store.runs(&filter).await?;
        // What comes at the same instant as the last of the page before was in that, or comes behind it.
        let is_new = |run: &&Run| last.is_none_or(|last| last < (run.scheduled_at, run.id));
        let fresh: Vec<&Run> = page.iter().filter(is_new).collect();
        for run in &fresh {
            let Some(view) = surroundings.view(&app, &caller, run).await? else { continue };
            let day = match params.date_key {
                Some(day) => day.to_string(),
                None => surroundings.today(&app, run, now),
            };
            let is_asked_for = view.date_key() == day
                && view.status() != ExecStatus::Succeeded
                && params.exec_status.is_none_or(|status| status == view.status())
                && params.agent_id.as_ref().is_none_or(|agent| agent == run.terms.work.agent())
                && params.project_id.as_ref().is_none_or(|project| Some(project) == run.terms.project.as_ref());
            if is_asked_for {
                if (offset..offset + size).contains(&found) {
                    views.push(view);
                }
                found += 1;
            }
        }
        let Some(end) = fresh.last().filter(|_| page.len() == RUNS_READ) else { break };
        last = Some((end.scheduled_at, end.id));
        filter.from = Some(end.scheduled_at);
    }
    Ok((total(found as u64), Json(views)).into_response())
}

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

/// How many runs are read at once.
const RUNS_READ: usize = 5_000;

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
            agent,
            prompt: request.prompt.unwrap_or_default(),
            inputs: request.inputs.unwrap_or_default(),
            inputs_policy: None,
        },
        priority: Priority::MANUAL,
        retry: policy.retry,
        after_loss: policy.after_loss,
        timeout: info.timeout,
        overlap: policy.overlap,
        max_delay: policy.max_delay,
        max_concurrent: policy.max_concurrent,
        concurrency: None,
        risk_gate: false,
    })
}

/// Terms with another prompt or other inputs.
fn told_otherwise(terms: Terms, asked: Option<String>, given: Option<Map<String, Value>>) -> Terms {
    let work = match terms.work {
        Work::Agent { agent, prompt, inputs, inputs_policy } => {
            let (prompt, inputs) = (asked.unwrap_or(prompt), given.unwrap_or(inputs));
            Work::Agent { agent, prompt, inputs, inputs_policy }
        }
        Work::Workflow { agent, request } => {
            let input = given.unwrap_or_else(|| request.input.clone());
            Work::Workflow { agent, request: Box::new(Workflow { input, ..*request }) }
        }
    };
    Terms { work, ..terms }
}

/// A run that is there for whoever asks.
pub(crate) async fn find(app: &App, caller: &Caller, id: RunId) -> Result<Run, ApiError> {
    let run = app.store.run(id).await?.filter(|run| caller.reaches(run.terms.project.as_deref()));
    run.ok_or_else(|| ApiError::not_found("execution", id))
}

pub(crate) async fn view_of(app: &App, caller: &Caller, run: &Run) -> Result<ExecutionView, ApiError> {
    let view = Surroundings::read(app).await?.view(app, caller, run).await?;
    let view = view.ok_or_else(|| ApiError::not_found("execution", run.id))?;
    Ok(view.with_action(run))
}

/// What runs are shown with, read once for a list.
struct Surroundings {
    nodes: BTreeMap<NodeId, NodeRecord>,
    schedules: BTreeMap<ScheduleId, Option<Schedule>>,
}

impl Surroundings {
    async fn read(app: &App) -> Result<Surroundings, ApiError> {
        let nodes = app.store.nodes().await?.into_iter().map(|node| (node.id, node)).collect();
        Ok(Surroundings { nodes, schedules: BTreeMap::new() })
    }

    /// A run as it is shown, if it is for whoever asks.
    async fn view(&mut self, app: &App, caller: &Caller, run: &Run) -> Result<Option<ExecutionView>, ApiError> {
        if !caller.reaches(run.terms.project.as_deref()) {
            return Ok(None);
        }
        if let Some(id) = run.schedule
            && !self.schedules.contains_key(&id)
        {
            self.schedules.insert(id, app.store.schedule(id).await?);
        }
        let zone = self.zone(app, run);
        let schedule = run.schedule.and_then(|id| self.schedules.get(&id)?.as_ref());
        Ok(Some(ExecutionView::new(run, &Around { schedule, zone: &zone, nodes: &self.nodes })))
    }

    /// The zone whose day is a run's day.
    fn zone(&self, app: &App, run: &Run) -> Zone {
        let schedule = run.schedule.and_then(|id| self.schedules.get(&id)?.as_ref());
        let own = schedule.and_then(|schedule| app.settings.zones.get(&schedule.zone).ok());
        own.unwrap_or_else(|| app.rules.default_zone.clone())
    }

    fn today(&self, app: &App, run: &Run, now: Timestamp) -> String {
        self.zone(app, run).day_of(now).to_string()
    }
}

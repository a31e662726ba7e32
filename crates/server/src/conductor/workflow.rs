//! Workflows that are started by hand, and where they live.

use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use punctual_agents::workflow::StartRequest;
use punctual_core::journal::WORKFLOW_ID;
use punctual_core::run::{Outcome, RunState, Terms};
use punctual_core::schedule::{IdempotencyStrategy, MaxDelay, Overlap, Policy, Priority, Work, Workflow};
use punctual_core::{By, Once, RunId};
use punctual_engine::edit::EditError;
use punctual_engine::roster::STARTER;
use punctual_store::{HistoryFilter, HistoryWhat, StoreError};
use serde::Deserialize;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use utoipa::IntoParams;

use super::error::{ErrorResponse, refused};
use super::find::project_of;
use super::save::retry_of;
use crate::app::App;
use crate::auth::Caller;
use crate::error::ApiError;
use crate::extract::{Asked, Params, PathText};

/// How long a server may take to start a workflow before the client is told that it takes too long.
const WAITED_MAX: Duration = Duration::from_secs(20);

/// The longest key of a start that is kept as it is.
const KEY_MAX: usize = 500;

/// How often it is looked whether it has.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Start a workflow. What starts the workflows of schedules starts this one: an agent that stands in for it, or the server.
#[utoipa::path(post, path = "/api/workflow", tag = "conductor", request_body = Object, responses(
    (status = 200, description = "The id of the workflow", content_type = "text/plain", body = String),
    (status = 404, description = "Nobody starts it", body = ErrorResponse),
    (status = 409, description = "It was started before under its key", body = ErrorResponse),
    (status = 502, description = "The server did not start it", body = ErrorResponse),
))]
pub(crate) async fn start(
    State(app): State<App>,
    caller: Caller,
    Asked { body: request, by }: Asked<StartRequest>,
) -> Result<Response, ApiError> {
    start_one(&app, &caller, by, request).await
}

/// How a workflow is started whose name is in the path.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(crate) struct StartParams {
    /// The version of its definition; the latest when absent.
    version: Option<i64>,
    /// What it is found by.
    correlation_id: Option<String>,
    /// How urgent it is: 0 to 99; 0 when absent.
    priority: Option<i64>,
}

/// Start a workflow by its name. The body is what it is given, and not a request around it.
#[utoipa::path(post, path = "/api/workflow/{name}", tag = "conductor", request_body = Object,
    params(("name" = String, Path), StartParams,
        ("x-idempotency-key" = Option<String>, Header, description = "What the same start is known by when it comes again"),
        ("x-on-conflict" = Option<String>, Header,
            description = "What becomes of a start that comes again: `FAIL`, `RETURN_EXISTING` or `FAIL_ON_RUNNING`")),
    responses(
        (status = 200, description = "The id of the workflow", content_type = "text/plain", body = String),
        (status = 404, description = "Nobody starts it", body = ErrorResponse),
        (status = 409, description = "It was started before under its key", body = ErrorResponse),
        (status = 502, description = "The server did not start it", body = ErrorResponse),
    ))]
pub(crate) async fn start_by_name(
    State(app): State<App>,
    caller: Caller,
    PathText(name): PathText,
    Params(params): Params<StartParams>,
    headers: HeaderMap,
    Asked { body: input, by }: Asked<Map<String, Value>>,
) -> Result<Response, ApiError> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let request = StartRequest {
        name: Some(name),
        version: params.version,
        correlation_id: params.correlation_id,
        input: Some(input),
        priority: params.priority,
        idempotency_key: header("x-idempotency-key"),
        idempotency_strategy: header("x-on-conflict"),
        ..StartRequest::default()
    };
    start_one(&app, &caller, by, request).await
}

async fn start_one(app: &App, caller: &Caller, by: By, request: StartRequest) -> Result<Response, ApiError> {
    let workflow = request.into_workflow().map_err(|error| refused(&error.field.clone(), error.to_string()))?;
    let workflows = app.settings.roster.now().workflows;
    if workflows.lacks(&workflow.name) {
        let detail = format!(
            "No such workflow: '{}'. [conductor.workflows] of this Punctual maps it to no agent, and [conductor] names no \
             server_url",
            workflow.name.escape_debug()
        );
        return Err(ApiError::new(StatusCode::NOT_FOUND, "not_found", detail));
    }
    let agent = workflows.agent_for(&workflow.name).to_owned();
    let strategy = workflow.idempotency_strategy;
    // The header is for whoever asks this server, the field for whoever starts workflows: either is enough.
    let once = by.once.clone().or_else(|| once(caller, &workflow));
    let by = By { once, ..by };
    let terms = terms(app, caller, agent.clone(), workflow)?;
    let run = match app.editor_for(&by).run_agent(terms, app.now()).await {
        Ok(run) => run.id,
        Err(EditError::Store(StoreError::Answered(answered))) => match strategy {
            Some(IdempotencyStrategy::Fail) => {
                return Err(ApiError::conflict("started_before", "a workflow was started under this idempotencyKey"));
            }
            _ => RunId(answered.subject),
        },
        Err(error) => return Err(error.into()),
    };
    app.nudges.runs_changed();
    let id = if agent == STARTER { accepted(app, run).await? } else { run.to_string() };
    Ok(([(header::CONTENT_TYPE, "text/plain;charset=utf-8")], id).into_response())
}

/// How the same start is known again.
fn once(caller: &Caller, workflow: &Workflow) -> Option<Once> {
    let key = workflow.idempotency_key.as_ref().filter(|key| !key.is_empty())?;
    let hash = Sha256::digest(workflow.name.as_bytes());
    let digest = hash.first_chunk().map_or(0, |first| u64::from_be_bytes(*first));
    let mut key = format!("{}/{key}", workflow.name);
    if KEY_MAX < key.len() {
        // Stores find keys by an index, which has no room for long ones.
        let digits = Sha256::digest(key.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        key = format!("sha256:{digits}");
    }
    Some(Once { key: format!("{}/workflow/{key}", caller.token.id), digest })
}

fn terms(app: &App, caller: &Caller, agent: String, workflow: Workflow) -> Result<Terms, ApiError> {
    let policy = Policy::default();
    let timeout = app.settings.roster.now().infos.get(&agent).map_or(policy.timeout, |info| info.timeout);
    Ok(Terms {
        project: project_of(caller)?,
        retry: retry_of(&agent),
        work: Work::Workflow { agent: agent.into(), request: Box::new(workflow) },
        priority: Priority::MANUAL,
        after_loss: policy.after_loss,
        timeout,
        overlap: Overlap::Allow,
        max_delay: MaxDelay::None,
        max_concurrent: std::num::NonZeroU32::MAX,
        concurrency: None,
        risk_gate: false,
    })
}

/// Waits until a server has started the workflow of a run, and says what it calls it.
async fn accepted(app: &App, run: RunId) -> Result<String, ApiError> {
    let mut waited = Duration::ZERO;
    loop {
        let state = app.store.run(run).await?.map(|run| run.state);
        if state.as_ref().is_none_or(RunState::is_final) {
            return told(app, run, state).await;
        }
        if WAITED_MAX <= waited {
            let seconds = WAITED_MAX.as_secs();
            let detail =
                format!("the server has not started the workflow within {seconds} s; run {run} goes on trying");
            return Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "too_slow", detail));
        }
        tokio::time::sleep(LOOK_EVERY).await;
        waited += LOOK_EVERY;
    }
}

async fn told(app: &App, run: RunId, state: Option<RunState>) -> Result<String, ApiError> {
    let filter = HistoryFilter { run: Some(run), limit: 1, ..HistoryFilter::default() };
    let last = app.store.history(&filter).await?.pop();
    let report = last.and_then(|item| match item.what {
        HistoryWhat::Attempt(attempt) => Some(attempt.report),
        HistoryWhat::RunEnded(_) | HistoryWhat::Skipped(_) => None,
    });
    let id = report.as_ref().and_then(|report| report.refs.get(WORKFLOW_ID)?.as_str().map(str::to_owned));
    if let Some(id) = id {
        return Ok(id);
    }
    let is_cancelled = matches!(state, Some(RunState::Finished { outcome: Outcome::Cancelled, .. }));
    let why = report.and_then(|report| report.error).map(|error| error.message);
    let why = why.unwrap_or_else(|| if is_cancelled { "it was called off".to_owned() } else { "it failed".to_owned() });
    Err(not_started(&why))
}

/// A server did not do what it was asked for.
pub(crate) fn not_started(why: &str) -> ApiError {
    ApiError::new(StatusCode::BAD_GATEWAY, "not_started", format!("the workflow was not started: {why}"))
}

/// Where workflows are defined: not here.
#[utoipa::path(post, path = "/api/metadata/workflow", tag = "conductor", request_body = Object,
    responses((status = 404, description = "Workflows are not kept here", body = ErrorResponse)))]
pub(crate) async fn define(_: Caller) -> ApiError {
    nothing_kept()
}

/// Where workflows are defined: not here.
#[utoipa::path(put, path = "/api/metadata/workflow", tag = "conductor", request_body = Object,
    responses((status = 404, description = "Workflows are not kept here", body = ErrorResponse)))]
pub(crate) async fn redefine(_: Caller) -> ApiError {
    nothing_kept()
}

/// Where workflows are defined: not here.
#[utoipa::path(get, path = "/api/metadata/workflow", tag = "conductor",
    responses((status = 404, description = "Workflows are not kept here", body = ErrorResponse)))]
pub(crate) async fn definitions(_: Caller) -> ApiError {
    nothing_kept()
}

fn nothing_kept() -> ApiError {
    let detail = "Punctual starts workflows and keeps none: define them on the Conductor server that [conductor] server_url \
        names, or map their names to agents in [conductor.workflows]";
    ApiError::new(StatusCode::NOT_FOUND, "not_kept_here", detail)
}

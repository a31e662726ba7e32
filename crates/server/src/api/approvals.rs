//! Approvals: what waits for a yes, and the two answers.

use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use punctual_core::run::Run;
use punctual_core::{By, RunId, ScheduleId};
use punctual_engine::approvals::{self, waits_until};
use punctual_engine::edit::EditError;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::again::answered_before;
use super::execution_view::ExecutionView;
use super::executions::{find, view_of};
use super::schedule_names::ScheduleNames;
use crate::app::App;
use crate::auth::Caller;
use crate::error::{ApiError, Problem};
use crate::extract::{Asked, Id};

/// The most that are listed.
const LISTED_MAX: usize = 1_000;

/// What waits.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Approvals {
    /// By time, 1,000 at most.
    items: Vec<ApprovalView>,
}

/// A run that waits for an approval.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ApprovalView {
    #[schema(value_type = uuid::Uuid)]
    run_id: RunId,
    #[schema(value_type = Option<uuid::Uuid>)]
    schedule_id: Option<ScheduleId>,
    schedule_name: Option<String>,
    agent_id: String,
    project_id: Option<String>,
    /// What the agent may do: `write` or `exec`; null if this node does not have it.
    risk: Option<&'static str>,
    /// What it is asked to do.
    prompt: String,
    /// What it is given.
    #[schema(value_type = Object)]
    inputs: Map<String, Value>,
    /// Which try this is.
    attempt: u32,
    /// What the answer is bound to: this run and try, this agent, prompt and inputs.
    digest: String,
    #[schema(value_type = String, format = DateTime)]
    scheduled_at: Timestamp,
    /// When silence is a no.
    #[schema(value_type = String, format = DateTime)]
    expires_at: Timestamp,
}

/// An answer.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct AnswerRequest {
    /// The digest of what was seen.
    digest: String,
    /// Why; it is kept with the answer.
    reason: Option<String>,
}

/// The runs that wait for somebody to say yes.
#[utoipa::path(get, path = "/api/approvals", tag = "approvals", responses((status = 200, body = Approvals)))]
pub(crate) async fn list(State(app): State<App>, caller: Caller) -> Result<Json<Approvals>, ApiError> {
    let infos = app.settings.roster.now().infos;
    let mut names = ScheduleNames::new(&app);
    let mut items = vec![];
    for run in approvals::waiting(&*app.store, LISTED_MAX).await? {
        let Some(expires_at) = waits_until(&run).filter(|_| caller.reaches(run.terms.project.as_deref())) else {
            continue;
        };
        let digest = approvals::digest(&run);
        let work = &run.terms.work;
        items.push(ApprovalView {
            run_id: run.id,
            schedule_id: run.schedule,
            schedule_name: names.of(run.schedule).await?.name,
            agent_id: work.agent().to_owned(),
            project_id: run.terms.project.clone(),
            risk: infos.get(work.agent()).map(|info| info.risk.name()),
            prompt: work.prompt().to_owned(),
            inputs: work.inputs().clone(),
            attempt: run.state.tally().attempt,
            digest,
            scheduled_at: run.scheduled_at,
            expires_at,
        });
    }
    Ok(Json(Approvals { items }))
}

/// Say yes: the run begins, once. If it fails and is tried again, that is asked for again.
#[utoipa::path(post, path = "/api/approvals/{runId}/approve", tag = "approvals", request_body = AnswerRequest,
    params(("runId" = uuid::Uuid, Path)), responses(
        (status = 200, body = ExecutionView),
        (status = 404, body = Problem),
        (status = 409, description = "It does not wait any more, or is not what was seen", body = Problem),
    ))]
pub(crate) async fn approve(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<RunId>,
    Asked { body, by }: Asked<AnswerRequest>,
) -> Result<Json<ExecutionView>, ApiError> {
    find(&app, &caller, id).await?;
    let by = By { reason: body.reason, ..by };
    let approved = app.editor_for(&by).approve(id, &body.digest, app.now()).await;
    answered(&app, &caller, id, &by, approved).await
}

/// Say no: the run is called off.
#[utoipa::path(post, path = "/api/approvals/{runId}/deny", tag = "approvals", request_body = AnswerRequest,
    params(("runId" = uuid::Uuid, Path)), responses(
        (status = 200, body = ExecutionView),
        (status = 404, body = Problem),
        (status = 409, description = "It does not wait any more, or is not what was seen", body = Problem),
    ))]
pub(crate) async fn deny(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<RunId>,
    Asked { body, by }: Asked<AnswerRequest>,
) -> Result<Json<ExecutionView>, ApiError> {
    find(&app, &caller, id).await?;
    let by = By { reason: body.reason, ..by };
    let denied = app.editor_for(&by).deny(id, &body.digest, app.now()).await;
    answered(&app, &caller, id, &by, denied).await
}

/// What a run is behind an answer, or an answer that was given before.
async fn answered(
    app: &App,
    caller: &Caller,
    id: RunId,
    by: &By,
    result: Result<(), EditError>,
) -> Result<Json<ExecutionView>, ApiError> {
    match result {
        Ok(()) => app.nudges.runs_changed(),
        Err(error) => drop(answered_before(by, error)?),
    }
    let run: Run = find(app, caller, id).await?;
    Ok(Json(view_of(app, caller, &run).await?))
}

//! Schedules.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::header::{ETAG, IF_MATCH};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use jiff::{SignedDuration, Timestamp};
use punctual_core::schedule::{Face, Origin, Pause, PauseKind, Schedule};
use punctual_core::time::Slot;
use punctual_core::{By, ScheduleId};
use punctual_engine::checks::{self, Outlook, Refused};
use punctual_engine::edit::EditError;
use punctual_store::{Condition, ScheduleFilter};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::again::{again, answered_before};
use super::page::{PageParams, total};
use super::schedule_fields::ScheduleFields;
use super::schedule_view::ScheduleView;
use crate::app::App;
use crate::auth::Caller;
use crate::error::{ApiError, Problem};
use crate::extract::{Asked, Body, Id, Nothing, Params};

/// How many of the next times a preview shows.
const PREVIEWED: usize = 20;

/// Whether to do it.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct DryRunParams {
    /// Whether only to say what would change in the plan of the next seven days.
    #[serde(default)]
    dry_run: bool,
}

/// What a change would change in the runs of the next seven days.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DifferenceView {
    /// Always true: nothing was done.
    dry_run: bool,
    /// The zone that local times are of: the one that it would have.
    #[schema(example = "Europe/Paris")]
    timezone: String,
    /// Runs that there would be, and are not now.
    added: Vec<FireView>,
    /// Runs that there are now, and would not be.
    removed: Vec<FireView>,
    /// How many stay.
    kept: usize,
    /// Whether there is more than is told here.
    more: bool,
    /// What may not be as it was meant.
    warnings: Vec<String>,
}

/// The answer to somebody who only wants to know.
async fn dry_run(
    app: &App,
    before: Option<&Schedule>,
    after: Option<&Schedule>,
    warnings: Vec<String>,
) -> Result<Response, ApiError> {
    let (settings, now) = (Arc::clone(&app.settings), app.now());
    let compared = (before.cloned(), after.cloned());
    let difference = app.calculations.run(move || {
        let (before, after) = &compared;
        checks::difference(before.as_ref(), after.as_ref(), &settings, now)
    });
    let difference = difference.await?;
    let difference = difference.map_err(|error| ApiError::from(EditError::Invalid(error)))?;
    let fires = |slots: &[Slot]| slots.iter().map(FireView::of).collect();
    let view = DifferenceView {
        dry_run: true,
        timezone: after.or(before).map(|schedule| String::clone(&schedule.zone)).unwrap_or_default(),
        added: fires(&difference.added),
        removed: fires(&difference.removed),
        kept: difference.kept,
        more: difference.is_cut,
        warnings,
    };
    Ok(Json(view).into_response())
}

/// Create a schedule.
///
/// Its plan for today is made at once. An `IMMEDIATE` one has a run that is due now.
#[utoipa::path(post, path = "/api/schedules", tag = "schedules", params(DryRunParams), request_body = ScheduleFields, responses(
    (status = 200, description = "With `dryRun`: what would change", body = DifferenceView),
    (status = 201, body = ScheduleView),
    (status = 400, description = "The body cannot be read", body = Problem),
    (status = 409, description = "The name is taken, or the agent has its one schedule without a name", body = Problem),
    (status = 422, description = "A value cannot be used", body = Problem),
))]
pub(crate) async fn create(
    State(app): State<App>,
    caller: Caller,
    Params(params): Params<DryRunParams>,
    Asked { body: fields, by }: Asked<ScheduleFields>,
) -> Result<Response, ApiError> {
    let now = app.now();
    let wanted = fields.into_schedule(&app, &caller.token.name, now)?;
    caller.must_reach(wanted.project.as_deref())?;
    let outlook = look(&app, None, &wanted, now).await?;
    if params.dry_run {
        return dry_run(&app, None, Some(&wanted), outlook.warnings).await;
    }
    let (created, is_again) = match app.editor_for(&by).create(wanted, now).await {
        Ok(created) => {
            app.nudges.schedules_changed();
            (created, false)
        }
        Err(error) => {
            let id = answered_before(&by, error).map_err(said_in_our_words)?;
            (find(&app, &caller, ScheduleId(id)).await?, true)
        }
    };
    let view = ScheduleView::of(&created, &app).await?.warned(outlook);
    let answer = (StatusCode::CREATED, etag(&created), Json(view)).into_response();
    Ok(if is_again { again(answer) } else { answer })
}

/// Which schedules.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ScheduleParams {
    /// Of this agent.
    agent_id: Option<String>,
    /// Of this project.
    project_id: Option<String>,
    /// Of this name.
    name: Option<String>,
    /// Only those that are enabled, or only those that are not.
    enabled: Option<bool>,
    /// Made by this API, unless it says otherwise: `executions`, `conductor` or `all`.
    #[param(inline)]
    face: Option<FaceParam>,
    page: Option<usize>,
    #[param(minimum = 1, maximum = 1_000)]
    size: Option<usize>,
}

/// Which API schedules were made by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FaceParam {
    /// This one.
    Executions,
    /// Conductor's.
    Conductor,
    /// Any.
    All,
}

/// List schedules, oldest first. Filters combine.
#[utoipa::path(get, path = "/api/schedules", tag = "schedules", params(ScheduleParams), responses(
    (status = 200, body = Vec<ScheduleView>, headers(("x-total-count" = u64, description = "How many there are in all"))),
))]
pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    Params(params): Params<ScheduleParams>,
) -> Result<Response, ApiError> {
    let (offset, size) = PageParams { page: params.page, size: params.size }.range(1_000)?;
    let own = caller.projects();
    let projects = match (params.project_id, own) {
        (None, own) => own.map(|own| own.into_iter().map(Some).collect()),
        (Some(project), Some(own)) if !own.contains(&project) => Some(vec![]),
        (Some(project), _) => Some(vec![Some(project)]),
    };
    let conditions = params.enabled.map(|is_enabled| match is_enabled {
        true => vec![Condition::Active, Condition::Paused, Condition::Ended],
        false => vec![Condition::Disabled],
    });
    let face = match params.face.unwrap_or(FaceParam::Executions) {
        FaceParam::Executions => Some(Face::Executions),
        FaceParam::Conductor => Some(Face::Conductor),
        FaceParam::All => None,
    };
    let filter = ScheduleFilter {
        face,
        projects,
        agent: params.agent_id,
        name: params.name,
        conditions,
        offset,
        limit: size,
        ..ScheduleFilter::default()
    };
    let page = app.store.find_schedules(&filter).await?;
    Ok((total(page.total), Json(ScheduleView::all(&page.schedules, &app).await?)).into_response())
}

/// Show a schedule, with the time of its next run.
#[utoipa::path(get, path = "/api/schedules/{scheduleId}", tag = "schedules", params(("scheduleId" = uuid::Uuid, Path)),
    responses((status = 200, body = ScheduleView), (status = 404, body = Problem)))]
pub(crate) async fn show(State(app): State<App>, caller: Caller, Id(id): Id<ScheduleId>) -> Result<Response, ApiError> {
    let schedule = find(&app, &caller, id).await?;
    Ok((etag(&schedule), Json(ScheduleView::of(&schedule, &app).await?)).into_response())
}

/// The answer to a change.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "it only describes")]
pub(crate) enum Updated {
    /// What it is now.
    Schedule(Box<ScheduleView>),
    /// What would change.
    Difference(DifferenceView),
}

/// Change a schedule.
///
/// What is absent or null stays as it is; a change that changes nothing leaves the version as it is, too. The plan follows in the same moment: runs of slots that stay are kept, others are
/// withdrawn, new ones are planned. `If-Match` with the version that was seen refuses the change if somebody was faster.
#[utoipa::path(put, path = "/api/schedules/{scheduleId}", tag = "schedules", request_body = ScheduleFields,
    params(("scheduleId" = uuid::Uuid, Path), DryRunParams,
        ("if-match" = Option<String>, Header, description = "The version that was seen")),
    responses(
        (status = 200, description = "What it is now; with `dryRun`, what would change", body = Updated),
        (status = 404, body = Problem),
        (status = 409, description = "It has another version, or its name is taken; `current` is what it is", body = Problem),
        (status = 422, body = Problem),
    ))]
pub(crate) async fn update(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    Id(id): Id<ScheduleId>,
    Params(params): Params<DryRunParams>,
    Body(change): Body<ScheduleFields>,
) -> Result<Response, ApiError> {
    let now = app.now();
    let version = if_match(&headers)?;
    let before = find(&app, &caller, id).await?;
    refuse_others(&before)?;
    if version.is_some_and(|version| version != before.version) {
        let (found, expected) = (before.version, version.unwrap_or_default());
        let refused = ApiError::from(EditError::OtherVersion { schedule: id, found, expected });
        return Err(refused.with_current(ScheduleView::of(&before, &app).await?));
    }
    let wanted = change.apply_to(&before, &app, &caller.token.name, now)?;
    caller.must_reach(wanted.project.as_deref())?;
    let outlook = look(&app, Some(&before), &wanted, now).await?;
    if params.dry_run {
        return dry_run(&app, Some(&before), Some(&wanted), outlook.warnings).await;
    }
    if is_same(&before, &wanted) {
        let view = ScheduleView::of(&before, &app).await?.warned(outlook);
        return Ok((etag(&before), Json(view)).into_response());
    }
    // What was decided was decided on this version.
    let edited = app.editor_for(&caller.by()).edit(id, Some(before.version), now, |_| wanted.clone()).await;
    let edited = match edited {
        Err(refused @ EditError::OtherVersion { .. }) => {
            let current = find(&app, &caller, id).await?;
            return Err(ApiError::from(refused).with_current(ScheduleView::of(&current, &app).await?));
        }
        edited => edited.map_err(said_in_our_words)?,
    };
    app.nudges.schedules_changed();
    let edited = as_planned(&app, edited).await?;
    let view = ScheduleView::of(&edited, &app).await?.warned(outlook);
    Ok((etag(&edited), Json(view)).into_response())
}

/// Delete a schedule.
///
/// Its planned runs go with it; what is at work goes on.
#[utoipa::path(delete, path = "/api/schedules/{scheduleId}", tag = "schedules",
    params(("scheduleId" = uuid::Uuid, Path), DryRunParams), responses(
        (status = 200, description = "With `dryRun`: what would change", body = DifferenceView),
        (status = 204), (status = 404, body = Problem),
    ))]
pub(crate) async fn delete(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<ScheduleId>,
    Params(params): Params<DryRunParams>,
) -> Result<Response, ApiError> {
    let schedule = find(&app, &caller, id).await?;
    refuse_others(&schedule)?;
    if params.dry_run {
        return dry_run(&app, Some(&schedule), None, vec![]).await;
    }
    app.editor_for(&caller.by()).delete(id, app.now()).await?;
    app.nudges.schedules_changed();
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// The longest pause that ends by itself.
const PAUSE_MAX: SignedDuration = SignedDuration::from_hours(24 * 366 * 10);

/// Why, and until when.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct PauseRequest {
    /// Why, for whoever reads it later.
    #[schema(example = "the target is down")]
    reason: Option<String>,
    /// The schedule goes on by itself after so many seconds.
    #[schema(minimum = 1, maximum = 316224000, example = 7200)]
    for_seconds: Option<u64>,
    /// The schedule goes on by itself at this instant. Not together with `forSeconds`.
    #[schema(value_type = Option<String>, format = DateTime)]
    until: Option<Timestamp>,
}

impl PauseRequest {
    /// When the pause ends by itself, as far as stores keep it.
    fn end(&self, now: Timestamp) -> Result<Option<Timestamp>, ApiError> {
        let fix = "use a time from now on, at most ten years away";
        let (field, until) = match (self.for_seconds, self.until) {
            (None, None) => return Ok(None),
            (Some(_), Some(_)) => {
                return Err(ApiError::invalid("until", "forSeconds says it already", "use one of them"));
            }
            (Some(seconds), None) => {
                let length = i64::try_from(seconds).ok().map(SignedDuration::from_secs);
                ("forSeconds", length.and_then(|length| now.checked_add(length).ok()))
            }
            (None, Some(until)) => ("until", Some(punctual_core::time::zone::floor_microsecond(until))),
        };
        let is_allowed = |until: &Timestamp| now < *until && until.duration_since(now) <= PAUSE_MAX;
        until.filter(is_allowed).map(Some).ok_or_else(|| ApiError::invalid(field, "the pause cannot end then", fix))
    }
}

/// Pause a schedule: what lies ahead is withdrawn, the slots of the pause are recorded as skipped when it ends.
///
/// With `forSeconds` or `until` the schedule goes on by itself at that time. A pause of what is paused changes only when it ends.
#[utoipa::path(post, path = "/api/schedules/{scheduleId}/pause", tag = "schedules", request_body = PauseRequest,
    params(("scheduleId" = uuid::Uuid, Path)),
    responses((status = 200, body = ScheduleView), (status = 404, body = Problem), (status = 422, body = Problem)))]
pub(crate) async fn pause(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<ScheduleId>,
    Asked { body, by }: Asked<PauseRequest>,
) -> Result<Response, ApiError> {
    find(&app, &caller, id).await?;
    let now = app.now();
    let (until, reason) = (body.end(now)?, body.reason);
    let (kind, source) = (PauseKind::Paused, caller.token.name.clone());
    let pause = Pause { kind, at: now, source, reason: reason.clone(), until };
    let by = By { reason, ..by };
    let paused = app.editor_for(&by).pause(id, pause, now).await;
    changed(&app, &caller, &by, paused).await
}

/// Let a paused schedule go on.
#[utoipa::path(post, path = "/api/schedules/{scheduleId}/resume", tag = "schedules",
    params(("scheduleId" = uuid::Uuid, Path)),
    responses((status = 200, body = ScheduleView), (status = 404, body = Problem)))]
pub(crate) async fn resume(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<ScheduleId>,
    Asked { body: Nothing {}, by }: Asked<Nothing>,
) -> Result<Response, ApiError> {
    find(&app, &caller, id).await?;
    let resumed = app.editor_for(&by).resume(id, app.now()).await;
    changed(&app, &caller, &by, resumed).await
}

/// What a draft would do.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PreviewView {
    /// What it does, in plain English.
    description: String,
    /// Its next times.
    next: Vec<FireView>,
    /// How many runs it has in the next 24 hours.
    runs_per_day: usize,
    /// What may not be as it was meant.
    warnings: Vec<String>,
}

/// One of the next times.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FireView {
    #[schema(value_type = String, format = DateTime)]
    scheduled_at: Timestamp,
    /// What the clock of its zone shows.
    #[schema(example = "2026-03-09T09:00:00")]
    local_time: String,
    /// Why it does not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped: Option<String>,
    /// What the clock does then.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
}

impl FireView {
    fn of(slot: &Slot) -> FireView {
        let note = match (slot.is_in_gap, slot.is_second_pass) {
            (true, _) => Some("the clock jumps over this time: it runs at the first instant behind it"),
            (_, true) => Some("the clock shows this time for the second time"),
            _ => None,
        };
        FireView {
            scheduled_at: slot.scheduled_at,
            local_time: slot.offset.to_datetime(slot.scheduled_at).to_string(),
            skipped: slot.skipped.map(|reason| reason.to_string()),
            note,
        }
    }
}

/// Show what a schedule would do, without creating it.
#[utoipa::path(post, path = "/api/schedules/preview", tag = "schedules", request_body = ScheduleFields, responses(
    (status = 200, body = PreviewView), (status = 422, body = Problem),
))]
pub(crate) async fn preview(
    State(app): State<App>,
    caller: Caller,
    Body(fields): Body<ScheduleFields>,
) -> Result<Json<PreviewView>, ApiError> {
    let now = app.now();
    let wanted = fields.into_schedule(&app, &caller.token.name, now)?;
    let Outlook { description, slots, runs_per_day, warnings } = look(&app, None, &wanted, now).await?;
    Ok(Json(PreviewView { description, next: slots.iter().map(FireView::of).collect(), runs_per_day, warnings }))
}

/// The answer to a change of a schedule, or to one that was made before.
async fn changed(
    app: &App,
    caller: &Caller,
    by: &By,
    changed: Result<Schedule, EditError>,
) -> Result<Response, ApiError> {
    let (schedule, is_again) = match changed {
        Ok(schedule) => {
            app.nudges.schedules_changed();
            (as_planned(app, schedule).await?, false)
        }
        Err(error) => (find(app, caller, ScheduleId(answered_before(by, error)?)).await?, true),
    };
    let answer = (etag(&schedule), Json(ScheduleView::of(&schedule, app).await?)).into_response();
    Ok(if is_again { again(answer) } else { answer })
}

/// Whether a change changes nothing, apart from what the engine keeps.
fn is_same(before: &Schedule, wanted: &Schedule) -> bool {
    let Schedule { version, cursor, runs_started, read_until, created_at, updated_at, .. } = before.clone();
    *before == Schedule { version, cursor, runs_started, read_until, created_at, updated_at, ..wanted.clone() }
}

/// A schedule that was changed, with the cursor that its plan has come to since.
async fn as_planned(app: &App, changed: Schedule) -> Result<Schedule, ApiError> {
    let stored = app.store.schedule(changed.id).await?.filter(|it| it.version == changed.version);
    Ok(stored.unwrap_or(changed))
}

/// A schedule that is there for whoever asks.
pub(crate) async fn find(app: &App, caller: &Caller, id: ScheduleId) -> Result<Schedule, ApiError> {
    let schedule = app.store.schedule(id).await?.filter(|it| caller.reaches(it.project.as_deref()));
    schedule.ok_or_else(|| ApiError::not_found("schedule", id))
}

/// What is kept in the file is changed there.
fn refuse_others(schedule: &Schedule) -> Result<(), ApiError> {
    if schedule.face == Face::Conductor {
        let detail = "it was made over Conductor's API, and is changed there: /api/scheduler/schedules";
        return Err(ApiError::conflict("other_face", detail));
    }
    if schedule.origin != Some(Origin::File) {
        return Ok(());
    }
    let detail = "this schedule is kept in the configuration file: change it there; pause and resume work here";
    Err(ApiError::conflict("kept_in_file", detail))
}

async fn look(app: &App, before: Option<&Schedule>, wanted: &Schedule, now: Timestamp) -> Result<Outlook, ApiError> {
    let limits =
        checks::Limits { min_interval: app.rules.min_interval, runs_per_day_warning: app.rules.runs_per_day_warning };
    let settings = Arc::clone(&app.settings);
    let (looked_at, before) = (wanted.clone(), before.cloned());
    let checked = app.calculations.run(move || match &before {
        None => checks::check(&looked_at, &settings, &limits, now, PREVIEWED),
        Some(before) => checks::check_change(before, &looked_at, &settings, &limits, now, PREVIEWED),
    });
    checked.await?.map_err(|refused| {
        let field = match *wanted.trigger {
            punctual_core::schedule::Trigger::Every(_) => "intervalMinutes",
            punctual_core::schedule::Trigger::At(_) => "runAt",
            punctual_core::schedule::Trigger::Times(_) => "timesOfDay",
            _ => "cronExpr",
        };
        let problem = refused.to_string();
        match refused {
            Refused::Invalid(_) => ApiError::invalid("timezone", problem, "use one that exists"),
            Refused::NeverFires(_) => ApiError::invalid(field, problem, "use a time that comes"),
            Refused::TooOften { .. } => ApiError::invalid(
                field,
                problem,
                "run it less often, or ask the operator to lower min_interval_seconds",
            ),
        }
    })
}

/// A name that nobody gave is none that a client knows.
fn said_in_our_words(refused: EditError) -> ApiError {
    match refused {
        EditError::NameTaken(name) if name.starts_with('@') => {
            let agent = name.trim_start_matches('@');
            let detail =
                format!("agent {agent} has a schedule without a name in this project already; give this one a name");
            ApiError::conflict("agent_taken", detail)
        }
        refused => refused.into(),
    }
}

fn etag(schedule: &Schedule) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if let Ok(value) = format!("\"{}\"", schedule.version).parse() {
        headers.insert(ETAG, value);
    }
    headers
}

/// The version that a client has seen.
fn if_match(headers: &HeaderMap) -> Result<Option<u64>, ApiError> {
    let Some(value) = headers.get(IF_MATCH) else { return Ok(None) };
    let text = value.to_str().unwrap_or_default().trim();
    if text == "*" {
        return Ok(None);
    }
    let version = text.trim_matches('"').parse().ok();
    version.map(Some).ok_or_else(|| ApiError::malformed("If-Match: use the version of the schedule, like \"3\""))
}

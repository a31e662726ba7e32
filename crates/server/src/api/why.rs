//! Why a run ran, waits, was late, was skipped or did not run.

use axum::Json;
use axum::extract::State;
use jiff::{SignedDuration, Timestamp};
use punctual_core::journal::{SkipEntry, Verdict};
use punctual_core::run::Run;
use punctual_core::schedule::{At, Pass};
use punctual_core::{RunId, ScheduleId};
use punctual_engine::why::{Cause, RunFacts, SlotFacts, why_gone, why_not, why_run};
use punctual_store::{HistoryFilter, HistoryWhat, RunFilter};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::schedules;
use crate::app::App;
use crate::auth::Caller;
use crate::error::{ApiError, Problem};
use crate::extract::{Id, Params};

/// How much of the history is looked at.
const LOOKED_AT: usize = 100;

/// How many live runs are looked at.
const LIVE_MAX: usize = 5_000;

/// Why something is as it is: causes, the most telling first.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WhyView {
    #[schema(value_type = Option<uuid::Uuid>)]
    execution_id: Option<RunId>,
    #[schema(value_type = Option<uuid::Uuid>)]
    schedule_id: Option<ScheduleId>,
    #[schema(value_type = Option<String>, format = DateTime)]
    scheduled_at: Option<Timestamp>,
    causes: Vec<CauseView>,
}

/// A cause.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CauseView {
    /// For programs; it stays the same from release to release.
    #[schema(example = "queued")]
    code: &'static str,
    /// For people.
    #[schema(example = "run 0198… of the same schedule is still running")]
    sentence: String,
}

impl CauseView {
    fn all(causes: Vec<Cause>) -> Vec<CauseView> {
        causes.into_iter().map(|Cause { code, sentence }| CauseView { code, sentence }).collect()
    }
}

/// Why a run ran, waits, was late, was skipped or failed.
#[utoipa::path(get, path = "/api/executions/{executionId}/why", tag = "executions",
    params(("executionId" = uuid::Uuid, Path)), responses((status = 200, body = WhyView), (status = 404, body = Problem)))]
pub(crate) async fn of_run(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<RunId>,
) -> Result<Json<WhyView>, ApiError> {
    if let Some(run) = app.store.run(id).await?.filter(|run| caller.reaches(run.terms.project.as_deref())) {
        return Ok(Json(explain(&app, &run).await?));
    }
    // The run is gone, and the history may still have it.
    let filter =
        HistoryFilter { run: Some(id), projects: caller.projects(), limit: LOOKED_AT, ..HistoryFilter::default() };
    let history = app.store.history(&filter).await?;
    let causes = why_gone(&history);
    if causes.is_empty() {
        return Err(ApiError::not_found("execution", id));
    }
    Ok(Json(WhyView { execution_id: Some(id), schedule_id: None, scheduled_at: None, causes: CauseView::all(causes) }))
}

/// Which time.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct WhyParams {
    /// An instant, or a local time in the schedule's zone.
    #[param(example = "2026-03-09T09:00:00")]
    at: String,
}

/// Why a schedule ran, or did not run, at a time.
#[utoipa::path(get, path = "/api/schedules/{scheduleId}/why", tag = "schedules",
    params(("scheduleId" = uuid::Uuid, Path), WhyParams),
    responses((status = 200, body = WhyView), (status = 404, body = Problem), (status = 422, body = Problem)))]
pub(crate) async fn of_slot(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<ScheduleId>,
    Params(WhyParams { at }): Params<WhyParams>,
) -> Result<Json<WhyView>, ApiError> {
    let schedule = schedules::find(&app, &caller, id).await?;
    let zone = app.settings.zones.get(&schedule.zone).unwrap_or_else(|_| app.rules.default_zone.clone());
    let At(at) = At::parse(&at, &zone, Pass::First).map_err(|error| ApiError::unreadable("at", error))?;
    let until = at.checked_add(SignedDuration::from_micros(1)).ok();
    let filter = RunFilter { schedule: Some(id), from: Some(at), until, limit: 1, ..RunFilter::default() };
    if let Some(run) = app.store.runs(&filter).await?.first() {
        return Ok(Json(explain(&app, run).await?));
    }
    let filter = HistoryFilter { schedule: Some(id), until, limit: LOOKED_AT, ..HistoryFilter::default() };
    let skips = app.store.history(&HistoryFilter { verdict: Some(Verdict::Skipped), ..filter.clone() }).await?;
    let covers = |skip: &&SkipEntry| skip.first_at <= at && at <= skip.last_at;
    let skip = skips.iter().find_map(|item| match &item.what {
        HistoryWhat::Skipped(skip) => Some(skip).filter(covers),
        _ => None,
    });
    let timetable = schedule.timetable(&app.settings.zones, &app.settings.calendars).ok();
    let just_before = at.checked_sub(SignedDuration::from_nanos(1)).unwrap_or(Timestamp::MIN);
    let slot = timetable.as_ref().and_then(|timetable| timetable.slots(just_before).next());
    let slot = slot.filter(|slot| slot.scheduled_at == at).map(|slot| slot.skipped);
    let facts = SlotFacts { now: app.now(), at, schedule: &schedule, slot, skip };
    let causes = CauseView::all(why_not(&facts));
    Ok(Json(WhyView { execution_id: None, schedule_id: Some(id), scheduled_at: Some(at), causes }))
}

async fn explain(app: &App, run: &Run) -> Result<WhyView, ApiError> {
    let schedule = match run.schedule {
        Some(id) => app.store.schedule(id).await?,
        None => None,
    };
    let filter = HistoryFilter { run: Some(run.id), limit: LOOKED_AT, ..HistoryFilter::default() };
    let history = app.store.history(&filter).await?;
    let live = RunFilter { only_live: true, limit: LIVE_MAX, ..RunFilter::default() };
    let live = if run.state.is_final() { vec![] } else { app.store.runs(&live).await? };
    let agent = run.terms.work.agent();
    let is_at_work = |other: &&Run| other.owner().is_some() && other.terms.work.agent() == agent;
    let agent_running = live.iter().filter(is_at_work).count();
    let siblings: Vec<Run> =
        live.iter().filter(|it| it.schedule.is_some() && it.schedule == run.schedule).cloned().collect();
    let has_agent = app.store.nodes().await?.iter().any(|node| node.agents.contains(agent));
    let facts = RunFacts {
        now: app.now(),
        run,
        schedule: schedule.as_ref(),
        history: &history,
        siblings: &siblings,
        has_agent,
        agent_running,
    };
    Ok(WhyView {
        execution_id: Some(run.id),
        schedule_id: run.schedule,
        scheduled_at: Some(run.scheduled_at),
        causes: CauseView::all(why_run(&facts)),
    })
}

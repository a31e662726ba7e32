//! Why a run ran, waits, was late, was skipped or did not run.

use axum::Json;
use axum::extract::State;
use jiff::{SignedDuration, Timestamp};
use punctual_core::journal::{SkipEntry, Verdict};
use punctual_core::plan::{SlotsAhead, run_ahead};
use punctual_core::run::{Run, RunState};
use punctual_core::schedule::{At, Pass, Schedule};
use punctual_core::time::{Slot, Zone};
use punctual_core::{RunId, ScheduleId};
use punctual_engine::checks::next_run_at;
use punctual_engine::why::{
    Cause, RunFacts, ScheduleFacts, SlotFacts, Takers, why_gone, why_not, why_run, why_schedule,
};
use punctual_store::{HistoryFilter, HistoryWhat, NodeRecord, RunFilter};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::executions::run_or_slot;
use super::next_runs::NextRuns;
use super::schedules;
use super::touched::touched;
use crate::app::App;
use crate::auth::Caller;
use crate::error::{ApiError, Problem};
use crate::extract::{Id, Params};

/// How much of the history is looked at.
const LOOKED_AT: usize = 100;

/// How many live runs are looked at.
const LIVE_MAX: usize = 5_000;

/// Why something is as it is: causes, the most telling first.
#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WhyView {
    #[schema(value_type = Option<uuid::Uuid>)]
    execution_id: Option<RunId>,
    #[schema(value_type = Option<uuid::Uuid>)]
    schedule_id: Option<ScheduleId>,
    #[schema(value_type = Option<String>, format = DateTime)]
    scheduled_at: Option<Timestamp>,
    causes: Vec<CauseView>,
    /// What is to be said of the schedule itself, whatever its runs are: paused, over, not served, not run yet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    schedule_causes: Vec<CauseView>,
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

/// By whose clock.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ClockParams {
    /// The zone whose clock sentences speak of; the default zone when absent.
    #[param(example = "Europe/Paris")]
    zone: Option<String>,
}

/// Why a run ran, waits, was late, was skipped or failed.
#[utoipa::path(get, path = "/api/executions/{executionId}/why", tag = "executions",
    params(("executionId" = uuid::Uuid, Path), ClockParams),
    responses((status = 200, body = WhyView), (status = 404, body = Problem)))]
pub(crate) async fn of_run(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<RunId>,
    Params(ClockParams { zone }): Params<ClockParams>,
) -> Result<Json<WhyView>, ApiError> {
    let zone = clock(&app, zone)?;
    run_by_id(&app, &caller, id, &zone).await?.map(Json).ok_or_else(|| ApiError::not_found("execution", id))
}

/// What is known of a run, be it there or in the history alone.
async fn run_by_id(app: &App, caller: &Caller, id: RunId, zone: &Zone) -> Result<Option<WhyView>, ApiError> {
    if let Some(run) = run_or_slot(app, id).await?.filter(|run| caller.reaches(run.terms.project.as_deref())) {
        return Ok(Some(explain(app, caller, &run, zone).await?));
    }
    // The run is gone, and the history may still have it.
    let filter =
        HistoryFilter { run: Some(id), projects: caller.projects(), limit: LOOKED_AT, ..HistoryFilter::default() };
    let causes = why_gone(&app.store.history(&filter).await?);
    let view = WhyView { execution_id: Some(id), causes: CauseView::all(causes), ..WhyView::default() };
    Ok(Some(view).filter(|view| !view.causes.is_empty()))
}

/// Which time.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct WhyParams {
    /// An instant, or a local time in the schedule's zone. When absent, the run that is at work, waits or is due is meant, else
    /// the last one.
    #[param(example = "2026-03-09T09:00:00")]
    at: Option<String>,
    /// The zone whose clock sentences speak of; the default zone when absent.
    #[param(example = "Europe/Paris")]
    zone: Option<String>,
}

/// Why a schedule ran, or did not run, at a time or at all.
#[utoipa::path(get, path = "/api/schedules/{scheduleId}/why", tag = "schedules",
    params(("scheduleId" = uuid::Uuid, Path), WhyParams),
    responses((status = 200, body = WhyView), (status = 404, body = Problem), (status = 422, body = Problem)))]
pub(crate) async fn of_schedule(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<ScheduleId>,
    Params(WhyParams { at, zone }): Params<WhyParams>,
) -> Result<Json<WhyView>, ApiError> {
    let schedule = schedules::find(&app, &caller, id).await?;
    let clock = clock(&app, zone)?;
    let view = match at {
        Some(at) => of_slot(&app, &caller, &schedule, &at, &clock).await?,
        None => of_now(&app, &caller, &schedule, &clock).await?,
    };
    Ok(Json(view))
}

async fn of_slot(app: &App, caller: &Caller, schedule: &Schedule, at: &str, clock: &Zone) -> Result<WhyView, ApiError> {
    let id = schedule.id;
    let zone = app.settings.zones.get(&schedule.zone).unwrap_or_else(|_| app.rules.default_zone.clone());
    let At(at) = At::parse(at, &zone, Pass::First).map_err(|error| ApiError::unreadable("at", error))?;
    let until = at.checked_add(SignedDuration::from_micros(1)).ok();
    let filter = RunFilter { schedule: Some(id), from: Some(at), until, limit: 1, ..RunFilter::default() };
    if let Some(run) = app.store.runs(&filter).await?.first() {
        return explain(app, caller, run, clock).await;
    }
    if app.now() < at
        && let Some(run) = run_ahead_at(app, schedule, at)
    {
        return explain(app, caller, &run, clock).await;
    }
    let filter = HistoryFilter { schedule: Some(id), until, limit: LOOKED_AT, ..HistoryFilter::default() };
    let skips = app.store.history(&HistoryFilter { verdict: Some(Verdict::Skipped), ..filter.clone() }).await?;
    let covers = |skip: &&SkipEntry| skip.first_at <= at && at <= skip.last_at;
    let skip = skips.iter().find_map(|item| match &item.what {
        HistoryWhat::Skipped(skip) => Some(skip).filter(covers),
        _ => None,
    });
    let just_before = at.checked_sub(SignedDuration::from_nanos(1)).unwrap_or(Timestamp::MIN);
    let slot = slot_behind(app, schedule, just_before).filter(|slot| slot.scheduled_at == at).map(|slot| slot.skipped);
    let has_server = !live_nodes(app, caller).await?.is_empty();
    let facts = SlotFacts { now: app.now(), at, schedule, slot, skip, has_server, zone: clock };
    let causes = CauseView::all(why_not(&facts));
    Ok(WhyView { schedule_id: Some(id), scheduled_at: Some(at), causes, ..WhyView::default() })
}

/// The run of a schedule that is at work, waits or is due, else its last one; and what is to be said of the schedule itself.
async fn of_now(app: &App, caller: &Caller, schedule: &Schedule, clock: &Zone) -> Result<WhyView, ApiError> {
    let (id, now) = (schedule.id, app.now());
    let until = now.checked_add(SignedDuration::from_micros(1)).ok();
    let due = RunFilter { schedule: Some(id), until, only_live: true, limit: LOOKED_AT, ..RunFilter::default() };
    let due = app.store.runs(&due).await?;
    let rank = |run: &&Run| (run.owner().is_none(), !matches!(run.state, RunState::Waiting { .. }));
    let run = due.iter().min_by_key(rank).map(|run| run.id);
    let run = match run {
        Some(run) => Some(run),
        None => last_run(app, id, now).await?,
    };
    let explained = match run {
        Some(run) => run_by_id(app, caller, run, clock).await?,
        None => None,
    };
    let next = NextRuns::read(app, std::slice::from_ref(schedule)).await?;
    let missed = slot_behind(app, schedule, schedule.cursor.at);
    let facts = ScheduleFacts {
        schedule,
        next: next_run_at(schedule, next.planned(id), &app.settings, now),
        missed_at: missed.map(|slot| slot.scheduled_at).filter(|at| *at <= now),
        has_past: explained.is_some(),
        has_server: !live_nodes(app, caller).await?.is_empty(),
        zone: clock,
    };
    let schedule_causes = CauseView::all(why_schedule(&facts));
    Ok(WhyView { schedule_id: Some(id), schedule_causes, ..explained.unwrap_or_default() })
}

/// The last run that a schedule had: one that was called off ahead of its time only if there is no other.
async fn last_run(app: &App, schedule: ScheduleId, now: Timestamp) -> Result<Option<RunId>, ApiError> {
    let filter = HistoryFilter { schedule: Some(schedule), limit: LOOKED_AT, ..HistoryFilter::default() };
    for until in [now.checked_add(SignedDuration::from_micros(1)).ok(), None] {
        let past = app.store.history(&HistoryFilter { until, ..filter.clone() }).await?;
        let found = past.iter().find_map(|item| match &item.what {
            HistoryWhat::Attempt(attempt) => Some(attempt.run),
            HistoryWhat::RunEnded(change) => Some(change.run),
            HistoryWhat::Skipped(_) => None,
        });
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// The run that the slot at an instant will have.
fn run_ahead_at(app: &App, schedule: &Schedule, at: Timestamp) -> Option<Run> {
    let timetable = schedule.timetable(&app.settings.zones, &app.settings.calendars).ok()?;
    let until = at.checked_add(SignedDuration::from_micros(1)).ok()?;
    let slot = SlotsAhead::new(schedule, &timetable, (at, until)).next()?;
    Some(run_ahead(schedule, &timetable, &slot))
}

/// The first slot of a schedule behind an instant.
fn slot_behind(app: &App, schedule: &Schedule, at: Timestamp) -> Option<Slot> {
    let timetable = schedule.timetable(&app.settings.zones, &app.settings.calendars).ok()?;
    timetable.slots(at).next()
}

/// The clock that sentences speak of.
fn clock(app: &App, zone: Option<String>) -> Result<Zone, ApiError> {
    let Some(name) = zone else { return Ok(app.rules.default_zone.clone()) };
    app.settings.zones.get(&name).map_err(|error| ApiError::unknown_zone("zone", &error))
}

/// The nodes that live. Whoever looks at a database from inside, of which only one server can be, knows that there is none.
async fn live_nodes(app: &App, caller: &Caller) -> Result<Vec<NodeRecord>, ApiError> {
    if caller.is_inside() && app.store.is_exclusive() {
        return Ok(vec![]);
    }
    let now = app.now();
    Ok(app.store.nodes().await?.into_iter().filter(|node| now <= node.lease_until).collect())
}

async fn explain(app: &App, caller: &Caller, run: &Run, zone: &Zone) -> Result<WhyView, ApiError> {
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
    let nodes = live_nodes(app, caller).await?;
    let facts = RunFacts {
        now: app.now(),
        run,
        schedule: schedule.as_ref(),
        history: &history,
        siblings: &siblings,
        takers: match nodes[..] {
            [] => Takers::NoServer,
            [_] if app.nudges.is_paused() => Takers::Paused,
            _ if nodes.iter().any(|node| node.agents.contains(agent)) => Takers::Some,
            _ => Takers::NoAgent,
        },
        agent_running,
        touched: &touched(app, run).await?,
        zone,
    };
    Ok(WhyView {
        execution_id: Some(run.id),
        schedule_id: run.schedule,
        scheduled_at: Some(run.scheduled_at),
        causes: CauseView::all(why_run(&facts)),
        schedule_causes: vec![],
    })
}

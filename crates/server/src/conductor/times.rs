//! Times to come: of a cron that somebody has in mind, and of a schedule.

use axum::Json;
use axum::extract::State;
use punctual_core::schedule::{Bounds, Crons, DstPolicy, GapPolicy, RepeatPolicy, Schedule, Trigger, Work, Workflow};
use serde::Deserialize;
use utoipa::IntoParams;

use super::error::{ErrorResponse, refused};
use super::find::found;
use super::save::{cron, instant, zone};
use crate::app::App;
use crate::auth::Caller;
use crate::error::ApiError;
use crate::extract::{Params, PathText};

/// The most times that are told.
const TIMES_MAX: usize = 1_000;

/// The most slots that are looked at for them. Schedules of this face have no calendar, and no gap of a clock skips as many: where
/// there are fewer times than were asked for, there are no more.
const LOOKED_AT_MAX: usize = 100_000;

/// Of which cron.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(crate) struct CronParams {
    /// The cron.
    #[param(example = "0 0 9 * * *")]
    cron_expression: Option<String>,
    /// Its zone.
    zone_id: Option<String>,
    /// No time before, in milliseconds since 1970.
    schedule_start_time: Option<i64>,
    /// No time behind, in milliseconds since 1970.
    schedule_end_time: Option<i64>,
    /// How many; 5 unless it says otherwise, 1,000 at most.
    limit: Option<usize>,
}

/// The next times of a cron, in milliseconds since 1970.
#[utoipa::path(get, path = "/api/scheduler/nextFewSchedules", tag = "conductor", params(CronParams), responses(
    (status = 200, body = Vec<i64>), (status = 400, body = ErrorResponse),
))]
pub(crate) async fn next_few(
    State(app): State<App>,
    _: Caller,
    Params(params): Params<CronParams>,
) -> Result<Json<Vec<i64>>, ApiError> {
    let text = params.cron_expression.as_deref().filter(|text| !text.trim().is_empty());
    let text = text.ok_or_else(|| refused("cronExpression", "Cron expression is required"))?;
    let trigger = Trigger::Cron(Crons::one(cron("cronExpression", text)?));
    let zone = zone(&app, "zoneId", params.zone_id.as_deref().filter(|name| !name.trim().is_empty()))?;
    let start = instant("scheduleStartTime", params.schedule_start_time)?;
    let end = instant("scheduleEndTime", params.schedule_end_time)?;
    let bounds = Bounds::new(start, end, None)
        .map_err(|_| refused("scheduleEndTime", "scheduleEndTime must be after scheduleStartTime"))?;
    let work = Work::Workflow { agent: Default::default(), request: Box::new(Workflow::default()) };
    let mut schedule = Schedule { bounds: bounds.into(), ..Schedule::draft(work, trigger, zone.name(), app.now()) };
    schedule.policy.dst = DstPolicy { gap: GapPolicy::Skip, repeat: RepeatPolicy::Both };
    times(&app, &schedule, params.limit.unwrap_or(5)).await.map(Json)
}

/// How many times.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct CountParams {
    /// How many; 5 unless it says otherwise, 1,000 at most.
    count: Option<usize>,
}

/// The next times of a schedule, in milliseconds since 1970: what it would do if it were not paused.
#[utoipa::path(get, path = "/api/scheduler/schedules/{name}/next-execution-times", tag = "conductor",
    params(("name" = String, Path), CountParams),
    responses((status = 200, body = Vec<i64>), (status = 404, body = ErrorResponse)))]
pub(crate) async fn of_schedule(
    State(app): State<App>,
    caller: Caller,
    PathText(name): PathText,
    Params(params): Params<CountParams>,
) -> Result<Json<Vec<i64>>, ApiError> {
    let schedule = found(&app, &caller, &name).await?;
    times(&app, &schedule, params.count.unwrap_or(5)).await.map(Json)
}

async fn times(app: &App, schedule: &Schedule, count: usize) -> Result<Vec<i64>, ApiError> {
    let timetable = schedule.timetable(&app.settings.zones, &app.settings.calendars);
    let timetable = timetable.map_err(|error| refused("zoneId", error.to_string()))?;
    let now = app.now();
    let first = move || {
        let slots = timetable.slots(now).looking_at(LOOKED_AT_MAX).filter(|slot| slot.skipped.is_none());
        slots.take(count.min(TIMES_MAX)).map(|slot| slot.scheduled_at.as_millisecond()).collect()
    };
    app.calculations.run(first).await
}

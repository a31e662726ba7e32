//! Schedules of this face, by name. A token sees those of its own project.

use punctual_core::schedule::{Face, Schedule};
use punctual_engine::checks::next_run_at;
use punctual_store::{RunFilter, ScheduleFilter};

use super::error::no_schedule;
use super::model::WorkflowSchedule;
use crate::app::App;
use crate::auth::Caller;
use crate::error::ApiError;

/// The project whose schedules a caller sees: names are told apart by it.
pub(super) fn project_of(caller: &Caller) -> Result<Option<String>, ApiError> {
    let Some(projects) = caller.projects() else { return Ok(None) };
    match <[String; 1]>::try_from(projects) {
        Ok([project]) => Ok(Some(project)),
        Err(_) => Err(ApiError::malformed("this token is for several projects; use one that is for one of them")),
    }
}

/// Those of this face that a caller sees.
pub(super) fn seen_by(caller: &Caller) -> Result<ScheduleFilter, ApiError> {
    let projects = Some(vec![project_of(caller)?]);
    Ok(ScheduleFilter { face: Some(Face::Conductor), projects, ..ScheduleFilter::default() })
}

/// A schedule, if it is there.
pub(super) async fn find(app: &App, caller: &Caller, name: &str) -> Result<Option<Schedule>, ApiError> {
    if name.contains('\0') {
        // No name has one, and a store may not even be asked.
        return Ok(None);
    }
    let filter = ScheduleFilter { name: Some(name.to_owned()), limit: 1, ..seen_by(caller)? };
    Ok(app.store.find_schedules(&filter).await?.schedules.pop())
}

/// A schedule that has to be there.
pub(super) async fn found(app: &App, caller: &Caller, name: &str) -> Result<Schedule, ApiError> {
    find(app, caller, name).await?.ok_or_else(|| no_schedule(name))
}

/// A schedule as it is shown. What is planned already and was not begun is what comes next, late or not.
pub(super) async fn view(app: &App, schedule: &Schedule) -> Result<WorkflowSchedule, ApiError> {
    let filter = RunFilter { schedule: Some(schedule.id), only_live: true, limit: 100, ..RunFilter::default() };
    let live = app.store.runs(&filter).await?;
    let planned = live.iter().filter(|run| run.is_untouched() && run.key.is_slot()).map(|run| run.scheduled_at).min();
    Ok(WorkflowSchedule::of(schedule, next_run_at(schedule, planned, &app.settings, app.now()).at()))
}

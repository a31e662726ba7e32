//! A schedule, as it is shown.

use std::sync::Arc;

use jiff::Timestamp;
use punctual_core::ScheduleId;
use punctual_core::schedule::{EndReason, Origin, Schedule, ScheduleState, Trigger};
use punctual_engine::checks::{Outlook, next_run_at};
use punctual_engine::settings::Settings;
use serde::Serialize;
use utoipa::ToSchema;

use super::next_runs::NextRuns;
use super::schedule_fields::ScheduleFields;
use crate::app::App;
use crate::error::ApiError;

/// A schedule: every field of a request, and what has become of it.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ScheduleView {
    #[schema(value_type = uuid::Uuid)]
    schedule_id: ScheduleId,
    #[serde(flatten)]
    fields: ScheduleFields,
    /// The crons behind the first, each with its zone, for a schedule of the file that has several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    more_crons: Vec<String>,
    /// What it does, in plain English.
    description: String,
    /// `active`, `paused` or `ended`.
    #[schema(example = "active")]
    state: &'static str,
    /// Who paused or disabled it, when and why.
    pause: Option<PauseView>,
    /// Why it is over.
    #[schema(value_type = Option<String>)]
    end_reason: Option<EndReason>,
    /// When it runs next: a run that was called off does not count.
    #[schema(value_type = Option<String>, format = DateTime)]
    next_execution_at: Option<Timestamp>,
    /// How many of its runs have started.
    runs_started: u64,
    /// `file` for a schedule that the configuration keeps: it is changed there.
    #[schema(value_type = Option<String>)]
    origin: Option<Origin>,
    /// Raised by every change.
    version: u64,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    updated_at: Timestamp,
    /// What may not be as it was meant.
    warnings: Vec<String>,
}

/// Who paused a schedule.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct PauseView {
    /// `paused` or `disabled`.
    #[schema(value_type = String)]
    kind: punctual_core::schedule::PauseKind,
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
    /// Who.
    source: String,
    /// Why.
    reason: Option<String>,
    /// When the schedule goes on by itself; absent if somebody has to resume it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    until: Option<Timestamp>,
}

impl ScheduleView {
    /// With the warnings of an outlook.
    pub(crate) fn warned(self, outlook: Outlook) -> ScheduleView {
        ScheduleView { warnings: outlook.warnings, ..self }
    }

    /// A schedule, with what is planned of it.
    pub(crate) async fn of(schedule: &Schedule, app: &App) -> Result<ScheduleView, ApiError> {
        let mut views = ScheduleView::all(std::slice::from_ref(schedule), app).await?;
        Ok(views.pop().expect("there is one for each"))
    }

    /// Schedules, with what is planned of them.
    pub(crate) async fn all(schedules: &[Schedule], app: &App) -> Result<Vec<ScheduleView>, ApiError> {
        let next = NextRuns::read(app, schedules).await?;
        let (schedules, settings, now) = (schedules.to_vec(), Arc::clone(&app.settings), app.now());
        let of_each = move || schedules.iter().map(|it| ScheduleView::new(it, &settings, &next, now)).collect();
        app.calculations.run(of_each).await
    }

    fn new(schedule: &Schedule, settings: &Settings, next: &NextRuns, now: Timestamp) -> ScheduleView {
        let (state, pause, end_reason) = match &schedule.state {
            ScheduleState::Active => ("active", None, None),
            ScheduleState::Paused(pause) => {
                let (source, reason, until) = (pause.source.clone(), pause.reason.clone(), pause.until);
                ("paused", Some(PauseView { kind: pause.kind, at: pause.at, source, reason, until }), None)
            }
            ScheduleState::Ended(reason) => ("ended", None, Some(*reason)),
        };
        let next = next_run_at(schedule, next.planned(schedule.id), settings, now);
        ScheduleView {
            schedule_id: schedule.id,
            fields: ScheduleFields::of(schedule),
            more_crons: more_crons(schedule),
            description: schedule.trigger.describe(&schedule.zone),
            state,
            pause,
            end_reason,
            next_execution_at: next.at(),
            runs_started: schedule.runs_started,
            origin: schedule.origin,
            version: schedule.version,
            created_at: schedule.created_at,
            updated_at: schedule.updated_at,
            warnings: next.warning().into_iter().collect(),
        }
    }
}

/// The crons behind the first.
fn more_crons(schedule: &Schedule) -> Vec<String> {
    let Trigger::Cron(crons) = &*schedule.trigger else { return vec![] };
    let zone = |zone: Option<&String>| String::clone(zone.unwrap_or(&schedule.zone));
    crons.iter().skip(1).map(|entry| format!("{};{}", entry.cron.text(), zone(entry.zone.as_ref()))).collect()
}

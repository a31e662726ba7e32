//! A schedule, as clients of Conductor write and read it.

use jiff::Timestamp;
use punctual_agents::workflow::StartRequest;
use punctual_core::schedule::{CatchUp, CatchUpMode, Overlap, Schedule, ScheduleState, Tag, Trigger};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A schedule that starts a workflow. Unknown fields are ignored, and what is null is absent.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WorkflowSchedule {
    /// What it is known by: saving one that is there replaces it.
    #[schema(example = "nightly-report")]
    pub(crate) name: Option<String>,
    /// When it fires, in Spring's dialect: six fields, seconds first.
    #[schema(example = "0 0 9 * * MON-FRI")]
    pub(crate) cron_expression: Option<String>,
    /// The IANA zone of `cronExpression`.
    #[schema(example = "Europe/Paris")]
    pub(crate) zone_id: Option<String>,
    /// Several crons, each in a zone of its own, in the place of `cronExpression`.
    pub(crate) cron_schedules: Option<Vec<CronSchedule>>,
    pub(crate) paused: Option<bool>,
    pub(crate) paused_reason: Option<String>,
    /// The workflow.
    #[schema(value_type = Option<Object>)]
    pub(crate) start_workflow_request: Option<StartRequest>,
    /// No slot before, in milliseconds since 1970; 0 is none.
    pub(crate) schedule_start_time: Option<i64>,
    /// No slot behind, in milliseconds since 1970; 0 is none.
    pub(crate) schedule_end_time: Option<i64>,
    /// Whether every slot that was missed is run.
    pub(crate) run_catchup_schedule_instances: Option<bool>,
    pub(crate) create_time: Option<i64>,
    pub(crate) updated_time: Option<i64>,
    pub(crate) created_by: Option<String>,
    pub(crate) updated_by: Option<String>,
    pub(crate) description: Option<String>,
    /// When it fires next, in milliseconds since 1970.
    pub(crate) next_run_time: Option<i64>,
    pub(crate) tags: Option<Vec<TagView>>,
    /// What happens when a run is due while another is at work; `allow` unless it says otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "allow")]
    pub(crate) overlap: Option<Overlap>,
    /// How many missed slots are run at most, the latest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) catch_up_max: Option<u32>,
    /// Whether a run ends with its workflow, and not when that is accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) follow_workflow: Option<bool>,
    /// What may not be as it was meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) warnings: Option<Vec<String>>,
}

/// A cron, and its zone.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct CronSchedule {
    pub(crate) cron_expression: Option<String>,
    pub(crate) zone_id: Option<String>,
}

/// A mark on a schedule.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub(crate) struct TagView {
    pub(crate) key: String,
    #[serde(rename = "type", default)]
    #[schema(example = "METADATA")]
    pub(crate) kind: Option<String>,
    #[serde(default)]
    pub(crate) value: Option<String>,
}

impl TagView {
    pub(crate) fn of(tag: &Tag) -> TagView {
        TagView { key: tag.key.clone(), kind: tag.kind.clone(), value: Some(tag.value.clone()) }
    }

    pub(crate) fn into_tag(self) -> Tag {
        Tag { key: self.key, kind: self.kind, value: self.value.unwrap_or_default() }
    }
}

impl WorkflowSchedule {
    /// A schedule as it is, with the time of its next run.
    pub(crate) fn of(schedule: &Schedule, next_run_at: Option<Timestamp>) -> WorkflowSchedule {
        let pause = match &schedule.state {
            ScheduleState::Paused(pause) => Some(pause),
            ScheduleState::Active | ScheduleState::Ended(_) => None,
        };
        let (expression, crons) = crons_of(schedule);
        let CatchUp { mode, max, .. } = schedule.policy.catch_up;
        let millis = |at: Timestamp| at.as_millisecond();
        let workflow = schedule.work.workflow();
        WorkflowSchedule {
            name: schedule.name.clone(),
            cron_expression: expression,
            zone_id: Some(String::clone(&schedule.zone)),
            cron_schedules: Some(crons),
            paused: Some(pause.is_some()),
            paused_reason: pause.and_then(|pause| pause.reason.clone()),
            start_workflow_request: workflow.map(StartRequest::from),
            schedule_start_time: schedule.bounds.start_at().map(millis),
            schedule_end_time: schedule.bounds.end_at().map(millis),
            run_catchup_schedule_instances: Some(mode == CatchUpMode::All),
            create_time: Some(millis(schedule.created_at)),
            updated_time: Some(millis(schedule.updated_at)),
            created_by: Option::clone(&schedule.created_by),
            updated_by: Option::clone(&schedule.updated_by),
            description: Option::clone(&schedule.description),
            next_run_time: next_run_at.map(millis),
            tags: Some(schedule.tags.iter().map(TagView::of).collect()),
            overlap: Some(schedule.policy.overlap).filter(|overlap| *overlap != Overlap::Allow),
            catch_up_max: Some(max).filter(|max| *max != CatchUp::UNLIMITED && mode == CatchUpMode::All),
            follow_workflow: workflow.map(|workflow| workflow.is_followed).filter(|is_followed| *is_followed),
            warnings: None,
        }
    }
}

/// The one cron of a schedule, or all of them with their zones.
fn crons_of(schedule: &Schedule) -> (Option<String>, Vec<CronSchedule>) {
    let Trigger::Cron(crons) = &*schedule.trigger else { return (None, vec![]) };
    let listed = crons.iter().filter(|entry| entry.zone.is_some());
    let listed = listed
        .map(|entry| CronSchedule { cron_expression: Some(entry.cron.text().to_owned()), zone_id: entry.zone.clone() });
    let own = crons.iter().find(|entry| entry.zone.is_none());
    (own.map(|entry| entry.cron.text().to_owned()), listed.collect())
}

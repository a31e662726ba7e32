//! Records: what became of the workflows that schedules had started, as clients of Conductor read it.

use std::collections::BTreeMap;

use punctual_agents::workflow::StartRequest;
use punctual_core::ScheduleId;
use punctual_core::journal::RecordState;
use punctual_core::schedule::Schedule;
use punctual_store::RecordItem;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::app::App;
use crate::error::ApiError;

/// The longest reason.
const REASON_MAX: usize = 999;

/// The start of a workflow.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ExecutionModel {
    execution_id: Uuid,
    schedule_name: String,
    /// When it was to be started, in milliseconds since 1970.
    scheduled_time: i64,
    /// When it was, in milliseconds since 1970.
    execution_time: Option<i64>,
    workflow_name: String,
    workflow_id: Option<String>,
    /// Why it was not started.
    reason: Option<String>,
    /// What the schedule asks for now; none if it is gone.
    #[schema(value_type = Option<Object>)]
    start_workflow_request: Option<StartRequest>,
    /// `POLLED`, `EXECUTED` or `FAILED`.
    #[schema(example = "EXECUTED")]
    state: &'static str,
    zone_id: String,
}

/// How far a start has come, in Conductor's words.
pub(super) fn word_of(state: RecordState) -> &'static str {
    match state {
        RecordState::Polled => "POLLED",
        RecordState::Executed => "EXECUTED",
        RecordState::Failed => "FAILED",
    }
}

/// Records as they are shown. Each schedule is read once.
pub(super) async fn views(app: &App, items: Vec<RecordItem>) -> Result<Vec<ExecutionModel>, ApiError> {
    let mut schedules: BTreeMap<ScheduleId, Option<Schedule>> = BTreeMap::new();
    let mut views = vec![];
    for item in items {
        if let Some(id) = item.schedule_id
            && !schedules.contains_key(&id)
        {
            schedules.insert(id, app.store.schedule(id).await?);
        }
        let schedule = item.schedule_id.and_then(|id| schedules.get(&id)?.as_ref());
        views.push(view(item, schedule));
    }
    Ok(views)
}

fn view(item: RecordItem, schedule: Option<&Schedule>) -> ExecutionModel {
    let workflow = schedule.and_then(|schedule| schedule.work.workflow());
    ExecutionModel {
        execution_id: id_of(&item),
        schedule_name: item.schedule,
        scheduled_time: item.scheduled_at.as_millisecond(),
        execution_time: item.executed_at.map(|at| at.as_millisecond()),
        workflow_name: item.workflow,
        workflow_id: item.workflow_id,
        reason: item.note.map(|note| note.chars().take(REASON_MAX).collect()),
        start_workflow_request: workflow.map(StartRequest::from),
        state: word_of(item.state),
        zone_id: schedule.map_or_else(|| "UTC".to_owned(), |schedule| String::clone(&schedule.zone)),
    }
}

/// The id of a record: that of its run. Slots that had none are known by the entry that says so.
fn id_of(item: &RecordItem) -> Uuid {
    let schedule = item.schedule_id.map_or(Uuid::nil(), |id| id.0);
    item.run.map_or_else(|| Uuid::from_u128(schedule.as_u128() ^ u128::from(item.seq.unwrap_or(0))), |run| run.0)
}

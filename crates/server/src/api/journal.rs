//! The journal: what happened, in order.

use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use punctual_core::journal::{Body, Entry};
use punctual_core::{By, RunId, ScheduleId};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::app::App;
use crate::auth::Caller;
use crate::error::ApiError;
use crate::extract::Params;

/// The most entries of a page.
const LIMIT_MAX: usize = 1_000;

/// Which entries.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct JournalParams {
    /// Behind this number.
    #[serde(default)]
    after: u64,
    /// At most so many: 1 to 1,000.
    limit: Option<usize>,
}

/// An entry of the journal.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EntryView {
    /// Its number: the order in which things happened.
    seq: u64,
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
    /// What kind of thing happened.
    #[schema(example = "schedule_changed")]
    kind: &'static str,
    #[schema(value_type = Option<uuid::Uuid>)]
    schedule_id: Option<ScheduleId>,
    #[schema(value_type = Option<uuid::Uuid>)]
    execution_id: Option<RunId>,
    /// Who asked for it.
    #[schema(value_type = Option<Object>)]
    by: Option<By>,
    /// All of it, as the journal has it.
    #[schema(value_type = Object)]
    body: serde_json::Value,
}

impl EntryView {
    fn new(entry: &Entry) -> EntryView {
        EntryView {
            seq: entry.seq,
            at: entry.at,
            kind: entry.body.kind(),
            schedule_id: entry.body.schedule(),
            execution_id: entry.body.run(),
            by: entry.body.by().cloned(),
            body: shown(&entry.body),
        }
    }
}

/// What the journal has, but for what a token is known by.
fn shown(body: &Body) -> serde_json::Value {
    let mut shown = serde_json::to_value(body).unwrap_or_default();
    let tokens = [shown.pointer_mut("/token_made/token")];
    tokens.into_iter().flatten().filter_map(|token| token.as_object_mut()).for_each(|token| drop(token.remove("hash")));
    let kept = shown.pointer_mut("/checkpoint/tokens").and_then(|tokens| tokens.as_object_mut());
    for token in kept.into_iter().flat_map(|tokens| tokens.values_mut()).filter_map(|token| token.as_object_mut()) {
        token.remove("hash");
    }
    shown
}

/// Entries behind a number, in order. Only for tokens that are for every project.
#[utoipa::path(get, path = "/api/journal", tag = "journal", params(JournalParams), responses(
    (status = 200, body = Vec<EntryView>), (status = 403, body = crate::error::Problem),
))]
pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    Params(params): Params<JournalParams>,
) -> Result<Json<Vec<EntryView>>, ApiError> {
    caller.must_reach_all()?;
    let limit = params.limit.unwrap_or(100);
    if !(1..=LIMIT_MAX).contains(&limit) {
        return Err(ApiError::invalid("limit", format!("{limit} is out of range"), format!("use 1 to {LIMIT_MAX}")));
    }
    let entries = app.store.entries(params.after, limit).await?;
    Ok(Json(entries.iter().map(EntryView::new).collect()))
}

//! The journal: what happened, in order.

use axum::Json;
use axum::extract::State;
use axum::response::{AppendHeaders, IntoResponse, Response};
use jiff::Timestamp;
use punctual_core::journal::{Body, Entry};
use punctual_core::{By, RunId, ScheduleId};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::page::after;
use crate::app::App;
use crate::auth::Caller;
use crate::error::ApiError;
use crate::extract::Params;

/// The most entries of a page.
const LIMIT_MAX: usize = 1_000;

/// The most entries that one request looks at.
const LOOKED_AT_MAX: usize = 20_000;

/// Which entries.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct JournalParams {
    /// Behind this number.
    #[param(maximum = 9_223_372_036_854_775_807_i64)]
    after: Option<u64>,
    /// At most so many: 1 to 1,000.
    #[param(minimum = 1, maximum = 1_000)]
    limit: Option<usize>,
    /// Of this kind, like `schedule_changed`.
    kind: Option<String>,
    /// About this schedule.
    #[param(value_type = Option<uuid::Uuid>)]
    schedule_id: Option<ScheduleId>,
    /// About this run.
    #[param(value_type = Option<uuid::Uuid>)]
    execution_id: Option<RunId>,
    /// Not before.
    #[param(value_type = Option<String>, format = DateTime)]
    from: Option<Timestamp>,
    /// Before.
    #[param(value_type = Option<String>, format = DateTime)]
    to: Option<Timestamp>,
}

impl JournalParams {
    fn wants(&self, entry: &Entry) -> bool {
        self.kind.as_ref().is_none_or(|kind| kind == entry.body.kind())
            && self.schedule_id.is_none_or(|id| entry.body.schedule() == Some(id))
            && self.execution_id.is_none_or(|id| entry.body.run() == Some(id))
            && self.from.is_none_or(|from| from <= entry.at)
            && self.to.is_none_or(|to| entry.at < to)
    }
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
    shown
}

/// Entries behind a number, in order. Filters combine. Only for tokens that are for every project.
///
/// `x-next-after` is the number behind which the next page begins: one request looks at 20,000 entries at most, and there may be
/// more behind a page that is not full. It is absent at the end.
#[utoipa::path(get, path = "/api/journal", tag = "journal", params(JournalParams), responses(
    (status = 200, body = Vec<EntryView>, headers(("x-next-after" = u64, description = "Where the next page begins"))),
    (status = 403, body = crate::error::Problem),
))]
pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    Params(params): Params<JournalParams>,
) -> Result<Response, ApiError> {
    caller.must_reach_all()?;
    let limit = params.limit.unwrap_or(100);
    if !(1..=LIMIT_MAX).contains(&limit) {
        return Err(ApiError::invalid("limit", format!("{limit} is out of range"), format!("use 1 to {LIMIT_MAX}")));
    }
    let (mut after, mut views, mut is_end) = (after(params.after)?.unwrap_or(0), vec![], false);
    let mut looked_at = 0;
    while views.len() < limit && looked_at < LOOKED_AT_MAX && !is_end {
        let page = app.store.entries(after, LIMIT_MAX).await?;
        is_end = page.len() < LIMIT_MAX;
        for (index, entry) in page.iter().enumerate() {
            after = entry.seq;
            views.extend(params.wants(entry).then(|| EntryView::new(entry)));
            if views.len() == limit {
                is_end &= index + 1 == page.len();
                break;
            }
        }
        looked_at += page.len();
    }
    let next = (!is_end).then(|| [("x-next-after", after.to_string())]);
    Ok((next.map(AppendHeaders), Json(views)).into_response())
}

//! History: what became of runs, and what it cost.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use jiff::civil::Date;
use punctual_core::journal::Verdict;
use punctual_core::time::Zone;
use punctual_core::{RunId, ScheduleId, storable};
use punctual_store::{HistoryFilter, HistoryItem, Totals};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::page::PageParams;
use super::past_view::{PastView, ResultStatus};
use super::schedule_names::ScheduleNames;
use crate::app::App;
use crate::auth::Caller;
use crate::error::{ApiError, Problem};
use crate::extract::{Params, PathText};

/// Which part of the history.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PastParams {
    /// Of this agent.
    agent_id: Option<String>,
    /// Of this project.
    project_id: Option<String>,
    /// Of this schedule.
    #[param(value_type = Option<uuid::Uuid>)]
    schedule_id: Option<ScheduleId>,
    /// Of this run.
    #[param(value_type = Option<uuid::Uuid>)]
    execution_id: Option<RunId>,
    /// That ended so.
    result_status: Option<ResultStatus>,
    /// That began, or were scheduled, from here on: an instant, or a day of the default zone.
    #[param(example = "2026-03-01")]
    from: Option<String>,
    /// Up to here, a day included.
    #[param(example = "2026-03-31")]
    to: Option<String>,
    page: Option<usize>,
    #[param(minimum = 1, maximum = 1_000)]
    size: Option<usize>,
}

impl PastParams {
    fn filter(&self, app: &App, caller: &Caller) -> Result<HistoryFilter, ApiError> {
        let zone = &app.rules.default_zone;
        let projects = match (&self.project_id, caller.projects()) {
            (None, projects) => projects,
            (Some(project), None) => Some(vec![project.clone()]),
            (Some(project), Some(own)) => Some(own.into_iter().filter(|it| it == project).collect()),
        };
        Ok(HistoryFilter {
            schedule: self.schedule_id,
            run: self.execution_id,
            agent: self.agent_id.clone(),
            projects,
            verdict: self.result_status.map(Verdict::from),
            from: self.from.as_deref().map(|text| bound("from", text, zone, false)).transpose()?,
            until: self.to.as_deref().map(|text| bound("to", text, zone, true)).transpose()?,
            offset: 0,
            limit: 0,
        })
    }
}

/// The years that anything is kept for.
pub(super) const YEARS: &str = "use a year from 1 to 9999";

/// An instant, or the beginning or the end of a day.
fn bound(field: &str, text: &str, zone: &Zone, is_end: bool) -> Result<Timestamp, ApiError> {
    let day = text.parse::<Date>().ok().filter(|_| !text.contains(['T', 't', ' ']));
    let at = match day {
        Some(day) if is_end => zone.day_end(day),
        Some(day) => zone.day_start(day),
        None => {
            let fix = "use 2026-03-09 or 2026-03-09T15:00:00Z";
            text.parse().map_err(|_| ApiError::invalid(field, "it is no time", fix))?
        }
    };
    let kept = Some(at).filter(|at| storable::is_kept(*at));
    kept.ok_or_else(|| ApiError::invalid(field, "nothing is kept for that year", YEARS))
}

/// A page of history.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PastPage {
    content: Vec<PastView>,
    /// How many there are in all.
    total_elements: u64,
    total_pages: u64,
    /// Which page this is, from 0.
    number: usize,
    size: usize,
    number_of_elements: usize,
    first: bool,
    last: bool,
    empty: bool,
}

/// What became of runs, latest first: each ended attempt, and what was cancelled or skipped. Filters combine.
#[utoipa::path(get, path = "/api/executions/past", tag = "executions", params(PastParams), responses(
    (status = 200, body = PastPage), (status = 422, body = Problem),
))]
pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    Params(params): Params<PastParams>,
) -> Result<Json<PastPage>, ApiError> {
    let (offset, size) = PageParams { page: params.page, size: params.size }.range(20)?;
    let filter = HistoryFilter { offset, limit: size, ..params.filter(&app, &caller)? };
    let total = app.store.count_history(&filter).await?;
    let items = app.store.history(&filter).await?;
    let (mut content, mut names) = (vec![], ScheduleNames::new(&app));
    for view in items.iter().filter_map(|item| PastView::new(item, false)) {
        content.push(view.named(&mut names).await?);
    }
    let pages = total.div_ceil(size as u64);
    let number = params.page.unwrap_or(0);
    Ok(Json(PastPage {
        total_elements: total,
        total_pages: pages,
        number,
        size,
        number_of_elements: content.len(),
        first: number == 0,
        last: pages <= number as u64 + 1,
        empty: content.is_empty(),
        content,
    }))
}

/// One line of history, with the end of what it printed.
#[utoipa::path(get, path = "/api/executions/past/{pastExecutionId}", tag = "executions",
    params(("pastExecutionId" = String, Path)), responses((status = 200, body = PastView), (status = 404, body = Problem)))]
pub(crate) async fn show(
    State(app): State<App>,
    caller: Caller,
    PathText(id): PathText,
) -> Result<Json<PastView>, ApiError> {
    let missing = || ApiError::not_found("past execution", id.escape_debug());
    let seq: u64 = id.parse().map_err(|_| missing())?;
    let entries = app.store.entries(seq.saturating_sub(1), 1).await?;
    let entry = entries.first().filter(|entry| entry.seq == seq).ok_or_else(missing)?;
    entry.body.mark(entry.at).filter(|mark| caller.reaches(mark.project)).ok_or_else(missing)?;
    let item = HistoryItem::of(entry).ok_or_else(missing)?;
    let view = PastView::new(&item, true).ok_or_else(missing)?;
    view.named(&mut ScheduleNames::new(&app)).await.map(Json)
}

/// What attempts came to.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Metrics {
    /// Attempts that began and have ended.
    total_runs: u64,
    success_count: u64,
    fail_count: u64,
    avg_duration_ms: u64,
    total_tokens: u64,
    estimated_cost_usd: f64,
    runs_by_agent: BTreeMap<String, u64>,
}

/// What the attempts that began have come to. Filters combine.
#[utoipa::path(get, path = "/api/executions/metrics", tag = "executions", params(PastParams), responses(
    (status = 200, body = Metrics), (status = 422, body = Problem),
))]
pub(crate) async fn metrics(
    State(app): State<App>,
    caller: Caller,
    Params(params): Params<PastParams>,
) -> Result<Json<Metrics>, ApiError> {
    // Sums have no pages; but what a page cannot be is refused here as in the list, whose parameters these are.
    PageParams { page: params.page, size: params.size }.range(1)?;
    let totals = app.store.totals(&params.filter(&app, &caller)?).await?;
    let of = |verdict| totals.iter().filter(|it| it.verdict == verdict).map(|it| it.attempts).sum();
    let attempts: u64 = totals.iter().map(|it| it.attempts).sum();
    let sum = |of: fn(&Totals) -> u64| totals.iter().map(of).fold(0, u64::saturating_add);
    let duration = sum(|it| it.duration_ms);
    let mut runs_by_agent = BTreeMap::new();
    for totals in &totals {
        *runs_by_agent.entry(totals.agent.clone()).or_default() += totals.attempts;
    }
    Ok(Json(Metrics {
        total_runs: attempts,
        success_count: of(Verdict::Succeeded),
        fail_count: of(Verdict::Failed),
        avg_duration_ms: duration.checked_div(attempts).unwrap_or(0),
        total_tokens: sum(|it| it.tokens),
        estimated_cost_usd: sum(|it| it.cost_micros) as f64 / 1e6,
        runs_by_agent,
    }))
}

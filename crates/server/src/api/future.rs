//! The day's queue: the runs of a day that are recorded, and its slots that are not due yet.
//!
//! Slots ahead are stored nowhere: they are computed for the page that is asked for, and counted for the rest.

use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};
use punctual_core::plan::{SlotsAhead, run_ahead};
use punctual_core::run::Run;
use punctual_core::schedule::Schedule;
use punctual_core::time::Zone;
use punctual_core::{NodeId, RunId, ScheduleId, storable};
use punctual_engine::settings::Settings;
use punctual_store::{NodeRecord, RunFilter};
use serde::Deserialize;
use utoipa::IntoParams;

use super::execution_view::{Around, ExecStatus, ExecutionView};
use super::page::{PageParams, total};
use super::past::YEARS;
use crate::app::App;
use crate::auth::Caller;
use crate::error::ApiError;
use crate::extract::Params;

/// No zone's clock is further from UTC.
const OFFSET_MAX: SignedDuration = SignedDuration::from_hours(26);

/// Which runs.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct FutureParams {
    /// Of this agent.
    agent_id: Option<String>,
    /// Of this project.
    project_id: Option<String>,
    /// Of this schedule.
    #[param(value_type = Option<uuid::Uuid>)]
    schedule_id: Option<ScheduleId>,
    /// The day, as each run's own zone has it; today when absent.
    #[param(value_type = Option<String>, example = "2026-03-09")]
    date_key: Option<Date>,
    /// In this state.
    exec_status: Option<ExecStatus>,
    page: Option<usize>,
    #[param(minimum = 1, maximum = 1_000)]
    size: Option<usize>,
}

/// The day's queue, by time: what is planned, at work or waiting, and what ended otherwise than well. Filters combine.
#[utoipa::path(get, path = "/api/executions/future", tag = "executions", params(FutureParams), responses(
    (status = 200, body = Vec<ExecutionView>, headers(("x-total-count" = u64, description = "How many there are in all"))),
))]
pub(crate) async fn future(
    State(app): State<App>,
    caller: Caller,
    Params(params): Params<FutureParams>,
) -> Result<Response, ApiError> {
    let (offset, size) = PageParams { page: params.page, size: params.size }.range(1_000)?;
    if LISTED_MAX < offset.saturating_add(size) {
        let fix = "filter by agentId, projectId or scheduleId";
        return Err(ApiError::invalid("page", format!("the first {LISTED_MAX} runs of a day are listed"), fix));
    }
    let now = app.now();
    let mut surroundings = Surroundings::read(&app).await?;
    let (from, until) = match params.date_key {
        Some(day) => {
            let midnight = day.to_zoned(jiff::tz::TimeZone::UTC).map(|day| day.timestamp()).ok();
            let kept = midnight.filter(|midnight| storable::is_kept(*midnight));
            let midnight = kept.ok_or_else(|| ApiError::invalid("dateKey", "nothing is kept for that year", YEARS))?;
            (midnight, midnight.checked_add(SignedDuration::from_hours(24)).unwrap_or(Timestamp::MAX))
        }
        None => (now, now),
    };
    let mut page = Page::new(offset + size);
    let is_recorded = RunFilter {
        schedule: params.schedule_id,
        from: from.checked_sub(OFFSET_MAX).ok(),
        until: until.checked_add(OFFSET_MAX).ok(),
        except_succeeded: true,
        limit: RUNS_READ,
        ..RunFilter::default()
    };
    let mut runs = RunPages { filter: is_recorded, last: None, is_over: false };
    while let Some(read) = runs.next(&app).await? {
        for run in read {
            let Some(view) = surroundings.view(&app, &caller, &run).await? else { continue };
            let day = params.date_key.unwrap_or_else(|| surroundings.today(&app, &run, now));
            let is_asked_for = view.date_key() == day.to_string()
                && params.exec_status.is_none_or(|status| status == view.status())
                && params.is_of(run.terms.work.agent(), run.terms.project.as_deref());
            if is_asked_for {
                page.add(run.scheduled_at, || (run.id, Listed::Recorded(Box::new(view))));
            }
        }
    }
    // What is not due yet waits for its time.
    if params.exec_status.is_none_or(|status| status == ExecStatus::Ready) {
        page = add_slots_ahead(&app, &caller, &params, page, now).await?;
    }
    let found = page.found;
    let mut views = Vec::with_capacity(size.min(page.first.len()));
    for listed in page.into_sorted().into_iter().skip(offset) {
        match listed {
            Listed::Recorded(view) => views.push(*view),
            Listed::Ahead(run) => views.extend(surroundings.view(&app, &caller, &run).await?),
        }
    }
    Ok((total(found), Json(views)).into_response())
}

/// The most runs of a day that can be listed, page by page.
const LISTED_MAX: usize = 100_000;

/// The most slots that one request looks at.
const SLOTS_MAX: u64 = 20_000_000;

/// How many runs are read at once.
const RUNS_READ: usize = 5_000;

/// How many schedules are read, and calculated, at once.
const SCHEDULES_READ: usize = 1_000;

impl FutureParams {
    fn is_of(&self, agent: &str, project: Option<&str>) -> bool {
        self.agent_id.as_deref().is_none_or(|wanted| wanted == agent)
            && self.project_id.as_deref().is_none_or(|wanted| project == Some(wanted))
    }
}

/// Something of the day's queue.
enum Listed {
    Recorded(Box<ExecutionView>),
    Ahead(Box<Run>),
}

/// The first so many of what is added, by time and id, and how many that were in all.
struct Page {
    max: usize,
    found: u64,
    /// The last of them first.
    first: BinaryHeap<Place>,
}

struct Place(Timestamp, RunId, Listed);

impl PartialEq for Place {
    fn eq(&self, other: &Place) -> bool {
        (self.0, self.1) == (other.0, other.1)
    }
}

impl Eq for Place {}

impl PartialOrd for Place {
    fn partial_cmp(&self, other: &Place) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Place {
    fn cmp(&self, other: &Place) -> std::cmp::Ordering {
        (self.0, self.1).cmp(&(other.0, other.1))
    }
}

impl Page {
    fn new(max: usize) -> Page {
        Page { max, found: 0, first: BinaryHeap::new() }
    }

    /// Adds one, which is only made if it may have a place.
    fn add(&mut self, at: Timestamp, make: impl FnOnce() -> (RunId, Listed)) {
        self.found += 1;
        let is_full = self.first.len() == self.max;
        if is_full && self.first.peek().is_none_or(|last| last.0 < at) {
            return;
        }
        let (id, listed) = make();
        self.first.push(Place(at, id, listed));
        if is_full {
            self.first.pop();
        }
    }

    fn into_sorted(self) -> Vec<Listed> {
        self.first.into_sorted_vec().into_iter().map(|Place(.., listed)| listed).collect()
    }
}

/// Pages of recorded runs.
struct RunPages {
    filter: RunFilter,
    last: Option<(Timestamp, RunId)>,
    is_over: bool,
}

impl RunPages {
    async fn next(&mut self, app: &App) -> Result<Option<Vec<Run>>, ApiError> {
        if self.is_over {
            return Ok(None);
        }
        let mut page = app.store.runs(&self.filter).await?;
        let is_full = page.len() == RUNS_READ;
        // What comes at the same instant as the last of the page before was in that, or comes after it.
        let last = self.last;
        page.retain(|run| last.is_none_or(|last| last < (run.scheduled_at, run.id)));
        match page.last().filter(|_| is_full) {
            Some(end) => {
                self.last = Some((end.scheduled_at, end.id));
                self.filter.from = Some(end.scheduled_at);
            }
            None => self.is_over = true,
        }
        Ok(Some(page))
    }
}

/// Adds the slots of the day that are not due yet, of every schedule that is asked for.
async fn add_slots_ahead(
    app: &App,
    caller: &Caller,
    params: &FutureParams,
    mut page: Page,
    now: Timestamp,
) -> Result<Page, ApiError> {
    let (mut after, mut looked_at) = (None, 0);
    loop {
        let schedules = match params.schedule_id {
            Some(id) => app.store.schedule(id).await?.into_iter().map(Arc::new).collect(),
            None => app.store.schedules(after, SCHEDULES_READ).await?,
        };
        let is_last = schedules.len() < SCHEDULES_READ;
        after = schedules.last().map(|schedule| schedule.id);
        let is_wanted = |schedule: &Arc<Schedule>| {
            let project = schedule.project.as_deref();
            schedule.is_active() && caller.reaches(project) && params.is_of(schedule.work.agent(), project)
        };
        let wanted: Vec<Arc<Schedule>> = schedules.into_iter().filter(is_wanted).collect();
        let (settings, day) = (Arc::clone(&app.settings), params.date_key);
        let work = move || {
            for schedule in &wanted {
                looked_at += add_day(&mut page, schedule, &settings, day, now);
                if SLOTS_MAX < looked_at {
                    return None;
                }
            }
            Some((page, looked_at))
        };
        let too_much =
            "a day has more slots than one request looks at: ask for an agentId, a projectId or a scheduleId";
        (page, looked_at) = app.calculations.run(work).await?.ok_or_else(|| ApiError::overloaded(too_much))?;
        if is_last {
            return Ok(page);
        }
    }
}

/// Adds the slots of a schedule's own day. How many were looked at.
fn add_day(page: &mut Page, schedule: &Arc<Schedule>, settings: &Settings, day: Option<Date>, now: Timestamp) -> u64 {
    // A schedule whose zone or calendar is missing has no slots: that is told where the schedule is shown.
    let Ok(timetable) = settings.timetables().of(schedule) else { return 1 };
    let zone = timetable.zone();
    let day = day.unwrap_or_else(|| zone.day_of(now));
    let mut ahead = SlotsAhead::new(schedule, &timetable, (zone.day_start(day), zone.day_end(day)));
    for slot in ahead.by_ref() {
        page.add(slot.scheduled_at, || {
            let run = run_ahead(schedule, &timetable, &slot);
            (run.id, Listed::Ahead(Box::new(run)))
        });
    }
    // A list that is not whole is refused, not shortened.
    if ahead.cut_at().is_some() { SLOTS_MAX + 1 } else { ahead.looked_at() }
}

/// What runs are shown with, read once for a list.
pub(crate) struct Surroundings {
    nodes: BTreeMap<NodeId, NodeRecord>,
    schedules: BTreeMap<ScheduleId, Option<Schedule>>,
}

impl Surroundings {
    pub(crate) async fn read(app: &App) -> Result<Surroundings, ApiError> {
        let nodes = app.store.nodes().await?.into_iter().map(|node| (node.id, node)).collect();
        Ok(Surroundings { nodes, schedules: BTreeMap::new() })
    }

    /// A run as it is shown, if it is for whoever asks.
    pub(crate) async fn view(
        &mut self,
        app: &App,
        caller: &Caller,
        run: &Run,
    ) -> Result<Option<ExecutionView>, ApiError> {
        if !caller.reaches(run.terms.project.as_deref()) {
            return Ok(None);
        }
        if let Some(id) = run.schedule
            && !self.schedules.contains_key(&id)
        {
            self.schedules.insert(id, app.store.schedule(id).await?);
        }
        let zone = self.zone(app, run);
        let schedule = run.schedule.and_then(|id| self.schedules.get(&id)?.as_ref());
        Ok(Some(ExecutionView::new(run, &Around { schedule, zone: &zone, nodes: &self.nodes })))
    }

    /// The zone whose day is a run's day.
    fn zone(&self, app: &App, run: &Run) -> Zone {
        let schedule = run.schedule.and_then(|id| self.schedules.get(&id)?.as_ref());
        let own = schedule.and_then(|schedule| app.settings.zones.get(&schedule.zone).ok());
        own.unwrap_or_else(|| app.rules.default_zone.clone())
    }

    fn today(&self, app: &App, run: &Run, now: Timestamp) -> Date {
        self.zone(app, run).day_of(now)
    }
}

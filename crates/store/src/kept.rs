//! What a store of the kernel keeps and is asked for: a small trait, and every role that follows from it.
//!
//! In: commands of the kernel, and questions. Schedules and the runs that are not over are answered from the kernel's state, runs
//! that are over from history. So what a database adds is how entries are appended, searched and followed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use jiff::civil::Date;
use punctual_core::journal::{Body, EndedRun, Entry};
use punctual_core::run::{Run, Terms};
use punctual_core::schedule::{Policy, Schedule, Work};
use punctual_core::{By, RunId, ScheduleId};
use punctual_kernel::state::State;
use punctual_kernel::transaction::{Needs, Transaction};
use uuid::Uuid;

use crate::commands;
use crate::error::Result;
use crate::records::begun;
use crate::requests::{
    AttemptReport, Cancellation, ClaimRequest, Claimed, LiveCounts, PlanSubject, PlanTask, PlanWrite, RecordItem,
    RunFilter, RunWritten, ScheduleFilter, SchedulePage, Settlement, StartRequest, Started, Written, ZoneDay,
};
use crate::roles::{Claims, Plan, Runs, Schedules};

/// How many schedules or runs one look at the state walks past: whoever looks holds up whoever decides.
const LOOKED_AT: usize = 1_000;

/// How many entries about a schedule are searched for the version that a run had.
const VERSIONS_READ: usize = 50;

/// A store that keeps the journal of the kernel.
pub trait Kept: Send + Sync {
    /// Carries out a command in one transaction: when this returns, it is durable. It may be carried out again if its transaction
    /// fails; the last time counts.
    fn commit<T: Send + 'static>(
        &self,
        doing: &'static str,
        needs: Needs,
        work: impl FnMut(&mut Transaction<'_>) -> punctual_kernel::Result<T> + Send + 'static,
    ) -> impl Future<Output = Result<T>> + Send;

    /// Looks at the state as it is committed: everything that was acknowledged before is in it.
    fn look<T: Send + 'static>(
        &self,
        doing: &'static str,
        look: impl FnMut(&State) -> T + Send + 'static,
    ) -> impl Future<Output = Result<T>> + Send;

    /// The last entries of history about a run, latest first.
    fn past_of_run(&self, run: RunId, limit: usize) -> impl Future<Output = Result<Vec<Entry>>> + Send;

    /// The entries that ended runs whose ids lie from one to before another, by id.
    fn ends_between(&self, ended: EndedBetween) -> impl Future<Output = Result<Vec<Entry>>> + Send;

    /// The last entries about each of these schedules and runs, so many for each: changes and deletions of schedules, requests for
    /// runs, and what else happened to runs between their starts and ends.
    fn entries_about(&self, subjects: Vec<Uuid>, each: usize) -> impl Future<Output = Result<Vec<Entry>>> + Send;
}

/// Which ended runs to read.
#[derive(Debug, Clone, Copy)]
pub struct EndedBetween {
    /// From this id on.
    pub from: RunId,
    /// Before this one.
    pub until: RunId,
    /// Of this schedule.
    pub schedule: Option<ScheduleId>,
    /// Not those that succeeded.
    pub except_succeeded: bool,
    /// So many at most.
    pub limit: usize,
}

#[async_trait]
impl<S: Kept> Schedules for S {
    async fn schedule(&self, id: ScheduleId) -> Result<Option<Schedule>> {
        self.look("reading a schedule", move |state| state.schedule(id).map(unshared)).await
    }

    async fn schedule_of_slot(&self, run: RunId) -> Result<Option<Schedule>> {
        self.look("reading the schedule of a slot", move |state| state.schedule_of_slot(run).map(unshared)).await
    }

    async fn schedules(&self, after: Option<ScheduleId>, limit: usize) -> Result<Vec<Arc<Schedule>>> {
        let (mut found, mut after) = (vec![], after);
        while found.len() < limit {
            let count = (limit - found.len()).min(LOOKED_AT);
            let page = self.look("reading schedules", move |state| state.schedules_after(after, count)).await?;
            let is_last = page.len() < count;
            after = page.last().map(|schedule| schedule.id);
            found.extend(page);
            if is_last {
                break;
            }
        }
        Ok(found)
    }

    async fn count_schedules(&self) -> Result<u64> {
        self.look("counting schedules", |state| state.count_schedules() as u64).await
    }

    async fn find_schedules(&self, filter: &ScheduleFilter) -> Result<SchedulePage> {
        let asked = Arc::new(filter.clone());
        let (mut found, mut after) = (vec![], None);
        loop {
            let wanted = Arc::clone(&asked);
            let find = move |state: &State| state.find_schedules(&wanted, after, LOOKED_AT);
            let page = self.look("finding schedules", find).await?;
            found.extend(page.found);
            after = page.next;
            if after.is_none() {
                return Ok(filter.page(found));
            }
        }
    }
}

#[async_trait]
impl<S: Kept> Plan for S {
    async fn to_plan(&self, now: Timestamp, zone_data: &str, limit: usize) -> Result<Vec<PlanTask>> {
        let zone_data = zone_data.to_owned();
        self.look("reading what is to be planned", move |state| state.to_plan(now, &zone_data, limit)).await
    }

    async fn next_plan_at(&self) -> Result<Option<Timestamp>> {
        self.look("reading when to plan", State::next_plan_at).await
    }

    async fn subject(&self, id: ScheduleId, now: Timestamp) -> Result<Option<PlanSubject>> {
        self.look("reading a schedule and its runs", move |state| state.subject(id, now)).await
    }

    async fn plan(&self, now: Timestamp, writes: Vec<PlanWrite>) -> Result<Vec<Written>> {
        commands::plan(self, now, writes).await
    }

    async fn zone_days(&self) -> Result<Vec<ZoneDay>> {
        self.look("reading the days of zones", State::zone_days).await
    }

    async fn begin_day(&self, now: Timestamp, zone: &str, date: Date) -> Result<bool> {
        commands::begin_day(self, now, zone, date).await
    }
}

#[async_trait]
impl<S: Kept> Runs for S {
    async fn run(&self, id: RunId) -> Result<Option<Run>> {
        if let Some(run) = self.look("reading a run", move |state| state.run(id).cloned()).await? {
            return Ok(Some(Arc::unwrap_or_clone(run)));
        }
        let past = self.past_of_run(id, 1).await?;
        let Some(ended) = past.first().and_then(EndedRun::of) else { return Ok(None) };
        Ok(with_terms(self, vec![ended]).await?.pop())
    }

    async fn live_counts(&self, now: Timestamp) -> Result<LiveCounts> {
        self.look("counting runs", move |state| state.live_counts(now)).await
    }

    async fn runs(&self, filter: &RunFilter) -> Result<Vec<Run>> {
        let mut runs = live_runs(self, filter).await?;
        if !filter.only_live && filter.waits_for.is_none() {
            runs.extend(ended_runs(self, filter).await?);
        }
        runs.sort_by_key(|run| (run.scheduled_at, run.id, !run.state.is_final()));
        // One may have come to its end between the two looks.
        runs.dedup_by_key(|run| run.id);
        runs.truncate(filter.limit);
        Ok(runs)
    }

    async fn ask(&self, now: Timestamp, run: Run, by: Option<By>) -> Result<bool> {
        commands::ask(self, now, run, by).await
    }

    async fn cancel(&self, now: Timestamp, id: RunId, by: Option<By>) -> Result<Cancellation> {
        commands::cancel(self, now, id, by).await
    }

    async fn resume(&self, now: Timestamp, id: RunId, epoch: Option<u64>, by: Option<By>) -> Result<RunWritten> {
        commands::resume(self, now, id, epoch, by).await
    }
}

#[async_trait]
impl<S: Kept> Claims for S {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claimed> {
        commands::claim(self, request).await
    }

    async fn start(&self, request: &StartRequest) -> Result<Started> {
        commands::start(self, request).await
    }

    async fn settle(&self, now: Timestamp, settlements: Vec<Settlement>) -> Result<Vec<RunWritten>> {
        commands::settle(self, now, settlements).await
    }

    async fn finish(&self, now: Timestamp, reports: Vec<AttemptReport>) -> Result<Vec<RunWritten>> {
        commands::finish(self, now, reports).await
    }
}

fn unshared(schedule: &Arc<Schedule>) -> Schedule {
    (**schedule).clone()
}

/// The records of workflows that are being started: of all live runs, few are one.
pub(crate) async fn live_records(store: &impl Kept) -> Result<Vec<RecordItem>> {
    let (mut found, mut after) = (vec![], None);
    loop {
        let page = store.look("reading records", move |state| state.walk_runs(after, LOOKED_AT, begun)).await?;
        found.extend(page.found);
        after = page.next;
        if after.is_none() {
            return Ok(found);
        }
    }
}

/// The live runs that a filter finds. There may be more than its limit, but not many times as many.
async fn live_runs(store: &impl Kept, filter: &RunFilter) -> Result<Vec<Run>> {
    let asked = Arc::new(filter.clone());
    let (mut found, mut after) = (vec![], None);
    loop {
        let wanted = Arc::clone(&asked);
        let find = move |state: &State| state.find_runs(&wanted, after, LOOKED_AT);
        let page = store.look("reading runs", find).await?;
        found.extend(page.found);
        after = page.next;
        if filter.limit.saturating_add(LOOKED_AT) < found.len() {
            found.sort_by_key(|run: &Run| (run.scheduled_at, run.id));
            found.truncate(filter.limit);
        }
        if after.is_none() {
            return Ok(found);
        }
    }
}

/// The ended runs that a filter finds, the first so many by id: ids begin with the time that a run is scheduled for.
async fn ended_runs(store: &impl Kept, filter: &RunFilter) -> Result<Vec<Run>> {
    let between = EndedBetween {
        from: RunId::first_at(filter.from.unwrap_or(Timestamp::MIN)),
        // A time is cut to its millisecond in an id.
        until: filter.until.map_or(RunId(Uuid::max()), RunId::first_after),
        schedule: filter.schedule,
        except_succeeded: filter.except_succeeded,
        limit: filter.limit,
    };
    let ends = store.ends_between(between).await?;
    let ended: Vec<EndedRun> = ends.iter().filter_map(EndedRun::of).collect();
    let runs = with_terms(store, ended).await?;
    Ok(runs.into_iter().filter(|run| filter.finds(run)).collect())
}

/// Runs that are over, with the terms that they had: those that were requested say them, the others have those of their schedule's
/// version. Where that is older than the journal, what is left of them is agent and project.
async fn with_terms(store: &impl Kept, ended: Vec<EndedRun>) -> Result<Vec<Run>> {
    let versions: BTreeSet<(ScheduleId, u64)> = ended.iter().filter_map(version_of).collect();
    let mut terms: BTreeMap<(ScheduleId, u64), Arc<Terms>> = BTreeMap::new();
    let wanted = versions.clone();
    let current = move |state: &State| -> Vec<Arc<Schedule>> {
        let of = |(id, version): &(ScheduleId, u64)| state.schedule(*id).filter(|it| it.version == *version).cloned();
        wanted.iter().filter_map(of).collect()
    };
    for schedule in store.look("reading the terms of runs", current).await? {
        terms.insert((schedule.id, schedule.version), Arc::new(Terms::of(&schedule)));
    }
    let older: BTreeSet<Uuid> = versions.iter().filter(|it| !terms.contains_key(it)).map(|(id, _)| id.0).collect();
    if !older.is_empty() {
        for entry in store.entries_about(older.into_iter().collect(), VERSIONS_READ).await? {
            if let Body::ScheduleChanged { schedule, .. } = &entry.body {
                let key = (schedule.id, schedule.version);
                terms.entry(key).or_insert_with(|| Arc::new(Terms::of(schedule)));
            }
        }
    }
    let requested: Vec<Uuid> = ended.iter().filter(|run| version_of(run).is_none()).map(|run| run.id.0).collect();
    let mut own: BTreeMap<RunId, Arc<Terms>> = BTreeMap::new();
    if !requested.is_empty() {
        for entry in store.entries_about(requested, VERSIONS_READ).await? {
            if let Body::RunAsked { run, .. } = entry.body {
                own.insert(run.id, run.terms);
            }
        }
    }
    let terms_of = |run: &EndedRun| {
        let found = version_of(run).map_or_else(|| own.get(&run.id), |version| terms.get(&version));
        found.map_or_else(|| Arc::new(bare_terms(run)), Arc::clone)
    };
    Ok(ended.into_iter().map(|run| (terms_of(&run), run)).map(|(terms, run)| run.into_run(terms)).collect())
}

/// The version of its schedule that a run of a slot was carried out under.
fn version_of(run: &EndedRun) -> Option<(ScheduleId, u64)> {
    run.schedule.filter(|_| run.key.is_slot()).map(|schedule| (schedule, run.end.version))
}

/// What is known of the terms of a run when the entries that say them are gone.
pub(crate) fn bare_terms(run: &EndedRun) -> Terms {
    let work = Work::Agent {
        agent: run.agent.as_str().into(),
        prompt: Default::default(),
        inputs: Default::default(),
        inputs_policy: Default::default(),
    };
    Terms::under(&Policy::default(), run.project.clone(), work)
}

//! Schedules, their plan, and runs as people touch them.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use jiff::civil::Date;
use punctual_core::journal::{Body, EndedRun, ScheduleRecord};
use punctual_core::run::{Run, RunState};
use punctual_core::schedule::Schedule;
use punctual_core::{By, RunId, ScheduleId};

use super::{MemoryStore, State};
use crate::error::{Result, StoreError};
use crate::requests::{
    Answered, Cancellation, LiveCounts, PlanSubject, PlanTask, PlanWrite, RunFilter, RunWritten, ScheduleFilter,
    SchedulePage, Written, ZoneDay, subject_from,
};
use crate::roles::{Plan, Runs, Schedules};
use punctual_kernel::change::{self, Draft, Wants};
use punctual_kernel::transaction::event_key;

#[async_trait]
impl Schedules for MemoryStore {
    async fn schedule(&self, id: ScheduleId) -> Result<Option<Schedule>> {
        Ok(self.state().world.schedules.get(&id).map(|record| (*record.schedule).clone()))
    }

    async fn schedule_of_slot(&self, run: RunId) -> Result<Option<Schedule>> {
        let Some(named) = run.slot_id() else { return Ok(None) };
        let state = self.state();
        let found = state.world.schedules.values().find(|it| it.schedule.id.tail() == named.schedule_tail);
        Ok(found.map(|record| (*record.schedule).clone()))
    }

    async fn schedules(&self, after: Option<ScheduleId>, limit: usize) -> Result<Vec<Arc<Schedule>>> {
        let state = self.state();
        let later = state.world.schedules.iter().filter(|(id, _)| after.is_none_or(|after| after < **id));
        Ok(later.map(|(_, record)| Arc::clone(&record.schedule)).take(limit).collect())
    }

    async fn count_schedules(&self) -> Result<u64> {
        Ok(self.state().world.schedules.len() as u64)
    }

    async fn find_schedules(&self, filter: &ScheduleFilter) -> Result<SchedulePage> {
        let state = self.state();
        let schedules = state.world.schedules.values().map(|record| &record.schedule);
        Ok(filter.page(schedules.filter(|schedule| filter.finds(schedule)).cloned().collect()))
    }
}

#[async_trait]
impl Plan for MemoryStore {
    async fn to_plan(&self, now: Timestamp, zone_data: &str, limit: usize) -> Result<Vec<PlanTask>> {
        let state = self.state();
        let wants_planning = |record: &&ScheduleRecord| {
            let is_due = record.plan_at.is_some_and(|plan_at| plan_at <= now);
            is_due || state.has_missed(record) || *record.zone_data != *zone_data
        };
        let mut records: Vec<&ScheduleRecord> = state.world.schedules.values().filter(wants_planning).collect();
        // What has no time of its own to be planned at comes first: an outage or new zone data waits for nothing.
        records.sort_by_key(|record| (record.plan_at, record.schedule.id));
        Ok(records.into_iter().take(limit).map(|record| state.task(record)).collect())
    }

    async fn next_plan_at(&self) -> Result<Option<Timestamp>> {
        Ok(self.state().world.schedules.values().filter_map(|record| record.plan_at).min())
    }

    async fn subject(&self, id: ScheduleId, now: Timestamp) -> Result<Option<PlanSubject>> {
        let state = self.state();
        let Some(record) = state.world.schedules.get(&id) else { return Ok(None) };
        let frontier = subject_from(record, now);
        let concerns = |run: &&Run| run.planned_for().is_some() || frontier < run.scheduled_at;
        let mut runs: Vec<Run> = state.runs_of(id).filter(concerns).cloned().collect();
        runs.sort_by_key(|run| (run.due_at, run.id));
        Ok(Some(PlanSubject { task: state.task(record), runs }))
    }

    async fn plan(&self, now: Timestamp, writes: Vec<PlanWrite>) -> Result<Vec<Written>> {
        let mut state = self.state();
        let mut answers = vec![];
        writes.iter().try_for_each(|write| state.refuse_repeated(write.by.as_ref()))?;
        for write in writes {
            let (wants, by, subject) = (write.wants(), write.by.clone(), write.schedule().0);
            let mut draft = state.draft(&wants, now);
            let written = change::plan(&mut draft, write, state.planner.map(|planner| planner.until));
            if written == Written::Done {
                state.note_agents(&draft, now);
                state.save(draft, &wants);
                state.note_answer(by.as_ref(), subject, now);
            }
            answers.push(written);
        }
        Ok(answers)
    }

    async fn zone_days(&self) -> Result<Vec<ZoneDay>> {
        let state = self.state();
        let zones: std::collections::BTreeSet<&String> =
            state.world.schedules.values().map(|record| &*record.schedule.zone).collect();
        let begun = |zone: &String| state.world.days.get(zone).copied();
        Ok(zones.into_iter().map(|zone| ZoneDay { zone: zone.clone(), begun: begun(zone) }).collect())
    }

    async fn begin_day(&self, now: Timestamp, zone: &str, date: Date) -> Result<bool> {
        let mut state = self.state();
        let mut draft = state.draft(&Wants::default(), now);
        let is_first = draft.add(Body::DayStarted { zone: zone.to_owned(), date }).is_ok();
        if is_first {
            state.save(draft, &Wants::default());
        }
        Ok(is_first)
    }
}

#[async_trait]
impl Runs for MemoryStore {
    async fn run(&self, id: RunId) -> Result<Option<Run>> {
        let state = self.state();
        let live = state.world.runs.get(&id).map(|run| Run::clone(run));
        Ok(live.or_else(|| state.ended(id).map(|ended| state.ended_run(ended))))
    }

    async fn live_counts(&self, now: Timestamp) -> Result<LiveCounts> {
        let mut counts = LiveCounts::default();
        for run in self.state().world.live_runs() {
            match run.state {
                RunState::Planned { due_at, .. } => {
                    counts.planned += 1;
                    if due_at <= now {
                        counts.due += 1;
                        counts.due_since = Some(counts.due_since.map_or(due_at, |since| since.min(due_at)));
                    }
                }
                RunState::Claimed { .. } => counts.claimed += 1,
                RunState::Running { .. } => counts.running += 1,
                RunState::Waiting { .. } => counts.waiting += 1,
                RunState::Finished { .. } => {}
            }
        }
        Ok(counts)
    }

    async fn runs(&self, filter: &RunFilter) -> Result<Vec<Run>> {
        let state = self.state();
        let live = state.world.live_runs().cloned();
        let ended = state.entries.iter().filter_map(EndedRun::of).map(|ended| state.ended_run(ended));
        let mut runs: Vec<Run> = live.chain(ended).filter(|run| filter.finds(run)).collect();
        runs.sort_by_key(|run| (run.scheduled_at, run.id));
        runs.truncate(filter.limit);
        Ok(runs)
    }

    async fn ask(&self, now: Timestamp, run: Run, by: Option<By>) -> Result<bool> {
        let mut state = self.state();
        state.refuse_repeated(by.as_ref())?;
        let (asked_by, id, key) = (by.clone(), run.id, event_key(&run));
        let slots = run.schedule.map(|schedule| (schedule, run.key.clone())).into_iter().collect();
        let wants =
            Wants { schedules: run.schedule.into_iter().collect(), runs: [run.id].into(), slots, ..Wants::default() };
        let mut draft = state.draft(&wants, now);
        let is_known = key.as_ref().is_some_and(|key| state.answers.contains_key(key));
        let is_new = !is_known && change::ask(draft.asked_by(by), run, state.ended(id).as_ref())?;
        state.note_agents(&draft, now);
        state.save(draft, &wants);
        state.note_answer(asked_by.as_ref(), id.0, now);
        if let Some(key) = key.filter(|_| is_new) {
            state.answers.insert(key, Answered { digest: 0, subject: id.0, at: now });
        }
        Ok(is_new)
    }

    async fn cancel(&self, now: Timestamp, id: RunId, by: Option<By>) -> Result<Cancellation> {
        let mut state = self.state();
        state.refuse_repeated(by.as_ref())?;
        let wants = Wants::runs([id]);
        let mut draft = state.draft(&wants, now);
        let cancelled = change::cancel(draft.asked_by(by.clone()), id);
        let over = |ended: EndedRun| Cancellation::Over(ended.end.outcome);
        let cancelled = cancelled.or_else(|| state.ended(id).map(over));
        state.save(draft, &wants);
        let cancelled = cancelled.ok_or_else(|| StoreError::NotFound { what: "run", id: id.to_string() })?;
        state.note_answer(by.as_ref(), id.0, now);
        Ok(cancelled)
    }

    async fn resume(&self, now: Timestamp, id: RunId, epoch: Option<u64>, by: Option<By>) -> Result<RunWritten> {
        let mut state = self.state();
        state.refuse_repeated(by.as_ref())?;
        let wants = Wants::runs([id]);
        let mut draft = state.draft(&wants, now);
        let written = change::resume(draft.asked_by(by.clone()), id, epoch);
        state.save(draft, &wants);
        if written != RunWritten::Stale {
            state.note_answer(by.as_ref(), id.0, now);
        }
        Ok(written)
    }
}

impl State {
    fn runs_of(&self, schedule: ScheduleId) -> impl Iterator<Item = &Run> {
        self.world.live_runs().filter(move |run| run.schedule == Some(schedule))
    }

    pub(super) fn task(&self, record: &ScheduleRecord) -> PlanTask {
        let live = || self.runs_of(record.schedule.id);
        let (waiting, count) = (live().filter(|run| !run.has_started).count(), live().count());
        let mut record = record.clone();
        self.world.outages.settle(&mut record);
        PlanTask { record, waiting, live: count }
    }

    /// Whether a schedule has an outage to catch up with.
    pub(super) fn has_missed(&self, record: &ScheduleRecord) -> bool {
        self.world.outages.of(record).is_some()
    }

    /// An agent counts as seen when the first run for it is planned: its nodes may be on their way.
    pub(super) fn note_agents(&mut self, draft: &Draft, now: Timestamp) {
        for run in draft.world.live_runs().filter(|run| run.planned_for().is_some()) {
            self.agents_seen.entry(run.terms.work.agent().to_owned()).or_insert(now);
        }
    }
}

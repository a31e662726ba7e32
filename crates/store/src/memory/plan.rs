//! Schedules, their plan, and runs as people touch them.

use async_trait::async_trait;
use jiff::Timestamp;
use jiff::civil::Date;
use punctual_core::journal::{Body, ScheduleRecord};
use punctual_core::run::{Run, RunState};
use punctual_core::schedule::Schedule;
use punctual_core::{By, RunId, ScheduleId};

use super::{MemoryStore, State};
use crate::error::{Result, StoreError};
use crate::requests::{
    Cancellation, LiveCounts, PlanSubject, PlanTask, PlanWrite, RunFilter, RunWritten, ScheduleFilter, SchedulePage,
    Written, ZoneDay, subject_from,
};
use crate::roles::{Plan, Runs, Schedules};
use punctual_kernel::change::{self, Draft, Wants};

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

    async fn schedules(&self, after: Option<ScheduleId>, limit: usize) -> Result<Vec<Schedule>> {
        let state = self.state();
        let behind = state.world.schedules.iter().filter(|(id, _)| after.is_none_or(|after| after < **id));
        Ok(behind.map(|(_, record)| (*record.schedule).clone()).take(limit).collect())
    }

    async fn count_schedules(&self) -> Result<u64> {
        Ok(self.state().world.schedules.len() as u64)
    }

    async fn find_schedules(&self, filter: &ScheduleFilter) -> Result<SchedulePage> {
        Ok(self.find_all(filter))
    }
}

#[async_trait]
impl Plan for MemoryStore {
    async fn to_plan(&self, now: Timestamp, zone_data: &str, limit: usize) -> Result<Vec<PlanTask>> {
        let state = self.state();
        let wants_planning = |record: &&ScheduleRecord| {
            let is_due = record.plan_at.is_some_and(|plan_at| plan_at <= now);
            is_due || record.outage.is_some() || record.zone_data != zone_data
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
            let written = change::plan(&mut draft, write);
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
            state.world.schedules.values().map(|record| &record.schedule.zone).collect();
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
        Ok(self.state().world.runs.get(&id).cloned())
    }

    async fn live_counts(&self, now: Timestamp) -> Result<LiveCounts> {
        let mut counts = LiveCounts::default();
        for run in self.state().world.runs.values() {
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
        let is_wanted = |run: &&Run| {
            filter.schedule.is_none_or(|schedule| run.schedule == Some(schedule))
                && filter.from.is_none_or(|from| from <= run.scheduled_at)
                && filter.until.is_none_or(|until| run.scheduled_at < until)
                && !(filter.only_live && run.state.is_final())
                && filter
                    .waits_for
                    .is_none_or(|wanted| matches!(run.state, RunState::Waiting { on, .. } if on == wanted))
        };
        let mut runs: Vec<Run> = state.world.runs.values().filter(is_wanted).cloned().collect();
        runs.sort_by_key(|run| (run.scheduled_at, run.id));
        runs.truncate(filter.limit);
        Ok(runs)
    }

    async fn ask(&self, now: Timestamp, run: Run, by: Option<By>) -> Result<bool> {
        let mut state = self.state();
        state.refuse_repeated(by.as_ref())?;
        let (asked_by, id) = (by.clone(), run.id.0);
        let slots = run.schedule.map(|schedule| (schedule, run.key.clone())).into_iter().collect();
        let wants =
            Wants { schedules: run.schedule.into_iter().collect(), runs: [run.id].into(), slots, ..Wants::default() };
        let mut draft = state.draft(&wants, now);
        let is_new = change::ask(draft.asked_by(by), run)?;
        state.note_agents(&draft, now);
        state.save(draft, &wants);
        state.note_answer(asked_by.as_ref(), id, now);
        Ok(is_new)
    }

    async fn cancel(&self, now: Timestamp, id: RunId, by: Option<By>) -> Result<Cancellation> {
        let mut state = self.state();
        state.refuse_repeated(by.as_ref())?;
        let wants = Wants::runs([id]);
        let mut draft = state.draft(&wants, now);
        let cancelled = change::cancel(draft.asked_by(by.clone()), id);
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
        self.world.runs.values().filter(move |run| run.schedule == Some(schedule))
    }

    pub(super) fn task(&self, record: &ScheduleRecord) -> PlanTask {
        let live = || self.runs_of(record.schedule.id).filter(|run| !run.state.is_final());
        PlanTask {
            record: record.clone(),
            waiting: live().filter(|run| !run.has_started).count(),
            live: live().count(),
        }
    }

    /// An agent counts as seen when the first run for it is planned: its nodes may be on their way.
    pub(super) fn note_agents(&mut self, draft: &Draft, now: Timestamp) {
        for run in draft.world.runs.values().filter(|run| run.planned_for().is_some()) {
            self.agents_seen.entry(run.terms.work.agent().to_owned()).or_insert(now);
        }
    }
}

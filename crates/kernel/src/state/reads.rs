//! What people and loops ask of schedules and of the runs that are not over.
//!
//! A walk is made in pages that the caller bounds: whoever reads holds up whoever decides.

use std::ops::Bound;
use std::sync::Arc;

use jiff::Timestamp;
use punctual_core::journal::ScheduleRecord;
use punctual_core::run::{Outcome, Run, RunState};
use punctual_core::schedule::Schedule;
use punctual_core::{RunId, ScheduleId, Token};

use super::State;
use crate::types::{Condition, LiveCounts, PlanSubject, PlanTask, RunFilter, ScheduleFilter, ZoneDay, subject_from};

/// A page of a walk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Walked<T, K> {
    /// What was found.
    pub found: Vec<T>,
    /// Behind which the next page begins; `None` at the end.
    pub next: Option<K>,
}

impl State {
    /// A schedule.
    pub fn schedule(&self, id: ScheduleId) -> Option<&Arc<Schedule>> {
        self.world.schedules.get(&id).map(|record| &record.schedule)
    }

    /// The schedule that the id of a slot's run names.
    pub fn schedule_of_slot(&self, run: RunId) -> Option<&Arc<Schedule>> {
        self.schedule(self.lists.schedule_of_tail(run.slot_id()?.schedule_tail)?)
    }

    /// How many schedules there are.
    pub fn count_schedules(&self) -> usize {
        self.world.schedules.len()
    }

    /// Schedules after an id, so many at most.
    pub fn schedules_after(&self, after: Option<ScheduleId>, limit: usize) -> Vec<Arc<Schedule>> {
        self.records_after(after).take(limit).map(|record| Arc::clone(&record.schedule)).collect()
    }

    fn records_after(&self, after: Option<ScheduleId>) -> impl Iterator<Item = &ScheduleRecord> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.world.schedules.range((from, Bound::Unbounded)).map(|(_, record)| record)
    }

    /// Those of the next so many schedules that a filter finds, whatever its page.
    pub fn find_schedules(
        &self,
        filter: &ScheduleFilter,
        after: Option<ScheduleId>,
        look_at: usize,
    ) -> Walked<Arc<Schedule>, ScheduleId> {
        let (mut found, mut next) = (vec![], None);
        for (looked_at, record) in self.records_after(after).enumerate() {
            if looked_at == look_at {
                return Walked { found, next };
            }
            next = Some(record.schedule.id);
            if filter.finds(&record.schedule) {
                found.push(Arc::clone(&record.schedule));
            }
        }
        Walked { found, next: None }
    }

    /// A schedule by its name.
    pub fn schedule_of_name(&self, name: &crate::change::Name) -> Option<&Arc<Schedule>> {
        self.schedule(self.named(name)?)
    }

    /// Schedules that planning has something to do for, earliest first, those without a time before all others.
    pub fn to_plan(&self, now: Timestamp, zone_data: &str, limit: usize) -> Vec<PlanTask> {
        let mut ids = self.timers.to_plan(now, limit);
        if self.lists.zone_data.keys().any(|version| version != zone_data) {
            let is_other = |record: &&ScheduleRecord| *record.zone_data != *zone_data;
            ids.extend(self.world.schedules.values().filter(is_other).map(|record| record.schedule.id));
        }
        let mut records: Vec<&ScheduleRecord> = ids.iter().map(|id| &self.world.schedules[id]).collect();
        records.sort_by_key(|record| (record.plan_at, record.schedule.id));
        records.into_iter().take(limit).map(|record| self.task(record)).collect()
    }

    /// The earliest time at which a schedule wants to be planned.
    pub fn next_plan_at(&self) -> Option<Timestamp> {
        self.timers.first()
    }

    /// A schedule, with the runs that a change of its plan concerns.
    pub fn subject(&self, id: ScheduleId, now: Timestamp) -> Option<PlanSubject> {
        let record = self.world.schedules.get(&id)?;
        let frontier = subject_from(record, now);
        let concerns = |run: &&Arc<Run>| run.planned_for().is_some() || frontier < run.scheduled_at;
        let mut runs: Vec<Run> = self.live_runs_of(id).filter(concerns).map(|run| Run::clone(run)).collect();
        runs.sort_by_key(|run| (run.due_at, run.id));
        Some(PlanSubject { task: self.task(record), runs })
    }

    fn task(&self, record: &ScheduleRecord) -> PlanTask {
        let runs = self.live_runs(record.schedule.id);
        let mut record = record.clone();
        self.world.outages.settle(&mut record);
        PlanTask { record, waiting: runs.unstarted, live: runs.live }
    }

    pub(super) fn live_runs_of(&self, schedule: ScheduleId) -> impl Iterator<Item = &Arc<Run>> {
        let siblings = self.order.schedules.get(&schedule).into_iter();
        let ids = siblings.flat_map(|it| it.active.iter().chain(it.planned.iter().map(|(_, id)| id)));
        ids.map(|id| &self.world.runs[id])
    }

    /// The zones of the schedules, each with its last day that was begun, by name.
    pub fn zone_days(&self) -> Vec<ZoneDay> {
        let day = |zone: &String| ZoneDay { zone: zone.clone(), begun: self.world.days.get(zone).copied() };
        self.lists.zones.keys().map(day).collect()
    }

    /// How many runs there are, by where they are in their life.
    pub fn live_counts(&self, now: Timestamp) -> LiveCounts {
        let mut counts = LiveCounts {
            claimed: self.lists.claimed,
            running: self.lists.running,
            waiting: self.waiting.len() as u64,
            ..LiveCounts::default()
        };
        let later = (Bound::Excluded((now, RunId(uuid::Uuid::max()))), Bound::Unbounded);
        for lane in self.lanes.lanes.values() {
            for runs in [&lane.open, &lane.blocked] {
                let not_due = runs.range(later).count();
                counts.planned += runs.len() as u64;
                counts.due += (runs.len() - not_due) as u64;
                let first = runs.first().map(|(ready_at, _)| *ready_at).filter(|at| *at <= now);
                counts.due_since = counts.due_since.into_iter().chain(first).min();
            }
        }
        counts
    }

    /// Those of the next so many live runs that a filter finds, whatever its limit, by id.
    pub fn find_runs(&self, filter: &RunFilter, after: Option<RunId>, look_at: usize) -> Walked<Run, RunId> {
        if let Some(schedule) = filter.schedule {
            let found =
                self.live_runs_of(schedule).filter(|run| filter.finds(run)).map(|run| Run::clone(run)).collect();
            return Walked { found, next: None };
        }
        if filter.waits_for.is_some() {
            let waiting = self.waiting.iter().map(|(_, id)| &self.world.runs[id]);
            let found = waiting.filter(|run| filter.finds(run)).map(|run| Run::clone(run)).collect();
            return Walked { found, next: None };
        }
        self.walk_runs(after, look_at, |run| Some(run).filter(|run| filter.finds(run)).cloned())
    }

    /// What the next so many live runs are made to, by id; those that are made to nothing are left out.
    pub fn walk_runs<T>(
        &self,
        after: Option<RunId>,
        look_at: usize,
        make: impl Fn(&Run) -> Option<T>,
    ) -> Walked<T, RunId> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let (mut found, mut next) = (vec![], None);
        for (looked_at, (id, run)) in self.world.runs.range((from, Bound::Unbounded)).enumerate() {
            if looked_at == look_at {
                return Walked { found, next };
            }
            next = Some(*id);
            found.extend(make(run));
        }
        Walked { found, next: None }
    }

    /// The tokens, by id.
    pub fn tokens(&self) -> impl Iterator<Item = &Token> {
        self.world.tokens.values()
    }
}

impl RunFilter {
    /// Whether a run is one of those that are asked for.
    pub fn finds(&self, run: &Run) -> bool {
        let is_succeeded = matches!(run.state, RunState::Finished { outcome: Outcome::Succeeded, .. });
        let waits = |wanted| matches!(run.state, RunState::Waiting { on, .. } if on == wanted);
        self.schedule.is_none_or(|schedule| run.schedule == Some(schedule))
            && self.from.is_none_or(|from| from <= run.scheduled_at)
            && self.until.is_none_or(|until| run.scheduled_at < until)
            && !(self.only_live && run.state.is_final())
            && !(self.except_succeeded && is_succeeded)
            && self.waits_for.is_none_or(waits)
    }
}

impl ScheduleFilter {
    /// Whether a schedule is one of those that are asked for.
    pub fn finds(&self, schedule: &Schedule) -> bool {
        let workflow = schedule.work.workflow().map(|workflow| workflow.name.as_str());
        let texts = [schedule.name.as_deref(), workflow, schedule.description.as_deref()];
        let has = |text: &Option<&str>, part: &str| {
            text.is_some_and(|text| text.to_ascii_lowercase().contains(&part.to_ascii_lowercase()))
        };
        self.face.is_none_or(|face| face == schedule.face)
            && self.projects.as_ref().is_none_or(|projects| projects.contains(&schedule.project))
            && self.agent.as_ref().is_none_or(|agent| agent == schedule.work.agent())
            && self.workflow.as_ref().is_none_or(|wanted| workflow == Some(wanted))
            && self.name.as_ref().is_none_or(|name| schedule.name.as_ref() == Some(name))
            && self.name_part.as_ref().is_none_or(|part| has(&schedule.name.as_deref(), part))
            && self.text.as_ref().is_none_or(|part| texts.iter().any(|text| has(text, part)))
            && self.conditions.as_ref().is_none_or(|those| those.contains(&Condition::of(schedule)))
    }
}

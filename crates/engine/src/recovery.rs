//! Recovery: what an outage has missed is made up for, once, within bounds and fairly.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use punctual_core::RunId;
use punctual_core::journal::{PlannedRun, SkipEntry};
use punctual_core::plan::{Planning, WaitingRun, catch_up};
use punctual_core::run::Run;
use punctual_core::time::Timetable;
use punctual_store::{PlanSubject, PlanTask, PlanWrite};

use crate::ids::Ids;
use crate::planner::later;
use crate::replan::{PlanBase, answered, planned_run};
use crate::settings::Settings;

/// How far apart the runs are that a recovery has no place for at once.
const APART: SignedDuration = SignedDuration::from_secs(1);

/// One recovery: from the moment the planner's lease is taken until every schedule has caught up.
pub(crate) struct Recovering {
    left: usize,
    deferred: i32,
}

impl Recovering {
    pub(crate) fn new(catch_ups_max: usize) -> Recovering {
        Recovering { left: catch_ups_max, deferred: 0 }
    }

    /// Schedules in turn by owner, so that one that has many does not take every place.
    pub(crate) fn in_fair_order(&self, tasks: Vec<PlanTask>) -> Vec<PlanTask> {
        if tasks.iter().all(|task| task.record.outage.is_none()) {
            return tasks;
        }
        let mut seen: BTreeMap<Option<String>, usize> = BTreeMap::new();
        let mut turns: Vec<(usize, PlanTask)> = vec![];
        for task in tasks {
            let turn = seen.entry(task.record.schedule.project.clone()).or_default();
            turns.push((*turn, task));
            *turn += 1;
        }
        turns.sort_by_key(|(turn, _)| *turn);
        turns.into_iter().map(|(_, task)| task).collect()
    }

    /// What catching up writes for one schedule.
    pub(crate) fn write(
        &mut self,
        subject: &PlanSubject,
        timetable: &Timetable,
        settings: &Settings,
        ids: &dyn Ids,
        now: Timestamp,
    ) -> Option<PlanWrite> {
        let record = &subject.task.record;
        let schedule = &record.schedule;
        let outage = record.outage?;
        let mut waiting: Vec<&Run> =
            subject.runs.iter().filter(|run| run.is_untouched() && run.key.is_slot()).collect();
        waiting.sort_by_key(|run| (run.scheduled_at, run.id));
        let brief = |run: &&Run| WaitingRun { id: run.id, scheduled_at: run.scheduled_at, due_at: run.due_at };
        let waiting: Vec<WaitingRun> = waiting.iter().map(brief).collect();
        let answered = answered(subject);
        let planning = Planning { schedule, timetable, waiting: subject.task.waiting, answered: &answered };
        let recovery = catch_up(&planning, &schedule.cursor, &outage, &waiting);

        let skips = recovery.plan.skips().map(|range| SkipEntry::new(schedule, range)).collect();
        let kept = recovery.kept.iter().filter_map(|id| subject.runs.iter().find(|run| run.id == *id));
        let mut moved: Vec<PlannedRun> = kept.map(as_planned).collect();
        let new = recovery.plan.runs().map(|slot| planned_run(RunId(ids.next(now)), schedule, timetable, slot));
        let mut runs: Vec<PlannedRun> = new.collect();

        let mut before: Option<RunId> = None;
        for run in moved.iter_mut().chain(&mut runs) {
            run.follows = before.filter(|_| recovery.is_in_order);
            before = Some(run.id);
            self.find_place(run, now);
        }
        let is_same = |run: &PlannedRun| subject.runs.iter().any(|it| as_planned(it) == *run);
        moved.retain(|run| !is_same(run));
        let mut write = PlanBase::new(record, settings).write(skips, |entry| {
            entry.cursor = recovery.plan.cursor.clone();
            // A paused schedule has nothing to plan; the others go on at once behind the outage.
            entry.plan_at = schedule.is_active().then_some(now);
            entry.outage = recovery.rest;
            entry.runs = runs;
            entry.moved = moved;
        });
        write.let_go = recovery.skipped;
        Some(write)
    }

    /// The first runs of a recovery are due at once; those for which it has no place follow one after another.
    fn find_place(&mut self, run: &mut PlannedRun, now: Timestamp) {
        if now < run.due_at {
            return;
        }
        if 0 < self.left {
            self.left -= 1;
            return;
        }
        self.deferred += 1;
        run.due_at = later(now, APART * self.deferred);
        run.expires_at = run.expires_at.map(|expires_at| expires_at.max(run.due_at));
    }
}

fn as_planned(run: &Run) -> PlannedRun {
    PlannedRun {
        id: run.id,
        key: run.key.clone(),
        scheduled_at: run.scheduled_at,
        due_at: run.due_at,
        expires_at: run.expires_at,
        follows: run.follows,
    }
}

//! Recovery: what an outage has missed is made up for, once, within bounds and fairly.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use punctual_core::RunId;
use punctual_core::journal::{PlannedRun, SkipEntry};
use punctual_core::plan::{Planning, WaitingRun, catch_up};
use punctual_core::run::Run;
use punctual_core::time::Timetable;
use punctual_store::{PlanSubject, PlanWrite};

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

    /// What catching up writes for schedules. Their runs get the places of the recovery in turn: project by project, and
    /// within a project schedule by schedule, so that one that has missed much does not take every place.
    pub(crate) fn writes(&mut self, mut recovered: Vec<Recovered>, now: Timestamp) -> Vec<PlanWrite> {
        let mut by_project: BTreeMap<Option<String>, Vec<(usize, usize)>> = BTreeMap::new();
        for (index, it) in recovered.iter_mut().enumerate() {
            let due = it.runs().filter(|run| run.due_at <= now).count();
            let places = (0..due).map(|turn| (turn, index));
            by_project.entry(it.project.clone()).or_default().extend(places);
        }
        let mut turns: Vec<(usize, usize)> = vec![];
        for mut places in by_project.into_values() {
            places.sort_unstable();
            turns.extend(places.into_iter().enumerate().map(|(turn, (_, index))| (turn, index)));
        }
        turns.sort_unstable();
        let mut placed: Vec<Vec<Option<Timestamp>>> = vec![vec![]; recovered.len()];
        for (_, index) in turns {
            placed[index].push(self.find_place(now));
        }
        let writes = recovered.into_iter().zip(placed).map(|(it, due_at)| it.write(&due_at, now));
        writes.collect()
    }

    /// The first runs of a recovery are due at once; those for which it has no place follow one after another.
    fn find_place(&mut self, now: Timestamp) -> Option<Timestamp> {
        if 0 < self.left {
            self.left -= 1;
            return None;
        }
        self.deferred += 1;
        Some(later(now, APART * self.deferred))
    }
}

/// What catching up decided for one schedule, before its runs have got their places.
pub(crate) struct Recovered {
    project: Option<String>,
    write: PlanWrite,
    /// Waiting runs that are kept, as they were.
    waited: Vec<PlannedRun>,
}

impl Recovered {
    /// What an outage comes to for one schedule; nothing, if there was none.
    pub(crate) fn new(
        subject: &PlanSubject,
        timetable: &Timetable,
        settings: &Settings,
        ids: &dyn Ids,
        now: Timestamp,
    ) -> Option<Recovered> {
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
        let waited: Vec<PlannedRun> = kept.map(as_planned).collect();
        let new = recovery.plan.runs().map(|slot| planned_run(RunId(ids.next(now)), schedule, timetable, slot));
        let (mut moved, mut runs): (Vec<PlannedRun>, Vec<PlannedRun>) = (waited.clone(), new.collect());
        let mut before: Option<RunId> = None;
        for run in moved.iter_mut().chain(&mut runs) {
            run.follows = before.filter(|_| recovery.is_in_order);
            before = Some(run.id);
        }
        let mut write = PlanBase::new(record, settings).write(skips, |entry| {
            entry.cursor = recovery.plan.cursor.clone();
            // A paused schedule has nothing to plan but its end; the others go on at once behind the outage.
            entry.plan_at = if schedule.is_active() { Some(now) } else { schedule.paused_until() };
            entry.outage = recovery.rest;
            // What stays planned may still be where older zone data had put it: that is for planning to see.
            entry.zone_data.clone_from(&record.zone_data);
            entry.runs = runs;
            entry.moved = moved;
        });
        write.let_go = recovery.skipped;
        Some(Recovered { project: schedule.project.clone(), write, waited })
    }

    /// The runs that are made up for, in order.
    fn runs(&mut self) -> impl Iterator<Item = &mut PlannedRun> {
        let plan = self.write.plan.as_mut().expect("a recovery has a plan");
        plan.moved.iter_mut().chain(&mut plan.runs)
    }

    /// The write, when its runs that are due have got these places: another time for those that have to wait.
    fn write(mut self, due_at: &[Option<Timestamp>], now: Timestamp) -> PlanWrite {
        for (run, due_at) in self.runs().filter(|run| run.due_at <= now).zip(due_at) {
            let Some(due_at) = *due_at else { continue };
            run.due_at = due_at;
            run.expires_at = run.expires_at.map(|expires_at| expires_at.max(due_at));
        }
        if let Some(plan) = &mut self.write.plan {
            plan.moved.retain(|run| !self.waited.contains(run));
        }
        self.write
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

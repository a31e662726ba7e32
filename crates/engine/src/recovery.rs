//! Recovery: what an outage has missed is made up for, once, within bounds and fairly.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use punctual_core::RunId;
use punctual_core::journal::{PlannedRun, SkipEntry};
use punctual_core::plan::{Answer, catch_up};
use punctual_core::time::Timetable;
use punctual_kernel::due::next_of;
use punctual_store::{PlanSubject, PlanWrite};

use crate::planner::later;
use crate::replan::{PlanBase, planning};
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
            let due = it.runs().iter().filter(|run| run.due_at <= now).count();
            let places = (0..due).map(|turn| (turn, index));
            by_project.entry(it.project.clone()).or_default().extend(places);
        }
        let mut turns: Vec<(usize, usize)> = vec![];
        for mut places in by_project.into_values() {
            places.sort_unstable();
            turns.extend(places.into_iter().enumerate().map(|(turn, (_, index))| (turn, index)));
        }
        turns.sort_unstable();
        let mut placed: Vec<Vec<Timestamp>> = vec![vec![]; recovered.len()];
        for (_, index) in turns {
            placed[index].push(self.find_place(now));
        }
        let writes = recovered.into_iter().zip(placed).map(|(it, due_at)| it.write(&due_at, now));
        writes.collect()
    }

    /// The first runs of a recovery are due at once; those for which it has no place follow one after another.
    fn find_place(&mut self, now: Timestamp) -> Timestamp {
        if 0 < self.left {
            self.left -= 1;
            return now;
        }
        self.deferred += 1;
        later(now, APART * self.deferred)
    }
}

/// What catching up decided for one schedule, before its runs have got their places.
pub(crate) struct Recovered {
    project: Option<String>,
    write: PlanWrite,
}

impl Recovered {
    /// What an outage comes to for one schedule; nothing, if there was none.
    pub(crate) fn new(
        subject: &PlanSubject,
        timetable: &Timetable,
        settings: &Settings,
        now: Timestamp,
    ) -> Option<Recovered> {
        let record = &subject.task.record;
        let schedule = &record.schedule;
        let outage = record.outage?;
        let planning = planning(schedule, timetable, subject.task.waiting);
        let caught_up = catch_up(&planning, &schedule.cursor, &outage, now);
        let skips = caught_up.decisions.iter().filter_map(Answer::skip);
        let skips = skips.map(|range| SkipEntry::new(schedule, range)).collect();
        let slots = caught_up.decisions.iter().filter_map(Answer::run);
        let mut runs: Vec<PlannedRun> = slots.map(|slot| PlannedRun::new(schedule, timetable.zone(), slot)).collect();
        let mut before: Option<RunId> = None;
        for run in &mut runs {
            run.follows = before.filter(|_| caught_up.is_in_order);
            before = Some(run.id);
        }
        let was_next = next_of(&planning).map(|slot| RunId::of(schedule.id, slot.scheduled_at, &slot.key()));
        let write = PlanBase::new(record, settings).write(skips, |entry| {
            entry.early.drop_passed(timetable, &caught_up.cursor);
            entry.cursor = caught_up.cursor.clone();
            // A paused schedule has nothing to plan but its end; the others go on at once after the outage.
            entry.plan_at = if schedule.is_active() { Some(now) } else { schedule.paused_until() };
            entry.outage = caught_up.rest;
            // What stays planned may still be where older zone data had put it: that is for planning to see.
            entry.zone_data.clone_from(&*record.zone_data);
            entry.was_next = was_next.is_some() && was_next == runs.first().map(|run| run.id);
            entry.runs = runs;
        });
        Some(Recovered { project: Option::clone(&schedule.project), write })
    }

    /// The runs that are made up for, in order.
    fn runs(&mut self) -> &mut Vec<PlannedRun> {
        &mut self.write.plan.as_mut().expect("a recovery has a plan").runs
    }

    /// The write, when its runs that are due have got these places: now, or later for those that have to wait.
    fn write(mut self, due_at: &[Timestamp], now: Timestamp) -> PlanWrite {
        for (run, due_at) in self.runs().iter_mut().filter(|run| run.due_at <= now).zip(due_at) {
            run.due_at = *due_at;
            if now < *due_at {
                run.expires_at = run.expires_at.map(|expires_at| expires_at.max(*due_at));
            }
        }
        self.write
    }
}

//! Timers: when the next slot of each schedule is to be decided.

use std::collections::BTreeSet;
use std::ops::Bound;

use jiff::Timestamp;
use punctual_core::ScheduleId;
use punctual_core::journal::ScheduleRecord;
use punctual_core::plan::Outage;
use punctual_core::schedule::Timetables;

use super::State;
use crate::due::{DueSlots, LiveRuns, due_slots, is_for_start, take_due};

/// The most due schedules that one start looks at: some are not for it to decide.
const SCHEDULES_MAX: usize = 5_000;

/// Schedules, by what brings their next decision.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Timers {
    /// Active ones without an outage, by when their next slot is scheduled: starts decide them.
    ready: BTreeSet<(Timestamp, ScheduleId)>,
    /// The others that have a time: the planner decides them.
    planned: BTreeSet<(Timestamp, ScheduleId)>,
    /// Those that no time is known for, and that may have slots.
    untimed: BTreeSet<ScheduleId>,
    /// Those with an outage that is not caught up.
    outages: BTreeSet<(Option<Timestamp>, ScheduleId)>,
}

impl Timers {
    pub(super) fn add(&mut self, record: &ScheduleRecord) {
        let id = record.schedule.id;
        match record.plan_at {
            Some(at) if is_ready(record) => drop(self.ready.insert((at, id))),
            Some(at) => drop(self.planned.insert((at, id))),
            None => drop(self.untimed.insert(id)),
        }
        if record.outage.is_some() {
            self.outages.insert((record.plan_at, id));
        }
    }

    pub(super) fn remove(&mut self, record: &ScheduleRecord) {
        let id = record.schedule.id;
        match record.plan_at {
            Some(at) if is_ready(record) => drop(self.ready.remove(&(at, id))),
            Some(at) => drop(self.planned.remove(&(at, id))),
            None => drop(self.untimed.remove(&id)),
        }
        self.outages.remove(&(record.plan_at, id));
    }

    /// When the next schedule that is not due yet is.
    pub(super) fn next_after(&self, now: Timestamp) -> Option<Timestamp> {
        let after = (now, ScheduleId(uuid::Uuid::max()));
        self.ready.range((Bound::Excluded(after), Bound::Unbounded)).next().map(|(at, _)| *at)
    }

    /// When the first schedule wants to be planned.
    pub(super) fn first(&self) -> Option<Timestamp> {
        let firsts = [self.ready.first(), self.planned.first()];
        firsts.into_iter().flatten().map(|(at, _)| *at).min()
    }

    /// Schedules that are due, and those with an outage.
    pub(super) fn to_plan(&self, now: Timestamp, limit: usize) -> BTreeSet<ScheduleId> {
        let until = ..=(now, ScheduleId(uuid::Uuid::max()));
        let due = self.ready.range(until).take(limit).chain(self.planned.range(until).take(limit));
        due.map(|(_, id)| *id).chain(self.outages.iter().take(limit).map(|(_, id)| *id)).collect()
    }

    fn due(&self, now: Timestamp) -> impl Iterator<Item = ScheduleId> {
        self.ready.range(..=(now, ScheduleId(uuid::Uuid::max()))).map(|(_, id)| *id)
    }
}

fn is_ready(record: &ScheduleRecord) -> bool {
    record.schedule.is_active() && record.outage.is_none()
}

impl State {
    /// Whether slots are due, or were missed and are not caught up.
    pub(crate) fn has_undecided(&self, now: Timestamp) -> bool {
        !self.timers.outages.is_empty() || self.timers.due(now).next().is_some()
    }

    /// What starts write about due slots, and whether there are more.
    pub(crate) fn due_slots(&self, timetables: &Timetables, max: usize, now: Timestamp) -> (Vec<DueSlots>, bool) {
        let due = self.timers.due(now).take(SCHEDULES_MAX).filter_map(|id| {
            let record = self.world.schedules.get(&id).filter(|record| is_for_start(record, timetables))?;
            due_slots(record, self.live_runs(id), timetables, now)
        });
        take_due(due, max)
    }

    /// The schedules of which an outage may have missed a slot.
    pub(crate) fn missed_by(&self, outage: &Outage) -> BTreeSet<ScheduleId> {
        let until = ..=(outage.until, ScheduleId(uuid::Uuid::max()));
        let timed = self.timers.ready.range(until).chain(self.timers.planned.range(until)).map(|(_, id)| *id);
        let ids = timed.chain(self.timers.untimed.iter().copied()).chain(self.timers.outages.iter().map(|(_, id)| *id));
        ids.filter(|id| self.world.schedules[id].may_miss(outage)).collect()
    }

    pub(super) fn live_runs(&self, schedule: ScheduleId) -> LiveRuns {
        let Some(siblings) = self.order.schedules.get(&schedule) else { return LiveRuns::default() };
        let ids = siblings.active.iter().chain(siblings.planned.iter().map(|(_, id)| id));
        let mut runs = LiveRuns::default();
        for id in ids {
            runs.live += 1;
            runs.unstarted += usize::from(!self.world.runs[id].has_started);
        }
        runs
    }
}

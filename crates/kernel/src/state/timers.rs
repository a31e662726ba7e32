//! Timers: when the next slot of each schedule is to be decided.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

use jiff::Timestamp;
use punctual_core::ScheduleId;
use punctual_core::journal::{Outages, ScheduleRecord};
use punctual_core::schedule::Timetables;
use uuid::Uuid;

use super::State;
use crate::due::{DueSlots, LiveRuns, due_slots, is_for_start, take_due};

/// The most due schedules that one start looks at: some are not for it to decide.
const SCHEDULES_MAX: usize = 5_000;

/// Schedules by when their next slot is scheduled, apart from each other by what brings their next decision.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Timers {
    /// Active ones without an outage: starts decide them.
    ready: Timed,
    /// Paused ones without an outage: the planner decides them.
    planned: Timed,
    /// Those without an outage that no time is known for, and that may have slots.
    untimed: BTreeSet<ScheduleId>,
    /// Those with an outage to catch up with.
    missed: Timed,
    /// The same, without a time.
    missed_untimed: BTreeSet<ScheduleId>,
}

/// Schedules by the time of their next slot.
type Timed = BTreeSet<(Timestamp, ScheduleId)>;

/// After all schedules of a time.
const LAST: ScheduleId = ScheduleId(Uuid::max());

impl Timers {
    pub(super) fn add(&mut self, record: &ScheduleRecord, outages: &Outages) {
        let id = record.schedule.id;
        let has_missed = outages.of(record).is_some();
        match record.plan_at {
            Some(at) if has_missed => drop(self.missed.insert((at, id))),
            Some(at) if record.schedule.is_active() => drop(self.ready.insert((at, id))),
            Some(at) => drop(self.planned.insert((at, id))),
            None if has_missed => drop(self.missed_untimed.insert(id)),
            None if record.may_have_slots() => drop(self.untimed.insert(id)),
            None => {}
        }
    }

    pub(super) fn remove(&mut self, record: &ScheduleRecord) {
        let id = record.schedule.id;
        let _was_there = match record.plan_at.map(|at| (at, id)) {
            Some(key) => self.ready.remove(&key) || self.missed.remove(&key) || self.planned.remove(&key),
            None => self.untimed.remove(&id) || self.missed_untimed.remove(&id),
        };
    }

    /// Another outage is noted: whatever may have missed a slot by its end has to be caught up. The sets are split where that time
    /// is, so that schedules are not looked at one by one.
    fn miss(&mut self, until: Timestamp) {
        for timed in [&mut self.ready, &mut self.planned] {
            let later = timed.split_off(&(until, LAST));
            self.missed.append(&mut std::mem::replace(timed, later));
        }
        self.missed_untimed.append(&mut self.untimed);
    }

    /// When the next schedule that is not due yet is.
    pub(super) fn next_after(&self, now: Timestamp) -> Option<Timestamp> {
        self.ready.range((Bound::Excluded((now, LAST)), Bound::Unbounded)).next().map(|(at, _)| *at)
    }

    /// When the first schedule wants to be planned.
    pub(super) fn first(&self) -> Option<Timestamp> {
        let firsts = [self.ready.first(), self.planned.first(), self.missed.first()];
        firsts.into_iter().flatten().map(|(at, _)| *at).min()
    }

    /// Schedules that are due, and those with an outage.
    pub(super) fn to_plan(&self, now: Timestamp, limit: usize) -> BTreeSet<ScheduleId> {
        let due = self.ready.range(..=(now, LAST)).take(limit).chain(self.planned.range(..=(now, LAST)).take(limit));
        let untimed = self.missed_untimed.iter().take(limit).copied();
        due.chain(self.missed.iter().take(limit)).map(|(_, id)| *id).chain(untimed).collect()
    }

    fn due(&self, now: Timestamp) -> impl Iterator<Item = ScheduleId> {
        self.ready.range(..=(now, LAST)).map(|(_, id)| *id)
    }
}

impl State {
    /// Whether slots are due, or were missed and are not caught up.
    pub(crate) fn has_undecided(&self, now: Timestamp) -> bool {
        let Timers { missed, missed_untimed, .. } = &self.timers;
        !missed.is_empty() || !missed_untimed.is_empty() || self.timers.due(now).next().is_some()
    }

    /// What starts write about due slots, and whether there are more.
    pub(crate) fn due_slots(&self, timetables: &Timetables, max: usize, now: Timestamp) -> (Vec<DueSlots>, bool) {
        let due = self.timers.due(now).take(SCHEDULES_MAX).filter_map(|id| {
            let record = self.world.schedules.get(&id).filter(|record| is_for_start(record, timetables))?;
            due_slots(record, self.live_runs(id), timetables, now)
        });
        take_due(due, max)
    }

    /// The outages are these now: one more, or one less when a commit has failed.
    pub(super) fn put_outages(&mut self, outages: &Arc<Outages>) {
        let before = std::mem::replace(&mut self.world.outages, Arc::clone(outages));
        self.unsaved.note_rest();
        outages.after(before.last_seq()).for_each(|noted| self.timers.miss(noted.outage.until));
        if outages.last_seq() < before.last_seq() {
            let missed = std::mem::take(&mut self.timers.missed).into_iter().map(|(_, id)| id);
            for id in missed.chain(std::mem::take(&mut self.timers.missed_untimed)) {
                self.timers.add(&self.world.schedules[&id], outages);
            }
        }
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

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use punctual_core::NodeId;
    use punctual_core::journal::{Body, Entry, World};
    use punctual_core::plan::Outage;
    use serde_json::json;

    use super::*;

    fn minute(number: i64) -> Timestamp {
        "2026-01-05T00:00:00Z".parse::<Timestamp>().unwrap() + SignedDuration::from_mins(number)
    }

    /// Schedules whose next slots are a minute apart, and one for which no time is known.
    fn world() -> World {
        let record = |number: i64| {
            let schedule = json!({
                "id": Uuid::from_u128(number as u128), "version": 1, "work": {"agent": {"agent": "reporter"}},
                "trigger": {"cron": [{"expression": "0 * * * *"}]}, "zone": "UTC", "cursor": {"at": minute(0)},
            });
            let record = ScheduleRecord::new(serde_json::from_value(schedule).unwrap(), minute(number));
            ScheduleRecord { plan_at: record.plan_at.filter(|_| number < 1_000), ..record }
        };
        let schedules = (0..=1_000).map(record).map(|record| (record.schedule.id, record)).collect();
        World { schedules, ..World::default() }
    }

    fn noted(seq: u64, from: i64, until: i64) -> Entry {
        let outage = Some(Outage { from: minute(from), until: minute(until), kept: None });
        Entry { seq, at: minute(until), body: Body::PlannerTaken { node: NodeId(Uuid::nil()), epoch: seq, outage } }
    }

    #[test]
    fn an_outage_is_one_change_however_many_schedules_it_concerns() {
        let mut rows = world();
        let mut state = State::new(rows.clone());
        for (seq, until, missed) in [(1, 500, 502), (2, 300, 502), (3, 700, 702)] {
            let entry = noted(seq, 0, until);
            state.follow(&entry).unwrap();
            rows.apply(&entry).unwrap();
            assert_eq!((state.unsaved(), state.to_plan(minute(0), "", 2_000).len()), (1, missed));
            assert_eq!(state.differences(&rows), Vec::<String>::new());
        }
        let ready = state.timers.due(minute(1_000)).count();
        assert_eq!((ready, state.next_plan_at()), (299, Some(minute(0))), "the others start at once");
        // A commit that fails leaves nothing of it.
        let entry = noted(4, 0, 800);
        let before = state.piece(&crate::change::Wants::default());
        let mut after = before.clone();
        after.apply(&entry).unwrap();
        let mut undo = crate::state::Undo::default();
        state.save_piece(before, after, &mut undo);
        assert_eq!(state.to_plan(minute(0), "", 2_000).len(), 802);
        state.undo(undo);
        assert_eq!(state.differences(&rows), Vec::<String>::new());
    }
}

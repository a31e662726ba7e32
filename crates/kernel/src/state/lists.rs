//! What lists and lookups find schedules and runs by.

use std::collections::{BTreeMap, HashMap};

use punctual_core::journal::ScheduleRecord;
use punctual_core::run::{Run, RunState};
use punctual_core::time::SlotKey;
use punctual_core::{RunId, ScheduleId};

/// Ways to schedules and live runs, and counts of them.
#[derive(Debug, Default)]
pub(super) struct Lists {
    /// Schedules by what the ids of their slots name them by.
    tails: BTreeMap<u64, ScheduleId>,
    /// How many schedules have each zone, and each version of the zone data.
    pub(super) zones: BTreeMap<String, usize>,
    pub(super) zone_data: BTreeMap<String, usize>,
    /// Live runs of events.
    events: HashMap<(ScheduleId, SlotKey), RunId>,
    pub(super) claimed: u64,
    pub(super) running: u64,
}

impl Lists {
    pub(super) fn add_schedule(&mut self, record: &ScheduleRecord) {
        let schedule = &record.schedule;
        self.tails.insert(schedule.id.tail(), schedule.id);
        count_up(&mut self.zones, &schedule.zone);
        count_up(&mut self.zone_data, &record.zone_data);
    }

    pub(super) fn remove_schedule(&mut self, record: &ScheduleRecord) {
        let schedule = &record.schedule;
        self.tails.remove(&schedule.id.tail());
        count_down(&mut self.zones, &schedule.zone);
        count_down(&mut self.zone_data, &record.zone_data);
    }

    pub(super) fn add_run(&mut self, run: &Run) {
        self.events.extend(event_of(run).map(|event| (event, run.id)));
        match run.state {
            RunState::Claimed { .. } => self.claimed += 1,
            RunState::Running { .. } => self.running += 1,
            _ => {}
        }
    }

    pub(super) fn remove_run(&mut self, run: &Run) {
        event_of(run).map(|event| self.events.remove(&event));
        match run.state {
            RunState::Claimed { .. } => self.claimed -= 1,
            RunState::Running { .. } => self.running -= 1,
            _ => {}
        }
    }

    pub(super) fn schedule_of_tail(&self, tail: u64) -> Option<ScheduleId> {
        self.tails.get(&tail).copied()
    }

    pub(super) fn run_of_event(&self, schedule: ScheduleId, key: &SlotKey) -> Option<RunId> {
        self.events.get(&(schedule, key.clone())).copied()
    }
}

fn event_of(run: &Run) -> Option<(ScheduleId, SlotKey)> {
    Some((run.schedule.filter(|_| run.key.is_event())?, run.key.clone()))
}

fn count_up(counts: &mut BTreeMap<String, usize>, name: &str) {
    match counts.get_mut(name) {
        Some(count) => *count += 1,
        None => drop(counts.insert(name.to_owned(), 1)),
    }
}

fn count_down(counts: &mut BTreeMap<String, usize>, name: &str) {
    if let Some(count) = counts.get_mut(name) {
        *count -= 1;
        if *count == 0 {
            counts.remove(name);
        }
    }
}

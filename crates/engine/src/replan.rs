//! From a planning decision to what is written.

use jiff::Timestamp;
use punctual_core::journal::{PlanEntry, PlannedRun, ScheduleRecord, SkipEntry};
use punctual_core::plan::{Pass, Planning, Standing, StandingState, replan};
use punctual_core::run::Run;
use punctual_core::schedule::{Cursor, Schedule};
use punctual_core::time::{Slot, Timetable};
use punctual_kernel::due::{entry_of, next_of};
use punctual_store::{Expected, PlanSubject, PlanWrite, ScheduleChange};

use crate::settings::Settings;

/// What a write is based on, and what it leaves alone.
pub(crate) struct PlanBase {
    expected: Expected,
    entry: PlanEntry,
}

impl PlanBase {
    pub(crate) fn new(record: &ScheduleRecord, settings: &Settings) -> PlanBase {
        let schedule = &record.schedule;
        let zone_data = settings.zones.version().to_owned();
        let entry = PlanEntry { zone_data, outage: None, ..PlanEntry::unchanged(record) };
        let (version, cursor, early) = (schedule.version, schedule.cursor.clone(), schedule.early.clone());
        let expected = Expected::At { schedule: schedule.id, version, cursor, early, outage: record.outage };
        PlanBase { expected, entry }
    }

    /// The base of a schedule that does not exist yet.
    pub(crate) fn of_new(schedule: &Schedule, settings: &Settings) -> PlanBase {
        let record = ScheduleRecord::new(schedule.clone(), schedule.cursor.at);
        PlanBase { expected: Expected::New, ..PlanBase::new(&record, settings) }
    }

    /// Nothing changes, and nobody looks before an instant.
    pub(crate) fn rests_until(self, at: Timestamp) -> PlanWrite {
        self.write(vec![], |entry| entry.plan_at = Some(at))
    }

    /// The decisions of a pass; `was_next` is the slot that was the schedule's next one before.
    pub(crate) fn passed(
        self,
        planning: &Planning<'_>,
        passed: &Pass,
        was_next: Option<&Slot>,
        now: Timestamp,
    ) -> PlanWrite {
        let skips = passed.skips().map(|range| SkipEntry::new(planning.schedule, range)).collect();
        self.write(skips, |entry| {
            let zone_data = std::mem::take(&mut entry.zone_data);
            *entry = entry_of(planning, passed, was_next, &zone_data, now);
        })
    }

    pub(crate) fn write(mut self, skips: Vec<SkipEntry>, change: impl FnOnce(&mut PlanEntry)) -> PlanWrite {
        change(&mut self.entry);
        let (change, cancelled) = (ScheduleChange::None, vec![]);
        PlanWrite { expected: self.expected, change, skips, cancelled, plan: Some(self.entry), by: None }
    }
}

/// A schedule as planning sees it.
pub(crate) fn planning<'a>(schedule: &'a Schedule, timetable: &'a Timetable, waiting: usize) -> Planning<'a> {
    Planning { schedule, timetable, waiting, answered: schedule.early.keys() }
}

/// Compares the plan of a schedule with what `edited`, or it as it is, wants from `cursor` on, and writes the difference.
pub(crate) fn write(
    subject: &PlanSubject,
    edited: Option<Schedule>,
    cursor: Cursor,
    timetable: &Timetable,
    settings: &Settings,
    now: Timestamp,
) -> PlanWrite {
    let record = &subject.task.record;
    let schedule = edited.as_ref().unwrap_or(&record.schedule);
    let standing: Vec<Standing> = subject.runs.iter().map(standing).collect();
    let planning = planning(schedule, timetable, subject.task.waiting);
    let diff = replan(&planning, &cursor, &standing, now);
    let moved = diff.stay.iter().filter_map(|(id, slot)| {
        let run = subject.runs.iter().find(|run| run.id == *id)?;
        let planned = PlannedRun::new(schedule, timetable.zone(), slot);
        let mut planned = PlannedRun { id: *id, follows: run.follows, ..planned };
        // A recovery may have put it off: what is due already keeps its place.
        if slot.due_at <= now && slot.scheduled_at == run.scheduled_at {
            (planned.due_at, planned.expires_at) = (run.due_at, run.expires_at);
        }
        let is_same = (run.scheduled_at, run.due_at, run.expires_at)
            == (planned.scheduled_at, planned.due_at, planned.expires_at);
        (!is_same).then_some(planned)
    });
    let moved: Vec<PlannedRun> = moved.collect();
    let was_next = next_slot(record, subject.task.waiting, settings);
    let base = PlanBase::new(record, settings);
    let mut write = base.passed(&planning, &diff.new, was_next.as_ref(), now);
    if let Some(plan) = &mut write.plan {
        plan.moved = moved;
        plan.withdrawn = diff.withdrawn;
        plan.outage = record.outage;
    }
    wake_planner(&mut write, schedule, subject.task.live, now);
    if let Some(edited) = edited {
        write.change = ScheduleChange::Put(Box::new(edited));
    }
    write
}

/// The next slot of a schedule as it is stored.
pub(crate) fn next_slot(record: &ScheduleRecord, waiting: usize, settings: &Settings) -> Option<Slot> {
    let timetable = settings.timetables().of(&record.schedule).ok()?;
    next_of(&planning(&record.schedule, &timetable, waiting))
}

/// Where time brings nothing more, planning has to see whether the schedule is over. If it has a live run, that run's end wakes it.
pub(crate) fn wake_planner(write: &mut PlanWrite, schedule: &Schedule, live: usize, now: Timestamp) {
    if let Some(plan) = &mut write.plan
        && schedule.is_active()
        && live.saturating_sub(plan.withdrawn.len()) == 0
        && plan.runs.is_empty()
    {
        plan.plan_at = plan.plan_at.or(Some(now));
    }
}

fn standing(run: &Run) -> Standing {
    let state = if run.is_untouched() { StandingState::Planned } else { StandingState::Answered };
    Standing { id: run.id, key: run.key.clone(), scheduled_at: run.scheduled_at, state }
}

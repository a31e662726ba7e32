//! From a planning decision to what is written.

use std::collections::BTreeSet;

use jiff::Timestamp;
use punctual_core::RunId;
use punctual_core::journal::{PlanEntry, PlannedRun, ScheduleRecord, SkipEntry};
use punctual_core::plan::{Plan, Planning, Standing, StandingState, ZoneData, expires_at, replan};
use punctual_core::run::Run;
use punctual_core::schedule::{Cursor, Schedule};
use punctual_core::time::{Slot, SlotKey, Timetable};
use punctual_store::{Expected, PlanSubject, PlanWrite, ScheduleChange};

use crate::ids::Ids;
use crate::settings::Settings;

/// What a write is based on, and what it leaves alone.
pub(crate) struct PlanBase {
    expected: Expected,
    entry: PlanEntry,
}

impl PlanBase {
    pub(crate) fn new(record: &ScheduleRecord, settings: &Settings) -> PlanBase {
        let schedule = &record.schedule;
        let entry = PlanEntry {
            schedule: schedule.id,
            version: schedule.version,
            cursor: schedule.cursor.clone(),
            plan_at: record.plan_at,
            zone_data: settings.zones.version().to_owned(),
            outage: None,
            runs: vec![],
            moved: vec![],
            withdrawn: vec![],
        };
        let (version, cursor) = (schedule.version, schedule.cursor.clone());
        let expected = Expected::At { schedule: schedule.id, version, cursor, outage: record.outage };
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

    /// New answers, and a new cursor.
    pub(crate) fn planned(
        self,
        schedule: &Schedule,
        timetable: &Timetable,
        plan: &Plan,
        ids: &dyn Ids,
        now: Timestamp,
    ) -> PlanWrite {
        let skips = plan.skips().map(|range| SkipEntry::new(schedule, range)).collect();
        let runs = plan.runs().map(|slot| planned_run(RunId(ids.next(now)), schedule, timetable, slot)).collect();
        self.write(skips, |entry| {
            entry.cursor = plan.cursor.clone();
            // A pause that ends by itself is ended by planning.
            entry.plan_at = plan.wake_at.or(schedule.paused_until());
            entry.runs = runs;
        })
    }

    pub(crate) fn write(mut self, skips: Vec<SkipEntry>, change: impl FnOnce(&mut PlanEntry)) -> PlanWrite {
        change(&mut self.entry);
        let (change, let_go) = (ScheduleChange::None, vec![]);
        PlanWrite { expected: self.expected, change, skips, let_go, plan: Some(self.entry), by: None }
    }
}

/// The run of a slot, with the end of its time.
pub(crate) fn planned_run(id: RunId, schedule: &Schedule, timetable: &Timetable, slot: &Slot) -> PlannedRun {
    let max_delay = schedule.policy.max_delay;
    let expires_at = expires_at(max_delay, timetable.zone(), &slot.key(), slot.scheduled_at, slot.due_at);
    PlannedRun::new(id, slot, expires_at)
}

/// Compares the plan of a schedule with what `edited`, or it as it is, wants from `cursor` on, and writes the difference.
pub(crate) fn write(
    subject: &PlanSubject,
    edited: Option<Schedule>,
    cursor: Cursor,
    timetable: &Timetable,
    settings: &Settings,
    ids: &dyn Ids,
    now: Timestamp,
) -> PlanWrite {
    let base = PlanBase::new(&subject.task.record, settings);
    let schedule = edited.as_ref().unwrap_or(&subject.task.record.schedule);
    let standing: Vec<Standing> = subject.runs.iter().map(standing).collect();
    // What stands is told below, and how firmly.
    let (waiting, answered) = (subject.task.waiting, Planning::NONE_ANSWERED);
    let planning = Planning { schedule, timetable, waiting, answered };
    let is_same_data = subject.task.record.zone_data == settings.zones.version();
    let planned_with = if is_same_data { ZoneData::InForce } else { ZoneData::Other };
    let diff = replan(&planning, &cursor, planned_with, &standing, now);
    let moved = diff.stay.iter().filter_map(|(id, slot)| {
        let run = subject.runs.iter().find(|run| run.id == *id)?;
        let mut planned = PlannedRun { follows: run.follows, ..planned_run(*id, schedule, timetable, slot) };
        // A recovery may have put it off: what is due already keeps its place.
        if slot.due_at <= now && slot.scheduled_at == run.scheduled_at {
            (planned.due_at, planned.expires_at) = (run.due_at, run.expires_at);
        }
        let is_same = (run.scheduled_at, run.due_at, run.expires_at)
            == (planned.scheduled_at, planned.due_at, planned.expires_at);
        (!is_same).then_some(planned)
    });
    let moved: Vec<PlannedRun> = moved.collect();
    let mut write = base.planned(schedule, timetable, &diff.new, ids, now);
    if let Some(plan) = &mut write.plan {
        plan.version = schedule.version;
        plan.moved = moved;
        plan.withdrawn = diff.withdrawn;
        plan.outage = subject.task.record.outage;
    }
    wake_planner(&mut write, schedule, now);
    if let Some(edited) = edited {
        write.change = ScheduleChange::Put(Box::new(edited));
    }
    write
}

/// Where time brings nothing more, planning has to see whether the schedule is over.
pub(crate) fn wake_planner(write: &mut PlanWrite, schedule: &Schedule, now: Timestamp) {
    if let Some(plan) = &mut write.plan
        && schedule.is_active()
    {
        plan.plan_at = plan.plan_at.or(Some(now));
    }
}

/// The slots that have their run already.
pub(crate) fn answered(subject: &PlanSubject) -> BTreeSet<SlotKey> {
    subject.runs.iter().map(|run| run.key.clone()).filter(SlotKey::is_slot).collect()
}

fn standing(run: &Run) -> Standing {
    let state = if run.is_untouched() { StandingState::Planned } else { StandingState::Answered };
    Standing { id: run.id, key: run.key.clone(), scheduled_at: run.scheduled_at, state }
}

//! Slots: each has one answer (I10, I11), each answer has a slot (I12), and the frontier only moves on (I15).

use std::collections::BTreeMap;

use jiff::Timestamp;
use punctual_core::journal::{Body, Entry, PlanEntry, PlannedRun, SkipEntry, World};
use punctual_core::run::SkipReason;
use punctual_core::schedule::{Schedule, ScheduleState};
use punctual_core::time::{Calendar, Slot, SlotKey};
use punctual_core::{RunId, ScheduleId};

use super::catch_up::CatchUps;
use super::{Check, ensure};
use crate::ledger::Moment;
use crate::oracle::Version;

/// The slots of every schedule, with their answers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Slots {
    calendars: BTreeMap<String, Calendar>,
    schedules: BTreeMap<ScheduleId, Answers>,
    catch_ups: CatchUps,
}

/// What became of the slots of one schedule.
#[derive(Debug, Clone)]
struct Answers {
    version: Version,
    /// How far it was planned by processes with the zone data of this version.
    planned_until: Timestamp,
    by_key: BTreeMap<SlotKey, (Timestamp, Answer)>,
    /// Runs whose slots were skipped: the plan that follows takes them back.
    given_up: Vec<RunId>,
    /// When it came to its end, until the plan that goes with it.
    ends_at: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Run(RunId),
    Skip(SkipReason),
    /// It had a run, and an edit took it back: it may come again.
    Withdrawn,
}

impl Slots {
    pub(crate) fn new(calendars: BTreeMap<String, Calendar>) -> Slots {
        Slots { calendars, ..Slots::default() }
    }

    /// Takes in an entry, before it changes the world.
    pub(crate) fn take(&mut self, entry: &Entry, before: &World, moment: &Moment) -> Check {
        match &entry.body {
            Body::ScheduleChanged { schedule, .. } => self.change(schedule, entry.at, before, moment),
            Body::ScheduleDeleted { schedule, .. } => {
                if let Some(answers) = self.schedules.remove(schedule) {
                    answers.is_complete(entry.at, before)?;
                }
                Ok(())
            }
            Body::Skipped(skip) => self.skip(skip, entry.at, before, moment),
            Body::Planned(plan) => self.plan(plan, entry.at, before, moment),
            _ => self.catch_ups.note(entry, before),
        }
    }

    /// Every slot that lies behind us has its answer; those of a pause get theirs when it ends.
    pub(crate) fn are_complete(&self, now: Timestamp, world: &World) -> Check {
        let unplanned = self.schedules.values().find(|answers| answers.ends_at.is_some());
        ensure("I11", unplanned.is_none(), || format!("a schedule has ended without a plan: {unplanned:?}"))?;
        let is_active = |answers: &&Answers| answers.version.schedule.is_active();
        self.schedules.values().filter(is_active).try_for_each(|answers| answers.is_complete(now, world))
    }

    /// Every run that nobody has taken stands where the zone data of its plan puts it.
    pub(crate) fn are_in_place(&self, world: &World) -> Check {
        for run in world.runs.values().filter(|run| run.is_untouched() && run.key.is_slot()) {
            let Some(answers) = run.schedule.and_then(|id| self.schedules.get(&id)) else { continue };
            let slot = answers.version.timetable.slot(&run.key);
            let is_active = answers.version.schedule.is_active();
            ensure(
                "I14",
                !is_active || slot.as_ref().is_some_and(|slot| slot.scheduled_at == run.scheduled_at),
                || format!("run {} of slot {} stands at {}, not at {slot:?}", run.id, run.key, run.scheduled_at),
            )?;
        }
        Ok(())
    }

    fn change(&mut self, schedule: &Schedule, at: Timestamp, before: &World, moment: &Moment) -> Check {
        let id = schedule.id;
        self.catch_ups.edited(id);
        let version = || Version::new(schedule, &moment.zones, &self.calendars);
        let Some(answers) = self.schedules.get_mut(&id) else {
            let planned_until = schedule.cursor.at;
            let answers =
                Answers { version: version(), planned_until, by_key: BTreeMap::new(), given_up: vec![], ends_at: None };
            self.schedules.insert(id, answers);
            return Ok(());
        };
        let old = &answers.version.schedule;
        if old.version == schedule.version {
            let cursor = before.schedules.get(&id).map(|record| &record.schedule.cursor);
            let is_end = matches!(schedule.state, ScheduleState::Ended(_)) && cursor == Some(&schedule.cursor);
            // What it leaves behind is answered by the plan that comes with its end.
            answers.ends_at = Some(at);
            answers.version.schedule = schedule.clone();
            return ensure("I15", is_end, || format!("schedule {id} changed without a new version"));
        }
        ensure("I15", old.version + 1 == schedule.version, || {
            format!("schedule {id} went from version {} to {}", old.version, schedule.version)
        })?;
        let goes_on = |state: &ScheduleState| !matches!(state, ScheduleState::Active);
        if !(goes_on(&old.state) && goes_on(&schedule.state)) {
            answers.is_complete(at, before)?;
        }
        // What was skipped ahead is decided anew. Other zone data may have moved it since.
        let (frontier, old) = (schedule.cursor.at, std::mem::replace(&mut answers.version, version()));
        let stands_at = |key: &SlotKey, at| old.timetable.slot(key).map_or(at, |slot| slot.scheduled_at);
        answers
            .by_key
            .retain(|key, (at, answer)| !matches!(answer, Answer::Skip(_)) || stands_at(key, *at) <= frontier);
        Ok(())
    }

    fn skip(&mut self, skip: &SkipEntry, at: Timestamp, before: &World, moment: &Moment) -> Check {
        let Some(answers) = self.schedules.get_mut(&skip.schedule) else {
            return ensure("I12", false, || format!("a skip for schedule {}, which is not there", skip.schedule));
        };
        let described = || {
            let SkipEntry { schedule, first, last, count, reason, .. } = skip;
            format!("{count} slots of schedule {schedule} from {first} to {last} skipped for {reason}")
        };
        let version = answers.with_zones(moment, &self.calendars);
        ensure("I12", skip.version == version.schedule.version, || format!("{} in another version", described()))?;
        let range = version.range((skip.first.as_str(), skip.first_at), (skip.last.as_str(), skip.last_at));
        let Some(range) = range else {
            return ensure("I12", false, || format!("{}: not its slots", described()));
        };
        ensure("I11", range.len() as u64 == skip.count, || format!("{}: there are {}", described(), range.len()))?;
        for slot in &range {
            // Other zone data decides anew about every time that is repeated ahead: it may be the first that repeats it.
            let is_anew =
                version.zone_data != answers.version.zone_data && slot.is_second_pass && at < slot.scheduled_at;
            if is_anew && matches!(answers.by_key.get(&slot.key()), Some((_, Answer::Skip(_)))) {
                answers.by_key.remove(&slot.key());
            }
            // A clock that leapt may have had a run forgotten that was called off ahead of its time: its slot ends without one.
            let is_forgotten = |answer: &Answer| matches!(answer, Answer::Run(id) if !before.runs.contains_key(id));
            if answers.by_key.get(&slot.key()).is_some_and(|(_, answer)| is_forgotten(answer)) {
                answers.by_key.remove(&slot.key());
            }
            answers.answer(slot, Answer::Skip(skip.reason))?;
        }
        self.catch_ups.skipped(skip, &range);
        let is_paused = matches!(skip.reason, SkipReason::Paused | SkipReason::Disabled);
        ensure("I11", !is_paused || skip.last_at <= at, || format!("{}: before their time", described()))
    }

    fn plan(&mut self, plan: &PlanEntry, at: Timestamp, before: &World, moment: &Moment) -> Check {
        let (Some(answers), Some(record)) =
            (self.schedules.get_mut(&plan.schedule), before.schedules.get(&plan.schedule))
        else {
            return ensure("I12", false, || format!("a plan for schedule {}, which is not there", plan.schedule));
        };
        let cursor = &record.schedule.cursor;
        ensure("I15", cursor.at <= plan.cursor.at, || {
            format!("the cursor of schedule {} went from {} back to {}", plan.schedule, cursor.at, plan.cursor.at)
        })?;
        for id in &plan.withdrawn {
            let run = before.runs.get(id);
            if let Some((_, answer)) = run.and_then(|run| answers.by_key.get_mut(&run.key))
                && *answer == Answer::Run(*id)
            {
                *answer = Answer::Withdrawn;
            }
        }
        let left = std::mem::take(&mut answers.given_up).into_iter().find(|id| !plan.withdrawn.contains(id));
        ensure("I10", left.is_none(), || format!("the slot of run {left:?} was skipped, and it stands"))?;
        if plan.zone_data != answers.version.zone_data && plan.zone_data == moment.zones.version() {
            // What lies behind was answered with the old data, what lies ahead is to be with the new. A recovery in between may
            // have left what the clock had not shown, and has gone by the new.
            let known_until = cursor.at.min(at).min(answers.planned_until);
            answers.are_answered(known_until, before, |slot| !cursor.is_new(slot))?;
            let mut version = answers.with_zones(moment, &self.calendars);
            (version.from.at, version.from.reached) = (known_until, cursor.reached.clone());
            answers.version = version;
        }
        let version = answers.with_zones(moment, &self.calendars);
        for run in &plan.runs {
            let slot = produced(&version, run)?;
            answers.answer(&slot, Answer::Run(run.id))?;
            ensure("I15", run.scheduled_at <= plan.cursor.at, || {
                format!("run {} was planned for {}, and the cursor stays at {}", run.id, run.key, plan.cursor.at)
            })?;
        }
        if answers.version.zone_data == moment.zones.version() {
            answers.planned_until = plan.cursor.at;
        }
        if let Some(ended_at) = answers.ends_at.take() {
            answers.is_complete(ended_at, before)?;
        }
        for run in &plan.moved {
            // A recovery only puts off what older zone data has placed; planning moves it afterwards.
            let is_there = before.runs.get(&run.id).is_some_and(|it| it.scheduled_at == run.scheduled_at);
            if plan.zone_data == version.zone_data || !is_there {
                produced(&version, run)?;
            }
        }
        self.catch_ups.planned(plan, before, &version)
    }
}

/// The slot of a planned run, which its schedule must have.
fn produced(version: &Version, run: &PlannedRun) -> Result<Slot, super::Violation> {
    let slot = version.timetable.slot(&run.key);
    let fits =
        |slot: &Slot| slot.skipped.is_none() && slot.scheduled_at == run.scheduled_at && slot.due_at <= run.due_at;
    slot.clone().filter(fits).ok_or_else(|| super::Violation {
        rule: "I12",
        what: format!("run {} was planned for {} at {}; the slot is {slot:?}", run.id, run.key, run.scheduled_at),
    })
}

impl Answers {
    /// The version as a process with this zone data sees it.
    fn with_zones(&self, moment: &Moment, calendars: &BTreeMap<String, Calendar>) -> Version {
        if self.version.zone_data == moment.zones.version() {
            return self.version.clone();
        }
        let from = self.version.from.clone();
        Version { from, ..Version::new(&self.version.schedule, &moment.zones, calendars) }
    }

    fn answer(&mut self, slot: &Slot, answer: Answer) -> Check {
        let before = self.by_key.insert(slot.key(), (slot.scheduled_at, answer)).map(|(_, answer)| answer);
        match (before, answer) {
            (None | Some(Answer::Withdrawn), _) => Ok(()),
            (Some(Answer::Run(run)), Answer::Skip(SkipReason::Calendar | SkipReason::DstGap)) => {
                self.given_up.push(run);
                Ok(())
            }
            (Some(earlier), _) => ensure("I10", false, || {
                let id = self.version.schedule.id;
                format!("slot {} of schedule {id} has {earlier:?} for an answer, and gets {answer:?}", slot.key())
            }),
        }
    }

    /// Every slot up to an instant has its answer.
    fn is_complete(&self, until: Timestamp, world: &World) -> Check {
        self.are_answered(until, world, |_| true)
    }

    /// Every slot of some up to an instant has its answer.
    fn are_answered(&self, until: Timestamp, world: &World, wants: impl Fn(&Slot) -> bool) -> Check {
        let schedule = &self.version.schedule;
        ensure("I10", self.given_up.is_empty(), || format!("slots of runs {:?} were skipped", self.given_up))?;
        let Some(record) = world.schedules.get(&schedule.id) else { return Ok(()) };
        if matches!(schedule.state, ScheduleState::Ended(_)) {
            return Ok(());
        }
        // When as many runs are planned as may start, planning rests.
        let is_planned = |slot: &Slot| schedule.bounds.max_runs().is_none() || !record.schedule.cursor.is_new(slot);
        for slot in self.version.slots_until(until).filter(is_planned).filter(wants) {
            let key = slot.key();
            ensure("I11", self.by_key.contains_key(&key), || {
                format!("slot {key} of schedule {} (version {}) has no answer", schedule.id, schedule.version)
            })?;
        }
        Ok(())
    }
}

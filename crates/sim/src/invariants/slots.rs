//! Slots: each is decided once (I10, I11), none before its time, each decision has a slot and each run its slot's id (I12), and
//! the cursor moves on with what it passes and no further (I15).

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use punctual_core::journal::{Body, Entry, PlanEntry, PlannedRun, ScheduleRecord, SkipEntry, World};
use punctual_core::plan::Outage;
use punctual_core::run::{Outcome, Run, RunEvent, RunState, SkipReason};
use punctual_core::schedule::{Cursor, EndReason, Schedule, ScheduleState, Trigger};
use punctual_core::time::{Calendar, Slot, SlotKey};
use punctual_core::{RunId, ScheduleId};
use punctual_store::MOMENT;

use super::catch_up::{CatchUps, Passing};
use super::{Check, Violation, ensure};
use crate::ledger::Moment;
use crate::oracle::Version;

/// A clock shows a nominal time within so long of when another zone's does.
const CLOCKS_APART: SignedDuration = SignedDuration::from_hours(48);

/// How many slots are looked at to see that a schedule has none left.
const LOOK_MAX: usize = 1_000;

/// The slots of every schedule, with their decisions.
#[derive(Debug, Clone)]
pub(crate) struct Slots {
    calendars: BTreeMap<String, Calendar>,
    schedules: BTreeMap<ScheduleId, Decided>,
    catch_ups: CatchUps,
    /// What the commit is about that is being taken in.
    commit: Commit,
    /// How late a slot may be decided that no outage missed.
    patience: SignedDuration,
}

/// What one commit says about slots, until it has been taken in as a whole.
#[derive(Debug, Clone, Default)]
struct Commit {
    /// Schedules that it puts into another version, or to their end.
    edited: BTreeSet<ScheduleId>,
    /// Those that come to their end.
    ended: BTreeSet<ScheduleId>,
    planned: BTreeSet<ScheduleId>,
    /// How many runs it withdraws.
    withdrawn: BTreeMap<ScheduleId, u64>,
    /// Slots that the cursor passes: each is decided when the commit ends.
    passed: Vec<(ScheduleId, SlotKey)>,
    /// Runs of slots that are decided before their time: each is cancelled when the commit ends.
    early: Vec<RunId>,
}

/// What became of the slots of one schedule.
#[derive(Debug, Clone)]
struct Decided {
    version: Version,
    /// When the version came into force, by the store's clock where there is one.
    in_force_at: Timestamp,
    by_key: BTreeMap<SlotKey, (Timestamp, Decision)>,
    /// Runs whose slots were skipped: the same commit withdraws them.
    given_up: Vec<RunId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Decision {
    Run(RunId),
    Skip(SkipReason),
    /// It had a run, and an edit took it back: it may come again.
    Withdrawn,
}

impl Slots {
    pub(crate) fn new(calendars: BTreeMap<String, Calendar>, patience: SignedDuration) -> Slots {
        let (catch_ups, commit) = (CatchUps::default(), Commit::default());
        Slots { calendars, schedules: BTreeMap::new(), catch_ups, commit, patience }
    }

    /// Takes in an entry, before it changes the world. A node plans until `planned_until`.
    pub(crate) fn take(
        &mut self,
        entry: &Entry,
        before: &World,
        moment: &Moment,
        planned_until: Option<Timestamp>,
    ) -> Check {
        if let Some(record) = entry.body.schedule().and_then(|id| before.schedules.get(&id))
            && let Some(decided) = self.schedules.get_mut(&record.schedule.id)
            && decides(&entry.body)
        {
            decided.see_with(moment, &self.calendars, &record.schedule.cursor);
        }
        match &entry.body {
            Body::ScheduleChanged { schedule, .. } => self.change(schedule, entry.at, before, moment),
            Body::ScheduleDeleted { schedule, .. } => {
                self.catch_ups.deleted(*schedule);
                let Some(decided) = self.schedules.remove(schedule) else { return Ok(()) };
                // What is withdrawn with it had a place until now.
                let withdrawn = self.commit.withdrawn.get(schedule).copied().unwrap_or_default();
                decided.is_complete((entry.at, Timestamp::MAX), withdrawn, before)
            }
            Body::Skipped(skip) => self.skip(skip, entry.at),
            Body::Planned(plan) => self.plan(plan, entry.at, before, planned_until, moment.is_start),
            Body::PlannerTaken { outage: Some(outage), .. } => {
                self.catch_ups.noted(outage, before);
                Ok(())
            }
            Body::RunChanged(change) => ensure("I13", change.event != RunEvent::Skipped(SkipReason::CatchUp), || {
                format!("run {} was recorded, and catch-up skips it", change.run)
            }),
            _ => Ok(()),
        }
    }

    /// Holds what a commit has left against the ledger.
    pub(crate) fn committed(&mut self, after: &World, ends: &BTreeMap<RunId, Run>) -> Check {
        let Commit { edited, ended, planned, passed, early, .. } = std::mem::take(&mut self.commit);
        self.catch_ups.committed(after)?;
        for (id, key) in passed {
            let is_decided = self.schedules.get(&id).is_none_or(|decided| decided.by_key.contains_key(&key));
            ensure("I11", is_decided, || {
                format!("the cursor of schedule {id} passes slot {key}, which is not decided")
            })?;
        }
        for id in early {
            let state = ends.get(&id).or_else(|| after.runs.get(&id).map(|run| &**run)).map(|run| &run.state);
            let is_cancelled = matches!(state, Some(RunState::Finished { outcome: Outcome::Cancelled, .. }));
            ensure("I12", is_cancelled, || format!("run {id} was recorded before its time, and is {state:?}"))?;
        }
        for id in edited.union(&planned) {
            if let (Some(decided), Some(record)) = (self.schedules.get(id), after.schedules.get(id)) {
                ensure("I15", planned.contains(id), || format!("schedule {id} was changed without a plan"))?;
                decided.agrees(record, ended.contains(id))?;
            }
        }
        Ok(())
    }

    /// What has missed a slot in an outage that was just noted has to catch up with it.
    pub(crate) fn are_missed(&self, outage: &Outage, after: &World) -> Check {
        for record in after.schedules.values() {
            let id = record.schedule.id;
            let missed = self.schedules.get(&id).and_then(|decided| decided.first_open(record, outage.until));
            let has_missed = after.outages.of(record);
            let is_covered = has_missed.is_some_and(|it| it.from <= outage.from && outage.until <= it.until);
            ensure("I13", missed.is_none() || is_covered, || {
                format!("schedule {id} missed {missed:?} in {outage:?}, and has to catch up with {has_missed:?}")
            })?;
        }
        Ok(())
    }

    /// Every slot up to an instant is decided; those of a pause are when it ends.
    pub(crate) fn are_complete(&self, until: Timestamp, world: &World) -> Check {
        let is_active = |decided: &&Decided| decided.version.schedule.is_active();
        for decided in self.schedules.values().filter(is_active) {
            decided.is_complete((until, until), 0, world)?;
            let Some(record) = world.schedules.get(&decided.version.schedule.id) else { continue };
            let id = record.schedule.id;
            let is_used_up = record.schedule.bounds.max_runs().is_some_and(|max| max <= record.schedule.runs_started);
            let lives = || world.live_runs().any(|run| run.schedule == Some(id));
            if is_used_up && !lives() {
                let open = decided.first_open(record, until);
                ensure("L5", open.is_none(), || format!("schedule {id} goes on after its last run: {open:?} came"))?;
            }
        }
        Ok(())
    }

    /// Every run that no node has claimed stands where the zone data of its plan puts it.
    pub(crate) fn are_in_place(&self, world: &World) -> Check {
        for run in world.live_runs().filter(|run| run.is_untouched() && run.key.is_slot()) {
            let Some(decided) = run.schedule.and_then(|id| self.schedules.get(&id)) else { continue };
            let slot = decided.version.timetable.slot(&run.key);
            let is_active = decided.version.schedule.is_active();
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
        self.commit.edited.insert(id);
        let version = || Version::new(schedule, &moment.zones, &self.calendars);
        let in_force_at = moment.now.map_or(at, |now| now.max(at));
        let (Some(decided), Some(record)) = (self.schedules.get_mut(&id), before.schedules.get(&id)) else {
            let decided = Decided { version: version(), in_force_at, by_key: BTreeMap::new(), given_up: vec![] };
            self.schedules.insert(id, decided);
            return Ok(());
        };
        let (old, cursor) = (&decided.version.schedule, &record.schedule.cursor);
        if old.version == schedule.version {
            let is_end = old.is_active() && matches!(schedule.state, ScheduleState::Ended(_));
            let is_end = is_end && *cursor == schedule.cursor;
            self.commit.ended.insert(id);
            decided.version.schedule = schedule.clone();
            return ensure("I15", is_end, || format!("schedule {id} changed without a new version"));
        }
        ensure("I15", old.version + 1 == schedule.version, || {
            format!("schedule {id} went from version {} to {}", old.version, schedule.version)
        })?;
        let pauses = old.is_active() && matches!(schedule.state, ScheduleState::Paused(_));
        // What fires once may fire at the very instant of the edit.
        let from = if old.trigger == schedule.trigger { cursor.at } else { just_before(cursor.at) };
        ensure("I15", from <= schedule.cursor.at || pauses && schedule.policy.catch_up.covers_pauses, || {
            format!("the cursor of schedule {id} went from {} back to {}", cursor.at, schedule.cursor.at)
        })?;
        // A pause that goes on keeps its slots for its end, and so does one whose end is caught up.
        let is_paused = matches!(old.state, ScheduleState::Paused(_)) && *cursor == schedule.cursor;
        let goes_on = matches!(schedule.state, ScheduleState::Paused(_)) || schedule.policy.catch_up.covers_pauses;
        if !(is_paused && goes_on && has_same_times(old, schedule)) {
            // A pause that ends by itself ends at its time, whenever that is noted.
            let until = if schedule.is_active() { old.paused_until().map_or(at, |until| until.min(at)) } else { at };
            decided.is_complete((until, Timestamp::MAX), 0, before)?;
        }
        (decided.version, decided.in_force_at) = (version(), in_force_at);
        Ok(())
    }

    fn skip(&mut self, skip: &SkipEntry, at: Timestamp) -> Check {
        let Some(decided) = self.schedules.get_mut(&skip.schedule) else {
            return ensure("I12", false, || format!("a skip for schedule {}, which is not there", skip.schedule));
        };
        let described = || {
            let SkipEntry { schedule, first, last, count, reason, .. } = skip;
            format!("{count} slots of schedule {schedule} from {first} to {last} skipped for {reason}")
        };
        let version = decided.version.clone();
        ensure("I12", skip.version == version.schedule.version, || format!("{} in another version", described()))?;
        ensure("I12", skip.last_at <= at, || format!("{}: before their time", described()))?;
        let range = version.range((skip.first.as_str(), skip.first_at), (skip.last.as_str(), skip.last_at));
        let Some(range) = range else {
            return ensure("I12", false, || format!("{}: not its slots", described()));
        };
        ensure("I11", range.len() as u64 == skip.count, || format!("{}: there are {}", described(), range.len()))?;
        for slot in &range {
            ensure("I12", is_reason(skip.reason, slot, &version.schedule), || {
                format!("{}: slot {} has {:?}", described(), slot.key(), slot.skipped)
            })?;
            decided.decide(slot, Decision::Skip(skip.reason))?;
        }
        self.catch_ups.skipped(skip, &range);
        Ok(())
    }

    fn plan(
        &mut self,
        plan: &PlanEntry,
        at: Timestamp,
        before: &World,
        planned_until: Option<Timestamp>,
        is_start: bool,
    ) -> Check {
        let id = plan.schedule;
        let (Some(decided), Some(record)) = (self.schedules.get_mut(&id), before.schedules.get(&id)) else {
            return ensure("I12", false, || format!("a plan for schedule {id}, which is not there"));
        };
        let cursor = &record.schedule.cursor;
        ensure("I15", cursor.at <= plan.cursor.at, || {
            format!("the cursor of schedule {id} went from {} back to {}", cursor.at, plan.cursor.at)
        })?;
        ensure("I15", plan.cursor.at <= cursor.at.max(at), || {
            format!("the cursor of schedule {id} went from {cursor:?} to {:?} at {at}", plan.cursor)
        })?;
        *self.commit.withdrawn.entry(id).or_default() += plan.withdrawn.len() as u64;
        for id in &plan.withdrawn {
            let run = before.runs.get(id);
            if let Some((_, decision)) = run.and_then(|run| decided.by_key.get_mut(&run.key))
                && *decision == Decision::Run(*id)
            {
                *decision = Decision::Withdrawn;
                decided.given_up.retain(|given_up| given_up != id);
            }
        }
        let version = &decided.version;
        let passed = version.passed(cursor, &plan.cursor, |key| record.schedule.early.has(key));
        let is_passed = |key: &SlotKey| passed.iter().any(|slot| slot.key() == *key);
        for run in &plan.runs {
            let slot = produced(&decided.version, run)?;
            let is_early = plan.early.has(&run.key) && !record.schedule.early.has(&run.key);
            ensure("I15", is_early || is_passed(&run.key), || {
                format!("run {} was recorded for {}, which the cursor does not pass", run.id, run.key)
            })?;
            ensure("I12", is_early || slot.scheduled_at <= at, || {
                format!("run {} was recorded at {at}, before the time of {}", run.id, run.key)
            })?;
            ensure("I15", !is_early || *cursor == plan.cursor, || {
                format!("run {} was recorded before its time, and the cursor went on", run.id)
            })?;
            if is_early {
                self.commit.early.push(run.id);
            }
            decided.decide(&slot, Decision::Run(run.id))?;
        }
        decided.keeps_early(&record.schedule, plan)?;
        for run in &plan.moved {
            // What is moved stands where its slot does. Only an edit or other zone data moves it.
            produced(&decided.version, &PlannedRun { id: RunId::of(id, run.scheduled_at, &run.key), ..run.clone() })?;
        }
        let is_edit = self.commit.edited.contains(&id);
        // Before the first node has planned there is no outage.
        let may_wait = is_start || planned_until.is_some();
        if !is_edit
            && may_wait
            && before.outages.of(record).is_none()
            && passed.iter().any(|slot| slot.skipped.is_none())
        {
            decided.is_in_time(plan, record, (at, planned_until), self.patience)?;
        }
        self.commit.planned.insert(id);
        self.commit.passed.extend(passed.iter().map(|slot| (id, slot.key())));
        let version = &self.schedules[&id].version;
        let passing = Passing { at, passed: &passed, is_edit, planned_until };
        self.catch_ups.planned(plan, before, version, passing)
    }
}

/// Whether an entry is about the slots of its schedule.
fn decides(body: &Body) -> bool {
    matches!(body, Body::ScheduleChanged { .. } | Body::ScheduleDeleted { .. } | Body::Skipped(_) | Body::Planned(_))
}

fn just_before(at: Timestamp) -> Timestamp {
    at - MOMENT
}

fn has_same_times(one: &Schedule, other: &Schedule) -> bool {
    one.trigger == other.trigger
        && (&one.zone, &one.calendar, &one.bounds, one.policy.dst)
            == (&other.zone, &other.calendar, &other.bounds, other.policy.dst)
}

/// Whether a slot may be skipped for a reason.
fn is_reason(reason: SkipReason, slot: &Slot, schedule: &Schedule) -> bool {
    match reason {
        SkipReason::Paused | SkipReason::Disabled => {
            matches!(&schedule.state, ScheduleState::Paused(pause) if pause.kind.skip_reason() == reason)
        }
        SkipReason::CatchUp => slot.skipped.is_none() && schedule.is_active(),
        _ => slot.skipped == Some(reason) && schedule.is_active(),
    }
}

/// The slot of a recorded run, which its schedule must have, and which its id must name.
fn produced(version: &Version, run: &PlannedRun) -> Result<Slot, Violation> {
    let slot = version.timetable.slot(&run.key);
    let id = RunId::of(version.schedule.id, run.scheduled_at, &run.key);
    let names_time = run.id.0.as_u64_pair().0 >> 16 == run.scheduled_at.as_millisecond() as u64;
    let fits = |slot: &Slot| {
        let is_there = slot.skipped.is_none() && slot.scheduled_at == run.scheduled_at && slot.due_at <= run.due_at;
        is_there && names_time && run.id == id
    };
    slot.clone().filter(fits).ok_or_else(|| Violation {
        rule: "I12",
        what: format!("run {} was recorded for {} at {}; the slot is {slot:?}", run.id, run.key, run.scheduled_at),
    })
}

impl Decided {
    /// Sees the version as a process with its zone data does. What the cursor has passed was decided with the data before.
    fn see_with(&mut self, moment: &Moment, calendars: &BTreeMap<String, Calendar>, cursor: &Cursor) {
        if self.version.zone_data != moment.zones.version() {
            let version = Version::new(&self.version.schedule, &moment.zones, calendars);
            self.version = Version { from: cursor.clone(), ..version };
        }
    }

    fn decide(&mut self, slot: &Slot, decision: Decision) -> Check {
        let before = self.by_key.insert(slot.key(), (slot.scheduled_at, decision)).map(|(_, decision)| decision);
        match (before, decision) {
            (None | Some(Decision::Withdrawn), _) => Ok(()),
            (Some(Decision::Run(run)), Decision::Skip(SkipReason::Calendar | SkipReason::DstGap)) => {
                self.given_up.push(run);
                Ok(())
            }
            // What fires when it is enabled fires each time, and a key knows whole seconds only.
            (Some(Decision::Skip(SkipReason::Disabled)), Decision::Run(_)) if self.is_immediate() => Ok(()),
            (Some(earlier), _) => ensure("I10", false, || {
                let id = self.version.schedule.id;
                format!("slot {} of schedule {id} is decided as {earlier:?}, and again as {decision:?}", slot.key())
            }),
        }
    }

    /// Slots that no outage missed are decided while a node plans, and soon.
    fn is_in_time(
        &self,
        plan: &PlanEntry,
        record: &ScheduleRecord,
        (at, planned_until): (Timestamp, Option<Timestamp>),
        patience: SignedDuration,
    ) -> Check {
        let id = plan.schedule;
        ensure("I13", planned_until.is_some_and(|until| at <= until), || {
            format!("slots of schedule {id} were decided at {at}, and no node plans since {planned_until:?}")
        })?;
        // A node whose clock is behind puts a version into force in the past. Zone data moves slots there, and a schedule that has
        // had all its runs waits for one that does not start.
        let is_moved = record.zone_data != plan.zone_data || record.schedule.bounds.max_runs().is_some();
        let is_late = |run: &&PlannedRun| patience < at.duration_since(run.scheduled_at.max(self.in_force_at));
        let late = plan.runs.iter().find(is_late).map(|run| &run.key);
        ensure("L2", late.is_none() || is_moved, || {
            format!("slot {late:?} of schedule {id} was decided at {at}, and no outage missed it")
        })
    }

    /// Slots that a person has cancelled stay decided until the cursor has passed them.
    fn keeps_early(&self, schedule: &Schedule, plan: &PlanEntry) -> Check {
        let id = schedule.id;
        for key in schedule.early.keys().iter().filter(|key| !plan.early.has(key)) {
            let is_ahead = match self.version.timetable.slot(key) {
                Some(slot) => plan.cursor.is_new(&slot),
                None => self.by_key.get(key).is_some_and(|(at, _)| plan.cursor.at + CLOCKS_APART < *at),
            };
            ensure("I10", !is_ahead, || format!("schedule {id} has forgotten that slot {key} was cancelled"))?;
        }
        let planned = |key: &SlotKey| plan.runs.iter().any(|run| run.key == *key);
        let unknown = plan.early.keys().iter().find(|key| !schedule.early.has(key) && !planned(key));
        ensure("I10", unknown.is_none(), || format!("slot {unknown:?} of schedule {id} is decided and has no record"))
    }

    /// Behind a commit the cursor and the decisions say the same.
    fn agrees(&self, record: &ScheduleRecord, has_ended: bool) -> Check {
        let schedule = &record.schedule;
        let id = schedule.id;
        ensure("I10", self.given_up.is_empty(), || format!("slots of runs {:?} were skipped", self.given_up))?;
        let is_ahead = |key: &SlotKey| {
            let slot = self.version.timetable.slot(key).filter(|slot| schedule.cursor.is_new(slot));
            slot.is_some() && !schedule.early.has(key)
        };
        let mut decided = self.by_key.iter().filter(|(_, (_, decision))| *decision != Decision::Withdrawn);
        let ahead = decided.find(|(key, _)| is_ahead(key));
        ensure("I15", ahead.is_none(), || {
            format!("the cursor of schedule {id} is at {:?}, and {ahead:?} is decided", schedule.cursor)
        })?;
        if !has_ended {
            return Ok(());
        }
        match schedule.state {
            ScheduleState::Ended(EndReason::Done) => {
                let open = self.open(record).take(LOOK_MAX).find(|slot| slot.skipped.is_none());
                ensure("I11", open.is_none(), || format!("schedule {id} is over before {open:?}"))
            }
            ScheduleState::Ended(EndReason::MaxRuns) => {
                let is_reached = schedule.bounds.max_runs().is_some_and(|max| max <= schedule.runs_started);
                ensure("I11", is_reached, || format!("schedule {id} is over after {} runs", schedule.runs_started))
            }
            _ => Ok(()),
        }
    }

    /// The slots after the cursor that are not decided.
    fn open(&self, record: &ScheduleRecord) -> impl Iterator<Item = Slot> {
        let cursor = &record.schedule.cursor;
        let slots = self.version.timetable.slots(cursor.starts_behind(&self.version.timetable)).looking_at(usize::MAX);
        slots.filter(move |slot| cursor.is_new(slot) && !record.schedule.early.has(&slot.key()))
    }

    /// The first slot up to an instant that wants a run and is not decided.
    fn first_open(&self, record: &ScheduleRecord, until: Timestamp) -> Option<SlotKey> {
        if !record.schedule.is_active() {
            return None;
        }
        let mut slots = self.version.slots_until(until);
        let is_open = |slot: &Slot| slot.skipped.is_none() && !self.is_decided(&slot.key());
        slots.find(|slot| is_open(slot) && record.schedule.cursor.is_new(slot)).map(|slot| slot.key())
    }

    fn is_immediate(&self) -> bool {
        matches!(*self.version.schedule.trigger, Trigger::Immediate(_))
    }

    fn is_decided(&self, key: &SlotKey) -> bool {
        self.by_key.get(key).is_some_and(|(_, decision)| *decision != Decision::Withdrawn)
    }

    /// Every slot up to an instant is decided; closed ones if their day has ended by another.
    fn is_complete(&self, (until, closed_until): (Timestamp, Timestamp), withdrawn: u64, world: &World) -> Check {
        let schedule = &self.version.schedule;
        let id = schedule.id;
        ensure("I10", self.given_up.is_empty(), || format!("slots of runs {:?} were skipped", self.given_up))?;
        let Some(record) = world.schedules.get(&id) else { return Ok(()) };
        // When as many runs are recorded as may start, the cursor rests.
        let is_unstarted = |run: &&Run| run.schedule == Some(id) && !run.has_started;
        let unstarted = || withdrawn + world.live_runs().filter(is_unstarted).count() as u64;
        let is_exhausted =
            schedule.bounds.max_runs().is_some_and(|max| max <= record.schedule.runs_started + unstarted());
        if is_exhausted || matches!(schedule.state, ScheduleState::Ended(_)) {
            return Ok(());
        }
        // Closed slots are recorded with the next open one, and at the latest when their day ends.
        let zone = self.version.timetable.zone();
        let is_due =
            |slot: &Slot| slot.skipped.is_none() || zone.day_end(zone.day_of(slot.scheduled_at)) <= closed_until;
        for key in self.version.slots_until(until).filter(is_due).map(|slot| slot.key()) {
            ensure("I11", self.by_key.contains_key(&key), || {
                format!("slot {key} of schedule {id} (version {}) is not decided", schedule.version)
            })?;
        }
        Ok(())
    }
}

//! Edits: what becomes of a schedule and its plan when somebody creates, changes, pauses, resumes or deletes it.
//!
//! Every edit re-plans in the transaction that writes it. If somebody else was faster, it is read and decided again.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::civil::DateTime;
use jiff::tz::Offset;
use jiff::{SignedDuration, Timestamp};
use punctual_core::journal::SkipEntry;
use punctual_core::plan::{EarlyDecisions, Outage, TooManyEarlyDecisions, UNSTARTED_MAX, pass, skip_until, slot_ahead};
use punctual_core::run::{Run, SkipReason, Terms};
use punctual_core::schedule::{
    CompileError, Cursor, EndReason, Immediate, Pause, PauseKind, Priority, Schedule, ScheduleState, Trigger,
};
use punctual_core::time::{SlotKey, Timetable, Zones};
use punctual_core::{Actor, By, RunId, ScheduleId};
use punctual_kernel::change::outage;
use punctual_kernel::due::{early_entry, next_of};
use punctual_store::{Cancellation, MOMENT, PlanSubject, PlanWrite, ScheduleChange, Store, StoreError, Written};
use tracing::warn;

use crate::ids::Ids;
use crate::planner::later;
use crate::recovery::{Recovered, Recovering};
use crate::replan::{self, PlanBase, planning};
use crate::settings::Settings;

/// How often an edit is decided anew when others are faster.
const TRIES_MAX: usize = 10;

/// How far apart two looks at the clock of one moment may be: requests that come together wait for each other.
const APART_MAX: SignedDuration = SignedDuration::from_secs(10);

/// The most calls that answer the slots before an edit: a million slots.
const CALLS_MAX: usize = 100;

/// Why an edit was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// The schedule names something that does not exist.
    #[error(transparent)]
    Invalid(#[from] CompileError),
    /// It is not there.
    #[error("schedule {0} does not exist")]
    NotFound(ScheduleId),
    /// It has another version than the caller saw.
    #[error("schedule {schedule} has version {found}, not {expected}: read it again")]
    OtherVersion {
        /// The schedule.
        schedule: ScheduleId,
        /// Its version.
        found: u64,
        /// The version that was expected.
        expected: u64,
    },
    /// Another schedule has its name.
    #[error("a schedule of this project is called {0:?} already")]
    NameTaken(String),
    /// It does not wait for an approval.
    #[error("run {0} does not wait for an approval")]
    NotWaiting(RunId),
    /// It is not what the caller saw.
    #[error("run {0} is not what was shown: look at it again")]
    OtherDigest(RunId),
    /// Others keep changing it.
    #[error("schedule {0} is being changed by others: try again")]
    Busy(ScheduleId),
    /// Others keep changing its schedule.
    #[error("the schedule of run {0} is being changed by others: try again")]
    BusyRun(RunId),
    /// As many of its slots are cancelled ahead of their time as may be.
    #[error(transparent)]
    TooManyEarly(#[from] TooManyEarlyDecisions),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Carries out what people ask for.
#[derive(Clone)]
pub struct Editor {
    pub(crate) store: Arc<dyn Store>,
    ids: Arc<dyn Ids>,
    settings: Arc<Settings>,
    pub(crate) by: Option<By>,
}

impl Editor {
    /// An editor on a store.
    pub fn new(store: Arc<dyn Store>, ids: Arc<dyn Ids>, settings: Arc<Settings>) -> Editor {
        Editor { store, ids, settings, by: None }
    }

    /// The same, on behalf of somebody: the journal names them.
    pub fn by(&self, by: By) -> Editor {
        Editor { by: Some(by), ..self.clone() }
    }

    /// Creates a schedule with its plan. Id, version and cursor are given here.
    pub async fn create(&self, schedule: Schedule, now: Timestamp) -> Result<Schedule, EditError> {
        let id = ScheduleId(self.ids.next(now));
        let cursor = Schedule::cursor_from(&schedule.trigger, now);
        let schedule = Schedule {
            id,
            version: 1,
            cursor,
            early: EarlyDecisions::default(),
            runs_started: 0,
            read_until: None,
            created_at: now,
            updated_at: now,
            ..schedule
        };
        let timetable = schedule.timetable(&self.settings.zones, &self.settings.calendars)?;
        let planning = planning(&schedule, &timetable, 0);
        let passed = pass(&planning, &schedule.cursor, now);
        let base = PlanBase::of_new(&schedule, &self.settings);
        let mut write = base.passed(&planning, &passed, None, now);
        (write.change, write.by) = (ScheduleChange::Put(Box::new(schedule.clone())), self.by.clone());
        replan::wake_planner(&mut write, &schedule, 0, now);
        match self.store.plan(now, vec![write]).await?[..] {
            [Written::Done] => Ok(schedule),
            // Its id is new: only its name can be another's.
            _ => Err(schedule.name.map_or(EditError::Busy(id), EditError::NameTaken)),
        }
    }

    /// Changes a schedule: `change` turns what it is into what it shall be. Its version is raised here; `version`, if
    /// given, is the one that the caller has seen.
    pub async fn edit(
        &self,
        id: ScheduleId,
        version: Option<u64>,
        now: Timestamp,
        change: impl Fn(&Schedule) -> Schedule + Send + Sync,
    ) -> Result<Schedule, EditError> {
        for _ in 0..TRIES_MAX {
            let (subject, now) = self.up_to_date(id, now).await?;
            let before = &subject.task.record.schedule;
            if let Some(expected) = version.filter(|expected| *expected != before.version) {
                return Err(EditError::OtherVersion { schedule: id, found: before.version, expected });
            }
            let (edited, mut write) = self.edited(&subject, change(before), now)?;
            write.by.clone_from(&self.by);
            if self.drop_decided(&mut write).await? {
                replan::wake_planner(&mut write, &edited, subject.task.live, now);
            }
            if let [Written::Done] = self.store.plan(now, vec![write]).await?[..] {
                return Ok(edited);
            }
        }
        Err(EditError::Busy(id))
    }

    /// Drops runs of slots that have had theirs. Whether there were any.
    ///
    /// What an edit makes fire once begins just before its own instant: a slot of that instant may be decided, under a version of
    /// before, and its run be known to the history alone.
    async fn drop_decided(&self, write: &mut PlanWrite) -> Result<bool, StoreError> {
        let Some(plan) = &mut write.plan else { return Ok(false) };
        let mut decided = BTreeSet::new();
        for run in &plan.runs {
            decided.extend(self.store.run(run.id).await?.map(|run| run.id));
        }
        // The cursor has passed them already.
        plan.runs.retain(|run| !decided.contains(&run.id));
        Ok(!decided.is_empty())
    }

    /// Pauses a schedule, or switches it off: what lies ahead is withdrawn. A pause of what is paused changes only when it ends.
    pub async fn pause(&self, id: ScheduleId, pause: Pause, now: Timestamp) -> Result<Schedule, EditError> {
        self.edit(id, None, now, |schedule| {
            // What fires when it is enabled is never done for good: it can be switched off, and on again.
            let is_immediate = matches!(*schedule.trigger, Trigger::Immediate(_));
            let can_pause = match schedule.state {
                ScheduleState::Active => true,
                ScheduleState::Ended(EndReason::Done) => is_immediate,
                ScheduleState::Paused(_) | ScheduleState::Ended(_) => false,
            };
            let state = match &schedule.state {
                _ if can_pause => ScheduleState::Paused(Box::new(pause.clone())),
                ScheduleState::Paused(before) if before.kind == pause.kind => {
                    ScheduleState::Paused(Box::new(Pause { until: pause.until, ..Pause::clone(before) }))
                }
                other => other.clone(),
            };
            Schedule { state, ..schedule.clone() }
        })
        .await
    }

    /// Lets a paused schedule go on: the slots of the pause are recorded, and what lies ahead is planned.
    pub async fn resume(&self, id: ScheduleId, now: Timestamp) -> Result<Schedule, EditError> {
        self.edit(id, None, now, |schedule| resumed(schedule, now)).await
    }

    /// What ends a pause whose time has come. The schedule goes on from the end of the pause, not from now: slots that lie between
    /// were missed by planning, not by the pause.
    pub(crate) fn end_pause(&self, subject: &PlanSubject, now: Timestamp) -> Result<PlanWrite, EditError> {
        let before = &*subject.task.record.schedule;
        let until = before.paused_until().map_or(now, |until| until.min(now));
        let (_, write) = self.edited(subject, resumed(before, until), until)?;
        let by = By { reason: Some("pause ended".to_owned()), ..By::new(Actor::Operator) };
        Ok(PlanWrite { by: Some(by), ..write })
    }

    /// Deletes a schedule: the planned runs of its slots are withdrawn, what else is planned is cancelled (another try, or a
    /// run that somebody asked for), what is at work goes on.
    pub async fn delete(&self, id: ScheduleId, now: Timestamp) -> Result<(), EditError> {
        for _ in 0..TRIES_MAX {
            let (subject, now) = self.up_to_date(id, now).await?;
            let skips = self.left_skips(&subject, now)?;
            let withdrawn = subject.runs.iter().filter(|run| is_withdrawn(run)).map(|run| run.id).collect();
            let next = replan::next_slot(&subject.task.record, subject.task.waiting, &self.settings);
            let next_gone = next.map(|slot| RunId::of(id, slot.scheduled_at, &slot.key()));
            let change = ScheduleChange::Delete { withdrawn, next_gone };
            let base = PlanBase::new(&subject.task.record, &self.settings).write(skips, |_| {});
            let write = PlanWrite { change, plan: None, by: self.by.clone(), ..base };
            if let [Written::Done] = self.store.plan(now, vec![write]).await?[..] {
                return self.cancel_planned(&subject, now).await;
            }
        }
        Err(EditError::Busy(id))
    }

    async fn cancel_planned(&self, subject: &PlanSubject, now: Timestamp) -> Result<(), EditError> {
        for run in subject.runs.iter().filter(|run| run.planned_for().is_some() && !is_withdrawn(run)) {
            self.store.cancel(now, run.id, self.by.clone()).await?;
        }
        Ok(())
    }

    /// Runs a schedule once, now. It does not move the schedule's own times, and works while it is paused.
    pub async fn trigger(&self, id: ScheduleId, now: Timestamp) -> Result<RunId, EditError> {
        Ok(self.trigger_with(id, |terms| terms, now).await?.id)
    }

    /// Runs a schedule once, now, under terms that differ from its own.
    pub async fn trigger_with(
        &self,
        id: ScheduleId,
        change: impl FnOnce(Terms) -> Terms + Send,
        now: Timestamp,
    ) -> Result<Run, EditError> {
        let schedule = self.store.schedule(id).await?.ok_or(EditError::NotFound(id))?;
        let terms = change(Terms { priority: Priority::MANUAL, ..Terms::of(&schedule) });
        self.ask(Some((id, schedule.version)), terms, now).await
    }

    /// Runs an agent once, now, without a schedule.
    pub async fn run_agent(&self, terms: Terms, now: Timestamp) -> Result<Run, EditError> {
        self.ask(None, terms, now).await
    }

    async fn ask(&self, of: Option<(ScheduleId, u64)>, terms: Terms, now: Timestamp) -> Result<Run, EditError> {
        let id = RunId(self.ids.next(now));
        let asked = Run::asked(id, of, SlotKey::manual(id), now, Arc::new(terms));
        self.store.ask(now, asked.clone(), self.by.clone()).await?;
        Ok(asked)
    }

    /// Cancels a run, or a slot whose time has not come and that has no record yet.
    pub async fn cancel(&self, run: RunId, now: Timestamp) -> Result<Cancellation, EditError> {
        for _ in 0..TRIES_MAX {
            let not_found = match self.store.cancel(now, run, self.by.clone()).await {
                Err(error @ StoreError::NotFound { .. }) => error,
                cancelled => return Ok(cancelled?),
            };
            // It may be recorded meanwhile, or belong to a version that is no more: then it is looked for again.
            let Some(write) = self.cancelled_early(run, now).await? else { return Err(not_found.into()) };
            if let [Written::Done] = self.store.plan(now, vec![write]).await?[..] {
                return Ok(Cancellation::Done);
            }
        }
        Err(EditError::BusyRun(run))
    }

    /// What cancels a slot before its time: its run is recorded and cancelled at once.
    async fn cancelled_early(&self, run: RunId, now: Timestamp) -> Result<Option<PlanWrite>, EditError> {
        let Some(schedule) = self.store.schedule_of_slot(run).await? else { return Ok(None) };
        let Some(subject) = self.store.subject(schedule.id, now).await? else { return Ok(None) };
        let record = &subject.task.record;
        let timetable = self.settings.timetables().of(&record.schedule)?;
        let Some(slot) = slot_ahead(&record.schedule, &timetable, run) else { return Ok(None) };
        let planning = planning(&record.schedule, &timetable, subject.task.waiting);
        let entry = early_entry(&planning, record, &slot, now)?;
        let base = PlanBase::new(record, &self.settings).write(vec![], |plan| *plan = entry);
        Ok(Some(PlanWrite { cancelled: vec![run], by: self.by.clone(), ..base }))
    }

    fn edited(
        &self,
        subject: &PlanSubject,
        wanted: Schedule,
        now: Timestamp,
    ) -> Result<(Schedule, PlanWrite), EditError> {
        let before = &subject.task.record.schedule;
        let version = before.version + 1;
        let goes_on = pause_goes_on(before, &wanted);
        let is_made_up_for = makes_up_for_pause(before, &wanted);
        let cursor = if goes_on || is_made_up_for {
            before.cursor.clone()
        } else if makes_up_for_pause(&wanted, before) {
            let timetable = self.settings.timetables().of(before).ok();
            let after = cursor_after(before, &wanted, &self.settings.zones, now);
            cursor_before(subject, timetable.as_deref(), after, now)
        } else {
            cursor_after(before, &wanted, &self.settings.zones, now)
        };
        let edited = Schedule {
            id: before.id,
            version,
            cursor: cursor.clone(),
            early: before.early.clone(),
            runs_started: before.runs_started,
            read_until: before.read_until,
            created_at: before.created_at,
            updated_at: now,
            ..wanted
        };
        let timetable = edited.timetable(&self.settings.zones, &self.settings.calendars)?;
        if is_made_up_for {
            let write = self.resumed(subject, &edited, now);
            return Ok((edited, write));
        }
        let skips = if goes_on { vec![] } else { self.left_skips(subject, now)? };
        let stored = edited.clone();
        let mut write = replan::write(subject, Some(stored), cursor, &timetable, &self.settings, now);
        write.skips.splice(0..0, skips);
        Ok((edited, write))
    }

    /// The end of a pause that is made up for: to planning it is an outage.
    fn resumed(&self, subject: &PlanSubject, edited: &Schedule, now: Timestamp) -> PlanWrite {
        let record = &subject.task.record;
        let pause = Outage { from: edited.cursor.at, until: now, kept: None };
        let write = PlanBase::new(record, &self.settings).write(vec![], |entry| {
            entry.version = edited.version;
            entry.plan_at = Some(now);
            entry.zone_data.clone_from(&*record.zone_data);
            entry.outage = Some(record.outage.map_or(pause, |outage| outage.and(pause)));
        });
        PlanWrite { change: ScheduleChange::Put(Box::new(edited.clone())), ..write }
    }

    /// A schedule whose slots are answered up to now by the version in force: an edit begins at now, and what an outage has
    /// missed, or planning has not come to yet, would be lost behind it.
    ///
    /// Also when that is: an outage may have been noted a moment after the edit was asked for, and ends then.
    async fn up_to_date(&self, id: ScheduleId, now: Timestamp) -> Result<(PlanSubject, Timestamp), EditError> {
        let mut now = now;
        let mut recovering = Recovering::new(self.settings.max_recovery_catch_ups);
        for _ in 0..CALLS_MAX {
            let subject = self.store.subject(id, now).await?.ok_or(EditError::NotFound(id))?;
            // An outage that ends after now is the planner's: what it missed after now would be decided as if there was none.
            let record = &subject.task.record;
            if let Some(outage) = record.outage.filter(|outage| record.schedule.is_active() && now < outage.until) {
                if APART_MAX < outage.until.duration_since(now) {
                    return Err(EditError::Busy(id));
                }
                now = outage.until;
            }
            let Some(write) = self.overdue(&subject, &mut recovering, now) else { return Ok((subject, now)) };
            let write = self.unnoted_outage(&subject, now).await?.unwrap_or(write);
            // If somebody else was faster, they have answered it.
            self.store.plan(now, vec![write]).await?;
        }
        Err(EditError::Busy(id))
    }

    /// Gives a schedule that has slots to be answered the outage that is not noted yet: no node has planned since the last one
    /// stopped. They are for catch-up to decide, as if a node had come first.
    ///
    /// The lease is read after the schedule: if a node takes it in between and notes the outage, the write finds another schedule.
    async fn unnoted_outage(&self, subject: &PlanSubject, now: Timestamp) -> Result<Option<PlanWrite>, EditError> {
        let record = &subject.task.record;
        if record.outage.is_some() {
            return Ok(None);
        }
        let outage = outage(self.store.planned_until().await?, now);
        Ok(outage.map(|outage| {
            PlanBase::new(record, &self.settings).write(vec![], |entry| {
                entry.plan_at = Some(now);
                entry.zone_data.clone_from(&*record.zone_data);
                entry.outage = Some(outage);
            })
        }))
    }

    fn overdue(&self, subject: &PlanSubject, recovering: &mut Recovering, now: Timestamp) -> Option<PlanWrite> {
        let record = &subject.task.record;
        let schedule = &*record.schedule;
        let is_behind = record.outage.is_some() || schedule.cursor.at < now;
        if !schedule.is_active() || !is_behind {
            return None;
        }
        // Without its zone or calendar it has no slots, and an edit may be what gives it another.
        let timetable = schedule.timetable(&self.settings.zones, &self.settings.calendars).ok()?;
        if record.outage.is_some() {
            let recovered = Recovered::new(subject, &timetable, &self.settings, now);
            return recovering.writes(recovered.into_iter().collect(), now).pop();
        }
        let planning = planning(schedule, &timetable, subject.task.waiting);
        let passed = pass(&planning, &schedule.cursor, now);
        let base = PlanBase::new(record, &self.settings);
        (!passed.decisions.is_empty()).then(|| base.passed(&planning, &passed, next_of(&planning).as_ref(), now))
    }

    /// The slots up to now that are left without an answer, and get none any more: those of a pause, or those for which there
    /// was no room because too many waited. One range, where nothing stood in it before.
    fn left_skips(&self, subject: &PlanSubject, now: Timestamp) -> Result<Vec<SkipEntry>, EditError> {
        let schedule = &*subject.task.record.schedule;
        let reason = match &schedule.state {
            ScheduleState::Paused(pause) => pause.kind.skip_reason(),
            ScheduleState::Active if UNSTARTED_MAX <= subject.task.waiting => SkipReason::Quota,
            ScheduleState::Active | ScheduleState::Ended(_) => return Ok(vec![]),
        };
        let timetable = schedule.timetable(&self.settings.zones, &self.settings.calendars)?;
        let planning = planning(schedule, &timetable, subject.task.waiting);
        let mut skips: Vec<SkipEntry> = vec![];
        let mut cursor = schedule.cursor.clone();
        for _ in 0..CALLS_MAX {
            let skipped = skip_until(&planning, &cursor, now, reason);
            for skip in skipped.skips.iter().map(|range| SkipEntry::new(schedule, range)) {
                match skips.last_mut() {
                    // One call ends where the next begins, unless a run stands in between.
                    Some(last) if is_next(&timetable, last, &skip) => {
                        (last.last, last.last_at) = (skip.last, skip.last_at);
                        last.count += skip.count;
                    }
                    _ => skips.push(skip),
                }
            }
            if !skipped.is_cut {
                return Ok(skips);
            }
            cursor = skipped.cursor;
        }
        warn!(
            schedule.id = %schedule.id, from = %cursor.at, until = %now,
            "schedule {} left more slots than are recorded: those from {} to {now} are not", schedule.id, cursor.at
        );
        Ok(skips)
    }
}

/// The same schedule, going on.
fn resumed(schedule: &Schedule, now: Timestamp) -> Schedule {
    match &schedule.state {
        ScheduleState::Paused(pause) => Schedule {
            state: ScheduleState::Active,
            trigger: trigger_when_enabled(&schedule.trigger, pause.kind, now).into(),
            ..schedule.clone()
        },
        ScheduleState::Active | ScheduleState::Ended(_) => schedule.clone(),
    }
}

/// Whether a run goes with its schedule as if it had never been: whoever asked for one gets an answer.
fn is_withdrawn(run: &Run) -> bool {
    run.key.is_slot() && run.is_untouched()
}

/// Whether a range of skipped slots goes on directly where another ends.
fn is_next(timetable: &Timetable, before: &SkipEntry, skip: &SkipEntry) -> bool {
    let from = before.last_at.checked_sub(MOMENT).unwrap_or(Timestamp::MIN);
    // Zone data may have moved the last slot: it is not searched for behind its time.
    let mut slots = timetable.slots(from);
    let mut same_instant = slots.by_ref().take_while(|slot| slot.scheduled_at <= before.last_at);
    before.reason == skip.reason
        && same_instant.any(|slot| slot.key() == before.last)
        && slots.next().is_some_and(|slot| slot.key() == skip.first)
}

/// Whether a pause, or an end, goes on behind an edit with the same times: then it keeps its beginning. Where the times change,
/// what the pause has left so far is recorded as it was.
fn pause_goes_on(before: &Schedule, wanted: &Schedule) -> bool {
    match (&before.state, &wanted.state) {
        (ScheduleState::Paused(_), ScheduleState::Paused(_)) => times(before) == times(wanted),
        (before, wanted) => matches!((before, wanted), (ScheduleState::Ended(_), ScheduleState::Ended(_))),
    }
}

/// What says when a schedule fires.
fn times(it: &Schedule) -> impl PartialEq {
    (it.trigger.clone(), it.zone.clone(), it.calendar.clone(), it.bounds.clone(), it.policy.dst)
}

/// Whether a schedule goes on behind a pause whose slots it makes up for.
fn makes_up_for_pause(paused: &Schedule, active: &Schedule) -> bool {
    matches!((&paused.state, &active.state), (ScheduleState::Paused(_), ScheduleState::Active))
        && active.policy.catch_up.covers_pauses
        && paused.policy.catch_up.covers_pauses
        && times(paused) == times(active)
}

/// Where a pause begins that will be made up for: before the last slots that have their runs and that no node has begun. Slots before
/// another one that is decided are not made up for: that one would be decided again. `after` is where it begins if there are none.
fn cursor_before(subject: &PlanSubject, timetable: Option<&Timetable>, after: Cursor, now: Timestamp) -> Cursor {
    let cursor = &subject.task.record.schedule.cursor;
    let waiting: BTreeSet<&SlotKey> = subject.runs.iter().filter(|run| is_withdrawn(run)).map(|run| &run.key).collect();
    let until = later(cursor.at.max(now), MOMENT);
    let decided = timetable.into_iter().flat_map(|timetable| timetable.before(until));
    let last = decided.take_while(|slot| waiting.contains(&slot.key())).last();
    last.and_then(|slot| slot.scheduled_at.checked_sub(MOMENT).ok()).map_or(after, Cursor::starting)
}

/// Where planning goes on after an edit: at now, and never before where it has been, whatever clocks and zone data do.
fn cursor_after(before: &Schedule, wanted: &Schedule, zones: &Zones, now: Timestamp) -> Cursor {
    if now < before.cursor.at {
        return before.cursor.clone();
    }
    // A one-shot that it had before has its answer at this very instant.
    let cursor = if before.trigger == wanted.trigger {
        Cursor::starting(now)
    } else {
        Schedule::cursor_from(&wanted.trigger, now)
    };
    // Zone data may have put a clock back: what it shows again is decided.
    let is_ahead = |zone: &str, reached: DateTime| {
        let offset = zones.get(zone).ok().and_then(|zone| Offset::from_seconds(zone.offset_at(now)).ok());
        offset.is_some_and(|offset| offset.to_datetime(now) < reached)
    };
    let reached = before.cursor.reached.iter().filter(|(zone, reached)| is_ahead(zone, *reached)).collect();
    Cursor { reached, ..cursor }
}

/// What fires as soon as it is enabled fires when it is enabled again.
fn trigger_when_enabled(trigger: &Trigger, kind: PauseKind, now: Timestamp) -> Trigger {
    match (trigger, kind) {
        (Trigger::Immediate(_), PauseKind::Disabled) => Trigger::Immediate(Immediate { at: now }),
        _ => trigger.clone(),
    }
}

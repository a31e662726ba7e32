//! Edits: what becomes of a schedule and its plan when somebody creates, changes, pauses, resumes or deletes it.
//!
//! Every edit re-plans in the transaction that writes it. If somebody else was faster, it is read and decided again.

use std::sync::Arc;

use jiff::Timestamp;
use punctual_core::journal::SkipEntry;
use punctual_core::plan::{Planning, answer_pause, plan};
use punctual_core::run::{Run, RunState, Terms};
use punctual_core::schedule::{CompileError, Immediate, Pause, PauseKind, Priority, Schedule, ScheduleState, Trigger};
use punctual_core::time::{SlotKey, Timetable};
use punctual_core::{RunId, ScheduleId};
use punctual_store::{Cancellation, MOMENT, PlanSubject, PlanWrite, ScheduleChange, Store, StoreError, Written};

use crate::ids::Ids;
use crate::replan::{self, PlanBase};
use crate::settings::Settings;

/// How often an edit is decided anew when others are faster.
const TRIES_MAX: usize = 10;

/// The most calls that answer the slots of one pause: a million slots.
const PAUSE_CALLS_MAX: usize = 100;

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
    /// Others keep changing it.
    #[error("schedule {0} is being changed by others: try again")]
    Busy(ScheduleId),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Carries out what people ask for.
#[derive(Clone)]
pub struct Editor {
    store: Arc<dyn Store>,
    ids: Arc<dyn Ids>,
    settings: Arc<Settings>,
}

impl Editor {
    /// An editor on a store.
    pub fn new(store: Arc<dyn Store>, ids: Arc<dyn Ids>, settings: Arc<Settings>) -> Editor {
        Editor { store, ids, settings }
    }

    /// Creates a schedule with its plan. Id, version and cursor are given here.
    pub async fn create(&self, schedule: Schedule, now: Timestamp) -> Result<Schedule, EditError> {
        let id = ScheduleId(self.ids.next(now));
        let cursor = Schedule::cursor_from(&schedule.trigger, now);
        let schedule = Schedule { id, version: 1, cursor, runs_started: 0, ..schedule };
        let timetable = schedule.timetable(&self.settings.zones, &self.settings.calendars)?;
        let answered = Planning::NONE_ANSWERED;
        let planning = Planning { schedule: &schedule, timetable: &timetable, waiting: 0, answered };
        let planned = plan(&planning, &schedule.cursor, now);
        let base = PlanBase::of_new(&schedule, &self.settings);
        let mut write = base.planned(&schedule, &timetable, &planned, &*self.ids, now);
        write.change = ScheduleChange::Put(Box::new(schedule.clone()));
        match self.store.plan(now, vec![write]).await?[..] {
            [Written::Done] => Ok(schedule),
            _ => Err(EditError::Busy(id)),
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
            let subject = self.store.subject(id, now).await?.ok_or(EditError::NotFound(id))?;
            let before = &subject.task.record.schedule;
            if let Some(expected) = version.filter(|expected| *expected != before.version) {
                return Err(EditError::OtherVersion { schedule: id, found: before.version, expected });
            }
            let (edited, write) = self.edited(&subject, change(before), now)?;
            if let [Written::Done] = self.store.plan(now, vec![write]).await?[..] {
                return Ok(edited);
            }
        }
        Err(EditError::Busy(id))
    }

    /// Pauses a schedule, or switches it off: what lies ahead is withdrawn. A pause of what is paused changes nothing.
    pub async fn pause(&self, id: ScheduleId, pause: Pause, now: Timestamp) -> Result<Schedule, EditError> {
        self.edit(id, None, now, |schedule| match schedule.state {
            ScheduleState::Active => Schedule { state: ScheduleState::Paused(pause.clone()), ..schedule.clone() },
            ScheduleState::Paused(_) | ScheduleState::Ended(_) => schedule.clone(),
        })
        .await
    }

    /// Lets a paused schedule go on: the slots of the pause are recorded, and what lies ahead is planned.
    pub async fn resume(&self, id: ScheduleId, now: Timestamp) -> Result<Schedule, EditError> {
        self.edit(id, None, now, |schedule| match &schedule.state {
            ScheduleState::Paused(pause) => Schedule {
                state: ScheduleState::Active,
                trigger: trigger_when_enabled(&schedule.trigger, pause.kind, now),
                ..schedule.clone()
            },
            ScheduleState::Active | ScheduleState::Ended(_) => schedule.clone(),
        })
        .await
    }

    /// Deletes a schedule: its planned runs are withdrawn, what waits for another try is cancelled, what is at work goes on.
    pub async fn delete(&self, id: ScheduleId, now: Timestamp) -> Result<(), EditError> {
        for _ in 0..TRIES_MAX {
            let subject = self.store.subject(id, now).await?.ok_or(EditError::NotFound(id))?;
            let skips = self.pause_skips(&subject, now)?;
            let untouched = subject.runs.iter().filter(|run| run.is_untouched());
            let withdrawn = untouched.map(|run| run.id).collect();
            let base = PlanBase::new(&subject.task.record, &self.settings).write(skips, |_| {});
            let write = PlanWrite { change: ScheduleChange::Delete { withdrawn }, plan: None, ..base };
            if let [Written::Done] = self.store.plan(now, vec![write]).await?[..] {
                return self.cancel_tried(&subject, now).await;
            }
        }
        Err(EditError::Busy(id))
    }

    async fn cancel_tried(&self, subject: &PlanSubject, now: Timestamp) -> Result<(), EditError> {
        for run in subject.runs.iter().filter(|run| run.planned_for().is_some() && !run.is_untouched()) {
            self.store.cancel(now, run.id).await?;
        }
        Ok(())
    }

    /// Runs a schedule once, now. It does not move the schedule's own times, and works while it is paused.
    pub async fn trigger(&self, id: ScheduleId, now: Timestamp) -> Result<RunId, EditError> {
        let schedule = self.store.schedule(id).await?.ok_or(EditError::NotFound(id))?;
        let run = RunId(self.ids.next(now));
        let asked = Run {
            id: run,
            schedule: Some(id),
            version: schedule.version,
            key: SlotKey::manual(run),
            scheduled_at: now,
            due_at: now,
            expires_at: None,
            follows: None,
            terms: Arc::new(Terms { priority: Priority::MANUAL, ..Terms::of(&schedule) }),
            state: RunState::planned(now, 0),
            started_at: None,
            ended_at: None,
            has_started: false,
            is_parked: false,
            is_cancelling: false,
            last_end: None,
        };
        self.store.ask(now, asked).await?;
        Ok(run)
    }

    /// Calls a run off.
    pub async fn cancel(&self, run: RunId, now: Timestamp) -> Result<Cancellation, EditError> {
        Ok(self.store.cancel(now, run).await?)
    }

    fn edited(
        &self,
        subject: &PlanSubject,
        wanted: Schedule,
        now: Timestamp,
    ) -> Result<(Schedule, PlanWrite), EditError> {
        let before = &*subject.task.record.schedule;
        let version = before.version + 1;
        let cursor = self.cursor_after(before, &wanted, now);
        let runs_started = before.runs_started;
        let edited = Schedule { id: before.id, version, cursor: cursor.clone(), runs_started, ..wanted };
        let timetable = edited.timetable(&self.settings.zones, &self.settings.calendars)?;
        let skips = if edited.is_active() { self.pause_skips(subject, now)? } else { vec![] };
        let stored = edited.clone();
        let mut write = replan::write(subject, Some(stored), cursor, &timetable, &self.settings, &*self.ids, now);
        write.skips.splice(0..0, skips);
        Ok((edited, write))
    }

    /// Where planning goes on behind an edit. A pause that goes on keeps its beginning; everything else starts at now.
    fn cursor_after(&self, before: &Schedule, wanted: &Schedule, now: Timestamp) -> punctual_core::schedule::Cursor {
        let stays_paused = matches!(
            (&before.state, &wanted.state),
            (ScheduleState::Paused(_), ScheduleState::Paused(_)) | (ScheduleState::Ended(_), ScheduleState::Ended(_))
        );
        if stays_paused { before.cursor.clone() } else { Schedule::cursor_from(&wanted.trigger, now) }
    }

    /// The slots that a pause has left without an answer, as one range.
    fn pause_skips(&self, subject: &PlanSubject, now: Timestamp) -> Result<Vec<SkipEntry>, EditError> {
        let schedule = &*subject.task.record.schedule;
        let ScheduleState::Paused(_) = schedule.state else { return Ok(vec![]) };
        let timetable = schedule.timetable(&self.settings.zones, &self.settings.calendars)?;
        let (waiting, answered) = (subject.task.waiting, replan::answered(subject));
        let planning = Planning { schedule, timetable: &timetable, waiting, answered: &answered };
        let mut skips: Vec<SkipEntry> = vec![];
        let mut cursor = schedule.cursor.clone();
        for _ in 0..PAUSE_CALLS_MAX {
            let answered = answer_pause(&planning, &cursor, now);
            for skip in answered.skips().map(|range| SkipEntry::new(schedule, range)) {
                match skips.last_mut() {
                    // One call ends where the next begins, unless a run stands in between.
                    Some(last) if is_next(&timetable, last, &skip) => {
                        (last.last, last.last_at) = (skip.last, skip.last_at);
                        last.count += skip.count;
                    }
                    _ => skips.push(skip),
                }
            }
            if answered.wake_at.is_none() {
                break;
            }
            cursor = answered.cursor;
        }
        Ok(skips)
    }
}

/// Whether a range of skips begins with the slot behind the last one of another.
fn is_next(timetable: &Timetable, range: &SkipEntry, next: &SkipEntry) -> bool {
    let from = range.last_at.checked_sub(MOMENT).unwrap_or(Timestamp::MIN);
    let mut behind = timetable.slots(from).map(|slot| slot.key()).skip_while(|key| *key != range.last).skip(1);
    range.reason == next.reason && behind.next().as_ref() == Some(&next.first)
}

/// What fires as soon as it is enabled fires when it is enabled again.
fn trigger_when_enabled(trigger: &Trigger, kind: PauseKind, now: Timestamp) -> Trigger {
    match (trigger, kind) {
        (Trigger::Immediate(_), PauseKind::Disabled) => Trigger::Immediate(Immediate { at: now }),
        _ => trigger.clone(),
    }
}

//! Rows of snapshot and base: schedules, how far they have come, and live runs, as tables have them in every dialect.
//!
//! A schedule is two rows: its definition, which changes with edits, and its progress, which changes whenever a slot is decided.
//! The terms of a run are written only where they are not those of its schedule's version.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use jiff::Timestamp;
use punctual_core::journal::{ScheduleRecord, World};
use punctual_core::plan::{EarlyDecisions, Outage};
use punctual_core::run::{AttemptEnd, Run, RunState, Terms};
use punctual_core::schedule::{Cursor, Schedule};
use punctual_core::time::SlotKey;
use punctual_core::{RunId, ScheduleId, Shared};
use punctual_kernel::state::Rest;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::columns::{Damage, check_run, from_json, to_json};

/// The definition of a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DefinitionRow {
    pub(crate) id: Uuid,
    pub(crate) version: u64,
    pub(crate) name: Option<String>,
    pub(crate) project: Option<String>,
    pub(crate) definition: String,
}

/// How far a schedule has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProgressRow {
    pub(crate) id: Uuid,
    /// When planning has something to do.
    pub(crate) plan_at: Option<Timestamp>,
    pub(crate) progress: String,
}

/// A run that is not over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunRow {
    pub(crate) id: Uuid,
    pub(crate) schedule: Option<Uuid>,
    pub(crate) state: &'static str,
    pub(crate) body: String,
    /// The terms, where they are not those of its schedule.
    pub(crate) terms: Option<String>,
}

/// A run without its terms.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RunBody {
    id: RunId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    schedule: Option<ScheduleId>,
    version: u64,
    key: SlotKey,
    scheduled_at: Timestamp,
    due_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    follows: Option<RunId>,
    state: RunState,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    started_at: Option<Timestamp>,
    has_started: bool,
    is_parked: bool,
    is_cancelling: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_end: Option<AttemptEnd>,
}

impl RunBody {
    fn of(run: &Run) -> RunBody {
        RunBody {
            id: run.id,
            schedule: run.schedule,
            version: run.version,
            key: run.key.clone(),
            scheduled_at: run.scheduled_at,
            due_at: run.due_at,
            expires_at: run.expires_at,
            follows: run.follows,
            state: run.state,
            started_at: run.started_at,
            has_started: run.has_started,
            is_parked: run.is_parked,
            is_cancelling: run.is_cancelling,
            last_end: run.last_end,
        }
    }

    fn into_run(self, terms: Arc<Terms>) -> Run {
        Run {
            id: self.id,
            schedule: self.schedule,
            version: self.version,
            key: self.key,
            scheduled_at: self.scheduled_at,
            due_at: self.due_at,
            expires_at: self.expires_at,
            follows: self.follows,
            terms,
            state: self.state,
            started_at: self.started_at,
            ended_at: None,
            has_started: self.has_started,
            is_parked: self.is_parked,
            is_cancelling: self.is_cancelling,
            last_end: self.last_end,
        }
    }
}

/// What a schedule's progress says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Progress {
    cursor: Cursor,
    #[serde(default, skip_serializing_if = "EarlyDecisions::is_empty")]
    early: EarlyDecisions,
    #[serde(default)]
    runs_started: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    read_until: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    plan_at: Option<Timestamp>,
    zone_data: Shared<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    outage: Option<Outage>,
    #[serde(default)]
    outage_seq: u64,
}

impl DefinitionRow {
    pub(crate) fn of(schedule: &Schedule) -> DefinitionRow {
        let bare = Schedule {
            cursor: Cursor::starting(Timestamp::UNIX_EPOCH),
            early: EarlyDecisions::default(),
            runs_started: 0,
            read_until: None,
            ..schedule.clone()
        };
        DefinitionRow {
            id: schedule.id.0,
            version: schedule.version,
            name: schedule.name.clone(),
            project: Option::clone(&schedule.project),
            definition: to_json(&bare),
        }
    }
}

impl ProgressRow {
    pub(crate) fn of(record: &ScheduleRecord) -> ProgressRow {
        let schedule = &record.schedule;
        let progress = Progress {
            cursor: schedule.cursor.clone(),
            early: schedule.early.clone(),
            runs_started: schedule.runs_started,
            read_until: schedule.read_until,
            plan_at: record.plan_at,
            zone_data: record.zone_data.clone(),
            outage: record.outage,
            outage_seq: record.outage_seq,
        };
        ProgressRow { id: schedule.id.0, plan_at: record.plan_at, progress: to_json(&progress) }
    }
}

/// A schedule, from its two rows.
pub(crate) fn read_schedule(definition: &str, progress: &str) -> Result<ScheduleRecord, Damage> {
    let mut schedule: Schedule = from_json(definition, "a schedule")?;
    let progress: Progress = from_json(progress, "the progress of a schedule")?;
    (schedule.cursor, schedule.early) = (progress.cursor, progress.early);
    (schedule.runs_started, schedule.read_until) = (progress.runs_started, progress.read_until);
    let Progress { plan_at, zone_data, outage, outage_seq, .. } = progress;
    Ok(ScheduleRecord { schedule: Arc::new(schedule), plan_at, zone_data, outage, outage_seq })
}

impl RunRow {
    /// The row of a run; `schedule` is its schedule as the same snapshot has it.
    pub(crate) fn of(run: &Run, schedule: Option<&Schedule>) -> RunRow {
        let is_shared = schedule.is_some_and(|it| it.version == run.version && run.terms.are_of(it));
        RunRow {
            id: run.id.0,
            schedule: run.schedule.map(|id| id.0),
            state: run.state.name(),
            body: to_json(&RunBody::of(run)),
            terms: (!is_shared).then(|| to_json(&*run.terms)),
        }
    }
}

/// Reads runs. Terms that are the same are shared: by a schedule's version, or by their text.
#[derive(Default)]
pub(crate) struct RunReader {
    of_schedules: HashMap<(ScheduleId, u64), Arc<Terms>>,
    of_texts: HashMap<String, Arc<Terms>>,
}

impl RunReader {
    /// A run from its row. `schedule` is its schedule in the same snapshot.
    pub(crate) fn read(
        &mut self,
        body: &str,
        terms: Option<&str>,
        schedule: impl Fn(ScheduleId) -> Option<Arc<Schedule>>,
    ) -> Result<Run, Damage> {
        let body: RunBody = from_json(body, "a run")?;
        let terms = match terms {
            Some(text) => self.of_text(text)?,
            None => self.of_schedule(&body, schedule)?,
        };
        let run = body.into_run(terms);
        check_run(&run)?;
        Ok(run)
    }

    fn of_text(&mut self, text: &str) -> Result<Arc<Terms>, Damage> {
        if let Some(terms) = self.of_texts.get(text) {
            return Ok(Arc::clone(terms));
        }
        let terms: Arc<Terms> = Arc::new(from_json(text, "the terms of a run")?);
        self.of_texts.insert(text.to_owned(), Arc::clone(&terms));
        Ok(terms)
    }

    fn of_schedule(
        &mut self,
        body: &RunBody,
        schedule: impl Fn(ScheduleId) -> Option<Arc<Schedule>>,
    ) -> Result<Arc<Terms>, Damage> {
        let missing = || Damage(format!("the terms of run {} are not there", body.id));
        let id = body.schedule.ok_or_else(missing)?;
        if let Some(terms) = self.of_schedules.get(&(id, body.version)) {
            return Ok(Arc::clone(terms));
        }
        let schedule = schedule(id).filter(|schedule| schedule.version == body.version).ok_or_else(missing)?;
        let terms = Arc::new(Terms::of(&schedule));
        self.of_schedules.insert((id, body.version), Arc::clone(&terms));
        Ok(terms)
    }
}

/// Puts what is small into a world.
pub(crate) fn read_rest(text: &str, world: &mut World) -> Result<(), Damage> {
    from_json::<Rest>(text, "the rest of a snapshot")?.put(world);
    Ok(())
}

/// The schedule of a run among those that have been read.
pub(crate) fn among(schedules: &BTreeMap<ScheduleId, ScheduleRecord>) -> impl Fn(ScheduleId) -> Option<Arc<Schedule>> {
    |id| schedules.get(&id).map(|record| Arc::clone(&record.schedule))
}

/// The runs of a world that have changed, and those that are gone, against what it was before.
pub(crate) fn changed_runs(before: &World, after: &World) -> impl Iterator<Item = (RunId, Option<Arc<Run>>)> {
    let gone = before.runs.keys().filter(|id| !after.runs.contains_key(id)).map(|id| (*id, None));
    let is_new = |(id, run): &(&RunId, &Arc<Run>)| before.runs.get(id) != Some(run);
    let put = after.runs.iter().filter(is_new).map(|(id, run)| (*id, Some(Arc::clone(run))));
    gone.chain(put)
}

/// The schedules of a world that have changed, and those that are gone, against what it was before.
pub(crate) fn changed_schedules<'a>(
    before: &'a World,
    after: &'a World,
) -> impl Iterator<Item = (ScheduleId, Option<&'a ScheduleRecord>)> {
    let gone = before.schedules.keys().filter(|id| !after.schedules.contains_key(id)).map(|id| (*id, None));
    let put = after.schedules.iter().filter(|(id, record)| before.schedules.get(id) != Some(record));
    gone.chain(put.map(|(id, record)| (*id, Some(record))))
}

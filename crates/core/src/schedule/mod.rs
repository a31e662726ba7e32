//! Schedule: a rule that produces times, and what it says about carrying them out.

mod bounds;
mod cursor;
mod inputs;
mod policy;
mod readings;
mod state;
mod timetables;
mod trigger;
mod workflow;

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};

pub use bounds::Bounds;
pub use cursor::Cursor;
pub use inputs::{InputType, InputsPolicy, Window};
pub use policy::{
    CatchUp, CatchUpMode, Concurrency, DstPolicy, GapPolicy, MaxDelay, Overlap, Policy, Priority, RepeatPolicy,
};
pub use readings::Readings;
pub use state::{EndReason, Pause, PauseKind, ScheduleState};
pub use timetables::Timetables;
pub use trigger::{After, At, Crons, Immediate, OnEvent, Pass, Trigger, ZonedCron};
pub use workflow::{IdempotencyStrategy, Occasion, Workflow, WorkflowStart};

use crate::plan::EarlyDecisions;
use crate::run::SkipReason;
use crate::time::{Calendar, Cron, Timetable, UnknownZone, Zones, just_before};
use crate::{Elapsed, ScheduleId, Shared};

/// A schedule: when, what, how, until when, and how far it has come.
///
/// Its JSON is strict: an unknown field is an error. [`Schedule::json_schema`] describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// Its id.
    pub id: ScheduleId,
    /// Raised by every edit. A slot belongs to the version in force when it was planned.
    pub version: u64,
    /// The API that it is made and listed by.
    #[serde(default, skip_serializing_if = "Face::is_native")]
    pub face: Face,
    /// Its name, unique in its face and project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The project that it belongs to; none is everybody's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub project: Shared<Option<String>>,
    /// Where it is kept, if not in the store alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// What is to be done.
    pub work: Work,
    /// What makes it fire.
    #[schemars(with = "Trigger")]
    pub trigger: Shared<Trigger>,
    /// The IANA name of its zone: its days are that zone's days.
    #[schemars(with = "String")]
    pub zone: Shared<String>,
    /// The calendar outside of which its slots are skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub calendar: Shared<Option<String>>,
    /// From when, until when, how often.
    #[serde(default)]
    #[schemars(with = "Bounds")]
    pub bounds: Shared<Bounds>,
    /// Each run is due up to so much later, by schedule and slot.
    #[serde(default, skip_serializing_if = "Elapsed::is_zero_ref")]
    pub jitter: Elapsed,
    /// How it behaves where time, load or failure leave a choice.
    #[serde(default)]
    #[schemars(with = "Policy")]
    pub policy: Shared<Policy>,
    /// Whether it produces runs.
    #[serde(default)]
    pub state: ScheduleState,
    /// How far its slots are answered.
    pub cursor: Cursor,
    /// The slots after its cursor that are decided already.
    #[serde(default, skip_serializing_if = "EarlyDecisions::is_empty")]
    pub early: EarlyDecisions,
    /// How many of its runs have started, each counted once.
    #[serde(default)]
    pub runs_started: u64,
    /// Up to where its successful runs have read, if it says what they read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_until: Option<Timestamp>,
    /// What it is for, in the words of whoever made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub description: Shared<Option<String>>,
    /// What it is marked with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<Tag>")]
    pub tags: Shared<Vec<Tag>>,
    /// Who is said to have created it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub created_by: Shared<Option<String>>,
    /// Who is said to have changed it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub updated_by: Shared<Option<String>>,
    /// When it was created.
    #[serde(default)]
    pub created_at: Timestamp,
    /// When somebody last changed it.
    #[serde(default)]
    pub updated_at: Timestamp,
}

/// The API that a schedule is made and listed by. What it is does not depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Face {
    /// The native one.
    #[default]
    Executions,
    /// That of Conductor's scheduler.
    Conductor,
}

impl Face {
    /// The word for it in SQL and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Face::Executions => "executions",
            Face::Conductor => "conductor",
        }
    }

    fn is_native(&self) -> bool {
        *self == Face::default()
    }
}

/// A mark that people put on schedules.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tag {
    /// What it is about.
    pub key: String,
    /// Which kind of mark it is.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// What it says.
    pub value: String,
}

/// Where a schedule is kept, if not in the store alone: whoever keeps it may change and delete it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The operator's configuration file.
    File,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Work {
    /// An agent of the operator's configuration, with what it is told.
    Agent {
        /// The agent's name in the configuration.
        #[schemars(with = "String")]
        agent: Shared<String>,
        /// What it is asked to do.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        #[schemars(with = "String")]
        prompt: Shared<String>,
        /// What it is given.
        #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
        inputs: serde_json::Map<String, serde_json::Value>,
        /// What it is to read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(with = "Option<InputsPolicy>")]
        inputs_policy: Shared<Option<InputsPolicy>>,
    },
    /// A workflow, with the agent that starts it or stands in for it.
    Workflow {
        /// The agent's name in the configuration.
        #[schemars(with = "String")]
        agent: Shared<String>,
        /// What is to be started.
        request: Box<Workflow>,
    },
}

impl Work {
    /// The agent that does it.
    pub fn agent(&self) -> &str {
        match self {
            Work::Agent { agent, .. } | Work::Workflow { agent, .. } => agent,
        }
    }

    /// What the agent is asked to do.
    pub fn prompt(&self) -> &str {
        match self {
            Work::Agent { prompt, .. } => prompt,
            Work::Workflow { .. } => "",
        }
    }

    /// What the agent is given.
    pub fn inputs(&self) -> &serde_json::Map<String, serde_json::Value> {
        match self {
            Work::Agent { inputs, .. } => inputs,
            Work::Workflow { request, .. } => &request.input,
        }
    }

    /// What the agent is to read.
    pub fn inputs_policy(&self) -> Option<&InputsPolicy> {
        match self {
            Work::Agent { inputs_policy, .. } => Option::as_ref(inputs_policy),
            Work::Workflow { .. } => None,
        }
    }

    /// The workflow that is to be started.
    pub fn workflow(&self) -> Option<&Workflow> {
        match self {
            Work::Agent { .. } => None,
            Work::Workflow { request, .. } => Some(request),
        }
    }

    /// What a record of its start says about a workflow that a schedule has started.
    pub fn workflow_start(&self) -> Option<WorkflowStart> {
        self.workflow().and_then(Workflow::start)
    }
}

/// A schedule that names a zone or a calendar which does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// The zone is not in the zone data.
    #[error(transparent)]
    UnknownZone(#[from] UnknownZone),
    /// The calendar has not been defined.
    #[error("calendar: {0:?} does not exist; define it, or use one of those that do")]
    UnknownCalendar(String),
}

impl Schedule {
    /// Whether another is defined the same, however far either has come.
    pub fn is_defined_as(&self, other: &Schedule) -> bool {
        // Every field is named: a new one has to be told apart from how far a schedule has come.
        let Schedule {
            id,
            version,
            face,
            name,
            project,
            origin,
            work,
            trigger,
            zone,
            calendar,
            bounds,
            jitter,
            policy,
            state,
            cursor: _,
            early: _,
            runs_started: _,
            read_until: _,
            description,
            tags,
            created_by,
            updated_by,
            created_at,
            updated_at,
        } = self;
        (*id, *version, *face, *jitter) == (other.id, other.version, other.face, other.jitter)
            && (*created_at, *updated_at) == (other.created_at, other.updated_at)
            && (name, project, zone, calendar) == (&other.name, &other.project, &other.zone, &other.calendar)
            && (origin, state, trigger, policy) == (&other.origin, &other.state, &other.trigger, &other.policy)
            && (bounds, description, tags) == (&other.bounds, &other.description, &other.tags)
            && (created_by, updated_by) == (&other.created_by, &other.updated_by)
            && *work == other.work
    }

    /// The pause for which its slots and runs are skipped now, if that is the reason.
    pub fn pause_behind(&self, reason: SkipReason) -> Option<&Pause> {
        match &self.state {
            ScheduleState::Paused(pause) if pause.kind.skip_reason() == reason => Some(pause),
            _ => None,
        }
    }

    /// A schedule of the native face that says nothing special, as it is before anybody has stored it.
    pub fn draft(
        work: Work,
        trigger: impl Into<Shared<Trigger>>,
        zone: impl Into<Shared<String>>,
        now: Timestamp,
    ) -> Schedule {
        Schedule {
            id: ScheduleId(uuid::Uuid::nil()),
            version: 0,
            face: Face::default(),
            name: None,
            project: Shared::default(),
            origin: None,
            work,
            trigger: trigger.into(),
            zone: zone.into(),
            calendar: Shared::default(),
            bounds: Shared::default(),
            jitter: Elapsed::ZERO,
            policy: Shared::default(),
            state: ScheduleState::Active,
            cursor: Cursor::starting(now),
            early: EarlyDecisions::default(),
            runs_started: 0,
            read_until: None,
            description: Shared::default(),
            tags: Shared::default(),
            created_by: Shared::default(),
            updated_by: Shared::default(),
            created_at: now,
            updated_at: now,
        }
    }

    /// The first of its crons that fires at an instant, and the name of its zone; the first of all, if zone data has changed since.
    pub fn cron_at(&self, at: Timestamp, zones: &Zones) -> Option<(&Cron, &str)> {
        let Trigger::Cron(crons) = &*self.trigger else { return None };
        let fires = |entry: &&ZonedCron| {
            let alone = Trigger::Cron(Crons::one(entry.cron.clone()));
            let timetable = Timetable::new(&alone, entry.zone_in(&self.zone), self.policy.dst, zones).ok();
            let first = timetable.and_then(|it| it.slots(just_before(at)).next().map(|slot| slot.scheduled_at));
            first == Some(at)
        };
        let found = crons.iter().find(fires).or_else(|| crons.iter().next())?;
        Some((&found.cron, found.zone_in(&self.zone)))
    }

    /// Compiles trigger, zone, policies, calendar, bounds and jitter into the function from time to slots.
    pub fn timetable(&self, zones: &Zones, calendars: &BTreeMap<String, Calendar>) -> Result<Timetable, CompileError> {
        let timetable = Timetable::new(&self.trigger, &self.zone, self.policy.dst, zones)?
            .with_bounds(*self.bounds)
            .with_jitter(self.id, self.jitter);
        let Some(name) = &*self.calendar else { return Ok(timetable) };
        let calendar = calendars.get(name).ok_or_else(|| CompileError::UnknownCalendar(name.clone()))?;
        Ok(timetable.with_calendar(calendar, zones)?)
    }

    /// The cursor of a schedule with this trigger that is created, edited or resumed at an instant.
    ///
    /// A one-shot may be due at that very instant; what repeats lies behind it.
    pub fn cursor_from(trigger: &Trigger, at: Timestamp) -> Cursor {
        match trigger {
            Trigger::Immediate(_) | Trigger::After(_) | Trigger::At(_) => Cursor::starting(just_before(at)),
            Trigger::Cron(_) | Trigger::Times(_) | Trigger::Every(_) | Trigger::OnEvent(_) => Cursor::starting(at),
        }
    }

    /// How many more runs may be planned when `waiting` ones are planned but not started.
    pub(crate) fn runs_left(&self, waiting: usize) -> usize {
        match self.bounds.max_runs() {
            None => usize::MAX,
            Some(max) => max.saturating_sub(self.runs_started).saturating_sub(waiting as u64) as usize,
        }
    }

    /// Whether more runs have started or are planned than may ever be.
    pub(crate) fn is_over_limit(&self, waiting: usize) -> bool {
        self.bounds.max_runs().is_some_and(|max| max < self.runs_started.saturating_add(waiting as u64))
    }

    /// Whether it comes to an end by itself: it fires once, or has an end or a number of runs.
    pub fn may_end(&self) -> bool {
        let is_once = matches!(*self.trigger, Trigger::At(_) | Trigger::After(_) | Trigger::Immediate(_));
        // A cron with a year, or the times of a calendar, may end too: the planner finds that when it next looks.
        is_once || self.bounds.end_at().is_some() || self.bounds.max_runs().is_some()
    }

    /// When it goes on by itself, if it is paused until then.
    pub fn paused_until(&self) -> Option<Timestamp> {
        match &self.state {
            ScheduleState::Paused(pause) => pause.until,
            ScheduleState::Active | ScheduleState::Ended(_) => None,
        }
    }

    /// Whether it produces runs.
    pub fn is_active(&self) -> bool {
        self.state == ScheduleState::Active
    }

    /// The JSON Schema of a schedule, generated from the types.
    pub fn json_schema() -> Schema {
        schemars::schema_for!(Schedule)
    }
}

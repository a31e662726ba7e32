//! Entries: each commits with the change that it explains, and says enough to make that change again.

use jiff::Timestamp;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::parts::Parts;
use super::world::ScheduleRecord;
use crate::plan::{EarlyDecisions, Outage, SkipRange, expires_at};
use crate::run::{AttemptEnd, Outcome, Report, Run, RunEvent, RunState, SkipReason, Tally};
use crate::schedule::{Cursor, Pause, Schedule, WorkflowStart};
use crate::stable_hash::StableHash;
use crate::time::{Slot, SlotKey, Zone};
use crate::{By, NodeId, RunId, ScheduleId, Token, TokenId};

/// One line of the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Its number: the order of commits, without gaps.
    pub seq: u64,
    /// When it was written.
    pub at: Timestamp,
    /// What happened.
    pub body: Body,
}

/// The checksum of an entry: over the one before, its number, its time and both parts of its text, so that neither a changed
/// line nor a missing one goes unnoticed.
pub fn checksum(before: u64, seq: u64, at: Timestamp, text: Parts<&str>) -> u64 {
    StableHash::new()
        .bytes(&before.to_be_bytes())
        .bytes(&seq.to_be_bytes())
        .bytes(&at.as_nanosecond().to_be_bytes())
        .bytes(text.change.as_bytes())
        .bytes(b"\n")
        .bytes(text.detail.as_bytes())
        .finish()
}

/// What happened. Changes to schedules carry the whole definition; what batches do is one entry for the batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Body {
    /// A schedule was created, edited, paused, resumed or ended: this is what it is now. Its count of runs goes on.
    ScheduleChanged {
        /// What it is.
        schedule: Box<Schedule>,
        /// Who asked for it; nobody, if it came to its end by itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<By>,
    },
    /// A schedule was deleted. Its planned runs were withdrawn before.
    ScheduleDeleted {
        /// Which.
        schedule: ScheduleId,
        /// Who asked for it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<By>,
    },
    /// Slots were answered with runs, or a plan was changed.
    Planned(PlanEntry),
    /// Slots were answered without a run.
    Skipped(SkipEntry),
    /// A new day began in a zone, and its plan was made.
    DayStarted {
        /// The zone.
        zone: String,
        /// The day.
        date: Date,
    },
    /// An event or a person asked for a run.
    RunAsked {
        /// The run.
        run: Box<Run>,
        /// Who asked for it; nobody, if it was an event.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<By>,
    },
    /// A node took runs.
    RunsClaimed {
        /// The node.
        owner: NodeId,
        /// The runs.
        runs: Vec<RunId>,
    },
    /// The work of runs begins.
    RunsStarted {
        /// The runs.
        runs: Vec<RunId>,
    },
    /// Something happened to one run, under an epoch.
    RunChanged(RunChange),
    /// An attempt came to its end: the record of what happened and what it cost.
    AttemptEnded(Box<Attempt>),
    /// A token was made.
    TokenMade {
        /// The token.
        token: Box<Token>,
        /// Who asked for it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<By>,
    },
    /// A token was taken back: it allows nothing any more.
    TokenRevoked {
        /// Which.
        token: TokenId,
        /// Who asked for it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<By>,
    },
    /// A node came to life.
    NodeJoined {
        /// The node.
        node: NodeId,
        /// What people call it.
        name: String,
    },
    /// A node is gone. What it had was given back or taken away before.
    NodeLeft {
        /// The node.
        node: NodeId,
        /// Whether it did not say good-bye.
        is_lost: bool,
    },
    /// A node took over the planning.
    PlannerTaken {
        /// The node.
        node: NodeId,
        /// Raised each time.
        epoch: u64,
        /// The time in which nobody had planned.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        outage: Option<Outage>,
    },
    /// The store was restored from a copy: whoever held a run before it was made holds it no more.
    Restored {
        /// Every epoch from now on is higher than this.
        epoch_floor: u64,
    },
}

impl Body {
    /// The kind of entry, as the journal's index has it.
    pub fn kind(&self) -> &'static str {
        match self {
            Body::ScheduleChanged { .. } => "schedule_changed",
            Body::ScheduleDeleted { .. } => "schedule_deleted",
            Body::Planned(_) => "planned",
            Body::Skipped(_) => "skipped",
            Body::DayStarted { .. } => "day_started",
            Body::RunAsked { .. } => "run_asked",
            Body::RunsClaimed { .. } => "runs_claimed",
            Body::RunsStarted { .. } => "runs_started",
            Body::RunChanged { .. } => "run_changed",
            Body::AttemptEnded(_) => "attempt_ended",
            Body::TokenMade { .. } => "token_made",
            Body::TokenRevoked { .. } => "token_revoked",
            Body::NodeJoined { .. } => "node_joined",
            Body::NodeLeft { .. } => "node_left",
            Body::PlannerTaken { .. } => "planner_taken",
            Body::Restored { .. } => "restored",
        }
    }

    /// The one schedule that the entry is about.
    pub fn schedule(&self) -> Option<ScheduleId> {
        match self {
            Body::ScheduleChanged { schedule, .. } => Some(schedule.id),
            Body::ScheduleDeleted { schedule, .. } => Some(*schedule),
            Body::Planned(plan) => Some(plan.schedule),
            Body::Skipped(skip) => Some(skip.schedule),
            Body::RunAsked { run, .. } => run.schedule,
            Body::RunChanged(change) => change.schedule,
            Body::AttemptEnded(attempt) => attempt.schedule,
            _ => None,
        }
    }

    /// Who asked for it.
    pub fn by(&self) -> Option<&By> {
        match self {
            Body::ScheduleChanged { by, .. } | Body::ScheduleDeleted { by, .. } | Body::RunAsked { by, .. } => {
                by.as_ref()
            }
            Body::TokenMade { by, .. } | Body::TokenRevoked { by, .. } => by.as_ref(),
            Body::RunChanged(change) => change.by.as_ref(),
            _ => None,
        }
    }

    /// The schedule or run under whose id the entry is looked up later: what was asked for, and what happened to runs besides their
    /// starts, skips and ends of attempts, which are found elsewhere.
    pub fn subject(&self) -> Option<Uuid> {
        match self {
            Body::ScheduleChanged { schedule, .. } => Some(schedule.id.0),
            Body::ScheduleDeleted { schedule, .. } => Some(schedule.0),
            Body::RunAsked { run, .. } => Some(run.id.0),
            Body::RunChanged(change) if !matches!(change.event, RunEvent::Skipped(_)) => Some(change.run.0),
            _ => None,
        }
    }

    /// The run that the entry has brought to its end, and its state.
    pub fn ended(&self) -> Option<(RunId, RunState)> {
        let (run, epoch, end) = match self {
            Body::AttemptEnded(attempt) => (attempt.run, attempt.epoch, attempt.end?),
            Body::RunChanged(change) => (change.run, change.epoch, change.end?),
            _ => return None,
        };
        Some((run, end.state(epoch)))
    }

    /// The one run that the entry is about.
    pub fn run(&self) -> Option<RunId> {
        match self {
            Body::RunAsked { run, .. } => Some(run.id),
            Body::RunChanged(change) => Some(change.run),
            Body::AttemptEnded(attempt) => Some(attempt.run),
            _ => None,
        }
    }
}

/// What planning changed for one schedule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanEntry {
    /// The schedule.
    pub schedule: ScheduleId,
    /// Its version in force.
    pub version: u64,
    /// How far its slots are answered now.
    pub cursor: Cursor,
    /// When planning has something to do again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_at: Option<Timestamp>,
    /// The version of the zone data that was used.
    pub zone_data: String,
    /// The slots after the cursor that are decided already, all of them.
    #[serde(default, skip_serializing_if = "EarlyDecisions::is_empty")]
    pub early: EarlyDecisions,
    /// What is left of an outage that is being made up for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outage: Option<Outage>,
    /// The slot that has become the schedule's next one. It has no run yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<PlannedRun>,
    /// The slot that was its next one, and is a slot no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_gone: Option<RunId>,
    /// Whether the first of the new runs is that of the slot that was its next one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub was_next: bool,
    /// Runs that are new.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<PlannedRun>,
    /// Planned runs that stay, at another instant or in another order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moved: Vec<PlannedRun>,
    /// Runs that are gone. Their slots may come back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub withdrawn: Vec<RunId>,
}

impl PlanEntry {
    /// Everything stays as a schedule has it.
    pub fn unchanged(record: &ScheduleRecord) -> PlanEntry {
        let schedule = &record.schedule;
        PlanEntry {
            schedule: schedule.id,
            version: schedule.version,
            cursor: schedule.cursor.clone(),
            plan_at: record.plan_at,
            zone_data: String::clone(&record.zone_data),
            early: schedule.early.clone(),
            outage: record.outage,
            next: None,
            next_gone: None,
            was_next: false,
            runs: vec![],
            moved: vec![],
            withdrawn: vec![],
        }
    }
}

/// A run that is planned for a slot. What else it is follows from the schedule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedRun {
    /// The run.
    pub id: RunId,
    /// The key of its slot.
    pub key: SlotKey,
    /// When the slot is scheduled.
    pub scheduled_at: Timestamp,
    /// When the run is due.
    pub due_at: Timestamp,
    /// When it is too late to be begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// The run that has to start before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follows: Option<RunId>,
}

impl PlannedRun {
    /// The run that answers a slot of a schedule.
    pub fn new(schedule: &Schedule, zone: &Zone, slot: &Slot) -> PlannedRun {
        let (scheduled_at, due_at, key) = (slot.scheduled_at, slot.due_at, slot.key());
        let id = RunId::of(schedule.id, scheduled_at, &key);
        let expires_at = expires_at(schedule.policy.max_delay, zone, &key, scheduled_at, due_at);
        PlannedRun { id, key, scheduled_at, due_at, expires_at, follows: None }
    }
}

/// Slots in a row that were skipped. A checker enumerates that version's slots from the first to the last, and compares.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SkipEntry {
    /// The schedule.
    pub schedule: ScheduleId,
    /// Its version in force.
    pub version: u64,
    /// Its agent.
    pub agent: String,
    /// Its project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The first slot.
    pub first: SlotKey,
    /// When it was scheduled.
    pub first_at: Timestamp,
    /// The last slot.
    pub last: SlotKey,
    /// When it was scheduled.
    pub last_at: Timestamp,
    /// How many slots.
    pub count: u64,
    /// Why.
    pub reason: SkipReason,
    /// The pause that they were skipped for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<Pause>,
    /// The workflow that was to be started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<WorkflowStart>,
}

impl SkipEntry {
    /// The record of a range that planning has skipped.
    pub fn new(schedule: &Schedule, range: &SkipRange) -> SkipEntry {
        SkipEntry {
            schedule: schedule.id,
            version: schedule.version,
            agent: schedule.work.agent().to_owned(),
            project: Option::clone(&schedule.project),
            first: range.first.key(),
            first_at: range.first.scheduled_at,
            last: range.last.key(),
            last_at: range.last.scheduled_at,
            count: range.count,
            reason: range.reason,
            pause: schedule.pause_behind(range.reason).cloned(),
            workflow: schedule.work.workflow_start(),
        }
    }
}

/// What happened to a run, with enough about it to be read when it is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunChange {
    /// The run.
    pub run: RunId,
    /// The epoch under which it was written; an older one changes nothing.
    pub epoch: u64,
    /// The schedule, if the run has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<ScheduleId>,
    /// What the run answers.
    pub key: SlotKey,
    /// The agent.
    pub agent: String,
    /// The project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// When the slot was scheduled.
    pub scheduled_at: Timestamp,
    /// What happened.
    pub event: RunEvent,
    /// The workflow that was to be started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<WorkflowStart>,
    /// Who asked for it; nobody, if it happened by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<By>,
    /// The pause that it was skipped for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<Pause>,
    /// What the run came to, if this was its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<RunEnd>,
    /// How its last attempt had ended by then, if this was its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_end: Option<AttemptEnd>,
}

impl RunChange {
    /// Something happens at an instant to a run as it is now.
    pub fn of(run: &Run, event: RunEvent, at: Timestamp) -> RunChange {
        let end = run.after(&event, at).ok().and_then(|after| RunEnd::of(&after));
        RunChange {
            run: run.id,
            epoch: run.epoch(),
            schedule: run.schedule,
            key: run.key.clone(),
            agent: run.terms.work.agent().to_owned(),
            project: run.terms.project.clone(),
            scheduled_at: run.scheduled_at,
            event,
            workflow: run.terms.work.workflow_start(),
            by: None,
            pause: None,
            last_end: run.last_end.filter(|_| end.is_some()),
            end,
        }
    }
}

/// One try of a run that has ended: with enough about the run to be read when that is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attempt {
    /// The run.
    pub run: RunId,
    /// The epoch under which it was held.
    pub epoch: u64,
    /// Which try it was; 1 is the first.
    pub attempt: u32,
    /// The schedule, if the run has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<ScheduleId>,
    /// What the run answers.
    pub key: SlotKey,
    /// The agent.
    pub agent: String,
    /// The project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// When the slot was scheduled.
    pub scheduled_at: Timestamp,
    /// When the work began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// The node that had it; none for a run that had left its node to wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeId>,
    /// How it ended.
    pub event: RunEvent,
    /// The digest of how it ended and of what it said: applying the entry needs no more of the report.
    pub digest: u64,
    /// What it said about itself.
    #[serde(default)]
    pub report: Report,
    /// When it is tried again, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<Timestamp>,
    /// The workflow that was to be started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<WorkflowStart>,
    /// What the run came to, if nothing more is tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<RunEnd>,
}

impl Attempt {
    /// The end, at an instant, of the attempt that `run` is at.
    pub fn of(run: &Run, event: RunEvent, report: Report, at: Timestamp) -> Attempt {
        let after = run.after(&event, at).ok();
        Attempt {
            run: run.id,
            epoch: run.epoch(),
            attempt: run.state.tally().attempt,
            schedule: run.schedule,
            key: run.key.clone(),
            agent: run.terms.work.agent().to_owned(),
            project: run.terms.project.clone(),
            scheduled_at: run.scheduled_at,
            started_at: run.started_at,
            node: run.owner(),
            digest: Attempt::digest(&event, &report),
            event,
            report,
            retry_at: after.as_ref().and_then(Run::planned_for),
            workflow: run.terms.work.workflow_start(),
            end: after.as_ref().and_then(RunEnd::of),
        }
    }

    /// What its run remembers of it, which has come to `state`: the same report twice gets the same answer.
    pub fn last_end(&self, state: RunState) -> AttemptEnd {
        AttemptEnd { epoch: self.epoch, digest: self.digest, state }
    }

    /// A digest of what was reported: the same report twice is one report.
    pub fn digest(event: &RunEvent, report: &Report) -> u64 {
        let text = serde_json::to_vec(&(event, report)).expect("a report is plain data");
        StableHash::new().bytes(&text).finish()
    }
}

/// What a run came to. With the entry that ended it, this is all that is kept of it: a run that is over is history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunEnd {
    /// How it ended.
    pub outcome: Outcome,
    /// The version of its schedule that it was carried out under; 0 without one.
    #[serde(default)]
    pub version: u64,
    /// When it had become due.
    pub due_at: Timestamp,
    /// Tries that were counted.
    pub attempts: u32,
    /// How often an owner was lost or stopped.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub losses: u32,
    /// Whether its work ever began.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_started: bool,
    /// Whether it was called off while it was at work.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_cancelling: bool,
}

impl RunEnd {
    /// The state of the run, whose last epoch is given.
    pub fn state(&self, epoch: u64) -> RunState {
        let tally = Tally { attempt: self.attempts, epoch, losses: self.losses };
        RunState::Finished { outcome: self.outcome, tally }
    }

    /// The end of a run, if it is over.
    pub fn of(run: &Run) -> Option<RunEnd> {
        let RunState::Finished { outcome, tally } = run.state else { return None };
        Some(RunEnd {
            outcome,
            version: run.version,
            due_at: run.due_at,
            attempts: tally.attempt,
            losses: tally.losses,
            has_started: run.has_started,
            is_cancelling: run.is_cancelling,
        })
    }
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

//! What callers ask of the kernel, and what they get.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};
use punctual_core::journal::{PlanEntry, ScheduleRecord, SkipEntry};
use punctual_core::plan::{AgentApproval, EarlyDecisions, Limits, Outage};
use punctual_core::run::{Outcome, Report, Run, RunEvent, RunState, SkipReason, WaitFor};
use punctual_core::schedule::{Cursor, Face, PauseKind, Schedule, ScheduleState, Timetables};
use punctual_core::{By, Elapsed, NodeId, RunId, ScheduleId};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The finest time that stores tell apart: every time that they are given is a whole number of these.
pub const MOMENT: SignedDuration = SignedDuration::from_micros(1);

/// A schedule that planning has something to do for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanTask {
    /// The schedule, and how far its planning has come. It knows every outage: what it has to catch up with is its own.
    pub record: ScheduleRecord,
    /// How many of its runs are planned or claimed and have never started.
    pub waiting: usize,
    /// How many of its runs are not final.
    pub live: usize,
}

/// How far an update of the zone data moves a time of day, at most: a country that crosses the date line.
pub const ZONE_SHIFT_MAX: SignedDuration = SignedDuration::from_hours(24);

/// A schedule with its runs, for a change of its plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanSubject {
    /// The schedule and its counts.
    pub task: PlanTask,
    /// Its planned runs, and whatever else stands for slots that lie ahead or that zone data may move there, by due time.
    pub runs: Vec<Run>,
}

/// Behind which instant the slots lie whose runs a change of a plan concerns.
pub fn subject_from(record: &ScheduleRecord, now: Timestamp) -> Timestamp {
    let frontier = now.min(record.schedule.cursor.at);
    frontier.checked_sub(ZONE_SHIFT_MAX).unwrap_or(Timestamp::MIN)
}

/// A change of a schedule and of its plan, carried out whole or not at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanWrite {
    /// What the decision was based on. If it is no longer so, the write is a conflict.
    pub expected: Expected,
    /// What becomes of the schedule itself.
    pub change: ScheduleChange,
    /// Slots that are answered without a run.
    pub skips: Vec<SkipEntry>,
    /// Runs that are cancelled once they are recorded: their slots are decided before their time.
    pub cancelled: Vec<RunId>,
    /// What the plan is now; none for a schedule that is deleted.
    pub plan: Option<PlanEntry>,
    /// Who asked for the change of the schedule.
    pub by: Option<By>,
}

/// What a planning decision was based on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// There is no such schedule yet.
    New,
    /// The schedule as it was read.
    At {
        /// The schedule.
        schedule: ScheduleId,
        /// Its version.
        version: u64,
        /// Its cursor.
        cursor: Cursor,
        /// Its early decisions.
        early: EarlyDecisions,
        /// What it had to catch up with. A plan that knew nothing of an outage must not wipe it out; what writes no plan does
        /// not.
        outage: Option<Outage>,
    },
}

/// What becomes of a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScheduleChange {
    /// It stays as it is.
    None,
    /// It is this now.
    Put(Box<Schedule>),
    /// It is deleted; the plan's withdrawn runs go with it.
    Delete {
        /// Its planned runs, which are withdrawn.
        withdrawn: Vec<RunId>,
        /// The slot that was its next one.
        next_gone: Option<RunId>,
    },
}

/// What became of one write of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Written {
    /// It is done.
    Done,
    /// Somebody else has changed the schedule or its runs in the meantime: nothing was written.
    Conflict,
}

/// A node asks for runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimRequest {
    /// The node.
    pub node: NodeId,
    /// The time.
    pub now: Timestamp,
    /// How many it can take.
    pub limit: usize,
    /// The agents that it has.
    pub agents: Arc<BTreeSet<String>>,
    /// How many runs may be at work.
    pub limits: Arc<Limits>,
}

impl ClaimRequest {
    /// Whether the node would take a run of this agent, and has no place for it.
    pub fn has_no_place_for(&self, agent: &str) -> bool {
        self.limit == 0 && self.agents.contains(agent)
    }
}

/// What a claim gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimed {
    /// By which time it was decided: the node's own, or the one that all nodes share where the node's is ahead of it.
    pub at: Timestamp,
    /// The runs, in the order in which they were taken.
    pub runs: Vec<ClaimedRun>,
    /// How many answers were given to runs whose time was over, or that found another at work; "it may start however late"
    /// is one.
    pub swept: usize,
    /// Whether runs at work were called off for others, so that their nodes have to be told.
    pub has_replaced: bool,
    /// Whether slots are due that a start may not decide: no node plans, or an outage is not caught up. What catch-up would skip
    /// must not begin before it.
    pub awaits_planning: bool,
    /// Whether slots of more schedules are due than one start decides: it is to be asked again at once.
    pub has_more_due: bool,
    /// When the next run becomes ready, finds another at work, or its time is over; `None` when only a change can bring something. That
    /// nobody has an agent any more is no time: who comes for another reason finds it.
    pub next_at: Option<Timestamp>,
}

impl Claimed {
    /// Nothing yet, and to be asked again at once.
    pub fn nothing(at: Timestamp) -> Claimed {
        let next_at = Some(at);
        Claimed {
            at,
            runs: vec![],
            swept: 0,
            has_replaced: false,
            awaits_planning: false,
            has_more_due: false,
            next_at,
        }
    }
}

/// A run that belongs to the node now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedRun {
    /// The run, claimed.
    pub run: Arc<Run>,
    /// Its schedule, if it has one that still exists.
    pub schedule: Option<Arc<Schedule>>,
    /// Whether another run of its schedule has been claimed or is at work or waiting.
    pub is_busy: bool,
}

/// A node asks for runs to begin.
#[derive(Debug, Clone)]
pub struct StartRequest {
    /// Which runs it can take.
    pub claim: ClaimRequest,
    /// The attempts whose work goes on at the node: a run of which an older one still dies is not begun beside it.
    pub held: Arc<BTreeSet<(RunId, u64)>>,
    /// The attempts that the node has begun and whose end it has not reported, if it can say: whatever else is written as running
    /// there was started by a call whose reply was lost, and is given to it again.
    pub begun: Option<Arc<BTreeSet<(RunId, u64)>>>,
    /// What the node's operator says of its agents, by name.
    pub agents: Arc<BTreeMap<String, AgentFacts>>,
    /// How many schedules it decides the due slots of, at most.
    pub due_max: usize,
    /// What schedules compile to: when their slots are, and which day is a run's day.
    pub timetables: Arc<Timetables>,
    /// How long a run waits for an approval, at most.
    pub approval_wait: Elapsed,
}

/// What admission asks of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentFacts {
    /// Whether its work may change anything.
    pub may_change: bool,
    /// Which of its runs need an approval.
    pub approval: AgentApproval,
}

/// What a start brought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Started {
    /// What the claim gave, its runs aside.
    pub claimed: Claimed,
    /// How many runs were claimed, also those that do not begin now.
    pub count: usize,
    /// The runs whose work begins, in the order in which they were taken.
    pub runs: Vec<StartedRun>,
}

/// A run whose work begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartedRun {
    /// The run, running.
    pub run: Arc<Run>,
    /// Its schedule, if it still has one.
    pub schedule: Option<Arc<Schedule>>,
}

/// What admission decided about a claimed run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settlement {
    /// The run.
    pub run: RunId,
    /// The epoch under which it is held.
    pub epoch: u64,
    /// What becomes of it.
    pub decision: Decision,
}

/// What becomes of a claimed run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Its work begins.
    Start,
    /// It ends without a try.
    Skip(SkipReason),
    /// It goes back.
    HandBack {
        /// When it may be claimed again.
        due_at: Timestamp,
        /// Whether it waits for the run of its schedule that is at work.
        parks: bool,
    },
    /// It waits.
    Wait {
        /// For what.
        on: WaitFor,
        /// Until when at most.
        wait_until: Timestamp,
    },
}

/// What became of a write about a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunWritten {
    /// It is done, and this is the run's state now.
    Done(RunState),
    /// The run is not this node's any more: nothing was written, and nothing of the work may go on.
    Stale,
}

/// The end of an attempt, as its node reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptReport {
    /// The run.
    pub run: RunId,
    /// The epoch under which it was held.
    pub epoch: u64,
    /// How it ended: succeeded, failed, cancelled, handed back, put to wait, or lost while it was at work. Anything else
    /// is stale.
    pub event: RunEvent,
    /// What it said about itself.
    pub report: Report,
}

/// What became of a cancellation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancellation {
    /// The run is cancelled.
    Done,
    /// The run is at work: its node will stop it.
    Asked,
    /// The run was over already.
    Over(Outcome),
}

/// A node says that it lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sign {
    /// The node.
    pub node: NodeId,
    /// What people call it.
    pub name: String,
    /// The time.
    pub now: Timestamp,
    /// How long its lease lasts.
    pub lease: Elapsed,
    /// The agents that it has.
    pub agents: Arc<BTreeSet<String>>,
    /// What else it says of itself.
    pub about: About,
}

/// What a node says of itself for people: nothing is decided by it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct About {
    /// The release of its binary.
    pub version: String,
    /// The version of its zone data.
    pub zone_data: String,
    /// How many runs it can have at work.
    pub places: usize,
    /// How many it has.
    pub running: usize,
    /// By how many milliseconds its own clock is ahead of the one that all nodes share.
    pub skew: i64,
    /// Where clients reach it, if it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Which machine a loopback address among them is of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
}

/// What a node learns when it renews its lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renewal {
    /// When it was renewed, by the clock that all nodes share; by the node's own where the store has none.
    pub at: Timestamp,
    /// When its lease ends now.
    pub lease_until: Timestamp,
    /// The runs that are its own, with their epochs, by id.
    pub owned: Vec<(RunId, u64)>,
    /// Those of them that somebody has called off.
    pub cancelling: Vec<RunId>,
    /// The leases of the other nodes, by node.
    pub others: Vec<NodeLease>,
}

/// A node's lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeLease {
    /// The node.
    pub node: NodeId,
    /// When it ends.
    pub until: Timestamp,
    /// How long it is when it is renewed.
    pub length: Elapsed,
}

/// A node that is alive, as far as its lease says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeRecord {
    /// The node.
    pub id: NodeId,
    /// What people call it.
    pub name: String,
    /// When it joined.
    pub joined_at: Timestamp,
    /// When its lease ends.
    pub lease_until: Timestamp,
    /// How long its lease is when it is renewed.
    pub lease: Elapsed,
    /// The agents that it has.
    pub agents: BTreeSet<String>,
    /// What else it says of itself.
    pub about: About,
}

impl NodeRecord {
    /// Its lease.
    pub fn lease(&self) -> NodeLease {
        NodeLease { node: self.id, until: self.lease_until, length: self.lease }
    }
}

/// Who plans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannerLease {
    /// Whether it is the node that asked.
    pub is_held: bool,
    /// When the lease ends.
    pub until: Timestamp,
    /// The time in which nobody had planned, if the lease was taken just now and there was such a time.
    pub outage: Option<Outage>,
}

/// A zone that schedules use, and the last day that has begun there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZoneDay {
    /// The zone.
    pub zone: String,
    /// The last day that was written to the journal.
    pub begun: Option<Date>,
}

/// Which runs to list. The default lists none: say how many.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunFilter {
    /// Of this schedule.
    pub schedule: Option<ScheduleId>,
    /// Scheduled from here on.
    pub from: Option<Timestamp>,
    /// Scheduled before this.
    pub until: Option<Timestamp>,
    /// Only those that are not over.
    pub only_live: bool,
    /// Not those that succeeded.
    pub except_succeeded: bool,
    /// Only those that wait for this.
    pub waits_for: Option<WaitFor>,
    /// At most so many, by scheduled time and id.
    pub limit: usize,
}

/// How many runs there are that are not over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LiveCounts {
    /// Planned ones, those that are due included.
    pub planned: u64,
    /// Planned ones whose time has come.
    pub due: u64,
    /// Those that a node has taken, and not begun.
    pub claimed: u64,
    /// Those at work.
    pub running: u64,
    /// Those that wait for an approval, a callback or another run.
    pub waiting: u64,
    /// When the planned run became due that has been due for the longest.
    pub due_since: Option<Timestamp>,
}

/// Which schedules to list. The default lists none: say how many.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ScheduleFilter {
    /// Of this face.
    pub face: Option<Face>,
    /// Of one of these projects; `None` in it is those that belong to none.
    pub projects: Option<Vec<Option<String>>>,
    /// Of this agent.
    pub agent: Option<String>,
    /// That start this workflow.
    pub workflow: Option<String>,
    /// Of this name.
    pub name: Option<String>,
    /// In whose name this stands, in capitals or not.
    pub name_part: Option<String>,
    /// In whose name, workflow or description this stands, in capitals or not.
    pub text: Option<String>,
    /// In one of these conditions.
    pub conditions: Option<Vec<Condition>>,
    /// By name, and not by id.
    pub is_by_name: bool,
    /// The last first.
    pub is_reversed: bool,
    /// Behind so many others.
    pub offset: usize,
    /// At most so many.
    pub limit: usize,
}

impl ScheduleFilter {
    /// The page of what was found, by id.
    pub fn page(&self, mut found: Vec<Arc<Schedule>>) -> SchedulePage {
        if self.is_by_name {
            found.sort_by(|a, b| (&a.name, a.id).cmp(&(&b.name, b.id)));
        }
        if self.is_reversed {
            found.reverse();
        }
        let total = found.len() as u64;
        let page = found.into_iter().skip(self.offset).take(self.limit);
        SchedulePage { total, schedules: page.map(Arc::unwrap_or_clone).collect() }
    }
}

/// Whether a schedule produces runs, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Condition {
    /// It does.
    Active,
    /// It is paused.
    Paused,
    /// It is switched off.
    Disabled,
    /// It is over.
    Ended,
}

impl Condition {
    /// That of a schedule.
    pub fn of(schedule: &Schedule) -> Condition {
        match &schedule.state {
            ScheduleState::Active => Condition::Active,
            ScheduleState::Paused(pause) if pause.kind == PauseKind::Disabled => Condition::Disabled,
            ScheduleState::Paused(_) => Condition::Paused,
            ScheduleState::Ended(_) => Condition::Ended,
        }
    }

    /// The word for it in SQL.
    pub fn as_str(self) -> &'static str {
        match self {
            Condition::Active => "active",
            Condition::Paused => "paused",
            Condition::Disabled => "disabled",
            Condition::Ended => "ended",
        }
    }
}

/// A page of schedules.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SchedulePage {
    /// How many there are in all.
    pub total: u64,
    /// Those of the page.
    pub schedules: Vec<Schedule>,
}

/// What was answered to a request that may come again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answered {
    /// The digest of the request.
    pub digest: u64,
    /// What it was about: the schedule, the run or the token.
    pub subject: Uuid,
    /// When.
    pub at: Timestamp,
}

/// The end of the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Head {
    /// The number of the last entry; 0 before the first.
    pub seq: u64,
    /// Its checksum.
    pub checksum: u64,
}

/// Who plans, and until when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Planner {
    /// The node.
    pub node: NodeId,
    /// Until when.
    pub until: Timestamp,
    /// Raised whenever the lease is taken anew.
    pub epoch: u64,
}

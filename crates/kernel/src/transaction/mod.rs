//! Transaction: what commands do to the state, and the entries that follow from it.
//!
//! In: the state, what it does not have, nodes and leases. Out: [`Changes`], to be written in one transaction. Nothing
//! here knows how anything is kept: a store reads what commands need ([`Needs`]), lets them decide, and commits what came of it.

mod answers;
mod claims;
mod journal;
mod nodes;
mod plan;
mod tokens;

pub use plan::{event_key, needs_of_ask};

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use punctual_core::journal::{Body, EndedRun, Entry, Parts, RecordState, StartRecord, Verdict, World, checksum};
use punctual_core::{By, NodeId, RunId, ScheduleId};
use uuid::Uuid;

use crate::change::{Draft, Wants};
use crate::error::Result;
use crate::state::{State, Undo};
use crate::types::Planner;
use crate::types::{Answered, Head, NodeRecord};

/// A transaction, as its commands see it.
pub struct Transaction<'a> {
    /// The state, changed as the commands decide.
    pub mirror: &'a mut State,
    /// What the state does not have.
    pub found: Found,
    /// Nodes and leases.
    pub cluster: Cluster,
    /// The last entry, those of this transaction included.
    pub head: Head,
    /// What is to be written.
    pub changes: Changes,
    /// How to take back what has been decided, if it cannot be written.
    pub undo: Undo,
}

/// What the state does not have, as far as the commands asked for it.
#[derive(Debug, Default)]
pub struct Found {
    /// Runs that are over.
    pub ended: BTreeMap<RunId, EndedRun>,
    /// What was answered to requests that come again, and which runs events have had, by their keys.
    pub answers: BTreeMap<String, Answered>,
}

/// What commands need to be read for them, besides what the state has.
#[derive(Debug, Clone, Default)]
pub struct Needs {
    /// Runs that may be over.
    pub runs: BTreeSet<RunId>,
    /// The keys of requests and events that may have come before.
    pub keys: Vec<String>,
    /// Whether nodes come or go: none may renew its lease meanwhile.
    pub locks_nodes: bool,
    /// Whether the command must not wait for others that came before it.
    pub is_urgent: bool,
}

/// Nodes and leases.
#[derive(Debug, Default)]
pub struct Cluster {
    /// The time, where the store has a clock of its own that all nodes share.
    pub now: Option<Timestamp>,
    /// The nodes that have a lease.
    pub nodes: BTreeMap<NodeId, NodeRecord>,
    /// Which node plans.
    pub planner: Option<Planner>,
    /// When a node last had an agent.
    pub agents_seen: BTreeMap<String, Timestamp>,
}

/// What a transaction writes.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// Entries, in order.
    pub lines: Vec<Line>,
    /// Answers to requests that may come again, and runs of events, by their keys.
    pub answers: BTreeMap<String, Answered>,
    /// Nodes that have come or have another lease, and those that are gone.
    pub nodes: BTreeMap<NodeId, Option<NodeRecord>>,
    /// Which node plans now.
    pub planner: Option<Planner>,
    /// When agents were seen; those that somebody has seen before stay as they are if it is only a plan that names them.
    pub agents_seen: BTreeMap<String, Timestamp>,
    /// Agents that a plan names and that no node has had yet.
    pub agents_named: BTreeMap<String, Timestamp>,
}

/// A line of the journal.
#[derive(Debug, Clone)]
pub struct Line {
    /// Its number.
    pub seq: u64,
    /// When it happened.
    pub at: Timestamp,
    /// The kind of entry.
    pub kind: &'static str,
    /// The one schedule that it is about.
    pub schedule: Option<ScheduleId>,
    /// The one run that it is about.
    pub run: Option<RunId>,
    /// Under which id it is looked up later.
    pub subject: Option<Uuid>,
    /// The entry as JSON, in its two parts.
    pub text: Parts<String>,
    /// The checksum over it and every entry before.
    pub checksum: u64,
    /// What history finds it by.
    pub mark: Option<LineMark>,
    /// What Conductor's list of executions shows of it.
    pub record: Option<LineRecord>,
}

/// The last word about the start of a workflow, in a line.
#[derive(Debug, Clone)]
pub struct LineRecord {
    /// The name of the schedule.
    pub schedule: String,
    /// The name of the workflow.
    pub workflow: String,
    /// The workflow that was started.
    pub workflow_id: Option<String>,
    /// How far it came.
    pub state: RecordState,
    /// Why it was not started.
    pub note: Option<String>,
    /// When the slot was scheduled.
    pub scheduled_at: Timestamp,
    /// When the start was carried out.
    pub executed_at: Timestamp,
}

impl LineRecord {
    /// The row of a record.
    pub fn new(record: StartRecord<'_>) -> LineRecord {
        LineRecord {
            schedule: record.start.schedule.clone(),
            workflow: record.start.workflow.clone(),
            workflow_id: record.workflow_id,
            state: record.state,
            note: record.note,
            scheduled_at: record.scheduled_at,
            executed_at: record.executed_at,
        }
    }
}

/// What a line of history is found by, and what it counts for.
#[derive(Debug, Clone)]
pub struct LineMark {
    /// How it ended.
    pub verdict: Verdict,
    /// Whether it is the last word about its run or its slots.
    pub is_final: bool,
    /// The agent.
    pub agent: String,
    /// The project.
    pub project: Option<String>,
    /// When it began or was scheduled.
    pub shown_at: Timestamp,
    /// How long the work took.
    pub duration_ms: Option<u64>,
    /// How long after its scheduled time the first attempt began.
    pub late_ms: Option<u64>,
    /// How many tokens models read and wrote.
    pub tokens: Option<u64>,
    /// What that cost, in millionths of a dollar.
    pub cost_micros: Option<u64>,
}

impl Needs {
    /// Everything that the commands of a batch need.
    pub fn of_all<'a>(batch: impl Iterator<Item = &'a Needs>) -> Needs {
        let mut all = Needs::default();
        for needs in batch {
            all.runs.extend(&needs.runs);
            all.keys.extend(needs.keys.iter().cloned());
            all.locks_nodes |= needs.locks_nodes;
        }
        all
    }

    /// The same, for somebody whose request may have come before.
    pub fn asked_by(mut self, by: Option<&By>) -> Needs {
        self.keys.extend(by.and_then(|by| by.once.as_ref()).map(|once| once.key.clone()));
        self
    }
}

impl Changes {
    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
            && self.nodes.is_empty()
            && self.planner.is_none()
            && self.agents_seen.is_empty()
            && self.agents_named.is_empty()
            && self.answers.is_empty()
    }
}

impl<'a> Transaction<'a> {
    /// A transaction on a state. `head` is the last entry that the state has taken in.
    pub fn new(mirror: &'a mut State, head: Head, cluster: Cluster, found: Found) -> Transaction<'a> {
        Transaction { mirror, found, cluster, head, changes: Changes::default(), undo: Undo::default() }
    }
}

impl Transaction<'_> {
    /// Reads what a change wants.
    pub fn draft(&self, wants: &Wants, now: Timestamp) -> Draft {
        Draft::new(self.mirror.piece(wants), now)
    }

    /// A run that is over, if it was asked for beforehand, or has come to its end in this very transaction.
    pub(crate) fn ended(&self, id: RunId) -> Option<EndedRun> {
        let here = self.changes.lines.iter().rfind(|line| line.run == Some(id)).and_then(|line| {
            let body = line.text.as_ref().body().expect("it was just written");
            EndedRun::of(&Entry { seq: line.seq, at: line.at, body })
        });
        here.or_else(|| self.found.ended.get(&id).cloned())
    }

    /// Writes a draft back: `before` is what it was when it was read.
    pub fn save(&mut self, before: World, draft: Draft) {
        let Draft { world: after, entries, .. } = draft;
        self.mirror.save_piece(before, after, &mut self.undo);
        entries.iter().for_each(|entry| self.write_line(entry));
    }

    /// Reads what a change wants, makes it, and notes what is different.
    pub fn change<T>(&mut self, wants: &Wants, now: Timestamp, change: impl FnOnce(&mut Draft) -> T) -> T {
        let mut draft = self.draft(wants, now);
        let before = draft.world.clone();
        let answer = change(&mut draft);
        self.save(before, draft);
        answer
    }

    /// Writes that something happened that changes nothing in the mirror.
    pub fn append(&mut self, now: Timestamp, body: Body) -> Result<()> {
        let entry = Entry { seq: self.head.seq + 1, at: now, body };
        self.mirror.skip_own(&entry, &mut self.undo)?;
        self.write_line(&entry);
        Ok(())
    }

    fn write_line(&mut self, entry: &Entry) {
        let Entry { seq, at, body } = entry;
        let text = Parts::of(body);
        let checksum = checksum(self.head.checksum, *seq, *at, text.as_ref());
        self.head = Head { seq: *seq, checksum };
        let (schedule, run) = (body.schedule(), body.run());
        let mark = body.mark(*at).map(|mark| LineMark {
            verdict: mark.verdict,
            is_final: mark.is_final,
            agent: mark.agent.to_owned(),
            project: mark.project.map(str::to_owned),
            shown_at: mark.shown_at,
            duration_ms: mark.duration_ms,
            late_ms: mark.late_ms,
            tokens: mark.tokens,
            cost_micros: mark.cost_micros,
        });
        let record = body.record(*at).map(LineRecord::new);
        self.changes.lines.push(Line {
            seq: *seq,
            at: *at,
            kind: body.kind(),
            schedule,
            run,
            subject: body.subject(),
            text,
            checksum,
            mark,
            record,
        });
    }
}

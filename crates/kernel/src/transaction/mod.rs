//! Transaction: what the verbs of a store do to its mirror, and the rows and entries that follow from it.
//!
//! In: the mirror, rows that it does not have, nodes and leases. Out: [`Changes`], to be written in one transaction. Nothing
//! here knows how rows are kept: a store reads what commands [`Wants`], lets them write, and commits what came of it.

mod answers;
mod claims;
mod journal;
mod nodes;
mod plan;
mod tokens;

pub use plan::wants_of_ask;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use jiff::Timestamp;
use jiff::civil::Date;
use punctual_core::journal::{Body, Entry, RecordState, ScheduleRecord, StartRecord, Verdict, World, checksum};
use punctual_core::run::Run;
use punctual_core::time::SlotKey;
use punctual_core::{By, NodeId, RunId, ScheduleId, Token, TokenId};

use crate::change::{Draft, Wants};
use crate::error::Result;
use crate::state::{State, Undo};
use crate::types::Planner;
use crate::types::{Answered, Head, NodeRecord};

/// A transaction, as its commands see it.
pub struct Transaction<'a> {
    /// The state, changed as the commands decide.
    pub mirror: &'a mut State,
    /// Rows that the state does not have.
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

/// Rows that the mirror does not have, as far as the commands asked for them.
#[derive(Debug, Default)]
pub struct Found {
    /// Runs that are over.
    pub runs: BTreeMap<RunId, Run>,
    /// Which run a slot has, over or not.
    pub slots: HashMap<(ScheduleId, SlotKey), RunId>,
    /// What was answered to requests that come again.
    pub answers: BTreeMap<String, Answered>,
    /// Runs that retention lets go.
    pub old: Vec<RunId>,
    /// Everything there is, for a checkpoint.
    pub everything: Option<World>,
    /// The first entry that counts, and the last checkpoint that is old enough to begin with: each with the checksum of the
    /// entry before it.
    pub first: Head,
    /// The last checkpoint that is old enough to begin with.
    pub start: Option<Head>,
}

/// What commands need to be read for them, besides what the mirror has.
#[derive(Debug, Clone, Default)]
pub struct Needs {
    /// Runs and slots.
    pub wants: Wants,
    /// The keys of requests that may have come before.
    pub keys: Vec<String>,
    /// Whether nodes come or go: none may renew its lease meanwhile.
    pub locks_nodes: bool,
    /// Whether the command must not wait for others that came before it.
    pub is_urgent: bool,
    /// Runs that ended before an instant.
    pub old_before: Option<Timestamp>,
    /// Everything, and the last checkpoint up to an instant.
    pub checkpoint_until: Option<Timestamp>,
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
    /// Schedules that differ.
    pub schedules: BTreeMap<ScheduleId, Row<ScheduleRecord>>,
    /// Runs that differ.
    pub runs: BTreeMap<RunId, Row<Run>>,
    /// Days that have begun, by zone.
    pub days: BTreeMap<String, Date>,
    /// Tokens that are new, and those that are gone.
    pub tokens: BTreeMap<TokenId, Option<Token>>,
    /// Answers to requests that may come again, by their keys.
    pub answers: BTreeMap<String, Answered>,
    /// Entries, in order.
    pub lines: Vec<Line>,
    /// Nodes that have come or have another lease, and those that are gone.
    pub nodes: BTreeMap<NodeId, Option<NodeRecord>>,
    /// Which node plans now.
    pub planner: Option<Planner>,
    /// When agents were seen; those that somebody has seen before stay as they are if it is only a plan that names them.
    pub agents_seen: BTreeMap<String, Timestamp>,
    /// Agents that a plan names and that no node has had yet.
    pub agents_named: BTreeMap<String, Timestamp>,
    /// Runs that were over long ago, and go.
    pub forgotten: Vec<RunId>,
    /// Every epoch of a run that is not over is at least this now.
    pub epoch_floor: Option<u64>,
    /// The first entry that counts from now on, with the checksum of the one before it.
    pub first: Option<Head>,
}

/// What becomes of a row.
#[derive(Debug, Clone)]
pub struct Row<T> {
    /// What it was before the transaction.
    pub before: Option<T>,
    /// What it is behind it.
    pub after: Option<T>,
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
    /// The entry as JSON.
    pub body: String,
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
            all.wants.runs.extend(&needs.wants.runs);
            all.wants.slots.extend(needs.wants.slots.iter().cloned());
            all.keys.extend(needs.keys.iter().cloned());
            all.locks_nodes |= needs.locks_nodes;
            all.old_before = all.old_before.max(needs.old_before);
            all.checkpoint_until = all.checkpoint_until.max(needs.checkpoint_until);
        }
        all
    }

    /// Whether a command reads rows that others of its batch may be about to change: it has a transaction of its own.
    pub fn is_alone(&self) -> bool {
        self.old_before.is_some() || self.checkpoint_until.is_some()
    }

    /// The same, for somebody whose request may have come before.
    pub fn asked_by(mut self, by: Option<&By>) -> Needs {
        self.keys.extend(by.and_then(|by| by.once.as_ref()).map(|once| once.key.clone()));
        self
    }
}

impl<T> Row<T> {
    /// A row that was not there.
    pub fn new(after: T) -> Row<T> {
        Row { before: None, after: Some(after) }
    }
}

impl Changes {
    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
            && self.schedules.is_empty()
            && self.runs.is_empty()
            && self.nodes.is_empty()
            && self.planner.is_none()
            && self.agents_seen.is_empty()
            && self.agents_named.is_empty()
            && self.days.is_empty()
            && self.tokens.is_empty()
            && self.answers.is_empty()
            && self.first.is_none()
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
        let mut piece = self.mirror.piece(wants);
        let slots = wants.slots.iter().filter_map(|slot| self.found.slots.get(slot));
        let ids: BTreeSet<RunId> = wants.runs.iter().chain(slots).copied().collect();
        for id in ids {
            let run = self.mirror.run(id).or_else(|| self.found.runs.get(&id));
            piece.runs.extend(run.map(|run| (id, run.clone())));
        }
        let schedules = piece.runs.values().filter_map(|run| run.schedule).collect();
        self.mirror.add_schedules(&mut piece, &schedules);
        Draft::new(piece, now)
    }

    /// Writes a draft back: `before` is what it was when it was read.
    pub fn save(&mut self, before: World, draft: Draft) {
        let Draft { world: after, entries, .. } = draft;
        note(&mut self.changes.schedules, &before.schedules, &after.schedules);
        note(&mut self.changes.runs, &before.runs, &after.runs);
        for (id, run) in &before.runs {
            if !after.runs.contains_key(id) {
                self.found.runs.remove(id);
                run.schedule.map(|schedule| self.found.slots.remove(&(schedule, run.key.clone())));
            }
        }
        for (id, run) in &after.runs {
            if before.runs.get(id) == Some(run) {
                continue;
            }
            if run.state.is_final() {
                self.found.runs.insert(*id, run.clone());
            }
            if let Some(schedule) = run.schedule.filter(|_| !before.runs.contains_key(id)) {
                self.found.slots.insert((schedule, run.key.clone()), *id);
            }
        }
        for (zone, date) in &after.days {
            if before.days.get(zone) != Some(date) {
                self.changes.days.insert(zone.clone(), *date);
            }
        }
        if before.tokens != after.tokens {
            let gone = before.tokens.keys().filter(|id| !after.tokens.contains_key(id)).map(|id| (*id, None));
            let new = after.tokens.iter().filter(|(id, _)| !before.tokens.contains_key(id));
            self.changes.tokens.extend(gone.chain(new.map(|(id, token)| (*id, Some(token.clone())))));
        }
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
        let text = to_json(body);
        let checksum = checksum(self.head.checksum, *seq, *at, &text);
        self.head = Head { seq: *seq, checksum };
        let (schedule, run) = (body.schedule(), body.run());
        let mark = body.mark(*at).map(|mark| LineMark {
            verdict: mark.verdict,
            is_final: mark.is_final,
            agent: mark.agent.to_owned(),
            project: mark.project.map(str::to_owned),
            shown_at: mark.shown_at,
            duration_ms: mark.duration_ms,
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
            body: text,
            checksum,
            mark,
            record,
        });
    }
}

/// Notes the rows in which two states differ.
fn note<K: Ord + Copy, T: Clone + PartialEq>(
    rows: &mut BTreeMap<K, Row<T>>,
    before: &BTreeMap<K, T>,
    after: &BTreeMap<K, T>,
) {
    let gone = before.keys().filter(|id| !after.contains_key(id));
    let changed = after.iter().filter(|(id, row)| before.get(id) != Some(row)).map(|(id, _)| id);
    for id in gone.chain(changed) {
        let row = rows.entry(*id).or_insert_with(|| Row { before: before.get(id).cloned(), after: None });
        row.after = after.get(id).cloned();
    }
}

/// A value as JSON, as the journal has it.
pub fn to_json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("what is journalled is plain data")
}

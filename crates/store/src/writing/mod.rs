//! Writing: what the verbs of a store do to its mirror, and the rows and entries that follow from it.
//!
//! In: the mirror, rows that it does not have, nodes and leases. Out: [`Changes`], to be written in one transaction. Nothing
//! here knows how rows are kept: a store reads what commands [`Wants`], lets them write, and commits what came of it.

mod answers;
mod claims;
mod journal;
mod nodes;
mod plan;
mod tokens;

pub(crate) use plan::wants_of_ask;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use jiff::Timestamp;
use jiff::civil::Date;
use punctual_core::journal::{Body, Entry, RecordState, ScheduleRecord, StartRecord, Verdict, World, checksum};
use punctual_core::run::Run;
use punctual_core::time::SlotKey;
use punctual_core::{By, NodeId, RunId, ScheduleId, Token, TokenId};

use crate::change::{Draft, Wants};
use crate::columns::to_json;
use crate::error::Result;
use crate::memory::Planner;
use crate::mirror::Mirror;
use crate::requests::{Answered, Head, NodeRecord};

/// A transaction, as its commands see it.
pub(crate) struct Writing<'a> {
    pub(crate) mirror: &'a mut Mirror,
    pub(crate) found: Found,
    pub(crate) cluster: Cluster,
    /// The last entry, those of this transaction included.
    pub(crate) head: Head,
    pub(crate) changes: Changes,
}

/// Rows that the mirror does not have, as far as the commands asked for them.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Runs that are over.
    pub(crate) runs: BTreeMap<RunId, Run>,
    /// Which run a slot has, over or not.
    pub(crate) slots: HashMap<(ScheduleId, SlotKey), RunId>,
    /// What was answered to requests that come again.
    pub(crate) answers: BTreeMap<String, Answered>,
    /// Runs that retention lets go.
    pub(crate) old: Vec<RunId>,
    /// Everything there is, for a checkpoint.
    pub(crate) everything: Option<World>,
    /// The first entry that counts, and the last checkpoint that is old enough to begin with: each with the checksum of the
    /// entry before it.
    pub(crate) first: Head,
    pub(crate) start: Option<Head>,
}

/// What commands need to be read for them, besides what the mirror has.
#[derive(Debug, Clone, Default)]
pub(crate) struct Needs {
    pub(crate) wants: Wants,
    /// The keys of requests that may have come before.
    pub(crate) keys: Vec<String>,
    /// Whether nodes come or go: none may renew its lease meanwhile.
    pub(crate) locks_nodes: bool,
    /// Runs that ended before an instant.
    pub(crate) old_before: Option<Timestamp>,
    /// Everything, and the last checkpoint up to an instant.
    pub(crate) checkpoint_until: Option<Timestamp>,
}

/// Nodes and leases.
#[derive(Debug, Default)]
pub(crate) struct Cluster {
    /// The time, where the store has a clock of its own that all nodes share.
    pub(crate) now: Option<Timestamp>,
    pub(crate) nodes: BTreeMap<NodeId, NodeRecord>,
    pub(crate) planner: Option<Planner>,
    pub(crate) agents_seen: BTreeMap<String, Timestamp>,
}

/// What a transaction writes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Changes {
    pub(crate) schedules: BTreeMap<ScheduleId, Row<ScheduleRecord>>,
    pub(crate) runs: BTreeMap<RunId, Row<Run>>,
    pub(crate) days: BTreeMap<String, Date>,
    /// Tokens that are new, and those that are gone.
    pub(crate) tokens: BTreeMap<TokenId, Option<Token>>,
    /// Answers to requests that may come again, by their keys.
    pub(crate) answers: BTreeMap<String, Answered>,
    pub(crate) lines: Vec<Line>,
    /// Nodes that have come or have another lease, and those that are gone.
    pub(crate) nodes: BTreeMap<NodeId, Option<NodeRecord>>,
    pub(crate) planner: Option<Planner>,
    /// When agents were seen; those that somebody has seen before stay as they are if it is only a plan that names them.
    pub(crate) agents_seen: BTreeMap<String, Timestamp>,
    pub(crate) agents_named: BTreeMap<String, Timestamp>,
    /// Runs that were over long ago, and go.
    pub(crate) forgotten: Vec<RunId>,
    /// Every epoch of a run that is not over is at least this now.
    pub(crate) epoch_floor: Option<u64>,
    /// The first entry that counts from now on, with the checksum of the one before it.
    pub(crate) first: Option<Head>,
}

/// What becomes of a row.
#[derive(Debug, Clone)]
pub(crate) struct Row<T> {
    /// What it was before the transaction.
    pub(crate) before: Option<T>,
    /// What it is behind it.
    pub(crate) after: Option<T>,
}

/// A line of the journal.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) seq: u64,
    pub(crate) at: Timestamp,
    pub(crate) kind: &'static str,
    pub(crate) schedule: Option<ScheduleId>,
    pub(crate) run: Option<RunId>,
    pub(crate) body: String,
    pub(crate) checksum: u64,
    pub(crate) mark: Option<LineMark>,
    pub(crate) record: Option<LineRecord>,
}

/// The last word about the start of a workflow, in a line.
#[derive(Debug, Clone)]
pub(crate) struct LineRecord {
    pub(crate) schedule: String,
    pub(crate) workflow: String,
    pub(crate) workflow_id: Option<String>,
    pub(crate) state: RecordState,
    pub(crate) note: Option<String>,
    pub(crate) scheduled_at: Timestamp,
    pub(crate) executed_at: Timestamp,
}

impl LineRecord {
    pub(crate) fn new(record: StartRecord<'_>) -> LineRecord {
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
pub(crate) struct LineMark {
    pub(crate) verdict: Verdict,
    pub(crate) is_final: bool,
    pub(crate) agent: String,
    pub(crate) project: Option<String>,
    pub(crate) shown_at: Timestamp,
    pub(crate) duration_ms: Option<u64>,
    pub(crate) tokens: Option<u64>,
    pub(crate) cost_micros: Option<u64>,
}

impl Needs {
    /// The same, for somebody whose request may have come before.
    pub(crate) fn asked_by(mut self, by: Option<&By>) -> Needs {
        self.keys.extend(by.and_then(|by| by.once.as_ref()).map(|once| once.key.clone()));
        self
    }
}

impl<T> Row<T> {
    /// A row that was not there.
    pub(crate) fn new(after: T) -> Row<T> {
        Row { before: None, after: Some(after) }
    }
}

impl Changes {
    /// Whether there is nothing to write.
    pub(crate) fn is_empty(&self) -> bool {
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

impl Writing<'_> {
    /// Reads what a change wants.
    pub(crate) fn draft(&self, wants: &Wants, now: Timestamp) -> Draft {
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
    pub(crate) fn save(&mut self, before: &World, draft: &Draft) {
        let after = &draft.world;
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
        self.mirror.put_piece(before, after);
        draft.entries.iter().for_each(|entry| self.write_line(entry));
    }

    /// Reads what a change wants, makes it, and notes what is different.
    pub(crate) fn change<T>(&mut self, wants: &Wants, now: Timestamp, change: impl FnOnce(&mut Draft) -> T) -> T {
        let mut draft = self.draft(wants, now);
        let before = draft.world.clone();
        let answer = change(&mut draft);
        self.save(&before, &draft);
        answer
    }

    /// Writes that something happened that changes nothing in the mirror.
    pub(crate) fn append(&mut self, now: Timestamp, body: Body) -> Result<()> {
        let entry = Entry { seq: self.head.seq + 1, at: now, body };
        self.mirror.skip(&entry)?;
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

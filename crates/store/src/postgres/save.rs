//! Saving: what a transaction appends, as a few statements.

use jiff::Timestamp;
use punctual_core::journal::{Entry, Mark, Verdict};
use punctual_core::{RunId, ScheduleId};
use punctual_kernel::transaction::{Changes, Line, LineRecord};
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::fault::Done;
use super::statement::{Statement, as_key, as_text};
use super::values::At;
use crate::columns::to_json;
use crate::error::StoreError;
use crate::journal_rows::pack;

/// Everything that a transaction writes.
pub(super) fn statements(changes: &Changes) -> Done<Vec<Statement>> {
    let mut statements = vec![];
    put_cluster(&mut statements, changes);
    if !changes.lines.is_empty() {
        statements.push(append(&changes.lines)?);
    }
    Ok(statements)
}

/// The journal, and what it is searched by.
fn append(lines: &[Line]) -> Done<Statement> {
    let refused = |why: String| StoreError::Database { doing: "writing the journal", source: why.into() };
    let rows = pack(lines).map_err(refused)?;
    let changes = || rows.iter().map(|row| &row.changes);
    let mut calls = vec![
        Statement::new("append_journal")
            .numbers(changes().map(|row| row.first))
            .numbers(changes().map(|row| row.last))
            .times(changes().map(|row| row.at))
            .numbers(changes().map(|row| row.checksum))
            .texts(changes().map(|row| row.change.clone()))
            .texts(rows.iter().map(|row| row.detail.clone())),
    ];
    let history: Vec<HistoryRow> = lines.iter().filter_map(HistoryRow::of_line).collect();
    if !history.is_empty() {
        calls.push(append_history(&history));
    }
    let subjects: Vec<(Uuid, u64)> = lines.iter().filter_map(|line| Some((line.subject?, line.seq))).collect();
    if !subjects.is_empty() {
        let (ids, seqs) = (subjects.iter().map(|(id, _)| *id), subjects.iter().map(|(_, seq)| *seq));
        calls.push(Statement::new("append_subjects").uuids(ids).numbers(seqs));
    }
    calls.extend(append_records(lines));
    Ok(Statement::calls(calls))
}

/// A row of history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HistoryRow {
    pub(super) seq: u64,
    pub(super) run: Option<Uuid>,
    pub(super) schedule: Option<Uuid>,
    pub(super) verdict: Verdict,
    pub(super) is_final: bool,
    pub(super) agent: String,
    pub(super) project: Option<String>,
    pub(super) shown_at: Timestamp,
    pub(super) duration_ms: Option<u64>,
    pub(super) late_ms: Option<u64>,
    pub(super) tokens: Option<u64>,
    pub(super) cost_micros: Option<u64>,
}

impl HistoryRow {
    /// The row of a line, if it is history.
    fn of_line(line: &Line) -> Option<HistoryRow> {
        let mark = line.mark.as_ref()?;
        let mark = Mark {
            agent: &mark.agent,
            project: mark.project.as_deref(),
            verdict: mark.verdict,
            is_final: mark.is_final,
            shown_at: mark.shown_at,
            duration_ms: mark.duration_ms,
            late_ms: mark.late_ms,
            tokens: mark.tokens,
            cost_micros: mark.cost_micros,
        };
        Some(HistoryRow::new(line.seq, line.run, line.schedule, mark))
    }

    /// The row of an entry, if it is history.
    pub(super) fn of_entry(entry: &Entry) -> Option<HistoryRow> {
        let Entry { seq, at, body } = entry;
        Some(HistoryRow::new(*seq, body.run(), body.schedule(), body.mark(*at)?))
    }

    /// What it counts for.
    pub(super) fn mark(&self) -> Mark<'_> {
        Mark {
            verdict: self.verdict,
            is_final: self.is_final,
            agent: &self.agent,
            project: self.project.as_deref(),
            shown_at: self.shown_at,
            duration_ms: self.duration_ms,
            late_ms: self.late_ms,
            tokens: self.tokens,
            cost_micros: self.cost_micros,
        }
    }

    fn new(seq: u64, run: Option<RunId>, schedule: Option<ScheduleId>, mark: Mark<'_>) -> HistoryRow {
        HistoryRow {
            seq,
            run: run.map(|id| id.0),
            schedule: schedule.map(|id| id.0),
            verdict: mark.verdict,
            is_final: mark.is_final,
            agent: as_key(mark.agent),
            project: mark.project.map(as_key),
            shown_at: mark.shown_at,
            duration_ms: mark.duration_ms,
            late_ms: mark.late_ms,
            tokens: mark.tokens,
            cost_micros: mark.cost_micros,
        }
    }
}

fn append_history(rows: &[HistoryRow]) -> Statement {
    Statement::new("append_history")
        .numbers(rows.iter().map(|row| row.seq))
        .maybe_uuids(rows.iter().map(|row| row.run))
        .maybe_uuids(rows.iter().map(|row| row.schedule))
        .texts(rows.iter().map(|row| row.verdict.as_str().to_owned()))
        .flags(rows.iter().map(|row| row.is_final))
        .texts(rows.iter().map(|row| row.agent.clone()))
        .maybe_texts(rows.iter().map(|row| row.project.clone()))
        .times(rows.iter().map(|row| row.shown_at))
        .maybe_numbers(rows.iter().map(|row| row.duration_ms))
        .maybe_numbers(rows.iter().map(|row| row.late_ms))
        .maybe_numbers(rows.iter().map(|row| row.tokens))
        .maybe_numbers(rows.iter().map(|row| row.cost_micros))
}

/// What is history of workflows that schedules had started.
fn append_records(lines: &[Line]) -> Option<Statement> {
    let found: Vec<(&Line, &LineRecord)> =
        lines.iter().filter_map(|line| Some((line, line.record.as_ref()?))).collect();
    if found.is_empty() {
        return None;
    }
    let (lines, records) = (|| found.iter().map(|(line, _)| *line), || found.iter().map(|(_, record)| *record));
    let project = |line: &Line| line.mark.as_ref().and_then(|mark| mark.project.as_deref().map(as_key));
    let statement = Statement::new("append_records")
        .numbers(lines().map(|line| line.seq))
        .maybe_uuids(lines().map(|line| line.schedule.map(|id| id.0)))
        .maybe_uuids(lines().map(|line| line.run.map(|id| id.0)))
        .maybe_texts(lines().map(project))
        .texts(records().map(|record| as_key(&record.schedule)))
        .texts(records().map(|record| as_key(&record.workflow)))
        .maybe_texts(records().map(|record| record.workflow_id.clone()))
        .texts(records().map(|record| record.state.as_str().to_owned()))
        .maybe_texts(records().map(|record| record.note.clone()))
        .times(records().map(|record| record.scheduled_at))
        .times(records().map(|record| record.executed_at));
    Some(statement)
}

fn put_cluster(statements: &mut Vec<Statement>, changes: &Changes) {
    for (id, node) in &changes.nodes {
        let statement = match node {
            None => Statement::new("DELETE FROM nodes WHERE id = $1").with(id.0, Type::UUID),
            Some(node) => Statement::new(include_str!("sql/put_node.sql"))
                .with(id.0, Type::UUID)
                .with(as_text(node.name.clone()), Type::TEXT)
                .with(At(node.joined_at), Type::TIMESTAMPTZ)
                .with(At(node.lease_until), Type::TIMESTAMPTZ)
                .with(node.lease.milliseconds(), Type::INT8)
                .with(to_json(&node.agents), Type::TEXT)
                .with(to_json(&node.about), Type::TEXT),
        };
        statements.push(statement);
    }
    if let Some(planner) = changes.planner {
        let sql = "INSERT INTO planner VALUES (true, $1, $2, $3)
            ON CONFLICT (one) DO UPDATE SET node = excluded.node, lease_until = excluded.lease_until, epoch = excluded.epoch";
        let statement = Statement::new(sql).with(planner.node.0, Type::UUID);
        statements.push(statement.with(At(planner.until), Type::TIMESTAMPTZ).number(planner.epoch));
    }
    for (agents, sql) in [
        (&changes.agents_named, include_str!("sql/name_agents.sql")),
        (&changes.agents_seen, include_str!("sql/see_agents.sql")),
    ] {
        if !agents.is_empty() {
            statements.push(Statement::new(sql).texts(agents.keys().cloned()).times(agents.values().copied()));
        }
    }
    if !changes.answers.is_empty() {
        let sql = "INSERT INTO answers SELECT * FROM unnest($1::text[], $2::bigint[], $3::uuid[], $4::timestamptz[])
            ON CONFLICT DO NOTHING";
        let answers = || changes.answers.values();
        let statement = Statement::new(sql)
            .texts(changes.answers.keys().cloned())
            .numbers(answers().map(|answered| answered.digest))
            .uuids(answers().map(|answered| answered.subject))
            .times(answers().map(|answered| answered.at));
        statements.push(statement);
    }
}

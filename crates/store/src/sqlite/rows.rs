//! Rows: runs and schedules as the tables have them, and as the rules know them.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use punctual_core::journal::ScheduleRecord;
use punctual_core::plan::Outage;
use punctual_core::run::{Run, Tally, Terms};
use punctual_core::schedule::{Cursor, Schedule};
use punctual_core::{NodeId, RunId, ScheduleId};
use rusqlite::types::FromSql;
use rusqlite::{Connection, OptionalExtension, Params, Row};
use uuid::Uuid;

use super::fault::{Done, Fault};
use super::values::{At, Id, count, from_json, from_word};
pub(super) use crate::columns::StateColumns;

/// A run, as its row has it. The terms are another table's.
#[derive(Debug, Clone)]
pub(super) struct RunRow {
    pub(super) id: RunId,
    pub(super) schedule: Option<ScheduleId>,
    pub(super) version: u64,
    pub(super) slot_key: String,
    pub(super) scheduled_at: Timestamp,
    pub(super) due_at: Timestamp,
    pub(super) expires_at: Option<Timestamp>,
    pub(super) follows: Option<RunId>,
    pub(super) terms_id: Uuid,
    pub(super) state: StateColumns,
    pub(super) started_at: Option<Timestamp>,
    pub(super) ended_at: Option<Timestamp>,
    pub(super) has_started: bool,
    pub(super) is_parked: bool,
    pub(super) is_cancelling: bool,
    pub(super) last_end: Option<String>,
}

impl RunRow {
    /// Reads a row of `SELECT * FROM runs`.
    pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<RunRow> {
        let mut column = 0;
        Ok(RunRow {
            id: RunId(next::<Id>(row, &mut column)?.0),
            schedule: next::<Option<Id>>(row, &mut column)?.map(|id| ScheduleId(id.0)),
            version: count(next(row, &mut column)?),
            slot_key: next(row, &mut column)?,
            scheduled_at: next::<At>(row, &mut column)?.0,
            due_at: next::<At>(row, &mut column)?.0,
            expires_at: next::<Option<At>>(row, &mut column)?.map(|at| at.0),
            follows: next::<Option<Id>>(row, &mut column)?.map(|id| RunId(id.0)),
            terms_id: next::<Id>(row, &mut column)?.0,
            state: StateColumns {
                state: next(row, &mut column)?,
                ready_at: next::<Option<At>>(row, &mut column)?.map(|at| at.0),
                resumes: next(row, &mut column)?,
                owner: next::<Option<Id>>(row, &mut column)?.map(|id| NodeId(id.0)),
                wait_for: next(row, &mut column)?,
                wait_until: next::<Option<At>>(row, &mut column)?.map(|at| at.0),
                reason: next(row, &mut column)?,
                tally: Tally {
                    attempt: next(row, &mut column)?,
                    epoch: count(next(row, &mut column)?),
                    losses: next(row, &mut column)?,
                },
            },
            started_at: next::<Option<At>>(row, &mut column)?.map(|at| at.0),
            ended_at: next::<Option<At>>(row, &mut column)?.map(|at| at.0),
            has_started: next(row, &mut column)?,
            is_parked: next(row, &mut column)?,
            is_cancelling: next(row, &mut column)?,
            last_end: next(row, &mut column)?,
        })
    }

    pub(super) fn into_run(self, terms: Arc<Terms>) -> Done<Run> {
        Ok(Run {
            id: self.id,
            schedule: self.schedule,
            version: self.version,
            key: from_word(&self.slot_key, "a slot")?,
            scheduled_at: self.scheduled_at,
            due_at: self.due_at,
            expires_at: self.expires_at,
            follows: self.follows,
            terms,
            state: self.state.to_state()?,
            started_at: self.started_at,
            ended_at: self.ended_at,
            has_started: self.has_started,
            is_parked: self.is_parked,
            is_cancelling: self.is_cancelling,
            last_end: self.last_end.as_deref().map(|text| from_json(text, "the end of an attempt")).transpose()?,
        })
    }
}

/// The next column of a row.
fn next<T: FromSql>(row: &Row<'_>, column: &mut usize) -> rusqlite::Result<T> {
    let value = row.get(*column);
    *column += 1;
    value
}

/// Terms that have been read, by the number of their row: runs that share them in the table share them in memory.
#[derive(Debug, Default)]
pub(super) struct TermsRead(HashMap<Uuid, Arc<Terms>>);

impl TermsRead {
    /// The most terms that are remembered.
    const MAX: usize = 4_096;

    pub(super) fn get(&mut self, connection: &Connection, id: Uuid) -> Done<Arc<Terms>> {
        if let Some(terms) = self.0.get(&id) {
            return Ok(Arc::clone(terms));
        }
        let body: Option<String> = connection
            .prepare_cached("SELECT body FROM terms WHERE id = ?1")?
            .query_row([Id(id)], |row| row.get(0))
            .optional()?;
        let body = body.ok_or_else(|| Fault::damaged(format!("the terms {id} of a run are not there")))?;
        let terms = Arc::new(from_json(&body, "the terms of a run")?);
        self.put(id, Arc::clone(&terms));
        Ok(terms)
    }

    pub(super) fn put(&mut self, id: Uuid, terms: Arc<Terms>) {
        if TermsRead::MAX <= self.0.len() {
            self.0.clear();
        }
        self.0.insert(id, terms);
    }
}

/// Runs that a query of `SELECT * FROM runs` finds.
pub(super) fn read_runs(
    connection: &Connection,
    terms: &mut TermsRead,
    sql: &str,
    params: impl Params,
) -> Done<Vec<Run>> {
    let rows: Vec<RunRow> =
        connection.prepare_cached(sql)?.query_map(params, RunRow::read)?.collect::<rusqlite::Result<_>>()?;
    rows.into_iter().map(|row| terms.get(connection, row.terms_id).and_then(|terms| row.into_run(terms))).collect()
}

/// A schedule, as its row has it.
#[derive(Debug, Clone)]
pub(super) struct ScheduleRow {
    definition: String,
    cursor_at: Timestamp,
    cursor_reached: String,
    runs_started: u64,
    plan_at: Option<Timestamp>,
    zone_data: String,
    outage: Option<(Timestamp, Timestamp)>,
    outage_kept: Option<String>,
}

impl ScheduleRow {
    /// Reads a row of `SELECT * FROM schedules`.
    pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<ScheduleRow> {
        let from = row.get::<_, Option<At>>("outage_from")?;
        let until = row.get::<_, Option<At>>("outage_until")?;
        Ok(ScheduleRow {
            definition: row.get("definition")?,
            cursor_at: row.get::<_, At>("cursor_at")?.0,
            cursor_reached: row.get("cursor_reached")?,
            runs_started: count(row.get("runs_started")?),
            plan_at: row.get::<_, Option<At>>("plan_at")?.map(|at| at.0),
            zone_data: row.get("zone_data")?,
            outage: from.zip(until).map(|(from, until)| (from.0, until.0)),
            outage_kept: row.get("outage_kept")?,
        })
    }

    pub(super) fn into_record(self) -> Done<ScheduleRecord> {
        let mut schedule: Schedule = from_json(&self.definition, "a schedule")?;
        let reached = from_json(&self.cursor_reached, "the cursor of a schedule")?;
        schedule.cursor = Cursor { at: self.cursor_at, reached };
        schedule.runs_started = self.runs_started;
        let kept = self.outage_kept.as_deref().map(|text| from_json(text, "an outage")).transpose()?;
        let outage = self.outage.map(|(from, until)| Outage { from, until, kept });
        let (plan_at, zone_data) = (self.plan_at, self.zone_data);
        Ok(ScheduleRecord { schedule: Arc::new(schedule), plan_at, zone_data, outage })
    }
}

/// One schedule.
pub(super) fn read_schedule(connection: &Connection, id: ScheduleId) -> Done<Option<ScheduleRecord>> {
    let sql = "SELECT * FROM schedules WHERE id = ?1";
    let row = connection.prepare_cached(sql)?.query_row([Id(id.0)], ScheduleRow::read).optional()?;
    row.map(ScheduleRow::into_record).transpose()
}

/// Schedules that a query of `SELECT * FROM schedules` finds.
pub(super) fn read_schedules(connection: &Connection, sql: &str, params: impl Params) -> Done<Vec<ScheduleRecord>> {
    let rows: Vec<ScheduleRow> =
        connection.prepare_cached(sql)?.query_map(params, ScheduleRow::read)?.collect::<rusqlite::Result<_>>()?;
    rows.into_iter().map(ScheduleRow::into_record).collect()
}

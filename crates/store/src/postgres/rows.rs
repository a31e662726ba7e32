//! Rows: runs and schedules as the tables have them, and as the rules know them.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use punctual_core::journal::ScheduleRecord;
use punctual_core::plan::Outage;
use punctual_core::run::{Run, Tally, Terms};
use punctual_core::schedule::{Cursor, Schedule};
use punctual_core::{Elapsed, NodeId, RunId, ScheduleId};
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;
use uuid::Uuid;

use super::fault::{Done, Fault};
use super::values::At;
use crate::chain::EntryRow;
use crate::columns::{StateColumns, check_run, from_json, from_word};
use crate::requests::NodeRecord;

/// What is read of a run, with its terms.
pub(super) const RUN_COLUMNS: &str = "runs.id, schedule_id, version, slot_key, scheduled_at, due_at, expires_at, follows, \
    terms_id, state, ready_at, resumes, owner, wait_for, wait_until, reason, attempt, epoch, losses, started_at, ended_at, \
    has_started, is_parked, is_cancelling, last_end::text, terms.body";

/// What is read of a schedule.
pub(super) const SCHEDULE_COLUMNS: &str = "definition::text, cursor_at, cursor_reached::text, runs_started, plan_at, \
    zone_data, outage_from, outage_until, outage_kept::text";

/// What is read of a node.
pub(super) const NODE_COLUMNS: &str = "id, name, joined_at, lease_until, lease, agents::text, about::text";

/// Reads columns from left to right.
struct Columns<'a> {
    row: &'a Row,
    next: usize,
}

impl<'a> Columns<'a> {
    fn of(row: &'a Row) -> Columns<'a> {
        Columns { row, next: 0 }
    }

    fn next<T: FromSql<'a>>(&mut self) -> Done<T> {
        let column = self.next;
        self.next += 1;
        self.row.try_get(column).map_err(|error| Fault::Damaged(format!("a row cannot be read: {error}")))
    }

    fn at(&mut self) -> Done<Timestamp> {
        Ok(self.next::<At>()?.0)
    }

    fn maybe_at(&mut self) -> Done<Option<Timestamp>> {
        Ok(self.next::<Option<At>>()?.map(|at| at.0))
    }

    fn count(&mut self) -> Done<u64> {
        u64::try_from(self.next::<i64>()?).map_err(|_| Fault::Damaged("a count is negative".to_owned()))
    }

    fn small_count(&mut self) -> Done<u32> {
        u32::try_from(self.count()?).map_err(|_| Fault::Damaged("a count is too large".to_owned()))
    }
}

/// Terms that have been read: runs that share them in the table share them in memory.
#[derive(Debug, Default)]
pub(super) struct TermsRead(HashMap<Uuid, Arc<Terms>>);

/// Reads [`RUN_COLUMNS`]. The table holds whatever is written, so this refuses what is no run.
pub(super) fn read_run(row: &Row, terms_read: &mut TermsRead) -> Done<Run> {
    let mut columns = Columns::of(row);
    let id = RunId(columns.next()?);
    let schedule = columns.next::<Option<Uuid>>()?.map(ScheduleId);
    let version = columns.count()?;
    let key = from_word(columns.next()?, "a slot")?;
    let (scheduled_at, due_at, expires_at) = (columns.at()?, columns.at()?, columns.maybe_at()?);
    let follows = columns.next::<Option<Uuid>>()?.map(RunId);
    let terms_id: Uuid = columns.next()?;
    let state = StateColumns {
        state: columns.next()?,
        ready_at: columns.maybe_at()?,
        resumes: columns.next()?,
        owner: columns.next::<Option<Uuid>>()?.map(NodeId),
        wait_for: columns.next()?,
        wait_until: columns.maybe_at()?,
        reason: columns.next()?,
        tally: Tally { attempt: columns.small_count()?, epoch: columns.count()?, losses: columns.small_count()? },
    };
    let (started_at, ended_at) = (columns.maybe_at()?, columns.maybe_at()?);
    let (has_started, is_parked, is_cancelling) = (columns.next()?, columns.next()?, columns.next()?);
    let last_end: Option<&str> = columns.next()?;
    let last_end = last_end.map(|text| from_json(text, "the end of an attempt")).transpose()?;
    let body: &str = columns.next()?;
    let terms = match terms_read.0.get(&terms_id) {
        Some(terms) => Arc::clone(terms),
        None => {
            let terms: Arc<Terms> = Arc::new(from_json(body, "the terms of a run")?);
            terms_read.0.insert(terms_id, Arc::clone(&terms));
            terms
        }
    };
    let state = state.to_state()?;
    let run = Run {
        id,
        schedule,
        version,
        key,
        scheduled_at,
        due_at,
        expires_at,
        follows,
        terms,
        state,
        started_at,
        ended_at,
        has_started,
        is_parked,
        is_cancelling,
        last_end,
    };
    check_run(&run)?;
    Ok(run)
}

pub(super) fn read_runs(rows: &[Row]) -> Done<Vec<Run>> {
    let mut terms = TermsRead::default();
    rows.iter().map(|row| read_run(row, &mut terms)).collect()
}

/// Reads [`SCHEDULE_COLUMNS`].
pub(super) fn read_schedule(row: &Row) -> Done<ScheduleRecord> {
    let mut columns = Columns::of(row);
    let mut schedule: Schedule = from_json(columns.next()?, "a schedule")?;
    let at = columns.at()?;
    let reached = from_json(columns.next()?, "the cursor of a schedule")?;
    schedule.cursor = Cursor { at, reached };
    schedule.runs_started = columns.count()?;
    let (plan_at, zone_data) = (columns.maybe_at()?, columns.next()?);
    let outage = columns.maybe_at()?.zip(columns.maybe_at()?);
    let kept: Option<&str> = columns.next()?;
    let kept = kept.map(|text| from_json(text, "an outage")).transpose()?;
    let outage = outage.map(|(from, until)| Outage { from, until, kept });
    Ok(ScheduleRecord { schedule: Arc::new(schedule), plan_at, zone_data, outage })
}

/// Reads `seq, at, body, checksum`.
pub(super) fn read_entry(row: &Row) -> Done<EntryRow> {
    let mut columns = Columns::of(row);
    let (seq, at, body) = (columns.count()?, columns.at()?, columns.next()?);
    Ok(EntryRow { seq, at, body, checksum: columns.next::<i64>()?.cast_unsigned() })
}

/// Reads [`NODE_COLUMNS`].
pub(super) fn read_node(row: &Row) -> Done<NodeRecord> {
    let mut columns = Columns::of(row);
    Ok(NodeRecord {
        id: NodeId(columns.next()?),
        name: columns.next()?,
        joined_at: columns.at()?,
        lease_until: columns.at()?,
        lease: Elapsed::from_milliseconds(columns.next()?).unwrap_or_default(),
        agents: from_json(columns.next()?, "the agents of a node")?,
        about: from_json(columns.next()?, "a node")?,
    })
}

//! The journal and what is read from it.

use async_trait::async_trait;
use jiff::Timestamp;
use punctual_core::journal::{Body, Checkpoint, Entry, ScheduleRecord};
use punctual_core::run::Run;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::SqliteStore;
use super::fault::{Done, Fault};
use super::plan::{read_date, rows_max};
use super::rows::{read_runs, read_schedules};
use super::session::{Session, read_head};
use super::tokens::read_tokens;
use super::values::{At, count, micros_before, micros_up_to, signed};
use crate::chain::{Chain, EntryRow};
use crate::compare::PART_MAX;
use crate::error::Result;
use crate::requests::Head;
use crate::roles::Journal;

/// The most entries that one transaction lets go.
const PRUNED_AT_ONCE: usize = 10_000;

#[async_trait]
impl Journal for SqliteStore {
    async fn entries(&self, after: u64, limit: usize) -> Result<Vec<Entry>> {
        self.read("reading the journal", move |connection| {
            let sql = include_str!("sql/entries.sql");
            let mut statement = connection.prepare_cached(sql)?;
            let rows = statement.query_map(params![seq_of(after), rows_max(limit)], read_entry)?;
            rows.map(|row| Ok(row?.into_entry()?)).collect()
        })
        .await
    }

    async fn head(&self) -> Result<Head> {
        self.read("reading the end of the journal", |connection| Ok(read_head(connection)?.0)).await
    }

    async fn forget_runs(&self, now: Timestamp, before: Timestamp) -> Result<usize> {
        self.write("forgetting runs", now, move |session| session.forget_runs(now, before)).await
    }

    async fn prune(&self, now: Timestamp, before: Timestamp) -> Result<u64> {
        let pruned = self.write("writing a checkpoint", now, move |session| session.begin_prune(now, before)).await?;
        // What lies before the beginning counts no more: it goes piece by piece, between other commands.
        while self.write("pruning the journal", now, Session::prune_some).await? == PRUNED_AT_ONCE {}
        Ok(pruned)
    }

    async fn verify(&self) -> Result<Vec<String>> {
        self.verify_all().await
    }
}

/// Reads the columns `seq, at, body, checksum`.
pub(super) fn read_entry(row: &Row<'_>) -> rusqlite::Result<EntryRow> {
    let (seq, checksum) = (count(row.get(0)?), row.get::<_, i64>(3)?.cast_unsigned());
    Ok(EntryRow { seq, at: row.get::<_, At>(1)?.0, body: row.get(2)?, checksum })
}

/// A number of an entry that a caller gives, in a column's own numbers.
fn seq_of(seq: u64) -> i64 {
    i64::try_from(seq).unwrap_or(i64::MAX)
}

impl Session {
    fn forget_runs(&mut self, now: Timestamp, before: Timestamp) -> Done<usize> {
        let last = micros_before(before);
        let old = include_str!("sql/old_runs.sql");
        let sql = format!("SELECT terms_id, count(*) FROM runs WHERE id IN ({old}) GROUP BY terms_id");
        let mut statement = self.connection.prepare_cached(&sql)?;
        let uses: Vec<(i64, i64)> =
            statement.query_map([last], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<rusqlite::Result<_>>()?;
        drop(statement);
        if uses.is_empty() {
            return Ok(0);
        }
        for (terms, runs) in uses {
            *self.derived.uses.entry(terms).or_default() -= runs;
        }
        // They are over: no lane, no count and no other run changes with them.
        let sql = format!("DELETE FROM runs WHERE id IN ({old})");
        let gone = self.connection.prepare_cached(&sql)?.execute([last])?;
        self.append(now, &Body::RunsForgotten { before })?;
        Ok(gone)
    }

    /// Writes a checkpoint, and moves the beginning of the journal to an earlier one. How many entries are before it.
    fn begin_prune(&mut self, now: Timestamp, before: Timestamp) -> Done<u64> {
        self.write_checkpoint(now)?;
        let sql = include_str!("sql/journal_start.sql");
        let start: Option<i64> =
            self.connection.prepare_cached(sql)?.query_row([micros_up_to(before)], |row| row.get(0)).optional()?;
        let Some(start) = start else { return Ok(0) };
        let first: i64 = self.connection.query_row("SELECT first_seq FROM head", [], |row| row.get(0))?;
        if start == first {
            return Ok(0);
        }
        let sql = "UPDATE head SET first_seq = ?1, checksum_before = (SELECT checksum FROM journal WHERE seq = ?1 - 1)";
        self.connection.prepare_cached(sql)?.execute([start])?;
        self.connection.prepare_cached("DELETE FROM records WHERE seq < ?1")?.execute([start])?;
        Ok(count(start - first))
    }

    /// Lets go of some entries before the beginning. How many.
    fn prune_some(&mut self) -> Done<usize> {
        let sql = include_str!("sql/prune.sql");
        Ok(self.connection.prepare_cached(sql)?.execute([rows_max(PRUNED_AT_ONCE)])?)
    }

    /// Writes everything as it is now, part by part, without having all of it in memory.
    fn write_checkpoint(&mut self, now: Timestamp) -> Done<()> {
        let counts = "SELECT (SELECT count(*) FROM schedules), (SELECT count(*) FROM runs)";
        let (schedules, runs): (i64, i64) =
            self.connection.query_row(counts, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let (schedules, runs) = (count(schedules) as usize, count(runs) as usize);
        let schedule_parts = schedules.div_ceil(PART_MAX);
        let parts = (schedule_parts + runs.div_ceil(PART_MAX)).max(1) as u32;
        let mut after: Vec<u8> = vec![];
        for part in 1..=parts {
            let mut checkpoint = Checkpoint {
                part,
                parts,
                schedules: vec![],
                runs: vec![],
                days: Default::default(),
                epoch_floor: 0,
                tokens: Default::default(),
            };
            if part as usize <= schedule_parts {
                checkpoint.schedules = self.schedules_behind(&after)?;
                after = last_id(checkpoint.schedules.last().map(|record| record.schedule.id.0));
            } else {
                if part as usize == schedule_parts + 1 {
                    after.clear();
                }
                checkpoint.runs = self.runs_behind(&after)?;
                after = last_id(checkpoint.runs.last().map(|run| run.id.0));
            }
            if part == parts {
                checkpoint.days = read_days(&self.connection)?;
                checkpoint.tokens = read_tokens(&self.connection)?;
                checkpoint.epoch_floor = self.epoch_floor;
            }
            self.append(now, &Body::Checkpoint(Box::new(checkpoint)))?;
        }
        Ok(())
    }

    fn schedules_behind(&self, after: &[u8]) -> Done<Vec<ScheduleRecord>> {
        let sql = "SELECT * FROM schedules WHERE ?1 < id ORDER BY id LIMIT ?2";
        read_schedules(&self.connection, sql, params![after, rows_max(PART_MAX)])
    }

    fn runs_behind(&mut self, after: &[u8]) -> Done<Vec<Run>> {
        let sql = "SELECT * FROM runs WHERE ?1 < id ORDER BY id LIMIT ?2";
        read_runs(&self.connection, &mut self.terms, sql, params![after, rows_max(PART_MAX)])
    }
}

fn last_id(id: Option<uuid::Uuid>) -> Vec<u8> {
    id.map_or(vec![], |id| id.as_bytes().to_vec())
}

/// The last day that has begun, by zone.
pub(super) fn read_days(connection: &Connection) -> Done<std::collections::BTreeMap<String, jiff::civil::Date>> {
    let mut statement = connection.prepare_cached("SELECT zone, date FROM days")?;
    let rows = statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))?;
    rows.map(|row| {
        let (zone, date) = row?;
        Ok((zone, read_date(&date)?))
    })
    .collect()
}

/// Looks at the last entries: that they are there, and that each is the one that its checksum says.
pub(super) fn check_end(connection: &Connection, entries: u64) -> Done<()> {
    let (head, _) = read_head(connection)?;
    let (first, mut before): (i64, i64) =
        connection
            .query_row("SELECT first_seq, checksum_before FROM head", [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let from = count(first).max(head.seq.saturating_sub(entries) + 1);
    if count(first) < from {
        let sql = "SELECT checksum FROM journal WHERE seq = ?1";
        let found = connection.query_row(sql, [signed(from - 1)], |row| row.get(0)).optional()?;
        before = found.ok_or_else(|| Fault::damaged(format!("entry {} of the journal is missing", from - 1)))?;
    }
    let mut chain = Chain { seq: from - 1, checksum: before.cast_unsigned() };
    let mut statement =
        connection.prepare("SELECT seq, at, body, checksum FROM journal WHERE ?1 <= seq ORDER BY seq")?;
    let mut rows = statement.query([signed(from)])?;
    while let Some(row) = rows.next()? {
        chain.check(&read_entry(row)?).map_err(Fault::damaged)?;
    }
    chain.check_head(head).map_err(Fault::damaged)
}

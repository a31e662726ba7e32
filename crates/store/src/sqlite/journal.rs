//! The journal and what is read from it.

use async_trait::async_trait;
use jiff::Timestamp;
use punctual_core::journal::Entry;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::SqliteStore;
use super::fault::{Done, Fault};
use super::plan::{read_date, rows_max};
use super::session::read_head;
use super::values::{At, count, signed};
use crate::chain::{Chain, EntryRow};
use crate::commands;
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
        commands::forget_runs(self, now, before).await
    }

    async fn prune(&self, now: Timestamp, before: Timestamp) -> Result<u64> {
        let pruned = commands::begin_prune(self, now, before).await?;
        // What lies before the beginning counts no more: it goes piece by piece, between other commands.
        while self.write("pruning the journal", prune_some).await? == PRUNED_AT_ONCE {}
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

/// Lets go of some entries before the beginning. How many.
fn prune_some(connection: &Connection) -> Done<usize> {
    Ok(connection.prepare_cached(include_str!("sql/prune.sql"))?.execute([rows_max(PRUNED_AT_ONCE)])?)
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

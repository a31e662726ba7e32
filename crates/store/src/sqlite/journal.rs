//! The journal, and what is read from it.

use async_trait::async_trait;
use jiff::Timestamp;
use punctual_core::journal::{Entry, World};
use rusqlite::{Connection, OptionalExtension, Row, params};
use uuid::Uuid;

use super::SqliteStore;
use super::base::prune_piece;
use super::fault::{Done, Fault};
use super::snapshot::BASE;
use super::values::{At, Id, count, rows_max, signed};
use crate::error::Result;
use crate::journal_rows::{Chain, ChangeRow, JournalRow};
use crate::requests::Head;
use crate::roles::Journal;

#[async_trait]
impl Journal for SqliteStore {
    async fn entries(&self, after: u64, limit: usize) -> Result<Vec<Entry>> {
        self.read("reading the journal", move |connection| {
            let mut found = vec![];
            rows_after(connection, after, |row| {
                let entries = row.entries()?.into_iter().filter(|entry| after < entry.seq);
                found.extend(entries.take(limit - found.len()));
                Ok(found.len() < limit)
            })?;
            Ok(found)
        })
        .await
    }

    async fn head(&self) -> Result<Head> {
        self.read("reading the end of the journal", read_head).await
    }

    async fn about(&self, subjects: &[Uuid], each: usize) -> Result<Vec<Entry>> {
        let subjects = subjects.to_vec();
        self.read("reading entries about schedules and runs", move |connection| about(connection, &subjects, each))
            .await
    }

    async fn base(&self) -> Result<World> {
        self.read_long("reading the base", |connection| BASE.world(connection, read_first(connection)?.seq)).await
    }

    async fn prune(&self, before: Timestamp) -> Result<u64> {
        // What the snapshot does not have yet is not let go.
        self.server("pruning the journal")?.snapshot().await;
        let mut pruned = 0;
        loop {
            let piece = self.write("pruning the journal", move |connection| prune_piece(connection, before)).await?;
            if piece == 0 {
                return Ok(pruned);
            }
            pruned += piece;
        }
    }

    async fn verify(&self) -> Result<Vec<String>> {
        self.verify_all().await
    }
}

/// How far the journal goes.
pub(super) fn read_head(connection: &Connection) -> Done<Head> {
    let sql = "SELECT seq, checksum FROM head";
    let read = |row: &Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
    let found = connection.prepare_cached(sql)?.query_row([], read).optional()?;
    let (seq, checksum) = found.ok_or_else(|| Fault::damaged("the head of the journal is gone"))?;
    Ok(Head { seq: count(seq), checksum: checksum.cast_unsigned() })
}

/// The entry before the first that is kept: where the base stands.
pub(super) fn read_first(connection: &Connection) -> Done<Head> {
    let sql = "SELECT first_seq - 1, checksum_before FROM head";
    let read = |row: &Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
    let (seq, checksum) = connection.prepare_cached(sql)?.query_row([], read)?;
    Ok(Head { seq: count(seq), checksum: checksum.cast_unsigned() })
}

/// The columns of a row, as [`read_changes`] takes them.
const CHANGES: &str = "first, last, at, checksum, change";

fn read_changes(row: &Row<'_>) -> rusqlite::Result<ChangeRow> {
    Ok(ChangeRow {
        first: count(row.get(0)?),
        last: count(row.get(1)?),
        at: row.get::<_, At>(2)?.0,
        checksum: row.get::<_, i64>(3)?.cast_unsigned(),
        change: row.get(4)?,
    })
}

/// Reads the same, and then `detail`.
fn read_row(row: &Row<'_>) -> rusqlite::Result<JournalRow> {
    Ok(JournalRow { changes: read_changes(row)?, detail: row.get(5)? })
}

/// Goes through the rows that have entries after a number, in order, as long as somebody wants more.
pub(super) fn rows_after(connection: &Connection, after: u64, look: impl FnMut(&JournalRow) -> Done<bool>) -> Done<()> {
    each_after(connection, &format!("{CHANGES}, detail"), after, read_row, look)
}

/// The same with what applying the entries needs, and no more.
pub(super) fn changes_after(
    connection: &Connection,
    after: u64,
    look: impl FnMut(&ChangeRow) -> Done<bool>,
) -> Done<()> {
    each_after(connection, CHANGES, after, read_changes, look)
}

fn each_after<T>(
    connection: &Connection,
    columns: &str,
    after: u64,
    read: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
    mut look: impl FnMut(&T) -> Done<bool>,
) -> Done<()> {
    // The row that the next entry is in is the last that begins up to it.
    let next = i64::try_from(after).unwrap_or(i64::MAX).saturating_add(1);
    let sql = format!(
        "SELECT {columns} FROM journal
        WHERE first >= ifnull((SELECT max(first) FROM journal WHERE first <= ?1), 0) AND last >= ?1 ORDER BY first"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query([next])?;
    while let Some(row) = rows.next()? {
        if !look(&read(row)?)? {
            break;
        }
    }
    Ok(())
}

/// The entries of some numbers, in the order in which they are asked for. Those of one row are found with it.
pub(super) fn entries_of(connection: &Connection, seqs: &[u64]) -> Done<Vec<Entry>> {
    let sql = format!("SELECT {CHANGES}, detail FROM journal WHERE first <= ?1 ORDER BY first DESC LIMIT 1");
    let mut statement = connection.prepare_cached(&sql)?;
    let mut last: Option<JournalRow> = None;
    let mut entries = Vec::with_capacity(seqs.len());
    for seq in seqs {
        if last.as_ref().is_none_or(|row| *seq < row.changes.first || row.changes.last < *seq) {
            let found = statement.query_row([signed(*seq)], read_row).optional()?;
            last = Some(found.ok_or_else(|| Fault::damaged(format!("entry {seq} of the journal is missing")))?);
        }
        let row = last.as_ref().expect("it was just read");
        entries.push(row.entry(*seq)?);
    }
    Ok(entries)
}

pub(super) fn about(connection: &Connection, subjects: &[Uuid], each: usize) -> Done<Vec<Entry>> {
    let mut statement =
        connection.prepare_cached("SELECT seq FROM subjects WHERE subject = ?1 ORDER BY seq DESC LIMIT ?2")?;
    let mut seqs = vec![];
    for subject in subjects {
        let found = statement.query_map(params![Id(*subject), rows_max(each)], |row| Ok(count(row.get(0)?)))?;
        seqs.extend(found.collect::<rusqlite::Result<Vec<u64>>>()?);
    }
    entries_of(connection, &seqs)
}

/// Looks at the last entries: that they are there, and that each is the one that its checksum says.
pub(super) fn check_end(connection: &Connection, entries: u64) -> Done<()> {
    let head = read_head(connection)?;
    let first = read_first(connection)?;
    let from = first.seq.max(head.seq.saturating_sub(entries));
    let sql = "SELECT last, checksum FROM journal WHERE last <= ?1 ORDER BY first DESC LIMIT 1";
    let before = connection.query_row(sql, [signed(from)], |row| {
        Ok(Head { seq: count(row.get(0)?), checksum: row.get::<_, i64>(1)?.cast_unsigned() })
    });
    let mut chain = Chain(before.optional()?.unwrap_or(first));
    rows_after(connection, chain.0.seq, |row| {
        chain.check(row).map_err(Fault::damaged)?;
        Ok(true)
    })?;
    chain.check_head(head).map_err(Fault::damaged)
}

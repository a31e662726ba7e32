//! The journal and what is read from it.

use async_trait::async_trait;
use jiff::Timestamp;
use punctual_core::RunId;
use punctual_core::journal::{Entry, World};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row};
use uuid::Uuid;

use super::copies::BASE;
use super::fault::Done;
use super::load::{base_head, read_head};
use super::values::{At, rows_max};
use super::{PostgresStore, prune, verify};
use crate::columns::count;
use crate::error::Result;
use crate::journal_rows::{ChangeRow, JournalRow};
use crate::kept::EndedBetween;
use crate::requests::Head;
use crate::roles::Journal;

#[async_trait]
impl Journal for PostgresStore {
    async fn entries(&self, after: u64, limit: usize) -> Result<Vec<Entry>> {
        let connections = self.connections.clone();
        self.read("reading the journal", async move {
            let params: [(&(dyn ToSql + Sync), Type); 2] =
                [(&seq_of(after), Type::INT8), (&seq_of(limit as u64), Type::INT8)];
            let rows = connections.query(include_str!("sql/entries.sql"), &params).await?;
            let mut entries = vec![];
            for row in &rows {
                entries.extend(read_row(row)?.entries()?.into_iter().filter(|entry| after < entry.seq));
            }
            entries.truncate(limit);
            Ok(entries)
        })
        .await
    }

    async fn head(&self) -> Result<Head> {
        let connections = self.connections.clone();
        self.read("reading the end of the journal", async move { connections.with(read_head).await }).await
    }

    async fn about(&self, subjects: &[Uuid], each: usize) -> Result<Vec<Entry>> {
        self.read_about(subjects.to_vec(), each).await
    }

    async fn base(&self) -> Result<World> {
        let connections = self.connections.clone();
        self.read_on("reading the base of the journal", async move {
            connections
                .in_one_state(async |client: &Client| {
                    let mut world = BASE.read(client, |_, _| {}).await?;
                    world.seq = base_head(client).await?.seq;
                    Ok(world)
                })
                .await
        })
        .await
    }

    async fn prune(&self, before: Timestamp) -> Result<u64> {
        prune::prune(self, before).await
    }

    async fn verify(&self) -> Result<Vec<String>> {
        let connections = self.connections.clone();
        self.read_on("verifying the database", async move { connections.in_one_state(verify::verify).await }).await
    }
}

impl PostgresStore {
    /// The last entries about each of these schedules and runs, latest first.
    pub(super) async fn read_about(&self, subjects: Vec<Uuid>, each: usize) -> Result<Vec<Entry>> {
        let connections = self.connections.clone();
        self.read("reading what happened to a schedule or a run", async move {
            let sql = "SELECT last.seq FROM unnest($1) WITH ORDINALITY AS asked (id, place)
                CROSS JOIN LATERAL (SELECT seq FROM subjects WHERE subject = id ORDER BY seq DESC LIMIT $2) AS last
                ORDER BY place, last.seq DESC";
            let params: [(&(dyn ToSql + Sync), Type); 2] =
                [(&subjects, Type::UUID_ARRAY), (&rows_max(each), Type::INT8)];
            entries_of(&connections.query(&of_rows(sql), &params).await?)
        })
        .await
    }

    /// The last entries of history about a run, latest first.
    pub(super) async fn read_past_of_run(&self, run: RunId, limit: usize) -> Result<Vec<Entry>> {
        let connections = self.connections.clone();
        self.read("reading the past of a run", async move {
            let sql = "SELECT seq FROM history WHERE run_id = $1 ORDER BY seq DESC LIMIT $2";
            let params: [(&(dyn ToSql + Sync), Type); 2] = [(&run.0, Type::UUID), (&rows_max(limit), Type::INT8)];
            entries_of(&connections.query(&of_rows(sql), &params).await?)
        })
        .await
    }

    /// The entries that ended runs, by the ids of the runs.
    pub(super) async fn read_ends_between(&self, ended: EndedBetween) -> Result<Vec<Entry>> {
        let connections = self.connections.clone();
        self.read("reading runs that are over", async move {
            let of_schedule = if ended.schedule.is_some() { "schedule_id = $3" } else { "$3::uuid IS NULL" };
            let except = if ended.except_succeeded { "AND verdict <> 'succeeded'" } else { "" };
            let sql = format!(
                "SELECT seq FROM history
                WHERE $1 <= run_id AND run_id < $2 AND is_final AND {of_schedule} {except}
                ORDER BY run_id LIMIT $4"
            );
            let params: [(&(dyn ToSql + Sync), Type); 4] = [
                (&ended.from.0, Type::UUID),
                (&ended.until.0, Type::UUID),
                (&ended.schedule.map(|id| id.0), Type::UUID),
                (&rows_max(ended.limit), Type::INT8),
            ];
            entries_of(&connections.query(&of_rows(&sql), &params).await?)
        })
        .await
    }
}

/// The rows of the journal that have the entries which a query finds the numbers of, each row once; [`entries_of`] has them in the
/// query's order.
pub(super) fn of_rows(found: &str) -> String {
    format!(
        "SELECT first, last, at, checksum, change, detail, seqs, places
        FROM (
            SELECT (SELECT max(first) FROM journal WHERE first <= seq) AS first,
                array_agg(seq) AS seqs, array_agg(place) AS places
            FROM (SELECT seq, row_number() OVER () AS place FROM ({found}) AS in_order) AS numbered
            GROUP BY 1
        ) AS wanted
        JOIN journal USING (first)"
    )
}

/// Reads what [`of_rows`] has found.
pub(super) fn entries_of(rows: &[Row]) -> Done<Vec<Entry>> {
    let mut entries: Vec<(i64, Entry)> = vec![];
    for row in rows {
        let (seqs, places): (Vec<i64>, Vec<i64>) = (row.get(6), row.get(7));
        let row = read_row(row)?;
        for (seq, place) in seqs.into_iter().zip(places) {
            entries.push((place, row.entry(count(seq))?));
        }
    }
    entries.sort_by_key(|(place, _)| *place);
    Ok(entries.into_iter().map(|(_, entry)| entry).collect())
}

/// Reads `first, last, at, checksum, change`.
pub(super) fn read_changes(row: &Row) -> Done<ChangeRow> {
    Ok(ChangeRow {
        first: count(row.get(0)),
        last: count(row.get(1)),
        at: row.get::<_, At>(2).0,
        checksum: row.get::<_, i64>(3).cast_unsigned(),
        change: row.get(4),
    })
}

/// Reads the same, and then `detail`.
pub(super) fn read_row(row: &Row) -> Done<JournalRow> {
    Ok(JournalRow { changes: read_changes(row)?, detail: row.get(5) })
}

/// A number of an entry, or of entries, that a caller gives. None comes near the end of a column's numbers, and two of them can be
/// added.
fn seq_of(seq: u64) -> i64 {
    i64::try_from(seq).unwrap_or(i64::MAX).min(i64::MAX / 4)
}

//! The tail of the journal: what has been written behind an entry that is known.

use punctual_kernel::state::{State, Undo};
use tokio_postgres::types::{FromSql, Type};
use tokio_postgres::{Client, Row};

use super::fault::{Done, Fault};
use super::values::At;
use crate::columns::{count, signed};
use crate::journal_rows::ChangeRow;
use crate::requests::Head;

/// How many rows are followed at a time.
const ROWS_MAX: usize = 256;

/// How many rows come with the pen.
pub(super) const ROWS_MAX_AT_ONCE: usize = 4;

/// How many more are read while others wait for it. A node that lags further goes on without the pen.
pub(super) const ROWS_MAX_WITH_PEN: usize = 64;

/// The state as far as it is committed, or is being decided on.
pub(super) struct Known {
    pub(super) state: State,
    /// The last entry in it that is committed.
    pub(super) head: Head,
    /// How to take back what has been decided and is not known to be committed.
    pub(super) undo: Option<Undo>,
}

/// Rows of the journal behind an entry that is known.
pub(super) struct Tail {
    /// That entry.
    known: Head,
    /// The entry before the first that is kept.
    pub(super) base: Head,
    rows: Vec<TailRow>,
    /// Whether nothing was written after them.
    pub(super) is_whole: bool,
}

struct TailRow {
    row: ChangeRow,
    /// Whether its changes were left out, because its last entry is the one that is known.
    is_known: bool,
}

/// Columns of a function's answer, by name.
pub(super) struct Answer(pub(super) Row);

impl Answer {
    pub(super) fn get<'a, T: FromSql<'a>>(&'a self, column: &str) -> Done<T> {
        self.0.try_get(column).map_err(|error| Fault::Damaged(format!("{column} cannot be read: {error}")))
    }

    /// A column of rows; there may be none.
    pub(super) fn list<'a, T: FromSql<'a>>(&'a self, column: &str) -> Done<Vec<T>> {
        Ok(self.get::<Option<Vec<T>>>(column)?.unwrap_or_default())
    }

    /// What the functions `follow` and `take_pen` say of the journal, so many rows at most.
    pub(super) fn tail(&self, known: Head, rows_max: usize) -> Done<Tail> {
        let base = Head {
            seq: count(self.get::<i64>("first_seq")? - 1),
            checksum: self.get::<i64>("checksum_before")?.cast_unsigned(),
        };
        let (firsts, lasts): (Vec<i64>, Vec<i64>) = (self.list("firsts")?, self.list("lasts")?);
        let (times, changes): (Vec<At>, Vec<Option<String>>) = (self.list("times")?, self.list("changes")?);
        let checksums: Vec<i64> = self.list("checksums")?;
        let numbers = firsts.into_iter().zip(lasts).zip(checksums);
        let rows = numbers.zip(times).zip(changes).map(|((((first, last), checksum), at), change)| TailRow {
            is_known: change.is_none(),
            row: ChangeRow {
                first: count(first),
                last: count(last),
                at: at.0,
                change: change.unwrap_or_default(),
                checksum: checksum.cast_unsigned(),
            },
        });
        let rows: Vec<TailRow> = rows.collect();
        Ok(Tail { known, base, is_whole: rows.len() < rows_max, rows })
    }
}

/// Reads the rows behind an entry, so many at a time, without the pen.
pub(super) async fn read(client: &Client, known: Head) -> Done<Tail> {
    read_rows(client, known, ROWS_MAX).await
}

/// The same, with another bound.
pub(super) async fn read_rows(client: &Client, known: Head, rows_max: usize) -> Done<Tail> {
    let sql = "SELECT * FROM follow($1, $2)";
    let row =
        client.query_typed_one(sql, &[(&signed(known.seq), Type::INT8), (&(rows_max as i64), Type::INT8)]).await?;
    Answer(row).tail(known, rows_max)
}

/// Fails if an entry is not the last of a commit in the journal: see [`Tail::check`].
pub(super) async fn check_entry(client: &Client, entry: Head) -> Done<()> {
    read_rows(client, entry, 1).await?.check()
}

impl Tail {
    #[cfg(test)]
    pub(super) fn rows(&self) -> usize {
        self.rows.len()
    }

    /// What was known has to be there still, and to be the same: if not, the server is another one than it was. What retention has
    /// let go cannot be looked for.
    pub(super) fn check(&self) -> Done<()> {
        let (known, base) = (self.known, self.base);
        let first = self.rows.first().map(|it| &it.row).filter(|row| row.first <= known.seq);
        let found = first.map_or(base, |row| Head { seq: row.last, checksum: row.checksum });
        if found == known {
            Ok(())
        } else if known.seq < base.seq {
            Err(Fault::Behind(known.seq))
        } else {
            Err(Fault::Lost(known.seq))
        }
    }
}

impl Known {
    /// Takes in what was written behind an entry that was known; some of it may be known meanwhile.
    pub(super) fn take_in(&mut self, tail: &Tail) -> Done<()> {
        tail.check()?;
        for TailRow { row, is_known } in &tail.rows {
            if *is_known || row.last <= self.head.seq {
                continue;
            }
            self.state.follow_all(&row.bare_entries()?)?;
            self.head = Head { seq: row.last, checksum: row.checksum };
        }
        Ok(())
    }

    /// What was decided is not committed, as far as is known. If it was after all, it comes back with the journal.
    pub(super) fn take_back(&mut self) {
        if let Some(undo) = self.undo.take() {
            self.state.undo(undo);
        }
    }
}

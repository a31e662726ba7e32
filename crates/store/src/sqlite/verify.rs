//! Verifying: what the journal adds up to, against what the snapshot and the history say.
//!
//! One state of the database is read from end to end, on a connection and a thread of its own: beside a running server, or
//! on a file that nobody serves.

use std::path::Path;

use punctual_core::journal::Entry;
use rusqlite::{Connection, OptionalExtension, params};
use tokio::sync::oneshot;

use super::SqliteStore;
use super::fault::{Done, Fault, Severity};
use super::journal::{read_first, read_head, rows_after};
use super::lock::noted_beside;
use super::open::{connect_to_read, lost};
use super::readers::{in_one_state, read_error};
use super::snapshot::{BASE, SNAPSHOT, snapshot_seq};
use super::sums;
use super::values::{At, Id, count, signed};
use crate::error::{Result, StoreError};
use crate::journal_rows::Chain;
use crate::requests::Head;
use crate::sums::Sums;
use punctual_kernel::compare::{differences, told};
use punctual_kernel::state::State;

impl SqliteStore {
    pub(super) async fn verify_all(&self) -> Result<Vec<String>> {
        const DOING: &str = "verifying the database";
        let path = self.path.clone();
        let (reply, answer) = oneshot::channel();
        let work = move || drop(reply.send(verify(&path)));
        let failed = |source| StoreError::Database { doing: DOING, source };
        std::thread::Builder::new()
            .name("sqlite-verify".to_owned())
            .spawn(work)
            .map_err(|error| failed(error.into()))?;
        let found = answer.await.map_err(|_| failed("a panic".into()))?;
        found.map_err(|fault| read_error(fault, DOING))
    }
}

/// Everything that is wrong with a database, in words.
pub(super) fn verify(path: &Path) -> Done<Vec<String>> {
    let mut found = vec![];
    // Noted before the state is chosen that is read: a server may go on meanwhile.
    let noted = noted_beside(path);
    let read = connect_to_read(path).and_then(|connection| in_one_state(&connection, |it| look(it, noted, &mut found)));
    match read {
        Ok(()) => Ok(told(found)),
        // What cannot be read is wrong, too.
        Err(fault) if fault.severity() == Severity::Fatal && !is_io(&fault) => {
            found.push(fault.to_string());
            Ok(found)
        }
        Err(fault) => Err(fault),
    }
}

fn is_io(fault: &Fault) -> bool {
    matches!(fault, Fault::Sql(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::SystemIoFailure))
}

fn look(connection: &Connection, noted: Option<Head>, found: &mut Vec<String>) -> Done<()> {
    check_pages(connection, found)?;
    let head = read_head(connection)?;
    found.extend(noted.and_then(|noted| lost(head, noted)));
    if !found.is_empty() {
        return Ok(());
    }
    fold(connection, head, found)
}

fn check_pages(connection: &Connection, found: &mut Vec<String>) -> Done<()> {
    let mut statement = connection.prepare("PRAGMA integrity_check")?;
    let lines = statement.query_map([], |row| row.get::<_, String>(0))?;
    for line in lines {
        let line = line?;
        if line != "ok" {
            found.push(format!("the file: {line}"));
        }
    }
    let mut statement = connection.prepare("PRAGMA foreign_key_check")?;
    let broken = statement.query_map([], |row| row.get::<_, String>(0))?.count();
    if 0 < broken {
        found.push(format!("{broken} rows refer to rows that are not there"));
    }
    Ok(())
}

/// Follows the chain of checksums and folds the entries onto the base. Where the snapshot stands, it must be what they come to;
/// and what is history must have its row.
fn fold(connection: &Connection, head: Head, found: &mut Vec<String>) -> Done<()> {
    let first = read_first(connection)?;
    let at = snapshot_seq(connection)?;
    let snapshot = SNAPSHOT.world(connection, at)?;
    let mut state = State::new(BASE.world(connection, first.seq)?);
    if at < first.seq || head.seq < at {
        found.push(format!("the snapshot is of entry {at}, and the journal has {} to {}", first.seq + 1, head.seq));
    }
    if state.seq() == at {
        found.extend(differences(state.world(), &snapshot));
    }
    let (mut marks, mut subjects, mut summed) = (0, 0, Sums::default());
    let mut chain = Chain(first);
    let mut wrong = None;
    rows_after(connection, first.seq, |row| {
        if let Err(what) = chain.check(row) {
            wrong = Some(what);
            return Ok(false);
        }
        for entry in row.entries()? {
            if let Err(error) = state.follow(&entry) {
                wrong = Some(format!("entry {} of the journal cannot have happened: {error}", entry.seq));
                return Ok(false);
            }
            marks += u64::from(check_history(connection, &entry, found)?);
            if let Some(mark) = entry.body.mark(entry.at).filter(|_| entry.seq <= at) {
                summed.count(entry.body.schedule().map(|id| id.0), &mark);
            }
            subjects += u64::from(check_subject(connection, &entry, found)?);
            if entry.seq == at {
                found.extend(differences(state.world(), &snapshot));
            }
        }
        Ok(true)
    })?;
    let is_whole = wrong.is_none();
    if is_whole {
        found.extend(summed.differences(&sums::read_all(connection)?));
    }
    found.extend(wrong.or_else(|| chain.check_head(head).err()));
    for (table, entries) in [("history", marks), ("subjects", subjects)] {
        let sql = format!("SELECT count(*) FROM {table}");
        let rows = count(connection.query_row(&sql, [], |row| row.get(0))?);
        if is_whole && entries < rows {
            found.push(format!("the table {table} has {rows} rows, and the journal {entries} entries for it"));
        }
    }
    Ok(())
}

/// Whether an entry is found by what it is about. Whether it should be.
fn check_subject(connection: &Connection, entry: &Entry, found: &mut Vec<String>) -> Done<bool> {
    let Some(subject) = entry.body.subject() else { return Ok(false) };
    let sql = "SELECT 1 FROM subjects WHERE subject = ?1 AND seq = ?2";
    if !connection.prepare_cached(sql)?.exists(params![Id(subject), signed(entry.seq)])? {
        found.push(format!("entry {} is not found by what it is about", entry.seq));
    }
    Ok(true)
}

/// Whether an entry has the row of history that it should. Whether it should have one.
fn check_history(connection: &Connection, entry: &Entry, found: &mut Vec<String>) -> Done<bool> {
    let Some(mark) = entry.body.mark(entry.at) else { return Ok(false) };
    let sql =
        "SELECT run_id, schedule_id, verdict, is_final, agent, project, shown_at, duration_ms, late_ms, tokens, cost_micros
        FROM history WHERE seq = ?1";
    let is_same = connection.prepare_cached(sql)?.query_row([signed(entry.seq)], |row| {
        let id = |column| Ok::<_, rusqlite::Error>(row.get::<_, Option<Id>>(column)?.map(|id| id.0));
        let number = |column| Ok::<_, rusqlite::Error>(row.get::<_, Option<i64>>(column)?.map(i64::cast_unsigned));
        Ok(id(0)? == entry.body.run().map(|id| id.0)
            && id(1)? == entry.body.schedule().map(|id| id.0)
            && row.get::<_, String>(2)? == mark.verdict.as_str()
            && row.get::<_, bool>(3)? == mark.is_final
            && row.get::<_, String>(4)? == mark.agent
            && row.get::<_, Option<String>>(5)?.as_deref() == mark.project
            && row.get::<_, At>(6)?.0 == mark.shown_at
            && (number(7)?, number(8)?) == (mark.duration_ms, mark.late_ms)
            && (number(9)?, number(10)?) == (mark.tokens, mark.cost_micros))
    });
    match is_same.optional()? {
        Some(true) => {}
        Some(false) => found.push(format!("the history of entry {} is another than the entry", entry.seq)),
        None => found.push(format!("entry {} is missing in the history", entry.seq)),
    }
    Ok(true)
}

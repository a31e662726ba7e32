//! Verifying: what the journal adds up to, against what the rows say, and everything that follows from rows.
//!
//! One state of the database is read from end to end, on a connection and a thread of its own: beside a running server, or
//! on a file that nobody serves.

use std::path::Path;

use punctual_core::journal::{Body, World};
use rusqlite::{Connection, Row};
use tokio::sync::oneshot;

use super::SqliteStore;
use super::fault::{Done, Fault, Severity};
use super::journal::read_entry;
use super::load;
use super::lock::noted_beside;
use super::open::{connect_to_read, lost};
use super::readers::{in_one_state, read_error};
use super::session::read_head;
use super::values::{Id, count};
use crate::chain::Chain;
use crate::error::{Result, StoreError};
use crate::requests::Head;
use punctual_kernel::compare::{differences, told};
use punctual_kernel::fold::Fold;

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
    let (head, _) = read_head(connection)?;
    found.extend(noted.and_then(|noted| lost(head, noted)));
    if !found.is_empty() {
        return Ok(());
    }
    let folded = fold(connection, found)?;
    let rows = load::read_world(connection, "SELECT * FROM runs")?;
    found.extend(folded.iter().flat_map(|folded| differences(folded, &rows)));
    Ok(())
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

/// Follows the chain of checksums and folds the entries. No world if they cannot be folded.
fn fold(connection: &Connection, found: &mut Vec<String>) -> Done<Option<World>> {
    let (head, _) = read_head(connection)?;
    let (first, before): (i64, i64) =
        connection
            .query_row("SELECT first_seq, checksum_before FROM head", [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut chain = Chain { seq: count(first) - 1, checksum: before.cast_unsigned() };
    let mut folded = Fold::beginning_at(count(first));
    let sql = "SELECT seq, at, body, checksum, kind, schedule_id, run_id FROM journal WHERE ?1 <= seq ORDER BY seq";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([first])?;
    while let Some(row) = rows.next()? {
        let entry = read_entry(row)?;
        if let Err(what) = chain.check(&entry) {
            found.push(what);
            return Ok(None);
        }
        let entry = entry.into_entry()?;
        if !is_indexed_as(&entry.body, row)? {
            found.push(format!("entry {} of the journal is indexed as another", entry.seq));
        }
        if let Err(error) = folded.apply(&entry) {
            found.push(format!("entry {} of the journal cannot have happened: {error}", entry.seq));
            return Ok(None);
        }
    }
    if let Err(what) = chain.check_head(head) {
        found.push(what);
    }
    Ok(Some(folded.into_world()))
}

fn is_indexed_as(body: &Body, row: &Row<'_>) -> Done<bool> {
    let (schedule, run) = (row.get::<_, Option<Id>>(5)?, row.get::<_, Option<Id>>(6)?);
    Ok(row.get::<_, String>(4)? == body.kind()
        && schedule.map(|id| id.0) == body.schedule().map(|id| id.0)
        && run.map(|id| id.0) == body.run().map(|id| id.0))
}

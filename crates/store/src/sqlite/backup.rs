//! Backup and restore: a copy of one state of the database, made while it is in use, and put back.

use std::fs::File;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};

use super::SqliteStore;
use super::fault::{Done, Fault};
use super::lock::{Lock, beside};
use super::migrate::{self, MIGRATIONS};
use super::open::connect_to_read;
use super::session::Session;
use super::verify::verify;
use crate::error::{Result, StoreError};

/// The pages that are copied at once: progress is told between two steps.
const PAGES_AT_ONCE: i32 = 1_024;

impl SqliteStore {
    /// Writes a copy of the database, as it is now, to a file that does not exist yet.
    ///
    /// The server goes on meanwhile. `progress` gets the pages that are copied, and how many there are. The copy has its
    /// name only when it is whole, on the disk, and verified. Blocks: an async caller gives it a thread.
    pub fn backup(&self, to: impl AsRef<Path>, progress: impl FnMut(u64, u64)) -> Result<()> {
        backup(&self.path, to.as_ref(), progress).map_err(|fault| fault.while_doing("making a backup"))
    }
}

/// What to put back, and where.
#[derive(Debug, Clone)]
pub struct Restore {
    /// The copy.
    pub from: PathBuf,
    /// The database that it becomes.
    pub to: PathBuf,
    /// The time.
    pub now: Timestamp,
    /// Whether a database that is there is replaced; it is kept under the name with `.replaced` behind it.
    pub overwrites: bool,
}

/// Puts a copy back as the database that nobody serves.
///
/// Whoever held a run before the copy was made holds it no more: the epoch floor is raised, and the runs of all nodes are
/// taken away from them. What was due since then is an outage to the server that starts next. Blocks.
pub fn restore(restore: &Restore, progress: impl FnMut(u64, u64)) -> Result<()> {
    try_restore(restore, progress).map_err(|fault| fault.while_doing("restoring a backup"))
}

fn backup(from: &Path, to: &Path, progress: impl FnMut(u64, u64)) -> Done<()> {
    if to.exists() {
        return Err(Fault::other(format!("{} exists already", to.display())));
    }
    let part = fresh_part(to)?;
    copy(from, &part, progress)?;
    refuse_differences(&part)?;
    sync(&part)?;
    // A link, unlike a rename, does not replace what somebody else has put there in the meantime.
    std::fs::hard_link(&part, to).map_err(Fault::other)?;
    std::fs::remove_file(&part).map_err(Fault::other)?;
    sync_folder(to)
}

fn try_restore(restore: &Restore, progress: impl FnMut(u64, u64)) -> Done<()> {
    let Restore { from, to, now, overwrites } = restore;
    let lock = Lock::take(to)?;
    if to.exists() && !overwrites {
        return Err(Fault::other(format!("{} exists already", to.display())));
    }
    let part = fresh_part(to)?;
    copy(from, &part, progress)?;
    refuse_differences(&part)?;
    begin_anew(&part, *now)?;
    refuse_differences(&part)?;
    put_in_place(&lock, &part, to)
}

/// Makes a file the database; one that is there stays under another name.
pub(super) fn put_in_place(lock: &Lock, part: &Path, to: &Path) -> Done<()> {
    sync(part)?;
    // A write-ahead log must never lie beside another database than its own.
    for suffix in ["", "-wal", "-shm"] {
        let old = beside(to, suffix);
        if old.exists() {
            std::fs::rename(&old, beside(&beside(to, ".replaced"), suffix)).map_err(Fault::other)?;
        }
    }
    lock.forget_head().map_err(Fault::other)?;
    std::fs::rename(part, to).map_err(Fault::other)?;
    sync_folder(to)
}

/// The name under which a copy is made, without what an earlier try has left there.
pub(super) fn fresh_part(to: &Path) -> Done<PathBuf> {
    let part = beside(to, ".part");
    for suffix in ["", "-wal", "-shm", "-journal"] {
        match std::fs::remove_file(beside(&part, suffix)) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(Fault::other(error)),
        }
    }
    Ok(part)
}

/// Copies one state of a database to a file, which then needs no write-ahead log.
fn copy(from: &Path, to: &Path, mut progress: impl FnMut(u64, u64)) -> Done<()> {
    if !from.exists() {
        return Err(StoreError::NotFound { what: "the database", id: from.display().to_string() }.into());
    }
    let source = connect_to_read(from)?;
    // As long as this transaction lasts, the source stays as it is, and the copy need not begin again.
    let state = source.unchecked_transaction()?;
    let _: i64 = state.query_row("SELECT seq FROM head", [], |row| row.get(0))?;
    create_private(to)?;
    let mut copy = Connection::open_with_flags(to, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let backup = Backup::new(&state, &mut copy)?;
    loop {
        let step = backup.step(PAGES_AT_ONCE)?;
        let at = backup.progress();
        progress((at.pagecount - at.remaining).max(0) as u64, at.pagecount.max(0) as u64);
        match step {
            StepResult::Done => break,
            StepResult::More => {}
            other => return Err(Fault::other(format!("the copy came to a halt: {other:?}"))),
        }
    }
    drop(backup);
    copy.pragma_update_and_check(None, "journal_mode", "DELETE", |_| Ok(()))?;
    copy.close().map_err(|(_, error)| error)?;
    Ok(())
}

pub(super) fn create_private(path: &Path) -> Done<()> {
    use std::os::unix::fs::OpenOptionsExt;
    let made = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    made.map(drop).map_err(Fault::other)
}

pub(super) fn refuse_differences(path: &Path) -> Done<()> {
    let found = verify(path)?;
    match found.first() {
        None => Ok(()),
        Some(first) if found.len() == 1 => Err(Fault::damaged(first)),
        Some(first) => Err(Fault::damaged(format!("{first}, and {} more", found.len() - 1))),
    }
}

/// Makes a copy fit to be served: nobody holds anything, and every epoch is higher than any that was given before.
fn begin_anew(path: &Path, now: Timestamp) -> Done<()> {
    let mut connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    migrate::migrate(&mut connection, MIGRATIONS)?;
    let mut session = Session::new(connection)?;
    session.connection.execute_batch("BEGIN IMMEDIATE")?;
    session.begin_anew(now)?;
    session.write_snapshot()?;
    session.connection.execute_batch("COMMIT")?;
    session.connection.close().map_err(|(_, error)| error)?;
    Ok(())
}

fn sync(path: &Path) -> Done<()> {
    File::open(path).and_then(|file| file.sync_all()).map_err(Fault::other)
}

/// A name is on the disk when its folder is.
fn sync_folder(path: &Path) -> Done<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    sync(folder)
}

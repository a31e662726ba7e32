//! Opening: the lock, the settings, the schema, and a first look at the end of the journal.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::fault::{Done, Fault};
use super::journal;
use super::lock::{Lock, beside};
use super::migrate::{self, MIGRATIONS};
use super::readers::{READERS, Readers};
use super::session::Session;
use super::writer::Writer;
use super::{Scratch, SqliteStore};
use crate::error::{Result, StoreError};
use crate::requests::Head;

/// The first release of SQLite in which a write-ahead log that is reset while another connection checkpoints cannot damage
/// the file.
const SQLITE_VERSION_MIN: i32 = 3_051_003;

/// How long a statement waits for another process that holds a lock: only a checkpoint or a recovery does, and not for long.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// The pages that the writer keeps in memory, in KiB.
const WRITER_CACHE_KIB: i64 = 64 * 1024;

/// The pages that each reader keeps in memory, in KiB.
const READER_CACHE_KIB: i64 = 8 * 1024;

/// The pages in the write-ahead log after which a commit empties it as far as it can.
const CHECKPOINT_PAGES: i64 = 1_000;

/// What is left of the write-ahead log's file after it has been emptied, in bytes.
const WAL_KEPT: i64 = 64 * 1024 * 1024;

/// Prepared statements that a connection keeps.
const STATEMENTS_KEPT: usize = 256;

/// The last entries whose checksums are looked at when a server starts; `verify` looks at all.
const ENTRIES_CHECKED: u64 = 1_000;

impl SqliteStore {
    /// Opens a database as its one server, and makes it if it is not there.
    ///
    /// Fails with [`StoreError::InUse`] while another server has it, with [`StoreError::NewerSchema`] if a newer release
    /// has written it, and with [`StoreError::Damaged`] if its end is not what was last acknowledged.
    pub fn open(path: impl AsRef<Path>) -> Result<SqliteStore> {
        open(path.as_ref(), Durability::Full, None).map_err(|fault| fault.while_doing("opening the database"))
    }

    /// Opens a database only to read it, beside its server or without one. Everything that writes fails.
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<SqliteStore> {
        open_read_only(path.as_ref()).map_err(|fault| fault.while_doing("opening the database"))
    }

    /// A fresh database that is gone when it is dropped: for tests. It is a file all the same, but is never synced.
    pub fn in_memory() -> Result<SqliteStore> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("punctual-{}-{count}", std::process::id()));
        let open = || {
            std::fs::create_dir_all(&folder).map_err(Fault::other)?;
            open(&folder.join("punctual.db"), Durability::None, Some(Scratch(folder.clone())))
        };
        open().map_err(|fault| fault.while_doing("opening the database"))
    }
}

/// What a commit waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Durability {
    /// The disk.
    Full,
    /// Nothing.
    None,
}

fn open(path: &Path, durability: Durability, scratch: Option<Scratch>) -> Done<SqliteStore> {
    check_library()?;
    let lock = Arc::new(Lock::take(path)?);
    create(path)?;
    refuse_network(path)?;
    let mut connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | FLAGS)?;
    set_up(&connection, WRITER_CACHE_KIB)?;
    let mode: String = connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    if mode != "wal" {
        return Err(Fault::other(format!("the file system has no shared memory: the journal mode is {mode}, not wal")));
    }
    let synchronous = if durability == Durability::Full { "FULL" } else { "OFF" };
    connection.pragma_update(None, "synchronous", synchronous)?;
    connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
    connection.pragma_update_and_check(None, "journal_size_limit", WAL_KEPT, |_| Ok(()))?;
    migrate::migrate(&mut connection, MIGRATIONS)?;
    let session = Session::new(connection)?;
    journal::check_end(&session.connection, ENTRIES_CHECKED)?;
    check_noted(&session, &lock)?;
    lock.note_head(session.head);
    let readers = start_readers(path)?;
    let writer = Writer::start(session, beside(path, "-wal"), lock).map_err(Fault::other)?;
    Ok(SqliteStore {
        writer: Arc::new(writer),
        is_server: true,
        looks: None,
        readers,
        long_readers: None,
        path: path.to_owned(),
        _scratch: scratch.map(Arc::new),
    })
}

fn open_read_only(path: &Path) -> Done<SqliteStore> {
    check_library()?;
    if !path.exists() {
        return Err(StoreError::NotFound { what: "the database", id: path.display().to_string() }.into());
    }
    let readers = start_readers(path)?;
    let connection = connect_to_read(path)?;
    // Everything is read in one state of the file.
    connection.execute_batch("BEGIN")?;
    let session = Session::new(connection)?;
    session.connection.execute_batch("COMMIT")?;
    let writer = Writer::start_reading(session).map_err(Fault::other)?;
    Ok(SqliteStore {
        writer: Arc::new(writer),
        is_server: false,
        looks: None,
        readers,
        long_readers: None,
        path: path.to_owned(),
        _scratch: None,
    })
}

const FLAGS: OpenFlags = OpenFlags::SQLITE_OPEN_NO_MUTEX;

fn start_readers(path: &Path) -> Done<Arc<Readers>> {
    let connections = (0..READERS).map(|_| connect_to_read(path)).collect::<Done<Vec<Connection>>>()?;
    Ok(Arc::new(Readers::start(connections, None)?))
}

/// A connection that can only read, to a database whose schema is the one that this binary knows.
pub(super) fn connect_to_read(path: &Path) -> Done<Connection> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY | FLAGS)?;
    set_up(&connection, READER_CACHE_KIB)?;
    let version = migrate::check_version(&connection, MIGRATIONS)?;
    if version < MIGRATIONS.len() {
        let text = format!("the database has schema {version}, which is older than this binary: start its server once");
        return Err(Fault::other(text));
    }
    Ok(connection)
}

fn set_up(connection: &Connection, cache_kib: i64) -> Done<()> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.pragma_update_and_check(None, "mmap_size", 0, |_| Ok(())).or_else(no_answer)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "cache_size", -cache_kib)?;
    Ok(())
}

/// A build without memory mapping does not even answer.
fn no_answer(error: rusqlite::Error) -> rusqlite::Result<()> {
    if error == rusqlite::Error::QueryReturnedNoRows { Ok(()) } else { Err(error) }
}

fn check_library() -> Done<()> {
    if SQLITE_VERSION_MIN <= rusqlite::version_number() {
        return Ok(());
    }
    let text =
        format!("SQLite {} is linked, and may damage files; 3.51.3 is the first that does not", rusqlite::version());
    Err(Fault::other(text))
}

/// Makes the file, for its owner's eyes only. SQLite gives its helpers the same rights.
fn create(path: &Path) -> Done<()> {
    let made = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path);
    made.map(drop).map_err(|error| Fault::other(format!("{}: {error}", path.display())))
}

/// What an earlier server saw committed must be there.
fn check_noted(session: &Session, lock: &Lock) -> Done<()> {
    match lock.noted_head().and_then(|noted| lost(session.head, noted)) {
        None => Ok(()),
        Some(what) => Err(Fault::damaged(what)),
    }
}

/// What is lost if the journal ends with `head`, while `noted` had been committed.
pub(super) fn lost(head: Head, noted: Head) -> Option<String> {
    (head.seq < noted.seq).then(|| {
        format!(
            "the journal ends with entry {}, but entry {} had been committed: the write-ahead log is damaged, or was \
             left behind when the file was copied",
            head.seq, noted.seq
        )
    })
}

/// File systems on which locks or shared memory do not do what SQLite needs.
#[cfg(target_os = "linux")]
const NETWORK: &[(u64, &str)] = &[
    (0x6969, "NFS"),
    (0x517b, "SMB"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB2"),
    (0x5346_414f, "AFS"),
    (0x00c3_6400, "Ceph"),
    (0x0bd0_0bd0, "Lustre"),
    (0x0102_1997, "9P"),
];

/// FUSE: it may be anything, local or not.
#[cfg(target_os = "linux")]
const FUSE: u64 = 0x6573_5546;

#[cfg(target_os = "linux")]
fn refuse_network(path: &Path) -> Done<()> {
    let file = File::open(path).map_err(Fault::other)?;
    let Ok(system) = rustix::fs::fstatfs(&file) else { return Ok(()) };
    let kind = u64::from(system.f_type.cast_unsigned() as u32);
    if let Some((_, name)) = NETWORK.iter().find(|(magic, _)| *magic == kind) {
        let text = format!("{} is on {name}: keep it on a local disk, or use PostgreSQL", path.display());
        return Err(Fault::other(text));
    }
    if kind == FUSE {
        tracing::warn!(file = %path.display(), "the database is on a FUSE file system: it must be a local one");
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn refuse_network(_path: &Path) -> Done<()> {
    Ok(())
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let Scratch(folder) = self;
        // What is left of a test's folder harms nobody.
        drop(std::fs::remove_dir_all(PathBuf::from(&*folder)));
    }
}

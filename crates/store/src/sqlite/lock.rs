//! The lock beside the file: one server at a time, and how far the journal was known to go.
//!
//! The kernel lets go of the lock when the process dies, however that happens. What stands in the file is for people, and
//! for the next server: the last entry that was committed. SQLite takes a write-ahead log that ends too early for one that
//! was cut off by a crash; that a committed entry is gone shows only here.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rustix::fs::FlockOperation;

use super::fault::{Done, Fault};
use crate::error::StoreError;
use crate::requests::Head;

/// A lock that is held.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
}

/// Where the second line begins: the first is filled up with spaces.
const HEAD_OFFSET: u64 = 64;

/// The path of the file with something behind its name.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}

impl Lock {
    /// Takes the lock, or says who has it.
    pub(super) fn take(path: &Path) -> Done<Lock> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(beside(path, ".lock"))
            .map_err(Fault::other)?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let holder = holder(&file);
                return Err(StoreError::InUse { file: path.display().to_string(), holder }.into());
            }
            Err(error) => return Err(Fault::other(std::io::Error::from(error))),
        }
        let lock = Lock { file };
        lock.sign().map_err(Fault::other)?;
        Ok(lock)
    }

    /// Writes who has it, and since when: the time is the one that the file system gives to the writing.
    fn sign(&self) -> std::io::Result<()> {
        let pid = std::process::id();
        self.write_line(&format!("pid {pid}"))?;
        let since = self.file.metadata()?.modified()?;
        let since = Timestamp::try_from(since).unwrap_or_default().as_second();
        self.write_line(&format!("pid {pid}, since {}", Timestamp::from_second(since).unwrap_or_default()))
    }

    fn write_line(&self, text: &str) -> std::io::Result<()> {
        let width = HEAD_OFFSET as usize - 1;
        self.file.write_all_at(format!("{text:width$}\n").as_bytes(), 0)
    }

    /// Notes the last entry that was committed. Not synced: what is older than the truth is still true.
    pub(super) fn note_head(&self, head: Head) {
        let text = format!("head {:016x} {:016x}\n", head.seq, head.checksum);
        if let Err(error) = self.file.write_all_at(text.as_bytes(), HEAD_OFFSET) {
            tracing::debug!(%error, "the last entry could not be noted beside the database");
        }
    }

    /// Forgets it: the file is another one now.
    pub(super) fn forget_head(&self) -> std::io::Result<()> {
        self.file.set_len(HEAD_OFFSET)
    }

    /// The last entry that an earlier server has noted, if that can be read.
    pub(super) fn noted_head(&self) -> Option<Head> {
        read_noted(&self.file)
    }
}

/// The last entry that a server has noted beside its database, also while it runs.
pub(super) fn noted_beside(path: &Path) -> Option<Head> {
    read_noted(&File::open(beside(path, ".lock")).ok()?)
}

fn read_noted(file: &File) -> Option<Head> {
    let mut text = [0; 38];
    file.read_exact_at(&mut text, HEAD_OFFSET).ok()?;
    let text = std::str::from_utf8(&text).ok()?.strip_prefix("head ")?;
    let (seq, checksum) = text.trim_end().split_once(' ')?;
    let number = |digits: &str| u64::from_str_radix(digits, 16).ok();
    Some(Head { seq: number(seq)?, checksum: number(checksum)? })
}

/// Who has the lock, and since when, as far as the file tells.
fn holder(file: &File) -> String {
    let mut line = [0; HEAD_OFFSET as usize];
    let read = file.read_at(&mut line, 0).unwrap_or(0);
    let text = String::from_utf8_lossy(&line[..read]);
    let signed = text.trim();
    if signed.is_empty() { String::new() } else { format!(" ({signed})") }
}

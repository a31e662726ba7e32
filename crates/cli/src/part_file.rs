//! Files that have their name only when they are whole, and that no other user can read or lead elsewhere.

use std::fs::File;
use std::io::{ErrorKind, Result};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A file that is being written, beside its place and under a name that nobody can guess. It is gone if it is dropped.
#[derive(Debug)]
pub(crate) struct PartFile {
    pub(crate) file: File,
    path: PathBuf,
    to: PathBuf,
}

impl PartFile {
    /// Begins the file that is to be at `to`. Only the owner may read it, from the first moment on.
    pub(crate) fn create(to: &Path) -> Result<PartFile> {
        let path = to.with_added_extension(format!("{}.part", uuid::Uuid::now_v7().simple()));
        // What is there already, a link above all, is never opened.
        let file = File::options().write(true).create_new(true).mode(0o600).open(&path)?;
        Ok(PartFile { file, path, to: to.to_owned() })
    }

    /// Gives it its name once it is on the disk. Whether that was free: what is there is not replaced.
    pub(crate) fn put_new(self) -> Result<bool> {
        self.file.sync_all()?;
        match std::fs::hard_link(&self.path, &self.to) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Gives it its name once it is on the disk, in the place of what is there.
    pub(crate) fn replace(self) -> Result<()> {
        self.file.sync_all()?;
        std::fs::rename(&self.path, &self.to)
    }
}

impl Drop for PartFile {
    fn drop(&mut self) {
        // It is not there any more if it has its name.
        drop(std::fs::remove_file(&self.path));
    }
}

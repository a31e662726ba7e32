//! Files that decide where a token goes: read only if no other user can have written them.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;

/// An address or a token is a line.
const LENGTH_MAX: u64 = 4_096;

/// What other users may do with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Others {
    /// Read it.
    MayRead,
    /// Nothing.
    MayNothing,
}

impl Others {
    /// The permissions that they must not have.
    fn refused(self) -> u32 {
        match self {
            Others::MayRead => 0o022,
            Others::MayNothing => 0o077,
        }
    }
}

/// Reads a small file of this user's own, or says why it is not to be believed. `None` if there is no file.
pub(super) fn read(path: &Path, others: Others) -> Result<Option<String>, String> {
    let named = |problem: String| format!("{} {problem}", path.display());
    // A link leads to a file of somebody else's choosing, and a pipe would let us wait for ever.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
        Err(error) if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {
            return Err(named("is a symbolic link".to_owned()));
        }
        Err(error) => return Err(named(format!("cannot be read: {error}"))),
    };
    // What is checked is what is read: the file that is open, whatever has the name by now.
    check(&file, others).map_err(named)?;
    let mut text = String::new();
    match file.take(LENGTH_MAX).read_to_string(&mut text) {
        Ok(_) => Ok(Some(text.trim().to_owned())),
        Err(error) => Err(named(format!("cannot be read: {error}"))),
    }
}

fn check(file: &File, others: Others) -> Result<(), String> {
    let about = file.metadata().map_err(|error| format!("cannot be read: {error}"))?;
    let user = rustix::process::geteuid().as_raw();
    if !about.is_file() {
        return Err("is no ordinary file".to_owned());
    }
    if about.uid() != user {
        return Err(format!("belongs to another user (user {}, and this is user {user})", about.uid()));
    }
    let mode = about.mode() & 0o777;
    if mode & others.refused() != 0 {
        let problem = if mode & 0o022 != 0 { "can be written" } else { "can be read" };
        return Err(format!("{problem} by others (mode {mode:03o}); `chmod 600` makes it yours alone"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn only_a_file_that_nobody_else_can_write_is_believed() {
        let folder = std::env::temp_dir().join(format!("punctual-own-file-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("file");
        assert_eq!(read(&path, Others::MayRead), Ok(None));
        fs::write(&path, " a line\n").unwrap();
        for (mode, readable, private) in
            [(0o600, true, true), (0o644, true, false), (0o660, false, false), (0o606, false, false)]
        {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            for (others, is_good) in [(Others::MayRead, readable), (Others::MayNothing, private)] {
                let found = read(&path, others);
                assert_eq!(found.is_ok(), is_good, "{mode:o} {others:?}: {found:?}");
                assert!(found.is_ok() || found.as_ref().is_err_and(|text| text.contains("chmod 600")), "{found:?}");
            }
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let link = folder.join("link");
        symlink(&path, &link).unwrap();
        assert!(read(&link, Others::MayRead).unwrap_err().contains("symbolic link"));
        assert!(read(&folder, Others::MayRead).unwrap_err().contains("no ordinary file"));
        // Only the superuser can give a file away.
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&path, Some(12_345), None).unwrap();
            assert!(read(&path, Others::MayRead).unwrap_err().contains("another user (user 12345"));
        }
        fs::remove_dir_all(&folder).ok();
    }
}

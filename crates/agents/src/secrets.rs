//! Secrets: named in the configuration, kept elsewhere, and read when they are needed.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The longest value that is read from a file.
const SECRET_MAX: u64 = 64 * 1024;

/// Where the value of a secret is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretSource {
    /// In a variable of the server's environment.
    Env(String),
    /// In a file that only the server's user can read.
    File(PathBuf),
}

impl SecretSource {
    /// The value as it is now.
    pub(crate) fn read(&self) -> io::Result<String> {
        match self {
            SecretSource::Env(name) => std::env::var(name).map_err(|_| {
                io::Error::new(io::ErrorKind::NotFound, format!("the server was started without the variable {name}"))
            }),
            SecretSource::File(path) => read_file(path),
        }
    }
}

fn read_file(path: &Path) -> io::Result<String> {
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    let file = File::open(path).map_err(named)?;
    if file.metadata().map_err(named)?.mode() & 0o077 != 0 {
        let problem = format!("{}: others can read it; `chmod 600` keeps it a secret", path.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, problem));
    }
    let mut text = String::new();
    file.take(SECRET_MAX).read_to_string(&mut text).map_err(named)?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

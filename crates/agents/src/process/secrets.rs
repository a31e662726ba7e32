//! Secrets: named in the configuration, kept elsewhere, and read when the work begins.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::agent::ProcessAgent;
use super::protocol::Refusal;
use super::redact::Secrets;

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

/// The secrets of an agent as they are now, by the variables that the work gets them in, and what hides them.
pub(super) fn read(agent: &ProcessAgent) -> Result<(Vec<(String, String)>, Secrets), Refusal> {
    let (mut values, mut secrets) = (vec![], Secrets::default());
    for (name, source) in &agent.secrets {
        let value = source.read().map_err(|error| Refusal::new(format!("read the secret {name}"), error))?;
        secrets.hide(name, &value);
        values.push((name.clone(), value));
    }
    for name in agent.env_pass.iter().filter(|name| is_telling(name)) {
        if let Ok(value) = std::env::var(name) {
            secrets.hide(name, &value);
        }
    }
    Ok((values, secrets))
}

/// Whether the name of a variable says that its value is a secret.
fn is_telling(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL"].iter().any(|word| name.contains(word))
}

impl SecretSource {
    fn read(&self) -> io::Result<String> {
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

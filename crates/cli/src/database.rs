//! Which database a command is about.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::Context;
use clap::Args;
use punctual_store::sqlite::SqliteStore;

/// The database, as every command takes it.
#[derive(Debug, Clone, Args)]
pub(crate) struct DatabaseArgs {
    /// Where everything is kept
    #[arg(long, value_name = "ADDRESS", default_value = "sqlite:punctual.db", env = "PUNCTUAL_DATABASE")]
    pub(crate) database: Database,
}

/// The address of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Database {
    /// A file.
    Sqlite(PathBuf),
}

impl FromStr for Database {
    type Err = String;

    fn from_str(text: &str) -> Result<Database, String> {
        let path = match text.split_once(':') {
            Some(("sqlite", path)) => path.strip_prefix("//").unwrap_or(path),
            Some(("postgres" | "postgresql", _)) => {
                return Err("PostgreSQL comes with a later release; use sqlite:FILE".to_owned());
            }
            _ => {
                return Err(format!(
                    "{text:?} is not the address of a database; use sqlite:FILE, like sqlite:punctual.db"
                ));
            }
        };
        if path.is_empty() {
            return Err("the file has no name; use sqlite:FILE, like sqlite:punctual.db".to_owned());
        }
        Ok(Database::Sqlite(path.into()))
    }
}

impl DatabaseArgs {
    /// The file.
    pub(crate) fn path(&self) -> &Path {
        let Database::Sqlite(path) = &self.database;
        path
    }

    /// Opens it to look at, beside a server or without one.
    pub(crate) fn read(&self) -> anyhow::Result<SqliteStore> {
        let path = self.path();
        anyhow::ensure!(
            path.exists(),
            "{} does not exist: `punctual up` makes it, or name another with --database",
            path.display()
        );
        SqliteStore::open_read_only(path).with_context(|| format!("opening {}", path.display()))
    }
}

/// Waits for what a store is asked.
pub(crate) fn wait<T>(future: impl Future<Output = T>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("starting a runtime")?;
    Ok(runtime.block_on(future))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_scheme_and_a_file() {
        assert_eq!("sqlite:a.db".parse(), Ok(Database::Sqlite("a.db".into())));
        assert_eq!("sqlite:///tmp/a.db".parse(), Ok(Database::Sqlite("/tmp/a.db".into())));
        for wrong in ["a.db", "sqlite:", "postgres://localhost/a", "mysql://x", ""] {
            let refused = wrong.parse::<Database>().unwrap_err();
            assert!(refused.contains("use sqlite:FILE"), "{wrong}: {refused}");
        }
    }
}

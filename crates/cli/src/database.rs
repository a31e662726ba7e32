//! Which database a command is about.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use punctual_store::Store;
use punctual_store::postgres::PostgresStore;
use punctual_store::sqlite::SqliteStore;

/// The database, as every command takes it.
#[derive(Debug, Clone, Args)]
pub(crate) struct DatabaseArgs {
    /// Where everything is kept: sqlite:FILE or postgres://USER:PASSWORD@HOST:PORT/DATABASE
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "sqlite:punctual.db",
        env = "PUNCTUAL_DATABASE",
        hide_env_values = true
    )]
    pub(crate) database: Database,
}

/// The address of a database. What it shows has no password in it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Database {
    /// A file.
    Sqlite(PathBuf),
    /// A server, by its address.
    Postgres(String),
}

impl FromStr for Database {
    type Err = String;

    fn from_str(text: &str) -> Result<Database, String> {
        let path = match text.split_once(':') {
            Some(("sqlite", path)) => path.strip_prefix("//").unwrap_or(path),
            Some(("postgres" | "postgresql", _)) => return Ok(Database::Postgres(text.to_owned())),
            _ => {
                return Err(format!(
                    "{text:?} is not the address of a database; use sqlite:FILE, like sqlite:punctual.db, or \
                     postgres://USER@HOST/DATABASE"
                ));
            }
        };
        if path.is_empty() {
            return Err("the file has no name; use sqlite:FILE, like sqlite:punctual.db".to_owned());
        }
        Ok(Database::Sqlite(path.into()))
    }
}

impl fmt::Display for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Database::Sqlite(path) => write!(f, "{}", path.display()),
            Database::Postgres(address) => f.write_str(&without_secrets(address)),
        }
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Database({self})")
    }
}

/// An address without its password and its parameters, one of which may be a password, too.
fn without_secrets(address: &str) -> String {
    let address = address.split_once('?').map_or(address, |(front, _)| front);
    let Some((scheme, rest)) = address.split_once("://") else { return address.to_owned() };
    let Some((login, place)) = rest.rsplit_once('@') else { return address.to_owned() };
    let user = login.split_once(':').map_or(login, |(user, _)| user);
    format!("{scheme}://{user}@{place}")
}

/// A database that is served.
pub(crate) struct Served {
    /// For the engine.
    pub(crate) store: Arc<dyn Store>,
    /// The same for requests, which cannot take the engine's connections.
    pub(crate) for_api: Arc<dyn Store>,
}

impl DatabaseArgs {
    /// The file, for what only a file can have done to it.
    pub(crate) fn path(&self) -> anyhow::Result<&Path> {
        match &self.database {
            Database::Sqlite(path) => Ok(path),
            Database::Postgres(_) => {
                anyhow::bail!("this is for sqlite:FILE only")
            }
        }
    }

    /// The file that the token of whoever starts a server is kept in: beside a database that is a file, else in this folder.
    pub(crate) fn token_file(&self) -> PathBuf {
        self.beside("token")
    }

    /// The file that a running server keeps its address in, in the same place.
    pub(crate) fn server_file(&self) -> PathBuf {
        self.beside("server")
    }

    fn beside(&self, extension: &str) -> PathBuf {
        match &self.database {
            Database::Sqlite(path) => path.with_added_extension(extension),
            Database::Postgres(_) => Path::new("punctual").with_added_extension(extension),
        }
    }

    /// Opens it to serve it. Requests may read for so long.
    pub(crate) fn serve(&self, read_max: Duration) -> anyhow::Result<Served> {
        let opening = || format!("opening {}", self.database);
        match &self.database {
            Database::Sqlite(path) => {
                let store = SqliteStore::open(path).with_context(opening)?;
                let for_api = store.for_api(read_max).with_context(opening)?;
                Ok(Served { store: Arc::new(store), for_api: Arc::new(for_api) })
            }
            Database::Postgres(address) => {
                let store = PostgresStore::open(address).with_context(opening)?;
                store.warnings().iter().for_each(|warning| tracing::warn!("{warning}"));
                let for_api = store.for_api(read_max).with_context(opening)?;
                Ok(Served { store: Arc::new(store), for_api: Arc::new(for_api) })
            }
        }
    }

    /// Opens it to write without serving it.
    pub(crate) fn write(&self) -> anyhow::Result<Arc<dyn Store>> {
        let opening = || format!("opening {}", self.database);
        match &self.database {
            Database::Sqlite(path) => Ok(Arc::new(SqliteStore::open(path).with_context(opening)?)),
            Database::Postgres(address) => Ok(Arc::new(PostgresStore::open(address).with_context(opening)?)),
        }
    }

    /// Opens it to look at, beside a server or without one.
    pub(crate) fn read(&self) -> anyhow::Result<Arc<dyn Store>> {
        match &self.database {
            Database::Sqlite(_) => Ok(Arc::new(self.read_file()?)),
            Database::Postgres(address) => {
                let store = PostgresStore::open_to_read(address);
                Ok(Arc::new(store.with_context(|| format!("opening {}", self.database))?))
            }
        }
    }

    /// Opens a file to look at.
    pub(crate) fn read_file(&self) -> anyhow::Result<SqliteStore> {
        let path = self.path()?;
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
    fn an_address_is_a_scheme_and_a_place() {
        assert_eq!("sqlite:a.db".parse(), Ok(Database::Sqlite("a.db".into())));
        assert_eq!("sqlite:///tmp/a.db".parse(), Ok(Database::Sqlite("/tmp/a.db".into())));
        let address = "postgresql://ada@db.example:5433/punctual?sslmode=require";
        assert_eq!(address.parse(), Ok(Database::Postgres(address.to_owned())));
        for wrong in ["a.db", "sqlite:", "mysql://x", ""] {
            let refused = wrong.parse::<Database>().unwrap_err();
            assert!(refused.contains("use sqlite:FILE"), "{wrong}: {refused}");
        }
    }

    #[test]
    fn what_is_shown_of_an_address_has_no_password() {
        for (address, shown) in [
            ("postgres://ada:s3cret@db.example:5433/punctual", "postgres://ada@db.example:5433/punctual"),
            ("postgres://ada:p%40ss:word@db/x?password=s3cret&sslmode=require", "postgres://ada@db/x"),
            ("postgres://db.example/x", "postgres://db.example/x"),
        ] {
            let database: Database = address.parse().unwrap();
            assert_eq!(database.to_string(), shown);
            assert!(!format!("{database:?}").contains("s3cret"));
        }
    }
}

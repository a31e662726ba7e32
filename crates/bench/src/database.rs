//! Databases that are made for a measurement and removed after it. What the user names is only where: no data of theirs is touched.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, bail};
use punctual_store::Store;
use punctual_store::postgres::PostgresStore;
use punctual_store::sqlite::SqliteStore;
use tokio_postgres::{Client, Config, NoTls};

/// Where databases are made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// Beside this file, which need not exist.
    Sqlite(PathBuf),
    /// On the server with this address.
    Postgres(String),
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Place, String> {
        match text.split_once(':') {
            Some(("sqlite", path)) if !path.is_empty() => {
                Ok(Place::Sqlite(path.strip_prefix("//").unwrap_or(path).into()))
            }
            Some(("postgres" | "postgresql", _)) => Ok(Place::Postgres(text.to_owned())),
            _ => Err(format!(
                "{text:?} is not the address of a database; use sqlite:FILE or postgres://USER@HOST/DATABASE"
            )),
        }
    }
}

impl Place {
    /// What kind of database it is, for the report.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Place::Sqlite(_) => "sqlite",
            Place::Postgres(_) => "postgres",
        }
    }

    /// Makes a database of its own for a measurement.
    pub(crate) async fn fresh(&self) -> anyhow::Result<Scratch> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("bench_{}_{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let database = match self {
            Place::Sqlite(path) => {
                let folder = path.with_added_extension(&name);
                std::fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
                Database::Sqlite(folder.join("punctual.db"))
            }
            Place::Postgres(address) => {
                run_on(address, &format!("CREATE DATABASE {name}")).await?;
                Database::Postgres(with_database(address, &name)?)
            }
        };
        Ok(Scratch { place: self.clone(), name, database })
    }
}

/// A database that lives as long as its measurement.
pub(crate) struct Scratch {
    place: Place,
    name: String,
    /// Where it is.
    pub(crate) database: Database,
}

impl Scratch {
    /// Removes it. A measurement that failed leaves it behind, for whoever wants to look.
    pub(crate) async fn remove(self) -> anyhow::Result<()> {
        match (&self.place, &self.database) {
            (Place::Postgres(address), _) => {
                run_on(address, &format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name)).await
            }
            (_, Database::Sqlite(path)) => Ok(std::fs::remove_dir_all(path.parent().unwrap_or(Path::new(".")))?),
            (_, Database::Postgres(_)) => Ok(()),
        }
    }
}

/// One database.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Database {
    /// A file.
    Sqlite(PathBuf),
    /// An address.
    Postgres(String),
}

impl fmt::Display for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Database::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Database::Postgres(address) => f.write_str(address),
        }
    }
}

impl FromStr for Database {
    type Err = String;

    fn from_str(text: &str) -> Result<Database, String> {
        Ok(match text.parse()? {
            Place::Sqlite(path) => Database::Sqlite(path),
            Place::Postgres(address) => Database::Postgres(address),
        })
    }
}

impl Database {
    /// Opens it as the product does.
    pub(crate) async fn open(&self) -> anyhow::Result<Arc<dyn Store>> {
        let database = self.clone();
        // Opening waits for the disk or the network.
        let opened = tokio::task::spawn_blocking(move || -> anyhow::Result<Arc<dyn Store>> {
            Ok(match database {
                Database::Sqlite(path) => Arc::new(SqliteStore::open(path)?),
                Database::Postgres(address) => Arc::new(PostgresStore::open(&address)?),
            })
        });
        opened.await.context("opening the database")?
    }
}

/// A connection that nothing of Punctual knows of.
pub(crate) async fn connect(address: &str) -> anyhow::Result<Client> {
    let (client, connection) = tokio_postgres::connect(address, NoTls).await.context("connecting to PostgreSQL")?;
    tokio::spawn(connection);
    Ok(client)
}

async fn run_on(address: &str, sql: &str) -> anyhow::Result<()> {
    connect(address).await?.batch_execute(sql).await.with_context(|| sql.to_owned())
}

/// The address of another database of the same server. Its path is what names it; parameters stay.
fn with_database(address: &str, name: &str) -> anyhow::Result<String> {
    address.parse::<Config>().context("reading the address of PostgreSQL")?;
    let (front, parameters) = address.split_once('?').map_or((address, None), |(front, rest)| (front, Some(rest)));
    let Some((scheme, rest)) = front.split_once("://") else { bail!("{address:?} is no address of PostgreSQL") };
    let host = rest.split_once('/').map_or(rest, |(host, _)| host);
    let parameters = parameters.map(|it| format!("?{it}")).unwrap_or_default();
    Ok(format!("{scheme}://{host}/{name}{parameters}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_database_of_a_server_keeps_user_port_and_parameters() {
        let of = |address: &str| with_database(address, "b").expect("it is an address");
        assert_eq!(of("postgres://me:secret@host:5433/a"), "postgres://me:secret@host:5433/b");
        assert_eq!(of("postgres://host"), "postgres://host/b");
        assert_eq!(of("postgresql://host/a?connect_timeout=3"), "postgresql://host/b?connect_timeout=3");
    }

    #[test]
    fn a_place_is_a_file_or_a_server() {
        assert_eq!("sqlite:a.db".parse(), Ok(Place::Sqlite("a.db".into())));
        assert_eq!("sqlite:///a.db".parse(), Ok(Place::Sqlite("/a.db".into())));
        assert!("mysql://host".parse::<Place>().is_err());
        assert!("sqlite:".parse::<Place>().is_err());
    }
}

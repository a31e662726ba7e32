//! Connecting: the address, encryption, and connections that are used again.
//!
//! Nothing here or elsewhere leaves anything in a session: no prepared statements, no settings, no locks that outlive a
//! transaction. So any connection will do for the next one, also behind a pooler that changes them between transactions.

use std::ops::Deref;
use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime};
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Config, Row};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::fault::Done;
use super::tls;
use crate::error::StoreError;

/// How long it may take to be connected, or to get a connection that others use.
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// The most connections that reading and writing have in use at once.
const CONNECTIONS_MAX: usize = 8;

/// The most connections that requests of the API have in use at once, apart from those.
const API_CONNECTIONS_MAX: usize = 4;

/// Connections to one database.
#[derive(Clone)]
pub(super) struct Connections {
    pool: Pool,
    /// For what is cut off: how long a statement may take, and how the server is told to end one.
    bound: Option<Bound>,
}

/// How long a statement may take.
#[derive(Clone)]
struct Bound {
    time_max: Duration,
    tls: Option<MakeRustlsConnect>,
}

impl Bound {
    /// Begins a transaction in which the server ends a statement by itself. Nothing of it is left in the session.
    fn begin(&self) -> String {
        format!("BEGIN; {}", self.set())
    }

    fn set(&self) -> String {
        format!("SET LOCAL statement_timeout = {}", self.time_max.as_millis().max(1))
    }

    /// Has the server end what a connection is doing: closing it would not.
    fn cancel(&self, client: &Client) {
        let (token, tls) = (client.cancel_token(), self.tls.clone());
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            let cancelled = async {
                match tls {
                    None => token.cancel_query(tokio_postgres::NoTls).await,
                    Some(tls) => token.cancel_query(tls).await,
                }
            };
            // If that fails, the statement ends at its timeout.
            drop(tokio::time::timeout(CONNECT_MAX, cancelled).await);
        });
    }
}

/// An address that has been understood.
#[derive(Clone)]
pub(super) struct Address {
    pub(super) config: Config,
    tls: tls::Choice,
}

impl Address {
    /// Understands `postgres://user:password@host:port/database?sslmode=…`.
    pub(super) fn parse(text: &str) -> Result<Address, StoreError> {
        let (text, tls) = tls::Choice::taken_from(text)?;
        let bad = |why: String| StoreError::BadAddress { why };
        let mut config: Config = text.parse().map_err(|error: tokio_postgres::Error| {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            bad(cause.unwrap_or_else(|| error.to_string()))
        })?;
        if config.get_hosts().is_empty() {
            return Err(bad("it names no host: postgres://user@host:5432/database".to_owned()));
        }
        if config.get_application_name().is_none() {
            config.application_name("punctual");
        }
        config.connect_timeout(CONNECT_MAX);
        config.keepalives_idle(Duration::from_secs(10)).keepalives_interval(Duration::from_secs(5));
        config.tcp_user_timeout(Duration::from_secs(15));
        let is_near = config.get_hosts().iter().all(is_near);
        let tls = tls.unless_near(is_near);
        config.ssl_mode(if tls == tls::Choice::Off { SslMode::Disable } else { SslMode::Require });
        Ok(Address { config, tls })
    }

    /// What encrypts connections to it, if anything does.
    pub(super) fn connector(&self) -> Result<Option<MakeRustlsConnect>, StoreError> {
        self.tls.connector()
    }

    /// Connections to it, at most so many at once. They live on the runtime that asks for them.
    pub(super) fn connections(&self, max: usize) -> Result<Connections, StoreError> {
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = match self.tls.connector()? {
            None => Manager::from_config(self.config.clone(), tokio_postgres::NoTls, recycling),
            Some(tls) => Manager::from_config(self.config.clone(), tls, recycling),
        };
        let pool = Pool::builder(manager)
            .max_size(max)
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(CONNECT_MAX))
            .create_timeout(Some(CONNECT_MAX))
            .recycle_timeout(Some(CONNECT_MAX))
            .build()
            .map_err(|error| StoreError::BadAddress { why: error.to_string() })?;
        Ok(Connections { pool, bound: None })
    }

    /// Connections for reading and writing.
    pub(super) fn usual_connections(&self) -> Result<Connections, StoreError> {
        self.connections(CONNECTIONS_MAX)
    }

    /// Connections for requests of the API, whose statements the server ends when they take longer.
    pub(super) fn api_connections(&self, time_max: Duration) -> Result<Connections, StoreError> {
        let bound = Some(Bound { time_max, tls: self.connector()? });
        Ok(Connections { bound, ..self.connections(API_CONNECTIONS_MAX)? })
    }
}

fn is_near(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => {
            let is_loopback = name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
            is_loopback || name == "localhost"
        }
        #[cfg(unix)]
        Host::Unix(_) => true,
    }
}

impl Connections {
    /// The rows of one statement.
    pub(super) async fn query(&self, sql: &str, params: &[(&(dyn ToSql + Sync), Type)]) -> Done<Vec<Row>> {
        let connection = self.get().await?;
        let rows = match &self.bound {
            None => connection.query_typed(sql, params).await?,
            Some(bound) => {
                let begin = bound.begin();
                // They are sent in this order and at once: one round trip, as without.
                tokio::try_join!(biased;
                    connection.batch_execute(&begin),
                    connection.query_typed(sql, params),
                    connection.batch_execute("COMMIT"),
                )?
                .1
            }
        };
        connection.give_back();
        Ok(rows)
    }

    /// Does something with a connection, which is used again if it went well.
    pub(super) async fn with<T>(&self, work: impl AsyncFnOnce(&Client) -> Done<T>) -> Done<T> {
        let connection = self.get().await?;
        let done = work(&connection).await?;
        connection.give_back();
        Ok(done)
    }

    /// Reads in one state of the database.
    pub(super) async fn in_one_state<T>(&self, work: impl AsyncFnOnce(&Client) -> Done<T>) -> Done<T> {
        let connection = self.get().await?;
        connection.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
        if let Some(bound) = &self.bound {
            connection.batch_execute(&bound.set()).await?;
        }
        let read = work(&connection).await?;
        connection.batch_execute("COMMIT").await?;
        connection.give_back();
        Ok(read)
    }

    /// A connection, for one statement or one transaction.
    pub(super) async fn get(&self) -> Done<Lent> {
        Ok(Lent { connection: Some(self.pool.get().await?), bound: self.bound.clone() })
    }
}

/// A connection on loan. It goes back only when whoever had it says that it is at rest: after an error, or when nobody
/// waits for its answer any more, it may be in a transaction or stand still, and is closed. Where statements are cut off, what
/// it still does then is, too.
pub(super) struct Lent {
    connection: Option<Object>,
    bound: Option<Bound>,
}

impl Lent {
    /// It has answered everything, and is in no transaction: the next one may have it.
    pub(super) fn give_back(mut self) {
        drop(self.connection.take());
    }
}

impl Deref for Lent {
    type Target = Client;

    fn deref(&self) -> &Client {
        self.connection.as_ref().expect("it is there until it is given back")
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        let client = Object::take(connection);
        if let Some(bound) = &self.bound {
            bound.cancel(&client);
        }
    }
}

//! A session of somebody else: another program, or whoever runs the server.

use tokio::runtime::{Builder, Runtime};
use tokio_postgres::{Client, Error, NoTls, SimpleQueryMessage};

/// A connection that is used from a test's own thread. Dropping it ends it.
pub(crate) struct Session {
    client: Client,
    runtime: Runtime,
}

impl Session {
    pub(crate) fn open(address: &str) -> Session {
        Session::try_open(address).expect("the server answers")
    }

    pub(crate) fn try_open(address: &str) -> Result<Session, Error> {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime can be made");
        let client = runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(address, NoTls).await?;
            tokio::spawn(connection);
            Ok(client)
        })?;
        Ok(Session { client, runtime })
    }

    /// Runs statements that nothing is wanted from.
    pub(crate) fn run(&self, sql: &str) {
        self.try_run(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }

    pub(crate) fn try_run(&self, sql: &str) -> Result<(), Error> {
        self.runtime.block_on(self.client.batch_execute(sql))
    }

    /// The rows of a query, each by its first column.
    pub(crate) fn ask(&self, sql: &str) -> Vec<String> {
        let answer = self.runtime.block_on(self.client.simple_query(sql));
        let answer = answer.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        let first = |message: &SimpleQueryMessage| match message {
            SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or_default().to_owned()),
            _ => None,
        };
        answer.iter().filter_map(first).collect()
    }

    /// The number that a query has for an answer.
    pub(crate) fn count(&self, sql: &str) -> u64 {
        let rows = self.ask(sql);
        rows.first().and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("{sql} is no number: {rows:?}"))
    }
}

//! Statements: what is written, each for many rows, with the values that it is about.

use futures_util::future::{FutureExt, try_join_all};
use jiff::Timestamp;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row};
use uuid::Uuid;

use super::fault::Done;
use super::values::At;
use crate::columns::signed;

type Param = (Box<dyn ToSql + Sync + Send>, Type);

/// A statement with what it is about.
pub(super) struct Statement {
    sql: String,
    params: Vec<Param>,
}

impl Statement {
    pub(super) fn new(sql: impl Into<String>) -> Statement {
        Statement { sql: sql.into(), params: vec![] }
    }

    /// Functions that need nothing of each other, called by one statement: what every transaction does is a function, whose
    /// plan its session keeps (`migrations/0002_steps.sql`), and a statement costs as much again as many a function.
    pub(super) fn calls(functions: Vec<Statement>) -> Statement {
        let (mut calls, mut params): (Vec<String>, Vec<Param>) = (vec![], vec![]);
        for function in functions {
            let places = (0..function.params.len()).map(|place| format!("${}", params.len() + place + 1));
            calls.push(format!("{}({})", function.sql, places.collect::<Vec<_>>().join(", ")));
            params.extend(function.params);
        }
        Statement { sql: format!("SELECT {}", calls.join(", ")), params }
    }

    pub(super) fn with<T: ToSql + Sync + Send + 'static>(mut self, value: T, kind: Type) -> Statement {
        self.params.push((Box::new(value), kind));
        self
    }

    pub(super) fn number(self, value: u64) -> Statement {
        self.with(signed(value), Type::INT8)
    }

    pub(super) fn uuids(self, values: impl Iterator<Item = Uuid>) -> Statement {
        self.with(values.collect::<Vec<_>>(), Type::UUID_ARRAY)
    }

    pub(super) fn maybe_uuids(self, values: impl Iterator<Item = Option<Uuid>>) -> Statement {
        self.with(values.collect::<Vec<_>>(), Type::UUID_ARRAY)
    }

    pub(super) fn texts(self, values: impl Iterator<Item = String>) -> Statement {
        self.with(values.map(as_text).collect::<Vec<_>>(), Type::TEXT_ARRAY)
    }

    pub(super) fn maybe_texts(self, values: impl Iterator<Item = Option<String>>) -> Statement {
        self.with(values.map(|value| value.map(as_text)).collect::<Vec<_>>(), Type::TEXT_ARRAY)
    }

    pub(super) fn times(self, values: impl Iterator<Item = Timestamp>) -> Statement {
        self.with(values.map(At).collect::<Vec<_>>(), Type::TIMESTAMPTZ_ARRAY)
    }

    pub(super) fn maybe_times(self, values: impl Iterator<Item = Option<Timestamp>>) -> Statement {
        self.with(values.map(|at| at.map(At)).collect::<Vec<_>>(), Type::TIMESTAMPTZ_ARRAY)
    }

    pub(super) fn numbers(self, values: impl Iterator<Item = u64>) -> Statement {
        self.with(values.map(signed).collect::<Vec<_>>(), Type::INT8_ARRAY)
    }

    pub(super) fn maybe_numbers(self, values: impl Iterator<Item = Option<u64>>) -> Statement {
        self.with(values.map(|value| value.map(signed)).collect::<Vec<_>>(), Type::INT8_ARRAY)
    }

    pub(super) fn flags(self, values: impl Iterator<Item = bool>) -> Statement {
        self.with(values.collect::<Vec<_>>(), Type::BOOL_ARRAY)
    }

    /// Its text.
    pub(super) fn sql(&self) -> &str {
        &self.sql
    }

    /// What it is about, as a client takes it.
    pub(super) fn params(&self) -> Vec<(&(dyn ToSql + Sync), Type)> {
        self.params.iter().map(|(value, kind)| (&**value as &(dyn ToSql + Sync), kind.clone())).collect()
    }

    /// How many rows it has changed.
    pub(super) async fn run(&self, client: &Client) -> Done<u64> {
        Ok(client.execute_typed(&self.sql, &self.params()).await?)
    }

    /// The rows that it finds.
    pub(super) async fn query(&self, client: &Client) -> Done<Vec<Row>> {
        Ok(client.query_typed(&self.sql, &self.params()).await?)
    }
}

/// Sends all of them at once, with a last word behind them: a round trip for everything.
pub(super) async fn send(client: &Client, statements: &[Statement], last: &str) -> Done<()> {
    let commit = async { Ok(client.batch_execute(last).await?) };
    let sent = statements.iter().map(|statement| statement.run(client).map(|done| done.map(drop)).boxed());
    try_join_all(sent.chain([commit.boxed()])).await?;
    Ok(())
}

/// A text as the server takes it: without the one character that it does not. What is read again is JSON, which has none.
pub(super) fn as_text(text: String) -> String {
    if text.contains('\0') { text.replace('\0', "") } else { text }
}

/// The most bytes of a text that an index has room for.
const KEY_MAX: usize = 1_000;

/// A text that rows are found by: what is longer than an index takes is found by its beginning.
pub(super) fn as_key(text: &str) -> String {
    as_text(text[..text.floor_char_boundary(KEY_MAX)].to_owned())
}

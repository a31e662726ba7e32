//! The journal and what is read from it.

use async_trait::async_trait;
use jiff::Timestamp;
use punctual_core::journal::Entry;
use tokio_postgres::types::{ToSql, Type};

use super::PostgresStore;
use super::load::read_head;
use super::partitions;
use super::plan::rows_max;
use super::rows::read_entry;
use super::verify::verify;
use crate::commands;
use crate::error::Result;
use crate::requests::Head;
use crate::roles::Journal;

#[async_trait]
impl Journal for PostgresStore {
    async fn entries(&self, after: u64, limit: usize) -> Result<Vec<Entry>> {
        let connections = self.connections.clone();
        self.read("reading the journal", async move {
            let params: [(&(dyn ToSql + Sync), Type); 2] =
                [(&seq_of(after), Type::INT8), (&rows_max(limit), Type::INT8)];
            let sql = include_str!("sql/entries.sql");
            let rows = connections.query(sql, &params).await?;
            rows.iter().map(|row| Ok(read_entry(row)?.into_entry()?)).collect()
        })
        .await
    }

    async fn head(&self) -> Result<Head> {
        let connections = self.connections.clone();
        self.read("reading the end of the journal", async move { connections.with(read_head).await }).await
    }

    async fn forget_runs(&self, now: Timestamp, before: Timestamp) -> Result<usize> {
        commands::forget_runs(self, now, before).await
    }

    async fn prune(&self, now: Timestamp, before: Timestamp) -> Result<u64> {
        let pruned = commands::begin_prune(self, now, before).await?;
        let connections = self.connections.clone();
        self.read_on("pruning the journal", async move { connections.with(partitions::drop_old).await }).await?;
        Ok(pruned)
    }

    async fn verify(&self) -> Result<Vec<String>> {
        let connections = self.connections.clone();
        self.read_on("verifying the database", async move { connections.in_one_state(verify).await }).await
    }
}

/// A number of an entry that a caller gives, in a column's own numbers.
fn seq_of(seq: u64) -> i64 {
    i64::try_from(seq).unwrap_or(i64::MAX)
}

//! Answers to requests that may come again.

use async_trait::async_trait;
use jiff::Timestamp;
use tokio_postgres::types::Type;

use super::PostgresStore;
use super::values::At;
use crate::error::Result;
use crate::roles::Answers;

#[async_trait]
impl Answers for PostgresStore {
    async fn forget_answers(&self, before: Timestamp) -> Result<usize> {
        let connections = self.connections.clone();
        self.read_on("forgetting answers", async move {
            let sql = "WITH gone AS (DELETE FROM answers WHERE at <= $1 RETURNING 1) SELECT count(*) FROM gone";
            let rows = connections.query(sql, &[(&At::before(before), Type::TIMESTAMPTZ)]).await?;
            Ok(crate::columns::count(rows[0].get(0)) as usize)
        })
        .await
    }
}

//! Answers to requests that may come again.

use async_trait::async_trait;
use jiff::Timestamp;

use super::SqliteStore;
use super::values::micros_before;
use crate::error::Result;
use crate::roles::Answers;

#[async_trait]
impl Answers for SqliteStore {
    async fn forget_answers(&self, before: Timestamp) -> Result<usize> {
        self.write("forgetting answers", move |connection| {
            let sql = "DELETE FROM answers WHERE at <= ?1";
            Ok(connection.prepare_cached(sql)?.execute([micros_before(before)])?)
        })
        .await
    }
}

//! Answers to requests that may come again.

use async_trait::async_trait;
use jiff::Timestamp;
use punctual_core::By;
use rusqlite::{OptionalExtension, params};
use uuid::Uuid;

use super::SqliteStore;
use super::fault::Done;
use super::session::Session;
use super::values::{At, Id, micros_before, signed};
use crate::error::{Result, StoreError};
use crate::requests::Answered;
use crate::roles::Answers;

#[async_trait]
impl Answers for SqliteStore {
    async fn forget_answers(&self, before: Timestamp) -> Result<usize> {
        self.write("forgetting answers", before, move |session| {
            let sql = "DELETE FROM answers WHERE at <= ?1";
            Ok(session.connection.prepare_cached(sql)?.execute([micros_before(before)])?)
        })
        .await
    }
}

impl Session {
    /// Refuses a request that was carried out before.
    pub(super) fn refuse_repeated(&self, by: Option<&By>) -> Done<()> {
        let Some(once) = by.and_then(|by| by.once.as_ref()) else { return Ok(()) };
        let sql = "SELECT digest, subject, at FROM answers WHERE key = ?1";
        let found = self.connection.prepare_cached(sql)?.query_row([&once.key], |row| {
            let digest = row.get::<_, i64>(0)?.cast_unsigned();
            Ok(Answered { digest, subject: row.get::<_, Id>(1)?.0, at: row.get::<_, At>(2)?.0 })
        });
        match found.optional()? {
            Some(answered) => Err(StoreError::Answered(answered).into()),
            None => Ok(()),
        }
    }

    /// Notes that a request has been carried out, and what it was about.
    pub(super) fn note_answer(&self, by: Option<&By>, subject: Uuid, at: Timestamp) -> Done<()> {
        if let Some(once) = by.and_then(|by| by.once.as_ref()) {
            let sql = "INSERT INTO answers (key, digest, subject, at) VALUES (?1, ?2, ?3, ?4)";
            let params = params![once.key, signed(once.digest), Id(subject), At(at)];
            self.connection.prepare_cached(sql)?.execute(params)?;
        }
        Ok(())
    }
}

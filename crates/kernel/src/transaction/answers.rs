//! Answers to requests that may come again.

use jiff::Timestamp;
use punctual_core::By;
use uuid::Uuid;

use super::Transaction;
use crate::error::{KernelError, Result};
use crate::types::Answered;

impl Transaction<'_> {
    /// Refuses a request that was carried out before, by an earlier transaction or in this one.
    pub fn refuse_repeated(&self, by: Option<&By>) -> Result<()> {
        let answered = by.and_then(|by| by.once.as_ref()).and_then(|once| self.found.answers.get(&once.key));
        answered.map_or(Ok(()), |answered| Err(KernelError::Answered(*answered)))
    }

    /// Notes that a request has been carried out, and what it was about.
    pub fn note_answer(&mut self, by: Option<&By>, subject: Uuid, at: Timestamp) {
        if let Some(once) = by.and_then(|by| by.once.as_ref()) {
            self.put_answer(once.key.clone(), Answered { digest: once.digest, subject, at });
        }
    }

    /// Keeps an answer under a key.
    pub(super) fn put_answer(&mut self, key: String, answered: Answered) {
        self.found.answers.insert(key.clone(), answered);
        self.changes.answers.insert(key, answered);
    }
}

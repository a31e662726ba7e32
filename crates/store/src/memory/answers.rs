//! Answers to requests that may come again.

use async_trait::async_trait;
use jiff::Timestamp;
use punctual_core::By;
use uuid::Uuid;

use super::{MemoryStore, State};
use crate::error::{Result, StoreError};
use crate::requests::Answered;
use crate::roles::Answers;

#[async_trait]
impl Answers for MemoryStore {
    async fn forget_answers(&self, before: Timestamp) -> Result<usize> {
        let answers = &mut self.state().answers;
        let count = answers.len();
        answers.retain(|_, answered| before <= answered.at);
        Ok(count - answers.len())
    }
}

impl State {
    /// Refuses a request that was carried out before.
    pub(super) fn refuse_repeated(&self, by: Option<&By>) -> Result<()> {
        let answered = by.and_then(|by| by.once.as_ref()).and_then(|once| self.answers.get(&once.key));
        answered.map_or(Ok(()), |answered| Err(StoreError::Answered(*answered)))
    }

    /// Notes that a request has been carried out, and what it was about.
    pub(super) fn note_answer(&mut self, by: Option<&By>, subject: Uuid, at: Timestamp) {
        if let Some(once) = by.and_then(|by| by.once.as_ref()) {
            self.answers.insert(once.key.clone(), Answered { digest: once.digest, subject, at });
        }
    }
}

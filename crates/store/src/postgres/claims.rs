//! Claiming, settling, finishing: the kernel decides.

use async_trait::async_trait;
use jiff::Timestamp;

use super::PostgresStore;
use crate::commands;
use crate::error::Result;
use crate::requests::{AttemptReport, ClaimRequest, Claimed, RunWritten, Settlement, StartRequest, Started};
use crate::roles::Claims;

#[async_trait]
impl Claims for PostgresStore {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claimed> {
        commands::claim(self, request).await
    }

    async fn start(&self, request: &StartRequest) -> Result<Started> {
        commands::start(self, request).await
    }

    async fn settle(&self, now: Timestamp, settlements: Vec<Settlement>) -> Result<Vec<RunWritten>> {
        commands::settle(self, now, settlements).await
    }

    async fn finish(&self, now: Timestamp, reports: Vec<AttemptReport>) -> Result<Vec<RunWritten>> {
        commands::finish(self, now, reports).await
    }
}

//! Claiming, settling, finishing.

use async_trait::async_trait;
use jiff::Timestamp;

use super::PostgresStore;
use crate::change::Wants;
use crate::error::Result;
use crate::requests::{AttemptReport, ClaimRequest, Claimed, RunWritten, Settlement};
use crate::roles::Claims;
use crate::writing::Needs;

#[async_trait]
impl Claims for PostgresStore {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claimed> {
        let request = request.clone();
        self.write("claiming runs", Needs::default(), move |writing| writing.claim(&request)).await
    }

    async fn settle(&self, now: Timestamp, settlements: Vec<Settlement>) -> Result<Vec<RunWritten>> {
        let wants = Wants::runs(settlements.iter().map(|settlement| settlement.run));
        let needs = Needs { wants, ..Needs::default() };
        self.write("settling runs", needs, move |writing| Ok(writing.settle(now, &settlements))).await
    }

    async fn finish(&self, now: Timestamp, reports: Vec<AttemptReport>) -> Result<Vec<RunWritten>> {
        let wants = Wants::runs(reports.iter().map(|report| report.run));
        let needs = Needs { wants, ..Needs::default() };
        self.write("finishing attempts", needs, move |writing| Ok(writing.finish(now, reports.clone()))).await
    }
}

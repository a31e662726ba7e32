//! Approvals: runs that wait until somebody has said yes, and what is said.
//!
//! A yes is for what was seen, once: it names the digest of the run, its attempt, its agent, its prompt and its inputs. The run then
//! goes on under that attempt; a later one asks again. A no calls the run off, and so does silence.

use jiff::Timestamp;
use punctual_core::RunId;
use punctual_core::run::{Run, RunState, WaitFor};
use punctual_store::{RunFilter, RunWritten, Store};
use sha2::{Digest, Sha256};

use crate::edit::{EditError, Editor};

/// No run has it.
const NO_EPOCH: u64 = u64::MAX;

/// Until when somebody may say yes, if the run waits for that.
pub fn waits_until(run: &Run) -> Option<Timestamp> {
    match run.state {
        RunState::Waiting { on: WaitFor::Approval, wait_until, .. } => Some(wait_until),
        _ => None,
    }
}

/// What an approval of a run is bound to.
pub fn digest(run: &Run) -> String {
    let subject = serde_json::json!([run.id, run.epoch(), run.terms.work]);
    let hash = Sha256::digest(subject.to_string());
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The runs that wait for an approval, by time.
pub async fn waiting(store: &dyn Store, limit: usize) -> punctual_store::Result<Vec<Run>> {
    store.runs(&RunFilter { waits_for: Some(WaitFor::Approval), limit, ..RunFilter::default() }).await
}

impl Editor {
    /// Lets a run begin that waits for an approval, if it is still what was seen.
    pub async fn approve(&self, id: RunId, seen: &str, now: Timestamp) -> Result<(), EditError> {
        let asks = self.asks(id, seen).await?;
        // Whoever asks again is told so by the store, also when it does not wait any more.
        let epoch = asks.as_ref().map_or(NO_EPOCH, Run::epoch);
        match self.store.resume(now, id, Some(epoch), self.by.clone()).await? {
            RunWritten::Done(_) => Ok(()),
            RunWritten::Stale => Err(asks.err().unwrap_or(EditError::NotWaiting(id))),
        }
    }

    /// Calls off a run that waits for an approval, if it is still what was seen. If somebody says yes at this very moment, it is
    /// stopped.
    pub async fn deny(&self, id: RunId, seen: &str, now: Timestamp) -> Result<(), EditError> {
        self.asks(id, seen).await??;
        self.cancel(id, now).await.map(drop)
    }

    /// A run that waits for an approval and is what was seen.
    async fn asks(&self, id: RunId, seen: &str) -> Result<Result<Run, EditError>, EditError> {
        let run = self.store.run(id).await?.filter(|run| waits_until(run).is_some());
        let Some(run) = run else { return Ok(Err(EditError::NotWaiting(id))) };
        Ok(if digest(&run) == seen { Ok(run) } else { Err(EditError::OtherDigest(id)) })
    }
}

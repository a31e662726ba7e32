//! The planner's lease while its holder plans: renewed beside the planning, however long a round of that takes.
//!
//! Every round of planning begins by taking the lease. One that takes longer than the lease, as after an outage with very many
//! schedules, would lose it in between: another node would take it, and find an outage that was none.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::SignedDuration;
use punctual_core::NodeId;
use punctual_store::Store;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::clock::Clock;
use crate::planner::later;
use crate::settings::Settings;

/// A round that goes on for longer hangs: another node may plan.
const ROUND_MAX: Duration = Duration::from_secs(600);

/// Whether this node has the planner's lease, and since when a round of planning goes on.
#[derive(Debug, Default)]
pub struct Term {
    is_held: AtomicBool,
    /// By the boot clock.
    round_since: Mutex<Option<Duration>>,
}

impl Term {
    /// Whether the lease is held, as the store has last said.
    pub fn holds(&self, is_held: bool) {
        self.is_held.store(is_held, Ordering::Release);
    }

    /// Whether the lease is held.
    pub fn is_held(&self) -> bool {
        self.is_held.load(Ordering::Acquire)
    }

    /// A round of planning begins.
    pub fn begin_round(&self, boot: Duration) {
        *self.round_since() = Some(boot);
    }

    /// The round is over.
    pub fn end_round(&self) {
        *self.round_since() = None;
    }

    /// Whether the lease is to be renewed beside a round: that goes on for so long that a third of the lease is over.
    fn is_to_be_renewed(&self, boot: Duration, lease: Duration) -> bool {
        let is_long = |since: Duration| (lease / 3..ROUND_MAX).contains(&boot.saturating_sub(since));
        self.is_held() && self.round_since().is_some_and(is_long)
    }

    fn round_since(&self) -> MutexGuard<'_, Option<Duration>> {
        self.round_since.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Renews the planner's lease beside long rounds of planning, until it is told to stop.
pub async fn keep(
    term: Arc<Term>,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    settings: Arc<Settings>,
    node: NodeId,
    stop: CancellationToken,
) {
    let lease = Duration::try_from(settings.lease.duration()).unwrap_or_default();
    let every = SignedDuration::try_from(lease / 3).unwrap_or(SignedDuration::from_secs(1));
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = clock.sleep_until(later(clock.now(), every)) => {}
        }
        if !term.is_to_be_renewed(clock.boot(), lease) {
            continue;
        }
        match store.take_planner(&settings.sign(node, clock.now(), 0)).await {
            Ok(taken) => {
                if let Some(outage) = taken.outage {
                    warn!(from = %outage.from, until = %outage.until, "the planner's lease had ended while this node planned");
                }
                term.holds(taken.is_held);
            }
            Err(error) => warn!(%error, "the planner's lease could not be renewed"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(30);

    #[test]
    fn only_a_long_round_of_whoever_plans_is_renewed_beside() {
        let at = |seconds: u64| Duration::from_secs(1_000 + seconds);
        let term = Term::default();
        term.begin_round(at(0));
        assert!(!term.is_to_be_renewed(at(20), LEASE), "another node plans");
        term.holds(true);
        let renewed = [9, 10, 29, 599, 600].map(|seconds| term.is_to_be_renewed(at(seconds), LEASE));
        assert_eq!(renewed, [false, true, true, true, false], "what hangs is left to others");
        term.end_round();
        assert!(!term.is_to_be_renewed(at(20), LEASE), "the next round takes the lease itself");
    }
}

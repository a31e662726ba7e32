//! The keeper: a node's lease, and what follows when it cannot be kept.
//!
//! In: what the node holds. Out: what it must let go of. A node that cannot renew its lease stops its work before
//! anybody else can take it, by a clock that nobody can set.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use punctual_core::run::{Report, RunEvent};
use punctual_core::{NodeId, RunId};
use punctual_store::{AttemptReport, Renewal, Result, RunWritten, Store, StoreError};
use tracing::warn;

use crate::planner::later;
use crate::runner::StopLevel;
use crate::settings::Settings;

/// A lease that ended this long ago is taken to be over: clocks of nodes differ a little.
const BURY_AFTER: SignedDuration = SignedDuration::from_secs(1);

/// How long a failed renewal rests before the next try.
const RETRY_AFTER: SignedDuration = SignedDuration::from_secs(1);

/// Keeps one node's lease.
pub struct Keeper {
    store: Arc<dyn Store>,
    settings: Arc<Settings>,
    node: NodeId,
    /// Until when, by the boot clock, nobody else can have taken the node's runs.
    valid_until: Option<Duration>,
    /// When the node has to prove itself next.
    renew_at: Option<Timestamp>,
}

/// What a look at the lease brought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upkeep {
    /// Runs to be stopped, and how hard: they were called off, or they are not the node's any more.
    pub stop: Vec<(RunId, StopLevel)>,
    /// Whether runs were taken from dead nodes, so that there is something to claim.
    pub found_work: bool,
    /// When to look again.
    pub wake_at: Timestamp,
}

/// How hard everything has to be stopped at a point of the lease: a third before its end it is asked to, and shortly before
/// its end it is ended, so that nothing lives when another node may begin.
pub fn fence(lease: Duration, valid_until: Duration, boot: Duration) -> StopLevel {
    let margin = Duration::from_secs(2).min(lease / 10);
    if valid_until <= boot.saturating_add(margin) {
        StopLevel::Now
    } else if valid_until <= boot.saturating_add(lease / 3) {
        StopLevel::Ask
    } else {
        StopLevel::GoOn
    }
}

impl Keeper {
    /// A keeper for a node that is about to join.
    pub fn new(store: Arc<dyn Store>, settings: Arc<Settings>, node: NodeId) -> Keeper {
        Keeper { store, settings, node, valid_until: None, renew_at: None }
    }

    /// Brings the node to life.
    pub async fn join(&mut self, now: Timestamp, boot: Duration) -> Result<()> {
        let renewal = self.store.join(&self.settings.sign(self.node, now)).await?;
        self.renewed(&renewal, now, boot);
        Ok(())
    }

    /// Renews the lease when it is time, compares what the node holds with what is its own, and buries the dead.
    ///
    /// Fails with [`StoreError::LeaseEnded`] when the node has been taken for dead: nothing of its work may go on.
    pub async fn tick(&mut self, now: Timestamp, boot: Duration, held: &BTreeMap<RunId, u64>) -> Result<Upkeep> {
        // A clock that was set back must not keep the node from renewing.
        let is_time = self.renew_at.is_none_or(|at| at <= now || later(now, self.settings.lease.duration()) < at);
        if !is_time {
            return Ok(Upkeep { stop: vec![], found_work: false, wake_at: self.renew_at.unwrap_or(now) });
        }
        let renewal = self.store.renew(&self.settings.sign(self.node, now)).await?;
        self.renewed(&renewal, now, boot);
        let owned: BTreeMap<RunId, u64> = renewal.owned.iter().copied().collect();
        self.hand_back(&owned, held, now).await?;
        let lost = held.iter().filter(|(id, epoch)| owned.get(id) != Some(epoch));
        let mut stop: Vec<(RunId, StopLevel)> = lost.map(|(id, _)| (*id, StopLevel::Now)).collect();
        stop.extend(renewal.cancelling.iter().map(|id| (*id, StopLevel::Ask)));
        let mut wake_at = self.renew_at.unwrap_or(now);
        let mut found_work = false;
        if let Some(ends_at) = renewal.next_foreign_end {
            let over_at = later(ends_at, BURY_AFTER);
            if over_at < now {
                let dead = self.store.bury(ends_at.max(now.checked_sub(BURY_AFTER).unwrap_or(now))).await?;
                if 0 < dead {
                    warn!("{dead} nodes are dead: their runs can be taken over");
                }
                found_work = 0 < dead;
            } else {
                wake_at = wake_at.min(later(over_at, SignedDuration::from_millis(1)));
                self.renew_at = Some(wake_at);
            }
        }
        Ok(Upkeep { stop, found_work, wake_at })
    }

    /// Runs that are the node's own but that it does not hold: their claim was written and the answer got lost.
    async fn hand_back(&self, owned: &BTreeMap<RunId, u64>, held: &BTreeMap<RunId, u64>, now: Timestamp) -> Result<()> {
        let forgotten = owned.iter().filter(|(id, epoch)| held.get(id) != Some(epoch));
        let forgotten: Vec<(RunId, u64)> = forgotten.map(|(id, epoch)| (*id, *epoch)).collect();
        if forgotten.is_empty() {
            return Ok(());
        }
        warn!("{} runs were claimed and never begun here: handed back", forgotten.len());
        let report = |event| {
            move |(run, epoch): &(RunId, u64)| AttemptReport {
                run: *run,
                epoch: *epoch,
                event,
                report: Report::default(),
            }
        };
        let unbegun = forgotten.iter().map(report(RunEvent::HandedBack { due_at: now, parks: false })).collect();
        let written = self.store.finish(now, unbegun).await?;
        // What is written as running cannot be handed back as if nothing had happened.
        let begun = forgotten.iter().zip(written).filter(|(_, written)| *written == RunWritten::Stale);
        let begun: Vec<AttemptReport> = begun.map(|(run, _)| report(RunEvent::OwnerLost { at: now })(run)).collect();
        if !begun.is_empty() {
            self.store.finish(now, begun).await?;
        }
        Ok(())
    }

    /// The lease counts from the moment at which its renewal was sent.
    fn renewed(&mut self, renewal: &Renewal, sent_at: Timestamp, sent_boot: Duration) {
        let lease = self.lease();
        self.valid_until = Some(sent_boot.saturating_add(lease));
        self.renew_at = Some(later(sent_at, self.settings.lease.duration() / 3));
        debug_assert!(sent_at <= renewal.lease_until, "a lease ends after it begins");
    }

    /// Somebody has called runs off: the next tick asks which of the node's own they are.
    pub fn look_soon(&mut self) {
        self.renew_at = None;
    }

    /// How hard everything has to be stopped now. On a store that only one server can have, nobody else can begin.
    pub fn fence(&self, boot: Duration) -> StopLevel {
        match self.valid_until {
            Some(valid_until) if !self.store.is_exclusive() => fence(self.lease(), valid_until, boot),
            _ => StopLevel::GoOn,
        }
    }

    /// When to look again after a failure.
    pub fn retry_at(&self, now: Timestamp, error: &StoreError) -> Timestamp {
        warn!(%error, "the lease could not be renewed");
        later(now, RETRY_AFTER)
    }

    fn lease(&self) -> Duration {
        Duration::try_from(self.settings.lease.duration()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_asked_to_stop_at_a_third_and_ended_before_the_end() {
        let at = |seconds| fence(Duration::from_secs(30), Duration::from_secs(100), Duration::from_secs(seconds));
        assert_eq!([89, 90, 97, 98, 200].map(at), {
            use StopLevel::{Ask, GoOn, Now};
            [GoOn, Ask, Ask, Now, Now]
        });
        // Short leases have short margins.
        let short = |millis| fence(Duration::from_secs(3), Duration::from_secs(10), Duration::from_millis(millis));
        assert_eq!([8_999, 9_000, 9_699, 9_700].map(short), {
            use StopLevel::{Ask, GoOn, Now};
            [GoOn, Ask, Ask, Now]
        });
    }
}

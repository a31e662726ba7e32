//! Holdings: the work that goes on in a node, and until when it may.
//!
//! Shared by the loop that works and the watch that fences: a call of the store may hang for longer than the lease, and work
//! has to be stopped all the same. Invariant: nothing begins here, and nothing goes on, when another node may have taken it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use punctual_core::RunId;

use crate::runner::{Stop, StopLevel, Stopper, stop_pair};

/// One attempt: the run, and the epoch under which it is held.
pub type Attempt = (RunId, u64);

/// What a node holds.
#[derive(Debug)]
pub struct Holdings {
    /// How long the lease lasts; `None` on a store that only one server can have: nobody else can begin there.
    lease: Option<Duration>,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    held: BTreeMap<Attempt, Held>,
    /// Attempts that have ended here and are not reported: their runs belong to another node, or may.
    unreported: BTreeSet<Attempt>,
    /// Until when, by the boot clock, nobody else can have taken the node's runs.
    valid_until: Duration,
}

#[derive(Debug)]
struct Held {
    stopper: Stopper,
    why: Option<WhyStopped>,
}

/// What a node has in its hands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hands {
    /// The work that goes on.
    pub held: BTreeSet<Attempt>,
    /// Everything that was begun and whose end is not reported, if that is known: a store does not give it out again.
    pub begun: Option<BTreeSet<Attempt>>,
}

/// Why work is stopped by its own node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhyStopped {
    /// Somebody has called it off.
    Cancelled,
    /// It belongs to somebody else, or may soon.
    Lost,
    /// The node stops.
    Shutdown,
}

/// How hard everything has to be stopped at a point of the lease: a third before its end it is asked to, and shortly before
/// its end it is ended, so that nothing lives when another node may begin.
fn fence(lease: Duration, valid_until: Duration, boot: Duration) -> StopLevel {
    if valid_until <= boot.saturating_add(margin(lease)) {
        StopLevel::Now
    } else if valid_until <= boot.saturating_add(lease / 3) {
        StopLevel::Ask
    } else {
        StopLevel::GoOn
    }
}

fn margin(lease: Duration) -> Duration {
    Duration::from_secs(2).min(lease / 10)
}

impl Holdings {
    /// Nothing yet. `lease` is `None` where nobody else can begin what is held here.
    pub fn new(lease: Option<Duration>) -> Holdings {
        Holdings { lease, inner: Mutex::default() }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lease was renewed: it counts from the moment at which that was sent.
    pub fn renewed(&self, sent_boot: Duration, lease: Duration) {
        self.inner().valid_until = sent_boot.saturating_add(lease);
    }

    /// How hard everything has to be stopped now.
    pub fn fence(&self, boot: Duration) -> StopLevel {
        self.lease.map_or(StopLevel::GoOn, |lease| fence(lease, self.inner().valid_until, boot))
    }

    /// Takes up work, unless it is too late for that: whoever asked was held up for so long that the run may be somebody
    /// else's by now.
    pub fn begin(&self, attempt: Attempt, boot: Duration) -> Option<Stop> {
        if self.fence(boot) != StopLevel::GoOn {
            return None;
        }
        let (stopper, stop) = stop_pair();
        self.inner().held.insert(attempt, Held { stopper, why: None });
        Some(stop)
    }

    /// Lets go of work that has ended.
    pub fn end(&self, attempt: Attempt) {
        self.inner().held.remove(&attempt);
    }

    /// Lets go of work that has ended and whose end is not reported, as it may be another node's.
    pub fn end_unreported(&self, attempt: Attempt) {
        let mut inner = self.inner();
        inner.held.remove(&attempt);
        inner.unreported.insert(attempt);
    }

    /// The node owns these runs, and no others: of the rest, nothing has to be remembered.
    pub fn owns(&self, owned: &BTreeSet<Attempt>) {
        self.inner().unreported.retain(|attempt| owned.contains(attempt));
    }

    /// What is in the node's hands.
    pub fn hands(&self) -> Hands {
        let inner = self.inner();
        let held: BTreeSet<Attempt> = inner.held.keys().copied().collect();
        let begun = Some(held.union(&inner.unreported).copied().collect());
        Hands { held, begun }
    }

    /// Why work was stopped, if it was.
    pub fn why(&self, attempt: Attempt) -> Option<WhyStopped> {
        self.inner().held.get(&attempt).and_then(|held| held.why)
    }

    /// What is held.
    pub fn held(&self) -> BTreeSet<Attempt> {
        self.inner().held.keys().copied().collect()
    }

    /// How much is held.
    pub fn len(&self) -> usize {
        self.inner().held.len()
    }

    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Stops one piece of work. What is lost stays so.
    pub fn stop(&self, attempt: Attempt, level: StopLevel, why: WhyStopped) {
        if let Some(held) = self.inner().held.get_mut(&attempt) {
            held.stop(level, why);
        }
    }

    /// Stops everything.
    pub fn stop_all(&self, level: StopLevel, why: WhyStopped) {
        self.inner().held.values_mut().for_each(|held| held.stop(level, why));
    }

    /// Stops what has to be stopped now, and says after how long to look again.
    pub fn enforce(&self, boot: Duration) -> Duration {
        const LONG: Duration = Duration::from_secs(3_600);
        let Some(lease) = self.lease else { return LONG };
        let level = self.fence(boot);
        let mut inner = self.inner();
        if level != StopLevel::GoOn {
            inner.held.values_mut().for_each(|held| held.stop(level, WhyStopped::Lost));
        }
        let left = |before_end| inner.valid_until.saturating_sub(before_end).saturating_sub(boot);
        match level {
            StopLevel::GoOn => left(lease / 3),
            StopLevel::Ask => left(margin(lease)),
            StopLevel::Now => margin(lease),
        }
    }
}

impl Held {
    fn stop(&mut self, level: StopLevel, why: WhyStopped) {
        self.why = Some(self.why.filter(|before| *before == WhyStopped::Lost).unwrap_or(why));
        self.stopper.pull(level);
    }
}

#[cfg(test)]
mod tests {
    use StopLevel::{Ask, GoOn, Now};
    use uuid::Uuid;

    use super::*;

    const LEASE: Duration = Duration::from_secs(30);

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn work_is_asked_to_stop_at_a_third_and_ended_before_the_end() {
        let at = |seconds| fence(LEASE, Duration::from_secs(100), Duration::from_secs(seconds));
        assert_eq!([89, 90, 97, 98, 200].map(at), [GoOn, Ask, Ask, Now, Now]);
        // Short leases have short margins.
        let short = |millis| fence(Duration::from_secs(3), Duration::from_secs(10), Duration::from_millis(millis));
        assert_eq!([8_999, 9_000, 9_699, 9_700].map(short), [GoOn, Ask, Ask, Now]);
    }

    #[test]
    fn a_fence_needs_no_answer_of_the_store() {
        let holdings = Holdings::new(Some(LEASE));
        holdings.renewed(seconds(70), LEASE);
        let attempt = (RunId(Uuid::nil()), 1);
        let stop = holdings.begin(attempt, seconds(71)).expect("the lease is young");
        assert_eq!(holdings.enforce(seconds(71)), seconds(19));
        assert_eq!((stop.level(), holdings.enforce(seconds(90))), (GoOn, seconds(8)));
        assert_eq!((stop.level(), holdings.why(attempt)), (Ask, Some(WhyStopped::Lost)));
        holdings.enforce(seconds(98));
        assert_eq!(stop.level(), Now);
    }

    #[test]
    fn nothing_begins_when_somebody_else_may_have_it() {
        let holdings = Holdings::new(Some(LEASE));
        holdings.renewed(seconds(70), LEASE);
        assert!(holdings.begin((RunId(Uuid::nil()), 1), seconds(95)).is_none());
        assert!(holdings.is_empty());
        // On a store that nobody else can have, nobody can.
        assert!(Holdings::new(None).begin((RunId(Uuid::nil()), 1), seconds(95)).is_some());
    }

    #[test]
    fn an_older_epoch_that_still_dies_is_not_the_new_one() {
        let holdings = Holdings::new(None);
        let id = RunId(Uuid::nil());
        let old = holdings.begin((id, 1), seconds(1)).expect("nobody else can");
        holdings.stop((id, 1), Now, WhyStopped::Lost);
        let new = holdings.begin((id, 2), seconds(2)).expect("nobody else can");
        assert_eq!((old.level(), new.level()), (Now, GoOn));
        assert_eq!(holdings.why((id, 1)), Some(WhyStopped::Lost));
        holdings.end((id, 1));
        assert_eq!(holdings.held(), [(id, 2)].into());
    }
}

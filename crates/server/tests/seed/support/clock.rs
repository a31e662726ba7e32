//! The clock of the world. It stands still until the test moves it, and knows who waits for it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use punctual_engine::clock::Clock;
use tokio::sync::{Notify, oneshot};

pub(crate) struct VirtualClock {
    inner: Mutex<Inner>,
    /// Somebody has lain down, or a task has ended.
    pub(super) changed: Notify,
}

struct Inner {
    now: Timestamp,
    boot: Duration,
    sleepers: BTreeMap<u64, (Timestamp, oneshot::Sender<()>)>,
    /// How many have ever lain down.
    count: u64,
}

/// Somebody who waits for the clock; who stops waiting is struck off.
struct Sleeper<'a> {
    clock: &'a VirtualClock,
    number: u64,
}

impl Drop for Sleeper<'_> {
    fn drop(&mut self) {
        self.clock.inner().sleepers.remove(&self.number);
    }
}

impl VirtualClock {
    pub(crate) fn at(now: Timestamp) -> VirtualClock {
        let inner = Inner { now, boot: Duration::from_secs(1_000), sleepers: BTreeMap::new(), count: 0 };
        VirtualClock { inner: Mutex::new(inner), changed: Notify::new() }
    }

    /// How many wait, and how many have ever waited.
    pub(super) fn resting(&self) -> (usize, u64) {
        let inner = self.inner();
        (inner.sleepers.len(), inner.count)
    }

    /// When the first of those who wait wants to be woken.
    pub(super) fn next_wake_at(&self) -> Option<Timestamp> {
        self.inner().sleepers.values().map(|(at, _)| *at).min()
    }

    /// Moves on to an instant, and wakes whoever has waited for it.
    pub(super) fn move_to(&self, at: Timestamp) {
        let mut inner = self.inner();
        let passed = Duration::try_from(at.duration_since(inner.now)).expect("time goes forwards");
        (inner.now, inner.boot) = (at, inner.boot + passed);
        let woken: Vec<u64> = inner.sleepers.iter().filter(|(_, it)| it.0 <= at).map(|(number, _)| *number).collect();
        for number in woken {
            let sleeper = inner.sleepers.remove(&number);
            // Who has just gone does not hear it.
            sleeper.map(|(_, wake)| wake.send(()).ok());
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("nobody panics with the clock in hand")
    }
}

#[async_trait]
impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        self.inner().now
    }

    fn boot(&self) -> Duration {
        self.inner().boot
    }

    async fn sleep_until(&self, at: Timestamp) {
        let (sleeper, woken) = {
            let mut inner = self.inner();
            if at <= inner.now {
                return;
            }
            let (wake, woken) = oneshot::channel();
            let number = inner.count;
            inner.count += 1;
            inner.sleepers.insert(number, (at, wake));
            (Sleeper { clock: self, number }, woken)
        };
        self.changed.notify_one();
        woken.await.ok();
        drop(sleeper);
    }
}

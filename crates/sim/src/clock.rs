//! The clock and the ids that a simulated process is given.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use punctual_engine::clock::Clock;
use punctual_engine::ids::Ids;
use punctual_engine::spawn::{Spawn, Task};
use punctual_store::Store;
use uuid::Uuid;

use crate::random::Random;
use crate::timeline::{Group, Timeline};

/// The clock of a process: the store's as it has heard it, and carried on by the one that nobody can set; its machine's where
/// the store has none.
pub(crate) struct SimClock {
    pub(crate) timeline: Arc<Timeline>,
    pub(crate) group: Group,
    pub(crate) store: Arc<dyn Store>,
}

#[async_trait]
impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        let heard = self.store.shared_time().map(|time| time.when_running_for(self.boot()));
        heard.unwrap_or_else(|| self.timeline.now())
    }

    fn boot(&self) -> Duration {
        self.timeline.boot()
    }

    async fn sleep_until(&self, at: Timestamp) {
        self.timeline.sleep_until(self.group, self.now(), at).await;
    }
}

/// Ids that a seed gives again, in the order in which they were made within a millisecond, or not: as real ones.
pub(crate) struct SimIds(Mutex<Random>);

impl SimIds {
    pub(crate) fn new(seed: u64) -> SimIds {
        SimIds(Mutex::new(Random::new(seed, "ids")))
    }
}

impl Ids for SimIds {
    fn next(&self, now: Timestamp) -> Uuid {
        let mut random = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = (u128::from(random.next()) << 16 | u128::from(random.next() & 0xffff)).to_be_bytes();
        let mut tail = [0; 10];
        tail.copy_from_slice(&bytes[6..]);
        uuid::Builder::from_unix_timestamp_millis(now.as_millisecond().unsigned_abs(), &tail).into_uuid()
    }
}

/// Where a process spawns.
pub(crate) struct SimSpawn {
    pub(crate) timeline: Arc<Timeline>,
    pub(crate) group: Group,
}

impl Spawn for SimSpawn {
    fn spawn(&self, task: Task) {
        self.timeline.spawn(self.group, task);
    }
}

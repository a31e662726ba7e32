//! The pulse: tells everybody who follows the journal that it has grown, for one question to the store however many they are.

use std::sync::Arc;
use std::time::Duration;

use punctual_engine::clock::Clock;
use punctual_store::Store;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_util::sync::CancellationToken;

use crate::error::ApiError;

/// How soon a follower hears of an entry. Nobody is asked while nobody follows.
const BEAT: Duration = Duration::from_millis(250);

/// How many may follow at once: half of the connections that a server takes by default, so that streams keep nobody out.
const FOLLOWERS_MAX: usize = 256;

/// Tells how far the journal goes, until it stops.
#[derive(Debug, Clone)]
pub struct Pulse {
    head: Arc<watch::Sender<u64>>,
    places: Arc<Semaphore>,
    stop: CancellationToken,
}

/// Hears that the journal has grown.
pub(crate) struct Follower {
    head: watch::Receiver<u64>,
    stop: CancellationToken,
    _place: OwnedSemaphorePermit,
}

impl Follower {
    /// Returns when there may be more; whether there can be.
    pub(crate) async fn hears_more(&mut self) -> bool {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => false,
            changed = self.head.changed() => changed.is_ok(),
        }
    }
}

impl Follower {
    /// Waits for an instant; whether there can be more.
    pub(crate) async fn waits_until(&self, clock: &dyn Clock, at: jiff::Timestamp) -> bool {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => false,
            () = clock.sleep_until(at) => true,
        }
    }
}

impl Pulse {
    /// A pulse that beats until `stop`. Then every stream ends.
    pub fn new(stop: CancellationToken) -> Pulse {
        Pulse { head: Arc::new(watch::channel(0).0), places: Arc::new(Semaphore::new(FOLLOWERS_MAX)), stop }
    }

    /// Somebody follows from now on, unless too many do.
    pub(crate) fn follow(&self) -> Result<Follower, ApiError> {
        let place = Arc::clone(&self.places).try_acquire_owned().map_err(|_| {
            ApiError::overloaded(format!("{FOLLOWERS_MAX} streams are open, as many as there may be; come again later"))
        })?;
        Ok(Follower { head: self.head.subscribe(), stop: self.stop.clone(), _place: place })
    }

    /// Looks at the journal while anybody follows it.
    pub(crate) async fn beat(self, store: Arc<dyn Store>, clock: Arc<dyn Clock>) {
        let Pulse { head, stop, .. } = self;
        while !stop.is_cancelled() {
            if 0 < head.receiver_count()
                && let Ok(found) = store.head().await
            {
                head.send_if_modified(|seq| std::mem::replace(seq, found.seq) != found.seq);
            }
            let wake_at = clock.now().checked_add(BEAT).unwrap_or(jiff::Timestamp::MAX);
            tokio::select! {
                () = stop.cancelled() => return,
                () = clock.sleep_until(wake_at) => {}
            }
        }
    }
}

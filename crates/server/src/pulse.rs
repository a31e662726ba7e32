//! The pulse: tells everybody who follows the journal that it has grown, for one question to the store however many they are.

use std::sync::Arc;
use std::time::Duration;

use punctual_engine::clock::Clock;
use punctual_store::Store;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// How soon a follower hears of an entry. Nobody is asked while nobody follows.
const BEAT: Duration = Duration::from_millis(250);

/// Tells how far the journal goes, until it stops.
#[derive(Debug, Clone)]
pub struct Pulse {
    head: Arc<watch::Sender<u64>>,
    stop: CancellationToken,
}

/// Hears that the journal has grown.
pub(crate) struct Follower {
    head: watch::Receiver<u64>,
    stop: CancellationToken,
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
        Pulse { head: Arc::new(watch::channel(0).0), stop }
    }

    /// Somebody follows from now on.
    pub(crate) fn follow(&self) -> Follower {
        Follower { head: self.head.subscribe(), stop: self.stop.clone() }
    }

    /// Looks at the journal while anybody follows it.
    pub(crate) async fn beat(self, store: Arc<dyn Store>, clock: Arc<dyn Clock>) {
        let Pulse { head, stop } = self;
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

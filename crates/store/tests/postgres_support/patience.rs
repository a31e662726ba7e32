//! Patience: how tests wait for a server, which nothing tells them about.

use std::time::{Duration, Instant};

/// Long enough for a machine that is busy with something else; nothing that works takes as long.
const PATIENCE: Duration = Duration::from_secs(60);

/// A time that is measured.
pub(crate) struct Watch(Instant);

impl Watch {
    #[expect(clippy::disallowed_methods, reason = "a test of a real server goes by the real clock")]
    pub(crate) fn start() -> Watch {
        Watch(Instant::now())
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    pub(crate) fn has_patience(&self) -> bool {
        self.elapsed() < PATIENCE
    }
}

/// Asks until it is so.
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let watch = Watch::start();
    while !is_so() {
        assert!(watch.has_patience(), "{what}: it was waited for in vain");
        rest_for(Duration::from_millis(20));
    }
}

/// A rest, where the moment of a fault is a matter of time.
#[expect(clippy::disallowed_methods, reason = "the bad moment is a matter of time")]
pub(crate) fn rest_for(time: Duration) {
    std::thread::sleep(time);
}

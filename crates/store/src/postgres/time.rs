//! The time that all nodes share: the database's clock, carried on by a clock that nobody can set.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use rustix::time::{ClockId, clock_gettime};

use crate::requests::SharedTime;

/// A reading that took longer is worse than an older one.
const READING_MAX: Duration = Duration::from_secs(1);

/// The last reading of the database's clock.
#[derive(Debug, Clone, Default)]
pub(super) struct Time(Arc<Mutex<Option<Reading>>>);

#[derive(Debug, Clone, Copy)]
struct Reading {
    shared: SharedTime,
    /// By how much this machine's clock was ahead.
    skew: SignedDuration,
}

/// When a question was sent that the answer of which has the database's time.
pub(super) struct Asked(Duration);

impl Time {
    /// A question that the answer of which has the database's time is about to be sent.
    pub(super) fn ask() -> Asked {
        Asked(boot())
    }

    /// The answer came: the database's clock showed this in the middle between the two.
    #[expect(clippy::disallowed_methods, reason = "two clocks are compared here, and nothing is decided by it")]
    pub(super) fn answer(&self, asked: &Asked, at: Timestamp) {
        let took = boot().saturating_sub(asked.0);
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_some() && READING_MAX < took {
            return;
        }
        let shared = SharedTime { at, boot: asked.0 + took / 2 };
        let skew = Timestamp::now().duration_since(shared.when_running_for(boot()));
        *last = Some(Reading { shared, skew });
    }

    pub(super) fn last(&self) -> Option<SharedTime> {
        self.reading().map(|reading| reading.shared)
    }

    /// By how many milliseconds this machine's clock is ahead.
    pub(super) fn skew(&self) -> i64 {
        self.reading().map_or(0, |reading| reading.skew.as_millis() as i64)
    }

    fn reading(&self) -> Option<Reading> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn boot() -> Duration {
    let time = clock_gettime(ClockId::Boottime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

//! Hearing: the store's time as a process has it, from the last answer that came quickly enough.

use std::sync::Mutex;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use punctual_store::SharedTime;

use crate::chaos::SLICE;
use crate::faults::Fault;
use crate::sim::{Sim, locked};
use crate::timeline::Group;

/// A reading that took longer is worse than an older one.
const READING_MAX: Duration = Duration::from_secs(1);

/// A step up to this makes nobody look at the clock before its time.
const STEP_MIN: SignedDuration = SignedDuration::from_millis(20);

/// What a process has heard.
#[derive(Debug, Default)]
pub(crate) struct Hearing(Mutex<Option<Heard>>);

#[derive(Debug, Clone, Copy)]
struct Heard {
    time: SharedTime,
    /// By how much it is mistaken.
    skew: SignedDuration,
}

impl Hearing {
    pub(crate) fn last(&self) -> Option<SharedTime> {
        locked(&self.0).map(|heard| heard.time)
    }

    /// The store's clock showed `at` in an answer, now, to what was asked when the boot clock showed `asked`.
    pub(crate) fn hear(&self, sim: &Sim, group: Group, asked: Duration, at: Timestamp) {
        let boot = sim.timeline.boot();
        let took = boot.saturating_sub(asked);
        let mut last = locked(&self.0);
        if last.is_some() && READING_MAX < took {
            return;
        }
        let skew = sim.faults().skew(last.is_none());
        if let Some(skew) = skew.filter(|skew| !skew.is_zero()) {
            sim.strike(Fault::ClockSkew, format_args!("p{group} by {skew:#}"));
        }
        let skew = skew.or(last.map(|heard| heard.skew)).unwrap_or_default();
        let time = SharedTime { at: at + skew, boot: asked + took / 2 };
        let before = last.replace(Heard { time, skew });
        let shows = |time: SharedTime| time.when_running_for(boot);
        let step = before.map(|before| shows(time).duration_since(shows(before.time)));
        if step.is_none_or(|step| STEP_MIN < step.abs()) {
            sim.timeline.clock_is_set(group, SLICE);
        }
    }
}

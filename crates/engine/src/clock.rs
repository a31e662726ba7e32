//! The clock: the one file that reads time, and what it makes of jumps.

use std::time::Duration;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use punctual_core::time::zone::floor_microsecond;
use rustix::time::{ClockId, clock_gettime};

/// No sleep is longer: a timer does not notice that the machine slept or that the clock was set.
const SLICE_MAX: Duration = Duration::from_secs(5);

/// A forward step of the clock by more than this is more likely a mistake than a sleep.
pub const STEP_HELD: SignedDuration = SignedDuration::from_hours(24);

/// How long such a step is doubted before it is believed.
pub const HOLD_MAX: Duration = Duration::from_secs(600);

/// Differences between the two clocks up to this are drift, not steps.
const STEP_MIN: SignedDuration = SignedDuration::from_secs(1);

/// Where time comes from. The engine's is [`SystemClock`]; tests and simulations have their own.
#[async_trait]
pub trait Clock: Send + Sync {
    /// The time, to the microsecond.
    fn now(&self) -> Timestamp;

    /// Time since the machine was started, sleep included. Nobody can set it.
    fn boot(&self) -> Duration;

    /// Returns at an instant, or a little earlier: whoever waits looks at the clock again.
    async fn sleep_until(&self, at: Timestamp);
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

#[async_trait]
impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        now()
    }

    fn boot(&self) -> Duration {
        let time = clock_gettime(ClockId::Boottime);
        Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
    }

    async fn sleep_until(&self, at: Timestamp) {
        let left = Duration::try_from(at.duration_since(now())).unwrap_or(Duration::ZERO);
        tokio::time::sleep(left.min(SLICE_MAX)).await;
    }
}

/// The time now, to the microsecond, for what a person asks without naming a time.
#[expect(clippy::disallowed_methods, reason = "this is the one clock file")]
pub fn now() -> Timestamp {
    floor_microsecond(Timestamp::now())
}

/// Watches the clock for steps that no passing of time explains.
#[derive(Debug, Clone, Copy, Default)]
pub struct ClockWatch {
    last: Option<(Timestamp, Duration)>,
    held_until: Option<Duration>,
}

/// What the clock did since it was last looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockStep {
    /// It went on.
    None,
    /// It was set forwards or backwards by so much. Forwards it makes an outage, backwards it fires nothing again.
    Set(SignedDuration),
    /// It was set so far forwards that nothing is planned or claimed until somebody has had time to repair it.
    Held(SignedDuration),
}

impl ClockWatch {
    /// Takes in a reading of both clocks.
    pub fn observe(&mut self, now: Timestamp, boot: Duration) -> ClockStep {
        let Some((last_now, last_boot)) = self.last.replace((now, boot)) else { return ClockStep::None };
        let passed = SignedDuration::try_from(boot.saturating_sub(last_boot)).unwrap_or(SignedDuration::MAX);
        let step = now.duration_since(last_now).saturating_sub(passed);
        if self.held_until.is_some() && step < -STEP_MIN {
            // It has been repaired.
            self.held_until = None;
        }
        if STEP_HELD < step {
            self.held_until = Some(boot.saturating_add(HOLD_MAX));
            return ClockStep::Held(step);
        }
        if STEP_MIN < step.abs() { ClockStep::Set(step) } else { ClockStep::None }
    }

    /// Whether nothing may be planned or claimed yet.
    pub fn is_held(&self, boot: Duration) -> bool {
        self.held_until.is_some_and(|until| boot < until)
    }

    /// A person says that the clock is right.
    pub fn accept(&mut self) {
        self.held_until = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn sleep_is_no_step_and_a_set_clock_is() {
        let start: Timestamp = "2026-01-05T00:00:00Z".parse().unwrap();
        let mut watch = ClockWatch::default();
        assert_eq!(watch.observe(start, seconds(100)), ClockStep::None);
        let hour = SignedDuration::from_hours(1);
        assert_eq!(watch.observe(start + hour, seconds(3_700)), ClockStep::None);
        assert_eq!(watch.observe(start, seconds(3_700)), ClockStep::Set(-hour));
        assert_eq!(watch.observe(start + hour, seconds(3_700)), ClockStep::Set(hour));
        assert!(!watch.is_held(seconds(3_700)));
    }

    #[test]
    fn a_leap_into_another_year_is_doubted_for_ten_minutes_or_until_it_is_repaired() {
        let start: Timestamp = "2026-01-05T00:00:00Z".parse().unwrap();
        let wrong: Timestamp = "3010-01-05T00:00:00Z".parse().unwrap();
        let mut watch = ClockWatch::default();
        watch.observe(start, seconds(0));
        assert!(matches!(watch.observe(wrong, seconds(1)), ClockStep::Held(_)));
        assert!(watch.is_held(seconds(600)) && !watch.is_held(seconds(601)));
        assert!(matches!(watch.observe(start, seconds(2)), ClockStep::Set(_)));
        assert!(!watch.is_held(seconds(3)));
        watch.observe(wrong, seconds(4));
        assert!(watch.is_held(seconds(5)));
        watch.accept();
        assert!(!watch.is_held(seconds(5)));
    }
}

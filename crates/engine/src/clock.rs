//! The clock: the one file that reads time, and what it makes of jumps.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use punctual_core::time::zone::floor_microsecond;
use punctual_store::Store;
use rustix::time::{ClockId, clock_gettime};
use tracing::{error, warn};

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

#[async_trait]
impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now(&self) -> Timestamp {
        (**self).now()
    }

    fn boot(&self) -> Duration {
        (**self).boot()
    }

    async fn sleep_until(&self, at: Timestamp) {
        (**self).sleep_until(at).await;
    }
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

/// The clock that all nodes of a store share, where it has one; this machine's otherwise.
pub struct StoreClock {
    store: Arc<dyn Store>,
}

impl StoreClock {
    /// The clock of a store.
    pub fn new(store: Arc<dyn Store>) -> StoreClock {
        StoreClock { store }
    }
}

#[async_trait]
impl Clock for StoreClock {
    fn now(&self) -> Timestamp {
        self.store.shared_time().map_or_else(now, |time| time.when_running_for(self.boot()))
    }

    fn boot(&self) -> Duration {
        SystemClock.boot()
    }

    async fn sleep_until(&self, at: Timestamp) {
        let left = Duration::try_from(at.duration_since(self.now())).unwrap_or(Duration::ZERO);
        tokio::time::sleep(left.min(SLICE_MAX)).await;
    }
}

/// The time now, to the microsecond, for what a person asks without naming a time.
#[expect(clippy::disallowed_methods, reason = "this is the one clock file")]
pub fn now() -> Timestamp {
    floor_microsecond(Timestamp::now())
}

/// A clock that doubts great leaps forwards: it goes on as if nothing had happened, until somebody has repaired it, says that it
/// is right, or has had time for either. So a mistake that is repaired touches neither plan nor leases.
pub struct SteadyClock<C> {
    clock: C,
    state: Mutex<Steady>,
}

#[derive(Debug, Default)]
struct Steady {
    watch: ClockWatch,
    leap: Option<Leap>,
}

#[derive(Debug, Clone, Copy)]
struct Leap {
    by: SignedDuration,
    /// Until when, by the boot clock, it is doubted.
    until: Duration,
}

impl<C: Clock> SteadyClock<C> {
    /// Nothing is doubted yet: the first reading is right.
    pub fn new(clock: C) -> SteadyClock<C> {
        SteadyClock { clock, state: Mutex::default() }
    }

    /// A person says that the clock is right.
    pub fn accept(&self) {
        self.state().leap = None;
    }

    fn state(&self) -> MutexGuard<'_, Steady> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// By how much the clock is not believed now.
    fn doubted(&self, now: Timestamp) -> SignedDuration {
        let boot = self.clock.boot();
        let mut state = self.state();
        let step = match state.watch.observe(now, boot) {
            ClockStep::Set(step) => step,
            ClockStep::None => SignedDuration::ZERO,
        };
        let by = state.leap.map_or(SignedDuration::ZERO, |leap| leap.by);
        let is_new = STEP_HELD < step;
        if is_new {
            error!("the clock leapt forwards by {step:#}: not believed for 10 minutes, repair it now");
            state.leap = Some(Leap { by: by.saturating_add(step), until: boot.saturating_add(HOLD_MAX) });
        } else if step.is_negative() && state.leap.is_some() {
            let by = by.saturating_add(step);
            warn!("the clock was set back by {:#}", step.abs());
            state.leap = state.leap.filter(|_| STEP_HELD < by).map(|leap| Leap { by, ..leap });
        }
        if let Some(leap) = state.leap.filter(|leap| leap.until <= boot) {
            error!("nobody has repaired the clock: its leap forwards by {:#} is believed", leap.by);
            state.leap = None;
        }
        state.leap.map_or(SignedDuration::ZERO, |leap| leap.by)
    }
}

#[async_trait]
impl<C: Clock> Clock for SteadyClock<C> {
    fn now(&self) -> Timestamp {
        let now = self.clock.now();
        now.checked_sub(self.doubted(now)).unwrap_or(now)
    }

    fn boot(&self) -> Duration {
        self.clock.boot()
    }

    async fn sleep_until(&self, at: Timestamp) {
        let doubted = self.doubted(self.clock.now());
        self.clock.sleep_until(at.checked_add(doubted).unwrap_or(at)).await;
    }
}

/// Watches the clock for steps that no passing of time explains.
#[derive(Debug, Clone, Copy, Default)]
pub struct ClockWatch {
    last: Option<(Timestamp, Duration)>,
}

/// What the clock did since it was last looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockStep {
    /// It went on.
    None,
    /// It was set forwards or backwards by so much. Forwards it makes an outage, backwards it fires nothing again.
    Set(SignedDuration),
}

impl ClockWatch {
    /// Takes in a reading of both clocks.
    pub fn observe(&mut self, now: Timestamp, boot: Duration) -> ClockStep {
        let Some((last_now, last_boot)) = self.last.replace((now, boot)) else { return ClockStep::None };
        let passed = SignedDuration::try_from(boot.saturating_sub(last_boot)).unwrap_or(SignedDuration::MAX);
        // As coarse as time itself: stores keep no finer one.
        let step = now.duration_since(last_now).saturating_sub(passed).as_micros();
        let step = SignedDuration::from_micros(i64::try_from(step).unwrap_or(i64::MAX));
        if STEP_MIN < step.abs() { ClockStep::Set(step) } else { ClockStep::None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock that only a test moves.
    #[derive(Default)]
    struct TestClock(Mutex<(SignedDuration, Duration)>);

    impl TestClock {
        fn pass(&self, seconds: u64) {
            let mut it = self.0.lock().unwrap();
            it.0 += SignedDuration::from_secs(seconds.cast_signed());
            it.1 += Duration::from_secs(seconds);
        }

        fn set(&self, by: SignedDuration) {
            self.0.lock().unwrap().0 += by;
        }
    }

    #[async_trait]
    impl Clock for &TestClock {
        fn now(&self) -> Timestamp {
            Timestamp::UNIX_EPOCH + self.0.lock().unwrap().0
        }

        fn boot(&self) -> Duration {
            self.0.lock().unwrap().1
        }

        async fn sleep_until(&self, _: Timestamp) {}
    }

    fn shows<C: Clock>(clock: &SteadyClock<C>) -> i64 {
        clock.now().as_second()
    }

    #[test]
    fn sleep_is_no_step_and_a_set_clock_is() {
        let seconds = Duration::from_secs;
        let start: Timestamp = "2026-01-05T00:00:00Z".parse().unwrap();
        let mut watch = ClockWatch::default();
        assert_eq!(watch.observe(start, seconds(100)), ClockStep::None);
        let hour = SignedDuration::from_hours(1);
        assert_eq!(watch.observe(start + hour, seconds(3_700)), ClockStep::None);
        assert_eq!(watch.observe(start, seconds(3_700)), ClockStep::Set(-hour));
        assert_eq!(watch.observe(start + hour, seconds(3_700)), ClockStep::Set(hour));
    }

    #[test]
    fn a_step_is_as_coarse_as_stores_keep_time() {
        let start: Timestamp = "2026-01-05T00:00:00Z".parse().unwrap();
        let mut watch = ClockWatch::default();
        watch.observe(start, Duration::new(100, 1));
        let step = watch.observe(start + SignedDuration::from_secs(11), Duration::new(101, 5_674));
        assert_eq!(step, ClockStep::Set(SignedDuration::from_micros(9_999_994)));
    }

    #[test]
    fn a_leap_into_another_year_that_is_repaired_is_not_seen_at_all() {
        let (inner, year) = (TestClock::default(), SignedDuration::from_hours(24 * 365));
        let clock = SteadyClock::new(&inner);
        inner.pass(100);
        assert_eq!(shows(&clock), 100);
        inner.set(year);
        assert_eq!(shows(&clock), 100);
        inner.pass(599);
        assert_eq!(shows(&clock), 699);
        inner.set(-year);
        inner.pass(1);
        assert_eq!(shows(&clock), 700);
        inner.pass(3_600);
        assert_eq!(shows(&clock), 4_300);
    }

    #[test]
    fn a_leap_is_believed_after_ten_minutes_or_when_a_person_says_so() {
        let day = SignedDuration::from_hours(24);
        for is_accepted in [false, true] {
            let inner = TestClock::default();
            let clock = SteadyClock::new(&inner);
            assert_eq!(shows(&clock), 0);
            inner.set(day * 2);
            assert_eq!(shows(&clock), 0);
            // A second leap is doubted as long.
            inner.pass(500);
            inner.set(day * 2);
            assert_eq!(shows(&clock), 500);
            inner.pass(599);
            assert_eq!(shows(&clock), 1_099);
            if is_accepted {
                clock.accept()
            } else {
                inner.pass(1)
            }
            assert_eq!(shows(&clock), 4 * 86_400 + 1_099 + i64::from(!is_accepted));
        }
    }

    #[test]
    fn a_smaller_step_is_seen_at_once() {
        let inner = TestClock::default();
        let clock = SteadyClock::new(&inner);
        assert_eq!(shows(&clock), 0);
        inner.set(SignedDuration::from_hours(23));
        assert_eq!(shows(&clock), 23 * 3_600);
        inner.set(SignedDuration::from_hours(-2));
        assert_eq!(shows(&clock), 21 * 3_600);
    }
}

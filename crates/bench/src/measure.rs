//! Readings and what is made of them: time, processor, memory, percentiles, medians.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Time and processor time since it was started.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch {
    started: Duration,
    cpu: Duration,
}

impl Stopwatch {
    /// Starts it.
    pub(crate) fn start() -> Stopwatch {
        Stopwatch { started: read(ClockId::Monotonic), cpu: cpu() }
    }

    /// How long it runs.
    pub(crate) fn elapsed(self) -> Duration {
        read(ClockId::Monotonic).saturating_sub(self.started)
    }

    /// What this process has had of the processors since, all threads together.
    pub(crate) fn cpu(self) -> Duration {
        cpu().saturating_sub(self.cpu)
    }
}

/// What this process has had of the processors.
fn cpu() -> Duration {
    read(ClockId::ProcessCPUTime)
}

fn read(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// The resident memory of this process in MB; none where the system does not tell.
pub(crate) fn resident_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let kilobytes = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: f64 = kilobytes.trim().trim_end_matches(" kB").parse().ok()?;
    Some(kilobytes * 1_024.0 / 1_000_000.0)
}

/// Latenesses of many starts, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    /// The smallest.
    pub(crate) first: f64,
    /// Half are not above it.
    pub(crate) p50: f64,
    /// Of a hundred, one is above it.
    pub(crate) p99: f64,
    /// The largest.
    pub(crate) max: f64,
}

impl Spread {
    /// Of values in any order; none of nothing.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Spread> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let at = |share: f64| percentile(&values, share);
        Some(Spread { first: *values.first()?, p50: at(0.5)?, p99: at(0.99)?, max: *values.last()? })
    }

    /// The medians of several.
    pub(crate) fn median_of(spreads: &[Spread]) -> Option<Spread> {
        let of = |part: fn(&Spread) -> f64| median(spreads.iter().map(part));
        Some(Spread { first: of(|it| it.first)?, p50: of(|it| it.p50)?, p99: of(|it| it.p99)?, max: of(|it| it.max)? })
    }
}

/// The smallest of sorted values that a share of them does not exceed.
pub(crate) fn percentile(sorted: &[f64], share: f64) -> Option<f64> {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied()
}

/// The middle one, or the mean of the two in the middle.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() % 2 {
        1 => values.get(middle).copied(),
        _ => Some((values.get(middle.checked_sub(1)?)? + values.get(middle)?) / 2.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_a_value_that_was_measured() {
        let hundred: Vec<f64> = (1..=100).map(f64::from).collect();
        for (share, value) in [(0.0, 1.0), (0.5, 50.0), (0.99, 99.0), (0.991, 100.0), (1.0, 100.0)] {
            assert_eq!(percentile(&hundred, share), Some(value), "{share}");
        }
        assert_eq!(percentile(&[7.0], 0.99), Some(7.0));
        assert_eq!(percentile(&[], 0.5), None);
    }

    #[test]
    fn the_median_of_an_even_number_is_the_mean_of_the_middle_two() {
        assert_eq!(median([3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median([4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median([]), None);
    }

    #[test]
    fn a_spread_needs_no_order_and_nothing_has_none() {
        let spread = Spread { first: 1.0, p50: 2.0, p99: 3.0, max: 3.0 };
        assert_eq!(Spread::of([3.0, 1.0, 2.0]), Some(spread));
        assert_eq!(Spread::of([]), None);
        assert_eq!(Spread::median_of(&[spread, spread, Spread { max: 9.0, ..spread }]), Some(spread));
    }
}

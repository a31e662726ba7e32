//! Randomness that a seed gives again: SplitMix64, in streams that do not disturb each other.

use std::time::Duration;

/// A stream of numbers that follows from a seed and a name.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    /// The stream of this name under a seed.
    pub(crate) fn new(seed: u64, name: &str) -> Random {
        let named = name
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ named);
        random.next();
        random
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number below `end`, which is not 0.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }

    /// A number from `first` to `last`, both included.
    pub(crate) fn between(&mut self, first: u64, last: u64) -> u64 {
        first + self.below(last - first + 1)
    }

    /// Whether something happens that does so in `percent` of all cases.
    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of several.
    pub(crate) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len() as u64) as usize]
    }

    /// One of several, each as often as its weight says.
    pub(crate) fn weighted<T: Copy>(&mut self, items: &[(u64, T)]) -> T {
        let mut left = self.below(items.iter().map(|(weight, _)| weight).sum());
        for (weight, item) in items {
            if left < *weight {
                return *item;
            }
            left -= weight;
        }
        unreachable!("the weights add up")
    }

    /// A time from `first` to `last`, short ones as likely as long ones: the exponent is random, not the number.
    pub(crate) fn stretch(&mut self, first: Duration, last: Duration) -> Duration {
        let (first, last) = (first.as_micros().max(1) as u64, last.as_micros() as u64);
        let doublings = u64::from((last / first).max(1).ilog2());
        let low = first << self.between(0, doublings);
        Duration::from_micros(self.between(low, (low * 2).min(last).max(low)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_numbers_again_and_streams_differ() {
        let take = |seed, name| {
            let mut random = Random::new(seed, name);
            [random.next(), random.next(), random.next()]
        };
        assert_eq!(take(7, "faults"), take(7, "faults"));
        assert_ne!(take(7, "faults"), take(7, "work"));
        assert_ne!(take(7, "faults"), take(8, "faults"));
    }

    #[test]
    fn numbers_stay_within_their_bounds() {
        let mut random = Random::new(1, "bounds");
        for _ in 0..10_000 {
            assert!((3..=5).contains(&random.between(3, 5)));
            let stretch = random.stretch(Duration::from_secs(1), Duration::from_secs(100));
            assert!((1..=100).contains(&stretch.as_secs()), "{stretch:?}");
        }
    }
}

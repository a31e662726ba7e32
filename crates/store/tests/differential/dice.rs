//! Dice that fall the same way for the same seed, on every machine and in every release.

/// SplitMix64.
#[derive(Debug, Clone)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from `from` up to, and not including, `to`.
    pub(crate) fn between(&mut self, from: i64, to: i64) -> i64 {
        from + (self.next() % (to - from) as u64) as i64
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.between(0, end as i64) as usize
    }

    /// Yes, `percent` times of a hundred.
    pub(crate) fn chance(&mut self, percent: i64) -> bool {
        self.between(0, 100) < percent
    }

    /// One of them.
    pub(crate) fn one<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }

    /// One of them, if there is any.
    pub(crate) fn any<T: Clone>(&mut self, of: &[T]) -> Option<T> {
        if of.is_empty() { None } else { Some(self.one(of)) }
    }

    /// Up to `max` of them, in their order.
    pub(crate) fn some<T: Clone>(&mut self, of: &[T], max: usize) -> Vec<T> {
        let mut left = of.to_vec();
        while max < left.len() {
            left.remove(self.below(left.len()));
        }
        left
    }
}

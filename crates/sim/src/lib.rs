//! One seed, one history, every invariant.

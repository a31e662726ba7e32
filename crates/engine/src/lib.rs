//! The loops of Punctual: planner, claimer, keeper, recovery, and the clock.

pub mod runner;

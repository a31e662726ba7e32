//! The loops of Punctual: planner, claimer, keeper, recovery, and the clock.
//!
//! Each loop is a `tick` that does what is to be done now and says when to look again; [`node`] puts the waiting around
//! them. The decisions are `punctual-core`'s, correctness under competition is the store's. The simulation drives the same
//! ticks with a clock of its own.

pub mod approvals;
mod batch;
mod begin;
pub mod checks;
pub mod claimer;
pub mod clock;
pub mod edit;
pub mod holdings;
mod housekeeping;
pub mod ids;
pub mod keeper;
mod loops;
pub mod meters;
pub mod node;
pub mod output;
pub mod planner;
pub mod planner_lease;
pub mod prices;
mod recovery;
mod refused;
mod replan;
pub mod roster;
pub mod runner;
pub mod settings;
pub mod spawn;
pub mod why;

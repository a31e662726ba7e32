//! The kernel: the state of all schedules and live runs in memory, and what each command does to it.
//!
//! Pure: no I/O, no clock, no configuration of its own. A store opens the [`state::State`], lets commands decide in a
//! [`transaction::Transaction`], and commits the entries and rows that came of it; other processes apply the same entries
//! ([`state::State::follow`]). So every policy is decided in one place, whatever the database.

pub mod admission;
pub mod change;
pub mod compare;
pub mod due;
mod error;
pub mod limits;
pub mod state;
pub mod transaction;
pub mod types;

pub use error::{KernelError, Result};

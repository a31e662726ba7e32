//! Where Punctual keeps its state: small roles, and the stores that play them.
//!
//! The journal says what happened, and everything else follows from it: the state of the kernel, which decides, history, which is
//! searched, and the snapshot, from which a process starts. A store appends and answers questions about the past ([`kept`]);
//! every rule lies in the kernel. [`memory`] is the model, [`sqlite`] the default.

mod columns;
mod command;
mod commands;
#[cfg(feature = "conformance")]
pub mod conformance;
mod error;
mod journal_rows;
mod kept;
pub mod memory;
mod panics;
pub mod postgres;
mod records;
mod requests;
mod roles;
mod snapshot_rows;
pub mod sqlite;
mod sums;
pub mod transfer;

pub use punctual_kernel::{change, compare};

pub use error::{Result, StoreError};
pub use panics::{catch_panic, panic_text};
pub use requests::*;
pub use roles::{Answers, Claims, History, Journal, Nodes, Output, Plan, Records, Runs, Schedules, Store, Tokens};

//! Where Punctual keeps its state: small roles, and the stores that play them.
//!
//! Rows say what is, the journal says what happened, and both change in one transaction. Every rule lies in
//! `punctual-core`: a store reads the rows that a change concerns, lets the rules change them ([`change`]), and
//! writes back what is different. [`memory`] is the model, [`sqlite`] the default.

mod chain;
mod columns;
mod command;
mod commands;
#[cfg(feature = "conformance")]
pub mod conformance;
mod error;
pub mod memory;
mod panics;
pub mod postgres;
mod requests;
mod roles;
pub mod sqlite;
pub mod transfer;

pub use punctual_kernel::{change, compare};

pub use error::{Result, StoreError};
pub use panics::{catch_panic, panic_text};
pub use requests::*;
pub use roles::{Answers, Claims, History, Journal, Nodes, Output, Plan, Records, Runs, Schedules, Store, Tokens};

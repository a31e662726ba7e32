//! The process runner: a command of the operator's, run under a supervisor of its own.
//!
//! In: a [`ProcessAgent`] and an `Assignment`. Out: one `Finish`, when no process of the run lives any more.
//!
//! ```text
//! server ── socket ──▶ supervisor, first stage (watch) ── socket ──▶ second stage (begin) ── exec ──▶ the work
//!    ▲                                                                                                 │
//!    └────────────────────────────── stdout and stderr, two pipes ─────────────────────────────────────┘
//! ```
//!
//! The first stage outlives the work, collects every orphan of it and ends the whole tree; when the server dies, its
//! socket closes and the tree ends too. The second stage takes the limits upon itself and becomes the work, so the
//! supervisor is never under the limits of what it supervises.
//!
//! The work finds the run context on its standard input, which is a file in memory and not a pipe: it can be read late,
//! twice or never. Everything here is for Linux.
//!
//! Invariants: no byte of a run reaches a shell; limits are set before the command begins; what a run prints, reports
//! or starts costs the server a bounded amount.
//!
//! Not here: another user, cgroups, Landlock, a private folder per run. [`protections()`] says so to the operator.

mod agent;
mod environment;
mod lacks;
mod leftovers;
mod limits;
mod processes;
mod protections;
mod protocol;
mod runner;
mod secrets;
mod supervisor;
mod tail;
mod verdict;

pub use crate::secrets::SecretSource;
pub use agent::{ADDRESS_SPACE_MIN, GRACE_DEFAULT, GRACE_MAX, OPEN_FILES_MIN, OUTPUT_DEFAULT, OUTPUT_MAX};
pub use agent::{AgentError, ProcessAgent, Stdin};
pub use lacks::{Lack, Need};
pub use limits::{Limits, OPEN_FILES_DEFAULT};
pub use protections::{Protection, Strength, protections};
pub use runner::{ProcessRunner, Supervisor};
pub use supervisor::{SUBCOMMAND, supervise_if_asked};

//! The workflow runner: a workflow of a Conductor server, started for a run and, if it is asked to, followed to its end.
//!
//! In: a [`ConductorServer`] and an `Assignment` that names a workflow. Out: one `Finish`.
//!
//! ```text
//! run ──▶ POST /workflow ── id ──▶ succeeded
//!              │                └─ followed ──▶ GET /workflow/ID … until it ends ──▶ succeeded or failed
//!              └─ no answer, or a bad one ──▶ failed; the next attempt asks with the same idempotency key
//! ```
//!
//! Invariants: every attempt of a run carries the same key, so that a server that knows keys starts one workflow; whatever a
//! server says costs a bounded amount, and is shown without the secrets that it was given; no request outlives its attempt.
//!
//! Not here: what the run tells the workflow (`core`), and ending a workflow. One that was started is left alone, whatever
//! becomes of the run.

mod answer;
mod attempt;
mod client;
mod connection;
mod keyring;
mod notes;
mod request;
mod runner;
mod server;
mod trouble;

pub use request::StartRequest;
pub use runner::WorkflowRunner;
pub use server::{ANSWER_DEFAULT, AccessKey, ConductorServer, ServerError};

//! What a run does.
//!
//! In: an `Assignment` of the engine. Out: one `Finish`, when nothing of the work lives any more.
//! Each runner is a room: [`process`] runs a command of the operator's, [`workflow`] starts a workflow of
//! another server, [`in_process`] runs a function of a test's.
//! Not here: which run is due, who holds it, and what its end means (`core`, `engine`).

pub mod in_process;
pub mod process;
mod redact;
mod result;
pub mod secrets;
mod text;
pub mod workflow;

//! What a run does.
//!
//! In: an `Assignment` of the engine. Out: one `Finish`, when nothing of the work lives any more.
//! Each runner is a room: [`in_process`] runs a function of a test's.
//! Not here: which run is due, who holds it, and what its end means (`core`, `engine`).

pub mod in_process;

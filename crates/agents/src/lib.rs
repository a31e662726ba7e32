//! What a run does.

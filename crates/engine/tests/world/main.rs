//! The engine in a world of its own: what it does with schedules, runs, nodes, clocks and failures, step by step.

mod edits;
mod pauses;
mod retries;
mod support;

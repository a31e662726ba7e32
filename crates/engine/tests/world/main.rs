//! The engine in a world of its own: what it does with schedules, runs, nodes, clocks and failures, step by step.

mod edits;
mod midnight;
mod outage;
mod pauses;
mod recovery;
mod restart;
mod retries;
mod support;

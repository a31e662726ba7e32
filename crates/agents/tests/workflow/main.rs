//! Workflows are started at a real server, which has its bad days.

mod ending;
mod follow;
mod key;
mod scene;
mod start;

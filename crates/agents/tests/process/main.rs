//! The process runner against real commands, most of them nasty.

mod ending;
mod environment;
mod lab;
mod limits;
mod output;
mod server_death;
mod tree;

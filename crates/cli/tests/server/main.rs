//! The real binary as a server: it runs, records, stops cleanly, says what is wrong, and is killed at bad moments.

mod crash;
mod support;
mod up;

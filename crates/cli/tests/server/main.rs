//! The real binary as a server: it runs, records, stops cleanly, says what is wrong, and is killed at bad moments; alone, and
//! several of them on one PostgreSQL.

mod api;
mod approvals;
mod chaos;
mod client;
mod crash;
mod moving;
mod nodes;
mod output;
mod support;
mod up;

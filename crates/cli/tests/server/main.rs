//! The real binary as a server: it runs, records, stops cleanly, says what is wrong, and is killed at bad moments; alone, and
//! several of them on one PostgreSQL.

mod agent_approval;
mod api;
mod approvals;
mod chaos;
mod cli;
mod client;
mod conductor;
mod confirm;
mod crash;
mod described;
mod docs;
mod ends;
mod failover;
mod fatal;
mod kept;
mod moving;
mod nodes;
mod output;
mod reload;
mod stand_in;
mod stops;
mod support;
mod tails;
mod terminal;
mod tls;
mod told;
mod trust;
mod up;

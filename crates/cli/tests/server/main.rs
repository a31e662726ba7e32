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
mod crontab;
mod described;
mod docs;
mod documented;
mod ends;
mod errors;
mod failover;
mod fatal;
mod hostile;
mod kept;
mod looks;
mod moving;
mod nodes;
mod output;
mod reload;
mod results;
mod schemathesis;
mod slow_clients;
mod stand_in;
mod stops;
mod support;
mod tails;
mod terminal;
mod tls;
mod trust;
mod up;

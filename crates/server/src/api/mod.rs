//! The native API, a file for each resource.

pub(crate) mod again;
pub(crate) mod approvals;
pub(crate) mod describe;
pub(crate) mod docs;
pub(crate) mod events;
pub(crate) mod execution_view;
pub(crate) mod executions;
pub(crate) mod health;
pub(crate) mod journal;
pub(crate) mod metrics;
pub(crate) mod next_runs;
pub(crate) mod nodes;
pub(crate) mod openapi;
pub(crate) mod output;
pub(crate) mod page;
pub(crate) mod past;
pub(crate) mod past_view;
pub(crate) mod projects;
pub(crate) mod schedule_fields;
pub(crate) mod schedule_names;
pub(crate) mod schedule_view;
pub(crate) mod schedules;
mod schemas;
pub(crate) mod stream;
pub(crate) mod tokens;
pub(crate) mod touched;
pub(crate) mod why;

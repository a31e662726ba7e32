//! Conductor's scheduler API, for its existing clients.
//!
//! In: the paths and models of `/api/scheduler`. Out: schedules and runs of the kernel, under the rules of this face: Spring's crons
//! and clock changes, catch-up by `runCatchupScheduleInstances`, runs beside each other. Translated here and nowhere else.
//! `docs/conductor.md` says where the dialects of its servers differ, and what is answered here.

pub(crate) mod admin;
pub(crate) mod bulk;
pub(crate) mod error;
pub(crate) mod executions;
mod find;
mod model;
mod query;
pub(crate) mod record;
pub(crate) mod save;
pub(crate) mod schedules;
pub(crate) mod search;
pub(crate) mod tags;
pub(crate) mod times;
pub(crate) mod token;
pub(crate) mod workflow;

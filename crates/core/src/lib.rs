//! The rules of Punctual: when a schedule fires, what is planned and started, how a run lives and ends.
//!
//! Everything here is a pure function of its arguments: no clock, no database, no I/O. `now` is a parameter, ids are
//! given by the caller, zone data is opened by the caller. What a loop does with a decision is for `engine`, how it is
//! stored for `store`.
//!
//! The arrow through the rooms: [`time`] says when, [`schedule`] says what about, [`plan`] says which, [`run`] says
//! what follows, [`journal`] says what happened.

mod by;
mod error;
mod ids;
pub mod journal;
mod nearest;
pub mod plan;
pub mod run;
pub mod schedule;
mod shared;
mod slot_id;
mod stable_hash;
pub mod storable;
pub mod time;
mod token;
mod words;

pub use by::{Actor, By, Once};
pub use error::ParseError;
pub use ids::{NodeId, RunId, ScheduleId, TokenId};
pub use nearest::nearest;
pub use shared::{Sharable, Shared};
pub use slot_id::SlotId;
pub use time::Elapsed;
pub use token::{Role, Token};

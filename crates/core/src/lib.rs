//! The rules of Punctual.

mod error;
mod ids;
pub mod run;
pub mod schedule;
mod stable_hash;
pub mod time;
mod words;

pub use error::ParseError;
pub use ids::{NodeId, RunId, ScheduleId};
pub use time::Elapsed;

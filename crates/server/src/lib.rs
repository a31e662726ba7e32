//! The HTTP edge of Punctual: handlers translate, the engine decides.
//!
//! In: an [`App`], and a listener. Out: answers. Every route is registered with the [`auth::Right`] that it needs, in
//! `routes.rs`: there is no other way in. Status codes are chosen in `error.rs` alone.

mod api;
mod app;
pub mod auth;
mod calculations;
mod conductor;
mod error;
mod extract;
mod inside;
mod pulse;
mod reading;
mod routes;
mod serve;
mod tls;

pub use app::{App, ConductorRules, HouseRules};
pub use calculations::Calculations;
pub use inside::{LookedAt, look};
pub use pulse::Pulse;
pub use routes::router;
pub use serve::{ConnectionLimits, serve};
pub use tls::Certificate;

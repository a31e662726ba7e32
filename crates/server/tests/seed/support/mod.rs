//! The world in which the seed is tested: the real node with all its loops, a real store, the server's own routes, and a clock
//! that only the test moves. What an agent does is the test's to say; nothing else stands in for anything.

mod agents;
mod base;
mod clock;
mod http;
mod node;
mod stepped;
mod world;

#[path = "../../../../engine/tests/world/support/slots.rs"]
mod slots;

pub(crate) use agents::Way;
pub(crate) use base::{Base, on_postgres, on_sqlite};
pub(crate) use http::{field, fields};
pub(crate) use stepped::Stepped;
pub(crate) use world::{World, id_of};

use jiff::{SignedDuration, Timestamp};

/// One rule, on both stores.
macro_rules! on_both_stores {
    ($on_sqlite:ident, $on_postgres:ident, $body:expr) => {
        #[test]
        fn $on_sqlite() {
            $crate::support::on_sqlite($body);
        }

        #[test]
        fn $on_postgres() {
            $crate::support::on_postgres($body);
        }
    };
}
pub(crate) use on_both_stores;

pub(crate) const SECOND: SignedDuration = SignedDuration::from_secs(1);
pub(crate) const MINUTE: SignedDuration = SignedDuration::from_mins(1);
pub(crate) const HOUR: SignedDuration = SignedDuration::from_hours(1);

/// An instant: whole, or `16:00` of 18 February 2026, the day of the seed's example, in UTC. Denver is seven hours behind.
pub(crate) fn at(text: &str) -> Timestamp {
    let whole = match text.len() {
        5 => format!("2026-02-18T{text}:00Z"),
        8 => format!("2026-02-18T{text}Z"),
        _ => text.to_owned(),
    };
    whole.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

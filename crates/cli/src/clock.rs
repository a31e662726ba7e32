//! The one file that reads the clock.

use jiff::Timestamp;

/// The time now, for what a person asks without naming a time.
#[expect(clippy::disallowed_methods, reason = "this is the one clock file")]
pub(crate) fn now() -> Timestamp {
    Timestamp::now()
}

//! Ids: UUIDv7, so that they sort by the time at which they were made.

use jiff::Timestamp;
use uuid::Uuid;

/// Where ids come from. A simulation has its own, so that a seed gives the same ids again.
pub trait Ids: Send + Sync {
    /// A new id, made at an instant.
    fn next(&self, now: Timestamp) -> Uuid;
}

/// Ids with the machine's randomness.
#[derive(Debug, Clone, Copy, Default)]
pub struct RandomIds;

impl Ids for RandomIds {
    fn next(&self, now: Timestamp) -> Uuid {
        let seconds = now.as_second().max(0).unsigned_abs();
        let nanoseconds = now.subsec_nanosecond().max(0).unsigned_abs();
        Uuid::new_v7(uuid::Timestamp::from_unix(uuid::NoContext, seconds, nanoseconds))
    }
}

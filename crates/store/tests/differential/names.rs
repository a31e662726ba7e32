//! Short names for long things, so that a failing list of steps can be read: numbers for ids, seconds for times.

use jiff::{SignedDuration, Timestamp};
use punctual_core::time::SlotKey;
use punctual_core::{NodeId, RunId, ScheduleId};
use uuid::Uuid;

/// Milliseconds since the day began on which everything happens.
pub(crate) type Millis = i64;

pub(crate) fn time(millis: Millis) -> Timestamp {
    Timestamp::from_second(1_767_571_200).expect("5 January 2026") + SignedDuration::from_millis(millis)
}

pub(crate) fn millis(at: Timestamp) -> Millis {
    at.duration_since(time(0)).as_millis() as Millis
}

/// Ids whose order is not that in which they were made.
fn id(number: u32) -> Uuid {
    let shuffled = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    Uuid::from_u128(u128::from(shuffled) << 64 | u128::from(number))
}

/// A run by all bits of its id: a start gives runs the ids of their slots.
pub(crate) type RunNumber = u128;

/// The number of a run that is scheduled then: ids begin with that time, and their order within a millisecond is not that in which
/// they were made.
pub(crate) fn run_number(number: u32, scheduled: Millis) -> RunNumber {
    let (high, low) = id(number).as_u64_pair();
    // The bits that make it a UUIDv7.
    let rest = u128::from(high & 0xfff) << 64 | u128::from(high >> 20) << 32 | u128::from(low);
    RunId::first_at(time(scheduled)).0.as_u128() | 0x7000_8000_0000_0000_0000 | rest & !(3 << 62)
}

/// When a run was scheduled, as its number says.
pub(crate) fn scheduled_of(run: RunNumber) -> Millis {
    (run >> 80) as Millis - time(0).as_millisecond()
}

pub(crate) fn run_id(number: RunNumber) -> RunId {
    RunId(Uuid::from_u128(number))
}

pub(crate) fn schedule_id(number: u32) -> ScheduleId {
    ScheduleId(id(number))
}

pub(crate) fn node_id(number: u32) -> NodeId {
    NodeId(id(number))
}

/// The number that an id was made of.
pub(crate) fn number(id: Uuid) -> u32 {
    id.as_u128() as u32
}

/// The key of the slot in which an instant lies.
pub(crate) fn slot_key(millis: Millis) -> SlotKey {
    serde_json::from_value(format!("i:{}", time(millis).as_second()).into()).expect("a key is text")
}

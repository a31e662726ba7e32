//! The id of a slot's run: it says which slot, so that a slot has its id before it has a record.
//!
//! A UUIDv8: 48 bits of the scheduled time in milliseconds, 12 bits of a hash of the slot key, 62 bits of the schedule's id.
//! Invariant: the ids of one schedule sort by scheduled time, and two slots that may both run never share one: a timetable has
//! at most one open slot at an instant.
//!
//! The hash only matters where a schedule has several slots in one millisecond. That happens at the end of a gap, where all but
//! at most one are closed, and when an update of the zone data moves a slot to an instant that another has had. So an id
//! finds a slot, and the slot key, not the id, decides whether two slots are the same.

use jiff::Timestamp;
use uuid::Uuid;

use crate::stable_hash::StableHash;
use crate::time::SlotKey;
use crate::{RunId, ScheduleId};

const TIME_BITS: u32 = 48;
const HASH_BITS: u32 = 12;
const TAIL_BITS: u32 = 62;
const TIME_MAX: u64 = (1 << TIME_BITS) - 1;
const HASH_MASK: u64 = (1 << HASH_BITS) - 1;
const TAIL_MASK: u64 = (1 << TAIL_BITS) - 1;
/// Version 8: "custom" in RFC 9562.
const VERSION: u64 = 8;
/// The variant of RFC 9562, two bits.
const VARIANT: u64 = 0b10;

/// What the id of a slot's run says about its slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SlotId {
    /// When the slot is scheduled, in whole milliseconds since 1970. 0 for all slots before 1970.
    pub scheduled_ms: u64,
    /// The schedule, as [`ScheduleId::tail`] gives it.
    pub schedule_tail: u64,
    /// The hash of the slot key, as [`SlotId::hash_of`] gives it.
    pub key_hash: u16,
}

impl SlotId {
    /// The 12 bits by which slots of one millisecond differ, unless they collide.
    pub fn hash_of(key: &SlotKey) -> u16 {
        (StableHash::new().bytes(key.as_str().as_bytes()).finish() & HASH_MASK) as u16
    }

    /// The scheduled time as an id keeps it: cut to the millisecond, 0 before 1970.
    ///
    /// Times before 1970 have no place in an unsigned number that sorts. They are in the past of every schedule, and keep ids
    /// that are stable; only the hash tells them apart. The last instant of all time fits.
    pub fn milliseconds_of(scheduled_at: Timestamp) -> u64 {
        u64::try_from(scheduled_at.as_millisecond()).unwrap_or(0).min(TIME_MAX)
    }
}

impl ScheduleId {
    /// The last 62 bits of the id, which are random in a UUIDv7: what run ids name a schedule by.
    pub fn tail(self) -> u64 {
        self.0.as_u64_pair().1 & TAIL_MASK
    }
}

impl RunId {
    /// The id of the run of a slot. The same slot always has the same id.
    pub fn of(schedule: ScheduleId, scheduled_at: Timestamp, key: &SlotKey) -> RunId {
        let time = SlotId::milliseconds_of(scheduled_at);
        let high = time << (64 - TIME_BITS) | VERSION << HASH_BITS | u64::from(SlotId::hash_of(key));
        let low = VARIANT << TAIL_BITS | schedule.tail();
        RunId(Uuid::from_u64_pair(high, low))
    }

    /// The least id that a run can have that is scheduled at an instant, to the millisecond: every id begins with that time.
    pub fn first_at(at: Timestamp) -> RunId {
        RunId(Uuid::from_u64_pair(SlotId::milliseconds_of(at) << (64 - TIME_BITS), 0))
    }

    /// The least id of a run that is scheduled in a later millisecond than an instant.
    pub fn first_after(at: Timestamp) -> RunId {
        let next = SlotId::milliseconds_of(at).saturating_add(1).min(TIME_MAX);
        RunId(Uuid::from_u64_pair(next << (64 - TIME_BITS), 0))
    }

    /// Which slot the id names; `None` for a run that a person or an event has asked for, whose id is a UUIDv7.
    pub fn slot_id(self) -> Option<SlotId> {
        let (high, low) = self.0.as_u64_pair();
        let is_of_slot = high >> HASH_BITS & 0xf == VERSION && low >> TAIL_BITS == VARIANT;
        is_of_slot.then_some(SlotId {
            scheduled_ms: high >> (64 - TIME_BITS),
            schedule_tail: low & TAIL_MASK,
            key_hash: (high & HASH_MASK) as u16,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> SlotKey {
        serde_json::from_value(text.into()).unwrap()
    }

    fn schedule() -> ScheduleId {
        ScheduleId("0198f2c4-7a10-7b3e-9c55-0123456789ab".parse().unwrap())
    }

    #[test]
    fn an_id_is_the_one_it_has_always_been() {
        // Clients keep ids: a change of this text breaks them.
        let at: Timestamp = "2026-03-08T08:00:00Z".parse().unwrap();
        let id = RunId::of(schedule(), at, &key("2026-03-08T09:00:00/0@Europe/Paris"));
        assert_eq!(id.to_string(), "019ccc75-d400-8d60-9c55-0123456789ab");
        assert_eq!((id.0.get_version_num(), id.0.get_variant()), (8, uuid::Variant::RFC4122));
        let slot_id = id.slot_id().unwrap();
        assert_eq!(slot_id.scheduled_ms, 1_772_956_800_000);
        assert_eq!((slot_id.schedule_tail, schedule().tail()), (0x1c55_0123_4567_89ab, 0x1c55_0123_4567_89ab));
        assert_eq!(slot_id.key_hash, SlotId::hash_of(&key("2026-03-08T09:00:00/0@Europe/Paris")));
    }

    #[test]
    fn ids_that_no_slot_has_name_none() {
        for id in ["0198f2c4-7a10-7b3e-9c55-0123456789ab", "0198f2c4-7a10-8b3e-dc55-0123456789ab"] {
            assert_eq!(RunId(id.parse().unwrap()).slot_id(), None, "{id}");
        }
        assert_eq!(RunId(Uuid::nil()).slot_id(), None);
    }

    #[test]
    fn times_at_the_ends_of_time_have_ids() {
        let id = |at: Timestamp| RunId::of(schedule(), at, &key("i:0")).slot_id().unwrap().scheduled_ms;
        assert_eq!(id(Timestamp::MIN), 0);
        assert_eq!(id("1969-12-31T23:59:59.999Z".parse().unwrap()), 0);
        assert_eq!(id("1970-01-01T00:00:00.0019Z".parse().unwrap()), 1);
        assert_eq!(id(Timestamp::MAX), Timestamp::MAX.as_millisecond() as u64);
    }
}

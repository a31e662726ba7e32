//! The day: how far ahead runs are planned, and how long a day's runs may still start.

use jiff::{SignedDuration, Timestamp};

use crate::schedule::MaxDelay;
use crate::time::{SlotKey, Zone, just_before};

/// Planned beyond the end of the day, so that what is due at midnight starts on time.
pub const LOOK_AHEAD: SignedDuration = SignedDuration::from_mins(15);

/// A day's runs may start until so long after it.
pub const DAY_ENDED_AFTER: SignedDuration = SignedDuration::from_hours(1);

/// How far ahead runs are planned at an instant: to the end of the local day, and a little further.
pub fn horizon(zone: &Zone, now: Timestamp) -> Timestamp {
    later(zone.day_end(zone.day_of(now)), LOOK_AHEAD)
}

/// When a run scheduled at an instant is too late for its day.
pub fn day_ended_at(zone: &Zone, scheduled_at: Timestamp) -> Timestamp {
    later(zone.day_end(zone.day_of(scheduled_at)), DAY_ENDED_AFTER)
}

/// When a run that nobody has looked at is too late to be begun. Events and people do not ask for a day.
pub fn expires_at(
    max_delay: MaxDelay,
    zone: &Zone,
    key: &SlotKey,
    scheduled_at: Timestamp,
    due_at: Timestamp,
) -> Option<Timestamp> {
    match max_delay {
        MaxDelay::None => None,
        MaxDelay::Duration(delay) => Some(later(due_at, delay.duration())),
        MaxDelay::Day if !key.is_slot() => None,
        MaxDelay::Day => Some(day_ended_at(zone, scheduled_at)),
    }
}

/// The first instant at which the horizon reaches a slot: the start of its day, or of the day before for one in the
/// first minutes of a day.
pub(crate) fn in_horizon_from(zone: &Zone, scheduled_at: Timestamp) -> Timestamp {
    let must_end_at = scheduled_at.checked_sub(LOOK_AHEAD).unwrap_or(Timestamp::MIN);
    let starts_at = zone.day_start(zone.day_of(must_end_at));
    if starts_at < must_end_at {
        return starts_at;
    }
    // The day before ends at that very instant. Which date it has, only the zone knows.
    zone.day_start(zone.day_of(just_before(starts_at)))
}

fn later(at: Timestamp, by: SignedDuration) -> Timestamp {
    at.checked_add(by).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Zones;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn the_horizon_is_the_end_of_the_local_day_and_a_quarter_of_an_hour() {
        let zones = Zones::bundled();
        let denver = zones.get("America/Denver").unwrap();
        assert_eq!(horizon(&denver, at("2026-01-05T20:00:00Z")), at("2026-01-06T07:15:00Z"));
        // A day without a midnight begins at the end of the gap.
        let cairo = zones.get("Africa/Cairo").unwrap();
        assert_eq!(horizon(&cairo, at("2025-04-24T12:00:00Z")), at("2025-04-24T22:15:00Z"));
        assert_eq!(day_ended_at(&cairo, at("2025-04-24T12:00:00Z")), at("2025-04-24T23:00:00Z"));
    }

    #[test]
    fn a_slot_enters_the_horizon_at_the_start_of_a_day_and_not_before() {
        let zones = Zones::bundled();
        for name in [
            "America/Denver",
            "Africa/Cairo",
            "Pacific/Apia",
            "America/Santiago",
            "Australia/Lord_Howe",
            "America/St_Johns",
        ] {
            let zone = zones.get(name).unwrap();
            for start in [
                "2026-03-07T00:00:00Z",
                "2025-04-24T00:00:00Z",
                "2011-12-29T00:00:00Z",
                "2026-10-03T00:00:00Z",
                "2010-11-06T00:00:00Z",
            ] {
                for minutes in (0..60 * 72).step_by(5) {
                    let slot = later(at(start), SignedDuration::from_mins(minutes));
                    let from = in_horizon_from(&zone, slot);
                    assert!(slot <= horizon(&zone, from), "{name} {slot}: not yet at {from}");
                    let earlier = from - SignedDuration::from_nanos(1);
                    assert!(horizon(&zone, earlier) < slot, "{name} {slot}: already before {from}");
                }
            }
        }
    }
}

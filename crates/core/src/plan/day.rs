//! The day: how long a day's runs may still start.

use jiff::{SignedDuration, Timestamp};

use crate::schedule::MaxDelay;
use crate::time::{SlotKey, Zone};

/// A day's runs may start until so long after it.
pub const DAY_ENDED_AFTER: SignedDuration = SignedDuration::from_hours(1);

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
    fn a_day_without_a_midnight_ends_at_the_end_of_the_gap() {
        let cairo = Zones::bundled().get("Africa/Cairo").unwrap();
        assert_eq!(day_ended_at(&cairo, at("2025-04-24T12:00:00Z")), at("2025-04-24T23:00:00Z"));
    }
}

//! Every so often: elapsed time from a fixed anchor, whatever the clocks on the wall do.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::elapsed::Elapsed;
use super::zone::Zone;
use crate::error::ParseError;
use crate::storable;

/// The shortest interval there is. What a face allows may be longer; that is checked at its edge.
pub const INTERVAL_MIN: Elapsed = Elapsed::from_seconds(1);

const DAY_MILLISECONDS: i64 = 86_400_000;

/// An interval and the instant from which it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "EveryText", into = "EveryText")]
#[schemars(with = "EveryText")]
pub struct Every {
    interval: Elapsed,
    anchor: Timestamp,
}

impl Every {
    /// An interval that counts from the right place for having been set at `set_at`.
    ///
    /// An interval that divides the day counts from that day's start, so that 30 minutes means :00 and :30; any other
    /// counts from the moment it was set.
    pub fn anchored(interval: Elapsed, zone: &Zone, set_at: Timestamp) -> Result<Every, ParseError> {
        let divides_day = !interval.is_zero() && DAY_MILLISECONDS % interval.milliseconds() == 0;
        let anchor = if divides_day { zone.day_start(zone.day_of(set_at)) } else { set_at };
        Every::from_anchor(interval, anchor)
    }

    /// An interval that counts from a known anchor.
    pub fn from_anchor(interval: Elapsed, anchor: Timestamp) -> Result<Every, ParseError> {
        if interval < INTERVAL_MIN {
            let problem = format!("an interval of {interval} is too short");
            return Err(ParseError::value("every", problem, format!("use {INTERVAL_MIN} or more")));
        }
        if !storable::is_kept(anchor) {
            let problem = format!("the anchor {anchor} lies before the year 1");
            return Err(ParseError::value("every", problem, "use a year from 1 to 9999"));
        }
        let whole = Timestamp::from_millisecond(floor_millisecond(anchor)).unwrap_or(anchor);
        Ok(Every { interval, anchor: whole })
    }

    /// The time between two slots.
    pub fn interval(&self) -> Elapsed {
        self.interval
    }

    /// The instant from which the interval counts; slots lie at it and behind it.
    pub fn anchor(&self) -> Timestamp {
        self.anchor
    }

    /// The first slot behind an instant.
    pub(crate) fn next(&self, after: Timestamp) -> Option<Timestamp> {
        let elapsed = floor_millisecond(after) - self.anchor.as_millisecond();
        self.slot(elapsed.div_euclid(self.interval.milliseconds()) + 1)
    }

    /// The last slot before an instant.
    pub(crate) fn previous(&self, before: Timestamp) -> Option<Timestamp> {
        let anchor = self.anchor.as_millisecond();
        // The last whole millisecond that lies before the instant.
        let last = floor_millisecond(before) - i64::from(before.subsec_nanosecond() % 1_000_000 == 0);
        let number = (last - anchor).div_euclid(self.interval.milliseconds());
        (0 <= number).then(|| self.slot(number))?
    }

    fn slot(&self, number: i64) -> Option<Timestamp> {
        let offset = number.max(0).checked_mul(self.interval.milliseconds())?;
        Timestamp::from_millisecond(self.anchor.as_millisecond().checked_add(offset)?).ok()
    }
}

fn floor_millisecond(at: Timestamp) -> i64 {
    at.as_millisecond() - i64::from(at.subsec_nanosecond() % 1_000_000 < 0)
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Every")]
struct EveryText {
    /// The time between two slots.
    interval: Elapsed,
    /// The instant from which the interval counts.
    anchor: Timestamp,
}

impl TryFrom<EveryText> for Every {
    type Error = ParseError;

    fn try_from(text: EveryText) -> Result<Every, ParseError> {
        Every::from_anchor(text.interval, text.anchor)
    }
}

impl From<Every> for EveryText {
    fn from(every: Every) -> EveryText {
        EveryText { interval: every.interval, anchor: every.anchor }
    }
}

#[cfg(test)]
mod tests {
    use super::super::zone::Zones;
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn an_interval_that_divides_the_day_counts_from_its_start() {
        let denver = Zones::bundled().get("America/Denver").unwrap();
        let every =
            |text| Every::anchored(Elapsed::parse(text).unwrap(), &denver, at("2026-03-07T15:13:20.5Z")).unwrap();
        assert_eq!(every("30m").anchor(), at("2026-03-07T07:00:00Z"));
        assert_eq!(every("24h").anchor(), at("2026-03-07T07:00:00Z"));
        assert_eq!(every("7h").anchor(), at("2026-03-07T15:13:20.5Z"));
        assert_eq!(every("2d").anchor(), at("2026-03-07T15:13:20.5Z"));
    }

    #[test]
    fn slots_lie_on_the_grid_in_both_directions() {
        let every = Every::from_anchor(Elapsed::parse("7h").unwrap(), at("2026-01-01T00:00:00Z")).unwrap();
        assert_eq!(every.next(at("2025-06-01T00:00:00Z")), Some(at("2026-01-01T00:00:00Z")));
        assert_eq!(every.next(at("2026-01-01T00:00:00Z")), Some(at("2026-01-01T07:00:00Z")));
        assert_eq!(every.next(at("2026-01-01T06:59:59.999999999Z")), Some(at("2026-01-01T07:00:00Z")));
        assert_eq!(every.previous(at("2026-01-01T07:00:00Z")), Some(at("2026-01-01T00:00:00Z")));
        assert_eq!(every.previous(at("2026-01-01T07:00:00.000000001Z")), Some(at("2026-01-01T07:00:00Z")));
        assert_eq!(every.previous(at("2026-01-01T00:00:00Z")), None);
        assert_eq!(every.next(Timestamp::MAX), None);
    }

    #[test]
    fn half_seconds_count_and_less_than_a_second_is_refused() {
        let every = Every::from_anchor(Elapsed::parse("1s500ms").unwrap(), at("2026-01-01T00:00:00Z")).unwrap();
        assert_eq!(every.next(at("2026-01-01T00:00:00Z")), Some(at("2026-01-01T00:00:01.5Z")));
        let error = Every::from_anchor(Elapsed::parse("999ms").unwrap(), at("2026-01-01T00:00:00Z")).unwrap_err();
        assert_eq!(error.to_string(), "every: an interval of 999ms is too short; use 1s or more");
    }
}

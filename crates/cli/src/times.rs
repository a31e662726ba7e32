//! Times and durations, as people read them.

use clap::Args;
use jiff::tz::Offset;
use jiff::{SignedDuration, Timestamp};
use punctual_core::time::{Zone, Zones};
use punctual_engine::clock::now;

use crate::local_zone::local_zone;

/// Whose clock is shown.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ZoneArgs {
    /// The zone whose clock is shown and meant [default: that of this terminal: TZ, else the system's]
    #[arg(long, value_name = "ZONE")]
    zone: Option<String>,

    /// The same as --zone UTC
    #[arg(long, conflicts_with = "zone")]
    utc: bool,
}

impl ZoneArgs {
    /// The clock of whoever says nothing.
    pub(crate) fn default_wall() -> anyhow::Result<Wall> {
        ZoneArgs::default().wall()
    }

    /// The clock that is shown.
    pub(crate) fn wall(&self) -> anyhow::Result<Wall> {
        let zones = Zones::bundled();
        let zone = match &self.zone {
            Some(name) => zones.get(name)?,
            None if self.utc => zones.get("UTC")?,
            None => local_zone(&zones)?,
        };
        Ok(Wall { zone, now: now() })
    }
}

/// A clock on the wall: what it shows at an instant, and how far that is from now.
#[derive(Debug, Clone)]
pub(crate) struct Wall {
    pub(crate) zone: Zone,
    pub(crate) now: Timestamp,
}

impl Wall {
    /// Date and time, to the second.
    pub(crate) fn date_time(&self, at: Timestamp) -> String {
        self.show(at, "%Y-%m-%d %H:%M:%S")
    }

    /// Date and time with the day of the week.
    pub(crate) fn day_time(&self, at: Timestamp) -> String {
        self.show(at, "%a %Y-%m-%d %H:%M:%S")
    }

    /// The time, with its date only if that is another than the one beside it.
    pub(crate) fn beside(&self, at: Timestamp, other: Timestamp) -> String {
        let is_same_day = self.zone.day_of(at) == self.zone.day_of(other);
        if is_same_day { self.time(at) } else { self.date_time(at) }
    }

    /// Whose clock it is, for the end of a table.
    pub(crate) fn named(&self) -> String {
        format!("Times of {}.\n", self.zone.name())
    }

    /// The time alone.
    pub(crate) fn time(&self, at: Timestamp) -> String {
        self.show(at, "%H:%M:%S")
    }

    /// The hour alone.
    pub(crate) fn hour(&self, at: Timestamp) -> String {
        self.show(at, "%H")
    }

    fn show(&self, at: Timestamp, format: &str) -> String {
        let offset = Offset::from_seconds(self.zone.offset_at(at)).unwrap_or(Offset::UTC);
        offset.to_datetime(at).strftime(format).to_string()
    }

    /// How long it is until an instant: `2h 5min`, or `now` when it has come.
    pub(crate) fn left(&self, at: Timestamp) -> String {
        let left = at.duration_since(self.now);
        if left.is_positive() { span(left) } else { "now".to_owned() }
    }

    /// The same in a sentence: `in 2h 5min`, or `now`.
    pub(crate) fn until(&self, at: Timestamp) -> String {
        let left = at.duration_since(self.now);
        if left.as_secs() < 1 { "now".to_owned() } else { format!("in {}", span(left)) }
    }

    /// How long ago an instant was: `2h 5min ago`.
    pub(crate) fn passed(&self, at: Timestamp) -> String {
        let passed = self.now.duration_since(at);
        if passed.as_secs() < 1 { "now".to_owned() } else { format!("{} ago", span(passed)) }
    }
}

/// A duration in its two largest units, as `systemctl list-timers` has it.
pub(crate) fn span(duration: SignedDuration) -> String {
    let seconds = duration.as_secs().unsigned_abs();
    if seconds == 0 {
        return format!("{}ms", duration.subsec_millis().unsigned_abs());
    }
    let units = [(seconds / 86_400, "d"), (seconds / 3_600 % 24, "h"), (seconds / 60 % 60, "min"), (seconds % 60, "s")];
    let largest = units.iter().position(|(count, _)| 0 < *count).unwrap_or(3);
    let shown = units[largest..].iter().take(2).filter(|(count, _)| 0 < *count);
    shown.map(|(count, unit)| format!("{count}{unit}")).collect::<Vec<_>>().join(" ")
}

/// A length of time as people write it, like `2d` or `90m`; days have 24 hours.
pub(crate) fn span_read(text: &str) -> Option<SignedDuration> {
    text.parse::<jiff::Span>().ok()?.to_duration(jiff::SpanRelativeTo::days_are_24_hours()).ok()
}

/// Milliseconds as a duration.
pub(crate) fn span_of_ms(milliseconds: i64) -> String {
    span(SignedDuration::from_millis(milliseconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_has_its_two_largest_units() {
        for (seconds, text) in [
            (1, "1s"),
            (59, "59s"),
            (60, "1min"),
            (63, "1min 3s"),
            (7_500, "2h 5min"),
            (7_201, "2h"),
            (86_400, "1d"),
            (93_784, "1d 2h"),
        ] {
            assert_eq!(span(SignedDuration::from_secs(seconds)), text);
        }
        assert_eq!(span_of_ms(12), "12ms");
        assert_eq!(span_of_ms(0), "0ms");
    }

    #[test]
    fn a_wall_shows_its_own_zone_and_how_far_it_is() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let zone = Zones::bundled().get("Europe/Paris").unwrap();
        let wall = Wall { zone, now: at("2026-03-28T23:30:00Z") };
        assert_eq!(wall.date_time(at("2026-03-29T00:30:00Z")), "2026-03-29 01:30:00");
        assert_eq!(wall.day_time(at("2026-03-29T01:00:00Z")), "Sun 2026-03-29 03:00:00");
        assert_eq!(wall.left(at("2026-03-29T01:00:00Z")), "1h 30min");
        assert_eq!(wall.left(wall.now), "now");
        assert_eq!(wall.passed(at("2026-03-28T23:29:00Z")), "1min ago");
    }
}

//! Short ways to say and show times.

use jiff::{SignedDuration, Timestamp};

pub(crate) const SECOND: SignedDuration = SignedDuration::from_secs(1);
pub(crate) const MINUTE: SignedDuration = SignedDuration::from_mins(1);
pub(crate) const HOUR: SignedDuration = SignedDuration::from_hours(1);

/// An instant: whole, or `09:00` and `09:00:30` of 2026-01-05, the Monday on which most tests play.
pub(crate) fn at(text: &str) -> Timestamp {
    let whole = match text.len() {
        5 => format!("2026-01-05T{text}:00Z"),
        8 => format!("2026-01-05T{text}Z"),
        _ => text.to_owned(),
    };
    whole.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The time of day of an instant in UTC: what [`at`] reads.
pub(crate) fn clock_time(at: Timestamp) -> String {
    let text = at.to_string();
    let time = &text[11..text.len() - 1];
    time.strip_suffix(":00").unwrap_or(time).to_owned()
}

pub(crate) fn seconds(count: i64) -> SignedDuration {
    SignedDuration::from_secs(count)
}

pub(crate) fn minutes(count: i64) -> SignedDuration {
    SignedDuration::from_mins(count)
}

pub(crate) fn hours(count: i64) -> SignedDuration {
    SignedDuration::from_hours(count)
}

pub(crate) fn days(count: i64) -> SignedDuration {
    SignedDuration::from_hours(24 * count)
}

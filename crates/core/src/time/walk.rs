//! The segment walk: the civil times of a pattern, put on the time line of a zone.
//!
//! Inside a segment of constant offset a local time becomes an instant by one subtraction, so one civil search finds
//! the next hit; only at a segment's border does the zone matter. There, local times are missing (a gap) or come twice
//! (a repeat).
//! Invariant: hits come in strictly increasing order of (instant, local time), backwards in strictly decreasing order.
//! Not here: which of the hits in a gap runs. That needs the whole schedule (`timetable`).

use super::cron::Cron;
use super::times_of_day::TimesOfDay;
use super::zone::{Segment, Zone};

/// What matches local times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Pattern {
    Cron(Cron),
    Times(TimesOfDay),
}

impl Pattern {
    /// The first match at or after a local time.
    pub(crate) fn next(&self, local: i64) -> Option<i64> {
        match self {
            Pattern::Cron(cron) => cron.next(local),
            Pattern::Times(times) => times.next(local),
        }
    }

    /// The last match at or before a local time.
    pub(crate) fn previous(&self, local: i64) -> Option<i64> {
        match self {
            Pattern::Cron(cron) => cron.previous(local),
            Pattern::Times(times) => times.previous(local),
        }
    }

    pub(crate) fn matches(&self, local: i64) -> bool {
        match self {
            Pattern::Cron(cron) => cron.matches(local),
            Pattern::Times(times) => times.matches(local),
        }
    }

    /// Whether the pattern means times of day, so that a gap takes something from it. A rhythm loses nothing.
    pub(crate) fn is_fixed(&self) -> bool {
        match self {
            Pattern::Cron(cron) => !cron.is_interval_like(),
            Pattern::Times(_) => true,
        }
    }
}

/// A match of a pattern in a zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hit {
    /// The instant; for a local time in a gap, the end of the gap.
    pub(crate) second: i64,
    /// The local time that matched.
    pub(crate) local: i64,
    /// The offset in force at the instant.
    pub(crate) offset: i32,
    /// Whether this is the second pass of a repeated local time.
    pub(crate) is_second_pass: bool,
    /// The length of the gap that the local time fell into, or 0.
    pub(crate) gap: i64,
}

impl Hit {
    fn inside(segment: &Segment, local: i64) -> Hit {
        Hit {
            second: local - i64::from(segment.offset),
            local,
            offset: segment.offset,
            is_second_pass: local < segment.repeated_until(),
            gap: 0,
        }
    }

    /// A hit in the gap that ends where `segment` starts.
    fn in_gap_before(segment: &Segment, local: i64) -> Hit {
        Hit { second: segment.start, local, offset: segment.offset, is_second_pass: false, gap: segment.gap_before() }
    }
}

/// A pattern in a zone: what one cron of a trigger is.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub(crate) pattern: Pattern,
    pub(crate) zone: Zone,
    /// Whether a repeated local time counts in both passes.
    pub(crate) repeats: bool,
    /// The first source of the trigger that has the same zone.
    pub(crate) zone_listed: usize,
}

impl Source {
    /// The hits behind an instant.
    pub(crate) fn after(&self, second: i64) -> Forwards<'_> {
        let segment = self.zone.segment(second);
        let mut from = second + i64::from(segment.offset) + 1;
        if !self.repeats {
            from = from.max(segment.repeated_until());
        }
        Forwards { source: self, segment, from }
    }

    /// The hits before an instant, latest first.
    pub(crate) fn before(&self, second: i64) -> Backwards<'_> {
        let segment = self.zone.segment(second - 1);
        Backwards { source: self, segment, until: second - 1 + i64::from(segment.offset) }
    }

    /// Whether an instant is a hit that no gap has moved there.
    pub(crate) fn hits(&self, second: i64) -> bool {
        let segment = self.zone.segment(second);
        let local = second + i64::from(segment.offset);
        (self.repeats || segment.repeated_until() <= local) && self.pattern.matches(local)
    }
}

/// The hits of a source, earliest first.
#[derive(Debug)]
pub(crate) struct Forwards<'t> {
    source: &'t Source,
    segment: Segment,
    /// The first local time that is still to be looked at: in the segment, or in the gap behind it.
    from: i64,
}

impl Iterator for Forwards<'_> {
    type Item = Hit;

    fn next(&mut self) -> Option<Hit> {
        let Source { pattern, zone, repeats, .. } = self.source;
        // A civil time line that has nothing more may still be shown a second time.
        let find = |from: i64| pattern.next(from).unwrap_or(i64::MAX);
        let mut local = find(self.from);
        loop {
            let segment = &self.segment;
            if local < segment.local_end() {
                self.from = local + 1;
                return Some(Hit::inside(segment, local));
            }
            let following = zone.segment_after(segment)?;
            if local < following.local_start() {
                // In the gap. A rhythm goes on behind it; a time of day has lost something, and says so.
                if pattern.is_fixed() {
                    self.from = local + 1;
                    return Some(Hit::in_gap_before(&following, local));
                }
                self.from = following.local_start();
                self.segment = following;
                local = find(self.from);
                continue;
            }
            let repeat_starts = following.local_start();
            if *repeats && repeat_starts < self.from && repeat_starts < segment.local_end() {
                // The second pass shows again what lies before `from`.
                self.from = repeat_starts;
                self.segment = following;
                local = find(self.from);
                continue;
            }
            if local == i64::MAX {
                return None;
            }
            // Nothing matches up to `local`, so nothing is lost by going straight to where the clock shows it.
            self.from = local;
            self.segment = zone.segment_reaching(local);
            if local < self.segment.local_start() {
                self.segment = zone.segment_before(&self.segment)?;
            }
            if self.segment.local_end() <= local && self.segment.offset_after <= self.segment.offset {
                return None; // Time ends before the clock shows it.
            }
        }
    }
}

/// The hits of a source, latest first.
#[derive(Debug)]
pub(crate) struct Backwards<'t> {
    source: &'t Source,
    segment: Segment,
    /// The last local time that is still to be looked at: in the segment, or in the gap before it.
    until: i64,
}

impl Iterator for Backwards<'_> {
    type Item = Hit;

    fn next(&mut self) -> Option<Hit> {
        let Source { pattern, zone, repeats, .. } = self.source;
        let find = |until: i64| pattern.previous(until).unwrap_or(i64::MIN);
        let mut local = find(self.until);
        loop {
            let segment = &self.segment;
            let previous_ends = segment.repeated_until();
            let starts = if *repeats { segment.local_start() } else { segment.local_start().max(previous_ends) };
            if starts <= local {
                self.until = local - 1;
                return Some(Hit::inside(segment, local));
            }
            if previous_ends <= local && segment.local_start() > previous_ends {
                // In the gap before this segment.
                if pattern.is_fixed() {
                    self.until = local - 1;
                    return Some(Hit::in_gap_before(segment, local));
                }
                self.segment = zone.segment_before(segment)?;
                self.until = previous_ends - 1;
                local = find(self.until);
                continue;
            }
            let is_repeat = segment.local_start() < previous_ends;
            if is_repeat && (self.until < previous_ends - 1 || segment.local_start() <= local) {
                // The first pass shows what lies behind `until` in the second, and all that counts once.
                self.segment = zone.segment_before(segment)?;
                self.until = previous_ends - 1;
                local = find(self.until);
                continue;
            }
            if local == i64::MIN {
                return None;
            }
            // Nothing matches down to `local`: go straight to where the clock shows it.
            self.until = local;
            let reached = zone.segment_reached(local);
            if local < reached.local_start() {
                return None; // Time begins behind it.
            }
            self.segment = if local < reached.local_end() { reached } else { zone.segment_after(&reached)? };
        }
    }
}

//! The slots that the rules ask for, found by looking at every reading of every clock.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;
use punctual_core::run::SkipReason;
use punctual_core::schedule::{DstPolicy, GapPolicy, RepeatPolicy};

use super::clock::{Clocks, Reading, ReadingKind, Readings, timestamp};
use super::pattern::Reader;

/// A slot, reduced to what is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Row<'a> {
    pub(crate) scheduled_at: Timestamp,
    pub(crate) offset: Offset,
    pub(crate) nominal: DateTime,
    pub(crate) fold: u8,
    pub(crate) skipped: Option<SkipReason>,
    pub(crate) is_in_gap: bool,
    pub(crate) zone: &'a str,
}

/// The longest gap behind which a missed time still runs.
const GAP_MAX_SECONDS: i64 = 3 * 3600;

/// A reading that one of the crons names.
#[derive(Clone, Copy)]
struct Match<'a> {
    /// The place of the cron in its trigger.
    place: usize,
    is_interval_like: bool,
    zone: &'a str,
    readings: &'a Readings,
    reading: &'a Reading,
}

/// Everything in a window that a trigger names, before any policy. Patterns that differ in policy alone share it.
pub(crate) struct Matches<'a>(Vec<Match<'a>>);

impl<'a> Matches<'a> {
    /// Looks at every reading of every clock. The clocks of all zones must have been observed.
    pub(crate) fn find(readers: &'a [Reader], own_zone: &'a str, clocks: &'a Clocks) -> Matches<'a> {
        let mut matches = vec![];
        for (place, Reader { matcher, zone }) in readers.iter().enumerate() {
            let zone = zone.as_deref().unwrap_or(own_zone);
            let readings = clocks.readings(zone);
            let days: Vec<bool> = readings.dates.iter().map(|&date| matcher.matches_date(date)).collect();
            let named = readings.readings.iter().filter(|reading| {
                matcher.matches_time(reading.hour, reading.minute, reading.second) && days[reading.day]
            });
            let is_interval_like = matcher.is_interval_like;
            matches.extend(named.map(|reading| Match { place, is_interval_like, zone, readings, reading }));
        }
        Matches(matches)
    }

    /// The slots under a policy, in their order.
    pub(crate) fn slots(&self, policy: DstPolicy) -> Vec<Row<'a>> {
        let hits = self.hits(policy.repeat);
        let missed = self.missed();
        let mut rows: Vec<(usize, Row<'a>)> = vec![];
        for (index, matched) in missed.iter().enumerate() {
            let at = matched.reading.at;
            let is_earliest = !missed[..index].iter().any(|other| other.reading.at == at && other.zone == matched.zone);
            let is_end_a_slot = hits.iter().any(|hit| hit.reading.at == at);
            let is_run = policy.gap == GapPolicy::After
                && matched.gap_seconds() <= GAP_MAX_SECONDS
                && is_earliest
                && !is_end_a_slot;
            rows.push((matched.place, matched.row((!is_run).then_some(SkipReason::DstGap))));
        }
        // Clocks of several zones may jump at one instant, which is one run: that of the cron listed first.
        let runs: Vec<(Timestamp, usize)> = rows
            .iter()
            .filter(|(_, row)| row.skipped.is_none())
            .map(|(place, row)| (row.scheduled_at, *place))
            .collect();
        for (place, row) in &mut rows {
            if runs.iter().any(|(at, other)| *at == row.scheduled_at && other < place) {
                row.skipped = Some(SkipReason::DstGap);
            }
        }
        rows.extend(hits.iter().map(|hit| (hit.place, hit.row(None))));
        rows.sort_by_key(|(place, row)| (row.scheduled_at, !row.is_in_gap, row.nominal, *place));
        rows.into_iter().map(|(_, row)| row).collect()
    }

    /// What a clock shows, one for each instant: the first listed cron has it.
    fn hits(&self, repeat: RepeatPolicy) -> Vec<Match<'a>> {
        let is_hit = |matched: &&Match| match matched.reading.kind {
            ReadingKind::Shown => true,
            ReadingKind::ShownAgain => matched.is_interval_like || repeat == RepeatPolicy::Both,
            ReadingKind::Missing { .. } => false,
        };
        let mut hits: Vec<Match> = self.0.iter().filter(is_hit).copied().collect();
        hits.sort_by_key(|hit| (hit.reading.at, hit.place));
        hits.dedup_by_key(|hit| hit.reading.at);
        hits
    }

    /// What a clock jumps over, one for each zone and local time, earliest first.
    fn missed(&self) -> Vec<Match<'a>> {
        let is_missed =
            |matched: &&Match| matches!(matched.reading.kind, ReadingKind::Missing { .. }) && !matched.is_interval_like;
        let mut missed: Vec<Match> = self.0.iter().filter(is_missed).copied().collect();
        missed.sort_by_key(|matched| (matched.zone, matched.reading.at, matched.local(), matched.place));
        missed.dedup_by_key(|matched| (matched.zone, matched.reading.at, matched.local()));
        missed
    }
}

impl<'a> Match<'a> {
    fn local(&self) -> DateTime {
        self.readings.local(self.reading)
    }

    fn gap_seconds(&self) -> i64 {
        match self.reading.kind {
            ReadingKind::Missing { gap_seconds } => gap_seconds,
            ReadingKind::Shown | ReadingKind::ShownAgain => 0,
        }
    }

    fn row(&self, skipped: Option<SkipReason>) -> Row<'a> {
        Row {
            scheduled_at: timestamp(self.reading.at),
            offset: Offset::from_seconds(self.reading.offset as i32).expect("an offset of a clock"),
            nominal: self.local(),
            fold: u8::from(self.reading.kind == ReadingKind::ShownAgain),
            skipped,
            is_in_gap: self.gap_seconds() != 0,
            zone: self.zone,
        }
    }
}

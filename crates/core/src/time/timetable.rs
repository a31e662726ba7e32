//! A timetable: a schedule's trigger, compiled into the pure function from time to slots.
//!
//! In: trigger, zone, policies, calendar, bounds, jitter. Out: [`Slot`]s, lazily, forwards and backwards.
//! Invariant: every slot has one key and one instant, and comes out exactly once, also when it is skipped.
//! Not here: how many runs are left and how far ahead to plan (`plan`).

use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};

use super::calendar::Calendar;
use super::elapsed::Elapsed;
use super::interval::Every;
use super::look::{LOOK_MAX, Look};
use super::merge::{Direction, Merge};
use super::slot::{Named, Slot, SlotKey};
use super::walk::{Backwards, Forwards, Hit, Pattern, Source};
use super::zone::{UnknownZone, Zone, Zones, floor_microsecond, floor_second, instant};
use crate::ScheduleId;
use crate::run::SkipReason;
use crate::schedule::{At, Bounds, DstPolicy, GapPolicy, RepeatPolicy, Trigger};
use crate::stable_hash::StableHash;

/// Slots in a longer gap are all skipped: what was meant for a lost day is not meant for the next one.
const GAP_MOVED_MAX: i64 = 3 * 3_600;

/// How many slots tell how often a schedule fires.
const RATE_SLOTS: usize = 1_000;

/// The pure function from time to slots.
#[derive(Debug, Clone)]
pub struct Timetable {
    zone: Zone,
    rule: Rule,
    gap: GapPolicy,
    bounds: Bounds,
    calendar: Option<Box<(Calendar, Zone)>>,
    jitter: Option<Jitter>,
}

#[derive(Debug, Clone)]
enum Rule {
    Civil(Box<[Source]>),
    Every(Every),
    Once(Timestamp),
    /// Time alone makes no slots.
    Never,
}

impl Rule {
    fn civil(patterns: Vec<(Pattern, Zone)>, repeat: RepeatPolicy) -> Rule {
        let zones: Vec<Zone> = patterns.iter().map(|(_, zone)| zone.clone()).collect();
        let sources = patterns.into_iter().map(|(pattern, zone)| {
            let repeats = !pattern.is_fixed() || repeat == RepeatPolicy::Both;
            let zone_listed = zones.iter().position(|listed| *listed == zone).expect("it is listed itself");
            Source { pattern, zone, repeats, zone_listed }
        });
        Rule::Civil(sources.collect())
    }
}

#[derive(Debug, Clone, Copy)]
struct Jitter {
    schedule: ScheduleId,
    max: Elapsed,
}

impl Timetable {
    /// Compiles a trigger. `zone` is the schedule's own: its days are the schedule's days.
    pub fn new(trigger: &Trigger, zone: &str, dst: DstPolicy, zones: &Zones) -> Result<Timetable, UnknownZone> {
        let zone = zones.get(zone)?;
        let rule = match trigger {
            Trigger::Cron(crons) => {
                let patterns = crons.iter().map(|entry| {
                    let zone = entry.zone.as_deref().map_or(Ok(zone.clone()), |name| zones.get(name))?;
                    Ok((Pattern::Cron(entry.cron.clone()), zone))
                });
                Rule::civil(patterns.collect::<Result<_, UnknownZone>>()?, dst.repeat)
            }
            Trigger::Times(times) => Rule::civil(vec![(Pattern::Times(times.clone()), zone.clone())], dst.repeat),
            Trigger::Every(every) => Rule::Every(*every),
            Trigger::At(At(at)) => Rule::Once(floor_microsecond(*at)),
            Trigger::After(after) => after.instant().map_or(Rule::Never, |at| Rule::Once(floor_microsecond(at))),
            Trigger::Immediate(immediate) => Rule::Once(floor_microsecond(immediate.at)),
            Trigger::OnEvent(_) => Rule::Never,
        };
        Ok(Timetable { zone, rule, gap: dst.gap, bounds: Bounds::default(), calendar: None, jitter: None })
    }

    /// The same within bounds. How many runs are left is not a matter of time: `max_runs` is for planning.
    #[must_use]
    pub fn with_bounds(self, bounds: Bounds) -> Timetable {
        Timetable { bounds, ..self }
    }

    /// The same, open only when a calendar is.
    pub fn with_calendar(self, calendar: &Calendar, zones: &Zones) -> Result<Timetable, UnknownZone> {
        let zone = zones.get(calendar.zone())?;
        Ok(Timetable { calendar: Some(Box::new((calendar.clone(), zone))), ..self })
    }

    /// The same, each run due up to `max` later: by how much follows from schedule and slot alone.
    #[must_use]
    pub fn with_jitter(self, schedule: ScheduleId, max: Elapsed) -> Timetable {
        Timetable { jitter: (!max.is_zero()).then_some(Jitter { schedule, max }), ..self }
    }

    /// The schedule's own zone.
    pub fn zone(&self) -> &Zone {
        &self.zone
    }

    /// The zones whose clocks decide when its slots are.
    pub(crate) fn clocks(&self) -> impl Iterator<Item = &Zone> {
        let sources: &[Source] = if let Rule::Civil(sources) = &self.rule { sources } else { &[] };
        sources.iter().map(|source| &source.zone)
    }

    /// The slots scheduled behind an instant, in order: the first [`LOOK_MAX`], unless [`Slots::looking_at`] says otherwise.
    pub fn slots(&self, after: Timestamp) -> Slots<'_> {
        let after = match self.bounds.start_at() {
            Some(start_at) => after.max(just_before(start_at)),
            None => after,
        };
        let ahead = match &self.rule {
            Rule::Civil(sources) => {
                Ahead::Civil(Merge::new(sources, Direction::Forwards, |source| source.after(floor_second(after))))
            }
            Rule::Every(every) => Ahead::Every { every, after },
            Rule::Once(at) => Ahead::Once((after < *at).then_some(*at)),
            Rule::Never => Ahead::Once(None),
        };
        Slots { timetable: self, ahead, behind_gap: None, look: Look::at_most(LOOK_MAX) }
    }

    /// The slots scheduled before an instant, latest first: [`LOOK_MAX`], unless [`SlotsBefore::looking_at`] says otherwise.
    pub fn before(&self, before: Timestamp) -> SlotsBefore<'_> {
        let before = match self.bounds.end_at() {
            Some(end_at) => before.min(just_after(end_at)),
            None => before,
        };
        // The first whole second that is not before the instant.
        let second = floor_second(before) + i64::from(before.subsec_nanosecond() != 0);
        let behind = match &self.rule {
            Rule::Civil(sources) => {
                Behind::Civil(Merge::new(sources, Direction::Backwards, |source| source.before(second)))
            }
            Rule::Every(every) => Behind::Every { every, before },
            Rule::Once(at) => Behind::Once((*at < before).then_some(*at)),
            Rule::Never => Behind::Once(None),
        };
        SlotsBefore { timetable: self, behind, behind_gap: None, look: Look::at_most(LOOK_MAX) }
    }

    /// The slot of a key, if it is one of this timetable's. Zone data may have moved it since the key was made.
    pub fn slot(&self, key: &SlotKey) -> Option<Slot> {
        let second = match (key.named()?, &self.rule) {
            (Named::Instant(second), _) => second,
            (Named::Local { local, is_second_pass, zone }, Rule::Civil(sources)) => {
                let zone = sources.iter().map(|source| &source.zone).find(|known| known.name() == zone)?;
                let first = zone.segment_reaching(local);
                let segment = if is_second_pass { zone.segment_after(&first)? } else { first };
                // A time in a gap is scheduled at its end, where the segment starts.
                (local - i64::from(segment.offset)).max(segment.start)
            }
            (Named::Local { .. }, _) => return None,
        };
        let at = instant(second)?;
        self.slots(just_before(at))
            .take_while(|slot| floor_second(slot.scheduled_at) <= second)
            .find(|slot| slot.key() == *key)
    }

    /// The slots of a local day of the schedule's zone, skipped ones included.
    pub fn day_plan(&self, date: Date) -> Vec<Slot> {
        self.day_slots(date).collect()
    }

    /// How many runs a local day has.
    pub fn count_on(&self, date: Date) -> usize {
        self.day_slots(date).filter(|slot| slot.skipped.is_none()).count()
    }

    /// The shortest time between two runs in a row, for an edge that has a minimum; `None` with fewer than two runs.
    ///
    /// Looks at [`RATE_SLOTS`] slots behind an instant. A cron has the same times on each of its days, so that these tell;
    /// of several crons, a rare coincidence further ahead is not seen.
    pub fn shortest_interval(&self, after: Timestamp) -> Option<SignedDuration> {
        let runs = self.slots(after).looking_at(RATE_SLOTS).filter(|slot| slot.skipped.is_none());
        let mut before = None;
        runs.filter_map(|slot| {
            let since = before.replace(slot.scheduled_at)?;
            Some(slot.scheduled_at.duration_since(since))
        })
        .min()
    }

    fn day_slots(&self, date: Date) -> impl Iterator<Item = Slot> {
        let end = self.zone.day_end(date);
        self.slots(just_before(self.zone.day_start(date))).take_while(move |slot| slot.scheduled_at < end)
    }

    /// The slot of the hit of source `index`. `behind_gap` remembers the gap that was looked at last.
    fn resolve(&self, sources: &[Source], index: usize, hit: &Hit, behind_gap: &mut Option<BehindGap>) -> Option<Slot> {
        let mut skipped = None;
        if hit.gap != 0 {
            let ends_at = hit.second;
            let known = behind_gap.filter(|known| known.ends_at == ends_at);
            let gap = *behind_gap.insert(known.unwrap_or_else(|| self.behind_gap(sources, ends_at)));
            skipped = (gap.runs != Some((hit.local, index))).then_some(SkipReason::DstGap);
        }
        Slot::civil(hit, &sources[index].zone, skipped)
    }

    /// Which of the times lost in a gap runs at its end: the earliest, unless the end is itself a slot.
    fn behind_gap(&self, sources: &[Source], ends_at: i64) -> BehindGap {
        if self.gap == GapPolicy::Skip || sources.iter().any(|source| source.hits(ends_at)) {
            return BehindGap { ends_at, runs: None };
        }
        // Gaps of several zones may end at one instant, and one instant is one run: that of the first listed.
        let zones = sources.iter().enumerate().filter(|(index, source)| *index == source.zone_listed);
        let earliest = zones.filter_map(|(_, source)| first_in_gap(sources, source, ends_at));
        BehindGap { ends_at, runs: earliest.min_by_key(|(_, listed)| *listed) }
    }

    /// Calendar and jitter: what is the same for every kind of trigger.
    fn finish(&self, mut slot: Slot) -> Slot {
        if let Some((calendar, zone)) = self.calendar.as_deref()
            && slot.skipped.is_none()
        {
            let second = floor_second(slot.scheduled_at);
            if !calendar.is_open(second + i64::from(zone.segment(second).offset)) {
                slot.skipped = Some(SkipReason::Calendar);
            }
        }
        if let Some(jitter) = self.jitter
            && slot.skipped.is_none()
        {
            slot.due_at = self.jittered(&slot, jitter);
        }
        slot
    }

    fn jittered(&self, slot: &Slot, jitter: Jitter) -> Timestamp {
        let at = slot.scheduled_at;
        let mut hash = StableHash::new().bytes(jitter.schedule.0.as_bytes());
        slot.write_key(&mut hash).expect("hashing does not fail");
        let next = self.slots(at).advance().map(|next| next.scheduled_at);
        // Strictly before the next slot, and not behind the end.
        let room = next.map_or(i64::MAX, |next| next.duration_since(at).as_millis() as i64 - 1);
        let room = self.bounds.end_at().map_or(room, |end| room.min(end.duration_since(at).as_millis() as i64));
        let max = jitter.max.milliseconds().min(room).max(0);
        let delay = SignedDuration::from_millis((hash.finish() % (max.unsigned_abs() + 1)) as i64);
        at.checked_add(delay).unwrap_or(at)
    }
}

/// What runs at the end of a gap: the local time and the source, if any.
#[derive(Debug, Clone, Copy)]
struct BehindGap {
    ends_at: i64,
    runs: Option<(i64, usize)>,
}

/// The earliest local time that any source of a zone loses in the gap that ends at an instant, with the source.
fn first_in_gap(sources: &[Source], of_zone: &Source, ends_at: i64) -> Option<(i64, usize)> {
    let segment = of_zone.zone.segment(ends_at);
    if segment.start != ends_at || !(1..=GAP_MOVED_MAX).contains(&segment.gap_before()) {
        return None;
    }
    let lost = |source: &Source| {
        let is_affected = source.zone_listed == of_zone.zone_listed && source.pattern.is_fixed();
        let local = is_affected.then(|| source.pattern.next(segment.repeated_until()))??;
        (local < segment.local_start()).then_some(local)
    };
    sources.iter().enumerate().filter_map(|(index, source)| Some((lost(source)?, index))).min()
}

/// The slots behind an instant, in order. Allocates nothing per slot: once for several crons, and for their jitter.
#[derive(Debug)]
pub struct Slots<'t> {
    timetable: &'t Timetable,
    ahead: Ahead<'t>,
    behind_gap: Option<BehindGap>,
    look: Look,
}

#[derive(Debug)]
enum Ahead<'t> {
    Civil(Merge<'t, Forwards<'t>>),
    Every { every: &'t Every, after: Timestamp },
    Once(Option<Timestamp>),
}

impl Slots<'_> {
    /// The same, looking at so many slots at most, skipped ones included.
    #[must_use]
    pub fn looking_at(self, max: usize) -> Self {
        Slots { look: Look::at_most(max), ..self }
    }

    /// Where the walk ended because it had looked at as many slots as it may: the first that it did not look at. `None` while it
    /// goes on, and where there are no more slots.
    pub fn cut_at(&self) -> Option<Timestamp> {
        self.look.cut_at()
    }

    /// The next slot as the trigger has it, before calendar and jitter.
    fn advance(&mut self) -> Option<Slot> {
        let timetable = self.timetable;
        let slot = match &mut self.ahead {
            Ahead::Civil(hits) => {
                let (index, hit) = hits.next()?;
                timetable.resolve(hits.sources, index, &hit, &mut self.behind_gap)?
            }
            Ahead::Every { every, after } => {
                *after = every.next(*after)?;
                Slot::at_instant(*after, &timetable.zone)?
            }
            Ahead::Once(at) => Slot::at_instant(at.take()?, &timetable.zone)?,
        };
        (!timetable.bounds.is_behind(slot.scheduled_at)).then_some(slot)
    }
}

impl Iterator for Slots<'_> {
    type Item = Slot;

    fn next(&mut self) -> Option<Slot> {
        let mut look = self.look;
        let slot = look.at(|| self.advance());
        self.look = look;
        Some(self.timetable.finish(slot?))
    }
}

/// The slots before an instant, latest first.
#[derive(Debug)]
pub struct SlotsBefore<'t> {
    timetable: &'t Timetable,
    behind: Behind<'t>,
    behind_gap: Option<BehindGap>,
    look: Look,
}

#[derive(Debug)]
enum Behind<'t> {
    Civil(Merge<'t, Backwards<'t>>),
    Every { every: &'t Every, before: Timestamp },
    Once(Option<Timestamp>),
}

impl SlotsBefore<'_> {
    /// The same, looking at so many slots at most, skipped ones included.
    #[must_use]
    pub fn looking_at(self, max: usize) -> Self {
        SlotsBefore { look: Look::at_most(max), ..self }
    }

    /// Where the walk ended because it had looked at as many slots as it may: the first that it did not look at.
    pub fn cut_at(&self) -> Option<Timestamp> {
        self.look.cut_at()
    }

    /// The slot before as the trigger has it, before calendar and jitter.
    fn advance(&mut self) -> Option<Slot> {
        let timetable = self.timetable;
        let slot = match &mut self.behind {
            Behind::Civil(hits) => {
                let (index, hit) = hits.next()?;
                timetable.resolve(hits.sources, index, &hit, &mut self.behind_gap)?
            }
            Behind::Every { every, before } => {
                *before = every.previous(*before)?;
                Slot::at_instant(*before, &timetable.zone)?
            }
            Behind::Once(at) => Slot::at_instant(at.take()?, &timetable.zone)?,
        };
        (!timetable.bounds.is_before(slot.scheduled_at)).then_some(slot)
    }
}

impl Iterator for SlotsBefore<'_> {
    type Item = Slot;

    fn next(&mut self) -> Option<Slot> {
        let mut look = self.look;
        let slot = look.at(|| self.advance());
        self.look = look;
        Some(self.timetable.finish(slot?))
    }
}

/// The instant before, as fine as stores keep time: it may become a cursor. No slot is finer.
pub(crate) fn just_before(at: Timestamp) -> Timestamp {
    at.checked_sub(SignedDuration::from_nanos(1)).map_or(Timestamp::MIN, floor_microsecond)
}

fn just_after(at: Timestamp) -> Timestamp {
    at.checked_add(SignedDuration::from_nanos(1)).unwrap_or(Timestamp::MAX)
}

//! Outages: the times in which no node planned, as intervals that concern every schedule with a slot in them.
//!
//! In: outages, as entries note them. Out: what a schedule has to catch up with. No schedule changes when an outage is noted: each
//! says up to which one it knows ([`ScheduleRecord::outage_seq`]), and what of those is left. Invariant: whatever changes when its
//! next slot is due settles it first, so that its next slot is the one that it had when an unknown outage was noted.

use serde::{Deserialize, Serialize};

use super::world::ScheduleRecord;
use crate::plan::Outage;
use crate::schedule::Trigger;

/// The most outages that are kept apart.
const OUTAGES_MAX: usize = 64;

/// Outages in the order in which they were noted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Outages(Vec<NotedOutage>);

/// An outage, and the entry that noted it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NotedOutage {
    /// The number of the entry.
    pub seq: u64,
    /// The time in which no node planned.
    pub outage: Outage,
}

impl Outages {
    /// What a schedule has to catch up with: what is left of the outages that it knows, joined with those that were noted since and
    /// may have missed a slot of it.
    pub fn of(&self, record: &ScheduleRecord) -> Option<Outage> {
        self.after(record.outage_seq).fold(record.outage, |earlier, noted| match earlier {
            Some(earlier) => Some(earlier.and(noted.outage)),
            None => may_miss(record, &noted.outage).then_some(noted.outage),
        })
    }

    /// Brings a schedule to where it knows every outage, and says what it has to catch up with.
    pub fn settle(&self, record: &mut ScheduleRecord) {
        record.outage = self.of(record);
        record.outage_seq = self.last_seq();
    }

    /// The number of the entry that noted the last outage; 0 before the first.
    pub fn last_seq(&self) -> u64 {
        self.0.last().map_or(0, |noted| noted.seq)
    }

    /// The outages that were noted after an entry.
    pub fn after(&self, seq: u64) -> impl Iterator<Item = &NotedOutage> {
        self.0.iter().filter(move |noted| seq < noted.seq)
    }

    /// Notes an outage.
    pub fn note(&mut self, noted: NotedOutage) {
        self.0.push(noted);
        if self.0.len() <= OUTAGES_MAX {
            return;
        }
        // Whatever missed a slot before the end of the earlier of these two has missed one before the end of the later. Without such
        // two, the clock was set back for each outage.
        if let Some(first) = self.0.windows(2).position(|two| two[0].outage.until <= two[1].outage.until) {
            let earlier = self.0.remove(first);
            let later = &mut self.0[first];
            later.outage = earlier.outage.and(later.outage);
        }
    }
}

/// Whether an outage may have missed a slot of a schedule: the next one lies before its end, or no time is known for the next.
fn may_miss(record: &ScheduleRecord, outage: &Outage) -> bool {
    record.plan_at.map_or_else(|| record.may_have_slots(), |plan_at| plan_at <= outage.until)
}

impl ScheduleRecord {
    /// Whether there may be slots for which no time is known, as there are while as many runs live as may.
    pub fn may_have_slots(&self) -> bool {
        self.schedule.is_active() && !matches!(*self.schedule.trigger, Trigger::OnEvent(_))
    }
}

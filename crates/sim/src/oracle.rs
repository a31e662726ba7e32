//! The oracle: which slots a schedule has had, from its versions alone.
//!
//! It follows no planner and no cursor: each version of a schedule is a stretch of time with a timetable, from the instant at
//! which an edit put it into force. What stood in the store in between is not asked.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use punctual_core::schedule::{Cursor, Schedule};
use punctual_core::time::{Calendar, Slot, SlotKey, Timetable, Zones};

/// A version in force.
#[derive(Debug, Clone)]
pub(crate) struct Version {
    pub(crate) schedule: Schedule,
    /// From when on its slots are to be decided.
    pub(crate) from: Cursor,
    pub(crate) timetable: Arc<Timetable>,
    pub(crate) zone_data: String,
}

impl Version {
    pub(crate) fn new(schedule: &Schedule, zones: &Zones, calendars: &BTreeMap<String, Calendar>) -> Version {
        let timetable = schedule.timetable(zones, calendars).expect("what is stored can be compiled");
        Version {
            schedule: schedule.clone(),
            from: schedule.cursor.clone(),
            timetable: Arc::new(timetable),
            zone_data: zones.version().to_owned(),
        }
    }

    /// The slots that are to be decided, up to an instant.
    pub(crate) fn slots_until(&self, until: Timestamp) -> impl Iterator<Item = Slot> {
        let slots = self.timetable.slots(self.from.starts_behind(&self.timetable)).looking_at(usize::MAX);
        slots.take_while(move |slot| slot.scheduled_at <= until).filter(|slot| self.from.is_new(slot))
    }

    /// The slots that a cursor passes on its way to another, those aside that are decided already.
    pub(crate) fn passed(&self, from: &Cursor, to: &Cursor, is_decided: impl Fn(&SlotKey) -> bool) -> Vec<Slot> {
        let after = from.starts_behind(&self.timetable);
        // Slots of other zones and second passes may lie on either side of what a clock has shown.
        let slots = self.timetable.slots(after).looking_at(usize::MAX);
        let slots = slots.take_while(|slot| slot.scheduled_at <= to.at);
        slots.filter(|slot| from.is_new(slot) && !to.is_new(slot) && !is_decided(&slot.key())).collect()
    }

    /// The slots from one to another by their keys, if they are slots of this version in this order.
    pub(crate) fn range(&self, first: (&str, Timestamp), last: (&str, Timestamp)) -> Option<Vec<Slot>> {
        let from = first.1.checked_sub(SignedDuration::from_nanos(1)).ok()?;
        let slots = self.timetable.slots(from).looking_at(usize::MAX).take_while(|slot| slot.scheduled_at <= last.1);
        let mut range: Vec<Slot> = slots.skip_while(|slot| slot.key().as_str() != first.0).collect();
        let end = range.iter().position(|slot| slot.key().as_str() == last.0)?;
        range.truncate(end + 1);
        Some(range)
    }
}

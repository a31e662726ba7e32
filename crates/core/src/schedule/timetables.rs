//! Timetables: compiled schedules, kept so that each is compiled once and not at every slot.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use super::{CompileError, Schedule};
use crate::ScheduleId;
use crate::time::{Calendar, Timetable, Zones};

/// The most compiled schedules that are kept.
const TIMETABLES_MAX: usize = 50_000;

/// Timetables, each with the schedule that it was compiled from.
type Compiled = HashMap<ScheduleId, (Arc<Schedule>, Arc<Timetable>)>;

/// Zone data and calendars, and what schedules compile to with them.
///
/// A function that remembers: what it gives depends on nothing but the schedule.
#[derive(Debug)]
pub struct Timetables {
    zones: Arc<Zones>,
    calendars: BTreeMap<String, Calendar>,
    compiled: Mutex<Compiled>,
}

impl Timetables {
    /// Timetables with this zone data and these calendars.
    pub fn new(zones: Arc<Zones>, calendars: BTreeMap<String, Calendar>) -> Timetables {
        Timetables { zones, calendars, compiled: Mutex::default() }
    }

    /// The zone data.
    pub fn zones(&self) -> &Zones {
        &self.zones
    }

    /// The timetable of a schedule.
    pub fn of(&self, schedule: &Arc<Schedule>) -> Result<Arc<Timetable>, CompileError> {
        // A version says nothing: if commits were lost, another one may have come in its place.
        if let Some((known, timetable)) = self.compiled().get(&schedule.id)
            && known.has_timetable_of(schedule)
        {
            return Ok(Arc::clone(timetable));
        }
        let timetable = Arc::new(schedule.timetable(&self.zones, &self.calendars)?);
        let mut compiled = self.compiled();
        if TIMETABLES_MAX <= compiled.len()
            && let Some(any) = compiled.keys().next().copied()
        {
            compiled.remove(&any);
        }
        compiled.insert(schedule.id, (Arc::clone(schedule), Arc::clone(&timetable)));
        Ok(timetable)
    }

    fn compiled(&self) -> std::sync::MutexGuard<'_, Compiled> {
        self.compiled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! Timetables: compiled schedules, kept so that each is compiled once and not at every slot.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Bounds, CompileError, DstPolicy, Schedule, Trigger};
use crate::time::{Calendar, Timetable, Zones};
use crate::{Elapsed, ScheduleId, Shared};

/// The most timetables that are kept.
const TIMETABLES_MAX: usize = 50_000;

/// Everything that a schedule says about its slots: schedules that say the same share a timetable.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Times {
    trigger: Shared<Trigger>,
    zone: Shared<String>,
    calendar: Shared<Option<String>>,
    bounds: Shared<Bounds>,
    dst: DstPolicy,
    /// Jitter is each schedule's own.
    jitter: Option<(ScheduleId, Elapsed)>,
}

impl Times {
    fn of(schedule: &Schedule) -> Times {
        Times {
            trigger: schedule.trigger.clone(),
            zone: schedule.zone.clone(),
            calendar: schedule.calendar.clone(),
            bounds: schedule.bounds.clone(),
            dst: schedule.policy.dst,
            jitter: (!schedule.jitter.is_zero()).then_some((schedule.id, schedule.jitter)),
        }
    }
}

/// Zone data and calendars, and what schedules compile to with them.
///
/// A function that remembers: what it gives depends on nothing but the schedule.
#[derive(Debug)]
pub struct Timetables {
    zones: Arc<Zones>,
    calendars: BTreeMap<String, Calendar>,
    compiled: Mutex<HashMap<Times, Arc<Timetable>>>,
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
    pub fn of(&self, schedule: &Schedule) -> Result<Arc<Timetable>, CompileError> {
        let times = Times::of(schedule);
        if let Some(timetable) = self.compiled().get(&times) {
            return Ok(Arc::clone(timetable));
        }
        let timetable = Arc::new(schedule.timetable(&self.zones, &self.calendars)?);
        let mut compiled = self.compiled();
        if TIMETABLES_MAX <= compiled.len()
            && let Some(any) = compiled.keys().next().cloned()
        {
            compiled.remove(&any);
        }
        compiled.insert(times, Arc::clone(&timetable));
        Ok(timetable)
    }

    fn compiled(&self) -> MutexGuard<'_, HashMap<Times, Arc<Timetable>>> {
        self.compiled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::schedule::Work;

    #[test]
    fn schedules_that_say_the_same_share_a_timetable_unless_they_jitter() {
        let timetables = Timetables::new(Arc::new(Zones::bundled()), BTreeMap::new());
        let schedule = |number: u128, cron: &str, jitter: u32| {
            let work: Work = serde_json::from_str(r#"{"agent": {"agent": "reporter"}}"#).expect("it is work");
            let trigger: Trigger =
                serde_json::from_value(serde_json::json!({"cron": [{"expression": cron}]})).expect("it is a trigger");
            let draft = Schedule::draft(work, trigger, "UTC", Timestamp::UNIX_EPOCH);
            let (id, jitter) = (ScheduleId(uuid::Uuid::from_u128(number)), Elapsed::from_seconds(jitter));
            timetables.of(&Schedule { id, jitter, ..draft }).expect("the zone exists")
        };
        let daily = schedule(1, "0 9 * * *", 0);
        assert!(Arc::ptr_eq(&daily, &schedule(2, "0 9 * * *", 0)));
        assert!(!Arc::ptr_eq(&daily, &schedule(3, "0 8 * * *", 0)));
        assert!(!Arc::ptr_eq(&schedule(4, "0 9 * * *", 60), &schedule(5, "0 9 * * *", 60)));
    }
}

//! Due slots: the commit that first looks at one gives it its run, or its skip.
//!
//! In: a schedule whose next slot is due. Out: what is written about its slots up to now. A slot has no record before.

use std::panic::{AssertUnwindSafe, catch_unwind};

use jiff::Timestamp;
use punctual_core::journal::{Body, PlanEntry, PlannedRun, ScheduleRecord, SkipEntry};
use punctual_core::plan::{NextSlot, Pass, Planning, TooManyEarlyDecisions, next_slot, pass};
use punctual_core::schedule::{Schedule, Timetables};
use punctual_core::time::Slot;

use crate::change::Draft;

/// How many runs a schedule has that are not final.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LiveRuns {
    /// All of them.
    pub live: usize,
    /// Those that have not started.
    pub unstarted: usize,
}

/// What is written about the due slots of one schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueSlots {
    /// The runs, the cursor, and when to look again.
    pub plan: PlanEntry,
    /// The slots that get no run.
    pub skips: Vec<SkipEntry>,
    /// How many slots were looked at.
    pub looked_at: usize,
}

/// The most slots that one start looks at: what is due beyond that is decided by the next, at once. A start holds up every other
/// writer.
pub const LOOKED_AT_MAX: usize = 50_000;

/// As many of the due slots of schedules as one start decides, and whether there may be more.
pub fn take_due(due: impl Iterator<Item = DueSlots>, max: usize) -> (Vec<DueSlots>, bool) {
    let (mut taken, mut looked_at) = (vec![], 0);
    for slots in due {
        looked_at += slots.looked_at;
        taken.push(slots);
        if taken.len() == max || LOOKED_AT_MAX <= looked_at {
            return (taken, true);
        }
    }
    (taken, false)
}

/// Whether a start decides the slots of a schedule when they are due.
///
/// The planner decides the rest: an outage, of which there is none here, other zone data, the end of a pause.
pub fn is_for_start(record: &ScheduleRecord, timetables: &Timetables) -> bool {
    record.schedule.is_active() && *record.zone_data == timetables.zones().version()
}

/// Decides the slots of a schedule up to now.
///
/// `None` where nothing is to be decided, or where it fails: the planner sees what is wrong, and one schedule that cannot be decided
/// does not hold up the others.
pub fn due_slots(record: &ScheduleRecord, runs: LiveRuns, timetables: &Timetables, now: Timestamp) -> Option<DueSlots> {
    let decide = || {
        let schedule = &record.schedule;
        let timetable = timetables.of(schedule).ok()?;
        let planning =
            Planning { schedule, timetable: &timetable, waiting: runs.unstarted, answered: schedule.early.keys() };
        let passed = pass(&planning, &schedule.cursor, now);
        if passed.decisions.is_empty() && passed.cursor == schedule.cursor {
            return None;
        }
        let mut plan = entry_of(&planning, &passed, next_of(&planning).as_ref(), timetables.zones().version(), now);
        // Only the planner ends a schedule. Where a run is live, its end wakes it.
        let has_live = 0 < runs.live || !plan.runs.is_empty();
        if plan.plan_at.is_none() && !has_live {
            // It is due until the planner has looked: no start puts that off.
            if passed.decisions.is_empty() {
                return None;
            }
            plan.plan_at = Some(now);
        }
        let skips = passed.skips().map(|range| SkipEntry::new(schedule, range)).collect();
        // The search for the slot that was next before looks at as many again, at most.
        Some(DueSlots { plan, skips, looked_at: 2 * passed.looked_at() })
    };
    catch_unwind(AssertUnwindSafe(decide)).ok().flatten()
}

/// The slot after the cursor that a schedule's subscribers know of.
pub fn next_of(planning: &Planning<'_>) -> Option<Slot> {
    match next_slot(planning, &planning.schedule.cursor).next {
        NextSlot::Open(slot) | NextSlot::Full(slot) => Some(slot),
        NextSlot::Exhausted(_) | NextSlot::Cut | NextSlot::Inactive | NextSlot::Never => None,
    }
}

/// The entry of a pass; `was_next` is the slot that was the schedule's next one before.
pub fn entry_of(
    planning: &Planning<'_>,
    passed: &Pass,
    was_next: Option<&Slot>,
    zone_data: &str,
    now: Timestamp,
) -> PlanEntry {
    let Planning { schedule, timetable, .. } = *planning;
    let zone = timetable.zone();
    let planned = |slot: &Slot| PlannedRun::new(schedule, zone, slot);
    let runs: Vec<PlannedRun> = passed.runs().map(planned).collect();
    let next = match &passed.upcoming.next {
        NextSlot::Open(slot) | NextSlot::Full(slot) => Some(planned(slot)),
        NextSlot::Exhausted(_) | NextSlot::Cut | NextSlot::Inactive | NextSlot::Never => None,
    };
    let before = was_next.map(planned);
    let is_before = |run: &PlannedRun| before.as_ref().is_some_and(|before| before.id == run.id);
    let was_next = runs.first().is_some_and(is_before);
    let is_same = next.as_ref().is_some_and(is_before);
    let mut early = schedule.early.clone();
    early.drop_passed(timetable, &passed.cursor);
    PlanEntry {
        schedule: schedule.id,
        version: schedule.version,
        cursor: passed.cursor.clone(),
        // A pause that ends by itself is ended by planning.
        plan_at: passed.wake_at(zone, now).or(schedule.paused_until()),
        zone_data: zone_data.to_owned(),
        early,
        outage: None,
        next: next.filter(|_| !is_same),
        next_gone: before.filter(|_| !was_next && !is_same).filter(|it| !is_skipped(it, passed)).map(|it| it.id),
        was_next,
        runs,
        moved: vec![],
        withdrawn: vec![],
    }
}

/// Whether a pass has skipped a slot: then that is told of it.
fn is_skipped(slot: &PlannedRun, passed: &Pass) -> bool {
    let covers = |first: Timestamp, last: Timestamp| first <= slot.scheduled_at && slot.scheduled_at <= last;
    passed.skips().any(|range| covers(range.first.scheduled_at, range.last.scheduled_at))
}

/// Writes what was decided about due slots. How many runs are new.
pub fn write_due(draft: &mut Draft, due: Vec<DueSlots>) -> usize {
    let mut runs = 0;
    for DueSlots { plan, skips, .. } in due {
        let count = plan.runs.len();
        // What the journal refuses is left to the planner, whole.
        if draft.add(Body::Planned(plan)).is_ok() {
            runs += count;
            skips.into_iter().for_each(|skip| draft.add(Body::Skipped(skip)).expect("its schedule is there"));
        }
    }
    runs
}

/// The entry that records a slot before its time, so that it can be cancelled.
pub fn early_entry(
    planning: &Planning<'_>,
    record: &ScheduleRecord,
    slot: &Slot,
    now: Timestamp,
) -> Result<PlanEntry, TooManyEarlyDecisions> {
    let Planning { schedule, timetable, .. } = *planning;
    let mut early = schedule.early.clone();
    early.decide(slot.key())?;
    let was_next = next_of(planning);
    let decided: Schedule = Schedule { early, ..schedule.clone() };
    let after = Planning { schedule: &decided, answered: decided.early.keys(), ..*planning };
    // Slots that are due by now are not passed: the cursor stays where it is.
    let passed = pass(&after, &schedule.cursor, schedule.cursor.at.min(now));
    let own = PlannedRun::new(schedule, timetable.zone(), slot);
    let mut entry = entry_of(&after, &passed, was_next.as_ref(), &record.zone_data, now);
    entry.was_next = was_next.is_some_and(|next| next.key() == slot.key());
    entry.next_gone = None;
    entry.cursor.clone_from(&schedule.cursor);
    entry.runs = vec![own];
    entry.outage = record.outage;
    Ok(entry)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use punctual_core::time::Zones;
    use serde_json::json;

    use super::*;

    /// A schedule that fires every second for an hour and is closed all that time.
    fn closed(number: u128) -> ScheduleRecord {
        let schedule = json!({
            "id": uuid::Uuid::from_u128(number),
            "version": 1,
            "work": {"agent": {"agent": "reporter"}},
            "trigger": {"cron": [{"expression": "* * * * * *"}]},
            "zone": "UTC",
            "calendar": "never",
            "cursor": {"at": "2026-01-05T00:00:00Z"},
        });
        let schedule: Schedule = serde_json::from_value(schedule).unwrap();
        ScheduleRecord { zone_data: Zones::bundled().version().into(), ..ScheduleRecord::new(schedule, now()) }
    }

    fn now() -> Timestamp {
        "2026-01-05T01:00:00Z".parse().unwrap()
    }

    #[test]
    fn one_start_looks_at_so_many_slots_and_says_that_there_are_more() {
        let never = serde_json::from_value(json!({"name": "never", "zone": "UTC", "weekly": {}})).unwrap();
        let timetables = Timetables::new(Arc::new(Zones::bundled()), [("never".to_owned(), never)].into());
        let records: Vec<ScheduleRecord> = (1..=100).map(closed).collect();
        let due = || records.iter().filter_map(|it| due_slots(it, LiveRuns::default(), &timetables, now()));
        let (taken, has_more) = take_due(due(), 1_000);
        let looked_at: usize = taken.iter().map(|it| it.looked_at).sum();
        assert!(has_more && taken.len() < 10, "{} schedules, {looked_at} slots", taken.len());
        assert!(taken.iter().all(|it| 3_600 <= it.looked_at && it.skips[0].count == 3_600));
        let (taken, has_more) = take_due(due().take(2), 1_000);
        assert_eq!((taken.len(), has_more), (2, false));
        let (taken, has_more) = take_due(due(), 1);
        assert_eq!((taken.len(), has_more), (1, true));
    }
}

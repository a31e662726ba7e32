//! Checks: what is said about a schedule that somebody asks for, before it is written. Pure.
//!
//! In: a schedule as it would be. Out: its next times and what is worth a warning, or why it cannot be.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use punctual_core::Elapsed;
use punctual_core::schedule::{CompileError, Schedule, Trigger};
use punctual_core::time::{LOOK_MAX, Slot, SlotKey, Slots, Timetable};

use crate::settings::Settings;

/// How many slots are looked at, skipped or not, for one that runs and for how often it does.
const LOOKED_AT_MAX: usize = 10_000;

/// How many runs tell the shortest time between two.
const GAPS_MAX: usize = 2_000;

const DAY: SignedDuration = SignedDuration::from_hours(24);

/// What operators lay down for schedules that others make.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The shortest time between two runs.
    pub min_interval: Elapsed,
    /// With more runs a day there is a warning.
    pub runs_per_day_warning: usize,
}

/// Why a schedule cannot be.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// It names something that does not exist.
    #[error(transparent)]
    Invalid(#[from] CompileError),
    /// It would never run.
    #[error("it never fires: {0}")]
    NeverFires(&'static str),
    /// It would run too often.
    #[error("it fires every {found}, and may every {allowed} at most")]
    TooOften {
        /// The shortest time between two runs.
        found: Elapsed,
        /// The shortest that is allowed.
        allowed: Elapsed,
    },
}

/// What there is to say about a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outlook {
    /// What it does, in plain English.
    pub description: String,
    /// Its next slots, skipped ones included.
    pub slots: Vec<Slot>,
    /// How many runs it has in the next 24 hours.
    pub runs_per_day: usize,
    /// What may not be as it was meant.
    pub warnings: Vec<String>,
}

/// Looks at what a schedule would do from `now` on, and refuses one that cannot be.
pub fn check(
    schedule: &Schedule,
    settings: &Settings,
    limits: &Limits,
    now: Timestamp,
    count: usize,
) -> Result<Outlook, Refused> {
    let timetable = schedule.timetable(&settings.zones, &settings.calendars)?;
    let from = Schedule::cursor_from(&schedule.trigger, now).at;
    let first = first_run(timetable.slots(from));
    if !matches!(*schedule.trigger, Trigger::OnEvent(_)) && first == NextRun::Never {
        return Err(Refused::NeverFires(match *schedule.trigger {
            Trigger::At(_) => "its time is past",
            _ => "no time matches its expression, zone, bounds and calendar",
        }));
    }
    if let Some(found) = shortest_gap(&schedule.trigger, &timetable, from).filter(|gap| *gap < limits.min_interval) {
        return Err(Refused::TooOften { found, allowed: limits.min_interval });
    }
    let runs_per_day = runs_until(&timetable, from, now.checked_add(DAY).unwrap_or(Timestamp::MAX));
    let mut warnings: Vec<String> = first.warning().into_iter().collect();
    if limits.runs_per_day_warning < runs_per_day {
        warnings.push(format!("it has {runs_per_day} runs in the next 24 hours"));
    }
    if !settings.roster.now().names.contains(schedule.work.agent()) {
        warnings.push(format!("no agent {:?} is configured on this node", schedule.work.agent()));
    }
    let slots: Vec<Slot> = timetable.slots(from).take(count).collect();
    let description = schedule.trigger.describe(&schedule.zone);
    Ok(Outlook { description, slots, runs_per_day, warnings })
}

/// The same for a change of a schedule: one that keeps its times is not refused for them, as those that have come are past.
pub fn check_change(
    before: &Schedule,
    wanted: &Schedule,
    settings: &Settings,
    limits: &Limits,
    now: Timestamp,
    count: usize,
) -> Result<Outlook, Refused> {
    let times = |schedule: &Schedule| {
        let Schedule { trigger, zone, calendar, bounds, jitter, .. } = schedule;
        (trigger.clone(), zone.clone(), calendar.clone(), bounds.clone(), *jitter)
    };
    match check(wanted, settings, limits, now, count) {
        Err(Refused::NeverFires(_) | Refused::TooOften { .. }) if times(before) == times(wanted) => {
            let description = wanted.trigger.describe(&wanted.zone);
            Ok(Outlook { description, slots: vec![], runs_per_day: 0, warnings: vec![] })
        }
        checked => checked,
    }
}

/// Whether a schedule has a time to come at all.
pub fn will_fire(schedule: &Schedule, settings: &Settings, now: Timestamp) -> Result<bool, CompileError> {
    let timetable = schedule.timetable(&settings.zones, &settings.calendars)?;
    // Too many skipped slots in a row end the search in favour of the schedule.
    Ok(first_run(timetable.slots(Schedule::cursor_from(&schedule.trigger, now).at)) != NextRun::Never)
}

/// How far a change is looked ahead.
const DIFFERENCE_OF: SignedDuration = SignedDuration::from_hours(7 * 24);

/// The most slots of each kind that a difference has.
const DIFFERENCE_MAX: usize = 1_000;

/// What a change of a schedule would change in the runs of the next seven days.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Difference {
    /// Slots that would run and do not now, by time.
    pub added: Vec<Slot>,
    /// Slots that run now and would not, by time.
    pub removed: Vec<Slot>,
    /// How many stay.
    pub kept: usize,
    /// Whether there is more than is told.
    pub is_cut: bool,
}

/// Compares the runs of the next seven days of a schedule as it is and as it would be; none where there is no schedule.
pub fn difference(
    before: Option<&Schedule>,
    after: Option<&Schedule>,
    settings: &Settings,
    now: Timestamp,
) -> Result<Difference, CompileError> {
    let (before, is_cut_before) = week(before, settings, now)?;
    let (after, is_cut_after) = week(after, settings, now)?;
    let only = |these: &BTreeMap<SlotKey, Slot>, others: &BTreeMap<SlotKey, Slot>| {
        let mut only: Vec<Slot> =
            these.iter().filter(|(key, _)| !others.contains_key(key)).map(|(_, slot)| slot.clone()).collect();
        only.sort_by_key(|slot| slot.scheduled_at);
        only
    };
    Ok(Difference {
        added: only(&after, &before),
        removed: only(&before, &after),
        kept: after.keys().filter(|key| before.contains_key(key)).count(),
        is_cut: is_cut_before || is_cut_after,
    })
}

/// The slots of the next seven days that run, by key; whether there are more.
fn week(
    schedule: Option<&Schedule>,
    settings: &Settings,
    now: Timestamp,
) -> Result<(BTreeMap<SlotKey, Slot>, bool), CompileError> {
    let Some(schedule) = schedule.filter(|schedule| schedule.is_active()) else { return Ok((BTreeMap::new(), false)) };
    let timetable = schedule.timetable(&settings.zones, &settings.calendars)?;
    let until = now.checked_add(DIFFERENCE_OF).unwrap_or(Timestamp::MAX);
    let from = Schedule::cursor_from(&schedule.trigger, now).at;
    let left = schedule.bounds.max_runs().map_or(usize::MAX, |max| max.saturating_sub(schedule.runs_started) as usize);
    let mut slots = timetable.slots(from).looking_at(LOOK_MAX);
    let mut runs = slots.by_ref().take_while(|slot| slot.scheduled_at < until);
    let mut runs = runs.by_ref().filter(|slot| slot.skipped.is_none()).take(left);
    let found = runs.by_ref().take(DIFFERENCE_MAX).map(|slot| (slot.key(), slot)).collect();
    let has_more = runs.next().is_some();
    Ok((found, has_more || slots.cut_at().is_some_and(|at| at < until)))
}

/// When a schedule runs next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextRun {
    /// At this time.
    At(Timestamp),
    /// Not before this time, for all that is known: so many of its slots in a row are skipped that the search ended there.
    NotBefore(Timestamp),
    /// At no time.
    Never,
}

impl NextRun {
    /// The time, if one is known.
    pub fn at(self) -> Option<Timestamp> {
        match self {
            NextRun::At(at) => Some(at),
            NextRun::NotBefore(_) | NextRun::Never => None,
        }
    }

    /// What whoever asked should know, if the search ended before it had found anything.
    pub fn warning(self) -> Option<String> {
        let NextRun::NotBefore(until) = self else { return None };
        Some(format!(
            "it does not run before {until}: its next {LOOKED_AT_MAX} times are all skipped, and later ones were not looked at"
        ))
    }
}

/// When a schedule runs next behind an instant. `planned` is the time of its first run behind that instant which is planned.
///
/// A slot up to the cursor has its answer: a planned run, or one that was called off and does not run. Only behind the cursor
/// the timetable says what is next.
pub fn next_run_at(schedule: &Schedule, planned: Option<Timestamp>, settings: &Settings, now: Timestamp) -> NextRun {
    // A pause that ends by itself has a next run after its end.
    let from = match schedule.paused_until() {
        Some(until) => until.max(now),
        None if schedule.is_active() => now,
        None => return NextRun::Never,
    };
    let open = match schedule.timetable(&settings.zones, &settings.calendars) {
        Ok(timetable) => {
            let is_undecided = |slot: &Slot| schedule.cursor.is_new(slot) && !schedule.early.has(&slot.key());
            first_run_that(timetable.slots(from.max(schedule.cursor.at)), is_undecided)
        }
        Err(_) => NextRun::Never,
    };
    match (planned, open) {
        (None, open) => open,
        (Some(planned), NextRun::At(open)) => NextRun::At(planned.min(open)),
        (Some(planned), NextRun::NotBefore(_) | NextRun::Never) => NextRun::At(planned),
    }
}

fn first_run(slots: Slots<'_>) -> NextRun {
    first_run_that(slots, |_| true)
}

/// The first slot that runs and that is wanted, among as many as are looked at.
fn first_run_that(slots: Slots<'_>, is_wanted: impl Fn(&Slot) -> bool) -> NextRun {
    let mut slots = slots.looking_at(LOOKED_AT_MAX);
    let found = slots.find(|slot| slot.skipped.is_none() && is_wanted(slot));
    match (found, slots.cut_at()) {
        (Some(slot), _) => NextRun::At(slot.scheduled_at),
        (None, Some(until)) => NextRun::NotBefore(until),
        (None, None) => NextRun::Never,
    }
}

/// The shortest time between two runs of what repeats by a rhythm; times of day are as few as they are.
fn shortest_gap(trigger: &Trigger, timetable: &Timetable, from: Timestamp) -> Option<Elapsed> {
    if !matches!(trigger, Trigger::Cron(_) | Trigger::Every(_)) {
        return None;
    }
    let mut before: Option<Timestamp> = None;
    let mut shortest: Option<SignedDuration> = None;
    let slots = timetable.slots(from).looking_at(LOOKED_AT_MAX);
    for slot in slots.filter(|slot| slot.skipped.is_none()).take(GAPS_MAX) {
        let gap = before.map(|before| slot.scheduled_at.duration_since(before));
        shortest = [shortest, gap].into_iter().flatten().min();
        before = Some(slot.scheduled_at);
    }
    Elapsed::from_milliseconds(i64::try_from(shortest?.as_millis()).ok()?)
}

fn runs_until(timetable: &Timetable, from: Timestamp, until: Timestamp) -> usize {
    let day = timetable.slots(from).looking_at(LOOK_MAX).take_while(|slot| slot.scheduled_at < until);
    day.filter(|slot| slot.skipped.is_none()).count()
}

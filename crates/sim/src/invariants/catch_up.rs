//! Catch-up: the policy decides the slots that an outage missed, each outage once, and no others (I13).

use std::collections::BTreeMap;

use jiff::Timestamp;
use punctual_core::journal::{PlanEntry, PlannedRun, SkipEntry, World};
use punctual_core::plan::Outage;
use punctual_core::run::{Run, SkipReason};
use punctual_core::schedule::{CatchUpMode, Trigger};
use punctual_core::time::{Slot, SlotKey};
use punctual_core::{RunId, ScheduleId};
use punctual_kernel::change::outage;

use super::{Check, ensure};
use crate::oracle::Version;

/// What schedules have missed, and what becomes of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct CatchUps {
    /// What each schedule has to catch up with: noted for each of them with the outage, and what a plan leaves of it.
    missed: BTreeMap<ScheduleId, Outage>,
    /// What catch-up has skipped so far in the commit that is being taken in.
    skipped: BTreeMap<ScheduleId, Vec<SlotKey>>,
}

/// What a plan passes, and when.
pub(crate) struct Passing<'a> {
    pub(crate) at: Timestamp,
    /// The slots that the cursor passes, by time.
    pub(crate) passed: &'a [Slot],
    /// Whether the same commit edits the schedule.
    pub(crate) is_edit: bool,
    /// When the planner's lease ends.
    pub(crate) planned_until: Option<Timestamp>,
}

impl CatchUps {
    pub(crate) fn skipped(&mut self, skip: &SkipEntry, range: &[Slot]) {
        if skip.reason == SkipReason::CatchUp {
            self.skipped.entry(skip.schedule).or_default().extend(range.iter().map(Slot::key));
        }
    }

    /// An outage is noted: it concerns schedules whose next slot lies before its end, or may lie there.
    pub(crate) fn noted(&mut self, outage: &Outage, before: &World) {
        for (id, record) in &before.schedules {
            let has_slots = record.schedule.is_active() && !matches!(*record.schedule.trigger, Trigger::OnEvent(_));
            let earlier = self.missed.get(id);
            if earlier.is_some() || record.plan_at.map_or(has_slots, |plan_at| plan_at <= outage.until) {
                self.missed.insert(*id, earlier.map_or(*outage, |earlier| earlier.and(*outage)));
            }
        }
    }

    pub(crate) fn deleted(&mut self, schedule: ScheduleId) {
        self.missed.remove(&schedule);
    }

    /// A commit has been taken in: each skip had a plan that goes with it, and each schedule has to catch up with what it has missed,
    /// no more and no less.
    pub(crate) fn committed(&mut self, after: &World) -> Check {
        let left = std::mem::take(&mut self.skipped);
        ensure("I13", left.is_empty(), || format!("catch-up skips {left:?} without a plan"))?;
        for (id, record) in &after.schedules {
            let (found, missed) = (after.outages.of(record), self.missed.get(id));
            // Where many outages are joined, they begin earlier.
            let is_same = |found: &Outage| missed.is_some_and(|it| *found == Outage { from: found.from, ..*it });
            ensure("I13", found.as_ref().map_or(missed.is_none(), is_same), || {
                format!("schedule {id} has missed {missed:?}, and has to catch up with {found:?}")
            })?;
        }
        Ok(())
    }

    /// Looks at a plan that passes slots before it changes the world: if it catches up, it does what the policy says.
    pub(crate) fn planned(
        &mut self,
        plan: &PlanEntry,
        before: &World,
        version: &Version,
        Passing { at, passed, is_edit, planned_until }: Passing<'_>,
    ) -> Check {
        let id = plan.schedule;
        let skipped = self.skipped.remove(&id).unwrap_or_default();
        let missed = self.missed.remove(&id);
        self.missed.extend(plan.outage.map(|rest| (id, rest)));
        let Some(outage) = missed.filter(|_| plan.outage != missed) else {
            let is_made = is_edit && version.schedule.policy.catch_up.covers_pauses;
            // Whoever edits may be the first to see that nobody plans.
            let is_seen = plan.outage == outage(planned_until, at) && passed.is_empty() && plan.runs.is_empty();
            ensure("I13", plan.outage == missed || is_made || is_seen, || {
                format!("schedule {id} has to catch up with {:?} because of a plan", plan.outage)
            })?;
            ensure("I13", missed.is_none() || passed.is_empty() || is_edit, || {
                format!("slots of schedule {id} were decided before {missed:?} was caught up")
            })?;
            return ensure("I13", skipped.is_empty(), || format!("schedule {id} skips {skipped:?} without an outage"));
        };
        if is_edit {
            // The end of a pause that is caught up may add to an outage; nothing else touches it.
            let covers = |it: Outage| it.from <= outage.from && outage.until <= it.until && it.kept.is_none();
            let is_kept = plan.outage.is_some_and(covers) && version.schedule.policy.catch_up.covers_pauses;
            return ensure("I13", is_kept && skipped.is_empty() && passed.is_empty(), || {
                format!("an edit of schedule {id} turns {outage:?} into {:?}", plan.outage)
            });
        }
        // No history has as many slots as one call decides.
        ensure("I13", plan.outage.is_none(), || {
            format!("schedule {id} catches {outage:?} up, all but {:?}", plan.outage)
        })?;
        let until = outage.until.min(at);
        let later = passed.iter().find(|slot| until < slot.scheduled_at).map(Slot::key);
        ensure("I13", later.is_none(), || format!("catching {outage:?} up, schedule {id} decided {later:?}"))?;
        let missed: Vec<&Slot> = passed.iter().filter(|slot| slot.skipped.is_none()).collect();
        let kept: Vec<SlotKey> = plan.runs.iter().map(|run| run.key.clone()).collect();
        let expected = keeps(version, until, &missed, runs_left(version, before));
        ensure("I13", kept == expected, || {
            let (policy, missed) = (version.schedule.policy.catch_up, missed.iter().map(|slot| slot.key()));
            let missed: Vec<SlotKey> = missed.collect();
            format!("schedule {id} under {policy:?} kept {kept:?} of {missed:?} missed in {outage:?}: not {expected:?}")
        })?;
        let rest: Vec<SlotKey> = missed.iter().map(|slot| slot.key()).filter(|key| !kept.contains(key)).collect();
        ensure("I13", skipped == rest, || format!("schedule {id} skipped {skipped:?}, not {rest:?}, for {outage:?}"))?;
        are_placed(version, &plan.runs, at)
    }
}

/// What is kept is due when it is caught up, or later; one after another where all are kept.
fn are_placed(version: &Version, runs: &[PlannedRun], at: Timestamp) -> Check {
    let is_in_order = version.schedule.policy.catch_up.mode == CatchUpMode::All;
    let mut last: Option<RunId> = None;
    for run in runs {
        ensure("I13", at <= run.due_at, || format!("run {} is caught up at {at}, and due {}", run.id, run.due_at))?;
        let follows = last.filter(|_| is_in_order);
        ensure("I13", run.follows == follows, || {
            format!("run {} starts after {:?}, not {follows:?}", run.id, run.follows)
        })?;
        last = Some(run.id);
    }
    Ok(())
}

/// How many more runs the schedule may ever have.
fn runs_left(version: &Version, before: &World) -> usize {
    let id = version.schedule.id;
    let Some(max) = version.schedule.bounds.max_runs() else { return usize::MAX };
    let is_unstarted = |run: &&Run| run.schedule == Some(id) && !run.has_started;
    let unstarted = before.live_runs().filter(is_unstarted).count() as u64;
    let started = before.schedules.get(&id).map_or(0, |record| record.schedule.runs_started);
    max.saturating_sub(started + unstarted) as usize
}

/// Which slots run of those that an outage up to an instant missed, in order.
fn keeps(version: &Version, until: Timestamp, missed: &[&Slot], mut runs_left: usize) -> Vec<SlotKey> {
    let policy = version.schedule.policy.catch_up;
    let oldest = policy.window.and_then(|window| until.checked_sub(window.duration()).ok());
    // What jitter makes due after the outage was not missed.
    let is_missed = |slot: &&&Slot| slot.due_at <= until;
    let within = missed.iter().filter(is_missed).filter(|slot| oldest.is_none_or(|oldest| oldest <= slot.scheduled_at));
    let within: Vec<SlotKey> = within.map(|slot| slot.key()).collect();
    let last = |count: usize| within[within.len().saturating_sub(count.min(runs_left))..].to_vec();
    let kept = match policy.mode {
        CatchUpMode::None => vec![],
        CatchUpMode::First => within.iter().take(1).cloned().collect(),
        CatchUpMode::Latest => last(1),
        CatchUpMode::All => last(policy.max as usize),
    };
    let mut runs = vec![];
    for slot in missed.iter().filter(|slot| until < slot.due_at || kept.contains(&slot.key())) {
        if 0 < runs_left {
            runs.push(slot.key());
            runs_left -= 1;
        }
    }
    runs
}

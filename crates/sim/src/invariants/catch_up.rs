//! Catch-up: what an outage missed is made up for as the policy says, once (I13).

use std::collections::BTreeMap;

use jiff::Timestamp;
use punctual_core::ScheduleId;
use punctual_core::journal::{Body, Entry, PlanEntry, SkipEntry, World};
use punctual_core::plan::Outage;
use punctual_core::run::{Outcome, Run, RunEvent, RunState, SkipReason};
use punctual_core::schedule::CatchUpMode;
use punctual_core::time::Slot;

use super::{Check, ensure};
use crate::oracle::Version;

/// What the entries of one planning decision have let go so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct CatchUps {
    let_go: BTreeMap<ScheduleId, Vec<Timestamp>>,
    is_edit: Option<ScheduleId>,
}

impl CatchUps {
    /// Notes runs that are let go before the plan that says why.
    pub(crate) fn note(&mut self, entry: &Entry, before: &World) -> Check {
        if let Body::RunChanged(change) = &entry.body
            && change.event == RunEvent::Skipped(SkipReason::CatchUp)
            && let (Some(schedule), Some(run)) = (change.schedule, before.runs.get(&change.run))
        {
            self.let_go.entry(schedule).or_default().push(run.scheduled_at);
            let outage = before.schedules.get(&schedule).and_then(|record| record.outage);
            let is_missed = outage.is_some_and(|outage| outage.from < run.due_at && run.due_at <= outage.until);
            return ensure("I13", is_missed && run.is_untouched(), || {
                format!("run {} due {} was let go, which {outage:?} did not miss", run.id, run.due_at)
            });
        }
        Ok(())
    }

    pub(crate) fn skipped(&mut self, skip: &SkipEntry, range: &[Slot]) {
        if skip.reason == SkipReason::CatchUp {
            self.let_go.entry(skip.schedule).or_default().extend(range.iter().map(|slot| slot.scheduled_at));
        }
    }

    /// An edit plans too, and makes up for nothing.
    pub(crate) fn edited(&mut self, schedule: ScheduleId) {
        self.is_edit = Some(schedule);
    }

    /// Looks at a plan before it changes the world: if it makes up for an outage, what it keeps is what the policy says.
    pub(crate) fn planned(&mut self, plan: &PlanEntry, before: &World, version: &Version) -> Check {
        let let_go = self.let_go.remove(&plan.schedule).unwrap_or_default();
        let is_edit = self.is_edit.take() == Some(plan.schedule);
        let Some(record) = before.schedules.get(&plan.schedule) else { return Ok(()) };
        let Some(outage) = record.outage else {
            return ensure("I13", let_go.is_empty(), || {
                format!("schedule {} let {let_go:?} go without an outage", plan.schedule)
            });
        };
        if is_edit || plan.outage.is_some() {
            return Ok(());
        }
        let is_missed = |due_at: Timestamp| outage.from < due_at && due_at <= outage.until;
        let waiting = before.runs.values().filter(|run| run.schedule == Some(plan.schedule));
        let waiting = waiting.filter(|run| run.is_untouched() && run.key.is_slot() && is_missed(run.due_at));
        // If planning takes too long, nothing waits for it: what was claimed or called off meanwhile counts as kept.
        let is_skipped = |run: &Run| matches!(run.state, RunState::Finished { outcome: Outcome::Skipped(_), .. });
        let mut own = before.runs.values().filter(|run| run.schedule == Some(plan.schedule) && run.key.is_slot());
        let has_touched = own.any(|run| is_missed(run.due_at) && !run.is_untouched() && !is_skipped(run));
        let mut kept: Vec<Timestamp> = waiting.map(|run| run.scheduled_at).collect();
        for run in &plan.runs {
            let slot = version.timetable.slot(&run.key);
            kept.extend(slot.filter(|slot| slot.due_at <= outage.until).map(|slot| slot.scheduled_at));
        }
        kept.sort_unstable();
        let mut missed = [kept.clone(), let_go].concat();
        missed.sort_unstable();
        let expected = keeps(version, &outage, &missed);
        // A maximum of runs may allow fewer, and a decision of several calls is not seen here as a whole.
        let is_partial = outage.kept.is_some() || version.schedule.bounds.max_runs().is_some() || has_touched;
        let is_right = if is_partial { kept.len() <= expected.len() } else { kept == expected };
        ensure("I13", is_right, || {
            let policy = version.schedule.policy.catch_up;
            format!("schedule {} under {policy:?} kept {kept:?} of {missed:?} missed in {outage:?}", plan.schedule)
        })
    }
}

/// What the policy keeps of what was missed, in order.
fn keeps(version: &Version, outage: &Outage, missed: &[Timestamp]) -> Vec<Timestamp> {
    let policy = version.schedule.policy.catch_up;
    let oldest = policy.window.and_then(|window| outage.until.checked_sub(window.duration()).ok());
    let within: Vec<Timestamp> =
        missed.iter().copied().filter(|at| oldest.is_none_or(|oldest| oldest <= *at)).collect();
    let last = |count: usize| within[within.len().saturating_sub(count)..].to_vec();
    match policy.mode {
        CatchUpMode::None => vec![],
        CatchUpMode::First => within.into_iter().take(1).collect(),
        CatchUpMode::Latest => last(1),
        CatchUpMode::All => last(policy.max as usize),
    }
}

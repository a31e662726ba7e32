//! Limits: how many runs hold a place at once (I5), and when a run may begin at all (I7).

use punctual_core::journal::{Body, Entry, World};
use punctual_core::plan::Limits;
use punctual_core::run::{Run, RunState};
use punctual_core::schedule::{Overlap, ScheduleState};

use super::{Check, ensure};
use crate::ledger::Moment;

/// Looks at claims and starts, before they change the world.
pub(crate) fn check(entry: &Entry, before: &World, limits: &Limits, moment: &Moment) -> Check {
    match &entry.body {
        Body::RunsClaimed { runs, .. } => {
            let mut held: Vec<&Run> = before.live_runs().filter(|run| run.owner().is_some()).collect();
            for id in runs {
                let Some(run) = before.runs.get(id) else {
                    return ensure("I5", false, || format!("run {id} was claimed and is not there"));
                };
                has_place(run, &held, limits)?;
                // Whatever the node's clock says, it is the store's that counts.
                let now = moment.now.map_or(entry.at, |now| now.min(entry.at));
                ensure("I7", run.planned_for().is_some_and(|due_at| due_at <= now), || {
                    format!("run {id} was claimed at {now}, before it was due")
                })?;
                held.push(run);
            }
            Ok(())
        }
        Body::RunsStarted { runs } => runs.iter().filter_map(|id| before.runs.get(id)).try_for_each(|run| {
            let schedule = run.schedule.and_then(|id| before.schedules.get(&id)).map(|record| &record.schedule);
            let is_paused = schedule.is_some_and(|it| matches!(it.state, ScheduleState::Paused(_)));
            ensure("I7", !is_paused || run.key.is_manual(), || format!("run {} started while paused", run.id))?;
            is_alone(run, before)
        }),
        _ => Ok(()),
    }
}

/// Under `skip` and `queue` nothing begins beside another run of its schedule; what goes on after a wait was there before.
fn is_alone(run: &Run, before: &World) -> Check {
    let allows = !matches!(run.terms.overlap, Overlap::Skip | Overlap::Queue);
    let resumes = matches!(run.state, RunState::Claimed { resumes: true, .. });
    let is_beside = |other: &&Run| {
        let is_at_work = matches!(other.state, RunState::Running { .. } | RunState::Waiting { .. });
        other.id != run.id && other.schedule.is_some() && other.schedule == run.schedule && is_at_work
    };
    let other = before.live_runs().find(is_beside).map(|it| it.id);
    ensure("overlap", allows || resumes || other.is_none(), || format!("run {} began beside {other:?}", run.id))
}

/// The number of runs that hold a place is below every limit that another one shares.
pub(crate) fn has_place(run: &Run, held: &[&Run], limits: &Limits) -> Check {
    let terms = &run.terms;
    let agent = terms.work.agent();
    let count = |shares: &dyn Fn(&Run) -> bool| held.iter().filter(|other| shares(other)).count() as u32;
    let below = |what: &str, count: u32, max: u32| {
        ensure("I5", count < max, || format!("run {} was claimed as number {} of {max} by {what}", run.id, count + 1))
    };
    if let Some(max) = limits.global {
        below("the global limit", held.len() as u32, max)?;
    }
    let of_agent = count(&|other| other.terms.work.agent() == agent);
    below("its schedule's limit", of_agent, terms.max_concurrent.get())?;
    if let Some(max) = limits.agents.get(agent) {
        below("its agent's limit", of_agent, *max)?;
    }
    if let Some(max) = terms.project.as_ref().and_then(|project| limits.projects.get(project)) {
        below("its project's limit", count(&|other| other.terms.project == terms.project), *max)?;
    }
    if let Some(shared) = &terms.concurrency {
        let has_key = |other: &Run| other.terms.concurrency.as_ref().is_some_and(|its| its.key == shared.key);
        below("its key's limit", count(&has_key), shared.max.get())?;
    }
    Ok(())
}

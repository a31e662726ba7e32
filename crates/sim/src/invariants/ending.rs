//! The end: nothing goes wrong any more, so everything has to come right (L1 to L5).

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use punctual_core::RunId;
use punctual_core::journal::World;
use punctual_core::run::Run;
use punctual_store::memory::State;

use super::{Check, caps, ensure};
use crate::setup::Setup;

/// No wrong clock is ahead by less, and no run rests for as long.
const CLOCK_WRONG_MIN: SignedDuration = SignedDuration::from_hours(24);

/// How long things may take once nothing goes wrong: a lease that has to end, a poll, and a little.
pub(crate) fn bound(setup: &Setup) -> Duration {
    setup.lease + setup.poll + Duration::from_secs(60)
}

/// The runs that have been due for long, and that wait for nothing.
pub(crate) fn left_waiting(state: &State, now: Timestamp, setup: &Setup) -> BTreeSet<RunId> {
    let is_overdue = |run: &&Run| run.planned_for().is_some_and(|due_at| due_at + patience(setup) < now);
    let left = state.world.live_runs().filter(is_overdue).filter(|run| !has_reason(run, state, setup));
    left.map(|run| run.id).collect()
}

fn patience(setup: &Setup) -> SignedDuration {
    SignedDuration::try_from(bound(setup)).unwrap_or(SignedDuration::ZERO)
}

/// Every run that could be at work is, and every loop does what it is there for. `left` are the runs that could be at work a while
/// ago.
pub(crate) fn is_healthy(state: &State, now: Timestamp, setup: &Setup, left: &BTreeSet<RunId>) -> Check {
    let patience = patience(setup);
    let nodes = state.nodes.values().filter(|node| now <= node.lease_until).count();
    ensure("L5", nodes == setup.slots, || format!("{nodes} of {} nodes keep their lease", setup.slots))?;
    ensure("L5", state.planner.is_some_and(|planner| now <= planner.until), || "nobody plans".to_owned())?;
    for record in state.world.schedules.values() {
        let id = record.schedule.id;
        let missed = state.world.outages.of(record);
        ensure("L5", missed.is_none(), || format!("schedule {id} never made up for {missed:?}"))?;
        let is_late = record.plan_at.is_some_and(|plan_at| plan_at + patience < now);
        ensure("L5", !is_late, || format!("schedule {id} was to be planned at {:?}", record.plan_at))?;
    }
    for run in state.world.live_runs() {
        if let Some(owner) = run.owner() {
            ensure("L3", state.nodes.contains_key(&owner), || format!("run {} has a dead owner", run.id))?;
        }
        let is_left = left.contains(&run.id) && run.planned_for().is_some();
        ensure("L1", !is_left || has_reason(run, state, setup), || {
            format!("run {} is due since {:?} and nobody takes it: {:?}", run.id, run.planned_for(), run)
        })?;
    }
    Ok(())
}

/// Why a run that is due waits: for others of its schedule, for a limit, or for a place on a node that has its agent.
fn has_reason(run: &Run, state: &State, setup: &Setup) -> bool {
    let world = &state.world;
    let held: Vec<&Run> = world.live_runs().filter(|run| run.owner().is_some()).collect();
    let has_place = |id| held.iter().filter(|run| run.owner() == Some(id)).count() < setup.places;
    let agent = run.terms.work.agent();
    let is_offered = state.nodes.values().any(|node| node.agents.contains(agent) && has_place(node.id));
    waits_for_another(run, world) || caps::has_place(run, &held, &setup.limits).is_err() || !is_offered
}

/// Whether another run of the same schedule is at work, or goes first and can.
fn waits_for_another(run: &Run, world: &World) -> bool {
    let siblings = || world.live_runs().filter(|other| other.schedule.is_some() && other.schedule == run.schedule);
    let is_other = |other: &&Run| other.id != run.id;
    siblings().filter(is_other).any(|other| other.is_active() || other.planned_for() < run.planned_for())
        || siblings().filter(is_other).any(|other| run.follows == Some(other.id) && !other.has_started)
}

/// With everything paused, every run comes to its end. One that was caught up while a clock was wrong waits for the time it showed, as
/// its schedule does.
pub(crate) fn is_over(state: &State, now: Timestamp) -> Check {
    let is_due = |run: &&Run| run.planned_for().is_none_or(|due_at| due_at <= now + CLOCK_WRONG_MIN);
    let left: Vec<&Run> = state.world.live_runs().filter(is_due).collect();
    ensure("L3", left.is_empty(), || {
        let states: Vec<String> = left.iter().map(|run| format!("{} {:?}", run.id, run.state)).collect();
        format!("{} runs never end, the first is {:?}; all: {}", left.len(), left[0], states.join(", "))
    })
}

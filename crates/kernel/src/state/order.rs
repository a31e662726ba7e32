//! The order within a schedule: which planned runs have to let others go first, and which find another at work.
//!
//! The rules are [`World::is_blocked`] and [`World::overlaps`]. They ask whether *any* other run of a schedule is at work, or
//! waits in front: so it is enough to show them one run at work and the first that waits, however many there are.
//!
//! [`World::is_blocked`]: punctual_core::journal::World::is_blocked
//! [`World::overlaps`]: punctual_core::journal::World::overlaps

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use jiff::Timestamp;
use punctual_core::run::{Run, RunState};
use punctual_core::schedule::Overlap;
use punctual_core::{RunId, ScheduleId};

use super::State;

/// The runs of schedules that are not over, by what they mean for the others.
#[derive(Debug, Default)]
pub(super) struct Order {
    pub(super) schedules: HashMap<ScheduleId, Siblings>,
    /// Planned runs that have to let others go first.
    pub(super) blocked: BTreeSet<RunId>,
    /// Planned runs that follow another, by that.
    pub(super) following: HashMap<RunId, BTreeSet<RunId>>,
    /// The first run of each schedule that finds another at work when it is due.
    pub(super) overlapping: BTreeSet<(Timestamp, RunId, ScheduleId)>,
    /// Schedules, and runs that others follow, that have changed and have not been looked at yet.
    changed: BTreeSet<ScheduleId>,
    leaders: BTreeSet<RunId>,
    followers: BTreeSet<RunId>,
}

/// The runs of one schedule that are not over.
#[derive(Debug, Default)]
pub(super) struct Siblings {
    pub(super) active: BTreeSet<RunId>,
    /// Planned ones, by when they may be claimed.
    pub(super) planned: BTreeSet<(Timestamp, RunId)>,
    /// Planned ones that are not blocked and may come to be; and parked ones, blocked or not.
    open: BTreeSet<RunId>,
    parked: BTreeSet<RunId>,
    /// Planned ones that are answered at once when they are due beside another.
    asked: BTreeSet<(Timestamp, RunId)>,
    overlapping: Option<(Timestamp, RunId)>,
}

impl Siblings {
    /// Those that are at work, and those that are parked.
    pub(super) fn at_work_or_parked(&self) -> impl Iterator<Item = RunId> {
        self.active.iter().chain(&self.parked).copied()
    }
}

/// Whether a planned run may have to wait for others of its schedule.
pub(super) fn may_wait(run: &Run) -> bool {
    run.terms.overlap == Overlap::Queue || run.is_parked
}

fn is_asked(run: &Run) -> bool {
    let is_planned = matches!(run.state, RunState::Planned { resumes: false, .. });
    is_planned && !run.is_parked && run.terms.overlap.answers_at_once()
}

impl Order {
    /// A run has come, is something else now, or is gone.
    pub(super) fn replace(&mut self, before: Option<&Run>, after: Option<&Run>) {
        let Some(id) = before.or(after).map(|run| run.id) else { return };
        if self.following.contains_key(&id) {
            self.leaders.insert(id);
        }
        let means = |run: &Run| (run.schedule, run.is_active());
        let is_planned = |run: &Run| run.planned_for().is_some();
        // A run at work means the same to the others from its claim to its end.
        if !before.into_iter().chain(after).any(is_planned) && before.map(means) == after.map(means) {
            return;
        }
        before.into_iter().for_each(|run| self.remove(run));
        after.into_iter().for_each(|run| self.add(run));
    }

    /// It is blocked until it has been looked at, if it may have to wait.
    fn add(&mut self, run: &Run) {
        let ready_at = run.planned_for();
        if let (Some(leader), true) = (run.follows, ready_at.is_some()) {
            self.following.entry(leader).or_default().insert(run.id);
            self.followers.insert(run.id);
        }
        if starts_blocked(run) {
            self.blocked.insert(run.id);
        }
        let Some(schedule) = run.schedule else { return };
        self.changed.insert(schedule);
        let siblings = self.schedules.entry(schedule).or_default();
        if run.is_active() {
            siblings.active.insert(run.id);
        }
        let Some(ready_at) = ready_at else { return };
        siblings.planned.insert((ready_at, run.id));
        if run.is_parked {
            siblings.parked.insert(run.id);
        }
        if is_asked(run) {
            siblings.asked.insert((ready_at, run.id));
        }
    }

    fn remove(&mut self, run: &Run) {
        self.blocked.remove(&run.id);
        if let Some(leader) = run.follows
            && let Some(following) = self.following.get_mut(&leader)
        {
            following.remove(&run.id);
            if following.is_empty() {
                self.following.remove(&leader);
            }
        }
        let Some(schedule) = run.schedule else { return };
        self.changed.insert(schedule);
        let Some(siblings) = self.schedules.get_mut(&schedule) else { return };
        siblings.active.remove(&run.id);
        siblings.open.remove(&run.id);
        siblings.parked.remove(&run.id);
        if let Some(ready_at) = run.planned_for() {
            siblings.planned.remove(&(ready_at, run.id));
            siblings.asked.remove(&(ready_at, run.id));
        }
    }
}

/// A run that may have to wait for others is blocked until it has been looked at.
pub(super) fn starts_blocked(run: &Run) -> bool {
    let waits = run.schedule.is_some() && may_wait(run) || run.follows.is_some();
    waits && run.planned_for().is_some()
}

impl State {
    /// Looks again at every run whose turn may have come, or gone, with what has changed.
    pub(super) fn settle_order(&mut self) {
        let leaders = std::mem::take(&mut self.order.leaders);
        let mut followers = std::mem::take(&mut self.order.followers);
        for leader in leaders {
            followers.extend(self.order.following.get(&leader).into_iter().flatten());
        }
        let mut changed = std::mem::take(&mut self.order.changed);
        // One that waits for no start any more may hold up others, and may find another at work.
        changed.extend(followers.iter().filter_map(|id| self.world.runs.get(id)?.schedule));
        for schedule in changed {
            let Some(siblings) = self.order.schedules.get(&schedule) else { continue };
            let mut asked: BTreeSet<RunId> = siblings.open.union(&siblings.parked).copied().collect();
            asked.extend(self.first_that_waits(siblings));
            asked.iter().for_each(|id| self.look_again(*id));
            self.settle_overlap(schedule);
        }
        followers.iter().for_each(|id| self.look_again(*id));
    }

    /// Decides whether a run is blocked: one run at work and the first that waits stand for all others of its schedule.
    fn look_again(&mut self, id: RunId) {
        let may_be_blocked = |run: &&Arc<Run>| run.planned_for().is_some() && (may_wait(run) || run.follows.is_some());
        let Some(run) = self.world.runs.get(&id).filter(may_be_blocked) else { return };
        let siblings = run.schedule.and_then(|schedule| self.order.schedules.get(&schedule));
        let active = siblings.and_then(|siblings| siblings.active.first().copied());
        let first = siblings.and_then(|siblings| self.first_that_waits(siblings));
        let others = active.into_iter().chain(first).map(|id| &*self.world.runs[&id]);
        let is_blocked = self.world.is_blocked_by(run, others);
        let ready_at = run.planned_for();
        if let Some(siblings) = run.schedule.and_then(|schedule| self.order.schedules.get_mut(&schedule)) {
            if may_wait(run) && !is_blocked {
                siblings.open.insert(id);
            } else {
                siblings.open.remove(&id);
            }
        }
        let was_blocked = self.order.blocked.contains(&id);
        if was_blocked == is_blocked {
            return;
        }
        if is_blocked {
            self.order.blocked.insert(id);
        } else {
            self.order.blocked.remove(&id);
        }
        self.lanes.set_blocked(ready_at.expect("it is planned"), id, is_blocked);
    }

    /// The first planned run of a schedule that does not wait for another's start.
    fn first_that_waits(&self, siblings: &Siblings) -> Option<RunId> {
        let ids = siblings.planned.iter().map(|(_, id)| *id);
        ids.into_iter().find(|id| !self.world.waits_for_start(&self.world.runs[id]))
    }

    /// Notes which run of a schedule is the first that will find another at work.
    fn settle_overlap(&mut self, schedule: ScheduleId) {
        let first = self.overlapping_of(schedule, Timestamp::MAX).next();
        let Some(siblings) = self.order.schedules.get_mut(&schedule) else { return };
        let before = std::mem::replace(&mut siblings.overlapping, first);
        let is_over = siblings.active.is_empty() && siblings.planned.is_empty();
        if let Some((at, run)) = before {
            self.order.overlapping.remove(&(at, run, schedule));
        }
        if let Some((at, run)) = first {
            self.order.overlapping.insert((at, run, schedule));
        }
        if is_over {
            self.order.schedules.remove(&schedule);
        }
    }

    /// The runs of a schedule that are due until an instant and find another at work, by time and id.
    pub(super) fn overlapping_of(
        &self,
        schedule: ScheduleId,
        until: Timestamp,
    ) -> impl Iterator<Item = (Timestamp, RunId)> {
        let siblings = self.order.schedules.get(&schedule).filter(|siblings| !siblings.active.is_empty());
        let asked = siblings.into_iter().flat_map(|siblings| &siblings.asked).copied();
        asked
            .take_while(move |(at, _)| *at <= until)
            .filter(|(_, id)| !self.world.waits_for_start(&self.world.runs[id]))
    }
}

//! Planning decisions: made from what the model says, or from what it said a while ago.

use punctual_core::run::{Run, SkipReason};
use punctual_core::schedule::MaxDelay;
use punctual_core::time::bundled_version;
use punctual_store::memory::State;

use super::generate::{Generator, standing};
use super::names::{Millis, RunNumber, millis, run_number, schedule_id, scheduled_of};
use super::shape::Shape;
use super::step::{Change, Op, Planned, Skips, Slot, Write};

/// The most schedules that there are.
const SCHEDULES_MAX: usize = 6;

impl Generator {
    /// Planning decisions, one or some.
    pub(crate) fn plan(&mut self, state: &State) -> Op {
        let count = self.dice.one(&[1, 1, 1, 2, 3]);
        Op::Plan((0..count).map(|_| self.write(state)).collect())
    }

    fn write(&mut self, state: &State) -> Write {
        let schedules = state.world.schedules.len();
        if schedules < 2 || schedules < SCHEDULES_MAX && self.dice.chance(10) {
            return self.new_schedule(state);
        }
        let schedule = self.any_schedule(state);
        let Some((version, cursor)) = standing(state, schedule) else { return self.new_schedule(state) };
        match self.dice.below(100) {
            0..4 => {
                let planned = self.planned(state, schedule, false);
                let withdrawn = self.dice.some(&planned, 100);
                let some = self.dice.some(&planned, 1);
                let withdrawn = if self.dice.chance(80) { withdrawn } else { some };
                let expects = self.expects(version, cursor);
                let change = Change::Delete { withdrawn };
                Write { schedule, expects, change, skips: self.skips(version), cancelled: vec![], plan: None }
            }
            4..20 => {
                let shape = self.shape_of(state, schedule).edited(&mut self.dice);
                let put = if self.dice.chance(95) { version + 1 } else { version };
                let change = Change::Put { version: put, cursor: self.now, shape };
                let plan = self.dice.chance(85).then(|| self.plan_of(state, schedule, put, self.now, shape));
                let skipped = if self.dice.chance(50) { version } else { put };
                let skips = self.skips(skipped);
                Write { schedule, expects: self.expects(version, cursor), change, skips, cancelled: vec![], plan }
            }
            _ => {
                let shape = self.shape_of(state, schedule);
                let plan = Some(self.plan_of(state, schedule, version, cursor, shape));
                let cancelled = if self.dice.chance(8) { self.planned(state, schedule, true) } else { vec![] };
                let cancelled = self.dice.some(&cancelled, 2);
                let expects = self.expects(version, cursor);
                Write { schedule, expects, change: Change::None, skips: self.skips(version), cancelled, plan }
            }
        }
    }

    /// What a decision is based on: the truth, or what was true before.
    fn expects(&mut self, version: u64, cursor: Millis) -> Option<(u64, Millis)> {
        match self.dice.below(100) {
            0..2 => None,
            2..4 => Some((version + 1, cursor)),
            4..6 => Some((version, cursor - 1_000)),
            _ => Some((version, cursor)),
        }
    }

    fn new_schedule(&mut self, state: &State) -> Write {
        self.schedules += 1;
        // One that was deleted may come again.
        let schedule = if self.dice.chance(90) {
            self.schedules
        } else {
            self.dice.between(1, i64::from(self.schedules) + 1) as u32
        };
        let shape = Shape { state: 'a', ..Shape::roll(&mut self.dice) };
        let change = Change::Put { version: 1, cursor: self.now, shape };
        let plan = self.dice.chance(90).then(|| self.plan_of(state, schedule, 1, self.now, shape));
        Write { schedule, expects: None, change, skips: vec![], cancelled: vec![], plan }
    }

    /// The shape of a schedule, as far as planning needs it.
    fn shape_of(&mut self, state: &State, schedule: u32) -> Shape {
        let rolled = Shape::roll(&mut self.dice);
        let Some(record) = state.world.schedules.get(&schedule_id(schedule)) else { return rolled };
        let schedule = &record.schedule;
        let policy = &schedule.policy;
        // What its terms are, so that an edit changes one thing; the rest does not matter here.
        Shape {
            agent: super::shape::AGENTS.into_iter().find(|it| *it == schedule.work.agent()).unwrap_or("a"),
            project: super::shape::PROJECTS.into_iter().find(|it| Some(*it) == schedule.project.as_deref()),
            key: policy.concurrency.as_ref().map(|it| (if it.key == "k" { "k" } else { "l" }, it.max.get())),
            priority: policy.priority.get(),
            max_concurrent: policy.max_concurrent.get(),
            overlap: policy.overlap,
            max_delay: policy.max_delay,
            state: if schedule.is_active() { 'a' } else { 'p' },
            ..rolled
        }
    }

    /// Runs of a schedule that are planned, and sometimes one that is not.
    fn planned(&mut self, state: &State, schedule: u32, can_err: bool) -> Vec<RunNumber> {
        let id = schedule_id(schedule);
        let errs = can_err && self.dice.chance(10);
        let is_its = |run: &&Run| run.schedule == Some(id) || errs;
        let runs = state.world.live_runs().filter(is_its);
        runs.filter(|run| errs || run.planned_for().is_some()).map(|run| run.id.0.as_u128()).collect()
    }

    fn skips(&mut self, version: u64) -> Vec<Skips> {
        if self.dice.chance(85) {
            return vec![];
        }
        let reasons = [SkipReason::CatchUp, SkipReason::Paused, SkipReason::Disabled, SkipReason::DstGap];
        let count = self.dice.between(1, 5) as u64;
        vec![Skips { version, from: self.now - 10_000, count, reason: self.dice.one(&reasons) }]
    }

    fn plan_of(&mut self, state: &State, schedule: u32, version: u64, cursor: Millis, shape: Shape) -> Planned {
        let mut plan = Planned {
            version,
            cursor,
            plan_at: if self.dice.chance(70) { Some(self.now + self.dice.between(-60, 600) * 1_000) } else { None },
            zone_data: if self.dice.chance(75) { bundled_version() } else { "2026b" },
            outage: None,
            runs: vec![],
            moved: vec![],
            withdrawn: vec![],
        };
        if self.dice.chance(5) {
            let kept = self.dice.chance(50).then_some(self.now - 30_000);
            plan.outage = Some((self.now - 60_000, self.now, kept));
        }
        if self.has_room(state) {
            let count = self.dice.one(&[0, 1, 1, 2, 3, 5]);
            (0..count).for_each(|_| self.add_slot(&mut plan, state, shape));
        }
        let planned = self.planned(state, schedule, true);
        if self.dice.chance(10) {
            plan.withdrawn = self.dice.some(&planned, 2);
        }
        if self.dice.chance(12) {
            let moved = self.dice.some(&planned, 2);
            plan.moved = moved.into_iter().map(|run| self.moved(run, &planned, shape)).collect();
        }
        plan
    }

    fn add_slot(&mut self, plan: &mut Planned, state: &State, shape: Shape) {
        self.runs += 1;
        let scheduled = (self.now / 1_000 + self.dice.between(-900, 300)) * 1_000;
        let run = run_number(self.runs, scheduled);
        let mut slot = self.slot(run, scheduled, shape);
        if self.dice.chance(2) {
            // Somebody else's id, or somebody else's slot. Not the id of one that may be gone when this is written: an id is
            // given once.
            let all: Vec<&Run> = state.world.live_runs().collect();
            if let Some(other) = self.dice.any(&all) {
                let (id, key) = (other.id.0.as_u128(), millis(other.scheduled_at));
                let stays = !other.is_untouched() && self.dice.chance(50);
                (slot.run, slot.key) = if stays { (id, slot.key) } else { (run, key) };
            }
        }
        slot.follows = match plan.runs.last() {
            Some(before) if self.dice.chance(30) => Some(before.run),
            _ if self.dice.chance(5) => {
                self.dice.any(&state.world.runs.keys().map(|id| id.0.as_u128()).collect::<Vec<_>>())
            }
            _ => None,
        };
        plan.cursor = plan.cursor.max(slot.scheduled);
        plan.runs.push(slot);
    }

    /// A run with another time to be due. When it is scheduled stays: a store may find runs that are over by what their ids begin with.
    fn moved(&mut self, run: RunNumber, planned: &[RunNumber], shape: Shape) -> Slot {
        let slot = self.slot(run, scheduled_of(run), shape);
        let due = (self.now / 1_000 + self.dice.between(-900, 300)) * 1_000;
        Slot { due, follows: self.dice.any(planned).filter(|leader| *leader != run), ..slot }
    }

    fn slot(&mut self, run: RunNumber, scheduled: Millis, shape: Shape) -> Slot {
        let due = scheduled + self.dice.one(&[0, 0, 0, 500, 20_000]);
        let expires = match shape.max_delay {
            MaxDelay::None => None,
            MaxDelay::Duration(delay) => Some(due + delay.milliseconds()),
            // A day that is soon over.
            MaxDelay::Day => Some(self.now + self.dice.between(-10, 1_200) * 1_000),
        };
        Slot { run, key: scheduled, scheduled, due, expires, follows: None }
    }
}

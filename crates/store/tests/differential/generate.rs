//! The generator: steps that make sense most of the time, because it looks at the model, and none at all sometimes.

use punctual_core::Elapsed;
use punctual_core::journal::EndedRun;
use punctual_core::run::{FailureCode, Run, RunEvent, RunState, SkipReason, WaitFor};
use punctual_core::time::bundled_version;
use punctual_store::Decision;
use punctual_store::memory::State;

use super::dice::Dice;
use super::names::{Millis, RunNumber, millis, number, run_number, schedule_id, time};
use super::shape::{AGENTS, PROJECTS, Shape, ZONES};
use super::step::{Alive, Asked, Caps, Finished, Op, Read, Settled, Step, Which};

/// The most runs that are not over: the model looks at each of them many times.
const LIVE_MAX: usize = 40;

/// Makes steps.
pub(crate) struct Generator {
    pub(crate) dice: Dice,
    pub(crate) now: Millis,
    pub(crate) runs: u32,
    pub(crate) schedules: u32,
    nodes: u32,
    caps: Caps,
    /// What was reported lately: it may come again.
    finished: Vec<Finished>,
    /// What is to come next, whatever the dice say.
    next: Option<Op>,
}

impl Generator {
    pub(crate) fn new(seed: u64) -> Generator {
        let dice = Dice::new(seed);
        let now = 9 * 3_600_000;
        let caps = Caps::default();
        Generator { dice, now, runs: 0, schedules: 0, nodes: 0, caps, finished: vec![], next: None }
    }

    /// The next step in a world like this.
    pub(crate) fn step(&mut self, state: &State) -> Step {
        let dice = &mut self.dice;
        // Forwards mostly, and sometimes a little backwards.
        self.now += match dice.below(100) {
            0..45 => 0,
            45..80 => dice.between(1, 3_000),
            80..96 => dice.between(1, 40) * 1_000,
            96 => dice.between(1, 15) * 60_000,
            97 if dice.chance(30) => dice.between(60, 180) * 60_000,
            _ => -dice.between(1, 5_000),
        };
        let op = self.next.take().unwrap_or_else(|| self.op(state));
        Step { now: self.now, op }
    }

    fn op(&mut self, state: &State) -> Op {
        let is_any = |is: fn(&RunState) -> bool| state.world.live_runs().any(|run| is(&run.state));
        let has_claimed = is_any(|state| matches!(state, RunState::Claimed { .. }));
        let has_running = is_any(|state| matches!(state, RunState::Running { .. }));
        // While nobody plans, slots that are due wait for the one who will.
        let awaits_planning = state.planner.is_none_or(|planner| planner.until < super::names::time(self.now));
        match self.dice.below(100) {
            0..17 if awaits_planning && self.percent(80) => Op::TakePlanner(self.alive(state)),
            0..17 => self.plan(state),
            17..33 => self.claim(state),
            33..48 if has_claimed || self.percent(10) => self.settle(state),
            48..60 if has_running || self.percent(10) => self.finish(state),
            33..60 => self.claim(state),
            60..64 => self.ask(state),
            64..67 => Op::Cancel { run: self.any_run(state) },
            67..70 => Op::Cancel { run: self.run_in(state, |run| matches!(run.state, RunState::Running { .. })) },
            70..73 => Op::Resume { run: self.run_in(state, |run| matches!(run.state, RunState::Waiting { .. })) },
            73..76 => self.join(state),
            76..80 => Op::Renew(self.alive(state)),
            80 => Op::Leave { node: self.node(state) },
            81..83 => Op::Bury,
            83..86 => Op::TakePlanner(self.alive(state)),
            86 => Op::NoteOutage { node: self.node(state), from: self.now - self.dice.between(0, 600_000) },
            87 => Op::BeginDay { zone: self.dice.one(&ZONES), day: self.dice.between(4, 8) as i8 },
            88 => Op::ForgetAnswers { before: self.now - self.dice.between(0, 1_200_000) },
            89 => Op::Prune { before: self.now - self.dice.one(&[0, 60_000, 600_000, 3_600_000]) },
            _ => Op::Read(self.read(state)),
        }
    }

    // Picking.

    fn percent(&mut self, percent: i64) -> bool {
        self.dice.chance(percent)
    }

    /// A run that is as wanted; any other, or none at all, sometimes.
    fn run_in(&mut self, state: &State, is_wanted: impl Fn(&Run) -> bool) -> RunNumber {
        let wanted: Vec<RunNumber> =
            state.world.live_runs().filter(|run| is_wanted(run)).map(|run| run.id.0.as_u128()).collect();
        match self.dice.any(&wanted) {
            Some(run) if self.percent(90) => run,
            _ => self.any_run(state),
        }
    }

    fn any_run(&mut self, state: &State) -> RunNumber {
        match self.dice.any(&known(state)) {
            Some(run) if self.percent(95) => run,
            _ => run_number(self.dice.between(0, i64::from(self.runs) + 2) as u32, self.now),
        }
    }

    pub(crate) fn any_schedule(&mut self, state: &State) -> u32 {
        let all: Vec<u32> = state.world.schedules.keys().map(|id| number(id.0)).collect();
        match self.dice.any(&all) {
            Some(schedule) if self.percent(95) => schedule,
            _ => self.dice.between(0, i64::from(self.schedules) + 2) as u32,
        }
    }

    fn node(&mut self, state: &State) -> u32 {
        let all: Vec<u32> = state.nodes.keys().map(|id| number(id.0)).collect();
        match self.dice.any(&all) {
            Some(node) if self.percent(95) => node,
            _ => self.dice.between(0, i64::from(self.nodes) + 2) as u32,
        }
    }

    /// The epoch of a run, or another one.
    fn epoch(&mut self, run: RunNumber, state: &State) -> u64 {
        let live = state.world.runs.get(&super::names::run_id(run)).map(|run| run.epoch());
        let ended = || ended(state).find(|ended| ended.id.0.as_u128() == run).map(|ended| ended.epoch);
        let epoch = live.or_else(ended).unwrap_or(1);
        if self.percent(92) { epoch } else { (epoch + 1).saturating_sub(self.dice.below(3) as u64) }
    }

    fn agents(&mut self) -> Vec<&'static str> {
        match self.dice.below(20) {
            0 => vec![],
            1 => vec![self.dice.one(&AGENTS)],
            2..5 => AGENTS.to_vec(),
            _ => AGENTS[..3].to_vec(),
        }
    }

    // Nodes.

    fn alive(&mut self, state: &State) -> Alive {
        Alive { node: self.node(state), lease: self.dice.one(&[30, 90, 600]), agents: self.agents() }
    }

    fn join(&mut self, state: &State) -> Op {
        // A node that is there may join again; mostly it is a new one, while there are few.
        if state.nodes.len() < 4 || self.percent(20) {
            self.nodes += 1;
            let node = self.nodes;
            return Op::Join(Alive { node, lease: self.dice.one(&[30, 90, 600]), agents: self.agents() });
        }
        Op::Join(self.alive(state))
    }

    // Runs.

    fn claim(&mut self, state: &State) -> Op {
        if self.percent(4) {
            self.caps = self.roll_caps();
        }
        let caps = if self.percent(95) { self.caps.clone() } else { self.roll_caps() };
        let agents = if self.percent(90) { AGENTS.to_vec() } else { self.agents() };
        let node = self.node(state);
        let limit = self.dice.one(&[0, 1, 1, 2, 3, 5, 20]);
        // A start records due slots: as long as there is room for their runs.
        let claim = if self.has_room(state) && self.percent(40) {
            Op::Start { node, limit, agents, caps }
        } else {
            Op::Claim { node, limit, agents, caps }
        };
        let lease = state.nodes.get(&super::names::node_id(node)).map(|node| node.lease_until);
        if lease.is_some_and(|lease| time(self.now) <= lease) || self.percent(20) {
            return claim;
        }
        // It has to renew its lease, or to join, before it gets anything.
        self.next = Some(claim);
        let alive = Alive { node, lease: self.dice.one(&[30, 90, 600]), agents: self.agents() };
        self.nodes = self.nodes.max(node);
        if lease.is_some() { Op::Renew(alive) } else { Op::Join(alive) }
    }

    fn roll_caps(&mut self) -> Caps {
        let dice = &mut self.dice;
        let mut caps = Caps::default();
        if dice.chance(30) {
            caps.global = Some(dice.between(0, 8) as u32);
        }
        for agent in AGENTS {
            if dice.chance(30) {
                caps.agents.push((agent, dice.between(0, 4) as u32));
            }
        }
        for project in PROJECTS {
            if dice.chance(30) {
                caps.projects.push((project, dice.between(0, 4) as u32));
            }
        }
        caps
    }

    fn settle(&mut self, state: &State) -> Op {
        let count = self.dice.one(&[1, 1, 2, 4]);
        Op::Settle((0..count).map(|_| self.settled(state)).collect())
    }

    fn settled(&mut self, state: &State) -> Settled {
        let run = self.run_in(state, |run| matches!(run.state, RunState::Claimed { .. }));
        let epoch = self.epoch(run, state);
        let later = time(self.now + self.dice.one(&[0, 5_000, 60_000]));
        let decision = match self.dice.below(20) {
            0..2 => Decision::Skip(self.dice.one(&[SkipReason::Overlap, SkipReason::Budget, SkipReason::Late])),
            2..4 => Decision::HandBack { due_at: later, parks: false },
            4..7 => Decision::HandBack { due_at: later, parks: true },
            7..9 => Decision::Wait { on: self.wait_for(), wait_until: self.wait_until() },
            _ => Decision::Start,
        };
        Settled { run, epoch, decision }
    }

    fn wait_for(&mut self) -> WaitFor {
        self.dice.one(&[WaitFor::Approval, WaitFor::Callback, WaitFor::Child])
    }

    fn wait_until(&mut self) -> jiff::Timestamp {
        time(self.now + self.dice.one(&[0, 60_000, 600_000, 3_600_000]))
    }

    fn finish(&mut self, state: &State) -> Op {
        let count = self.dice.one(&[1, 1, 2, 4]);
        let finished: Vec<Finished> = (0..count).map(|_| self.finished(state)).collect();
        self.finished.extend(finished.iter().cloned());
        let old = self.finished.len().saturating_sub(20);
        self.finished.drain(..old);
        Op::Finish(finished)
    }

    fn finished(&mut self, state: &State) -> Finished {
        if let Some(again) = self.dice.any(&self.finished)
            && self.percent(10)
        {
            return again;
        }
        let ends = |run: &Run| {
            let waits = matches!(run.state, RunState::Waiting { on: WaitFor::Callback, .. });
            waits || matches!(run.state, RunState::Running { .. })
        };
        let run = self.run_in(state, ends);
        let epoch = self.epoch(run, state);
        let at = time(self.now);
        let code = self.dice.one(&[FailureCode::Error, FailureCode::TimedOut, FailureCode::ResourceLimit]);
        let retry_after = if self.percent(20) { Some(Elapsed::from_seconds(120)) } else { None };
        let event = match self.dice.below(20) {
            0..7 => RunEvent::Succeeded,
            7..13 => RunEvent::Failed { at, code, is_retryable: self.percent(85), retry_after },
            13..15 => RunEvent::Cancelled,
            15..18 => RunEvent::Waits { on: self.wait_for(), wait_until: self.wait_until() },
            18 => RunEvent::HandedBack { due_at: at, parks: self.percent(50) },
            _ => self.dice.one(&[
                RunEvent::Started,
                RunEvent::CancelAsked,
                RunEvent::Kept,
                RunEvent::Parked,
                RunEvent::Skipped(SkipReason::Quota),
                RunEvent::Resumed { at },
                RunEvent::OwnerLost { at },
                RunEvent::Stopped { at },
                RunEvent::Stopped { at },
                RunEvent::WaitExpired { at },
                RunEvent::Claimed { owner: super::names::node_id(1), at },
            ]),
        };
        Finished { run, epoch, event, said: self.dice.below(2) as u8 }
    }

    fn ask(&mut self, state: &State) -> Op {
        if LIVE_MAX < state.world.runs.len() {
            return Op::Read(self.read(state));
        }
        self.runs += 1;
        // An id is given once; while its run is known, over or not, it may be given again by mistake.
        let again = if self.percent(5) { self.dice.any(&known(state)) } else { None };
        let run = again.unwrap_or(run_number(self.runs, self.now));
        let schedule = if self.percent(90) { Some(self.any_schedule(state)) } else { None };
        let due = self.now + self.dice.one(&[0, 0, -60_000, 30_000, 600_000]);
        Op::Ask(Asked {
            run,
            schedule,
            event: if self.percent(60) { Some(self.dice.below(20) as u8) } else { None },
            due,
            expires: if self.percent(20) { Some(due + 300_000) } else { None },
            shape: Shape::roll(&mut self.dice),
        })
    }

    /// Whether more runs may be planned.
    pub(crate) fn has_room(&self, state: &State) -> bool {
        state.world.runs.len() < LIVE_MAX
    }

    // Reading.

    fn read(&mut self, state: &State) -> Read {
        let limit = self.dice.one(&[0, 1, 3, 1_000]);
        let seq = state.world.seq;
        let back = |dice: &mut Dice| seq.saturating_sub(dice.below(50) as u64);
        let schedule = self.any_schedule(state);
        let run = self.any_run(state);
        let dice = &mut self.dice;
        let maybe = |dice: &mut Dice, number: u32| if dice.chance(50) { Some(number) } else { None };
        let maybe_run = |dice: &mut Dice, run: RunNumber| if dice.chance(50) { Some(run) } else { None };
        match dice.below(16) {
            0 => Read::Schedule { schedule },
            1 => Read::Schedules { after: maybe(dice, schedule), limit },
            2 => Read::Count,
            3 => Read::ToPlan { zone_data: dice.one(&[bundled_version(), bundled_version(), "2026b"]), limit },
            4 => Read::NextPlanAt,
            5 => Read::Subject { schedule },
            6 => Read::ZoneDays,
            7 => Read::Run { run },
            8 => {
                let window = |dice: &mut Dice, now: Millis| {
                    if dice.chance(50) { Some(now + dice.between(-600, 600) * 1_000) } else { None }
                };
                let (from, until) = (window(dice, self.now), window(dice, self.now));
                let which = dice.one(&[Which::All, Which::Live, Which::NotSucceeded]);
                Read::Runs { schedule: maybe(dice, schedule), from, until, which, limit }
            }
            9 => Read::Nodes,
            10 => Read::Entries { after: back(dice), limit },
            11 => Read::Head,
            12 => {
                let offset = if dice.chance(50) { dice.between(0, 20) as usize } else { 0 };
                Read::History { schedule: maybe(dice, schedule), run: maybe_run(dice, run), offset, limit }
            }
            13 => Read::About { schedule, run, each: limit },
            14 => Read::Base,
            _ => Read::Verify,
        }
    }
}

/// The runs that are over and that the model still knows of.
fn ended(state: &State) -> impl Iterator<Item = EndedRun> {
    state.entries.iter().rev().filter_map(EndedRun::of)
}

/// Runs that are known, live ones and the last that have ended.
fn known(state: &State) -> Vec<RunNumber> {
    let live = state.world.runs.keys().copied();
    live.chain(ended(state).take(10).map(|ended| ended.id)).map(|id| id.0.as_u128()).collect()
}

/// The version and cursor of a schedule in the model.
pub(crate) fn standing(state: &State, schedule: u32) -> Option<(u64, Millis)> {
    let record = state.world.schedules.get(&schedule_id(schedule))?;
    Some((record.schedule.version, millis(record.schedule.cursor.at)))
}

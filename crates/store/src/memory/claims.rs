//! Claiming, settling, finishing.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use punctual_core::journal::{Body, EndedRun, ScheduleRecord};
use punctual_core::plan::{Held, Lane, Limits};
use punctual_core::run::{Run, RunState};
use punctual_core::{RunId, ScheduleId};

use super::{MemoryStore, State};
use crate::error::{Result, StoreError};
use crate::requests::{
    AttemptReport, ClaimRequest, Claimed, ClaimedRun, MOMENT, PlanTask, RunWritten, Settlement, StartRequest, Started,
    StartedRun,
};
use crate::roles::{Claims, Runs};
use punctual_kernel::admission::{self, Admitted};
use punctual_kernel::change::{self, AGENT_GONE_AFTER, Draft, Overdue, SWEEP_MAX, Swept, Wants};
use punctual_kernel::due::{LiveRuns, due_slots, is_for_start, take_due, write_due};

#[async_trait]
impl Claims for MemoryStore {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claimed> {
        // A node whose clock is ahead claims nothing early.
        let now = self.time(request.now).min(request.now);
        let request = &ClaimRequest { now, ..request.clone() };
        let mut state = self.state();
        if !state.has_lease(request.node, now) {
            return Err(StoreError::LeaseEnded);
        }
        let overdue = state.overdue(request);
        let wants = overdue.wants();
        let mut draft = state.draft(&wants, now);
        let Swept { answers: swept, has_replaced } = change::sweep(&mut draft, &overdue);
        state.save(draft, &wants);
        let mut claimed = Claimed { swept, has_replaced, ..Claimed::nothing(now) };
        if overdue.len() == SWEEP_MAX {
            return Ok(claimed);
        }
        let taken = state.take_runs(request);
        claimed.runs = taken.iter().enumerate().map(|(index, id)| state.claimed(*id, &taken[index..])).collect();
        claimed.next_at = state.next_at(request);
        Ok(claimed)
    }

    async fn start(&self, request: &StartRequest) -> Result<Started> {
        let undelivered = self.look(|state| state.undelivered(request));
        let has_more = self.pass_due(request)?;
        let mut claimed = self.claim(&request.claim).await?;
        (claimed.awaits_planning, claimed.has_more_due) = (has_more.is_none(), has_more == Some(true));
        let (now, chosen) = (claimed.at, std::mem::take(&mut claimed.runs));
        let decisions: Vec<Admitted> = chosen.iter().map(|run| admission::decide(run, request, now)).collect();
        for (newer, _) in chosen.iter().zip(&decisions).filter(|(_, admitted)| admitted.replaces) {
            let is_replaced = |other: &&Run| other.schedule == newer.run.schedule && other.is_replaced_by(&newer.run);
            let replaced: Vec<RunId> =
                self.look(|state| state.world.live_runs().filter(is_replaced).map(|it| it.id).collect());
            for id in replaced {
                self.cancel(now, id, None).await?;
                claimed.has_replaced = true;
            }
        }
        let settlement = |(chosen, admitted): (&ClaimedRun, &Admitted)| Settlement {
            run: chosen.run.id,
            epoch: chosen.run.epoch(),
            decision: admitted.decision,
        };
        self.settle(now, chosen.iter().zip(&decisions).map(settlement).collect()).await?;
        let has_claimed = !chosen.is_empty();
        let count = chosen.len() + undelivered.len();
        let state = self.state();
        let begun = chosen.into_iter().filter_map(|chosen| {
            let run =
                state.world.runs.get(&chosen.run.id).filter(|run| matches!(run.state, RunState::Running { .. }))?;
            Some(StartedRun { run: run.clone(), schedule: chosen.schedule })
        });
        let runs = undelivered.into_iter().chain(begun).collect();
        if has_claimed {
            claimed.next_at = state.next_at(&ClaimRequest { now, ..request.claim.clone() });
        }
        Ok(Started { claimed, count, runs })
    }

    async fn settle(&self, now: Timestamp, settlements: Vec<Settlement>) -> Result<Vec<RunWritten>> {
        let mut state = self.state();
        let wants = Wants::runs(settlements.iter().map(|settlement| settlement.run));
        let mut draft = state.draft(&wants, now);
        let answers = change::settle(&mut draft, &settlements);
        state.save(draft, &wants);
        Ok(answers)
    }

    async fn finish(&self, now: Timestamp, reports: Vec<AttemptReport>) -> Result<Vec<RunWritten>> {
        let mut state = self.state();
        let wants = Wants::runs(reports.iter().map(|report| report.run));
        let mut draft = state.draft(&wants, now);
        let ended = |draft: &Draft, id: RunId| {
            let here = draft.entries.iter().filter_map(EndedRun::of).find(|ended| ended.id == id);
            here.or_else(|| state.ended(id))
        };
        let answers = change::finish(&mut draft, reports, ended);
        state.save(draft, &wants);
        Ok(answers)
    }
}

impl MemoryStore {
    /// Gives every slot that is due its run, or its skip. Whether there are more; `None` if they wait for a node that plans.
    fn pass_due(&self, request: &StartRequest) -> Result<Option<bool>> {
        let now = self.time(request.claim.now).min(request.claim.now);
        let mut state = self.state();
        if !state.has_lease(request.claim.node, now) {
            return Err(StoreError::LeaseEnded);
        }
        if request.due_max == 0 {
            return Ok(Some(false));
        }
        let is_due = |record: &&ScheduleRecord| {
            let is_ready = record.schedule.is_active() && !state.has_missed(record);
            is_ready && record.plan_at.is_some_and(|at| at <= now)
        };
        if change::awaits_planning(state.planner.map(|planner| planner.until), now) {
            let mut schedules = state.world.schedules.values();
            let is_undecided = schedules.any(|record| state.has_missed(record) || is_due(&record));
            return Ok((!is_undecided).then_some(false));
        }
        let mut due: Vec<&ScheduleRecord> = state.world.schedules.values().filter(is_due).collect();
        due.sort_by_key(|record| (record.plan_at, record.schedule.id));
        let due = due.into_iter().filter(|record| is_for_start(record, &request.timetables)).filter_map(|record| {
            let PlanTask { waiting: unstarted, live, .. } = state.task(record);
            due_slots(record, LiveRuns { live, unstarted }, &request.timetables, now)
        });
        let (due, has_more) = take_due(due, request.due_max);
        if !due.is_empty() {
            let schedules = due.iter().map(|due| due.plan.schedule).collect();
            let runs = due.iter().flat_map(|due| &due.plan.runs).map(|run| run.id).collect();
            let wants = Wants { schedules, runs, ..Wants::default() };
            let mut draft = state.draft(&wants, now);
            write_due(&mut draft, due);
            state.note_agents(&draft, now);
            state.save(draft, &wants);
        }
        Ok(Some(has_more))
    }
}

impl State {
    /// Runs of a node that are written as running and that it has not begun: it never heard that they were started.
    fn undelivered(&self, request: &StartRequest) -> Vec<StartedRun> {
        let Some(begun) = &request.begun else { return vec![] };
        let is_running = |run: &&Run| matches!(run.state, RunState::Running { .. }) && !run.is_cancelling;
        let is_owned = |run: &&Run| run.owner() == Some(request.claim.node);
        let is_dying = |run: &Run| request.held.iter().any(|(held, _)| *held == run.id);
        let owned = self.world.live_runs().filter(is_running).filter(is_owned);
        let unheard = owned.filter(|run| !begun.contains(&(run.id, run.epoch())) && !is_dying(run));
        let schedule =
            |run: &Run| run.schedule.and_then(|id| self.world.schedules.get(&id)).map(|it| it.schedule.clone());
        unheard.map(|run| StartedRun { run: Arc::new(run.clone()), schedule: schedule(run) }).collect()
    }

    /// Runs whose time is over, at most [`SWEEP_MAX`] of them.
    fn overdue(&self, request: &ClaimRequest) -> Overdue {
        let (now, limits) = (request.now, &*request.limits);
        let planned = || self.world.live_runs().filter(|run| run.planned_for().is_some());
        let is_full = self.is_full(limits);
        let mut expired: Vec<(Timestamp, RunId, bool)> = planned()
            .filter_map(|run| Some((run, run.expires_at.filter(|expires_at| *expires_at < now)?)))
            .map(|(run, expires_at)| {
                let lane = Lane::of(&run.terms);
                let is_full = is_full || request.has_no_place_for(&lane.agent);
                let is_open = !is_full && limits.is_open(&lane, self.held(&lane));
                let waits_for_place = !is_open || self.world.is_blocked(run);
                (expires_at, run.id, waits_for_place)
            })
            .collect();
        expired.sort_unstable();
        expired.truncate(SWEEP_MAX);
        let expired: Vec<(RunId, bool)> = expired.into_iter().map(|(_, id, waits)| (id, waits)).collect();

        let is_gone = |run: &&Run| run.planned_for() <= Some(now) && self.is_agent_gone(run.terms.work.agent(), now);
        let mut agent_gone: Vec<(Timestamp, RunId)> =
            planned().filter(is_gone).filter_map(|run| Some((run.planned_for()?, run.id))).collect();
        agent_gone.sort_unstable();
        agent_gone.truncate(SWEEP_MAX - expired.len());
        let agent_gone: Vec<RunId> = agent_gone.into_iter().map(|(_, id)| id).collect();

        let finds_another = |run: &&Run| run.planned_for() <= Some(now) && self.world.overlaps(run);
        let mut overlapping: Vec<(Timestamp, RunId, ScheduleId)> = planned()
            .filter(finds_another)
            .filter_map(|run| Some((run.planned_for()?, run.id, run.schedule?)))
            .collect();
        overlapping.sort_unstable();
        overlapping.truncate(SWEEP_MAX - expired.len() - agent_gone.len());
        let overlapping: Vec<(RunId, ScheduleId)> =
            overlapping.into_iter().map(|(_, id, schedule)| (id, schedule)).collect();

        let waits_until = |run: &Run| match run.state {
            RunState::Waiting { wait_until, .. } if wait_until <= now => Some((wait_until, run.id)),
            _ => None,
        };
        let mut waited: Vec<(Timestamp, RunId)> = self.world.live_runs().filter_map(waits_until).collect();
        waited.sort_unstable();
        waited.truncate(SWEEP_MAX - expired.len() - agent_gone.len() - overlapping.len());
        Overdue { expired, agent_gone, overlapping, waited: waited.into_iter().map(|(_, id)| id).collect() }
    }

    fn is_agent_gone(&self, agent: &str, now: Timestamp) -> bool {
        let has_it = |node: &crate::NodeRecord| now <= node.lease_until && node.agents.contains(agent);
        let was_seen = self.agents_seen.get(agent).is_none_or(|seen_at| now <= *seen_at + AGENT_GONE_AFTER);
        !was_seen && !self.nodes.values().any(has_it)
    }

    /// Claims runs one by one: each time the lane that comes first gives its first run.
    fn take_runs(&mut self, request: &ClaimRequest) -> Vec<RunId> {
        let now = request.now;
        let mut taken: Vec<RunId> = vec![];
        let mut taken_of: BTreeMap<Lane, usize> = BTreeMap::new();
        let wants = |taken: &[RunId]| Wants::runs(taken.iter().copied());
        let mut draft_world = self.clone_for_claim();
        while taken.len() < request.limit {
            let heads = draft_world.open_heads(request);
            let first = heads
                .iter()
                .filter(|(_, (due_at, _))| *due_at <= now)
                .min_by_key(|(lane, (due_at, _))| {
                    let turn_at = draft_world.turns.get(*lane).copied();
                    (lane.rank(*due_at, turn_at), taken_of.get(*lane).copied().unwrap_or(0), (*lane).clone())
                })
                .map(|(lane, (_, id))| (lane.clone(), *id));
            let Some((lane, id)) = first else { break };
            let event = punctual_core::run::RunEvent::Claimed { owner: request.node, at: now };
            let run = draft_world.world.runs.get_mut(&id).expect("it was just found");
            Arc::make_mut(run).take(&event, now).expect("it is planned and due");
            *taken_of.entry(lane.clone()).or_default() += 1;
            draft_world.turns.insert(lane, now);
            taken.push(id);
        }
        if taken.is_empty() {
            return taken;
        }
        let wants = wants(&taken);
        let mut draft = self.draft(&wants, now);
        draft.add(Body::RunsClaimed { owner: request.node, runs: taken.clone() }).expect("each is planned and due");
        self.turns = draft_world.turns;
        self.save(draft, &wants);
        taken
    }

    /// A copy in which claims can be tried out.
    fn clone_for_claim(&self) -> State {
        let mut copy = State { turns: self.turns.clone(), ..State::default() };
        copy.world.runs = self
            .world
            .runs
            .iter()
            .filter(|(_, run)| !run.state.is_final())
            .map(|(id, run)| (*id, run.clone()))
            .collect();
        copy
    }

    /// The first run of every open lane that the node can take from, due or not.
    fn open_heads(&self, request: &ClaimRequest) -> BTreeMap<Lane, (Timestamp, RunId)> {
        let mut heads: BTreeMap<Lane, (Timestamp, RunId)> = BTreeMap::new();
        if self.is_full(&request.limits) {
            return heads;
        }
        for run in self.world.live_runs() {
            let Some(due_at) = run.planned_for() else { continue };
            if !request.agents.contains(run.terms.work.agent()) || self.world.is_blocked(run) {
                continue;
            }
            let place = (due_at, run.id);
            heads.entry(Lane::of(&run.terms)).and_modify(|head| *head = place.min(*head)).or_insert(place);
        }
        heads.retain(|lane, _| request.limits.is_open(lane, self.held(lane)));
        heads
    }

    /// Whether as many runs hold a place as may in all.
    fn is_full(&self, limits: &Limits) -> bool {
        let held = self.world.live_runs().filter(|run| run.owner().is_some()).count();
        limits.global.is_some_and(|max| max as usize <= held)
    }

    /// How many runs hold places that a lane shares.
    fn held(&self, lane: &Lane) -> Held {
        let mut held = Held::default();
        for run in self.world.live_runs().filter(|run| run.owner().is_some()) {
            let other = Lane::of(&run.terms);
            held.agent += u32::from(other.agent == lane.agent);
            held.project += u32::from(lane.project.is_some() && other.project == lane.project);
            let key = |lane: &Lane| lane.concurrency.as_ref().map(|concurrency| concurrency.key.clone());
            held.key += u32::from(key(lane).is_some() && key(&other) == key(lane));
        }
        held
    }

    /// A run that was just claimed; `later` are the runs that were claimed with it and do not come before it.
    fn claimed(&self, id: RunId, later: &[RunId]) -> ClaimedRun {
        let run = self.world.runs[&id].clone();
        let record = run.schedule.and_then(|id| self.world.schedules.get(&id));
        let is_other = |other: &&Run| other.schedule == run.schedule && !later.contains(&other.id);
        let is_busy = run.schedule.is_some() && self.world.live_runs().filter(is_other).any(Run::is_active);
        ClaimedRun { schedule: record.map(|record| record.schedule.clone()), is_busy, run }
    }

    /// When a claim would give something that it does not give now, as far as time alone can tell.
    fn next_at(&self, request: &ClaimRequest) -> Option<Timestamp> {
        let heads = self.open_heads(request);
        let due = heads.values().map(|(due_at, _)| *due_at).filter(|due_at| request.now < *due_at);
        // At its last instant a run may still begin: its time is over a moment later.
        let planned = || self.world.live_runs().filter(|run| run.planned_for().is_some());
        let expires = planned().filter_map(|run| run.expires_at?.checked_add(MOMENT).ok());
        let waits = self.world.live_runs().filter_map(|run| match run.state {
            RunState::Waiting { wait_until, .. } => Some(wait_until),
            _ => None,
        });
        let overlapping = planned().filter(|run| self.world.overlaps(run)).filter_map(Run::planned_for);
        let ready = self.world.schedules.values();
        let ready = ready.filter(|record| record.schedule.is_active() && !self.has_missed(record));
        let slots = ready.filter_map(|record| record.plan_at).filter(|at| request.now < *at);
        due.chain(expires).chain(overlapping).chain(waits).chain(slots).min()
    }
}

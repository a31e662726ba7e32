//! Sweeping: runs whose time is over, and those that find another at work.

use jiff::Timestamp;
use punctual_core::{RunId, ScheduleId};

use super::State;
use crate::change::{Overdue, SWEEP_MAX};
use crate::limits::{Shared, is_open};
use crate::types::ClaimRequest;

impl State {
    /// What a claim has to answer first, at most [`SWEEP_MAX`] runs. `agents_gone` are agents that nobody has any more.
    pub fn overdue(&mut self, request: &ClaimRequest, agents_gone: &[String]) -> Overdue {
        let now = request.now;
        self.settle(now);
        let expired = self.expired(request);
        let mut left = SWEEP_MAX - expired.len();
        let agent_gone = self.agent_gone(agents_gone, now, left);
        left -= agent_gone.len();
        let overlapping = self.overlapping(now, left);
        left -= overlapping.len();
        let waited = self.waiting.iter().take_while(|(until, _)| *until <= now).map(|(_, id)| *id).take(left).collect();
        Overdue { expired, agent_gone, overlapping, waited }
    }

    fn expired(&self, request: &ClaimRequest) -> Vec<(RunId, bool)> {
        let (now, limits) = (request.now, &*request.limits);
        let is_full = !is_open(limits, &Shared::all(), None, self.lanes.held(&Shared::all()));
        let waits_for_place = |id: &RunId| {
            let lane = self.lanes.of_run(*id).expect("every live run has its lane");
            is_full
                || request.has_no_place_for(&lane.agent)
                || self.order.blocked.contains(id)
                || !limits.is_open(lane, self.lanes.held_of(lane))
        };
        let expired = self.expiring.iter().take_while(|(expires_at, _)| *expires_at < now).take(SWEEP_MAX);
        expired.map(|(_, id)| (*id, waits_for_place(id))).collect()
    }

    fn agent_gone(&self, agents: &[String], now: Timestamp, limit: usize) -> Vec<RunId> {
        let mut gone: Vec<(Timestamp, RunId)> = vec![];
        for lane in agents.iter().flat_map(|agent| self.lanes.of_agent(agent)) {
            for runs in [&lane.open, &lane.blocked] {
                gone.extend(runs.iter().take_while(|(ready_at, _)| *ready_at <= now).take(limit));
            }
        }
        gone.sort_unstable();
        gone.truncate(limit);
        gone.into_iter().map(|(_, id)| id).collect()
    }

    fn overlapping(&self, now: Timestamp, limit: usize) -> Vec<(RunId, ScheduleId)> {
        let due = self.order.overlapping.iter().take_while(|(at, ..)| *at <= now).take(limit);
        let runs = due.flat_map(|(.., schedule)| {
            self.overlapping_of(*schedule, now).take(limit).map(|(at, id)| (at, id, *schedule))
        });
        let mut found: Vec<(Timestamp, RunId, ScheduleId)> = runs.collect();
        found.sort_unstable();
        found.truncate(limit);
        found.into_iter().map(|(_, id, schedule)| (id, schedule)).collect()
    }
}

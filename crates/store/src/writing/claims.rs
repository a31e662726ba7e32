//! Claiming, settling, finishing.

use jiff::Timestamp;
use punctual_core::journal::Body;

use super::Writing;
use crate::change::{self, AGENT_GONE_AFTER, SWEEP_MAX, Wants};
use crate::error::{Result, StoreError};
use crate::requests::{AttemptReport, ClaimRequest, Claimed, RunWritten, Settlement};

impl Writing<'_> {
    pub(crate) fn claim(&mut self, request: &ClaimRequest) -> Result<Claimed> {
        // A node whose clock is ahead claims nothing early.
        let now = self.cluster.now.map_or(request.now, |now| now.min(request.now));
        let request = &ClaimRequest { now, ..request.clone() };
        if !self.has_lease(request.node, now) {
            return Err(StoreError::LeaseEnded);
        }
        let planned_until = self.cluster.planner.map(|planner| planner.until);
        if change::awaits_planning(planned_until, self.mirror.last_outage(), now) {
            return Ok(change::planning_first(now));
        }
        let agents_gone = self.agents_gone(now);
        let overdue = self.mirror.overdue(request, &agents_gone);
        let mut claimed = Claimed::nothing(now);
        if !overdue.is_empty() {
            let swept = self.change(&overdue.wants(), now, |draft| change::sweep(draft, &overdue));
            (claimed.swept, claimed.has_replaced) = (swept.answers, swept.has_replaced);
        }
        if overdue.len() == SWEEP_MAX {
            return Ok(claimed);
        }
        let runs = self.mirror.choose_runs(request);
        if !runs.is_empty() {
            let body = Body::RunsClaimed { owner: request.node, runs: runs.clone() };
            self.change(&Wants::runs(runs.iter().copied()), now, |draft| draft.add(body))?;
            self.mirror.take_turns(&runs, now);
        }
        claimed.runs = runs.iter().enumerate().map(|(place, id)| self.mirror.claimed(*id, &runs[place..])).collect();
        claimed.next_at = self.mirror.next_at(request);
        Ok(claimed)
    }

    pub(crate) fn settle(&mut self, now: Timestamp, settlements: &[Settlement]) -> Vec<RunWritten> {
        let wants = Wants::runs(settlements.iter().map(|settlement| settlement.run));
        self.change(&wants, now, |draft| change::settle(draft, settlements))
    }

    pub(crate) fn finish(&mut self, now: Timestamp, reports: Vec<AttemptReport>) -> Vec<RunWritten> {
        let wants = Wants::runs(reports.iter().map(|report| report.run));
        self.change(&wants, now, |draft| change::finish(draft, reports))
    }

    /// Agents that were last seen too long ago, and that no living node has.
    fn agents_gone(&self, now: Timestamp) -> Vec<String> {
        let is_old = |seen_at: Timestamp| seen_at.checked_add(AGENT_GONE_AFTER).is_ok_and(|until| until < now);
        let has_it = |agent: &str| {
            let mut alive = self.cluster.nodes.values().filter(|node| now <= node.lease_until);
            alive.any(|node| node.agents.contains(agent))
        };
        let seen = self.cluster.agents_seen.iter();
        seen.filter(|(agent, seen_at)| is_old(**seen_at) && !has_it(agent)).map(|(agent, _)| agent.clone()).collect()
    }
}

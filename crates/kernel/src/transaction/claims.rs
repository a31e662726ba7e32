//! Claiming, settling, finishing.

use std::sync::Arc;

use jiff::Timestamp;
use punctual_core::RunId;
use punctual_core::journal::{Body, EndedRun};
use punctual_core::run::{Run, RunState};

use super::Transaction;
use crate::admission::{self, Admitted};
use crate::change::{self, AGENT_GONE_AFTER, Draft, SWEEP_MAX, Wants};
use crate::due::write_due;
use crate::error::{KernelError, Result};
use crate::types::{AttemptReport, ClaimRequest, Claimed, RunWritten, Settlement, StartRequest, Started, StartedRun};

/// What became of the slots that are due.
struct PassedDue {
    /// Whether they wait for a node that plans.
    awaits_planning: bool,
    /// Whether more are due than one start decides.
    has_more: bool,
}

impl Transaction<'_> {
    /// Sweeps, then claims up to `request.limit` ready runs for a node.
    pub fn claim(&mut self, request: &ClaimRequest) -> Result<Claimed> {
        // A node whose clock is ahead claims nothing early.
        let now = self.cluster.now.map_or(request.now, |now| now.min(request.now));
        let request = &ClaimRequest { now, ..request.clone() };
        if !self.has_lease(request.node, now) {
            return Err(KernelError::LeaseEnded);
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
            self.mirror.take_turns(&runs, now, &mut self.undo);
        }
        claimed.runs = runs.iter().enumerate().map(|(place, id)| self.mirror.claimed(*id, &runs[place..])).collect();
        claimed.next_at = self.mirror.next_at(request);
        Ok(claimed)
    }

    /// Claims ready runs, decides about each, and begins those that may start.
    pub fn start(&mut self, request: &StartRequest) -> Result<Started> {
        let undelivered = self.undelivered(request);
        let passed = self.pass_due(request)?;
        let mut claimed = self.claim(&request.claim)?;
        (claimed.awaits_planning, claimed.has_more_due) = (passed.awaits_planning, passed.has_more);
        let chosen = std::mem::take(&mut claimed.runs);
        if chosen.is_empty() {
            return Ok(Started { claimed, count: undelivered.len(), runs: undelivered });
        }
        let now = claimed.at;
        let decisions: Vec<Admitted> = chosen.iter().map(|run| admission::decide(run, request, now)).collect();
        let replacing = chosen.iter().zip(&decisions).filter(|(_, admitted)| admitted.replaces);
        let replacing: Vec<Arc<Run>> = replacing.map(|(chosen, _)| Arc::clone(&chosen.run)).collect();
        if !replacing.is_empty() {
            let at_work_of = replacing.iter().filter_map(|run| run.schedule).collect();
            let wants = Wants { at_work_of, ..Wants::default() };
            let replaced = self.change(&wants, now, |draft| change::replace(draft, replacing.iter().map(|run| &**run)));
            claimed.has_replaced |= 0 < replaced;
        }
        let settlements = chosen.iter().zip(&decisions).map(|(chosen, admitted)| {
            let run = &chosen.run;
            Settlement { run: run.id, epoch: run.epoch(), decision: admitted.decision }
        });
        self.settle(now, &settlements.collect::<Vec<_>>());
        let count = chosen.len() + undelivered.len();
        let begun = chosen.into_iter().filter_map(|chosen| {
            let run = self.mirror.run(chosen.run.id).filter(|run| matches!(run.state, RunState::Running { .. }))?;
            Some(StartedRun { run: Arc::clone(run), schedule: chosen.schedule })
        });
        let runs = undelivered.into_iter().chain(begun).collect();
        claimed.next_at = self.mirror.next_at(&ClaimRequest { now, ..request.claim.clone() });
        Ok(Started { claimed, count, runs })
    }

    /// Gives every slot that is due its run, or its skip.
    fn pass_due(&mut self, request: &StartRequest) -> Result<PassedDue> {
        let now = self.cluster.now.map_or(request.claim.now, |now| now.min(request.claim.now));
        if !self.has_lease(request.claim.node, now) {
            return Err(KernelError::LeaseEnded);
        }
        let mut passed = PassedDue { awaits_planning: false, has_more: false };
        if request.due_max == 0 {
            return Ok(passed);
        }
        if change::awaits_planning(self.cluster.planner.map(|planner| planner.until), now) {
            passed.awaits_planning = self.mirror.has_undecided(now);
            return Ok(passed);
        }
        let due;
        (due, passed.has_more) = self.mirror.due_slots(&request.timetables, request.due_max, now);
        if !due.is_empty() {
            let schedules = due.iter().map(|due| due.plan.schedule).collect();
            let runs = due.iter().flat_map(|due| &due.plan.runs).map(|run| run.id).collect();
            let mut draft = self.draft(&Wants { schedules, runs, ..Wants::default() }, now);
            let before = draft.world.clone();
            write_due(&mut draft, due);
            self.note_agents(&draft, now);
            self.save(before, draft);
        }
        Ok(passed)
    }

    /// Runs of a node that are written as running and that it has not begun: it never heard that they were started.
    fn undelivered(&self, request: &StartRequest) -> Vec<StartedRun> {
        let Some(begun) = &request.begun else { return vec![] };
        let is_running = |run: &&Arc<Run>| matches!(run.state, RunState::Running { .. }) && !run.is_cancelling;
        let is_dying = |run: &Run| request.held.range((run.id, 0)..=(run.id, u64::MAX)).next().is_some();
        let owned = self.mirror.owned(request.claim.node).filter(is_running);
        let unheard = owned.filter(|run| !begun.contains(&(run.id, run.epoch())) && !is_dying(run));
        unheard.map(|run| StartedRun { run: Arc::clone(run), schedule: self.mirror.schedule_of(run) }).collect()
    }

    /// Writes what admission decided about claimed runs. One reply each, in order.
    pub fn settle(&mut self, now: Timestamp, settlements: &[Settlement]) -> Vec<RunWritten> {
        let wants = Wants::runs(settlements.iter().map(|settlement| settlement.run));
        self.change(&wants, now, |draft| change::settle(draft, settlements))
    }

    /// Writes how attempts ended. One reply each, in order.
    pub fn finish(&mut self, now: Timestamp, reports: Vec<AttemptReport>) -> Vec<RunWritten> {
        let mut draft = self.draft(&Wants::runs(reports.iter().map(|report| report.run)), now);
        let before = draft.world.clone();
        let ended = |draft: &Draft, id: RunId| {
            let here = draft.entries.iter().rfind(|entry| entry.body.run() == Some(id));
            here.and_then(EndedRun::of).or_else(|| self.ended(id))
        };
        let written = change::finish(&mut draft, reports, ended);
        self.save(before, draft);
        written
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

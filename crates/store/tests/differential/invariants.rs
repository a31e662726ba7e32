//! What holds after every step, looked at from outside: with a memory of its own, and none of the store's code but the fold.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use punctual_core::journal::{Body, EndedRun, Entry, World};
use punctual_core::plan::Limits;
use punctual_core::run::{AttemptEnd, Run, RunEvent, RunState};
use punctual_core::schedule::Overlap;
use punctual_core::{NodeId, RunId, ScheduleId};
use punctual_store::memory::State;

use super::names::{RunNumber, node_id, run_id, time};
use super::play::{Answer, limits};
use super::step::{Op, Step};

/// What the checks remember between two steps.
#[derive(Default)]
pub(crate) struct Checks {
    before: World,
    folded: World,
    leases: BTreeMap<NodeId, Timestamp>,
    /// How many runs have started for the first time, by schedule.
    started: BTreeMap<ScheduleId, u64>,
    /// Every run that was ever over, and how its last attempt had ended.
    ended: BTreeMap<RunId, Option<AttemptEnd>>,
}

type Checked = Result<(), String>;

fn ensure(holds: bool, what: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { Err(what()) }
}

impl Checks {
    /// Checks a step that has been played, with its answer and the entries that it wrote.
    pub(crate) fn check(&mut self, step: &Step, answer: &Answer, entries: &[Entry], state: &State) -> Checked {
        self.check_entries(step, entries)?;
        self.check_fold(entries, state)?;
        self.check_answer(step, answer, entries)?;
        self.check_authority(step, answer)?;
        self.check_runs(&state.world)?;
        if let (Op::Claim { node, caps, limit, agents }, Answer::Claimed(claimed)) = (&step.op, answer) {
            let ids: Vec<RunId> = claimed.runs.iter().map(|claimed| claimed.run.id).collect();
            ensure(ids.len() <= *limit, || format!("{} runs were claimed, not {limit}", ids.len()))?;
            let lease = self.leases.get(&node_id(*node));
            ensure(lease.is_some_and(|lease| time(step.now) <= *lease), || "who claims has no lease".to_owned())?;
            self.check_claim(&ids, time(step.now), agents, &limits(caps))?;
            ensure(!self.has_left_overlap(&ids, time(step.now)), || {
                "a run that is due finds another at work, and was not answered".to_owned()
            })?;
        }
        for run in state.world.live_runs() {
            let is_known = run.owner().is_none_or(|owner| state.nodes.contains_key(&owner));
            ensure(is_known, || format!("the owner of run {} is gone", run.id))?;
        }
        self.leases = state.nodes.values().map(|node| (node.id, node.lease_until)).collect();
        self.before = state.world.clone();
        Ok(())
    }

    /// Numbers without gaps, times as given, nothing about a run that is over, each run started under its schedule.
    fn check_entries(&mut self, step: &Step, entries: &[Entry]) -> Checked {
        for (index, entry) in entries.iter().enumerate() {
            let seq = self.before.seq + 1 + index as u64;
            ensure(entry.seq == seq, || format!("entry {} stands where {seq} should", entry.seq))?;
            ensure(entry.at == time(step.now), || format!("entry {seq} was written at {}", entry.at))?;
            let named: Vec<RunId> = match &entry.body {
                Body::RunsClaimed { runs, .. } | Body::RunsStarted { runs } => runs.clone(),
                body => body.run().into_iter().collect(),
            };
            for run in &named {
                let is_over = self.ended.contains_key(run);
                ensure(!is_over, || format!("entry {seq} is about run {run}, which is over"))?;
            }
        }
        Ok(())
    }

    /// The rows are what the journal folds to, entry by entry.
    fn check_fold(&mut self, entries: &[Entry], state: &State) -> Checked {
        for entry in entries {
            if let Body::RunsStarted { runs } = &entry.body {
                let starts = runs.iter().filter_map(|run| self.folded.runs.get(run)).filter(|run| !run.has_started);
                for schedule in starts.filter_map(|run| run.schedule) {
                    *self.started.entry(schedule).or_default() += 1;
                }
            }
            let before = entry.body.run().and_then(|run| self.folded.runs.get(&run)).cloned();
            self.folded.apply(entry).map_err(|error| format!("entry {} cannot be: {error}", entry.seq))?;
            if let Body::ScheduleDeleted { schedule, .. } = &entry.body {
                self.started.remove(schedule);
            }
            self.check_end(entry, before.map(std::sync::Arc::unwrap_or_clone))?;
        }
        self.started.retain(|id, _| self.folded.schedules.contains_key(id));
        for (id, record) in &self.folded.schedules {
            let (counted, started) = (record.schedule.runs_started, self.started.get(id).copied().unwrap_or(0));
            ensure(counted == started, || format!("schedule {id} counts {counted} starts of {started}"))?;
        }
        let is_same = self.folded == state.world;
        ensure(is_same, || {
            let differences = punctual_store::compare::differences(&self.folded, &state.world);
            format!("the rows are not what the journal folds to: {differences:#?}")
        })
    }

    /// A run that is over has left, and its last entry says what it came to.
    fn check_end(&mut self, entry: &Entry, before: Option<Run>) -> Checked {
        let (Some(before), Some(event)) = (before, event_of(&entry.body)) else { return Ok(()) };
        let id = before.id;
        let after = before.after(&event, entry.at).map_err(|error| format!("run {id}: {error}"))?;
        let ended = EndedRun::of(entry);
        let is_right = match (&ended, after.state.is_final()) {
            (None, is_final) => !is_final,
            (Some(ended), _) => ended.state() == after.state && ended.end.version == after.version,
        };
        ensure(is_right, || format!("run {id} is {:?}, its entry says {ended:?}", after.state))?;
        let is_live = self.folded.runs.contains_key(&id);
        ensure(is_live != ended.is_some(), || format!("run {id} is {}, is it there: {is_live}", after.state.name()))?;
        self.ended.extend(ended.map(|ended| (id, ended.last_end)));
        Ok(())
    }

    /// What was refused has changed nothing.
    fn check_answer(&self, step: &Step, answer: &Answer, entries: &[Entry]) -> Checked {
        use punctual_store::{RunWritten, Written};
        let is_refused = match answer {
            Answer::Failed(_) => true,
            Answer::Yes(is_new) => !is_new,
            Answer::Writes(written) => written.iter().all(|it| *it == Written::Conflict),
            Answer::Runs(written) => written.iter().all(|it| *it == RunWritten::Stale),
            Answer::Cancelled(cancelled) => matches!(cancelled, punctual_store::Cancellation::Over(_)),
            Answer::Planner(lease) => !lease.is_held,
            _ => matches!(step.op, Op::Read(_) | Op::Renew(_)),
        };
        ensure(!is_refused || entries.is_empty(), || format!("{answer:?}, but entries were written: {entries:?}"))
    }

    /// Who writes about a run names its epoch, and holds it, or repeats what it has said.
    fn check_authority(&self, step: &Step, answer: &Answer) -> Checked {
        let named: Vec<(RunNumber, u64)> = match &step.op {
            Op::Settle(settled) => settled.iter().map(|it| (it.run, it.epoch)).collect(),
            Op::Finish(finished) => finished.iter().map(|it| (it.run, it.epoch)).collect(),
            _ => return Ok(()),
        };
        let Answer::Runs(written) = answer else { return Err(format!("{answer:?} is no answer")) };
        ensure(named.len() == written.len(), || "not each write has its answer".to_owned())?;
        for ((run, epoch), _) in named.iter().zip(written).filter(|(_, it)| **it != punctual_store::RunWritten::Stale) {
            let said = |end: AttemptEnd| end.epoch == *epoch;
            let Some(run) = self.before.runs.get(&run_id(*run)) else {
                let is_repeated = self.ended.get(&run_id(*run)).copied().flatten().is_some_and(said);
                ensure(is_repeated, || format!("run {} is not there, and was written", run_id(*run)))?;
                continue;
            };
            let is_held = !matches!(run.state, RunState::Planned { .. } | RunState::Finished { .. });
            let has_said = run.last_end.is_some_and(said);
            let may = has_said || is_held && run.epoch() == *epoch;
            ensure(may, || format!("run {} was written under epoch {epoch}, while {:?}", run.id, run.state))?;
        }
        Ok(())
    }

    /// What holds of each run, and between it and what it was before.
    fn check_runs(&self, world: &World) -> Checked {
        let mut slots = BTreeSet::new();
        for run in world.live_runs() {
            let id = run.id;
            let tally = run.state.tally();
            let max = run.terms.retry.max_attempts.get();
            ensure(tally.attempt <= max, || format!("run {id} is at attempt {} of {max}", tally.attempt))?;
            let is_first = run.schedule.is_none_or(|schedule| slots.insert((schedule, &run.key)));
            ensure(is_first, || format!("slot {} has two runs, one is {id}", run.key))?;
            let is_over = run.state.is_final() || run.ended_at.is_some();
            ensure(!is_over, || format!("run {id} is over, and still there"))?;
            let Some(before) = self.before.runs.get(&id) else { continue };
            ensure(before.epoch() <= tally.epoch, || format!("the epoch of run {id} has fallen"))?;
            ensure(!before.has_started || run.has_started, || format!("run {id} has never started now"))?;
            // From one owner to another there is no way but through nobody's hands.
            let is_handed_on = before.owner().is_some() && run.owner().is_some() && before.owner() != run.owner();
            ensure(!is_handed_on, || format!("run {id} went from hand to hand"))?;
            if before.owner().is_none() && run.owner().is_some() {
                ensure(before.epoch() < tally.epoch, || format!("run {id} was claimed under an old epoch"))?;
            }
        }
        Ok(())
    }

    /// Each run that was claimed, one after another: it was due, nobody's, unblocked, and there was a place for it.
    fn check_claim(&self, claimed: &[RunId], now: Timestamp, agents: &[&str], limits: &Limits) -> Checked {
        // A sweep comes first: what it has answered is not claimed, and holds no place.
        let mut runs: BTreeMap<RunId, Run> = self.before.live_runs().map(|run| (run.id, run.clone())).collect();
        let has_ended = |run: &Run| self.folded.runs.get(&run.id).is_none_or(|now| now.state.is_final());
        runs.retain(|_, run| run.owner().is_none() || !has_ended(run));
        for id in claimed {
            let run = runs.get(id).ok_or_else(|| format!("run {id} was claimed, and was not there"))?.clone();
            let due_at = run.planned_for().ok_or_else(|| format!("run {id} was claimed while {}", run.state.name()))?;
            ensure(due_at <= now, || format!("run {id} was claimed before {due_at}"))?;
            ensure(agents.contains(&run.terms.work.agent()), || format!("run {id} is for another agent"))?;
            ensure(run.expires_at.is_none_or(|it| now <= it) || self.is_kept(id), || format!("run {id} is too late"))?;
            ensure(!self.is_blocked(&run, &runs), || format!("run {id} was claimed while it was blocked"))?;
            check_places(&run, &runs, limits)?;
            let tally = run.state.tally();
            let claimed = RunState::Claimed { owner: node_id(0), resumes: false, tally };
            runs.insert(*id, Run { state: claimed, ..run });
        }
        Ok(())
    }

    /// Whether a run that skips or replaces is due beside another that was at work before this claim, and still waits.
    fn has_left_overlap(&self, claimed: &[RunId], now: Timestamp) -> bool {
        let works = |it: &Run| it.is_active() && !claimed.contains(&it.id);
        let has_work = |run: &Run| self.folded.live_runs().any(|it| it.schedule == run.schedule && works(it));
        // What this very claim has let go by answering whom it follows is for the next one.
        let follows = |run: &Run| run.follows.and_then(|leader| self.before.runs.get(&leader));
        let may_go = |run: &Run| follows(run).is_none_or(|leader| leader.has_started || leader.state.is_final());
        self.folded.live_runs().any(|run| {
            let is_due = matches!(run.state, RunState::Planned { due_at, resumes: false, .. } if due_at <= now);
            let is_asked = run.schedule.is_some() && !run.is_parked && may_go(run);
            let answers = matches!(run.terms.overlap, Overlap::Skip | Overlap::Replace);
            is_due && is_asked && answers && has_work(run)
        })
    }

    /// Whether the sweep of this very claim has taken the expiry from a run.
    fn is_kept(&self, id: &RunId) -> bool {
        self.folded.runs.get(id).is_some_and(|run| run.expires_at.is_none())
    }

    fn is_blocked(&self, run: &Run, runs: &BTreeMap<RunId, Run>) -> bool {
        // What the sweep has ended is over.
        let is_over = |other: &Run| self.folded.runs.get(&other.id).is_none_or(|it| it.state.is_final());
        let waits = |it: &Run| {
            let leader = it.follows.and_then(|leader| runs.get(&leader));
            leader.is_some_and(|leader| !leader.has_started && !is_over(leader))
        };
        if waits(run) {
            return true;
        }
        let others = || runs.values().filter(|it| it.id != run.id && it.schedule == run.schedule && !is_over(it));
        let works = |it: &Run| !matches!(it.state, RunState::Planned { .. } | RunState::Finished { .. });
        // A wait that the sweep has ended as a failed attempt is planned again.
        let works = |it: &Run| works(it) && !matches!(self.folded.runs[&it.id].state, RunState::Planned { .. });
        let has_schedule = run.schedule.is_some();
        let queues = run.terms.overlap == Overlap::Queue;
        let place = |it: &Run| it.planned_for().map(|due_at| (due_at, it.id));
        has_schedule && (queues || run.is_parked) && others().any(works)
            || has_schedule
                && queues
                && others().any(|it| !waits(it) && place(it).is_some_and(|it| Some(it) < place(run)))
    }
}

/// What an entry about one run says that happened to it.
fn event_of(body: &Body) -> Option<RunEvent> {
    match body {
        Body::RunChanged(change) => Some(change.event),
        Body::AttemptEnded(attempt) => Some(attempt.event),
        _ => None,
    }
}

fn check_places(run: &Run, runs: &BTreeMap<RunId, Run>, limits: &Limits) -> Checked {
    let count = |shares: &dyn Fn(&Run) -> bool| {
        runs.values().filter(|other| other.owner().is_some() && shares(other)).count() as u32
    };
    let agent = run.terms.work.agent();
    let of_agent = count(&|other| other.terms.work.agent() == agent);
    let places = [
        ("all", Some(count(&|_| true)), limits.global),
        ("its schedule", Some(of_agent), Some(run.terms.max_concurrent.get())),
        ("its agent", Some(of_agent), limits.agents.get(agent).copied()),
        (
            "its project",
            run.terms.project.as_ref().map(|project| count(&|other| other.terms.project.as_ref() == Some(project))),
            run.terms.project.as_ref().and_then(|project| limits.projects.get(project)).copied(),
        ),
        (
            "its key",
            run.terms
                .concurrency
                .as_ref()
                .map(|it| count(&|other| other.terms.concurrency.as_ref().is_some_and(|other| other.key == it.key))),
            run.terms.concurrency.as_ref().map(|it| it.max.get()),
        ),
    ];
    for (what, held, max) in places {
        if let (Some(held), Some(max)) = (held, max) {
            ensure(held < max, || format!("run {} was claimed as number {} of {what}, {max} may", run.id, held + 1))?;
        }
    }
    Ok(())
}

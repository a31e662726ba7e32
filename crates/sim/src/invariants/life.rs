//! The life of a run: attempts (I6), one end (I8), legal steps (I9), growing epochs (I1).

use std::collections::BTreeMap;
use std::sync::Arc;

use punctual_core::RunId;
use punctual_core::journal::{Body, EndedRun, Entry, World};
use punctual_core::run::{AfterLoss, Outcome, Run, RunEvent, RunState, STOPS_MAX};

use super::{Check, Violation, ensure, events};

/// What is counted of each run, from the journal alone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lives {
    lives: BTreeMap<RunId, Life>,
    /// The runs that are over, as they ended: nothing else remembers them.
    ends: BTreeMap<RunId, Run>,
    epoch_floor: u64,
}

#[derive(Debug, Default, Clone, Copy)]
struct Life {
    claims: u32,
    handed_back: u32,
    losses: u32,
    epoch: u64,
    is_over: bool,
    /// Its slot may come back, and then has the same run again.
    is_withdrawn: bool,
}

impl Lives {
    /// How many runs there have been.
    pub(crate) fn len(&self) -> usize {
        self.lives.len()
    }

    /// Whether there has been such a run.
    pub(crate) fn has(&self, run: RunId) -> bool {
        self.lives.contains_key(&run)
    }

    /// The runs that are over, as they ended.
    pub(crate) fn ends(&self) -> &BTreeMap<RunId, Run> {
        &self.ends
    }

    /// Takes in an entry; `before` and `after` are the world around it.
    pub(crate) fn take(&mut self, entry: &Entry, before: &BTreeMap<RunId, Run>, after: &World) -> Check {
        match &entry.body {
            Body::Planned(plan) => {
                for run in &plan.runs {
                    self.begin(run.id)?;
                }
                for run in &plan.withdrawn {
                    let life = self.lives.get(run).copied().unwrap_or_default();
                    ensure("I9", life.claims == life.handed_back && !life.is_over, || {
                        format!("run {run} was withdrawn after it had been taken")
                    })?;
                    self.lives.insert(*run, Life { is_withdrawn: true, ..life });
                }
            }
            Body::RunAsked { run, .. } => self.begin(run.id)?,
            Body::Restored { epoch_floor } => {
                ensure("I1", self.epoch_floor < *epoch_floor, || format!("the epochs stay at {epoch_floor}"))?;
                self.epoch_floor = *epoch_floor;
                let living = self.lives.values_mut().filter(|life| !life.is_over);
                living.for_each(|life| life.epoch = life.epoch.max(*epoch_floor));
            }
            _ => {}
        }
        for (id, event) in events(entry) {
            let Some(run) = before.get(&id).map(|before| before.after(&event, entry.at)) else {
                let is_over = self.ends.contains_key(&id);
                let rule = if is_over { "I8" } else { "I9" };
                return ensure(rule, false, || format!("{} happened to run {id}, which is not there", event.name()));
            };
            let run = run.map_err(|error| Violation { rule: "I9", what: format!("run {id}: {error}") })?;
            let last_end = match &entry.body {
                Body::AttemptEnded(attempt) => Some(attempt.last_end(run.state)),
                _ => run.last_end,
            };
            let run = Run { last_end, ..run };
            self.step(&before[&id], &event, &run)?;
            self.leaves(entry, run, after)?;
        }
        Ok(())
    }

    /// A run that is over leaves the world at once, and its last entry says all that is asked of it later.
    fn leaves(&mut self, entry: &Entry, run: Run, after: &World) -> Check {
        let id = run.id;
        if !run.state.is_final() {
            let is_live = after.runs.get(&id).is_some_and(|live| **live == run);
            return ensure("I8", is_live && entry.body.ended().is_none(), || {
                format!("run {id} is {run:?}; the world has {:?}, and its entry {:?}", after.runs.get(&id), entry.body)
            });
        }
        ensure("I8", !after.runs.contains_key(&id), || format!("run {id} is over, and still there"))?;
        let is_told = entry.body.mark(entry.at).is_some_and(|mark| mark.is_final);
        ensure("I8", is_told, || format!("run {id} is over, and history does not have its end"))?;
        let known = Run { expires_at: None, follows: None, is_parked: false, ..run };
        let ended = EndedRun::of(entry).map(|ended| ended.into_run(Arc::clone(&known.terms)));
        ensure("I8", ended.as_ref() == Some(&known), || format!("run {id} ended as {known:?}, told as {ended:?}"))?;
        self.ends.insert(id, known);
        Ok(())
    }

    fn begin(&mut self, id: RunId) -> Check {
        let before = self.lives.get(&id).copied();
        ensure("I10", before.is_none_or(|life| life.is_withdrawn), || format!("run {id} began twice"))?;
        // Epochs that were given before are given to no other node.
        let epoch = before.map_or(0, |life| life.epoch).max(self.epoch_floor);
        self.lives.insert(id, Life { epoch, ..Life::default() });
        Ok(())
    }

    fn step(&mut self, before: &Run, event: &RunEvent, after: &Run) -> Check {
        let id = after.id;
        let life = self.lives.entry(id).or_default();
        ensure("I8", !life.is_over, || format!("run {id} was {} after its end", event.name()))?;
        ensure("I9", is_legal(&before.state, event, &after.state), || {
            format!("run {id} was {} and {}, and is {}", before.state.name(), event.name(), after.state.name())
        })?;
        match event {
            RunEvent::Claimed { .. } => {
                life.claims += 1;
                ensure("I1", life.epoch < after.epoch(), || {
                    format!("run {id} was claimed under epoch {} after {}", after.epoch(), life.epoch)
                })?;
                life.epoch = after.epoch();
            }
            RunEvent::HandedBack { .. } => life.handed_back += 1,
            RunEvent::OwnerLost { .. } if matches!(before.state, RunState::Running { .. }) => life.losses += 1,
            RunEvent::Stopped { .. } => {
                life.losses += 1;
                // A stop gives the attempt back, unless the run seems to be what stops its nodes.
                let is_free = before.terms.after_loss == AfterLoss::Retry && life.losses <= STOPS_MAX;
                life.handed_back += u32::from(is_free);
                let goes_on = is_free && !before.is_cancelling;
                ensure("I6", !goes_on || !after.state.is_final(), || {
                    format!("run {id} was stopped with its node, and is {}", after.state.name())
                })?;
            }
            _ => {}
        }
        ensure("I1", after.epoch() == life.epoch, || {
            format!("run {id} has epoch {} and was last claimed under {}", after.epoch(), life.epoch)
        })?;
        // Nothing waits here, so that every claim is a try.
        let attempt = after.state.tally().attempt;
        ensure("I6", attempt == life.claims - life.handed_back, || {
            let Life { claims, handed_back, .. } = life;
            format!(
                "run {id} says attempt {attempt}; it was claimed {claims} times and handed back {handed_back} times"
            )
        })?;
        let max = after.terms.retry.max_attempts.get();
        ensure("I6", attempt <= max, || format!("run {id} is at attempt {attempt} of {max}"))?;
        if matches!(event, RunEvent::Failed { is_retryable: true, .. } | RunEvent::OwnerLost { .. }) {
            let holds = before.terms.after_loss == AfterLoss::Hold && matches!(event, RunEvent::OwnerLost { .. });
            let is_held = holds && matches!(before.state, RunState::Running { .. });
            let goes_on = attempt < max && !is_held && !before.is_cancelling;
            ensure("I6", goes_on != after.state.is_final(), || {
                format!("run {id} was {} at attempt {attempt} of {max}, and is {}", event.name(), after.state.name())
            })?;
        }
        life.is_over = after.state.is_final();
        ensure("I8", after.ended_at.is_some() == life.is_over, || format!("run {id} and the time of its end differ"))
    }
}

/// The published table of steps.
fn is_legal(before: &RunState, event: &RunEvent, after: &RunState) -> bool {
    use {RunEvent as E, RunState as S};
    let ends = |expected: Outcome| matches!(after, S::Finished { outcome, .. } if *outcome == expected);
    let goes_back = matches!(after, S::Planned { .. });
    match (before, event) {
        (S::Planned { due_at, .. }, E::Claimed { owner, at }) => {
            due_at <= at && matches!(after, S::Claimed { owner: now, .. } if now == owner)
        }
        (S::Planned { .. } | S::Claimed { .. }, E::Skipped(reason)) => ends(Outcome::Skipped(*reason)),
        (S::Planned { .. }, E::Kept | E::Parked) => before == after,
        (S::Claimed { owner, .. }, E::Started) => matches!(after, S::Running { owner: now, .. } if now == owner),
        (S::Claimed { .. }, E::HandedBack { .. }) => goes_back,
        (S::Claimed { .. }, E::OwnerLost { .. }) => goes_back || matches!(after, S::Finished { .. }),
        (S::Running { .. }, E::Succeeded) => ends(Outcome::Succeeded),
        (S::Running { .. }, E::Failed { code, is_retryable, .. }) => {
            ends(Outcome::Failed(*code)) || *is_retryable && (goes_back || ends(Outcome::Cancelled))
        }
        (S::Running { .. }, E::OwnerLost { .. }) => goes_back || matches!(after, S::Finished { .. }),
        (S::Running { .. }, E::Stopped { .. }) => goes_back || matches!(after, S::Finished { .. }),
        (S::Running { .. }, E::CancelAsked) => before == after,
        (S::Planned { .. } | S::Claimed { .. } | S::Running { .. }, E::Cancelled) => ends(Outcome::Cancelled),
        _ => false,
    }
}

//! Meters: what this process has done since it started, for whoever watches it. Nothing is decided by them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use punctual_core::RunId;
use punctual_core::journal::{Attempt, Body, Verdict};
use punctual_core::run::{Report, Run, RunEvent};

/// The upper ends of the steps that lateness is counted in, in seconds.
pub const LATENESS_STEPS: [f64; 11] = [0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3_600.0];

/// What a process has counted. Agents are those of its configuration, so that there are never more.
#[derive(Debug, Default)]
pub struct Meters(Mutex<Counts>);

/// The counts themselves.
#[derive(Debug, Clone, Default)]
pub struct Counts {
    /// Ended attempts, by agent and verdict.
    pub attempts: BTreeMap<(String, Verdict), Sum>,
    /// How many first tries began how late, by the steps and beyond them.
    pub lateness: [u64; LATENESS_STEPS.len() + 1],
    /// The sum of all lateness, in seconds.
    pub lateness_sum: f64,
    at_work: BTreeMap<RunId, Arc<Run>>,
}

/// What attempts have come to.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Sum {
    /// How many.
    pub attempts: u64,
    /// How long their work took, in seconds.
    pub seconds: f64,
    /// How many tokens models read and wrote.
    pub tokens: u64,
    /// What that cost, in millionths of a dollar.
    pub cost_micros: u64,
}

impl Counts {
    /// How many runs are at work here.
    pub fn at_work(&self) -> usize {
        self.at_work.len()
    }

    fn note_lateness(&mut self, late: SignedDuration) {
        let seconds = late.as_secs_f64().max(0.0);
        let step = LATENESS_STEPS.iter().position(|end| seconds <= *end).unwrap_or(LATENESS_STEPS.len());
        self.lateness[step] += 1;
        self.lateness_sum += seconds;
    }
}

impl Meters {
    /// The work of a run begins. A retry, or what goes on after a stop, has been on time once: its delay is no lateness.
    pub(crate) fn began(&self, run: &Arc<Run>, now: Timestamp) {
        let mut counts = self.counts();
        let tally = run.state.tally();
        if tally.attempt <= 1 && tally.losses == 0 {
            counts.note_lateness(now.duration_since(run.due_at));
        }
        counts.at_work.insert(run.id, Arc::clone(run));
    }

    /// The end of a run's work has been written; or it is not this node's to say.
    pub(crate) fn ended(&self, run: RunId, end: Option<(RunEvent, Report)>, now: Timestamp) {
        let mut counts = self.counts();
        let Some(run) = counts.at_work.remove(&run) else { return };
        let Some((event, report)) = end else { return };
        let body = Body::AttemptEnded(Box::new(Attempt::of(&run, event, report, now)));
        let Some(mark) = body.mark(now) else { return };
        let sum = counts.attempts.entry((mark.agent.to_owned(), mark.verdict)).or_default();
        sum.attempts += 1;
        sum.seconds += mark.duration_ms.unwrap_or(0) as f64 / 1e3;
        sum.tokens = sum.tokens.saturating_add(mark.tokens.unwrap_or(0));
        sum.cost_micros = sum.cost_micros.saturating_add(mark.cost_micros.unwrap_or(0));
    }

    /// What has been counted so far.
    pub fn read(&self) -> Counts {
        self.counts().clone()
    }

    fn counts(&self) -> std::sync::MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! What must hold: after every commit, at every effect, and in the end.
//!
//! The numbers are those of the reliability notes: I for what must never happen, L for what must happen in the end. Nothing
//! here asks the store or the engine what is right; the rules are written down a second time, as plainly as they can be.

pub(crate) mod caps;
pub(crate) mod catch_up;
pub(crate) mod effects;
pub(crate) mod ending;
pub(crate) mod life;
pub(crate) mod ownership;
pub(crate) mod slots;

use std::fmt;

use punctual_core::RunId;
use punctual_core::journal::{Body, Entry};
use punctual_core::run::RunEvent;

/// Something that must not be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The rule.
    pub rule: &'static str,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.what)
    }
}

/// Holds, or is a violation.
pub(crate) type Check = Result<(), Violation>;

/// A violation unless `holds`.
pub(crate) fn ensure(rule: &'static str, holds: bool, what: impl FnOnce() -> String) -> Check {
    if holds { Ok(()) } else { Err(Violation { rule, what: what() }) }
}

/// The runs that an entry changes, besides those that follow an edit.
pub(crate) fn touched(entry: &Entry) -> Vec<RunId> {
    match &entry.body {
        Body::Planned(plan) => {
            let planned = plan.runs.iter().chain(&plan.moved).map(|run| run.id);
            planned.chain(plan.withdrawn.iter().copied()).collect()
        }
        Body::RunAsked { run, .. } => vec![run.id],
        _ => events(entry).into_iter().map(|(id, _)| id).collect(),
    }
}

/// What an entry says happened to runs, one by one.
pub(crate) fn events(entry: &Entry) -> Vec<(RunId, RunEvent)> {
    match &entry.body {
        Body::RunsClaimed { owner, runs } => {
            let event = RunEvent::Claimed { owner: *owner, at: entry.at };
            runs.iter().map(|run| (*run, event)).collect()
        }
        Body::RunsStarted { runs } => runs.iter().map(|run| (*run, RunEvent::Started)).collect(),
        Body::RunChanged(change) => vec![(change.run, change.event)],
        Body::AttemptEnded(attempt) => vec![(attempt.run, attempt.event)],
        _ => vec![],
    }
}

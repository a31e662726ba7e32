//! A line of the plan: a run, or what became of it, from the queue and from the history.

use std::collections::BTreeSet;

use jiff::Timestamp;
use uuid::Uuid;

use crate::times::Wall;
use crate::views::{Execution, Past};

/// What a run is, as a mark. The later one is shown where there is place for one only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mark {
    Planned,
    Done,
    Skipped,
    Waiting,
    Running,
    Failed,
}

/// A run.
#[derive(Debug, Clone)]
pub(super) struct Line {
    pub(super) at: Timestamp,
    pub(super) name: String,
    pub(super) agent: String,
    pub(super) mark: Mark,
    pub(super) state: String,
    pub(super) note: String,
    pub(super) run: Option<Uuid>,
}

impl Line {
    /// Whether nothing more becomes of it.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.mark, Mark::Done | Mark::Skipped | Mark::Failed)
    }

    /// What a row of the strip is called by: the schedule, or the agent of a run that has none.
    pub(super) fn row(&self) -> &str {
        if self.name == "-" { &self.agent } else { &self.name }
    }
}

/// The queue, and of the history what the queue has no more: by time.
pub(super) fn merge(future: &[Execution], past: &[Past], wall: &Wall) -> Vec<Line> {
    let mut known: BTreeSet<Uuid> = future.iter().map(|run| run.execution_id).collect();
    let mut lines: Vec<Line> = future.iter().map(|run| of_queue(run, wall)).collect();
    // The latest of a run is what became of it.
    let fresh = past.iter().filter(|it| it.execution_id.is_none_or(|id| known.insert(id)));
    lines.extend(fresh.map(of_history));
    lines.sort_by(|a, b| (a.at, &a.name, a.run).cmp(&(b.at, &b.name, b.run)));
    lines
}

fn of_queue(run: &Execution, wall: &Wall) -> Line {
    let tries = format!("try {} of {}", run.attempt, run.max_attempts);
    let reason = run.reason.clone().unwrap_or_default();
    let (mark, state, note) = match (run.exec_status.as_str(), &run.waiting_for) {
        ("READY", _) => (Mark::Planned, "planned", String::new()),
        ("PENDING" | "RUNNING", Some(what)) => (Mark::Waiting, "waiting", format!("for {what}")),
        ("PENDING", None) => (Mark::Planned, "taken", String::new()),
        ("RUNNING", None) => (Mark::Running, "running", tries),
        ("FAILED_RETRYABLE", _) => {
            let again = run.next_attempt_at.map(|at| format!(", again at {}", wall.time(at))).unwrap_or_default();
            (Mark::Planned, "retrying", tries + &again)
        }
        ("SKIPPED", _) => (Mark::Skipped, "skipped", reason),
        // The API has one word for what was called off and what has failed for good.
        ("CANCELLED", _) if run.outcome.as_deref() == Some("cancelled") => (Mark::Skipped, "cancelled", reason),
        ("CANCELLED", _) => (Mark::Failed, "failed", format!("{reason}, {tries}")),
        ("SUCCEEDED", _) => (Mark::Done, "succeeded", String::new()),
        (other, _) => (Mark::Planned, other, String::new()),
    };
    Line {
        at: run.scheduled_at,
        name: run.shown_name(),
        agent: run.agent_id.clone(),
        mark,
        state: state.to_owned(),
        note,
        run: Some(run.execution_id),
    }
}

fn of_history(past: &Past) -> Line {
    let mark = match past.result_status.as_str() {
        "SUCCESS" => Mark::Done,
        "FAIL" => Mark::Failed,
        _ => Mark::Skipped,
    };
    Line {
        at: past.scheduled_at,
        name: past.shown_name(),
        agent: past.agent_id.clone(),
        mark,
        state: past.result().to_owned(),
        note: past.what(),
        run: past.execution_id,
    }
}

//! Why: why a run ran, waits, was late, was skipped or did not run, from stored facts. Pure.
//!
//! In: a run, or a time of a schedule, with what is stored about it. Out: causes, each a code for programs and a sentence for
//! people, the most telling first.

use jiff::{SignedDuration, Timestamp};
use punctual_core::journal::{Attempt, RunChange, SkipEntry};
use punctual_core::run::{FailureCode, Outcome, Run, RunEvent, RunState, SkipReason, WaitFor};
use punctual_core::schedule::{EndReason, MaxDelay, Overlap, PauseKind, Schedule, ScheduleState};
use punctual_store::{HistoryItem, HistoryWhat};

/// A start that is later than this is late.
const LATE_AFTER: SignedDuration = SignedDuration::from_secs(5);

/// One cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// For programs; it stays the same from release to release.
    pub code: &'static str,
    /// For people.
    pub sentence: String,
}

/// What is known about a run.
#[derive(Debug)]
pub struct RunFacts<'a> {
    /// The time.
    pub now: Timestamp,
    /// The run.
    pub run: &'a Run,
    /// Its schedule, if it still has one.
    pub schedule: Option<&'a Schedule>,
    /// What became of its attempts, latest first.
    pub history: &'a [HistoryItem],
    /// Other runs of its schedule that are at work or waiting.
    pub siblings: &'a [Run],
    /// Whether a live node has its agent.
    pub has_agent: bool,
    /// How many runs of its agent are at work.
    pub agent_running: usize,
}

/// What is known about a time of a schedule that has no run.
#[derive(Debug)]
pub struct SlotFacts<'a> {
    /// The time.
    pub now: Timestamp,
    /// The time that is asked about.
    pub at: Timestamp,
    /// The schedule.
    pub schedule: &'a Schedule,
    /// Whether the time is one of the schedule's, and why the rules of time skip it.
    pub slot: Option<Option<SkipReason>>,
    /// A range of skipped slots that it lies in.
    pub skip: Option<&'a SkipEntry>,
}

fn cause(code: &'static str, sentence: impl Into<String>) -> Cause {
    Cause { code, sentence: sentence.into() }
}

/// Why a run is as it is.
pub fn why_run(facts: &RunFacts<'_>) -> Vec<Cause> {
    let mut causes = match facts.run.state {
        RunState::Planned { .. } => planned(facts),
        RunState::Claimed { .. } => vec![cause("claimed", "a node has just taken it and is about to start it")],
        RunState::Running { .. } => running(facts),
        RunState::Waiting { on, wait_until, .. } => vec![waiting(on, wait_until)],
        RunState::Finished { outcome, .. } => finished(facts, outcome),
    };
    if facts.run.is_cancelling && !facts.run.state.is_final() {
        causes.insert(0, cause("cancelling", "it was called off, and its node is stopping it"));
    }
    causes.extend(asked(facts.run));
    causes
}

/// Where the run comes from.
fn asked(run: &Run) -> Option<Cause> {
    if run.key.is_manual() {
        return Some(cause("manual", format!("somebody asked for it at {}", run.scheduled_at)));
    }
    if let Some(before) = run.key.asked_by() {
        return Some(cause("asked_by_run", format!("run {before} asked for it, for {}", run.scheduled_at)));
    }
    if run.key.is_event() {
        return Some(cause("event", format!("an event asked for it at {}", run.scheduled_at)));
    }
    Some(cause("scheduled", format!("it answers the slot of {}", run.scheduled_at)))
}

fn planned(facts: &RunFacts<'_>) -> Vec<Cause> {
    let (run, now) = (facts.run, facts.now);
    let due_at = run.planned_for().unwrap_or(run.due_at);
    let tally = run.state.tally();
    let mut causes = vec![];
    if now < due_at {
        if 0 < tally.attempt {
            let tries = run.terms.retry.max_attempts;
            let said = last_failure(facts.history).map(|said| format!(": {said}")).unwrap_or_default();
            causes.push(cause(
                "backing_off",
                format!("try {} of {tries} has failed{said}; the next is at {due_at}", tally.attempt),
            ));
        } else if due_at != run.scheduled_at {
            causes.push(cause("jittered", format!("its time comes at {due_at}, up to its jitter behind its slot")));
        } else {
            causes.push(cause("not_due", format!("its time comes at {due_at}")));
        }
        return causes;
    }
    if !facts.has_agent {
        let agent = run.terms.work.agent();
        causes.push(cause(
            "no_agent",
            format!("no node that lives has the agent {agent}; after ten minutes it is skipped"),
        ));
    }
    if let Some(other) = facts.siblings.iter().find(|other| other.is_active() && other.id != run.id)
        && (run.terms.overlap == Overlap::Queue || run.is_parked)
    {
        let sentence = format!("run {} of the same schedule is still {}", other.id, other.state.name());
        causes.push(cause("queued", sentence));
    }
    let cap = run.terms.max_concurrent.get() as usize;
    if cap <= facts.agent_running {
        let agent = run.terms.work.agent();
        let sentence = format!("{} runs of {agent} are at work, and {cap} may be", facts.agent_running);
        causes.push(cause("agent_cap", sentence));
    }
    if causes.is_empty() {
        causes.push(cause("ready", format!("it has been due since {due_at} and waits for a free place")));
    }
    causes
}

fn running(facts: &RunFacts<'_>) -> Vec<Cause> {
    let run = facts.run;
    let started_at = run.started_at.unwrap_or(facts.now);
    let mut causes = vec![cause("running", format!("it has been at work since {started_at}"))];
    causes.extend(late(run, started_at));
    causes
}

/// Whether it began later than it was due.
fn late(run: &Run, started_at: Timestamp) -> Option<Cause> {
    let delay = started_at.duration_since(run.due_at);
    if delay <= LATE_AFTER || 1 < run.state.tally().attempt {
        return None;
    }
    let sentence =
        format!("it began {delay:#} after it was due: it waited for a place, for another run, or for a node");
    Some(cause("late_start", sentence))
}

fn waiting(on: WaitFor, wait_until: Timestamp) -> Cause {
    match on {
        WaitFor::Approval => cause(
            "waiting_approval",
            format!("a person has to approve it until {wait_until}; without that it is called off"),
        ),
        WaitFor::Callback => cause("waiting_callback", format!("its target has until {wait_until} to call back")),
        WaitFor::Child => cause("waiting_child", format!("it waits for a run that it started, until {wait_until}")),
    }
}

fn finished(facts: &RunFacts<'_>, outcome: Outcome) -> Vec<Cause> {
    let run = facts.run;
    let attempt = facts.history.iter().find_map(|item| match &item.what {
        HistoryWhat::Attempt(attempt) => Some(&**attempt),
        _ => None,
    });
    match outcome {
        Outcome::Succeeded => {
            let started_at = attempt.and_then(|attempt| attempt.started_at);
            let mut causes = vec![cause("succeeded", "it ran, and its work was done")];
            causes.extend(started_at.and_then(|started_at| late(run, started_at)));
            causes
        }
        Outcome::Failed(code) => vec![failed(run, code, attempt)],
        Outcome::Unknown => vec![cause(
            "unknown",
            "its node was lost while it was at work; whether the work was done is not known, and it is not risked twice",
        )],
        Outcome::Cancelled => vec![cancelled(facts.history)],
        Outcome::Skipped(reason) => vec![skipped(reason, facts)],
    }
}

fn failed(run: &Run, code: FailureCode, attempt: Option<&Attempt>) -> Cause {
    let tries = run.state.tally().attempt;
    let said = attempt.and_then(|attempt| attempt.report.error.as_ref()).map(|error| format!(": {}", error.message));
    let said = said.unwrap_or_default();
    let what = match code {
        FailureCode::Error => "its work reported an error",
        FailureCode::TimedOut => "its work ran longer than it may",
        FailureCode::ResourceLimit => "its work needed more than it may have",
        FailureCode::NotStarted => "its work could not be begun",
        FailureCode::WaitExpired => "what it waited for did not come in time",
        FailureCode::OwnerLost => "its node was lost as often as it may be tried",
    };
    let code = match code {
        FailureCode::Error => "failed_error",
        FailureCode::TimedOut => "failed_timed_out",
        FailureCode::ResourceLimit => "failed_resource_limit",
        FailureCode::NotStarted => "failed_not_started",
        FailureCode::WaitExpired => "failed_wait_expired",
        FailureCode::OwnerLost => "failed_owner_lost",
    };
    cause(code, format!("{what}, and nothing more is tried after {tries} of {}{said}", run.terms.retry.max_attempts))
}

fn last_failure(history: &[HistoryItem]) -> Option<&str> {
    history.iter().find_map(|item| match &item.what {
        HistoryWhat::Attempt(attempt) => attempt.report.error.as_ref().map(|error| error.message.as_str()),
        _ => None,
    })
}

fn cancelled(history: &[HistoryItem]) -> Cause {
    let change = history.iter().find_map(|item| match &item.what {
        HistoryWhat::RunEnded(change) => Some(change),
        _ => None,
    });
    match change {
        Some(RunChange { event: RunEvent::WaitExpired { .. }, .. }) => {
            cause("not_approved", "nobody approved it in time, and silence is a no")
        }
        Some(RunChange { by: Some(by), .. }) => {
            let reason = by.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
            cause("cancelled", format!("{} called it off{reason}", by.actor))
        }
        _ => cause("cancelled", "it was called off: by a person, for a later run, or with its schedule"),
    }
}

fn skipped(reason: SkipReason, facts: &RunFacts<'_>) -> Cause {
    let run = facts.run;
    let sentence = match (reason, facts.schedule.map(|schedule| &schedule.state)) {
        (SkipReason::Paused | SkipReason::Disabled, Some(ScheduleState::Paused(pause))) => {
            paused_by(pause.kind, &pause.source)
        }
        (SkipReason::DayEnded, _) if run.terms.max_delay == MaxDelay::Day => {
            "its local day was over before a node could take it".to_owned()
        }
        (SkipReason::Late, _) => match run.terms.max_delay {
            MaxDelay::Duration(delay) => format!("no node could take it within {delay} of its time"),
            _ => skip_sentence(reason).to_owned(),
        },
        _ => skip_sentence(reason).to_owned(),
    };
    cause(reason.as_str(), sentence)
}

fn paused_by(kind: PauseKind, source: &str) -> String {
    match kind {
        PauseKind::Paused => format!("its schedule was paused by {source}"),
        PauseKind::Disabled => format!("its schedule was disabled by {source}"),
    }
}

/// Why a slot or a run is answered without a try, in a sentence.
pub fn skip_sentence(reason: SkipReason) -> &'static str {
    match reason {
        SkipReason::Overlap => "an earlier run of the schedule was still at work",
        SkipReason::CatchUp => "nobody planned at its time, and the catch-up policy lets it go",
        SkipReason::ConditionFalse => "the condition of its schedule was not true",
        SkipReason::Paused => "its schedule was paused",
        SkipReason::Disabled => "its schedule was disabled",
        SkipReason::DstGap => "the clock jumped over its time",
        SkipReason::DayEnded => "its day was over before a node could take it",
        SkipReason::Late => "no node could take it within its maximum delay",
        SkipReason::Budget => "the money for it was spent",
        SkipReason::Quota => "too many runs were waiting already",
        SkipReason::RateLimited => "too many runs in too short a time",
        SkipReason::Calendar => "its calendar was closed",
        SkipReason::AgentRemoved => "no node has had its agent for ten minutes",
        SkipReason::CircuitOpen => "too many failures in a row had opened the circuit",
    }
}

/// Why a time of a schedule has no run.
pub fn why_not(facts: &SlotFacts<'_>) -> Vec<Cause> {
    let SlotFacts { now, at, schedule, slot, skip } = facts;
    if let Some(skip) = skip {
        let sentence = skip_sentence(skip.reason);
        let range = if skip.count == 1 {
            String::new()
        } else {
            format!(" ({} slots from {} to {})", skip.count, skip.first_at, skip.last_at)
        };
        return vec![cause(skip.reason.as_str(), format!("{sentence}{range}"))];
    }
    let Some(skipped) = slot else {
        return vec![cause(
            "no_slot",
            format!("{at} is none of its times: {}", schedule.trigger.describe(&schedule.zone)),
        )];
    };
    if let Some(reason) = skipped {
        return vec![cause(reason.as_str(), skip_sentence(*reason))];
    }
    match &schedule.state {
        ScheduleState::Paused(pause) => {
            let code = pause.kind.skip_reason().as_str();
            return vec![cause(code, paused_by(pause.kind, &pause.source))];
        }
        ScheduleState::Ended(reason) => return vec![cause("ended", ended(*reason))],
        ScheduleState::Active => {}
    }
    if *at < schedule.created_at {
        return vec![cause("before_creation", format!("the schedule was created at {}", schedule.created_at))];
    }
    if schedule.cursor.at < *at {
        let when = if *now < *at { "its day has not been planned yet" } else { "planning has not come to it yet" };
        return vec![cause("not_planned_yet", when)];
    }
    if *at < schedule.updated_at {
        let sentence = format!("the schedule was changed at {}, and had other times before", schedule.updated_at);
        return vec![cause("superseded", sentence)];
    }
    vec![cause("forgotten", "its run ended long ago and was let go; the history has it as long as the journal is kept")]
}

fn ended(reason: EndReason) -> &'static str {
    match reason {
        EndReason::Done => "the schedule is over: its last slot has been answered",
        EndReason::MaxRuns => "the schedule is over: as many runs have started as may",
        EndReason::Converged => "the schedule is over: what it was for has been reached",
        EndReason::Cancelled => "the schedule is over: somebody ended it",
        EndReason::CircuitOpen => "the schedule is over: too many failures in a row",
        EndReason::NoFutureMatch => "the schedule is over: its expression never matches again",
        EndReason::Expired => "the schedule is over: its time was limited",
    }
}

/// Why a run ended that is gone, from what the history still has of it, latest first. Nothing, if that is nothing.
pub fn why_gone(history: &[HistoryItem]) -> Vec<Cause> {
    let Some(last) = history.first() else { return vec![] };
    vec![match &last.what {
        HistoryWhat::Attempt(attempt) => match &attempt.event {
            RunEvent::Succeeded => cause("succeeded", "it ran, and its work was done"),
            RunEvent::Cancelled => cause("cancelled", "it was called off while it was at work"),
            RunEvent::OwnerLost { .. } => cause("failed_owner_lost", "its node was lost while it was at work"),
            _ => {
                let said = last_failure(history).map(|said| format!(": {said}")).unwrap_or_default();
                cause("failed_error", format!("try {} failed{said}", attempt.attempt))
            }
        },
        HistoryWhat::RunEnded(RunChange { event: RunEvent::Skipped(reason), .. }) => {
            cause(reason.as_str(), skip_sentence(*reason))
        }
        HistoryWhat::RunEnded(_) => cancelled(history),
        HistoryWhat::Skipped(skip) => cause(skip.reason.as_str(), skip_sentence(skip.reason)),
    }]
}

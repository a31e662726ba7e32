//! Why: why a run ran, waits, was late, was skipped or did not run, from stored facts. Pure.
//!
//! In: a run, or a time of a schedule, with what is stored about it. Out: causes, each a code for programs and a sentence for
//! people, the most telling first.

use jiff::tz::Offset;
use jiff::{SignedDuration, Timestamp};
use punctual_core::By;
use punctual_core::journal::{Attempt, RunChange, SkipEntry};
use punctual_core::run::{FailureCode, Outcome, Run, RunEvent, RunState, SkipReason, WaitFor};
use punctual_core::schedule::{EndReason, MaxDelay, Overlap, Pause, PauseKind, Schedule, ScheduleState, Trigger};
use punctual_core::time::Zone;
use punctual_store::{HistoryItem, HistoryWhat};

use crate::checks::NextRun;

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
    /// Who could take it.
    pub takers: Takers,
    /// How many runs of its agent are at work.
    pub agent_running: usize,
    /// Who had a hand in it, as far as the journal was looked through.
    pub touched: &'a Touched,
    /// The clock that times are told by.
    pub zone: &'a Zone,
}

/// Who could take a run that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takers {
    /// A node that lives has its agent.
    Some,
    /// The only node was told to claim nothing.
    Paused,
    /// Nodes live, and none has its agent.
    NoAgent,
    /// No node lives.
    NoServer,
}

/// Who had a hand in a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Touched {
    /// Whoever asked for it.
    pub asked: Option<By>,
    /// Whoever approved it.
    pub approved: Option<By>,
    /// Whoever had it stopped while it was at work.
    pub stopped: Option<By>,
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
    /// Whether a node lives.
    pub has_server: bool,
    /// The clock that times are told by.
    pub zone: &'a Zone,
}

/// What is known about a schedule, whatever its runs are.
#[derive(Debug)]
pub struct ScheduleFacts<'a> {
    /// The schedule.
    pub schedule: &'a Schedule,
    /// When it runs next.
    pub next: NextRun,
    /// The first of its slots that has come and that nobody has planned.
    pub missed_at: Option<Timestamp>,
    /// Whether anything has become of it so far.
    pub has_past: bool,
    /// Whether a node lives.
    pub has_server: bool,
    /// The clock that times are told by.
    pub zone: &'a Zone,
}

fn cause(code: &'static str, sentence: impl Into<String>) -> Cause {
    Cause { code, sentence: sentence.into() }
}

/// What a clock shows, and whose it is.
fn shown(zone: &Zone, at: Timestamp) -> String {
    let offset = Offset::from_seconds(zone.offset_at(at)).unwrap_or(Offset::UTC);
    format!("{} {}", offset.to_datetime(at).strftime("%Y-%m-%d %H:%M:%S"), zone.name())
}

/// Who did something, and what they said about it.
fn said_by(by: &By, did: &str) -> String {
    let reason = by.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    format!("{} {did}{reason}", by.actor)
}

/// Why a run is as it is.
pub fn why_run(facts: &RunFacts<'_>) -> Vec<Cause> {
    let mut causes = match facts.run.state {
        RunState::Planned { .. } => planned(facts),
        RunState::Claimed { .. } => vec![cause("claimed", "a node has just taken it and is about to start it")],
        RunState::Running { .. } => running(facts),
        RunState::Waiting { on, wait_until, .. } => vec![waiting(on, &shown(facts.zone, wait_until))],
        RunState::Finished { outcome, .. } => finished(facts, outcome),
    };
    if facts.run.is_cancelling && !facts.run.state.is_final() {
        let sentence = match &facts.touched.stopped {
            Some(by) => format!("{}; its node is stopping it", said_by(by, "called it off")),
            None => "it was called off, and its node is stopping it".to_owned(),
        };
        causes.insert(0, cause("cancelling", sentence));
    }
    causes.extend(warnings(facts));
    causes.extend(tried_before(facts));
    causes.extend(facts.touched.approved.as_ref().map(|by| cause("approved", said_by(by, "approved it"))));
    causes.push(asked(facts));
    causes
}

/// What its last try reported that could not be understood, or was not complete.
fn warnings(facts: &RunFacts<'_>) -> Vec<Cause> {
    let last = attempts(facts.history).next();
    last.map(|last| last.report.warnings.iter().map(|it| cause("warning", it.clone())).collect()).unwrap_or_default()
}

/// The most tries that are told one by one.
const TRIES_TOLD: usize = 5;

/// What became of the tries before the one that is told already.
fn tried_before(facts: &RunFacts<'_>) -> Vec<Cause> {
    let last = facts.history.iter().max_by_key(|item| item.seq);
    let is_told = match facts.run.state {
        RunState::Finished { .. } => last.is_some_and(|last| matches!(last.what, HistoryWhat::Attempt(_))),
        RunState::Planned { due_at, .. } => facts.now < due_at || was_stopped(facts.history),
        _ => false,
    };
    let before: Vec<&Attempt> = attempts(facts.history).skip(usize::from(is_told)).collect();
    let told = before.iter().take(TRIES_TOLD).rev().map(|attempt| cause("tried_before", ended_so(attempt)));
    told.collect()
}

/// How a try ended that was not the last.
fn ended_so(attempt: &Attempt) -> String {
    let said = attempt.report.error.as_ref().map(|error| format!(": {}: {}", error.code, error.message));
    let (number, said) = (attempt.attempt, said.unwrap_or_default());
    match &attempt.event {
        RunEvent::OwnerLost { .. } => {
            format!("try {number} was lost: its node died or was cut off while it was at work")
        }
        RunEvent::Stopped { .. } => {
            format!("try {number} was stopped with its node while it was at work, which used up no attempt")
        }
        RunEvent::Failed { code: FailureCode::TimedOut, .. } => {
            format!("try {number} ran longer than it may{said}")
        }
        _ => format!("try {number} failed{said}"),
    }
}

/// The attempts of a history, latest first.
fn attempts(history: &[HistoryItem]) -> impl Iterator<Item = &Attempt> {
    history.iter().filter_map(|item| match &item.what {
        HistoryWhat::Attempt(attempt) => Some(&**attempt),
        _ => None,
    })
}

/// Whether the last attempt of a history ended with the stop of its node.
fn was_stopped(history: &[HistoryItem]) -> bool {
    attempts(history).next().is_some_and(|last| matches!(last.event, RunEvent::Stopped { .. }))
}

/// Where the run comes from.
fn asked(facts: &RunFacts<'_>) -> Cause {
    let (run, at) = (facts.run, shown(facts.zone, facts.run.scheduled_at));
    if run.key.is_manual() {
        let sentence = match &facts.touched.asked {
            Some(by) => said_by(by, &format!("asked for it at {at}")),
            None => format!("somebody asked for it at {at}"),
        };
        return cause("manual", sentence);
    }
    if let Some(before) = run.key.asked_by() {
        return cause("asked_by_run", format!("run {before} asked for it, for {at}"));
    }
    if run.key.is_event() {
        return cause("event", format!("an event asked for it at {at}"));
    }
    if facts.schedule.is_some_and(|schedule| matches!(*schedule.trigger, Trigger::Immediate(_))) {
        return cause("scheduled", format!("it was due as soon as its schedule was there or enabled again, at {at}"));
    }
    cause("scheduled", format!("it answers the slot of {at}"))
}

fn planned(facts: &RunFacts<'_>) -> Vec<Cause> {
    let (run, now) = (facts.run, facts.now);
    let due_at = run.planned_for().unwrap_or(run.due_at);
    let due = shown(facts.zone, due_at);
    let tally = run.state.tally();
    let mut causes = vec![];
    if was_stopped(facts.history) {
        let sentence = format!("its node was stopped while it was at work; the run goes on, due since {due}");
        causes.push(cause("stopped", sentence));
    }
    if now < due_at {
        if 0 < tally.attempt {
            let tries = run.terms.retry.max_attempts;
            let said = last_failure(facts.history).map(|said| format!(": {said}")).unwrap_or_default();
            causes.push(cause(
                "backing_off",
                format!("try {} of {tries} has failed{said}; the next is at {due}", tally.attempt),
            ));
        } else if due_at != run.scheduled_at {
            causes.push(cause("jittered", format!("its time comes at {due}, up to its jitter behind its slot")));
        } else {
            causes.push(cause("not_due", format!("its time comes at {due}")));
        }
        if facts.takers == Takers::NoServer {
            causes.push(cause("no_server", "no server is running now; unless one is by then, it waits for one"));
        }
        return causes;
    }
    match facts.takers {
        Takers::Some => {}
        Takers::NoServer => {
            let sentence = format!("no server is running; it has been due since {due}, and `punctual up` starts one");
            causes.push(cause("no_server", sentence));
            return causes;
        }
        Takers::Paused => causes.push(cause(
            "node_paused",
            format!("it has been due since {due}, and the server was told to claim nothing (SIGUSR1) until SIGUSR2"),
        )),
        Takers::NoAgent => {
            let agent = run.terms.work.agent();
            causes.push(cause(
                "no_agent",
                format!("no node that lives has the agent {agent}; after ten minutes it is skipped"),
            ));
        }
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
    if causes.iter().all(|cause| cause.code == "stopped") {
        causes.push(cause("ready", format!("it has been due since {due} and waits for a free place")));
    }
    causes
}

fn running(facts: &RunFacts<'_>) -> Vec<Cause> {
    let run = facts.run;
    let started_at = run.started_at.unwrap_or(facts.now);
    let (tries, since) = (run.state.tally().attempt, shown(facts.zone, started_at));
    let which = if 1 < tries { format!(", at try {tries}") } else { String::new() };
    let mut causes = vec![cause("running", format!("it has been at work since {since}{which}"))];
    causes.extend(late(facts, Some(started_at)));
    causes
}

/// Whether it began later than it was due.
fn late(facts: &RunFacts<'_>, started_at: Option<Timestamp>) -> Option<Cause> {
    let run = facts.run;
    // What counts is its first try, which is the last one here.
    let first = attempts(facts.history).last().filter(|attempt| attempt.attempt == 1);
    let started_at = match first {
        Some(first) => first.started_at?,
        None if 1 < run.state.tally().attempt => return None,
        None => started_at?,
    };
    if was_missed(facts) {
        let delay = SignedDuration::from_secs(started_at.duration_since(run.scheduled_at).as_secs());
        let sentence =
            format!("it began {delay:#} after it was due: no node planned at its time, and it was caught up");
        return Some(cause("caught_up", sentence));
    }
    let delay = started_at.duration_since(run.due_at);
    if delay <= LATE_AFTER {
        return None;
    }
    let late = format!("it began {:#} after it was due", SignedDuration::from_secs(delay.as_secs()));
    if facts.touched.approved.is_some() {
        return Some(cause("late_start", format!("{late}: it waited for its approval")));
    }
    Some(cause("late_start", format!("{late}: it waited for a place, for another run, or for a server")))
}

/// Whether an outage has missed the slot of a run: such a run is due when that is caught up, and not at its slot.
fn was_missed(facts: &RunFacts<'_>) -> bool {
    let run = facts.run;
    let Some(schedule) = facts.schedule.filter(|_| run.key.is_slot()) else { return false };
    let on_time = run.scheduled_at.checked_add(schedule.jitter.duration() + LATE_AFTER);
    on_time.is_ok_and(|on_time| on_time < run.due_at)
}

fn waiting(on: WaitFor, wait_until: &str) -> Cause {
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
    let attempt = attempts(facts.history).next();
    match outcome {
        Outcome::Succeeded => {
            let started_at = attempt.and_then(|attempt| attempt.started_at);
            let tries = run.state.tally().attempt;
            let which = if 1 < tries { format!(" at try {tries}") } else { String::new() };
            let mut causes = vec![cause("succeeded", format!("it ran, and its work was done{which}"))];
            causes.extend(late(facts, started_at));
            causes
        }
        Outcome::Failed(code) => vec![failed(run, code, attempt)],
        Outcome::Unknown => vec![cause(
            "unknown",
            format!(
                "its node was {} while it was at work; whether the work was done is not known, and it is not risked twice",
                if was_stopped(facts.history) { "stopped" } else { "lost" }
            ),
        )],
        Outcome::Cancelled => vec![cancelled(facts.history, &facts.touched.stopped, run.terms.overlap)],
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
        FailureCode::OwnerLost => "its node was lost while it ran",
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

fn cancelled(history: &[HistoryItem], stopped: &Option<By>, overlap: Overlap) -> Cause {
    let change = history.iter().find_map(|item| match &item.what {
        HistoryWhat::RunEnded(change) => Some(change),
        _ => None,
    });
    match change {
        Some(RunChange { event: RunEvent::WaitExpired { .. }, .. }) => {
            cause("not_approved", "nobody approved it in time, and silence is a no")
        }
        Some(RunChange { by: Some(by), .. }) => cause("cancelled", said_by(by, "called it off")),
        _ => {
            let sentence = match (stopped, attempts(history).next()) {
                (Some(by), Some(_)) => said_by(by, "called it off while it was at work"),
                (Some(by), None) => said_by(by, "called it off"),
                (None, _) if overlap == Overlap::Replace => "a later run of its schedule took its place".to_owned(),
                (None, Some(_)) => "it was called off while it was at work".to_owned(),
                (None, None) => "it was called off before it began".to_owned(),
            };
            cause("cancelled", sentence)
        }
    }
}

fn skipped(reason: SkipReason, facts: &RunFacts<'_>) -> Cause {
    let run = facts.run;
    // What was written with the skip holds after a resume, and after another pause, too.
    let sentence = match (reason, pause_of(facts.history)) {
        (SkipReason::Paused | SkipReason::Disabled, Some(pause)) => paused_by(pause, facts.zone),
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

/// The pause that the last entry of a history was skipped for.
fn pause_of(history: &[HistoryItem]) -> Option<&Pause> {
    match &history.first()?.what {
        HistoryWhat::RunEnded(change) => change.pause.as_ref(),
        HistoryWhat::Skipped(skip) => skip.pause.as_ref(),
        HistoryWhat::Attempt(_) => None,
    }
}

fn paused_by(pause: &Pause, zone: &Zone) -> String {
    let word = match pause.kind {
        PauseKind::Paused => "paused",
        PauseKind::Disabled => "disabled",
    };
    let until = pause.until.map(|at| format!(" until {}", shown(zone, at))).unwrap_or_default();
    format!("its schedule was {word} by {} at {}{until}{}", pause.source, shown(zone, pause.at), said(pause))
}

fn said(pause: &Pause) -> String {
    pause.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default()
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
    let SlotFacts { now, at, schedule, slot, skip, has_server, zone } = facts;
    if let Some(skip) = skip {
        let sentence = match &skip.pause {
            Some(pause) => paused_by(pause, zone),
            None => skip_sentence(skip.reason).to_owned(),
        };
        let range = if skip.count == 1 {
            String::new()
        } else {
            format!(" ({} slots from {} to {})", skip.count, shown(zone, skip.first_at), shown(zone, skip.last_at))
        };
        return vec![cause(skip.reason.as_str(), format!("{sentence}{range}"))];
    }
    let Some(skipped) = slot else {
        return vec![cause(
            "no_slot",
            format!("{} is none of its times: {}", shown(zone, *at), schedule.trigger.describe(&schedule.zone)),
        )];
    };
    if let Some(reason) = skipped {
        return vec![cause(reason.as_str(), skip_sentence(*reason))];
    }
    match &schedule.state {
        ScheduleState::Paused(pause) => {
            let code = pause.kind.skip_reason().as_str();
            return vec![cause(code, paused_by(pause, zone))];
        }
        ScheduleState::Ended(reason) => return vec![cause("ended", ended(*reason))],
        ScheduleState::Active => {}
    }
    if *at < schedule.created_at {
        return vec![cause(
            "before_creation",
            format!("the schedule was created at {}", shown(zone, schedule.created_at)),
        )];
    }
    if schedule.cursor.at < *at {
        return vec![match (now < at, has_server) {
            (true, _) => cause("not_due", format!("its time comes at {}", shown(zone, *at))),
            (false, true) => cause("not_planned_yet", "planning has not come to it yet"),
            (false, false) => cause("no_server", missed(schedule)),
        }];
    }
    if *at < schedule.updated_at {
        let sentence =
            format!("the schedule was changed at {}, and had other times before", shown(zone, schedule.updated_at));
        return vec![cause("superseded", sentence)];
    }
    vec![cause("forgotten", "its run ended long ago and was let go; the history has it as long as the journal is kept")]
}

/// What is to be said of a schedule besides its runs: that it is paused or over, that nobody serves it, that it has not run yet.
pub fn why_schedule(facts: &ScheduleFacts<'_>) -> Vec<Cause> {
    let ScheduleFacts { schedule, next, missed_at, has_past, has_server, zone } = facts;
    let mut causes = vec![];
    match &schedule.state {
        ScheduleState::Paused(pause) => {
            causes.push(cause(pause.kind.skip_reason().as_str(), paused_by(pause, zone)));
        }
        ScheduleState::Ended(reason) => causes.push(cause("ended", ended(*reason))),
        ScheduleState::Active => {
            if let Some(missed_at) = missed_at.filter(|_| !has_server) {
                let sentence = format!("its slot of {} has come: {}", shown(zone, missed_at), missed(schedule));
                causes.push(cause("no_server", sentence));
            }
        }
    }
    if !has_past {
        let sentence = match next {
            NextRun::At(at) => format!("it has not run yet: its first run is at {}", shown(zone, *at)),
            NextRun::NotBefore(until) => format!(
                "it has not run yet, and does not before {}: all its times up to then are skipped, and later ones were not looked at",
                shown(zone, *until)
            ),
            NextRun::Never => "it has not run yet".to_owned(),
        };
        causes.push(cause("not_run_yet", sentence));
    }
    causes
}

/// What becomes of slots that come while no server runs.
fn missed(schedule: &Schedule) -> String {
    let policy = serde_json::to_value(schedule.policy.catch_up.mode).unwrap_or_default();
    let policy = policy.as_str().map(|policy| format!(" ({policy})")).unwrap_or_default();
    format!("no server is running; when one starts, its catch_up{policy} decides what is made up for")
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
            RunEvent::Stopped { .. } => cause("stopped", "its node was stopped while it was at work"),
            _ => {
                let said = last_failure(history).map(|said| format!(": {said}")).unwrap_or_default();
                cause("failed_error", format!("try {} failed{said}", attempt.attempt))
            }
        },
        HistoryWhat::RunEnded(RunChange { event: RunEvent::Skipped(reason), pause, .. }) => {
            let by = pause.as_ref().map(|pause| format!(" by {}{}", pause.source, said(pause))).unwrap_or_default();
            cause(reason.as_str(), format!("{}{by}", skip_sentence(*reason)))
        }
        HistoryWhat::RunEnded(_) => cancelled(history, &None, Overlap::Queue),
        HistoryWhat::Skipped(skip) => cause(skip.reason.as_str(), skip_sentence(skip.reason)),
    }]
}

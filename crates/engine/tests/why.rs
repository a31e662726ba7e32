//! Why: every state and every reason has an answer of its own, from stored facts.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use jiff::Timestamp;
use punctual_core::journal::{Attempt, RunChange, SkipEntry};
use punctual_core::run::{
    FailureCode, Outcome, Report, ReportedError, Run, RunEvent, RunState, SkipReason, Tally, WaitFor,
};
use punctual_core::schedule::{EndReason, Schedule, ScheduleState};
use punctual_core::time::{SlotKey, Zone, Zones};
use punctual_core::{Actor, By, NodeId};
use punctual_engine::checks::NextRun;
use punctual_engine::why::{
    Cause, RunFacts, ScheduleFacts, SlotFacts, Takers, Touched, why_gone, why_not, why_run, why_schedule,
};
use punctual_store::{HistoryItem, HistoryWhat};
use serde_json::{Value, json};
use uuid::Uuid;

const NOBODY: Touched = Touched { asked: None, approved: None, stopped: None };

fn utc() -> &'static Zone {
    static UTC: LazyLock<Zone> = LazyLock::new(|| Zones::bundled().get("UTC").unwrap());
    &UTC
}

fn at(time: &str) -> Timestamp {
    format!("2026-03-09T{time}:00Z").parse().unwrap()
}

fn schedule() -> Schedule {
    let schedule = json!({
        "id": Uuid::from_u128(1), "version": 1, "zone": "UTC",
        "work": {"agent": {"agent": "reporter"}},
        "trigger": {"cron": [{"expression": "0 9 * * *"}]},
        "cursor": {"at": at("23:00")},
        "created_at": at("00:00"), "updated_at": at("00:00"),
    });
    serde_json::from_value(schedule).unwrap()
}

fn run(state: RunState) -> Run {
    let run = json!({
        "id": Uuid::from_u128(7), "schedule": Uuid::from_u128(1), "version": 1, "key": "i:1773046800",
        "scheduled_at": at("09:00"), "due_at": at("09:00"),
        "terms": punctual_core::run::Terms::of(&schedule()),
        "state": state,
    });
    serde_json::from_value(run).unwrap()
}

fn planned(due_at: &str, attempt: u32) -> RunState {
    let tally = Tally { attempt, epoch: u64::from(attempt), losses: 0 };
    RunState::Planned { due_at: at(due_at), resumes: false, tally }
}

fn running() -> RunState {
    RunState::Running { owner: NodeId(Uuid::from_u128(3)), tally: Tally { attempt: 1, epoch: 1, losses: 0 } }
}

fn over(outcome: Outcome) -> RunState {
    RunState::Finished { outcome, tally: Tally { attempt: 1, epoch: 1, losses: 0 } }
}

/// A world in which nothing stands in the way.
fn facts(run: &Run) -> RunFacts<'_> {
    RunFacts {
        now: at("09:10"),
        run,
        schedule: None,
        history: &[],
        siblings: &[],
        takers: Takers::Some,
        agent_running: 0,
        touched: &NOBODY,
        zone: utc(),
    }
}

fn codes(causes: &[Cause]) -> Vec<&'static str> {
    assert!(causes.iter().all(|cause| !cause.sentence.is_empty() && !cause.sentence.ends_with('.')), "{causes:?}");
    causes.iter().map(|cause| cause.code).collect()
}

fn item(what: HistoryWhat) -> HistoryItem {
    HistoryItem { seq: 1, at: at("09:05"), what }
}

fn attempt(event: RunEvent, message: Option<&str>) -> HistoryItem {
    let error = message.map(|message| ReportedError { code: "x".to_owned(), message: message.to_owned() });
    let mut running = run(running());
    running.started_at = Some(at("09:00"));
    let report = Report { error, ..Report::default() };
    item(HistoryWhat::Attempt(Box::new(Attempt::of(&running, event, report, at("09:05")))))
}

#[test]
fn every_skip_reason_is_told_under_its_own_word() {
    let mut sentences = BTreeSet::new();
    for reason in SkipReason::ALL {
        let run = run(over(Outcome::Skipped(reason)));
        let causes = why_run(&facts(&run));
        assert_eq!(codes(&causes), [reason.as_str(), "scheduled"]);
        sentences.insert(causes[0].sentence.clone());
    }
    assert_eq!(sentences.len(), SkipReason::ALL.len(), "each has a sentence of its own");
}

#[test]
fn a_planned_run_says_what_it_waits_for() {
    let other = run(running());
    let other = Run { id: punctual_core::RunId(Uuid::from_u128(8)), ..other };
    let failed = attempt(
        RunEvent::Failed { at: at("09:01"), code: FailureCode::Error, is_retryable: true, retry_after: None },
        Some("no luck"),
    );
    let waits = |state: RunState, change: &dyn Fn(&mut RunFacts<'_>)| {
        let run = run(state);
        let mut facts = facts(&run);
        change(&mut facts);
        why_run(&facts)
    };
    assert_eq!(codes(&waits(planned("09:20", 0), &|_| {})), ["jittered", "scheduled"]);
    assert_eq!(codes(&waits(planned("09:00", 0), &|facts| facts.now = at("08:00"))), ["not_due", "scheduled"]);
    assert_eq!(codes(&waits(planned("09:00", 0), &|_| {})), ["ready", "scheduled"]);
    assert_eq!(codes(&waits(planned("09:00", 0), &|facts| facts.takers = Takers::NoAgent)), ["no_agent", "scheduled"]);
    assert_eq!(codes(&waits(planned("09:00", 0), &|facts| facts.agent_running = 1)), ["agent_cap", "scheduled"]);
    let run_of_now = run(planned("09:00", 0));
    let siblings = [other];
    let queued = why_run(&RunFacts { siblings: &siblings, ..facts(&run_of_now) });
    assert_eq!(codes(&queued), ["queued", "scheduled"]);
    let rests = run(planned("09:20", 1));
    let history = [failed];
    let causes = why_run(&RunFacts { history: &history, ..facts(&rests) });
    assert_eq!(codes(&causes), ["backing_off", "scheduled"]);
    assert!(causes[0].sentence.contains("try 1 of 3 has failed: no luck"), "{causes:?}");
}

#[test]
fn every_other_state_has_an_answer() {
    let tally = Tally { attempt: 1, epoch: 1, losses: 0 };
    let owner = NodeId(Uuid::from_u128(3));
    let wait = |on| RunState::Waiting { on, wait_until: at("10:00"), tally };
    for (state, code) in [
        (RunState::Claimed { owner, resumes: false, tally }, "claimed"),
        (running(), "running"),
        (wait(WaitFor::Approval), "waiting_approval"),
        (wait(WaitFor::Callback), "waiting_callback"),
        (wait(WaitFor::Child), "waiting_child"),
        (over(Outcome::Succeeded), "succeeded"),
        (over(Outcome::Unknown), "unknown"),
        (over(Outcome::Cancelled), "cancelled"),
        (over(Outcome::Failed(FailureCode::Error)), "failed_error"),
        (over(Outcome::Failed(FailureCode::TimedOut)), "failed_timed_out"),
        (over(Outcome::Failed(FailureCode::ResourceLimit)), "failed_resource_limit"),
        (over(Outcome::Failed(FailureCode::NotStarted)), "failed_not_started"),
        (over(Outcome::Failed(FailureCode::WaitExpired)), "failed_wait_expired"),
        (over(Outcome::Failed(FailureCode::OwnerLost)), "failed_owner_lost"),
    ] {
        let run = run(state);
        assert_eq!(codes(&why_run(&facts(&run)))[0], code);
    }
}

#[test]
fn a_late_start_a_stop_and_whoever_asked_are_told() {
    let mut late = run(running());
    late.started_at = Some(at("09:07"));
    assert_eq!(codes(&why_run(&facts(&late))), ["running", "late_start", "scheduled"]);
    late.is_cancelling = true;
    assert_eq!(codes(&why_run(&facts(&late)))[0], "cancelling");
    let mut manual = run(planned("09:00", 0));
    manual.key = SlotKey::manual(manual.id);
    assert_eq!(codes(&why_run(&facts(&manual))), ["ready", "manual"]);
    let by = By { reason: Some("too loud".to_owned()), ..By::new(Actor::Operator) };
    let change = RunChange { by: Some(by), ..RunChange::of(&manual, RunEvent::Cancelled, at("09:05")) };
    let cancelled = run(over(Outcome::Cancelled));
    let history = [item(HistoryWhat::RunEnded(change))];
    let causes = why_run(&RunFacts { history: &history, ..facts(&cancelled) });
    assert_eq!(causes[0].sentence, "the operator called it off: too loud");
    let expired = RunChange::of(&manual, RunEvent::WaitExpired { at: at("09:00") }, at("09:00"));
    let history = [item(HistoryWhat::RunEnded(expired))];
    assert_eq!(codes(&why_run(&RunFacts { history: &history, ..facts(&cancelled) }))[0], "not_approved");
}

#[test]
fn tries_before_the_last_and_whoever_had_a_hand_in_it_are_told() {
    let failed = RunEvent::Failed { at: at("09:01"), code: FailureCode::Error, is_retryable: true, retry_after: None };
    let tried = |number: u32, event: RunEvent, message: Option<&str>| {
        let mut item = attempt(event, message);
        let HistoryWhat::Attempt(attempt) = &mut item.what else { panic!("{item:?}") };
        (attempt.attempt, item.seq) = (number, u64::from(number));
        item
    };
    let lost = RunEvent::OwnerLost { at: at("09:02") };
    let history = [tried(3, RunEvent::Succeeded, None), tried(2, lost, None), tried(1, failed, Some("no luck"))];
    let mut done = run(over(Outcome::Succeeded));
    done.state = RunState::Finished { outcome: Outcome::Succeeded, tally: Tally { attempt: 3, epoch: 3, losses: 1 } };
    let causes = why_run(&RunFacts { history: &history, ..facts(&done) });
    assert_eq!(codes(&causes), ["succeeded", "tried_before", "tried_before", "scheduled"]);
    let sentences: Vec<&str> = causes.iter().map(|it| it.sentence.as_str()).collect();
    assert_eq!(sentences[0], "it ran, and its work was done at try 3");
    assert_eq!(sentences[1], "try 1 failed: x: no luck");
    assert!(sentences[2].starts_with("try 2 was lost: its node died"), "{sentences:?}");
    assert_eq!(sentences[3], "it answers the slot of 2026-03-09 09:00:00 UTC");
    // A stop of its node is told as that, also while it waits for a node, and once.
    let stopped = RunEvent::Stopped { at: at("09:02") };
    let causes = why_run(&RunFacts { history: &[tried(1, stopped, None)], ..facts(&run(planned("09:02", 0))) });
    assert_eq!(codes(&causes), ["stopped", "ready", "scheduled"]);
    assert!(causes[0].sentence.starts_with("its node was stopped while it was at work; the run goes on"), "{causes:?}");
    let history = [tried(1, RunEvent::Succeeded, None), tried(1, stopped, None)];
    let causes = why_run(&RunFacts { history: &history, ..facts(&done) });
    assert!(causes[1].sentence.starts_with("try 1 was stopped with its node"), "{causes:?}");
    // What is told as the last failure is not told twice.
    let rests = run(planned("09:20", 1));
    let causes = why_run(&RunFacts { history: &[tried(1, failed, Some("no luck"))], ..facts(&rests) });
    assert_eq!(codes(&causes), ["backing_off", "scheduled"]);

    let by = |reason: &str| Some(By { reason: Some(reason.to_owned()), ..By::new(Actor::Operator) });
    let touched = Touched { asked: by("now"), approved: by("fine"), stopped: by("enough") };
    let mut manual = run(over(Outcome::Cancelled));
    manual.key = SlotKey::manual(manual.id);
    let history = [attempt(RunEvent::Cancelled, None)];
    let causes = why_run(&RunFacts { touched: &touched, history: &history, ..facts(&manual) });
    let sentences: Vec<&str> = causes.iter().map(|it| it.sentence.as_str()).collect();
    assert_eq!(
        sentences,
        [
            "the operator called it off while it was at work: enough",
            "the operator approved it: fine",
            "the operator asked for it at 2026-03-09 09:00:00 UTC: now"
        ]
    );
}

#[test]
fn without_a_server_nobody_else_is_blamed() {
    for (takers, due, code) in [
        (Takers::NoServer, "09:00", "no_server"),
        (Takers::Paused, "09:00", "node_paused"),
        (Takers::Some, "09:00", "ready"),
    ] {
        let run = run(planned(due, 0));
        assert_eq!(codes(&why_run(&RunFacts { takers, ..facts(&run) })), [code, "scheduled"]);
    }
    let behind = Schedule { cursor: punctual_core::schedule::Cursor::starting(at("08:00")), ..schedule() };
    let facts = SlotFacts {
        now: at("12:00"),
        at: at("09:00"),
        schedule: &behind,
        slot: Some(None),
        skip: None,
        has_server: false,
        zone: utc(),
    };
    assert_eq!(codes(&why_not(&facts)), ["no_server"]);
}

#[test]
fn a_schedule_that_has_not_run_says_why() {
    let paused = json!({"paused": {"kind": "paused", "at": at("08:00"), "source": "ada", "reason": "a rest"}});
    let check = |state: ScheduleState, change: &dyn Fn(&mut ScheduleFacts<'_>), expected: &[&str]| {
        let schedule = Schedule { state, ..schedule() };
        let mut facts = ScheduleFacts {
            schedule: &schedule,
            next: NextRun::At(at("09:00")),
            missed_at: None,
            has_past: true,
            has_server: true,
            zone: utc(),
        };
        change(&mut facts);
        let causes = why_schedule(&facts);
        let sentences: Vec<&str> = causes.iter().map(|it| it.sentence.as_str()).collect();
        assert_eq!(sentences, expected);
    };
    check(ScheduleState::Active, &|_| {}, &[]);
    let first = "it has not run yet: its first run is at 2026-03-09 09:00:00 UTC";
    check(ScheduleState::Active, &|it| it.has_past = false, &[first]);
    check(
        serde_json::from_value(paused).unwrap(),
        &|_| {},
        &["its schedule was paused by ada at 2026-03-09 08:00:00 UTC: a rest"],
    );
    check(
        ScheduleState::Active,
        &|it| (it.missed_at, it.has_server) = (Some(at("09:00")), false),
        &[
            "its slot of 2026-03-09 09:00:00 UTC has come: no server is running; when one starts, its catch_up (latest) \
           decides what is made up for",
        ],
    );
}

#[test]
fn a_time_without_a_run_is_explained() {
    let skip = |reason| SkipEntry {
        schedule: schedule().id,
        version: 1,
        agent: "reporter".to_owned(),
        project: None,
        first: SlotKey::manual(run(running()).id),
        first_at: at("08:00"),
        last: SlotKey::manual(run(running()).id),
        last_at: at("10:00"),
        count: 3,
        reason,
        pause: None,
        workflow: None,
    };
    for reason in SkipReason::ALL {
        let (schedule, skip) = (schedule(), skip(reason));
        let facts = SlotFacts {
            now: at("12:00"),
            at: at("09:00"),
            schedule: &schedule,
            slot: None,
            skip: Some(&skip),
            has_server: true,
            zone: utc(),
        };
        assert_eq!(codes(&why_not(&facts)), [reason.as_str()]);
    }
    let state = |state: Value| serde_json::from_value::<ScheduleState>(state).unwrap();
    let paused = |kind: &str| state(json!({"paused": {"kind": kind, "at": at("08:00"), "source": "ada"}}));
    let check = |change: &dyn Fn(&mut Schedule), time: &str, slot: Option<Option<SkipReason>>, code: &str| {
        let mut schedule = schedule();
        change(&mut schedule);
        let facts = SlotFacts {
            now: at("12:00"),
            at: at(time),
            schedule: &schedule,
            slot,
            skip: None,
            has_server: true,
            zone: utc(),
        };
        assert_eq!(codes(&why_not(&facts)), [code]);
    };
    let a_slot = Some(None);
    check(&|_| {}, "09:30", None, "no_slot");
    check(&|_| {}, "09:00", Some(Some(SkipReason::DstGap)), "dst_gap");
    check(&|it| it.state = paused("paused"), "09:00", a_slot, "paused");
    check(&|it| it.state = paused("disabled"), "09:00", a_slot, "disabled");
    check(&|it| it.state = ScheduleState::Ended(EndReason::MaxRuns), "09:00", a_slot, "ended");
    check(&|it| it.created_at = at("10:00"), "09:00", a_slot, "before_creation");
    check(&|it| it.cursor.at = at("08:00"), "09:00", a_slot, "not_planned_yet");
    check(&|it| it.updated_at = at("10:00"), "09:00", a_slot, "superseded");
    check(&|_| {}, "09:00", a_slot, "forgotten");
}

#[test]
fn a_run_that_is_gone_is_explained_from_the_history() {
    assert_eq!(why_gone(&[]), []);
    for (event, code) in [
        (RunEvent::Succeeded, "succeeded"),
        (RunEvent::Cancelled, "cancelled"),
        (RunEvent::OwnerLost { at: at("09:01") }, "failed_owner_lost"),
        (RunEvent::Stopped { at: at("09:01") }, "stopped"),
        (RunEvent::WaitExpired { at: at("09:01") }, "failed_error"),
    ] {
        assert_eq!(codes(&why_gone(&[attempt(event, None)])), [code]);
    }
    let skipped = RunChange::of(&run(planned("09:00", 0)), RunEvent::Skipped(SkipReason::Overlap), at("09:05"));
    assert_eq!(codes(&why_gone(&[item(HistoryWhat::RunEnded(skipped))])), ["overlap"]);
}

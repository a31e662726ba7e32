//! The life of a run: the drawing in `docs/lifecycle.md` and the code name the same states and arrows, and the counters
//! are right on the way.

use std::collections::BTreeSet;
use std::num::NonZeroU32;

use jiff::Timestamp;
use punctual_core::run::{
    AfterLoss, FailureCode, Outcome, RetryPolicy, Rules, RunEvent, RunState, STOPS_MAX, SkipReason, Tally, WaitFor,
};
use punctual_core::{NodeId, RunId};
use uuid::Uuid;

const DRAWING: &str = include_str!("../../../docs/lifecycle.md");
const NODE: NodeId = NodeId(Uuid::nil());

type Arrow = (String, String, String);

#[test]
fn the_drawing_and_the_code_have_the_same_arrows() {
    let drawn: BTreeSet<Arrow> = DRAWING.lines().filter_map(read_arrow).collect();
    let mut decided = BTreeSet::new();
    for state in states() {
        for event in events() {
            let mut all = vec![rules(1, AfterLoss::Retry), rules(9, AfterLoss::Retry), rules(9, AfterLoss::Hold)];
            // Only what is at work can have been asked to stop.
            if let RunState::Running { .. } = state {
                all.push(Rules { is_cancelling: true, ..rules(9, AfterLoss::Retry) });
            }
            for rules in all {
                if let Ok(next) = state.on(&event, &rules) {
                    decided.insert((state.name().to_owned(), next.name().to_owned(), event.name().to_owned()));
                }
            }
        }
    }
    let only_drawn: Vec<_> = drawn.difference(&decided).collect();
    let only_decided: Vec<_> = decided.difference(&drawn).collect();
    assert!(only_drawn.is_empty(), "in docs/lifecycle.md but not in RunState::on: {only_drawn:#?}");
    assert!(only_decided.is_empty(), "in RunState::on but not in docs/lifecycle.md: {only_decided:#?}");
}

#[test]
fn the_drawing_lists_every_reason_to_skip() {
    let listed = DRAWING.split("The list is closed:").nth(1).unwrap();
    let words: Vec<&str> = listed.split('`').skip(1).step_by(2).collect();
    assert_eq!(words, SkipReason::ALL.map(SkipReason::as_str));
}

#[test]
fn nothing_happens_to_a_run_that_is_over() {
    for state in states().iter().filter(|state| state.is_final()) {
        for event in events() {
            let error = state.on(&event, &rules(9, AfterLoss::Retry)).unwrap_err();
            assert_eq!(error.to_string(), format!("a run that is {} cannot be {}", state.name(), event.name()));
        }
    }
}

#[test]
fn a_run_is_not_claimed_before_it_is_due() {
    let planned = RunState::planned(at("2026-01-01T09:00:00Z"), 0);
    let claim = |text| planned.on(&RunEvent::Claimed { owner: NODE, at: at(text) }, &rules(3, AfterLoss::Retry));
    assert!(claim("2026-01-01T08:59:59.999Z").is_err());
    assert!(claim("2026-01-01T09:00:00Z").is_ok());
}

#[test]
fn what_was_asked_to_stop_is_not_tried_again() {
    let rules = Rules { is_cancelling: true, ..rules(9, AfterLoss::Retry) };
    let running = RunState::Running { owner: NODE, tally: Tally { attempt: 1, epoch: 1, losses: 0 } };
    for event in [failed(true), RunEvent::OwnerLost { at: at("2026-01-01T10:00:00Z") }, RunEvent::Cancelled] {
        assert_eq!(on(running, event, &rules).name(), "cancelled", "{event:?}");
    }
    // What was done before the stop came is done.
    assert_eq!(on(running, RunEvent::Succeeded, &rules).name(), "succeeded");
}

#[test]
fn attempts_are_counted_at_the_claim_and_end_at_the_last() {
    let rules = rules(3, AfterLoss::Retry);
    let mut state = RunState::planned(at("2026-01-01T09:00:00Z"), 0);
    for attempt in 1..=3 {
        state = claim(state, &rules);
        assert_eq!(state.tally(), Tally { attempt, epoch: attempt.into(), losses: 0 });
        state = on(state, RunEvent::Started, &rules);
        state = on(state, failed(true), &rules);
    }
    assert_eq!(state.name(), "failed");
}

#[test]
fn a_failed_run_rests_before_the_next_try() {
    let rules = rules(3, AfterLoss::Retry);
    let running = on(claim(RunState::planned(at("2026-01-01T09:00:00Z"), 0), &rules), RunEvent::Started, &rules);
    let RunState::Planned { due_at, resumes: false, .. } = on(running, failed(true), &rules) else { panic!() };
    assert_eq!(due_at, at("2026-01-01T10:01:00Z"));
    assert_eq!(on(running, failed(false), &rules).name(), "failed");
}

#[test]
fn a_hand_back_gives_the_attempt_back_but_not_the_epoch() {
    let rules = rules(3, AfterLoss::Retry);
    let claimed = claim(RunState::planned(at("2026-01-01T09:00:00Z"), 0), &rules);
    let back = on(claimed, RunEvent::HandedBack { due_at: at("2026-01-01T09:05:00Z"), parks: false }, &rules);
    assert_eq!(back.tally(), Tally { attempt: 0, epoch: 1, losses: 0 });
    assert_eq!(claim(back, &rules).tally(), Tally { attempt: 1, epoch: 2, losses: 0 });
}

#[test]
fn going_on_after_a_wait_is_the_same_attempt_under_a_new_epoch() {
    let rules = rules(3, AfterLoss::Retry);
    let claimed = claim(RunState::planned(at("2026-01-01T09:00:00Z"), 0), &rules);
    let wait_until = at("2026-01-02T00:00:00Z");
    let waiting = on(claimed, RunEvent::Waits { on: WaitFor::Approval, wait_until }, &rules);
    let resumed = on(waiting, RunEvent::Resumed { at: at("2026-01-01T09:30:00Z") }, &rules);
    let claimed = claim(resumed, &rules);
    assert_eq!(claimed.tally(), Tally { attempt: 1, epoch: 2, losses: 0 });
    // Handing it back keeps the mark: the next claim is the same attempt still.
    let back = on(claimed, RunEvent::HandedBack { due_at: at("2026-01-01T09:05:00Z"), parks: false }, &rules);
    assert_eq!(claim(back, &rules).tally(), Tally { attempt: 1, epoch: 3, losses: 0 });
}

#[test]
fn lost_work_is_tried_at_once_then_with_a_rest_then_no_more() {
    let rules = rules(3, AfterLoss::Retry);
    let lost = RunEvent::OwnerLost { at: at("2026-01-01T10:00:00Z") };
    let mut state = RunState::planned(at("2026-01-01T09:00:00Z"), 0);
    let mut dues = vec![];
    for _ in 0..2 {
        state = on(on(claim(state, &rules), RunEvent::Started, &rules), lost, &rules);
        let RunState::Planned { due_at, .. } = state else { panic!("{state:?}") };
        dues.push(due_at.to_string());
    }
    assert_eq!(dues, ["2026-01-01T10:00:00Z", "2026-01-01T10:01:00Z"]);
    state = on(on(claim(state, &rules), RunEvent::Started, &rules), lost, &rules);
    let RunState::Finished { outcome, tally } = state else { panic!("{state:?}") };
    assert_eq!(outcome, Outcome::Failed(FailureCode::OwnerLost));
    assert_eq!(tally, Tally { attempt: 3, epoch: 3, losses: 3 });
}

#[test]
fn a_stop_costs_no_attempt_and_the_next_begins_at_once() {
    let rules = rules(1, AfterLoss::Retry);
    let stopped = RunEvent::Stopped { at: at("2026-01-01T10:00:00Z") };
    let mut state = RunState::planned(at("2026-01-01T09:00:00Z"), 0);
    for losses in 1..=STOPS_MAX {
        state = on(on(claim(state, &rules), RunEvent::Started, &rules), stopped, &rules);
        let tally = Tally { attempt: 0, epoch: losses.into(), losses };
        assert_eq!(state, RunState::Planned { due_at: at("2026-01-01T10:00:00Z"), resumes: false, tally });
    }
    let running = on(claim(state, &rules), RunEvent::Started, &rules);
    assert_eq!(on(running, RunEvent::Succeeded, &rules).name(), "succeeded");
    // Work that stops its own node each time comes to an end.
    assert_eq!(on(running, stopped, &rules).name(), "failed");
}

#[test]
fn what_must_not_be_done_twice_is_held_after_a_stop() {
    let rules = rules(3, AfterLoss::Hold);
    let stopped = RunEvent::Stopped { at: at("2026-01-01T10:00:00Z") };
    let running = on(claim(RunState::planned(at("2026-01-01T09:00:00Z"), 0), &rules), RunEvent::Started, &rules);
    assert_eq!(on(running, stopped, &rules).name(), "unknown");
}

#[test]
fn a_claim_that_kills_its_node_each_time_comes_to_an_end() {
    let rules = rules(3, AfterLoss::Hold);
    let lost = RunEvent::OwnerLost { at: at("2026-01-01T10:00:00Z") };
    let mut state = RunState::planned(at("2026-01-01T09:00:00Z"), 0);
    for _ in 0..3 {
        state = on(claim(state, &rules), lost, &rules);
    }
    assert_eq!(state.name(), "failed");
}

#[test]
fn a_run_that_goes_on_after_a_wait_keeps_that_when_its_node_is_lost() {
    let rules = rules(2, AfterLoss::Retry);
    let tally = Tally { attempt: 1, epoch: 1, losses: 0 };
    let lost = RunEvent::OwnerLost { at: at("2026-01-01T10:00:00Z") };
    let resumed = RunState::Planned { due_at: at("2026-01-01T09:00:00Z"), resumes: true, tally };
    let again = on(claim(resumed, &rules), lost, &rules);
    let RunState::Planned { resumes: true, tally, .. } = again else { panic!("{again:?}") };
    assert_eq!(tally, Tally { attempt: 1, epoch: 2, losses: 1 });
    assert_eq!(on(claim(again, &rules), lost, &rules).name(), "failed");
}

#[test]
fn a_state_survives_json() {
    for state in states() {
        let json = serde_json::to_string(&state).unwrap();
        assert_eq!(serde_json::from_str::<RunState>(&json).unwrap(), state, "{json}");
    }
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn rules(max_attempts: u32, after_loss: AfterLoss) -> Rules {
    let retry = RetryPolicy { max_attempts: NonZeroU32::new(max_attempts).unwrap(), ..RetryPolicy::default() };
    Rules { run: RunId(Uuid::nil()), retry, after_loss, is_cancelling: false }
}

fn on(state: RunState, event: RunEvent, rules: &Rules) -> RunState {
    state.on(&event, rules).unwrap()
}

fn claim(state: RunState, rules: &Rules) -> RunState {
    on(state, RunEvent::Claimed { owner: NODE, at: at("2026-01-01T12:00:00Z") }, rules)
}

fn failed(is_retryable: bool) -> RunEvent {
    let at = at("2026-01-01T10:00:00Z");
    RunEvent::Failed { at, code: FailureCode::Error, is_retryable, retry_after: None }
}

/// One of each state, and of each kind of it that decides differently.
fn states() -> Vec<RunState> {
    let time = at("2026-01-01T09:00:00Z");
    let tally = Tally { attempt: 1, epoch: 1, losses: 0 };
    let wait = |on| RunState::Waiting { on, wait_until: time, tally };
    let mut states = vec![
        RunState::planned(time, 0),
        RunState::Planned { due_at: time, resumes: true, tally },
        RunState::Claimed { owner: NODE, resumes: false, tally },
        RunState::Claimed { owner: NODE, resumes: true, tally },
        RunState::Running { owner: NODE, tally },
        RunState::Running { owner: NODE, tally: Tally { losses: STOPS_MAX, ..tally } },
        wait(WaitFor::Approval),
        wait(WaitFor::Callback),
        wait(WaitFor::Child),
    ];
    let outcomes = [
        Outcome::Succeeded,
        Outcome::Failed(FailureCode::TimedOut),
        Outcome::Unknown,
        Outcome::Cancelled,
        Outcome::Skipped(SkipReason::Late),
    ];
    states.extend(outcomes.map(|outcome| RunState::Finished { outcome, tally }));
    states
}

fn events() -> Vec<RunEvent> {
    let at = at("2026-01-01T10:00:00Z");
    vec![
        RunEvent::Claimed { owner: NODE, at },
        RunEvent::Started,
        RunEvent::Skipped(SkipReason::Overlap),
        RunEvent::HandedBack { due_at: at, parks: false },
        RunEvent::Waits { on: WaitFor::Callback, wait_until: at },
        RunEvent::Resumed { at },
        RunEvent::WaitExpired { at },
        RunEvent::Succeeded,
        failed(true),
        failed(false),
        RunEvent::OwnerLost { at },
        RunEvent::Stopped { at },
        RunEvent::Cancelled,
        RunEvent::CancelAsked,
        RunEvent::Kept,
        RunEvent::Parked,
    ]
}

/// Reads `planned --> claimed : claimed`; the drawing's own start and end are not arrows of a run.
fn read_arrow(line: &str) -> Option<Arrow> {
    let (from, rest) = line.trim().split_once(" --> ")?;
    let (to, event) = rest.split_once(" : ")?;
    Some((from.to_owned(), to.to_owned(), event.to_owned()))
}

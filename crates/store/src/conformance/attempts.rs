//! Claims about [`crate::Claims::settle`] and [`crate::Claims::finish`]: writes under an epoch, and what attempts add up to.
#![expect(missing_docs, reason = "the names are the claims")]

use punctual_core::journal::Verdict;
use punctual_core::run::{FailureCode, Outcome, RunEvent, RunState, SkipReason, Tally, WaitFor};
use punctual_core::schedule::{Pause, PauseKind, ScheduleState};
use punctual_core::{Elapsed, RunId};
use serde_json::{Value, json};
use uuid::Uuid;

use super::bench::{ALL, Bench, at, failed, said};
use super::block_on;
use crate::{AttemptReport, Decision, HistoryFilter, HistoryWhat, RunWritten, Settlement};

pub fn admission_is_written_as_it_decided(bench: &mut Bench) {
    let node = bench.join("a");
    let later = at("10:00:00");
    let decisions = [
        (Decision::Start, "running"),
        (Decision::Skip(SkipReason::Budget), "skipped"),
        (Decision::HandBack { due_at: later, parks: false }, "planned"),
        (Decision::HandBack { due_at: later, parks: true }, "planned"),
        (Decision::Wait { on: WaitFor::Approval, wait_until: later }, "waiting"),
        (Decision::Start, "running"),
    ];
    for _ in &decisions {
        bench.due_run(json!({}));
    }
    let claimed = bench.claim(node, ALL);
    let seq = bench.seq();
    let settlements = claimed.iter().zip(decisions);
    let settlements = settlements.map(|(run, (decision, _))| Settlement { run: run.id, epoch: 1, decision }).collect();
    let written = block_on(bench.store.settle(bench.now, settlements)).unwrap();
    for ((run, (decision, state)), written) in claimed.iter().zip(decisions).zip(written) {
        let after = bench.run(run.id);
        assert_eq!((after.state.name(), written), (state, RunWritten::Done(after.state)), "{decision:?}");
    }
    assert_eq!(bench.run(claimed[0].id).started_at, Some(bench.now));
    assert_eq!(bench.run(claimed[2].id).planned_for(), Some(later));
    let starts = bench.kinds_since(seq).into_iter().filter(|kind| *kind == "runs_started").count();
    assert_eq!(starts, 1, "what starts together is one entry");
}

pub fn a_stale_epoch_changes_nothing_and_is_told(bench: &mut Bench) {
    let id = bench.due_run(json!({}));
    let node = bench.join("a");
    let first = bench.claim_one(node);
    bench.settle(&first, Decision::HandBack { due_at: bench.now, parks: false });
    let ahead = RunEvent::Waits { on: WaitFor::Callback, wait_until: at("11:00:00") };
    let decisions = [
        Decision::Start,
        Decision::Skip(SkipReason::Late),
        Decision::HandBack { due_at: bench.now, parks: true },
        Decision::Wait { on: WaitFor::Approval, wait_until: at("11:00:00") },
    ];
    let events = [RunEvent::Succeeded, failed(bench.now), RunEvent::Cancelled, ahead];
    let check = |bench: &mut Bench, what: &str, epoch| {
        for decision in decisions {
            let settlement = vec![Settlement { run: id, epoch, decision }];
            let settle = |bench: &mut Bench| block_on(bench.store.settle(bench.now, settlement)).unwrap();
            let written = bench.changes_nothing(what, settle);
            assert_eq!(written, [RunWritten::Stale], "{what}: {decision:?}");
        }
        for event in events {
            let report = AttemptReport { run: id, epoch, event, report: said("too late") };
            let written =
                bench.changes_nothing(what, |bench| block_on(bench.store.finish(bench.now, vec![report])).unwrap());
            assert_eq!(written, [RunWritten::Stale], "{what}: {event:?}");
        }
    };
    check(bench, "a run that was handed back", 1);
    let second = bench.claim_one(node);
    check(bench, "an older epoch than the claim's", 1);
    check(bench, "an epoch that is yet to come", 3);
    bench.settle(&second, Decision::Start);
    check(bench, "an older epoch than the one at work", 1);
    bench.finish(&second, RunEvent::Succeeded);
    check(bench, "an older epoch than the last", 1);
    let missing = AttemptReport { run: RunId(Uuid::nil()), epoch: 1, event: RunEvent::Succeeded, report: said("") };
    assert_eq!(block_on(bench.store.finish(bench.now, vec![missing])).unwrap(), [RunWritten::Stale]);
}

pub fn nothing_begins_after_a_pause_even_if_it_was_let_in_before(bench: &mut Bench) {
    let schedule = bench.add(json!({"policy": {"overlap": "allow"}}));
    let node = bench.join("a");
    bench.plan(schedule, &["08:00:00", "08:10:00"]);
    let by_hand = bench.manual_run(schedule);
    assert!(block_on(bench.store.ask(bench.now, by_hand, None)).unwrap());
    let claimed = bench.claim(node, ALL);
    assert_eq!(claimed.len(), 3);
    bench.settle(&claimed[0], Decision::Start);
    let pause = Pause { kind: PauseKind::Disabled, at: bench.now, source: "ada".to_owned(), reason: None, until: None };
    bench.edit(schedule, |schedule| schedule.state = ScheduleState::Paused(Box::new(pause.clone())));
    for run in &claimed[1..] {
        bench.settle(run, Decision::Start);
    }
    let skipped =
        RunState::Finished { outcome: Outcome::Skipped(SkipReason::Disabled), tally: claimed[1].state.tally() };
    let states: Vec<_> = claimed.iter().map(|run| bench.state(run.id)).collect();
    assert_eq!(states, ["running", "skipped", "running"], "a person may, at any time");
    assert_eq!(bench.run(claimed[1].id).state, skipped);
}

pub fn a_run_is_settled_once(bench: &mut Bench) {
    bench.due_run(json!({}));
    bench.due_run(json!({}));
    let node = bench.join("a");
    let claimed = bench.claim(node, ALL);
    let settle = |run: usize, decision| Settlement { run: claimed[run].id, epoch: 1, decision };
    let skip = Decision::Skip(SkipReason::Late);
    let batch = vec![settle(0, Decision::Start), settle(1, skip), settle(0, skip), settle(1, Decision::Start)];
    let written = block_on(bench.store.settle(bench.now, batch)).unwrap();
    let is_done = written.iter().map(|written| matches!(written, RunWritten::Done(_))).collect::<Vec<_>>();
    assert_eq!(is_done, [true, true, false, false]);
    assert_eq!([bench.state(claimed[0].id), bench.state(claimed[1].id)], ["running", "skipped"]);
    let again = bench.changes_nothing("starting again", |bench| bench.settle(&claimed[0], Decision::Start));
    assert_eq!(again, RunWritten::Stale);
}

pub fn the_same_report_twice_is_one_report(bench: &mut Bench) {
    let node = bench.join("a");
    for event in [RunEvent::Succeeded, failed(bench.now), RunEvent::Cancelled] {
        bench.due_run(json!({}));
        let run = bench.start_one(node);
        let written = bench.report(&run, event, said("done"));
        assert!(matches!(written, RunWritten::Done(_)), "{event:?}");
        bench.pass(1);
        let again = bench.changes_nothing("the same again", |bench| bench.report(&run, event, said("done")));
        assert_eq!(again, written, "{event:?}");
        let other = bench.changes_nothing("another report", |bench| bench.report(&run, event, said("else")));
        assert_eq!(other, RunWritten::Stale, "{event:?}");
        let other = bench.changes_nothing("another end", |bench| bench.finish(&run, RunEvent::Succeeded));
        assert_eq!(other, RunWritten::Stale, "{event:?}");
    }
}

pub fn the_same_report_gets_the_same_answer_when_the_run_has_gone_on(bench: &mut Bench) {
    let id = bench.due_run(json!({}));
    let node = bench.join("a");
    let first = bench.start_one(node);
    let event = failed(bench.now);
    let written = bench.finish(&first, event);
    bench.pass(60);
    let second = bench.start_one(node);
    assert_eq!(bench.changes_nothing("the first report", |bench| bench.finish(&first, event)), written);
    assert_eq!(bench.state(id), "running");
    bench.finish(&second, RunEvent::Succeeded);
    // Only the last end is remembered: the one before it is stale now.
    assert_eq!(bench.finish(&first, event), RunWritten::Stale);
}

pub fn a_batch_of_reports_is_answered_one_by_one(bench: &mut Bench) {
    bench.due_run(json!({}));
    bench.due_run(json!({}));
    let node = bench.join("a");
    let claimed = bench.claim(node, ALL);
    for run in &claimed {
        bench.settle(run, Decision::Start);
    }
    let report = |run: usize, epoch, event| AttemptReport { run: claimed[run].id, epoch, event, report: said("") };
    let reports = vec![
        report(0, 1, RunEvent::Succeeded),
        report(1, 2, RunEvent::Succeeded),
        report(1, 1, RunEvent::Cancelled),
        report(0, 1, RunEvent::Succeeded),
    ];
    let written = block_on(bench.store.finish(bench.now, reports)).unwrap();
    let succeeded = RunWritten::Done(bench.run(claimed[0].id).state);
    let cancelled = RunWritten::Done(bench.run(claimed[1].id).state);
    assert_eq!(written, [succeeded, RunWritten::Stale, cancelled, succeeded]);
    assert_eq!([bench.state(claimed[0].id), bench.state(claimed[1].id)], ["succeeded", "cancelled"]);
}

pub fn a_node_reports_ends_and_nothing_else(bench: &mut Bench) {
    let id = bench.due_run(json!({}));
    let node = bench.join("a");
    let now = bench.now;
    let not_ends = [
        RunEvent::Claimed { owner: node, at: now },
        RunEvent::Started,
        RunEvent::Resumed { at: now },
        RunEvent::WaitExpired { at: now },
        RunEvent::CancelAsked,
        RunEvent::Kept,
        RunEvent::Parked,
    ];
    let own = [RunEvent::OwnerLost { at: now }, RunEvent::Stopped { at: now }];
    let check = |bench: &mut Bench, epoch| {
        // What is at work may be lost or stopped; what is not, not.
        let is_at_work = bench.state(id) == "running";
        for event in not_ends.into_iter().chain(own.into_iter().filter(|_| !is_at_work)) {
            let report = AttemptReport { run: id, epoch, event, report: said("") };
            let finish = |bench: &mut Bench| block_on(bench.store.finish(bench.now, vec![report])).unwrap();
            let written = bench.changes_nothing("no end", finish);
            assert_eq!(written, [RunWritten::Stale], "{event:?} of a run that is {}", bench.state(id));
        }
    };
    check(bench, 0);
    let claimed = bench.claim_one(node);
    check(bench, 1);
    bench.settle(&claimed, Decision::Start);
    check(bench, 1);
    bench.finish(&claimed, RunEvent::Waits { on: WaitFor::Callback, wait_until: at("11:00:00") });
    check(bench, 1);
    assert!(matches!(bench.finish(&claimed, RunEvent::Succeeded), RunWritten::Done(_)));
}

pub fn a_node_may_lose_its_own_work(bench: &mut Bench) {
    // The answer that it should begin got lost, or it had to be stopped: without this the run would stay its own for good.
    let id = bench.due_run(json!({}));
    let node = bench.join("a");
    let running = bench.start_one(node);
    let lost = RunEvent::OwnerLost { at: bench.now };
    let written = bench.finish(&running, lost);
    assert!(matches!(written, RunWritten::Done(RunState::Planned { .. })), "{written:?}");
    assert_eq!(bench.run(id).state.tally(), Tally { attempt: 1, epoch: 1, losses: 1 });
    assert_eq!(bench.finish(&running, lost), written, "the same report again");
    assert_eq!(bench.finish(&running, RunEvent::Succeeded), RunWritten::Stale);
    assert_eq!(bench.claim_one(node).epoch(), 2);
}

pub fn a_stop_gives_the_attempt_back_and_is_told_as_one(bench: &mut Bench) {
    let id = bench.due_run(json!({"policy": {"retry": {"max_attempts": 1}}}));
    let node = bench.join("a");
    let running = bench.start_one(node);
    bench.pass(1);
    let stopped = RunEvent::Stopped { at: bench.now };
    let written = bench.finish(&running, stopped);
    assert_eq!(bench.run(id).state.tally(), Tally { attempt: 0, epoch: 1, losses: 1 });
    assert_eq!(bench.run(id).planned_for(), Some(bench.now), "it goes on at once");
    assert_eq!(bench.finish(&running, stopped), written, "the same report again");
    let again = bench.start_one(node);
    assert_eq!((again.id, again.epoch(), again.state.tally().attempt), (id, 2, 1));
    bench.finish(&again, RunEvent::Succeeded);
    let filter = HistoryFilter { run: Some(id), limit: ALL, ..HistoryFilter::default() };
    let items = block_on(bench.store.history(&filter)).unwrap();
    let ends: Vec<&str> = items
        .iter()
        .map(|item| match &item.what {
            HistoryWhat::Attempt(attempt) => attempt.event.name(),
            _ => "no attempt",
        })
        .collect();
    assert_eq!(ends, ["succeeded", "stopped"]);
    let only = HistoryFilter { verdict: Some(Verdict::Stopped), ..filter };
    assert_eq!(block_on(bench.store.count_history(&only)).unwrap(), 1);
}

pub fn what_a_node_has_not_begun_it_may_give_back_or_call_off(bench: &mut Bench) {
    let node = bench.join("a");
    let id = bench.due_run(json!({}));
    let claimed = bench.claim_one(node);
    let back = RunEvent::HandedBack { due_at: at("10:00:00"), parks: false };
    assert!(matches!(bench.finish(&claimed, back), RunWritten::Done(RunState::Planned { .. })));
    assert_eq!(bench.run(id).state.tally().attempt, 0);
    assert_eq!(bench.finish(&claimed, RunEvent::Cancelled), RunWritten::Stale, "it is nobody's now");
    bench.go("10:00:00");
    let claimed = bench.claim_one(node);
    assert!(matches!(bench.finish(&claimed, RunEvent::Cancelled), RunWritten::Done(_)));
    assert_eq!(bench.state(id), "cancelled");
    bench.due_run(json!({}));
    let running = bench.start_one(node);
    assert_eq!(bench.finish(&running, back), RunWritten::Stale, "what has begun is not given back");
}

/// Fails a run as often as it is tried. The rests in seconds, and whether it failed for good after that.
fn rests(bench: &mut Bench, retry: &Value, retry_after: Option<Elapsed>) -> Vec<i64> {
    let id = bench.due_run(json!({"policy": {"retry": retry}}));
    let node = bench.join("a");
    let mut rests = vec![];
    for attempt in 1..=100 {
        let run = bench.start_one(node);
        assert_eq!((run.id, run.state.tally().attempt), (id, attempt), "counted at the claim");
        bench.pass(7);
        let code = FailureCode::TimedOut;
        bench.finish(&run, RunEvent::Failed { at: bench.now, code, is_retryable: true, retry_after });
        match bench.run(id).state {
            RunState::Planned { due_at, tally, .. } => {
                assert_eq!(tally.attempt, attempt, "not counted at the failure");
                rests.push(due_at.duration_since(bench.now).as_secs());
                bench.now = due_at - crate::MOMENT;
                assert!(bench.claim(node, ALL).is_empty(), "it rests");
                bench.now = due_at;
            }
            state => {
                assert!(matches!(state, RunState::Finished { outcome: Outcome::Failed(FailureCode::TimedOut), .. }));
                assert_eq!(state.tally().attempt, attempt);
                return rests;
            }
        }
    }
    panic!("run {id} is tried without end")
}

pub fn every_face_counts_tries_the_same_way(bench: &mut Bench) {
    let cases = [
        ("executions: three tries, flat", json!({}), &[60, 60][..]),
        ("executions, as its own agents are seeded", json!({"max_attempts": 2, "delay": "2m"}), &[120]),
        ("apps: one try unless it says otherwise", json!({"max_attempts": 1}), &[]),
        ("apps: backoff × 2ⁿ", json!({"max_attempts": 4, "delay": "5s", "backoff": "exponential"}), &[5, 10, 20]),
        (
            "intents: 2ⁿ⁻¹ × the least interval, an hour at most",
            json!({"max_attempts": 8, "delay": "2m", "backoff": "exponential", "delay_max": "1h"}),
            &[120, 240, 480, 960, 1_920, 3_600, 3_600],
        ),
        ("Conductor: the workflow's own retry is enough", json!({"max_attempts": 1, "delay": "0s"}), &[]),
    ];
    for (face, retry, expected) in cases {
        assert_eq!(rests(bench, &retry, None), expected, "{face}");
    }
    let asked = rests(bench, &json!({"max_attempts": 3}), Some(Elapsed::from_seconds(90)));
    assert_eq!(asked, [90, 90], "what the target asks for is honoured");
}

pub fn a_final_error_ends_a_run_at_once(bench: &mut Bench) {
    let id = bench.due_run(json!({}));
    let node = bench.join("a");
    let run = bench.start_one(node);
    let code = FailureCode::NotStarted;
    bench.finish(&run, RunEvent::Failed { at: bench.now, code, is_retryable: false, retry_after: None });
    assert!(matches!(
        bench.run(id).state,
        RunState::Finished { outcome: Outcome::Failed(FailureCode::NotStarted), tally } if tally.attempt == 1
    ));
}

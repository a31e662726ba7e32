//! Claims about the role [`crate::Runs`]: runs as people see and touch them.
#![expect(missing_docs, reason = "the names are the claims")]

use std::sync::Arc;

use punctual_core::run::{FailureCode, Outcome, Run, RunEvent, RunState, SkipReason, Terms, WaitFor};
use punctual_core::schedule::Priority;
use punctual_core::time::SlotKey;
use punctual_core::{RunId, ScheduleId};
use serde_json::json;
use uuid::Uuid;

use super::bench::{ALL, Bench, asked_run, at};
use super::block_on;
use crate::{Cancellation, Decision, LiveCounts, RunFilter, RunWritten, StoreError};

pub fn the_same_key_asks_once(bench: &mut Bench) {
    let (one, two) = (bench.add(json!({})), bench.add(json!({})));
    let ids: Vec<RunId> = (0..4).map(|_| bench.run_id(bench.now)).collect();
    let ask = |bench: &Bench, id, key: &SlotKey, schedule| {
        block_on(bench.store.ask(bench.now, asked_run(id, key.clone(), &bench.schedule(schedule), bench.now), None))
    };
    let key = SlotKey::event("deploy-1");
    assert!(ask(bench, ids[0], &key, one).unwrap());
    for id in &ids[..2] {
        let is_new = bench.changes_nothing("the same key again", |bench| ask(bench, *id, &key, one));
        assert!(!is_new.unwrap());
    }
    assert!(ask(bench, ids[2], &key, two).unwrap(), "another schedule has keys of its own");
    assert!(ask(bench, ids[3], &SlotKey::event("deploy-2"), one).unwrap());
    let asked = bench.changes_nothing("an id for two keys", |bench| ask(bench, ids[0], &SlotKey::event("x"), one));
    assert!(matches!(asked, Err(StoreError::Journal(_))), "{asked:?}");
}

pub fn an_event_is_known_again_after_its_run_has_ended(bench: &mut Bench) {
    let schedule = bench.add(json!({}));
    let node = bench.join("a");
    let ask = |bench: &mut Bench, key: &str| {
        let id = bench.run_id(bench.now);
        let run = asked_run(id, SlotKey::event(key), &bench.schedule(schedule), bench.now);
        block_on(bench.store.ask(bench.now, run, None)).unwrap()
    };
    assert!(ask(bench, "deploy-1"));
    let running = bench.start_one(node);
    bench.finish(&running, RunEvent::Succeeded);
    bench.pass(60);
    assert!(!bench.changes_nothing("the event again", |bench| ask(bench, "deploy-1")));
    // Nor does it matter that what tells of it is gone.
    block_on(bench.store.prune(bench.now)).unwrap();
    assert!(!bench.changes_nothing("the event again", |bench| ask(bench, "deploy-1")));
    assert!(ask(bench, "deploy-2"));
    let cancelled = bench.claim_one(node).id;
    block_on(bench.store.cancel(bench.now, cancelled, None)).unwrap();
    assert!(!bench.changes_nothing("what was called off", |bench| ask(bench, "deploy-2")));
    // As long as answers are kept: the first was given earlier than that.
    assert_eq!(block_on(bench.store.forget_answers(bench.now)).unwrap(), 1);
    assert!(!bench.changes_nothing("the second again", |bench| ask(bench, "deploy-2")));
    assert!(ask(bench, "deploy-1"));
    // While its run lives, it is known whatever is forgotten.
    bench.pass(60);
    assert_eq!(block_on(bench.store.forget_answers(bench.now)).unwrap(), 2);
    assert!(!bench.changes_nothing("a run that lives", |bench| ask(bench, "deploy-1")));
    assert!(ask(bench, "deploy-2"));
}

pub fn an_id_belongs_to_its_run_also_when_that_is_over(bench: &mut Bench) {
    let schedule = bench.add(json!({}));
    let request = bench.manual_run(schedule);
    let ask = |bench: &Bench, run: Run| block_on(bench.store.ask(bench.now, run, None));
    assert!(ask(bench, request.clone()).unwrap());
    block_on(bench.store.cancel(bench.now, request.id, None)).unwrap();
    let again = bench.changes_nothing("the same request again", |bench| ask(bench, request.clone()));
    assert!(!again.unwrap());
    let other = Run { key: SlotKey::event("x"), ..request.clone() };
    let other = bench.changes_nothing("an id for two keys", |bench| ask(bench, other));
    assert!(matches!(other, Err(StoreError::Journal(_))), "{other:?}");
}

/// A run that is over, with nothing that only live runs have.
fn over(run: &Run) -> Run {
    Run { expires_at: None, follows: None, is_parked: false, ..run.clone() }
}

pub fn a_run_that_is_over_is_found_as_it_was_carried_out(bench: &mut Bench) {
    let node = bench.join("a");
    let schedule = bench.add(json!({"project": "p", "policy": {"priority": 3}}));
    let urgent = |bench: &Bench, priority: u8| {
        let priority = Priority::new(priority).expect("it is in range");
        bench.edit(schedule, |schedule| schedule.policy.priority = priority);
    };
    // Of the version before, of the current one, and one that was requested with terms of its own.
    let old = bench.plan(schedule, &["08:00:00"])[0];
    let running = bench.start_one(node);
    let ended_at = bench.now;
    bench.finish(&running, RunEvent::Succeeded);
    urgent(bench, 8);
    let current = bench.plan(schedule, &["08:30:00"])[0];
    let request = bench.manual_run(schedule);
    let mut requested = request.clone();
    requested.terms =
        Arc::new(Terms { priority: Priority::new(1).expect("it is in range"), ..(*request.terms).clone() });
    bench.pass(1);
    assert!(block_on(bench.store.ask(bench.now, requested.clone(), None)).unwrap());
    for _ in 0..2 {
        let running = bench.start_one(node);
        bench.finish(&running, super::bench::failed(bench.now));
        block_on(bench.store.cancel(bench.now, running.id, None)).unwrap();
    }
    let found = |bench: &Bench, id| bench.run(id).terms.priority.get();
    let priorities = |bench: &Bench| [old, current, requested.id].map(|id| found(bench, id));
    assert_eq!(priorities(bench), [3, 8, 1]);
    let first = bench.run(old);
    assert_eq!((first.state.name(), first.version, first.ended_at), ("succeeded", 1, Some(ended_at)));
    assert_eq!((first.scheduled_at, first.due_at, first.key.clone()), (at("08:00:00"), at("08:00:00"), running.key));
    let second = bench.run(current);
    assert_eq!((second.state.name(), second.version, second.has_started), ("cancelled", 2, true));
    assert!(second.last_end.is_some_and(|end| end.epoch == 1 && end.state.name() == "planned"));
    for run in bench.all_runs() {
        assert_eq!(bench.run(run.id), run, "one is found as all are");
        assert_eq!(over(&run), run);
    }
    urgent(bench, 9);
    assert_eq!(priorities(bench), [3, 8, 1], "an edit is for what comes");
    bench.delete(schedule, &[]);
    assert_eq!(priorities(bench), [3, 8, 1], "the schedule is gone, its runs are not");
    assert_eq!(bench.runs_of(schedule).iter().map(|run| run.id).collect::<Vec<_>>(), [old, current, requested.id]);
    // What said the terms is gone, and with it the first run: of the others, agent and project are left.
    block_on(bench.store.prune(ended_at + crate::MOMENT)).unwrap();
    assert_eq!(bench.find(old), None);
    for (id, was) in [(current, 8), (requested.id, 1)] {
        let run = bench.run(id);
        assert_eq!((run.terms.work.agent(), run.terms.project.as_deref()), ("reporter", Some("p")));
        let known = if id == requested.id { was } else { 5 };
        assert_eq!(run.terms.priority.get(), known, "the request is told later than the prune reaches");
    }
    bench.pass(1);
    block_on(bench.store.prune(bench.now)).unwrap();
    assert_eq!(bench.all_runs(), []);
}

pub fn what_is_over_is_answered_as_before(bench: &mut Bench) {
    let node = bench.join("a");
    let id = bench.due_run(json!({}));
    let first = bench.start_one(node);
    let event = super::bench::failed(bench.now);
    let written = bench.finish(&first, event);
    // It is called off while it rests: the report of the attempt before is still the last one.
    assert_eq!(block_on(bench.store.cancel(bench.now, id, None)).unwrap(), Cancellation::Done);
    for _ in 0..2 {
        let again = bench.changes_nothing("the same report", |bench| bench.finish(&first, event));
        assert_eq!(again, written);
        let other = bench.changes_nothing("another report", |bench| bench.finish(&first, RunEvent::Succeeded));
        assert_eq!(other, RunWritten::Stale);
        let again = bench.changes_nothing("cancelling", |bench| block_on(bench.store.cancel(bench.now, id, None)));
        assert_eq!(again.unwrap(), Cancellation::Over(Outcome::Cancelled));
        let resumed =
            bench.changes_nothing("resuming", |bench| block_on(bench.store.resume(bench.now, id, None, None)));
        assert_eq!(resumed.unwrap(), RunWritten::Stale);
        let settled = bench.changes_nothing("starting", |bench| bench.settle(&first, Decision::Start));
        assert_eq!(settled, RunWritten::Stale);
        bench.pass(60);
    }
    block_on(bench.store.prune(bench.now)).unwrap();
    assert_eq!(bench.finish(&first, event), RunWritten::Stale, "nobody knows of it any more");
    let missing = block_on(bench.store.cancel(bench.now, id, None));
    assert!(matches!(missing, Err(StoreError::NotFound { what: "run", .. })), "{missing:?}");
}

pub fn a_request_is_a_run_like_any_other(bench: &mut Bench) {
    let schedule = bench.add(json!({}));
    let node = bench.join("a");
    let mut asked = bench.manual_run(schedule);
    (asked.due_at, asked.state) = (at("09:05:00"), RunState::planned(at("09:05:00"), 0));
    let cursor = bench.schedule(schedule).cursor;
    let seq = bench.seq();
    assert!(block_on(bench.store.ask(bench.now, asked.clone(), None)).unwrap());
    assert_eq!(bench.kinds_since(seq), ["run_asked"]);
    assert_eq!(bench.run(asked.id), asked);
    assert_eq!(bench.schedule(schedule).cursor, cursor, "it does not move the cursor");
    assert!(bench.claim(node, ALL).is_empty());
    bench.go("09:05:00");
    assert_eq!(bench.start_one(node).id, asked.id);
}

pub fn a_request_needs_no_schedule(bench: &mut Bench) {
    let node = bench.join("a");
    for overlap in ["allow", "skip", "queue", "replace"] {
        let schedule = bench.add(json!({"policy": {"overlap": overlap}}));
        let requests = [bench.manual_run(schedule), bench.manual_run(schedule)];
        for request in &requests {
            let asked = punctual_core::run::Run { schedule: None, ..request.clone() };
            assert!(block_on(bench.store.ask(bench.now, asked, None)).unwrap());
        }
        let claimed = bench.claimed(node, ALL).runs;
        let ids: Vec<RunId> = claimed.iter().map(|claimed| claimed.run.id).collect();
        assert_eq!(ids, [requests[0].id, requests[1].id], "{overlap}: nobody is before it in a queue");
        assert!(claimed.iter().all(|claimed| claimed.schedule.is_none() && !claimed.is_busy));
        bench.settle(&claimed[1].run, Decision::Start);
        // There is no run of its schedule that it could wait for.
        bench.settle(&claimed[0].run, Decision::HandBack { due_at: bench.now, parks: true });
        let again = bench.start_one(node);
        assert_eq!(again.id, requests[0].id, "{overlap}");
        for run in [&again, &claimed[1].run] {
            assert!(matches!(bench.finish(run, RunEvent::Succeeded), RunWritten::Done(_)));
        }
        assert_eq!(bench.schedule(schedule).runs_started, 0);
    }
}

pub fn a_run_is_called_off_in_every_state(bench: &mut Bench) {
    let schedule = bench.add(json!({}));
    let node = bench.join("a");
    let runs = bench.plan(schedule, &["08:00:00", "08:01:00", "08:02:00", "08:03:00", "12:00:00"]);
    let [succeeded, running, waiting, claimed, planned] = runs[..] else { panic!("five runs") };
    let first = bench.start_one(node);
    bench.finish(&first, RunEvent::Succeeded);
    bench.start_one(node);
    let third = bench.claim_one(node);
    bench.settle(&third, Decision::Wait { on: WaitFor::Approval, wait_until: at("11:00:00") });
    let fourth = bench.claim_one(node);
    assert_eq!([first.id, third.id, fourth.id], [succeeded, waiting, claimed]);

    let cancel = |bench: &Bench, run| block_on(bench.store.cancel(bench.now, run, None)).unwrap();
    for (run, answer) in [
        (succeeded, Cancellation::Over(Outcome::Succeeded)),
        (running, Cancellation::Asked),
        (waiting, Cancellation::Done),
        (claimed, Cancellation::Done),
        (planned, Cancellation::Done),
    ] {
        assert_eq!(cancel(bench, run), answer);
    }
    for run in [waiting, claimed, planned] {
        assert_eq!(bench.state(run), "cancelled");
        assert_eq!(bench.run(run).ended_at, Some(bench.now));
        let again = bench.changes_nothing("cancelling again", |bench| cancel(bench, run));
        assert_eq!(again, Cancellation::Over(Outcome::Cancelled));
    }
    assert_eq!(bench.changes_nothing("asking again", |bench| cancel(bench, running)), Cancellation::Asked);
    assert_eq!(bench.renew(node).unwrap().cancelling, [running]);
    // The node that holds the claimed one learns it when it settles.
    assert_eq!(bench.settle(&fourth, Decision::Start), RunWritten::Stale);
    let missing = block_on(bench.store.cancel(bench.now, RunId(Uuid::nil()), None));
    assert!(matches!(missing, Err(StoreError::NotFound { what: "run", .. })), "{missing:?}");
}

pub fn whatever_a_called_off_run_reports_but_success_it_is_cancelled(bench: &mut Bench) {
    let node = bench.join("a");
    let failure = super::bench::failed(bench.now);
    let waits = RunEvent::Waits { on: WaitFor::Callback, wait_until: at("11:00:00") };
    for (event, state) in [
        (RunEvent::Succeeded, "succeeded"),
        (failure, "cancelled"),
        (RunEvent::Cancelled, "cancelled"),
        (waits, "cancelled"),
    ] {
        let id = bench.due_run(json!({}));
        let run = bench.start_one(node);
        assert_eq!(block_on(bench.store.cancel(bench.now, id, None)).unwrap(), Cancellation::Asked);
        assert!(matches!(bench.finish(&run, event), RunWritten::Done(_)));
        assert_eq!(bench.state(id), state, "{event:?}");
    }
    let lost = bench.due_run(json!({}));
    bench.start_one(node);
    block_on(bench.store.cancel(bench.now, lost, None)).unwrap();
    bench.pass(31);
    bench.bury();
    assert_eq!(bench.state(lost), "cancelled");
}

pub fn a_run_that_waits_goes_on_with_the_same_attempt(bench: &mut Bench) {
    let id = bench.due_run(json!({"policy": {"retry": {"max_attempts": 1}}}));
    let node = bench.join("a");
    let running = bench.start_one(node);
    bench.finish(&running, RunEvent::Waits { on: WaitFor::Child, wait_until: at("11:00:00") });
    let waiting = bench.run(id);
    assert_eq!((waiting.state.name(), waiting.epoch()), ("waiting", 1));
    assert!(bench.claim(node, ALL).is_empty());
    let listed = |waits_for, schedule| {
        let filter = RunFilter { waits_for: Some(waits_for), schedule, limit: ALL, ..RunFilter::default() };
        block_on(bench.store.runs(&filter)).unwrap()
    };
    for (waits_for, schedule, found) in [
        (WaitFor::Child, None, true),
        (WaitFor::Child, waiting.schedule, true),
        (WaitFor::Child, Some(ScheduleId(uuid::Uuid::nil())), false),
        (WaitFor::Approval, None, false),
    ] {
        assert_eq!(listed(waits_for, schedule) == [waiting.clone()], found, "{waits_for:?} {schedule:?}");
    }
    bench.pass(10);
    let other = bench.changes_nothing("resuming another attempt", |bench| {
        block_on(bench.store.resume(bench.now, id, Some(2), None))
    });
    assert_eq!(other.unwrap(), RunWritten::Stale);
    assert!(matches!(
        block_on(bench.store.resume(bench.now, id, Some(1), None)).unwrap(),
        RunWritten::Done(RunState::Planned { .. })
    ));
    assert_eq!(bench.run(id).planned_for(), Some(bench.now));
    let again =
        bench.changes_nothing("resuming again", |bench| block_on(bench.store.resume(bench.now, id, None, None)));
    assert_eq!(again.unwrap(), RunWritten::Stale);
    let claimed = bench.claim_one(node);
    let tally = claimed.state.tally();
    assert_eq!((tally.attempt, tally.epoch), (1, 2), "a new epoch, the same attempt");
    assert_eq!(bench.finish(&running, RunEvent::Succeeded), RunWritten::Stale);
    bench.settle(&claimed, Decision::HandBack { due_at: bench.now, parks: false });
    assert_eq!(bench.run(id).state.tally().attempt, 1, "what the claim had not counted is not given back");
    let claimed = bench.start_one(node);
    assert!(matches!(bench.finish(&claimed, RunEvent::Succeeded), RunWritten::Done(_)));
    let over =
        bench.changes_nothing("resuming what is over", |bench| block_on(bench.store.resume(bench.now, id, None, None)));
    assert_eq!(over.unwrap(), RunWritten::Stale);
}

pub fn a_call_back_ends_a_run_that_waits_for_it(bench: &mut Bench) {
    let node = bench.join("a");
    for (on, event, state) in [
        (WaitFor::Callback, RunEvent::Succeeded, Some("succeeded")),
        (WaitFor::Callback, super::bench::failed(bench.now), Some("planned")),
        (WaitFor::Approval, RunEvent::Succeeded, None),
        (WaitFor::Child, RunEvent::Succeeded, None),
    ] {
        let id = bench.due_run(json!({}));
        let running = bench.start_one(node);
        bench.finish(&running, RunEvent::Waits { on, wait_until: at("11:00:00") });
        let written = bench.finish(&running, event);
        match state {
            Some(state) => assert_eq!((matches!(written, RunWritten::Done(_)), bench.state(id)), (true, state)),
            None => assert_eq!((written, bench.state(id)), (RunWritten::Stale, "waiting")),
        }
    }
}

pub fn runs_are_listed_by_scheduled_time_and_id(bench: &mut Bench) {
    let (one, two) = (bench.add(json!({})), bench.add(json!({})));
    let first = bench.plan(one, &["12:00:00", "10:00:00", "11:00:00"]);
    let second = bench.plan(two, &["10:00:00", "11:00:00"]);
    block_on(bench.store.cancel(bench.now, first[2], None)).unwrap();
    let list = |filter: RunFilter| {
        let runs = block_on(bench.store.runs(&filter)).unwrap();
        runs.iter().map(|run| run.id).collect::<Vec<_>>()
    };
    let all = RunFilter { limit: ALL, ..RunFilter::default() };
    assert_eq!(list(all.clone()), [first[1], second[0], first[2], second[1], first[0]]);
    assert_eq!(list(RunFilter { limit: 2, ..all.clone() }), [first[1], second[0]]);
    assert_eq!(list(RunFilter { schedule: Some(two), ..all.clone() }), second);
    assert_eq!(list(RunFilter { only_live: true, schedule: Some(one), ..all.clone() }), [first[1], first[0]]);
    let between = RunFilter { from: Some(at("11:00:00")), until: Some(at("12:00:00")), ..all.clone() };
    assert_eq!(list(between.clone()), [first[2], second[1]], "from is included, until is not");
    for run in [first[0], first[1], second[0], second[1]] {
        block_on(bench.store.cancel(bench.now, run, None)).unwrap();
    }
    assert_eq!(list(all.clone()), [first[1], second[0], first[2], second[1], first[0]], "also when all are over");
    assert_eq!(list(between), [first[2], second[1]]);
    assert_eq!(list(RunFilter { limit: 3, ..all.clone() }), [first[1], second[0], first[2]]);
    assert_eq!(list(RunFilter { schedule: Some(two), limit: 1, ..all.clone() }), [second[0]]);
    assert_eq!(list(RunFilter { only_live: true, ..all.clone() }), []);
    // Ids have milliseconds, times have more.
    let from = RunFilter { from: Some(at("10:00:00") + crate::MOMENT), ..all.clone() };
    assert_eq!(list(from), [first[2], second[1], first[0]]);
    let until = RunFilter { until: Some(at("11:00:00") + crate::MOMENT), ..all };
    assert_eq!(list(until), [first[1], second[0], first[2], second[1]]);
}

pub fn runs_that_did_not_succeed_are_listed_alone(bench: &mut Bench) {
    let schedule = bench.add(json!({}));
    let node = bench.join("a");
    let runs = bench.plan(schedule, &["08:00:00", "08:01:00", "08:02:00", "08:03:00", "08:04:00", "08:05:00"]);
    let events = [
        RunEvent::Succeeded,
        RunEvent::Cancelled,
        RunEvent::Succeeded,
        RunEvent::Failed { at: bench.now, code: FailureCode::Error, is_retryable: false, retry_after: None },
    ];
    for event in events {
        let running = bench.start_one(node);
        bench.finish(&running, event);
    }
    let skipped = bench.claim_one(node);
    bench.settle(&skipped, Decision::Skip(SkipReason::Budget));
    let list = |filter: RunFilter| {
        let found = block_on(bench.store.runs(&RunFilter { except_succeeded: true, ..filter })).unwrap();
        found.iter().map(|run| run.id).collect::<Vec<_>>()
    };
    let all = RunFilter { limit: ALL, ..RunFilter::default() };
    assert_eq!(list(all.clone()), [runs[1], runs[3], runs[4], runs[5]], "what is not over has not succeeded either");
    assert_eq!(list(RunFilter { limit: 2, ..all.clone() }), [runs[1], runs[3]]);
    assert_eq!(list(RunFilter { from: Some(at("08:02:00")), schedule: Some(schedule), ..all }), runs[3..]);
}

pub fn runs_that_are_not_over_are_counted_by_where_they_are(bench: &mut Bench) {
    let node = bench.join("a");
    assert_eq!(block_on(bench.store.live_counts(bench.now)).unwrap(), LiveCounts::default());
    let schedule = bench.add(json!({}));
    bench.plan(schedule, &["08:00:00", "08:01:00", "08:02:00", "08:03:00", "08:04:00", "08:05:00", "12:00:00"]);
    let ended = bench.start_one(node);
    bench.finish(&ended, RunEvent::Succeeded);
    bench.start_one(node);
    bench.claim_one(node);
    let waits = bench.claim_one(node);
    bench.settle(&waits, Decision::Wait { on: WaitFor::Approval, wait_until: at("12:00:00") });
    let expected =
        LiveCounts { planned: 3, due: 2, claimed: 1, running: 1, waiting: 1, due_since: Some(at("08:04:00")) };
    assert_eq!(block_on(bench.store.live_counts(bench.now)).unwrap(), expected);
}

//! Claims about requests that come again: the same key is one request.
#![expect(missing_docs, reason = "the names are the claims")]

use jiff::SignedDuration;
use punctual_core::run::RunState;
use punctual_core::{Actor, By, Once, Role, Token, TokenId};
use serde_json::json;
use uuid::Uuid;

use super::bench::{Bench, asked_run, change, plan_entry, slot_key};
use super::block_on;
use crate::{Answered, Cancellation, Expected, PlanWrite, ScheduleChange, StoreError, Written};

fn once(key: &str, digest: u64) -> Option<By> {
    let once = Some(Once { key: key.to_owned(), digest });
    Some(By { once, ..By::new(Actor::Operator) })
}

fn answered<T: std::fmt::Debug>(result: crate::Result<T>) -> Answered {
    match result {
        Err(StoreError::Answered(answered)) => answered,
        other => panic!("it was answered before, and not {other:?}"),
    }
}

pub fn a_request_that_comes_again_changes_nothing_and_is_told_what_it_was_about(bench: &mut Bench) {
    let schedule = bench.draft(json!({"name": "one"}));
    let create = |by: Option<By>| {
        let plan = Some(plan_entry(&schedule));
        let write = change(ScheduleChange::Put(Box::new(schedule.clone())));
        PlanWrite { expected: Expected::New, plan, by, ..write }
    };
    let made_at = bench.now;
    assert_eq!(bench.write(create(once("create", 1))), Written::Done);
    let run = bench.due_run(json!({}));
    let asked = asked_run(bench.run_id(bench.now), slot_key(bench.now), &schedule, bench.now);
    assert!(block_on(bench.store.ask(bench.now, asked.clone(), once("ask", 2))).unwrap());
    assert_eq!(block_on(bench.store.cancel(bench.now, run, once("cancel", 3))).unwrap(), Cancellation::Done);
    let token = Token {
        id: TokenId(bench.id()),
        name: "ada".to_owned(),
        role: Role::Viewer,
        projects: None,
        agents: [].into(),
        hash: "5e".repeat(32),
        created_at: bench.now,
        expires_at: None,
    };
    block_on(bench.store.make_token(bench.now, token.clone(), once("token", 4))).unwrap();
    bench.pass(60);
    let seq = bench.seq();
    let told = |digest, subject: Uuid| Answered { digest, subject, at: made_at };
    // Whether it is the same request is for whoever asks to say: the digest of the first is told.
    let again = answered(block_on(bench.store.plan(bench.now, vec![create(once("create", 9))])));
    assert_eq!(again, told(1, schedule.id.0));
    assert_eq!(answered(block_on(bench.store.ask(bench.now, asked.clone(), once("ask", 2)))), told(2, asked.id.0));
    assert_eq!(answered(block_on(bench.store.cancel(bench.now, run, once("cancel", 3)))), told(3, run.0));
    assert_eq!(
        answered(block_on(bench.store.make_token(bench.now, token.clone(), once("token", 4)))),
        told(4, token.id.0)
    );
    assert_eq!(bench.seq(), seq, "nothing was written");
    assert_eq!(block_on(bench.store.verify()).unwrap(), [""; 0]);
}

pub fn a_request_that_was_not_carried_out_may_come_again(bench: &mut Bench) {
    let first = bench.add(json!({"name": "one"}));
    let schedule = bench.draft(json!({"name": "one"}));
    let write = || PlanWrite {
        expected: Expected::New,
        plan: Some(plan_entry(&schedule)),
        by: once("create", 1),
        ..change(ScheduleChange::Put(Box::new(schedule.clone())))
    };
    assert_eq!(bench.write(write()), Written::Conflict, "the name is taken");
    bench.edit(first, |schedule| schedule.name = Some("two".to_owned()));
    assert_eq!(bench.write(write()), Written::Done);
    assert!(block_on(bench.store.cancel(bench.now, punctual_core::RunId(Uuid::nil()), once("cancel", 1))).is_err());
    let run = bench.due_run(json!({}));
    assert_eq!(block_on(bench.store.cancel(bench.now, run, once("cancel", 1))).unwrap(), Cancellation::Done);
}

pub fn answers_are_forgotten_in_time(bench: &mut Bench) {
    let (first, second) = (bench.due_run(json!({})), bench.due_run(json!({})));
    block_on(bench.store.cancel(bench.now, first, once("first", 1))).unwrap();
    let before = bench.now + SignedDuration::from_secs(30);
    bench.pass(60);
    block_on(bench.store.cancel(bench.now, second, once("second", 1))).unwrap();
    assert_eq!(block_on(bench.store.forget_answers(before)).unwrap(), 1);
    let again = block_on(bench.store.cancel(bench.now, first, once("first", 1))).unwrap();
    assert!(matches!(again, Cancellation::Over(_)), "it is asked anew");
    answered(block_on(bench.store.cancel(bench.now, second, once("second", 1))));
    assert!(matches!(bench.run(first).state, RunState::Finished { .. }));
}

//! Calls that come together are one transaction, and yet as if one had come after the other.

use std::pin::Pin;
use std::task::{Context, Waker};

use punctual_core::run::RunEvent;
use punctual_store::conformance::{Bench, block_on};
use punctual_store::memory::MemoryStore;
use punctual_store::{PlanWrite, ScheduleChange, Written};
use serde_json::json;

use crate::postgres_support::proxy::passing::{Passing, Then};
use crate::postgres_support::{assert_clean, fresh_schema, fresh_store, open};

type Call<'a> = Pin<Box<dyn Future<Output = String> + 'a>>;

/// A call, and its answer in words.
fn call<'a, T: std::fmt::Debug>(future: impl Future<Output = T> + 'a) -> Call<'a> {
    Box::pin(async move { format!("{:?}", future.await) })
}

/// Runs that are asked for, called off and asked for again, beside other writes.
fn story<'a>(bench: &'a mut Bench, has_begun: &dyn Fn(&Bench)) -> Vec<Call<'a>> {
    let schedule = bench.add(json!({}));
    bench.plan(schedule, &["08:00:00", "08:01:00"]);
    let node = bench.join("a");
    let run = bench.start_one(node);
    bench.finish(&run, RunEvent::Succeeded);
    let runs: Vec<_> = (0..3).map(|_| bench.manual_run(schedule)).collect();
    has_begun(bench);
    let (store, now, [first, second, third]) = (&*bench.store, bench.now, <[_; 3]>::try_from(runs).expect("three"));
    let (first_id, second_id, again) = (first.id, second.id, first.clone());
    vec![
        call(store.ask(now, first, None)),
        call(store.begin_day(now, "UTC", jiff::civil::date(2026, 1, 5))),
        call(store.ask(now, second, None)),
        call(store.cancel(now, first_id, None)),
        call(store.cancel(now, first_id, None)),
        call(store.ask(now, again, None)),
        call(store.cancel(now, run.id, None)),
        call(store.ask(now, third, None)),
        call(store.begin_day(now, "UTC", jiff::civil::date(2026, 1, 5))),
        call(store.cancel(now, second_id, None)),
    ]
}

#[test]
fn every_call_of_a_transaction_sees_what_the_ones_before_it_did() {
    check(|_| {});
}

#[test]
fn every_call_of_a_transaction_is_told_what_it_did_when_its_answer_is_lost() {
    check(|proxy| (0..2).for_each(|_| proxy.at_commit(Then::LoseAnswer)));
}

/// Plays the story with calls that come together, while something else goes wrong.
fn check(fault: impl Fn(&Passing)) {
    let mut model = Bench::new(Box::new(MemoryStore::new()));
    let expected: Vec<String> = story(&mut model, &|_| {}).into_iter().map(block_on).collect();
    let direct = fresh_schema();
    let proxy = Passing::start(&direct);
    let mut bench = Bench::new(Box::new(open(&proxy.address(&direct))));
    // The first call stands still until all the others are in the queue behind it.
    let mut calls = story(&mut bench, &|_| proxy.at("take_pen(", Then::FreezeBefore));
    let mut context = Context::from_waker(Waker::noop());
    for (number, call) in calls.iter_mut().enumerate() {
        assert!(call.as_mut().poll(&mut context).is_pending());
        if number == 0 {
            proxy.wait_until_done();
        }
    }
    fault(&proxy);
    proxy.thaw();
    let answers: Vec<String> = calls.into_iter().map(block_on).collect();
    assert!(proxy.is_done(), "nothing went wrong");
    assert_eq!(answers, expected);
    assert_eq!(bench.entries(), model.entries());
    assert_eq!(bench.all_runs(), model.all_runs());
    assert_clean(&*bench.store);
    // And what is read from the base is all there is.
    bench.pass(60);
    block_on(bench.store.prune(bench.now)).expect("the store answers");
    block_on(model.store.prune(model.now + jiff::SignedDuration::from_secs(60))).expect("the model answers");
    assert_eq!(bench.all_runs(), model.all_runs());
    assert_clean(&*bench.store);
}

#[test]
fn a_name_goes_from_one_schedule_to_another_in_one_transaction() {
    let mut bench = Bench::new(Box::new(fresh_store()));
    // The one that takes the name is written first.
    let taker = bench.add(json!({"name": "weekly"}));
    let giver = bench.add(json!({"name": "daily"}));
    let renamed = |id, name: &str| {
        let mut schedule = bench.schedule(id);
        (schedule.name, schedule.version) = (Some(name.to_owned()), schedule.version + 1);
        PlanWrite { change: ScheduleChange::Put(Box::new(schedule)), plan: None, ..bench.write_for(id) }
    };
    let writes = vec![renamed(giver, "yearly"), renamed(taker, "daily")];
    assert_eq!(bench.writes(writes), [Written::Done, Written::Done]);
    let names = [taker, giver].map(|id| bench.schedule(id).name);
    assert_eq!(names, [Some("daily".to_owned()), Some("yearly".to_owned())]);
    assert_clean(&*bench.store);
}

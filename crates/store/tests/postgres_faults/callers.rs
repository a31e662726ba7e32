//! F20: callers that stop waiting, at any moment. What they asked for goes on without them, and leaves nothing behind.

use std::pin::Pin;
use std::task::{Context, Waker};
use std::time::Duration;

use jiff::civil::date;
use punctual_core::RunId;
use punctual_core::run::{Run, RunEvent};
use punctual_store::conformance::bench::{ALL, agents, at};
use punctual_store::conformance::{Bench, block_on};
use punctual_store::{AttemptReport, ClaimRequest, Decision, HistoryFilter, RunFilter, Settlement, Store};
use serde_json::json;

use crate::postgres_support::dice::Dice;
use crate::postgres_support::patience::{rest_for, wait_until};
use crate::postgres_support::session::Session;
use crate::postgres_support::{assert_clean, fresh_schema, open, rounds};

type Call<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// A call, whatever it answers.
fn call<'a, T>(future: impl Future<Output = T> + 'a) -> Call<'a> {
    Box::pin(async move { drop(future.await) })
}

/// One of everything that can be asked of a store, about one run.
fn calls<'a>(bench: &'a Bench, node: punctual_core::NodeId, run: &'a Run) -> Vec<Call<'a>> {
    let (store, now): (&'a dyn Store, _) = (&*bench.store, bench.now);
    let claim = ClaimRequest { node, now, limit: 1, agents: agents(), limits: Default::default() };
    let start = Settlement { run: run.id, epoch: 1, decision: Decision::Start };
    let end = AttemptReport { run: run.id, epoch: 1, event: RunEvent::Succeeded, report: Default::default() };
    let (sign, old) = (bench.sign(node, "a"), at("08:00:00"));
    let (signs, taken) = (sign.clone(), sign.clone());
    vec![
        call(async move { store.claim(&claim).await }),
        call(store.settle(now, vec![start])),
        call(store.finish(now, vec![end])),
        call(store.cancel(now, run.id, None)),
        call(store.begin_day(now, "UTC", date(2026, 1, 5))),
        call(async move { store.join(&sign).await }),
        call(async move { store.renew(&signs).await }),
        call(async move { store.take_planner(&taken).await }),
        call(store.prune(old)),
        call(store.run(run.id)),
        call(async move { store.runs(&RunFilter { limit: ALL, ..RunFilter::default() }).await }),
        call(async move { store.history(&HistoryFilter { limit: ALL, ..HistoryFilter::default() }).await }),
        call(store.subject(run.schedule.expect("it has one"), now)),
        call(store.to_plan(now, "2026a", ALL)),
        call(store.entries(0, ALL)),
        call(store.verify()),
    ]
}

/// Looks at a call so many times, and goes away.
fn abandon(mut call: Call<'_>, looks: u64, dice: &mut Dice) {
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..looks {
        if call.as_mut().poll(&mut context).is_ready() {
            return;
        }
        rest_for(Duration::from_micros(dice.below(800)));
    }
}

#[test]
fn callers_that_go_away_leave_no_connection_in_a_transaction() {
    let name = format!("callers_{}", std::process::id());
    let address = format!("{}&application_name={name}", fresh_schema());
    let mut bench = Bench::new(Box::new(open(&address)));
    let node = bench.join("a");
    let schedule = bench.add(json!({}));
    let mut dice = Dice::new(1);
    let mut asked: Vec<RunId> = vec![];
    for _ in 0..rounds(3) * 20 {
        let run = bench.manual_run(schedule);
        let looks = dice.below(4);
        abandon(call(bench.store.ask(bench.now, run.clone(), None)), looks, &mut dice);
        // Who has looked once has asked.
        asked.extend((0 < looks).then_some(run.id));
        for call in calls(&bench, node, &run) {
            let looks = dice.below(5);
            abandon(call, looks, &mut dice);
        }
    }
    // What is written last is behind everything that was asked for.
    block_on(bench.store.begin_day(bench.now, "Asia/Tokyo", date(2026, 1, 5))).expect("the store answers");
    let mut there: Vec<RunId> = bench.all_runs().iter().map(|run| run.id).collect();
    there.sort();
    assert_eq!(there, asked, "what was asked for is there, once");
    let session = Session::open(&crate::postgres_support::address());
    let sql =
        format!("SELECT count(*) FROM pg_stat_activity WHERE application_name = '{name}' AND xact_start IS NOT NULL");
    wait_until("no transaction is left open", || session.count(&sql) == 0);
    assert_clean(&*bench.store);
    let run = bench.due_run(json!({"agent": "b"}));
    assert!(bench.claim(node, ALL).iter().any(|claimed| claimed.id == run));
    assert_clean(&*bench.store);
}

//! F19: a commit is carried out and its answer is lost, or it never arrives. Either way its effect is there once.

use punctual_core::journal::Entry;
use punctual_core::run::{RunEvent, WaitFor};
use punctual_store::conformance::bench::{agents, at, said};
use punctual_store::conformance::{Bench, block_on};
use punctual_store::memory::MemoryStore;
use punctual_store::postgres::PostgresStore;
use punctual_store::{AttemptReport, Decision, Journal, Renewal, Result, Settlement};
use serde_json::json;

use crate::postgres_support::proxy::passing::{Passing, Then};
use crate::postgres_support::{assert_clean, fresh_schema, in_words, open};

/// Prepares something, says that it is about to write it, writes it, and tells the answer.
type Script = fn(&mut Bench, &dyn Fn()) -> String;

/// The one write that is not in the journal: a lease that is renewed.
const ONLY_A_ROW: &str = "take_planner again";

/// Every kind of write.
const SCRIPTS: &[(&str, Script)] = &[
    ("plan", |bench, now| {
        let schedule = bench.add(json!({}));
        let (write, _) = bench.plan_write(schedule, &["08:00:00", "09:00:00", "10:00:00"]);
        now();
        told(block_on(bench.store.plan(bench.now, vec![write])))
    }),
    ("ask", |bench, now| {
        let schedule = bench.add(json!({}));
        let run = bench.manual_run(schedule);
        now();
        told(block_on(bench.store.ask(bench.now, run, None)))
    }),
    ("claim", |bench, now| {
        let node = with_backlog(bench);
        now();
        told(bench.ask_for(node, 3, &agents()))
    }),
    ("settle", |bench, now| {
        let node = with_backlog(bench);
        let decisions = [
            Decision::Start,
            Decision::Skip(punctual_core::run::SkipReason::Budget),
            Decision::HandBack { due_at: at("09:30:00"), parks: false },
            Decision::Wait { on: WaitFor::Approval, wait_until: at("12:00:00") },
        ];
        let claimed = bench.claim(node, decisions.len());
        let settle =
            |(run, decision): (&punctual_core::run::Run, _)| Settlement { run: run.id, epoch: run.epoch(), decision };
        let settlements = claimed.iter().zip(decisions).map(settle).collect();
        now();
        told(block_on(bench.store.settle(bench.now, settlements)))
    }),
    ("finish", |bench, now| {
        let node = with_backlog(bench);
        let (done, failed) = (bench.start_one(node), bench.start_one(node));
        let ended = |run: &punctual_core::run::Run, event| AttemptReport {
            run: run.id,
            epoch: run.epoch(),
            event,
            report: said("done"),
        };
        let failure = punctual_store::conformance::bench::failed(bench.now);
        let reports = vec![ended(&done, RunEvent::Succeeded), ended(&failed, failure)];
        now();
        told(block_on(bench.store.finish(bench.now, reports)))
    }),
    ("cancel", |bench, now| {
        let run = bench.due_run(json!({}));
        now();
        told(block_on(bench.store.cancel(bench.now, run, None)))
    }),
    ("cancel what is at work", |bench, now| {
        let node = with_backlog(bench);
        let run = bench.start_one(node);
        now();
        told(block_on(bench.store.cancel(bench.now, run.id, None)))
    }),
    ("resume", |bench, now| {
        let node = with_backlog(bench);
        let run = bench.claim_one(node);
        bench.settle(&run, Decision::Wait { on: WaitFor::Approval, wait_until: at("12:00:00") });
        now();
        told(block_on(bench.store.resume(bench.now, run.id, None, None)))
    }),
    ("join", |bench, now| {
        let node = punctual_core::NodeId(bench.id());
        let sign = bench.sign(node, "a");
        now();
        // The clock of a real server shows another time than the model's.
        told(bench.joined(&sign).map(|renewal| Renewal { at: bench.now, ..renewal }))
    }),
    ("take_planner", |bench, now| {
        let node = with_backlog(bench);
        let sign = bench.sign(node, "a");
        now();
        told(block_on(bench.store.take_planner(&sign)))
    }),
    (ONLY_A_ROW, |bench, now| {
        let node = with_backlog(bench);
        block_on(bench.store.take_planner(&bench.sign(node, "a"))).expect("it is free");
        bench.pass(10);
        let sign = bench.sign(node, "a");
        now();
        told(block_on(bench.store.take_planner(&sign)))
    }),
    ("note_outage", |bench, now| {
        let node = with_backlog(bench);
        now();
        told(block_on(bench.store.note_outage(bench.now, node, at("08:30:00"))))
    }),
    ("leave", |bench, now| {
        let node = with_backlog(bench);
        bench.start_one(node);
        bench.claim_one(node);
        block_on(bench.store.take_planner(&bench.sign(node, "a"))).expect("it is free");
        now();
        told(block_on(bench.store.leave(bench.now, node)))
    }),
    ("bury", |bench, now| {
        let node = with_backlog(bench);
        bench.start_one(node);
        bench.claim_one(node);
        bench.pass(600);
        let dead = block_on(bench.store.nodes()).expect("the store answers").iter().map(|node| node.lease()).collect();
        now();
        told(block_on(bench.store.bury(bench.now, dead)))
    }),
    ("begin_day", |bench, now| {
        now();
        told(block_on(bench.store.begin_day(bench.now, "UTC", jiff::civil::date(2026, 1, 5))))
    }),
];

/// A node, and six runs that it could have.
fn with_backlog(bench: &mut Bench) -> punctual_core::NodeId {
    let schedule = bench.add(json!({}));
    bench.plan(schedule, &["08:00:00", "08:01:00", "08:02:00", "08:03:00", "08:04:00", "08:05:00"]);
    bench.join("a")
}

fn told<T: std::fmt::Debug>(answer: Result<T>) -> String {
    answer.map_or_else(|error| in_words(&error), |answer| format!("{answer:?}"))
}

/// What the model answers and writes, when nothing goes wrong.
fn model(script: Script) -> (String, Vec<Entry>) {
    let mut bench = Bench::new(Box::new(MemoryStore::new()));
    let answer = script(&mut bench, &|| {});
    (answer, bench.entries())
}

/// Plays every script while `fault` happens at its write. Answer and journal are the model's, and the store goes on.
fn check_all(fault: impl Fn(&Passing)) {
    check(|_| true, fault);
}

fn check(is_meant: impl Fn(&str) -> bool, fault: impl Fn(&Passing)) {
    for (name, script) in SCRIPTS.iter().filter(|(name, _)| is_meant(name)) {
        let direct = fresh_schema();
        let proxy = Passing::start(&direct);
        let mut bench = Bench::new(Box::new(open(&proxy.address(&direct))));
        let answer = script(&mut bench, &|| fault(&proxy));
        assert!(proxy.is_done(), "{name}: nothing went wrong");
        let (expected, entries) = model(*script);
        assert_eq!(answer, expected, "{name}");
        assert_eq!(bench.entries(), entries, "{name}");
        let found = block_on(bench.store.verify()).expect("it can be verified");
        assert!(found.is_empty(), "{name}: {found:#?}");
        goes_on(&mut bench, name);
    }
}

/// The store does what it did before.
fn goes_on(bench: &mut Bench, name: &str) {
    let node = bench.join("next");
    let run = bench.due_run(json!({"agent": "writer"}));
    let claimed: Vec<_> = bench.claim(node, 100).iter().map(|run| run.id).collect();
    let awaits_planning = bench.ask_for(node, 0, &agents()).expect("the store answers").awaits_planning;
    assert!(awaits_planning || claimed.contains(&run), "{name}: {claimed:?}");
    assert_eq!(block_on(bench.store.verify()).expect("it can be verified"), [""; 0], "{name}");
}

#[test]
fn a_commit_whose_answer_is_lost_has_its_effect_once() {
    check_all(|proxy| proxy.at_commit(Then::LoseAnswer));
}

#[test]
fn a_commit_that_never_arrives_has_its_effect_once() {
    check_all(|proxy| proxy.at_commit(Then::LoseRequest));
}

#[test]
fn a_commit_is_known_again_when_the_answer_to_that_question_is_lost_too() {
    let is_meant = |name: &str| name != ONLY_A_ROW;
    check(is_meant, |proxy| {
        proxy.at_commit(Then::LoseAnswer);
        proxy.at("FROM follow(", Then::LoseAnswer);
    });
}

#[test]
fn a_commit_is_known_again_behind_what_others_have_written_since() {
    let direct = fresh_schema();
    let proxy = Passing::start(&direct);
    let mut bench = Bench::new(Box::new(open(&proxy.address(&direct))));
    let node = with_backlog(&mut bench);
    let other = open(&direct);
    proxy.at_commit(Then::LoseAnswerAndRefuse);
    let claimed = std::thread::scope(|scope| {
        let claim = scope.spawn(|| bench.ask_for(node, 3, &agents()));
        proxy.wait_until_done();
        write_beside(&other);
        proxy.let_in();
        claim.join().expect("nobody fails")
    });
    let claimed = claimed.unwrap_or_else(|error| panic!("{}", in_words(&error)));
    assert_eq!(claimed.runs.len(), 3);
    let kinds: Vec<_> = bench.entries().iter().map(|entry| entry.body.kind()).collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == "runs_claimed").count(), 1, "{kinds:?}");
    assert_eq!(kinds.last(), Some(&"day_started"), "the other was later");
    assert_clean(&*bench.store);
    assert_eq!(bench.claim(node, 100).len(), 3, "the rest");
    assert_clean(&other);
}

fn write_beside(store: &PostgresStore) {
    use punctual_store::Plan;
    let date = jiff::civil::date(2026, 1, 5);
    assert!(block_on(store.begin_day(at("09:00:00"), "UTC", date)).expect("the other node has no trouble"));
    assert_clean(store as &dyn Journal);
}

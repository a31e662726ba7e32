//! Claims about runs whose time is over: a claim answers them before it takes any.
#![expect(missing_docs, reason = "the names are the claims")]

use jiff::SignedDuration;
use punctual_core::RunId;
use punctual_core::run::{FailureCode, Outcome, RunState, SkipReason, WaitFor};
use serde_json::{Value, json};

use super::bench::{ALL, Bench, at, failed};
use super::block_on;
use crate::{Decision, MOMENT, RunWritten, Sign};
use punctual_kernel::change::SWEEP_MAX;

fn skipped(bench: &Bench, run: RunId) -> Option<SkipReason> {
    match bench.outcome(run) {
        Some(Outcome::Skipped(reason)) => Some(reason),
        _ => None,
    }
}

fn late() -> Value {
    json!({"policy": {"max_delay": {"duration": "5m"}}})
}

fn day() -> Value {
    json!({"policy": {"max_delay": "day"}})
}

pub fn a_run_offered_too_late_is_skipped_and_not_claimed(bench: &mut Bench) {
    let node = bench.join("a");
    let on_time = bench.due_run(late());
    bench.pass(300);
    assert_eq!(bench.claim_one(node).id, on_time, "at the last instant it is still on time");
    let run = bench.due_run(late());
    bench.pass(300);
    bench.now += MOMENT;
    let seq = bench.seq();
    let claimed = bench.claimed(node, ALL);
    assert_eq!((claimed.runs.len(), claimed.swept), (0, 1));
    assert_eq!(bench.kinds_since(seq), ["run_changed"]);
    assert_eq!(skipped(bench, run), Some(SkipReason::Late));
    assert_eq!(bench.run(run).state.tally().attempt, 0);
}

pub fn a_delay_counts_while_a_run_waits_for_a_place(bench: &mut Bench) {
    let node = bench.join("a");
    let run = bench.due_run(late());
    bench.limits.global = Some(0);
    bench.pass(300);
    assert_eq!(bench.claimed(node, ALL).swept, 0);
    bench.pass(1);
    assert_eq!(bench.claimed(node, ALL).swept, 1);
    assert_eq!(skipped(bench, run), Some(SkipReason::Late));
}

pub fn the_day_of_a_run_ends_an_hour_after_midnight(bench: &mut Bench) {
    let node = bench.join("a");
    let run = bench.due_run(day());
    let early = bench.due_run(day());
    assert_eq!(bench.run(run).expires_at, Some(at("2026-01-06T01:00:00Z")));
    bench.go("2026-01-06T01:00:00Z");
    assert_eq!(bench.claim_one(node).id, run);
    bench.now += MOMENT;
    assert_eq!(bench.claimed(node, ALL).swept, 1);
    assert_eq!(skipped(bench, early), Some(SkipReason::DayEnded));
}

/// Two runs of one day, one at work; the other has to wait, for whatever reason. It outlives the day.
fn check_kept(bench: &mut Bench, fields: Value) {
    let node = bench.join("a");
    let schedule = bench.add(fields);
    let runs = bench.plan(schedule, &["08:00:00", "08:10:00"]);
    let first = bench.start_one(node);
    bench.go("2026-01-06T01:00:01Z");
    let claimed = bench.claimed(node, ALL);
    assert_eq!((claimed.runs.len(), claimed.swept), (0, 1), "it is answered, and stays");
    let kept = bench.run(runs[1]);
    assert_eq!((kept.state.name(), kept.expires_at), ("planned", None));
    assert_eq!(bench.claimed(node, ALL).swept, 0, "once is enough");
    bench.finish(&first, punctual_core::run::RunEvent::Succeeded);
    bench.go("2026-01-08T09:00:00Z");
    assert_eq!(bench.claim_one(node).id, runs[1], "however late");
}

pub fn a_run_that_waits_in_its_queue_outlives_its_day(bench: &mut Bench) {
    check_kept(bench, json!({"policy": {"max_delay": "day", "overlap": "queue"}}));
}

pub fn a_run_that_waits_for_its_agent_outlives_its_day(bench: &mut Bench) {
    check_kept(bench, json!({"policy": {"max_delay": "day", "max_concurrent": 1}}));
}

pub fn a_run_that_waits_for_its_project_outlives_its_day(bench: &mut Bench) {
    bench.limits.projects.insert("p".to_owned(), 1);
    check_kept(bench, json!({"project": "p", "policy": {"max_delay": "day"}}));
}

pub fn a_run_that_waits_for_its_key_outlives_its_day(bench: &mut Bench) {
    check_kept(bench, json!({"policy": {"max_delay": "day", "concurrency": {"key": "k", "max": 1}}}));
}

pub fn a_run_that_waits_for_the_limit_over_all_outlives_its_day(bench: &mut Bench) {
    bench.limits.global = Some(1);
    check_kept(bench, json!({"policy": {"max_delay": "day"}}));
}

pub fn a_run_that_waits_for_its_node_outlives_its_day(bench: &mut Bench) {
    let node = bench.join("a");
    let run = bench.due_run(day());
    bench.go("2026-01-06T01:00:01Z");
    assert_eq!(bench.claimed(node, 0).swept, 1, "the node would take it, and has no place");
    assert_eq!((bench.state(run), bench.run(run).expires_at), ("planned", None));
    assert_eq!(bench.claim_one(node).id, run);
}

pub fn what_has_been_looked_at_is_never_too_late(bench: &mut Bench) {
    let node = bench.join("a");
    // In retry, back from a wait, lost, and parked on its day.
    let retry = bench.due_run(late());
    let run = bench.start_one(node);
    bench.finish(&run, failed(bench.now));
    let resumed = bench.due_run(late());
    let run = bench.claim_one(node);
    bench.settle(&run, Decision::Wait { on: WaitFor::Approval, wait_until: at("2026-01-07T00:00:00Z") });
    block_on(bench.store.resume(bench.now, resumed, None, None)).unwrap();
    let parked = bench.due_run(day());
    let claimed = bench.claim(node, ALL);
    assert_eq!(claimed.iter().map(|run| run.id).collect::<Vec<_>>(), [resumed, parked]);
    bench.settle(&claimed[0], Decision::HandBack { due_at: bench.now, parks: false });
    bench.settle(&claimed[1], Decision::HandBack { due_at: bench.now, parks: true });
    let lost = bench.due_run(late());
    assert_eq!(bench.claim(node, ALL).len(), 3);
    bench.pass(31);
    assert_eq!(bench.bury(), 1);

    bench.go("2026-01-06T09:00:00Z");
    let node = bench.join("b");
    let claimed = bench.claimed(node, ALL);
    let mut ids: Vec<RunId> = claimed.runs.iter().map(|claimed| claimed.run.id).collect();
    ids.sort();
    assert_eq!((ids, claimed.swept), (vec![retry, resumed, parked, lost], 0));
}

pub fn a_hand_back_does_not_stop_the_clock_of_a_delay(bench: &mut Bench) {
    let node = bench.join("a");
    let run = bench.due_run(late());
    for parks in [false, true] {
        let claimed = bench.claim_one(node);
        bench.settle(&claimed, Decision::HandBack { due_at: bench.now, parks });
    }
    bench.pass(301);
    assert_eq!(bench.claimed(node, ALL).swept, 1);
    assert_eq!(skipped(bench, run), Some(SkipReason::Late));
}

pub fn a_wait_that_is_over_ends_as_its_kind_says(bench: &mut Bench) {
    let node = bench.join("a");
    let once = json!({"policy": {"retry": {"max_attempts": 1}}});
    let cases = [
        (WaitFor::Approval, json!({}), "cancelled"),
        (WaitFor::Callback, json!({}), "planned"),
        (WaitFor::Child, json!({}), "planned"),
        (WaitFor::Callback, once, "failed"),
    ];
    let until = bench.now + SignedDuration::from_mins(10);
    let runs: Vec<RunId> = cases
        .iter()
        .map(|(on, fields, _)| {
            let id = bench.due_run(fields.clone());
            let run = bench.claim_one(node);
            assert!(matches!(bench.settle(&run, Decision::Wait { on: *on, wait_until: until }), RunWritten::Done(_)));
            id
        })
        .collect();
    bench.now = until - MOMENT;
    assert_eq!(bench.claimed(node, ALL).swept, 0);
    bench.now = until;
    assert_eq!(bench.claimed(node, ALL).swept, 4);
    for (run, (on, _, state)) in runs.iter().zip(cases) {
        assert_eq!(bench.state(*run), state, "{on:?}");
    }
    assert_eq!(bench.run(runs[1]).planned_for(), Some(until + SignedDuration::from_mins(1)), "a failed attempt rests");
    let expired = RunState::Finished {
        outcome: Outcome::Failed(FailureCode::WaitExpired),
        tally: bench.run(runs[3]).state.tally(),
    };
    assert_eq!(bench.run(runs[3]).state, expired);
}

/// A node that has only these agents.
fn node_with(bench: &mut Bench, agents: &[&str]) -> Sign {
    let node = punctual_core::NodeId(bench.id());
    let agents = agents.iter().map(|agent| (*agent).to_owned()).collect();
    Sign { agents: std::sync::Arc::new(agents), ..bench.sign(node, "few") }
}

pub fn a_run_is_given_up_when_nobody_has_had_its_agent_for_ten_minutes(bench: &mut Bench) {
    let mut sign = node_with(bench, &["reader", "reporter"]);
    bench.joined(&sign).unwrap();
    let due = bench.due_run(json!({"agent": "reader"}));
    let ahead = bench.add(json!({"agent": "reader"}));
    let ahead = bench.plan(ahead, &["12:00:00"])[0];
    // From now on it has another one alone.
    let last_seen = bench.now;
    sign.agents = std::sync::Arc::new(["reporter".to_owned()].into());
    let claim = |bench: &Bench, sign: &mut Sign| {
        sign.now = bench.now;
        block_on(bench.store.renew(sign)).unwrap();
        bench.ask_for(sign.node, ALL, &sign.agents).unwrap().swept
    };
    bench.now = last_seen + SignedDuration::from_mins(10);
    assert_eq!(claim(bench, &mut sign), 0);
    bench.now += MOMENT;
    assert_eq!(claim(bench, &mut sign), 1);
    assert_eq!(skipped(bench, due), Some(SkipReason::AgentRemoved));
    assert_eq!(bench.state(ahead), "planned", "what is not due may still find its agent");
}

pub fn who_is_too_late_in_two_ways_is_answered_once(bench: &mut Bench) {
    let mut sign = node_with(bench, &["reporter"]);
    bench.joined(&sign).unwrap();
    let run = bench.due_run(json!({"agent": "nobody's", "policy": {"max_delay": {"duration": "5m"}}}));
    bench.pass(601);
    sign.now = bench.now;
    block_on(bench.store.renew(&sign)).unwrap();
    assert_eq!(bench.ask_for(sign.node, ALL, &sign.agents).unwrap().swept, 1);
    assert_eq!(skipped(bench, run), Some(SkipReason::Late));
}

pub fn an_agent_that_a_living_node_has_is_not_removed(bench: &mut Bench) {
    let node = bench.join("a");
    let run = bench.due_run(json!({"agent": "reader"}));
    bench.limits.agents.insert("reader".to_owned(), 0);
    for _ in 0..30 {
        bench.pass(29);
        assert_eq!(bench.claimed(node, ALL).swept, 0);
    }
    assert_eq!(bench.state(run), "planned");
}

pub fn an_agent_counts_as_seen_when_its_first_run_is_planned(bench: &mut Bench) {
    let mut sign = node_with(bench, &["reporter"]);
    bench.joined(&sign).unwrap();
    let schedule = bench.add(json!({"agent": "nobody's"}));
    bench.pass(3_600);
    let planned_at = bench.now;
    let run = bench.plan(schedule, &["09:00:00"])[0];
    for (at, swept) in [
        (planned_at, 0),
        (planned_at + SignedDuration::from_mins(10), 0),
        (planned_at + SignedDuration::from_mins(10) + MOMENT, 1),
    ] {
        bench.now = at;
        sign.now = at;
        block_on(bench.store.renew(&sign)).unwrap();
        assert_eq!(bench.ask_for(sign.node, ALL, &sign.agents).unwrap().swept, swept, "{at}");
    }
    assert_eq!(skipped(bench, run), Some(SkipReason::AgentRemoved));
}

pub fn one_claim_answers_so_many_and_comes_again_at_once(bench: &mut Bench) {
    let node = bench.join("a");
    let schedule = bench.add(late());
    let times: Vec<String> =
        (0..SWEEP_MAX as i64 + 1).map(|n| (at("01:00:00") + SignedDuration::from_secs(n)).to_string()).collect();
    bench.plan(schedule, &times.iter().map(String::as_str).collect::<Vec<_>>());
    let on_time = bench.due_run(late());
    let claimed = bench.claimed(node, ALL);
    assert_eq!((claimed.swept, claimed.runs.len(), claimed.next_at), (SWEEP_MAX, 0, Some(bench.now)));
    let claimed = bench.claimed(node, ALL);
    assert_eq!((claimed.swept, claimed.runs.len()), (1, 1));
    assert_eq!(claimed.runs[0].run.id, on_time);
}

//! Claims about [`crate::Claims::claim`]: who gets which run, and when.
#![expect(missing_docs, reason = "the names are the claims")]

use std::collections::BTreeSet;
use std::sync::Arc;

use punctual_core::run::RunState;
use punctual_core::{NodeId, RunId};
use serde_json::json;
use uuid::Uuid;

use super::bench::{ALL, Bench, agents, at};
use crate::{Decision, StoreError};

fn ids(runs: &[punctual_core::run::Run]) -> Vec<RunId> {
    runs.iter().map(|run| run.id).collect()
}

pub fn a_run_is_claimed_once(bench: &mut Bench) {
    let run = bench.due_run(json!({}));
    let one = bench.join("a");
    let seq = bench.seq();
    let claimed = bench.claim_one(one);
    assert_eq!(bench.kinds_since(seq), ["runs_claimed"]);
    assert_eq!(claimed, bench.run(run), "what the node gets is what is written");
    assert!(matches!(claimed.state, RunState::Claimed { owner, .. } if owner == one));
    assert!(bench.changes_nothing("claiming again", |bench| bench.claim(one, ALL)).is_empty());
    if !bench.store.is_exclusive() {
        let two = bench.join("b");
        assert!(bench.changes_nothing("another's claim", |bench| bench.claim(two, ALL)).is_empty());
    }
}

pub fn every_claim_has_a_new_epoch_and_counts_an_attempt_that_a_hand_back_returns(bench: &mut Bench) {
    bench.due_run(json!({"policy": {"retry": {"max_attempts": 2}}}));
    let node = bench.join("a");
    for epoch in 1..=5 {
        let claimed = bench.claim_one(node);
        let tally = claimed.state.tally();
        assert_eq!((tally.epoch, tally.attempt), (epoch, 1));
        bench.settle(&claimed, Decision::HandBack { due_at: bench.now, parks: false });
        let tally = bench.run(claimed.id).state.tally();
        assert_eq!((tally.epoch, tally.attempt), (epoch, 0));
    }
}

pub fn nothing_is_claimed_before_it_is_due(bench: &mut Bench) {
    let schedule = bench.add(json!({}));
    let runs = bench.plan(schedule, &["09:00:00.000001", "10:00:00"]);
    let node = bench.join("a");
    let claimed = bench.changes_nothing("a claim too early", |bench| bench.claimed(node, ALL));
    assert_eq!((claimed.runs.len(), claimed.next_at), (0, Some(at("09:00:00.000001"))));
    bench.go("09:00:00.000001");
    let claimed = bench.claimed(node, ALL);
    assert_eq!((claimed.runs.len(), claimed.next_at), (1, Some(at("10:00:00"))));
    bench.go("10:00:00");
    let claimed = bench.claimed(node, ALL);
    assert_eq!((claimed.runs[0].run.id, claimed.next_at), (runs[1], None), "only a change can bring something");
}

pub fn runs_of_a_lane_come_by_due_time_and_id_up_to_the_limit(bench: &mut Bench) {
    let schedule = bench.add(json!({}));
    let runs = bench.plan(schedule, &["08:30:00", "08:10:00", "08:20:00"]);
    let other = bench.add(json!({}));
    let twin = bench.plan(other, &["08:20:00"])[0];
    let node = bench.join("a");
    assert_eq!(ids(&bench.claim(node, 0)), []);
    assert_eq!(ids(&bench.claim(node, 2)), [runs[1], runs[2]]);
    assert_eq!(ids(&bench.claim(node, 2)), [twin, runs[0]]);
}

pub fn a_node_gets_runs_of_its_own_agents_only(bench: &mut Bench) {
    let reader = bench.due_run(json!({"agent": "reader"}));
    let writer = bench.due_run(json!({"agent": "writer"}));
    let node = bench.join("a");
    let only = |agent: &str| Arc::new(BTreeSet::from([agent.to_owned()]));
    let claimed = bench.ask_for(node, ALL, &only("writer")).unwrap();
    assert_eq!(claimed.runs.iter().map(|it| it.run.id).collect::<Vec<_>>(), [writer]);
    assert_eq!(claimed.next_at, None, "what others can take is not worth a wake-up");
    assert!(bench.ask_for(node, ALL, &only("nobody")).unwrap().runs.is_empty());
    assert_eq!(bench.ask_for(node, ALL, &only("reader")).unwrap().runs[0].run.id, reader);
}

pub fn a_node_without_a_lease_gets_nothing(bench: &mut Bench) {
    bench.due_run(json!({}));
    let node = bench.join("a");
    let refused = |bench: &mut Bench, node| {
        let claim = |bench: &mut Bench| bench.ask_for(node, ALL, &agents());
        let answer = bench.changes_nothing("a claim without a lease", claim);
        matches!(answer, Err(StoreError::LeaseEnded))
    };
    assert!(refused(bench, NodeId(Uuid::nil())));
    bench.pass(30);
    assert_eq!(bench.ask_for(node, 0, &agents()).unwrap().runs.len(), 0, "a lease holds to its last instant");
    bench.now += crate::MOMENT;
    assert!(refused(bench, node));
    // Nobody has taken it for dead: it may go on.
    assert!(bench.renew(node).is_ok());
    assert_eq!(bench.ask_for(node, ALL, &agents()).unwrap().runs.len(), 1);
}

pub fn a_claim_brings_the_schedule_as_it_is(bench: &mut Bench) {
    let schedule = bench.add(json!({}));
    let node = bench.join("a");
    bench.plan(schedule, &["09:00:00"]);
    bench.edit(schedule, |schedule| schedule.name = Some("new".to_owned()));
    let claimed = bench.claimed(node, ALL).runs.pop().expect("it is due");
    assert_eq!(claimed.schedule.as_deref(), Some(&bench.schedule(schedule)));
    assert_eq!(claimed.run.version, 2);
}

pub fn a_claim_tells_when_to_come_again(bench: &mut Bench) {
    let node = bench.join("a");
    assert_eq!(bench.claimed(node, ALL).next_at, None);
    let schedule = bench.add(json!({"policy": {"max_delay": {"duration": "5m"}}}));
    bench.plan(schedule, &["10:00:00"]);
    assert_eq!(bench.claimed(node, ALL).next_at, Some(at("10:00:00")));
    // A run that nobody may take yet can still come to its end.
    bench.limits.agents.insert("reporter".to_owned(), 0);
    bench.go("10:00:00");
    let mut next_at = bench.claimed(node, ALL).next_at.expect("the run expires");
    assert!(at("10:05:00") < next_at && next_at < at("10:05:01"), "{next_at}");
    bench.now = next_at;
    let claimed = bench.claimed(node, ALL);
    assert_eq!((claimed.swept, claimed.next_at), (1, None), "coming then is enough");
    bench.limits.agents.clear();
    let schedule = bench.add(json!({}));
    bench.plan(schedule, &["10:00:00"]);
    let run = bench.claim_one(node);
    bench.settle(&run, Decision::Wait { on: punctual_core::run::WaitFor::Child, wait_until: at("11:00:00") });
    next_at = bench.claimed(node, ALL).next_at.expect("the wait ends");
    assert_eq!(next_at, at("11:00:00"));
}

//! Claims about [`crate::Claims::start`]: from due to started in one transaction.
#![expect(missing_docs, reason = "the names are the claims")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use punctual_core::plan::{AgentApproval, Limits};
use punctual_core::run::{Outcome, RunState, SkipReason};
use punctual_core::schedule::{Pause, PauseKind, ScheduleState};
use punctual_core::time::Zones;
use punctual_core::{Elapsed, NodeId, RunId};
use serde_json::json;

use super::bench::{ALL, Bench, agents};
use super::block_on;
use crate::{AgentFacts, ClaimRequest, StartRequest, Started, StoreError};

fn request(bench: &Bench, node: NodeId) -> StartRequest {
    let limits = Arc::new(Limits::default());
    StartRequest {
        claim: ClaimRequest { node, now: bench.now, limit: ALL, agents: agents(), limits },
        held: Arc::default(),
        begun: None,
        agents: Arc::default(),
        zones: Arc::new(Zones::bundled()),
        approval_wait: Elapsed::from_seconds(60),
    }
}

fn start(bench: &Bench, request: &StartRequest) -> Started {
    block_on(bench.store.start(request)).unwrap()
}

fn ids(started: &Started) -> Vec<RunId> {
    started.runs.iter().map(|it| it.run.id).collect()
}

pub fn a_start_claims_and_begins_in_one_transaction(bench: &mut Bench) {
    let run = bench.due_run(json!({}));
    let node = bench.join("a");
    let started = start(bench, &request(bench, node));
    assert_eq!((ids(&started), started.count), (vec![run], 1));
    assert_eq!(started.runs[0].run, bench.run(run), "what the node gets is what is written");
    assert!(matches!(started.runs[0].run.state, RunState::Running { owner, .. } if owner == node));
    assert_eq!(started.runs[0].run.state.tally().attempt, 1);
    let again = request(bench, node);
    assert_eq!(bench.changes_nothing("another start", |bench| start(bench, &again)).count, 0);
}

pub fn a_start_begins_nothing_that_admission_does_not_let_in(bench: &mut Bench) {
    let paused = bench.due_run(json!({"name": "paused"}));
    let schedule = bench.run(paused).schedule.unwrap();
    let (at, source) = (bench.now, "a test".to_owned());
    let pause = Pause { kind: PauseKind::Paused, at, source, reason: None, until: None };
    bench.edit(schedule, |schedule| schedule.state = ScheduleState::Paused(pause.clone()));
    let gated = bench.due_run(json!({"name": "gated", "policy": {"risk_gate": true}}));
    let node = bench.join("a");
    let facts = AgentFacts { may_change: true, approval: AgentApproval::Schedule };
    let agents: BTreeMap<_, _> = agents().iter().map(|agent| (agent.clone(), facts)).collect();
    let started = start(bench, &StartRequest { agents: Arc::new(agents), ..request(bench, node) });
    assert_eq!((ids(&started), started.count), (vec![], 2));
    assert_eq!(bench.outcome(paused), Some(Outcome::Skipped(SkipReason::Paused)));
    assert_eq!(bench.state(gated), "waiting");
}

pub fn a_start_that_the_node_never_heard_of_is_told_again(bench: &mut Bench) {
    let run = bench.due_run(json!({}));
    let node = bench.join("a");
    let lost = start(bench, &request(bench, node));
    let knows_nothing = StartRequest { begun: Some(Arc::default()), ..request(bench, node) };
    let told = bench.changes_nothing("telling it again", |bench| start(bench, &knows_nothing));
    assert_eq!(ids(&told), [run]);
    assert_eq!(told.runs[0].run, lost.runs[0].run, "under the same epoch");
    let attempt = (run, lost.runs[0].run.epoch());
    let knows = StartRequest { begun: Some(Arc::new(BTreeSet::from([attempt]))), ..request(bench, node) };
    assert_eq!(start(bench, &knows).count, 0, "what it has begun is not given out again");
    let held = Arc::new(BTreeSet::from([(run, 0)]));
    let dying = StartRequest { held, begun: Some(Arc::default()), ..request(bench, node) };
    assert_eq!(start(bench, &dying).count, 0, "nor what an older attempt still dies of");
}

pub fn a_run_whose_older_attempt_still_dies_rests(bench: &mut Bench) {
    let run = bench.due_run(json!({}));
    let node = bench.join("a");
    let held = Arc::new(BTreeSet::from([(run, 0)]));
    let started = start(bench, &StartRequest { held, ..request(bench, node) });
    assert_eq!((ids(&started), started.count), (vec![], 1));
    assert_eq!(bench.state(run), "planned");
    assert_eq!(bench.run(run).state.tally().attempt, 0);
    bench.pass(1);
    assert_eq!(ids(&start(bench, &request(bench, node))), [run]);
}

pub fn what_a_start_replaces_is_cancelled_with_it(bench: &mut Bench) {
    let schedule = bench.add(json!({"policy": {"overlap": "replace"}}));
    let runs = bench.plan(schedule, &["08:10:00", "08:20:00"]);
    let node = bench.join("a");
    let started = start(bench, &request(bench, node));
    assert_eq!((ids(&started), started.claimed.has_replaced), (vec![], true));
    assert_eq!((bench.state(runs[0]), bench.state(runs[1])), ("cancelled", "planned"));
    assert_eq!(ids(&start(bench, &request(bench, node))), [runs[1]]);
}

pub fn who_has_no_lease_starts_nothing(bench: &mut Bench) {
    bench.due_run(json!({}));
    let node = NodeId(bench.id());
    let refused = block_on(bench.store.start(&request(bench, node)));
    assert!(matches!(refused, Err(StoreError::LeaseEnded)), "{refused:?}");
}

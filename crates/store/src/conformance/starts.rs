//! Claims about [`crate::Claims::start`]: from due to started in one transaction.
#![expect(missing_docs, reason = "the names are the claims")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use punctual_core::plan::{AgentApproval, Limits};
use punctual_core::run::{Outcome, RunState, SkipReason};
use punctual_core::schedule::{Pause, PauseKind, ScheduleState, Timetables};
use punctual_core::time::Zones;
use punctual_core::{Elapsed, NodeId, RunId, ScheduleId};
use serde_json::json;

use super::bench::{ALL, Bench, agents, at};
use super::block_on;
use crate::{AgentFacts, ClaimRequest, StartRequest, Started, StoreError, Written};

fn request(bench: &Bench, node: NodeId) -> StartRequest {
    let limits = Arc::new(Limits::default());
    StartRequest {
        claim: ClaimRequest { node, now: bench.now, limit: ALL, agents: agents(), limits },
        held: Arc::default(),
        begun: None,
        agents: Arc::default(),
        due_max: ALL,
        timetables: Arc::new(Timetables::new(Arc::new(Zones::bundled()), BTreeMap::new())),
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
    assert_eq!(*started.runs[0].run, bench.run(run), "what the node gets is what is written");
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
    bench.edit(schedule, |schedule| schedule.state = ScheduleState::Paused(Box::new(pause.clone())));
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

/// A schedule that fires every ten minutes, of which nothing is decided after now, with the zone data that starts have.
fn ticking(bench: &mut Bench, fields: serde_json::Value) -> ScheduleId {
    let mut all = json!({"trigger": {"cron": [{"expression": "*/10 * * * *"}]}});
    all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    let id = bench.add(all);
    let mut write = bench.write_for(id);
    let plan = write.plan.as_mut().expect("it has a plan");
    (plan.zone_data, plan.plan_at) = (Zones::bundled().version().to_owned(), Some(at("09:10:00")));
    assert_eq!(bench.write(write), Written::Done);
    id
}

fn plan(bench: &Bench, node: NodeId) {
    bench.renew(node).unwrap();
    assert!(block_on(bench.store.take_planner(&bench.sign(node, "a"))).unwrap().is_held);
}

pub fn a_slot_has_no_record_before_it_is_due_and_starts_in_the_commit_that_records_it(bench: &mut Bench) {
    let schedule = ticking(bench, json!({}));
    let node = bench.join("a");
    plan(bench, node);
    let none = bench.changes_nothing("nothing is due", |bench| start(bench, &request(bench, node)));
    assert_eq!((none.count, none.claimed.next_at), (0, Some(at("09:10:00"))));
    bench.go("09:10:00");
    plan_without_outage(bench, node, schedule);
    let seq = bench.seq();
    let started = start(bench, &request(bench, node));
    let run = &started.runs[0].run;
    assert_eq!((run.scheduled_at, run.due_at, started.count), (at("09:10:00"), at("09:10:00"), 1));
    assert_eq!(run.id, RunId::of(schedule, run.scheduled_at, &run.key), "its id names its slot");
    assert_eq!(bench.kinds_since(seq), ["planned", "runs_claimed", "runs_started"]);
    assert_eq!(started.claimed.next_at, Some(at("09:20:00")));
    assert_eq!(bench.schedule(schedule).cursor.at, at("09:10:00"));
    let again = bench.changes_nothing("it is decided", |bench| start(bench, &request(bench, node)));
    assert_eq!(again.count, 0);
}

pub fn a_due_slot_that_finds_no_place_is_recorded_and_waits(bench: &mut Bench) {
    let schedule = ticking(bench, json!({}));
    let node = bench.join("a");
    bench.go("09:30:00");
    plan_without_outage(bench, node, schedule);
    let full = StartRequest { claim: ClaimRequest { limit: 0, ..request(bench, node).claim }, ..request(bench, node) };
    assert_eq!(start(bench, &full).count, 0);
    let runs = bench.runs_of(schedule);
    let times: Vec<_> = runs.iter().map(|run| run.scheduled_at).collect();
    assert_eq!(times, [at("09:10:00"), at("09:20:00"), at("09:30:00")]);
    assert!(runs.iter().all(|run| run.is_untouched()));
    assert_eq!(start(bench, &request(bench, node)).count, 3);
}

pub fn a_start_decides_no_slot_while_no_node_plans_nor_of_an_outage(bench: &mut Bench) {
    let schedule = ticking(bench, json!({}));
    let node = bench.join("a");
    plan(bench, node);
    bench.go("10:00:00");
    bench.renew(node).unwrap();
    let waits = |bench: &mut Bench| {
        bench.changes_nothing("the slots wait", |bench| start(bench, &request(bench, node))).claimed.awaits_planning
    };
    assert!(waits(bench), "the planner's lease has ended: some of them may have been missed");
    assert!(block_on(bench.store.take_planner(&bench.sign(node, "a"))).unwrap().outage.is_some());
    assert!(!waits(bench));
    // Catching up passes what was missed; the next slot is for starts again.
    let mut write = bench.write_for(schedule);
    let entry = write.plan.as_mut().expect("it has a plan");
    entry.zone_data = Zones::bundled().version().to_owned();
    (entry.cursor.at, entry.plan_at) = (at("10:00:00"), Some(at("10:10:00")));
    assert_eq!(bench.write(write), Written::Done);
    bench.go("10:10:00");
    plan_without_outage(bench, node, schedule);
    assert_eq!(ids(&start(bench, &request(bench, node))).len(), 1);
}

/// Keeps planning, whatever time has passed.
fn plan_without_outage(bench: &Bench, node: NodeId, schedule: ScheduleId) {
    plan(bench, node);
    let subject = block_on(bench.store.subject(schedule, bench.now)).unwrap().expect("it exists");
    let record = subject.task.record;
    if record.outage.is_some() {
        let mut write = bench.write_for(schedule);
        let entry = write.plan.as_mut().expect("it has a plan");
        (entry.plan_at, entry.zone_data) = (record.plan_at, String::clone(&record.zone_data));
        assert_eq!(bench.write(write), Written::Done);
    }
}

pub fn a_slot_that_was_cancelled_before_its_time_has_no_other_run(bench: &mut Bench) {
    let schedule = ticking(bench, json!({}));
    let node = bench.join("a");
    plan(bench, node);
    // As a person cancels it: recorded and cancelled in one write.
    let (mut write, runs) = bench.plan_write(schedule, &["09:20:00"]);
    let entry = write.plan.as_mut().expect("it has a plan");
    let key: punctual_core::time::SlotKey = serde_json::from_value(json!("2026-01-05T09:20:00/0@UTC")).unwrap();
    entry.runs[0].key = key.clone();
    entry.early.decide(key).unwrap();
    entry.cursor = bench.schedule(schedule).cursor;
    (entry.plan_at, entry.zone_data) = (Some(at("09:10:00")), Zones::bundled().version().to_owned());
    write.cancelled.clone_from(&runs);
    let stale = bench.write_for(schedule);
    assert_eq!(bench.write(write), Written::Done);
    assert_eq!(bench.outcome(runs[0]), Some(Outcome::Cancelled));
    assert_eq!(bench.write(stale), Written::Conflict, "who did not know of it does not undo it");
    bench.go("09:30:00");
    plan_without_outage(bench, node, schedule);
    let started = start(bench, &request(bench, node));
    let times: Vec<_> = started.runs.iter().map(|it| it.run.scheduled_at).collect();
    assert_eq!(times, [at("09:10:00"), at("09:30:00")]);
    assert!(bench.schedule(schedule).early.is_empty(), "the cursor has passed it");
}

pub fn the_schedule_of_a_slot_is_found_by_the_id_of_its_run(bench: &mut Bench) {
    let (one, other) = (ticking(bench, json!({})), bench.add(json!({})));
    let key: punctual_core::time::SlotKey = serde_json::from_value(json!("i:5")).unwrap();
    for schedule in [one, other] {
        let id = RunId::of(schedule, at("11:00:00"), &key);
        let found = block_on(bench.store.schedule_of_slot(id)).unwrap().map(|found| found.id);
        assert_eq!(found, Some(schedule));
    }
    let unknown = [RunId(bench.id()), RunId::of(ScheduleId(bench.id()), at("11:00:00"), &key)];
    for id in unknown {
        assert_eq!(block_on(bench.store.schedule_of_slot(id)).unwrap(), None);
    }
}

//! Claims about the planner's lease, and the outages that it shows.
#![expect(missing_docs, reason = "the names are the claims")]

use jiff::Timestamp;
use punctual_core::journal::Body;
use punctual_core::plan::{Kept, Outage};
use punctual_core::{NodeId, ScheduleId};
use serde_json::json;
use uuid::Uuid;

use super::bench::{ALL, Bench, at};
use super::block_on;
use crate::{PlannerLease, StoreError, Written};

/// Takes the planner's lease, as a node does that lives.
fn take(bench: &Bench, node: NodeId) -> PlannerLease {
    bench.renew(node).unwrap();
    block_on(bench.store.take_planner(&bench.sign(node, "planner"))).unwrap()
}

fn outage(from: &str, until: &str) -> Option<Outage> {
    Some(Outage { from: at(from), until: at(until), kept: None })
}

/// What a schedule has to catch up with.
fn missed(bench: &Bench, schedule: ScheduleId) -> Option<Outage> {
    block_on(bench.store.subject(schedule, bench.now)).unwrap().expect("it exists").task.record.outage
}

fn epochs(bench: &Bench) -> Vec<u64> {
    let epoch = |body| match body {
        Body::PlannerTaken { epoch, .. } => Some(epoch),
        _ => None,
    };
    bench.entries().into_iter().filter_map(|entry| epoch(entry.body)).collect()
}

pub fn the_first_planner_finds_no_outage(bench: &mut Bench) {
    let schedule = bench.add(json!({}));
    let node = bench.join("a");
    let lease = take(bench, node);
    assert_eq!(lease, PlannerLease { is_held: true, until: at("09:00:30"), outage: None });
    assert_eq!(missed(bench, schedule), None);
    bench.pass(10);
    let renewed = bench.changes_nothing("a renewal", |bench| take(bench, node));
    assert_eq!(renewed, PlannerLease { is_held: true, until: at("09:00:40"), outage: None });
}

pub fn while_nobody_plans_no_slot_that_is_due_runs_as_if_there_was_no_outage(bench: &mut Bench) {
    let schedule = bench.add(json!({}));
    let node = bench.join("a");
    take(bench, node);
    assert_eq!(block_on(bench.store.planned_until()).unwrap(), Some(at("09:00:30")));
    bench.go("10:00:00");
    let (ahead, _) = bench.plan_write(schedule, &["10:30:00"]);
    let (due, _) = bench.plan_write(schedule, &["09:30:00"]);
    let refused = bench.changes_nothing("a slot that was missed", |bench| bench.write(due.clone()));
    assert_eq!(refused, Written::Conflict);
    // What lies ahead was not missed.
    assert_eq!(bench.write(ahead), Written::Done);
    take(bench, node);
    assert_eq!(bench.write(due), Written::Conflict, "it has been decided without knowing of the outage");
    let (knowing, _) = bench.plan_write(schedule, &["09:30:00"]);
    assert_eq!(bench.write(knowing), Written::Done);
}

pub fn one_node_plans(bench: &mut Bench) {
    if bench.store.is_exclusive() {
        return;
    }
    let (one, two) = (bench.join("a"), bench.join("b"));
    take(bench, one);
    bench.pass(30);
    let refused = bench.changes_nothing("another's lease", |bench| take(bench, two));
    assert_eq!(refused, PlannerLease { is_held: false, until: at("09:00:30"), outage: None });
    assert!(take(bench, one).is_held, "to its last instant it is its holder's");
    bench.pass(31);
    assert!(take(bench, two).is_held);
    assert!(!take(bench, one).is_held);
    assert_eq!(epochs(bench), [1, 2]);
}

pub fn the_time_that_nobody_had_the_lease_is_an_outage_of_every_schedule(bench: &mut Bench) {
    let schedules = [bench.add(json!({})), bench.add(json!({"zone": "Asia/Tokyo"}))];
    let node = bench.join("a");
    take(bench, node);
    bench.go("10:00:00");
    let seq = bench.seq();
    assert_eq!(take(bench, node).outage, outage("09:00:30", "10:00:00"), "asleep, it had lost it too");
    assert_eq!(bench.kinds_since(seq), ["planner_taken"]);
    for schedule in schedules {
        assert_eq!(missed(bench, schedule), outage("09:00:30", "10:00:00"));
    }
    let new = bench.add(json!({}));
    assert_eq!(missed(bench, new), None, "what was not there has missed nothing");
}

pub fn an_outage_joins_one_that_is_not_made_up_for(bench: &mut Bench) {
    let (busy, done) = (bench.add(json!({})), bench.add(json!({})));
    let node = bench.join("a");
    take(bench, node);
    bench.go("10:00:00");
    take(bench, node);
    // One schedule has been made up for, the other half.
    assert_eq!(bench.write(bench.write_for(done)), Written::Done);
    let mut half = bench.write_for(busy);
    let kept = Kept { from: Some(at("09:30:00")), until: at("10:00:00") };
    let rest = Outage { kept: Some(kept), ..outage("09:00:30", "10:00:00").expect("it is one") };
    half.plan.as_mut().expect("it has a plan").outage = Some(rest);
    assert_eq!(bench.write(half), Written::Done);
    assert_eq!((missed(bench, busy), missed(bench, done)), (Some(rest), None));
    bench.go("11:00:00");
    assert_eq!(take(bench, node).outage, outage("10:00:30", "11:00:00"));
    assert_eq!(missed(bench, busy), outage("09:00:30", "11:00:00"), "decided anew, once for both");
    assert_eq!(missed(bench, done), outage("10:00:30", "11:00:00"));
}

pub fn what_waits_already_is_claimed_whatever_planning_does(bench: &mut Bench) {
    let schedule = bench.add(json!({}));
    let node = bench.join("a");
    take(bench, node);
    bench.plan(schedule, &["09:30:00"]);
    bench.go("10:00:00");
    bench.renew(node).unwrap();
    assert_eq!(bench.claimed(node, ALL).runs.len(), 1, "its slot was decided before the outage");
}

pub fn an_outage_concerns_what_has_a_slot_in_it_and_nothing_else(bench: &mut Bench) {
    let with_next = |bench: &mut Bench, plan_at: Option<&str>| {
        let id = bench.add(json!({}));
        let mut write = bench.write_for(id);
        write.plan.as_mut().expect("it has a plan").plan_at = plan_at.map(at);
        assert_eq!(bench.write(write), Written::Done);
        id
    };
    let (before, at_its_end) = (with_next(bench, Some("09:30:00")), with_next(bench, Some("10:00:00")));
    let (after, unknown) = (with_next(bench, Some("10:00:01")), with_next(bench, None));
    let node = bench.join("a");
    take(bench, node);
    bench.go("10:00:00");
    bench.renew(node).unwrap();
    let noted = take(bench, node).outage;
    assert_eq!(noted, outage("09:00:30", "10:00:00"));
    assert_eq!([before, at_its_end, after, unknown].map(|id| missed(bench, id)), [noted, noted, None, noted]);
}

pub fn a_plan_that_knew_nothing_of_an_outage_does_not_wipe_it_out(bench: &mut Bench) {
    let schedule = bench.add(json!({}));
    let node = bench.join("a");
    let (plan, _) = bench.plan_write(schedule, &["10:00:00"]);
    block_on(bench.store.note_outage(bench.now, node, at("08:00:00"))).unwrap();
    assert_eq!(bench.changes_nothing("the plan", |bench| bench.write(plan)), Written::Conflict);
    assert_eq!(missed(bench, schedule), outage("08:00:00", "09:00:00"));
    assert_eq!(bench.write(bench.write_for(schedule)), Written::Done, "who knows of it makes up for it");
}

pub fn an_edit_does_not_make_up_for_an_outage(bench: &mut Bench) {
    let schedule = bench.add(json!({}));
    let node = bench.join("a");
    block_on(bench.store.note_outage(bench.now, node, at("08:00:00"))).unwrap();
    let before = bench.schedule(schedule);
    let mut after = before.clone();
    after.version = 2;
    let put = crate::ScheduleChange::Put(Box::new(after));
    assert_eq!(bench.write(super::bench::change_of(&before, put)), Written::Done);
    assert_eq!(missed(bench, schedule), outage("08:00:00", "09:00:00"));
}

pub fn a_planner_that_leaves_hands_over_without_an_outage(bench: &mut Bench) {
    let schedule = bench.add(json!({}));
    let one = bench.join("a");
    take(bench, one);
    bench.pass(5);
    block_on(bench.store.leave(bench.now, one)).unwrap();
    let two = bench.join("b");
    assert_eq!(take(bench, two), PlannerLease { is_held: true, until: at("09:00:35"), outage: None });
    assert_eq!(missed(bench, schedule), None);
    // If nobody is there, that is where the outage begins.
    bench.pass(5);
    block_on(bench.store.leave(bench.now, two)).unwrap();
    bench.go("09:30:00");
    let three = bench.join("c");
    assert_eq!(take(bench, three).outage, outage("09:00:10", "09:30:00"));
    assert_eq!(epochs(bench), [1, 2, 3]);
}

pub fn a_planner_that_is_buried_is_followed_at_once(bench: &mut Bench) {
    let one = bench.join("a");
    bench.pass(20);
    // Its planner's lease is newer than its own.
    block_on(bench.store.take_planner(&bench.sign(one, "a"))).unwrap();
    bench.pass(15);
    bench.bury();
    let two = bench.join("b");
    let lease = take(bench, two);
    assert_eq!((lease.is_held, lease.outage), (true, None), "the lease had not ended: nothing was missed");
}

pub fn who_has_no_lease_does_not_plan(bench: &mut Bench) {
    bench.add(json!({}));
    let node = bench.join("a");
    let refused = |bench: &mut Bench, node| {
        let sign = bench.sign(node, "stranger");
        let taken = bench.changes_nothing("a stranger's plan", |bench| block_on(bench.store.take_planner(&sign)));
        matches!(taken, Err(StoreError::LeaseEnded))
    };
    assert!(refused(bench, NodeId(Uuid::nil())));
    bench.pass(31);
    assert!(refused(bench, node), "its lease has ended");
    bench.bury();
    assert!(refused(bench, node), "it was taken for dead");
}

pub fn an_outage_that_no_lease_shows_can_be_noted(bench: &mut Bench) {
    let schedule = bench.add(json!({}));
    let node = bench.join("a");
    let until: Timestamp = take(bench, node).until;
    block_on(bench.store.note_outage(bench.now, node, at("08:00:00"))).unwrap();
    assert_eq!(missed(bench, schedule), outage("08:00:00", "09:00:00"));
    bench.pass(1);
    block_on(bench.store.note_outage(bench.now, node, at("08:30:00"))).unwrap();
    assert_eq!(missed(bench, schedule), outage("08:00:00", "09:00:01"));
    assert!(take(bench, node).until > until, "the lease goes on");
    assert_eq!(epochs(bench), [1, 1, 1]);
}

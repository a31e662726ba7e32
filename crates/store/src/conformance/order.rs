//! Claims about the order within a schedule: queues, parked runs, runs that follow others.
#![expect(missing_docs, reason = "the names are the claims")]

use punctual_core::run::{Outcome, RunEvent, RunState, SkipReason, WaitFor};
use punctual_core::schedule::{Pause, PauseKind, ScheduleState};
use punctual_core::{NodeId, RunId, ScheduleId};
use serde_json::{Value, json};

use super::bench::{ALL, Bench, asked_run, at, failed};
use super::block_on;
use crate::{Decision, RunWritten};

fn queue() -> Value {
    json!({"policy": {"overlap": "queue"}})
}

fn claim(bench: &Bench) -> Vec<RunId> {
    let node = block_on(bench.store.nodes()).unwrap()[0].id;
    bench.claim(node, ALL).iter().map(|run| run.id).collect()
}

fn end(bench: &Bench, id: RunId) {
    let run = bench.run(id);
    if matches!(run.state, RunState::Claimed { .. }) {
        bench.settle(&run, Decision::Start);
    }
    assert!(matches!(bench.finish(&run, RunEvent::Succeeded), RunWritten::Done(_)));
}

pub fn in_a_queue_one_runs_and_its_end_lets_the_next_go(bench: &mut Bench) {
    let schedule = bench.add(queue());
    let runs = bench.plan(schedule, &["08:20:00", "08:10:00", "08:30:00"]);
    let order = [runs[1], runs[0], runs[2]];
    let other = bench.due_run(queue());
    bench.join("a");
    assert_eq!(claim(bench), [order[0], other], "another schedule has a queue of its own");
    assert_eq!(claim(bench), []);
    bench.settle(&bench.run(order[0]), Decision::Start);
    assert_eq!(claim(bench), []);
    end(bench, order[0]);
    assert_eq!(claim(bench), [order[1]]);
    bench.settle(&bench.run(order[1]), Decision::Skip(SkipReason::ConditionFalse));
    assert_eq!(claim(bench), [order[2]]);
}

pub fn a_queue_waits_for_what_waits(bench: &mut Bench) {
    let schedule = bench.add(queue());
    let runs = bench.plan(schedule, &["08:10:00", "08:20:00"]);
    let node = bench.join("a");
    let first = bench.start_one(node);
    bench.finish(&first, RunEvent::Waits { on: WaitFor::Approval, wait_until: at("11:00:00") });
    assert_eq!(claim(bench), []);
    block_on(bench.store.cancel(bench.now, runs[0], None)).unwrap();
    assert_eq!(claim(bench), [runs[1]]);
}

pub fn a_retry_queues_by_when_its_rest_is_over(bench: &mut Bench) {
    let schedule = bench.add(queue());
    let runs = bench.plan(schedule, &["08:10:00", "09:00:30", "09:02:00"]);
    let node = bench.join("a");
    let first = bench.start_one(node);
    bench.finish(&first, failed(bench.now));
    bench.go("09:02:00");
    assert_eq!(claim(bench), [runs[1]]);
    end(bench, runs[1]);
    assert_eq!(claim(bench), [runs[0]], "due again at 09:01");
    end(bench, runs[0]);
    assert_eq!(claim(bench), [runs[2]]);
}

pub fn what_is_not_due_yet_does_not_hold_up_a_queue(bench: &mut Bench) {
    let schedule = bench.add(queue());
    let runs = bench.plan(schedule, &["10:00:00", "11:00:00"]);
    bench.join("a");
    assert_eq!(claim(bench), []);
    let mut asked = bench.manual_run(schedule);
    asked.due_at = bench.now;
    assert!(block_on(bench.store.ask(bench.now, asked.clone(), None)).unwrap());
    assert_eq!(claim(bench), [asked.id]);
    bench.go("10:00:00");
    assert_eq!(claim(bench), []);
    end(bench, asked.id);
    assert_eq!(claim(bench), [runs[0]]);
}

pub fn in_a_queue_the_earliest_goes_first_whatever_the_priority(bench: &mut Bench) {
    let schedule = bench.add(queue());
    let runs = bench.plan(schedule, &["08:00:00"]);
    // Urgent, so that its lane comes first; but the queue is the schedule's.
    let mut urgent = bench.schedule(schedule);
    urgent.policy.priority = punctual_core::schedule::Priority::new(10).expect("it is in range");
    let id = bench.run_id(at("08:10:00"));
    let asked = asked_run(id, punctual_core::time::SlotKey::manual(id), &urgent, at("08:10:00"));
    assert!(block_on(bench.store.ask(bench.now, asked, None)).unwrap());
    bench.join("a");
    assert_eq!(claim(bench), [runs[0]]);
    end(bench, runs[0]);
    assert_eq!(claim(bench), [id]);
}

pub fn under_allow_all_run_at_once_and_each_knows_that_it_is_not_alone(bench: &mut Bench) {
    let schedule = bench.add(json!({}));
    bench.plan(schedule, &["08:00:00", "08:10:00", "09:01:00"]);
    bench.due_run(json!({}));
    let node = bench.join("a");
    let claimed = bench.claimed(node, ALL);
    let busy: Vec<bool> = claimed.runs.iter().map(|claimed| claimed.is_busy).collect();
    assert_eq!(busy, [false, true, false], "the first of its schedule, the second, another schedule's");
    bench.pass(60);
    assert!(bench.claimed(node, ALL).runs[0].is_busy);
}

pub fn a_run_is_busy_while_another_waits_or_works_and_not_after(bench: &mut Bench) {
    let schedule = bench.add(json!({}));
    bench.plan(schedule, &["08:00:00", "09:01:00", "09:02:00", "09:03:00"]);
    let node = bench.join("a");
    let first = bench.start_one(node);
    bench.finish(&first, RunEvent::Waits { on: WaitFor::Callback, wait_until: at("11:00:00") });
    bench.go("09:01:00");
    let second = bench.claimed(node, 1).runs.remove(0);
    assert!(second.is_busy, "a run that waits is in the middle of its work");
    bench.settle(&second.run, Decision::Skip(SkipReason::Overlap));
    bench.finish(&first, failed(bench.now));
    bench.go("09:02:00");
    // The retry is due as well, and goes first; it is planned, and keeps nobody busy.
    let third = bench.claimed(node, 1).runs.remove(0);
    assert!(!third.is_busy);
    assert!(bench.claimed(node, 1).runs[0].is_busy);
}

pub fn a_parked_run_waits_for_the_one_at_work(bench: &mut Bench) {
    let node = bench.join("a");
    let schedule = bench.add(json!({"policy": {"overlap": "allow"}}));
    let runs = bench.plan(schedule, &["08:00:00", "08:10:00", "08:20:00"]);
    let first = bench.start_one(node);
    let second = bench.claim_one(node);
    let parked = bench.settle(&second, Decision::HandBack { due_at: bench.now, parks: true });
    assert!(matches!(parked, RunWritten::Done(RunState::Planned { .. })));
    assert!(bench.run(runs[1]).is_parked);
    assert_eq!(claim(bench), [runs[2]], "what is not parked goes on");
    end(bench, runs[2]);
    assert_eq!(claim(bench), []);
    bench.finish(&first, RunEvent::Cancelled);
    assert_eq!(claim(bench), [runs[1]]);
}

/// A schedule with a run at work that holds its agent's only place, and others due at 09:01, 09:02 and 09:03.
fn beside_another(bench: &mut Bench, overlap: &str) -> (NodeId, ScheduleId, Vec<RunId>) {
    let schedule = bench.add(json!({"policy": {"overlap": overlap, "max_concurrent": 1}}));
    let runs = bench.plan(schedule, &["08:00:00", "09:01:00", "09:02:00", "09:03:00"]);
    let node = bench.join("a");
    assert_eq!(bench.start_one(node).id, runs[0]);
    (node, schedule, runs)
}

pub fn under_skip_a_run_is_answered_when_it_is_due_though_there_is_no_place(bench: &mut Bench) {
    let (node, _, runs) = beside_another(bench, "skip");
    assert_eq!(bench.claimed(node, ALL).next_at, Some(at("09:01:00")));
    bench.go("09:02:00");
    let claimed = bench.claimed(node, 0);
    assert_eq!((claimed.runs.len(), claimed.swept, claimed.has_replaced), (0, 2, false));
    assert_eq!(claimed.next_at, Some(at("09:03:00")));
    assert_eq!([bench.outcome(runs[1]), bench.outcome(runs[2])], [Some(Outcome::Skipped(SkipReason::Overlap)); 2]);
    end(bench, runs[0]);
    bench.go("09:03:00");
    assert_eq!(claim(bench), [runs[3]], "nothing is at work any more");
}

pub fn under_replace_a_run_calls_the_others_off_when_it_is_due(bench: &mut Bench) {
    let (node, _, runs) = beside_another(bench, "replace");
    bench.go("09:01:00");
    let claimed = bench.claimed(node, ALL);
    assert_eq!((claimed.runs.len(), claimed.swept, claimed.has_replaced), (0, 1, true));
    assert_eq!(bench.renew(node).unwrap().cancelling, [runs[0]]);
    assert!(bench.run(runs[1]).is_parked);
    bench.go("09:02:00");
    assert!(bench.claimed(node, ALL).has_replaced);
    assert_eq!(bench.outcome(runs[1]), Some(Outcome::Cancelled), "it had not begun");
    assert_eq!(bench.claimed(node, ALL).swept, 0, "each is answered once");
    assert!(matches!(bench.finish(&bench.run(runs[0]), RunEvent::Cancelled), RunWritten::Done(_)));
    assert_eq!(claim(bench), [runs[2]]);
}

pub fn under_skip_the_place_of_another_schedule_is_waited_for(bench: &mut Bench) {
    let own = json!({"policy": {"overlap": "skip", "max_concurrent": 1}});
    let other = bench.due_run(own.clone());
    let node = bench.join("a");
    assert_eq!(bench.start_one(node).id, other);
    let waits = bench.due_run(own);
    assert_eq!(bench.claimed(node, ALL).swept, 0);
    end(bench, other);
    assert_eq!(claim(bench), [waits]);
}

pub fn a_run_that_goes_on_is_not_skipped_for_another(bench: &mut Bench) {
    let schedule = bench.add(json!({"policy": {"overlap": "skip", "max_concurrent": 2}}));
    let runs = bench.plan(schedule, &["08:00:00", "09:00:00"]);
    let node = bench.join("a");
    let first = bench.claim(node, 1).remove(0);
    bench.settle(&first, Decision::Wait { on: WaitFor::Approval, wait_until: at("11:00:00") });
    // It is planned again when it is let go on, and the other begins before it.
    assert!(matches!(block_on(bench.store.resume(at("09:30:00"), runs[0], None, None)).unwrap(), RunWritten::Done(_)));
    assert_eq!(claim(bench), [runs[1]]);
    bench.go("09:30:00");
    let claimed = bench.claimed(node, ALL);
    assert_eq!((claimed.runs.len(), claimed.swept), (1, 0));
}

pub fn under_a_pause_a_run_that_finds_another_at_work_is_skipped_for_the_pause(bench: &mut Bench) {
    let (node, schedule, runs) = beside_another(bench, "skip");
    let pause = Pause { kind: PauseKind::Disabled, at: bench.now, source: "ada".to_owned(), reason: None, until: None };
    bench.edit(schedule, |schedule| schedule.state = ScheduleState::Paused(Box::new(pause.clone())));
    bench.go("09:01:00");
    assert_eq!(bench.claimed(node, ALL).swept, 1);
    assert_eq!(bench.outcome(runs[1]), Some(Outcome::Skipped(PauseKind::Disabled.skip_reason())));
}

pub fn what_follows_another_waits_until_that_has_started(bench: &mut Bench) {
    let schedule = bench.add(json!({}));
    let (mut write, runs) = bench.plan_write(schedule, &["08:00:00", "08:10:00", "08:20:00"]);
    let planned = &mut write.plan.as_mut().expect("it has a plan").runs;
    (planned[1].follows, planned[2].follows) = (Some(runs[0]), Some(runs[1]));
    assert_eq!(bench.write(write), crate::Written::Done);
    bench.join("a");
    assert_eq!(claim(bench), [runs[0]]);
    assert_eq!(claim(bench), [], "claimed is not started");
    bench.settle(&bench.run(runs[0]), Decision::Start);
    assert_eq!(claim(bench), [runs[1]], "it does not wait for the end");
    // What ends without a start is not waited for either.
    block_on(bench.store.cancel(bench.now, runs[1], None)).unwrap();
    assert_eq!(claim(bench), [runs[2]]);
}

pub fn what_follows_another_does_not_hold_it_up_in_a_queue(bench: &mut Bench) {
    let schedule = bench.add(json!({"policy": {"overlap": "queue"}}));
    // Caught up for in the order of their slots, and due in another: jitter, or a hand-back.
    let (mut write, runs) = bench.plan_write(schedule, &["08:20:00", "08:10:00", "08:00:00", "08:30:00"]);
    let planned = &mut write.plan.as_mut().expect("it has a plan").runs;
    (planned[1].follows, planned[2].follows) = (Some(runs[0]), Some(runs[1]));
    assert_eq!(bench.write(write), crate::Written::Done);
    let node = bench.join("a");
    for expected in runs {
        let run = bench.claim_one(node);
        assert_eq!((run.id, claim(bench)), (expected, vec![]));
        bench.settle(&run, Decision::Start);
        bench.finish(&run, RunEvent::Succeeded);
    }
}

pub fn in_a_queue_what_waits_for_a_start_stands_in_nobodys_way(bench: &mut Bench) {
    let schedule = bench.add(queue());
    let leader = bench.plan(schedule, &["08:00:00"])[0];
    let node = bench.join("a");
    let run = bench.start_one(node);
    bench.finish(&run, failed(bench.now));
    let (mut write, runs) = bench.plan_write(schedule, &["08:05:00", "08:10:00", "10:00:00"]);
    let mut retry = bench.planned_run(schedule, at("08:00:00"));
    (retry.id, retry.follows) = (leader, Some(runs[0]));
    let plan = write.plan.as_mut().expect("it has a plan");
    (plan.runs[0].follows, plan.runs[1].follows) = (Some(runs[2]), Some(leader));
    plan.moved = vec![retry];
    assert_eq!(bench.write(write), crate::Written::Done);
    // The first waits for the last, which is not due; the leader has started once, whatever it follows now.
    assert_eq!(claim(bench), [runs[1]]);
}

pub fn what_follows_a_run_that_fails_or_goes_may_start(bench: &mut Bench) {
    let schedule = bench.add(json!({}));
    let (mut write, runs) = bench.plan_write(schedule, &["08:00:00", "08:10:00", "10:00:00", "08:30:00"]);
    let planned = &mut write.plan.as_mut().expect("it has a plan").runs;
    (planned[1].follows, planned[3].follows) = (Some(runs[0]), Some(runs[2]));
    assert_eq!(bench.write(write), crate::Written::Done);
    let node = bench.join("a");
    let first = bench.start_one(node);
    bench.finish(&first, failed(bench.now));
    assert_eq!(claim(bench), [runs[1]], "it has started once");
    let mut withdraw = bench.write_for(schedule);
    withdraw.plan.as_mut().expect("it has a plan").withdrawn = vec![runs[2]];
    assert_eq!(bench.write(withdraw), crate::Written::Done);
    assert_eq!(claim(bench), [runs[3]], "what it followed is withdrawn");
}

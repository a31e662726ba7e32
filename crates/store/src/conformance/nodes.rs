//! Claims about the role [`crate::Nodes`]: leases, and what becomes of the runs of a node that is gone.
#![expect(missing_docs, reason = "the names are the claims")]

use punctual_core::NodeId;
use punctual_core::run::{FailureCode, Outcome, RunEvent, RunState, WaitFor};
use serde_json::json;
use uuid::Uuid;

use super::bench::{ALL, Bench, at};
use super::block_on;
use crate::{Decision, MOMENT, NodeLease, RunWritten, StoreError};

pub fn a_node_lives_by_its_lease(bench: &mut Bench) {
    let seq = bench.seq();
    let node = bench.join("a");
    assert_eq!(bench.kinds_since(seq), ["node_joined"]);
    let nodes = block_on(bench.store.nodes()).unwrap();
    let record = &nodes[0];
    assert_eq!((record.id, record.name.as_str(), record.joined_at), (node, "a", bench.now));
    assert_eq!(record.lease_until, at("09:00:30"));
    assert_eq!(record.agents, *super::bench::agents());
    bench.pass(10);
    let renewed = bench.changes_nothing("a renewal", |bench| bench.renew(node)).unwrap();
    assert_eq!(renewed.lease_until, at("09:00:40"));
    let nodes = block_on(bench.store.nodes()).unwrap();
    assert_eq!((nodes[0].lease_until, nodes[0].joined_at), (at("09:00:40"), at("09:00:00")));
    let unknown = bench.renew(NodeId(Uuid::nil()));
    assert!(matches!(unknown, Err(StoreError::LeaseEnded)), "{unknown:?}");
}

pub fn a_renewal_tells_what_is_the_nodes_own(bench: &mut Bench) {
    let runs = [bench.due_run(json!({})), bench.due_run(json!({})), bench.due_run(json!({})), bench.due_run(json!({}))];
    let node = bench.join("a");
    let claimed = bench.claim(node, ALL);
    bench.settle(&claimed[0], Decision::Start);
    bench.settle(&claimed[2], Decision::Start);
    bench.settle(&claimed[3], Decision::Wait { on: WaitFor::Approval, wait_until: at("11:00:00") });
    block_on(bench.store.cancel(bench.now, runs[2], None)).unwrap();
    let renewed = bench.renew(node).unwrap();
    assert_eq!(renewed.owned, [(runs[0], 1), (runs[1], 1), (runs[2], 1)]);
    assert_eq!(renewed.cancelling, [runs[2]]);
    assert_eq!(renewed.others, []);
    bench.finish(&claimed[0], RunEvent::Succeeded);
    assert_eq!(bench.renew(node).unwrap().owned, [(runs[1], 1), (runs[2], 1)]);
}

pub fn who_has_renewed_its_lease_is_not_buried(bench: &mut Bench) {
    if bench.store.is_exclusive() {
        return;
    }
    let (one, two) = (bench.join("a"), bench.join("b"));
    let seen = bench.renew(one).unwrap().others;
    bench.pass(31);
    let bury = |bench: &mut Bench, seen: &[NodeLease]| block_on(bench.store.bury(bench.now, seen.to_vec())).unwrap();
    bench.renew(two).unwrap();
    assert_eq!(bench.changes_nothing("it lives", |bench| bury(bench, &seen)), 0);
    // Whoever buries has its reasons, whatever the clock says.
    let seen = bench.renew(one).unwrap().others;
    assert_eq!(bury(bench, &seen), 1);
    assert!(bench.renew(one).is_ok() && bench.renew(two).is_err());
}

pub fn a_renewal_tells_the_leases_of_the_others(bench: &mut Bench) {
    if bench.store.is_exclusive() {
        return;
    }
    let one = bench.join("a");
    bench.pass(5);
    let two = bench.join("b");
    bench.pass(5);
    let three = bench.join("c");
    assert_eq!(bench.others_until(three), Some(at("09:00:30")));
    assert_eq!(bench.others_until(one), Some(at("09:00:35")));
    assert_eq!(bench.others_until(two), Some(at("09:00:40")));
    let ids: Vec<NodeId> = block_on(bench.store.nodes()).unwrap().iter().map(|node| node.id).collect();
    assert_eq!(ids, [one, two, three]);
}

pub fn a_node_is_buried_when_its_lease_has_ended_and_not_before(bench: &mut Bench) {
    let node = bench.join("a");
    bench.pass(30);
    assert_eq!(bench.changes_nothing("an early burial", |bench| bench.bury()), 0);
    bench.now += MOMENT;
    let seq = bench.seq();
    assert_eq!(bench.bury(), 1);
    assert_eq!(bench.kinds_since(seq), ["node_left"]);
    assert!(block_on(bench.store.nodes()).unwrap().is_empty());
    assert_eq!(bench.changes_nothing("a second burial", |bench| bench.bury()), 0);
    assert!(matches!(bench.renew(node), Err(StoreError::LeaseEnded)));
}

/// What became of a run whose node is lost: claimed or at work, again and again, until it ends. Rests in seconds.
fn losses(bench: &mut Bench, policy: serde_json::Value, starts: bool) -> (Vec<i64>, RunState) {
    let id = bench.due_run(json!({"policy": policy}));
    let mut rests = vec![];
    for attempt in 1..=50 {
        let node = bench.join("mortal");
        let run = bench.claim_one(node);
        assert_eq!((run.id, run.state.tally().attempt), (id, attempt));
        if starts {
            bench.settle(&run, Decision::Start);
        }
        bench.pass(31);
        assert_eq!(bench.bury(), 1);
        assert_eq!(bench.finish(&run, RunEvent::Succeeded), RunWritten::Stale, "the dead change nothing");
        match bench.run(id).state {
            RunState::Planned { due_at, .. } => {
                rests.push(due_at.duration_since(bench.now).as_secs());
                bench.now = due_at;
            }
            state => return (rests, state),
        }
    }
    panic!("run {id} is tried without end")
}

fn outcome(state: RunState) -> Outcome {
    let RunState::Finished { outcome, .. } = state else { panic!("{state:?} is not final") };
    outcome
}

pub fn a_run_whose_nodes_die_comes_to_an_end(bench: &mut Bench) {
    let retry = json!({"retry": {"max_attempts": 4}});
    let hold = json!({"after_loss": "hold", "retry": {"max_attempts": 3}});
    let lost = Outcome::Failed(FailureCode::OwnerLost);
    for (what, policy, starts, rests, end) in [
        ("claimed and never begun: at once", &retry, false, vec![0, 0, 0], lost),
        ("at work: at once, then with a rest", &retry, true, vec![0, 60, 60], lost),
        ("claimed and never begun, on hold: nothing was risked", &hold, false, vec![0, 0], lost),
        ("at work, on hold: not twice", &hold, true, vec![], Outcome::Unknown),
        ("at work at the last try", &json!({"retry": {"max_attempts": 1}}), true, vec![], lost),
    ] {
        let (found, state) = losses(bench, policy.clone(), starts);
        assert_eq!((found, outcome(state)), (rests, end), "{what}");
    }
}

pub fn a_lost_run_is_taken_over_under_a_new_epoch(bench: &mut Bench) {
    let id = bench.due_run(json!({}));
    let first = bench.join("a");
    let lost = bench.start_one(first);
    bench.pass(31);
    bench.bury();
    let second = bench.join("b");
    let taken = bench.start_one(second);
    assert_eq!((taken.id, taken.epoch(), taken.state.tally().attempt), (id, 2, 2));
    let late = bench.changes_nothing("the first node's report", |bench| bench.finish(&lost, RunEvent::Succeeded));
    assert_eq!(late, RunWritten::Stale);
    assert!(matches!(bench.finish(&taken, RunEvent::Succeeded), RunWritten::Done(_)));
}

pub fn what_waits_outlives_its_node(bench: &mut Bench) {
    let id = bench.due_run(json!({}));
    let node = bench.join("a");
    let run = bench.start_one(node);
    bench.finish(&run, RunEvent::Waits { on: WaitFor::Callback, wait_until: at("11:00:00") });
    bench.pass(31);
    bench.bury();
    assert_eq!(bench.state(id), "waiting");
    assert!(matches!(bench.finish(&run, RunEvent::Succeeded), RunWritten::Done(_)));
}

pub fn a_node_that_leaves_gives_back_what_it_has_not_begun(bench: &mut Bench) {
    let [claimed, running] = [bench.due_run(json!({})), bench.due_run(json!({}))];
    let node = bench.join("a");
    let runs = bench.claim(node, ALL);
    bench.settle(&runs[1], Decision::Start);
    bench.pass(1);
    block_on(bench.store.leave(bench.now, node)).unwrap();
    let back = bench.run(claimed);
    assert_eq!((back.planned_for(), back.state.tally().attempt), (Some(at("09:00:00")), 0));
    assert!(!back.is_parked);
    // What was at work was stopped with it: it goes on at once, and no attempt is used up.
    let stopped = bench.run(running);
    assert_eq!((stopped.planned_for(), stopped.state.tally().attempt), (Some(bench.now), 0));
    assert_eq!(stopped.state.tally().losses, 1);
    assert!(block_on(bench.store.nodes()).unwrap().is_empty());
    assert!(matches!(bench.renew(node), Err(StoreError::LeaseEnded)));
    bench.changes_nothing("leaving again", |bench| block_on(bench.store.leave(bench.now, node)).unwrap());
}

pub fn on_an_exclusive_store_a_new_server_takes_over_at_once(bench: &mut Bench) {
    if !bench.store.is_exclusive() {
        return;
    }
    let [claimed, running] = [bench.due_run(json!({})), bench.due_run(json!({}))];
    let first = bench.join("a");
    let runs = bench.claim(first, ALL);
    bench.settle(&runs[1], Decision::Start);
    let second = bench.join("b");
    assert!(matches!(bench.renew(first), Err(StoreError::LeaseEnded)));
    let tallies = [bench.run(claimed).state.tally(), bench.run(running).state.tally()];
    assert_eq!(tallies.map(|tally| (tally.attempt, tally.losses)), [(1, 0), (1, 1)]);
    assert_eq!(bench.claim(second, ALL).len(), 2);
    assert_eq!(block_on(bench.store.nodes()).unwrap().len(), 1);
}

pub fn on_a_shared_store_a_node_keeps_its_runs_while_its_lease_lasts(bench: &mut Bench) {
    if bench.store.is_exclusive() {
        return;
    }
    let run = bench.due_run(json!({}));
    let first = bench.join("a");
    bench.start_one(first);
    let second = bench.join("b");
    bench.pass(30);
    assert_eq!(bench.bury(), 0);
    assert!(bench.claim(second, ALL).is_empty());
    assert_eq!(bench.state(run), "running");
    bench.pass(1);
    bench.renew(second).unwrap();
    assert_eq!(bench.bury(), 1, "the second lives");
    assert_eq!(bench.claim_one(second).id, run);
}

//! Claims about the order between lanes: age, priority, fairness.
#![expect(missing_docs, reason = "the names are the claims")]

use punctual_core::run::{Run, RunEvent};
use serde_json::{Value, json};

use super::bench::{ALL, Bench, at};
use crate::Decision;

/// Plans runs of a new schedule, and claims nothing.
fn lane(bench: &mut Bench, fields: Value, times: &[&str]) {
    let schedule = bench.add(fields);
    bench.plan(schedule, times);
}

fn agents(runs: &[Run]) -> Vec<&str> {
    runs.iter().map(|run| run.terms.work.agent()).collect()
}

/// Starts and ends runs, so that their places are free again.
fn end(bench: &Bench, runs: &[Run]) {
    for run in runs {
        bench.settle(run, Decision::Start);
        bench.finish(run, RunEvent::Succeeded);
    }
}

pub fn the_lane_that_waits_longest_goes_first(bench: &mut Bench) {
    lane(bench, json!({"agent": "a"}), &["08:30:00"]);
    lane(bench, json!({"agent": "b"}), &["08:10:00"]);
    lane(bench, json!({"agent": "c"}), &["08:20:00"]);
    let node = bench.join("a");
    assert_eq!(agents(&bench.claim(node, ALL)), ["b", "c", "a"]);
}

pub fn a_level_of_priority_is_worth_ten_minutes(bench: &mut Bench) {
    // Three levels above: it goes first until the other is half an hour older.
    for (older, order) in [("08:20:00.000001", ["b", "a"]), ("08:19:59.999999", ["a", "b"])] {
        lane(bench, json!({"agent": "a", "policy": {"priority": 4}}), &[older]);
        lane(bench, json!({"agent": "b", "policy": {"priority": 7}}), &["08:50:00"]);
        let node = bench.join("a");
        let claimed = bench.claim(node, ALL);
        assert_eq!(agents(&claimed), order, "{older}");
        end(bench, &claimed);
    }
}

pub fn a_lane_that_was_served_queues_again(bench: &mut Bench) {
    lane(bench, json!({"agent": "a"}), &["08:00:00", "08:00:01", "08:00:02"]);
    lane(bench, json!({"agent": "b"}), &["08:30:00", "08:30:01"]);
    lane(bench, json!({"agent": "c"}), &["08:45:00"]);
    let node = bench.join("a");
    let mut order = vec![];
    for _ in 0..6 {
        let claimed = bench.claim(node, 1);
        order.extend(agents(&claimed).iter().map(|agent| (*agent).to_owned()));
        end(bench, &claimed);
        bench.pass(1);
    }
    assert_eq!(order, ["a", "b", "c", "a", "b", "a"]);
}

pub fn who_floods_a_lane_waits_for_itself(bench: &mut Bench) {
    let flood: Vec<String> =
        (0..200).map(|n| (at("08:00:00") + jiff::SignedDuration::from_secs(n)).to_string()).collect();
    lane(bench, json!({"agent": "a"}), &flood.iter().map(String::as_str).collect::<Vec<_>>());
    lane(bench, json!({"agent": "b"}), &["08:59:00", "08:59:01"]);
    lane(bench, json!({"agent": "c"}), &["08:59:30", "08:59:31"]);
    let node = bench.join("a");
    assert_eq!(agents(&bench.claim(node, 3)), ["a", "b", "c"], "in one claim each lane has its turn");
    bench.pass(1);
    assert_eq!(agents(&bench.claim(node, 4)), ["a", "b", "c", "a"]);
}

pub fn lanes_of_one_age_take_turns_in_their_own_order(bench: &mut Bench) {
    for agent in ["c", "a", "b"] {
        lane(bench, json!({"agent": agent}), &["08:00:00", "08:00:01"]);
    }
    lane(bench, json!({"agent": "a", "project": "p"}), &["08:00:00"]);
    let node = bench.join("a");
    let claimed = bench.claim(node, 5);
    let lanes: Vec<_> = claimed.iter().map(|run| (run.terms.work.agent(), run.terms.project.as_deref())).collect();
    assert_eq!(lanes, [("a", None), ("a", Some("p")), ("b", None), ("c", None), ("a", None)]);
}

pub fn priority_lasts_between_turns(bench: &mut Bench) {
    // Served a moment ago, five levels are still worth fifty minutes.
    lane(bench, json!({"agent": "a", "policy": {"priority": 10}}), &["08:00:00", "08:00:01", "08:00:02"]);
    lane(bench, json!({"agent": "b", "policy": {"priority": 5}}), &["08:30:00"]);
    let node = bench.join("a");
    assert_eq!(agents(&bench.claim(node, 2)), ["a", "a"]);
    // Fifty minutes after its own due time it is the other's turn.
    bench.go("09:20:00.000001");
    assert_eq!(agents(&bench.claim(node, 1)), ["a"], "last served at 09:00");
    lane(bench, json!({"agent": "a", "policy": {"priority": 10}}), &["08:00:00"]);
    assert_eq!(agents(&bench.claim(node, 1)), ["a"], "an empty lane is forgotten");
    lane(bench, json!({"agent": "a", "policy": {"priority": 10}}), &["08:00:00", "08:00:01"]);
    assert_eq!(agents(&bench.claim(node, 2)), ["a", "b"]);
}

pub fn a_lane_waits_from_when_its_first_run_may_be_claimed(bench: &mut Bench) {
    // A retry is due when its rest is over, not when its slot was.
    lane(bench, json!({"agent": "a"}), &["08:00:00"]);
    let node = bench.join("a");
    let run = bench.start_one(node);
    bench.finish(&run, super::bench::failed(bench.now));
    lane(bench, json!({"agent": "b"}), &["09:00:30"]);
    bench.go("09:02:00");
    assert_eq!(agents(&bench.claim(node, ALL)), ["b", "a"]);
}

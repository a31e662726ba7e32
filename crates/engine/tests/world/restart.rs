//! Restarts: what was planned is planned, and what was done is done.

use punctual_core::journal::Body;
use serde_json::json;

use crate::support::{Way, World, minutes, seconds};

const LIVES: [&str; 12] = ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12"];

#[test]
fn restarts_in_the_middle_of_the_day_plan_nothing_twice() {
    for polite in [false, true] {
        let mut world = World::exclusive_at("08:30");
        world.node("0");
        let triggers = [
            json!({"cron": [{"expression": "*/5 * * * *"}]}),
            json!({"times": ["09:00", "12:00", "17:00"]}),
            json!({"every": {"interval": "7m", "anchor": "2026-01-05T08:30:00Z"}}),
            json!({"at": "2026-01-05T10:00:00Z"}),
        ];
        let policy = json!({"max_concurrent": 100});
        let ids = triggers.map(|trigger| world.create(json!({"trigger": trigger, "policy": policy})));
        let mut name = "0";
        for next in LIVES {
            world.advance(minutes(13));
            if polite {
                world.stop(name);
            } else {
                world.kill(name);
            }
            world.sleep(seconds(7));
            name = next;
            world.node(name);
            world.settle();
        }
        world.advance(minutes(10));
        let planned = world.entries().into_iter().filter_map(|entry| match entry.body {
            Body::Planned(plan) => Some(plan),
            _ => None,
        });
        let planned: Vec<_> = planned.collect();
        assert!(
            planned.iter().all(|plan| plan.withdrawn.is_empty() && plan.moved.is_empty()),
            "nothing was planned anew"
        );
        let count: usize = planned.iter().map(|plan| plan.runs.len()).sum();
        let runs: usize = ids.iter().map(|id| world.recorded(*id).len()).sum();
        assert_eq!(count, runs, "each run was planned once");
        for id in ids {
            assert!(1 <= world.every_slot_has_one_answer(id));
            let mut starts = world.starts(id);
            let all = starts.len();
            starts.dedup_by_key(|start| start.split(' ').next().unwrap().to_owned());
            assert_eq!(starts.len(), all, "{starts:?}");
        }
    }
}

#[test]
fn a_restarted_server_takes_its_own_runs_over_at_once() {
    let mut world = World::exclusive_at("08:59");
    world.node("a");
    world.work("reporter", Way::Stays);
    let id = world.create(json!({}));
    world.advance_to("09:00");
    world.kill("a");
    world.sleep(seconds(2));
    world.node("b");
    world.settle();
    assert_eq!(world.starts(id), ["09:00 at 09:00", "09:00 at 09:00:02"]);
}

#[test]
fn on_a_shared_store_a_dead_nodes_runs_are_taken_over_two_seconds_behind_its_lease() {
    let mut world = World::at("08:59");
    let a = world.node("a").id;
    world.work("reporter", Way::Stays);
    let id = world.create(json!({}));
    world.node("b").claims = false;
    world.advance_to("09:00");
    let lease_until = world.look(|state| state.nodes[&a].lease_until);
    world.kill("a");
    world.node("b").claims = true;
    world.advance(lease_until.duration_since(world.now) + seconds(1));
    assert_eq!(world.starts(id).len(), 1, "not before the lease has ended");
    world.advance(seconds(1));
    assert_eq!(world.starts(id).len(), 2, "and not later than two seconds behind it");
}

#[test]
fn a_node_that_stops_hands_its_planning_over_at_once() {
    let mut world = World::at("08:30");
    world.node("a");
    world.node("b");
    let id = world.create(json!({"trigger": {"cron": [{"expression": "* * * * *"}]}}));
    world.advance(minutes(2));
    world.stop("a");
    world.advance(minutes(2));
    let planner = world.look(|state| state.planner.unwrap().node);
    assert_eq!(planner, world.node("b").id);
    assert_eq!(world.every_slot_has_one_answer(id), 4);
    assert!(world.skips(id).is_empty());
}

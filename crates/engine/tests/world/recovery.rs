//! Recovery: a node that dies at any moment of it loses nothing, and catch-up is applied once.

use punctual_core::ScheduleId;
use serde_json::json;

use crate::support::{Fault, MINUTE, World, minutes};

/// Schedules of every kind of catch-up, after an outage from 23:01 to 02:10 that nobody has made up for. What it missed was
/// planned up to a quarter past midnight, and not behind.
fn after_an_outage() -> (World, Vec<ScheduleId>) {
    let mut world = World::exclusive_at("2026-01-04T23:00:00Z");
    world.node("before");
    let mut ids = vec![];
    for catch_up in ["none", "first", "latest", "all"] {
        ids.push(world.create(json!({
            "trigger": {"cron": [{"expression": "*/30 * * * *"}]},
            "policy": {
                "catch_up": {"mode": catch_up},
                "overlap": "allow",
                "max_concurrent": 100,
                "max_delay": "none",
                "retry": {"max_attempts": 100, "delay": "1s"},
            },
        })));
    }
    // Another one is switched off: the outage is not its own.
    let off = world.create(json!({}));
    world.disable(off);
    ids.push(off);
    world.advance(MINUTE);
    world.stop("before");
    world.sleep(minutes(189));
    (world, ids)
}

fn stories(world: &World, ids: &[ScheduleId]) -> Vec<Vec<String>> {
    ids.iter().map(|id| [world.story(*id), world.skips(*id)].concat()).collect()
}

/// Names for as many lives of a node as a test needs.
const LIVES: [&str; 12] = ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12"];

#[test]
fn a_node_that_dies_at_any_call_of_a_recovery_loses_nothing() {
    let (mut world, ids) = after_an_outage();
    let before = world.door.calls();
    world.node("b");
    world.settle();
    let calls = world.door.calls() - before;
    world.advance(minutes(2));
    let undisturbed = stories(&world, &ids);
    assert!(20 < calls, "a recovery has {calls} calls");
    for fault in [Fault::Refused, Fault::ReplyLost] {
        for number in 1..calls {
            let (mut world, ids) = after_an_outage();
            world.node("dies");
            world.door.break_call(number, fault);
            while world.round("dies").is_ok_and(|round| round.did) {}
            world.door.repair();
            world.kill("dies");
            world.node("b");
            world.advance(minutes(2));
            assert_eq!(stories(&world, &ids), undisturbed, "{fault:?} at call {number}");
            for id in &ids {
                world.every_slot_has_one_answer(*id);
            }
        }
    }
}

#[test]
fn ten_restarts_in_the_middle_of_a_recovery_apply_catch_up_once() {
    let (mut world, ids) = after_an_outage();
    world.node("b");
    world.advance(minutes(2));
    let undisturbed = stories(&world, &ids);
    for fault in [Fault::Refused, Fault::ReplyLost] {
        for first in 1..12 {
            let (mut world, ids) = after_an_outage();
            for (life, name) in LIVES.iter().take(10).enumerate() {
                world.node(name);
                world.door.break_call(first + life, fault);
                while world.round(name).is_ok_and(|round| round.did) {}
                world.door.repair();
                world.kill(name);
            }
            world.node("b");
            world.advance(minutes(2));
            assert_eq!(stories(&world, &ids), undisturbed, "{fault:?} from call {first} on");
            for id in &ids {
                world.every_slot_has_one_answer(*id);
            }
        }
    }
}

#[test]
fn restarts_that_are_outages_themselves_are_made_up_for_as_one() {
    // On a shared store, the next node has to wait for the lease, so that each restart makes the outage longer.
    let mut world = World::at("08:30");
    world.node("a");
    let id = world.create(json!({"trigger": {"cron": [{"expression": "* * * * *"}]}, "policy": {"overlap": "allow"}}));
    world.advance(MINUTE);
    world.stop("a");
    for name in LIVES.iter().take(10) {
        world.sleep(minutes(3));
        world.node(name);
        // It learns of the outage, and dies before it has written anything.
        world.door.break_all("plan", Fault::Refused);
        assert!(world.round(name).is_err());
        world.door.repair();
        world.kill(name);
    }
    world.sleep(minutes(3));
    world.node("b");
    world.settle();
    assert_eq!(world.starts(id), ["08:31 at 08:31", "09:04 at 09:04"]);
    assert_eq!(world.every_slot_has_one_answer(id), 34);
}

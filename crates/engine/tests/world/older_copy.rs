//! The store is replaced by an older copy of itself: nodes go by what is there, not by what they remember.

use punctual_store::memory::State;
use serde_json::json;

use crate::support::{Way, World, hours, now_or_never, seconds};

#[test]
fn a_version_that_was_lost_is_not_taken_for_the_one_that_came_in_its_place() {
    let mut world = World::at("09:05");
    world.node("a");
    let id = world.create(json!({}));
    world.settle();
    let copy = world.look(State::clone);
    world.edit(id, json!({"trigger": {"cron": [{"expression": "30 * * * *"}]}}));
    world.advance(hours(1));
    assert_eq!(world.starts(id), ["09:30 at 09:30"]);
    world.put_back(copy);
    // Its last renewal is lost, too.
    world.node("a").keeper.look_soon();
    world.edit(id, json!({"trigger": {"cron": [{"expression": "45 * * * *"}]}}));
    assert_eq!(world.schedule(id).version, 2, "as the one that was lost");
    world.advance(hours(24));
    assert!(world.starts(id).iter().all(|start| start.contains(":45 at ")), "{:?}", world.starts(id));
    world.every_slot_has_one_answer(id);
}

#[test]
fn a_run_is_not_handed_back_while_its_work_dies() {
    let mut world = World::at("08:59");
    world.node("a");
    world.work("reporter", Way::Stays);
    let id = world.create(json!({"trigger": {"cron": [{"expression": "0 9 * * *"}]}}));
    world.advance_to("09:00");
    let run = world.at_work(id);
    let copy = world.look(State::clone);
    world.put_back(copy);
    world.sleep(seconds(11));
    let (now, boot) = (world.now, world.boot());
    now_or_never(world.node("a").keeper.tick(now, boot)).unwrap();
    assert_eq!(world.state(run), "running", "nobody else may begin it yet");
    // By the next look it is dead.
    world.node("a").keep(now, boot).unwrap();
    world.sleep(seconds(2));
    let (now, boot) = (world.now, world.boot());
    world.node("a").keep(now, boot).unwrap();
    assert_ne!(world.state(run), "running");
}

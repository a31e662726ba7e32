//! Pauses that end by themselves: planning ends them, at their time, whatever happens meanwhile.

use punctual_core::schedule::ScheduleState;
use serde_json::json;

use crate::support::{MINUTE, World, at, hours, minutes};

/// An hourly schedule that is paused at 09:30.
fn paused_until(until: &str) -> (World, punctual_core::ScheduleId) {
    let mut world = World::at("08:30");
    world.node("a");
    let id = world.create(json!({}));
    world.advance_to("09:30");
    world.pause_until(id, at(until));
    (world, id)
}

#[test]
fn a_pause_ends_at_its_time_and_nobody_has_to_resume() {
    let (mut world, id) = paused_until("12:30");
    world.advance_to("12:29");
    assert!(matches!(world.schedule(id).state, ScheduleState::Paused(_)));
    assert_eq!(world.story(id), ["09:00 succeeded"]);
    world.advance_to("12:31");
    assert_eq!(world.schedule(id).state, ScheduleState::Active);
    assert_eq!(world.skips(id), ["paused×3 10:00..12:00"]);
    world.advance_to("14:30");
    assert_eq!(world.state(world.run_at(id, "13:00").id), "succeeded");
    assert_eq!(world.state(world.run_at(id, "14:00").id), "succeeded");
    world.every_slot_has_one_answer(id);
    // The journal says why.
    let told = world.entries().iter().filter(|entry| format!("{entry:?}").contains("pause ended")).count();
    assert_eq!(told, 1);
    assert!(world.is_sound().unwrap().is_empty());
}

#[test]
fn what_an_outage_misses_behind_the_end_of_a_pause_is_not_the_pause_s() {
    let (mut world, id) = paused_until("12:30");
    world.advance_to("11:30");
    world.outage(hours(4));
    world.advance_to("15:45");
    // 13:00 to 15:00 lie in the outage: the latest is made up for, as it would be without a pause.
    assert_eq!(world.skips(id)[0], "paused×3 10:00..12:00");
    assert_eq!(world.state(world.run_at(id, "15:00").id), "succeeded");
    assert_eq!(world.schedule(id).state, ScheduleState::Active);
    world.every_slot_has_one_answer(id);
    assert!(world.is_sound().unwrap().is_empty());
}

#[test]
fn an_outage_in_a_pause_does_not_lose_its_end() {
    let (mut world, id) = paused_until("14:30");
    world.advance_to("11:30");
    world.outage(hours(1));
    world.advance_to("15:30");
    assert_eq!(world.skips(id), ["paused×5 10:00..14:00"]);
    assert_eq!(world.state(world.run_at(id, "15:00").id), "succeeded");
    world.every_slot_has_one_answer(id);
}

#[test]
fn a_later_pause_moves_the_end_and_a_resume_comes_before_it() {
    let (mut world, id) = paused_until("12:30");
    world.advance_to("11:30");
    world.pause_until(id, at("13:30"));
    world.edit(id, json!({"name": "renamed"}));
    world.advance_to("12:45");
    assert!(matches!(world.schedule(id).state, ScheduleState::Paused(_)), "the old end is none any more");
    world.advance_to("13:31");
    assert_eq!(world.skips(id), ["paused×4 10:00..13:00"], "it keeps its beginning");

    let (mut world, id) = paused_until("12:30");
    world.advance_to("10:30");
    world.pause(id);
    world.advance_to("13:30");
    assert!(matches!(world.schedule(id).state, ScheduleState::Paused(_)), "a pause without an end has none");
    world.resume(id);
    world.advance(minutes(45));
    assert_eq!(world.state(world.run_at(id, "14:00").id), "succeeded");

    let (mut world, id) = paused_until("12:30");
    world.advance_to("10:30");
    world.resume(id);
    world.advance_to("12:30");
    world.advance(MINUTE);
    assert_eq!(world.skips(id), ["paused×1 10:00..10:00"]);
    assert_eq!(world.state(world.run_at(id, "12:00").id), "succeeded");
    world.every_slot_has_one_answer(id);
}

#[test]
fn a_pause_that_is_made_up_for_is_made_up_for_at_its_end() {
    let mut world = World::at("08:30");
    world.node("a");
    let id = world.create(json!({"policy": {"catch_up": {"mode": "latest", "covers_pauses": true}}}));
    world.advance_to("09:30");
    world.pause_until(id, at("12:30"));
    world.advance_to("12:45");
    assert_eq!(world.state(world.run_at(id, "12:00").id), "succeeded", "the latest slot of the pause");
    world.advance_to("13:30");
    assert_eq!(world.state(world.run_at(id, "13:00").id), "succeeded");
    world.every_slot_has_one_answer(id);
}

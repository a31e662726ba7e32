//! Nodes that stop, freeze or die: what they had, and who has it then.

use punctual_core::run::{Report, RunEvent};
use punctual_engine::claimer::Free;
use punctual_engine::holdings::Holdings;
use punctual_engine::runner::StopLevel;
use punctual_store::{AttemptReport, RunWritten, StoreError};
use serde_json::json;

use crate::support::{MINUTE, SECOND, Way, World, now_or_never, seconds};

#[test]
fn what_a_stopping_node_has_not_begun_is_given_back_at_once_with_its_attempt() {
    let mut world = World::at("08:59");
    world.node("a");
    let id = world.create(json!({}));
    world.advance_to("08:59:59");
    world.sleep(SECOND);
    world.claim("a");
    assert_eq!(world.story(id)[0], "09:00 claimed");
    world.stop("a");
    assert_eq!(world.story(id)[0], "09:00 planned");
    world.node("b");
    world.settle();
    let run = world.run_at(id, "09:00");
    assert_eq!((world.state(run.id).as_str(), run.state.tally().attempt), ("succeeded", 1));
}

#[test]
fn what_is_at_work_on_a_stopping_node_is_lost_by_the_rule_of_its_schedule() {
    for (after_loss, end) in [("retry", "running"), ("hold", "unknown")] {
        let mut world = World::at("08:59");
        world.node("a");
        world.work("reporter", Way::Stays);
        let id = world.create(json!({"policy": {"after_loss": after_loss}}));
        world.advance_to("09:00");
        world.stop("a");
        world.node("b");
        world.settle();
        assert_eq!(world.story(id)[0], format!("09:00 {end}"), "{after_loss}");
    }
}

#[test]
fn with_many_runs_at_work_a_stop_loses_none() {
    let mut world = World::at("08:59");
    world.node("a");
    world.work("reporter", Way::Stays);
    let ids: Vec<_> = (0..50).map(|_| world.create(json!({"policy": {"max_concurrent": 100}}))).collect();
    world.advance_to("09:00");
    assert_eq!(world.node("a").held.len(), 50);
    world.stop("a");
    world.work("reporter", Way::Succeeds);
    world.node("b");
    world.settle();
    for id in ids {
        assert_eq!(world.story(id)[0], "09:00 succeeded");
        assert_eq!(world.every_slot_has_one_answer(id), 1);
    }
}

#[test]
fn a_node_that_was_taken_for_dead_is_told_and_can_write_nothing() {
    let mut world = World::at("08:59");
    world.node("a");
    world.work("reporter", Way::Stays);
    let id = world.create(json!({}));
    world.advance_to("09:00");
    let run = world.run(world.at_work(id));
    let mut frozen = world.freeze("a");
    world.work("reporter", Way::Succeeds);
    world.node("b");
    world.advance(MINUTE);
    assert_eq!(world.state(run.id), "succeeded", "somebody else has done it");
    // It wakes up: every door is closed.
    let (now, boot) = (world.now, world.boot());
    assert!(matches!(frozen.keep(now, boot), Err(StoreError::LeaseEnded)));
    assert!(matches!(
        now_or_never(frozen.claimer.tick(now, Free::each(1), &frozen.holdings.hands())),
        Err(StoreError::LeaseEnded)
    ));
    assert!(matches!(now_or_never(frozen.planner.tick(now)), Err(StoreError::LeaseEnded)));
    let report =
        AttemptReport { run: run.id, epoch: run.epoch(), event: RunEvent::Succeeded, report: Report::default() };
    let written = now_or_never(world.shared().finish(now, vec![report])).unwrap();
    assert_eq!(written, [RunWritten::Stale]);
    assert_eq!(world.run(run.id).state.tally().attempt, 2);
    assert_eq!(frozen.holdings.fence(boot), StopLevel::Now);
}

#[test]
fn a_node_that_woke_up_before_anybody_took_it_for_dead_goes_on() {
    let mut world = World::at("08:59");
    world.node("a");
    world.work("reporter", Way::Stays);
    let id = world.create(json!({}));
    world.advance_to("09:00");
    let run = world.at_work(id);
    world.sleep(seconds(120));
    world.settle();
    world.finish(run);
    assert_eq!((world.state(run).as_str(), world.run(run).state.tally().attempt), ("succeeded", 1));
}

#[test]
fn work_is_fenced_by_the_boot_clock_whatever_the_wall_clock_says() {
    let mut world = World::at("09:00");
    world.node("a");
    world.settle();
    let level = |world: &mut World| {
        let boot = world.boot();
        world.node("a").holdings.fence(boot)
    };
    assert_eq!(level(&mut world), StopLevel::GoOn);
    world.set_clock(seconds(3_600));
    assert_eq!(level(&mut world), StopLevel::GoOn, "no time has passed");
    world.sleep(seconds(20));
    world.set_clock(seconds(-7_200));
    assert_eq!(level(&mut world), StopLevel::Ask, "a third of the lease is left");
    world.sleep(seconds(8));
    assert_eq!(level(&mut world), StopLevel::Now, "two seconds are left");
}

#[test]
fn on_a_store_of_its_own_a_node_has_nobody_to_fear() {
    let mut world = World::exclusive_at("09:00");
    world.node("a");
    world.settle();
    world.sleep(seconds(600));
    let boot = world.boot();
    assert_eq!(world.node("a").holdings.fence(boot), StopLevel::GoOn);
}

#[test]
fn the_fence_falls_before_the_lease_can_have_ended() {
    use std::time::Duration;
    for lease in [3, 5, 30, 90, 3_600].map(Duration::from_secs) {
        let holdings = Holdings::new(Some(lease));
        holdings.renewed(Duration::from_secs(10_000), lease);
        let level = |left: Duration| holdings.fence(Duration::from_secs(10_000) + lease - left);
        assert_eq!(level(lease / 3 + Duration::from_millis(1)), StopLevel::GoOn, "{lease:?}");
        assert_eq!(level(lease / 3), StopLevel::Ask, "{lease:?}");
        assert_eq!(level((lease / 10).min(Duration::from_secs(2))), StopLevel::Now, "{lease:?}");
    }
}

#[test]
fn a_lost_run_is_ended_at_once_where_it_still_goes_on() {
    let mut world = World::at("08:59");
    world.node("a");
    world.work("reporter", Way::Stays);
    let id = world.create(json!({}));
    world.advance_to("09:00");
    let run = world.at_work(id);
    // The store has given the run to nobody else, but it is not this node's any more.
    let epoch = world.run(run).epoch();
    let lost = AttemptReport { run, epoch, event: RunEvent::OwnerLost { at: world.now }, report: Report::default() };
    now_or_never(world.shared().finish(world.now, vec![lost])).unwrap();
    world.node("a").claims = false;
    world.advance(seconds(10));
    assert_eq!(world.node("a").stopped, [(run, StopLevel::Now)]);
    assert!(world.node("a").held.is_empty());
}

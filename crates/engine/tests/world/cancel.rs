//! Cancelling: in each state, and how it reaches the node that is at work.

use punctual_core::run::{FailureCode, Outcome, RunEvent, WaitFor};
use punctual_engine::runner::StopLevel;
use punctual_store::Cancellation;
use serde_json::json;

use crate::support::{HOUR, MINUTE, SECOND, Way, World, seconds};

#[test]
fn a_planned_run_is_cancelled_at_once_and_its_slot_does_not_come_back() {
    let mut world = World::at("08:30");
    world.node("a");
    let id = world.create(json!({}));
    let run = world.run_at(id, "09:00").id;
    assert_eq!(world.cancel(run), Cancellation::Done);
    world.edit(id, json!({"name": "renamed"}));
    world.outage(SECOND);
    world.advance(HOUR);
    assert_eq!(world.story(id)[0], "09:00 cancelled");
    assert_eq!(world.every_slot_has_one_answer(id), 1);
}

#[test]
fn a_claimed_run_is_cancelled_and_never_begins() {
    let mut world = World::at("08:59");
    world.node("a");
    let id = world.create(json!({}));
    world.advance_to("08:59:59");
    world.sleep(SECOND);
    world.claim("a");
    let run = world.run_at(id, "09:00").id;
    assert_eq!((world.state(run).as_str(), world.cancel(run)), ("claimed", Cancellation::Done));
    world.advance(MINUTE);
    assert_eq!((world.state(run).as_str(), world.starts(id).len()), ("cancelled", 0));
}

#[test]
fn a_running_run_is_asked_to_stop_with_the_next_renewal_and_not_tried_again() {
    let mut world = World::at("08:59");
    world.node("a");
    world.work("reporter", Way::Stays);
    let id = world.create(json!({}));
    world.advance_to("09:00");
    let run = world.at_work(id);
    assert_eq!(world.cancel(run), Cancellation::Asked);
    assert_eq!(world.cancel(run), Cancellation::Asked, "twice is once");
    assert_eq!(world.state(run), "running");
    world.advance(seconds(10));
    assert_eq!(world.node("a").stopped, [(run, StopLevel::Ask)]);
    assert_eq!((world.state(run).as_str(), world.run(run).state.tally().attempt), ("cancelled", 1));
    assert_eq!(world.cancel(run), Cancellation::Over(Outcome::Cancelled));
    world.advance(HOUR - MINUTE);
    assert_eq!(world.starts(id).len(), 1);
    assert_eq!(world.every_slot_has_one_answer(id), 1);
}

#[test]
fn whatever_its_node_reports_then_nothing_more_is_tried() {
    let failed = |at| RunEvent::Failed { at, code: FailureCode::Error, is_retryable: true, retry_after: None };
    type Report = fn(jiff::Timestamp) -> RunEvent;
    let reports: [(Report, &str); 3] = [
        (|_| RunEvent::Succeeded, "succeeded"),
        (|_| RunEvent::Cancelled, "cancelled"),
        (|at| RunEvent::Waits { on: WaitFor::Approval, wait_until: at + HOUR }, "cancelled"),
    ];
    for (report, end) in reports.into_iter().chain([(failed as Report, "cancelled")]) {
        let mut world = World::at("08:59");
        world.node("a");
        world.work("reporter", Way::Stays);
        let id = world.create(json!({}));
        world.advance_to("09:00");
        let run = world.at_work(id);
        world.cancel(run);
        let event = report(world.now);
        world.end(run, event);
        assert_eq!(world.state(run), end, "{event:?}");
    }
}

#[test]
fn a_called_off_run_whose_node_dies_is_cancelled_not_tried_again() {
    let mut world = World::at("08:59");
    world.node("a");
    world.work("reporter", Way::Stays);
    let id = world.create(json!({}));
    world.advance_to("09:00");
    let run = world.at_work(id);
    world.cancel(run);
    world.kill("a");
    world.node("b");
    world.advance(MINUTE);
    assert_eq!((world.state(run).as_str(), world.starts(id).len()), ("cancelled", 1));
}

#[test]
fn a_waiting_run_and_one_that_backs_off_are_cancelled_at_once() {
    for waits in [true, false] {
        let mut world = World::at("08:59");
        world.node("a");
        world.work("reporter", if waits { Way::Stays } else { Way::Fails });
        let id = world.create(json!({}));
        world.advance_to("09:00");
        if waits {
            let run = world.at_work(id);
            world.put_to_wait(run, WaitFor::Callback, HOUR);
        }
        let run = world.run_at(id, "09:00").id;
        assert_eq!(world.cancel(run), Cancellation::Done);
        world.advance(MINUTE * 50);
        assert_eq!((world.state(run).as_str(), world.starts(id).len()), ("cancelled", 1));
    }
}

#[test]
fn what_is_over_stays_as_it_is() {
    let mut world = World::at("08:59");
    world.node("a");
    let id = world.create(json!({}));
    world.advance_to("09:00");
    let run = world.run_at(id, "09:00").id;
    assert_eq!(world.cancel(run), Cancellation::Over(Outcome::Succeeded));
    assert_eq!(world.state(run), "succeeded");
}

#[test]
fn a_cancelled_run_frees_its_place_and_its_queue() {
    let mut world = World::at("08:59");
    world.node("a");
    world.work("reporter", Way::Stays);
    let id = world.create(json!({"trigger": {"cron": [{"expression": "0,5,10 9 * * *"}]}}));
    world.advance_to("09:10");
    assert_eq!(world.story(id), ["09:00 running", "09:05 planned", "09:10 planned"]);
    let second = world.run_at(id, "09:05").id;
    world.cancel(second);
    let first = world.at_work(id);
    world.cancel(first);
    world.advance(seconds(10));
    assert_eq!(world.story(id), ["09:00 cancelled", "09:05 cancelled", "09:10 running"]);
}

//! What a node cannot go on after: it ends, soon and with the reason, and takes its work with it. What passes is tried again.

use std::time::Duration;

use punctual_engine::node::NodeError;
use punctual_engine::runner::StopLevel;
use punctual_store::StoreError;

use crate::node::{Live, Work, once};
use crate::support::{Fault, World};

/// What a node at work ends with after a call of the store goes wrong; it must not take long.
async fn end_after(call: &'static str, fault: Fault) -> NodeError {
    let mut world = World::at("08:59:59");
    let id = once(&mut world, "slow");
    let mut live = Live::start(world, Work::Stubborn);
    live.pass(5).await;
    assert_eq!(live.world.starts(id).len(), 1, "{call}: it is at work");
    live.world.door.break_all(call, fault);
    // Planning looks at everything at least once a minute.
    let ended = tokio::time::timeout(Duration::from_secs(90), &mut live.node).await;
    let error = ended.unwrap_or_else(|_| panic!("{call}: the node goes on")).unwrap().expect_err("it says why");
    assert_eq!(live.levels(), [StopLevel::Now], "{call}: the work has ended");
    error
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_any_loop_ends_the_node_with_the_reason() {
    for (call, part) in [("renew", "work loop"), ("start", "work loop"), ("next_plan_at", "planning loop")] {
        let error = end_after(call, Fault::Panics).await;
        let told = format!("the {part} has panicked: the test wants {call} to panic");
        assert!(error.to_string().starts_with(&told), "{call}: {error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_has_failed_for_good_ends_the_node_whichever_loop_notices() {
    for call in ["renew", "start", "next_plan_at"] {
        let error = end_after(call, Fault::Broken).await;
        assert!(matches!(error, NodeError::Store(StoreError::Broken { .. })), "{call}: {error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_for_good_while_work_drains_does_not_wait_for_the_drain() {
    let mut world = World::at("08:59:59");
    world.settings.drain = punctual_core::Elapsed::from_seconds(3_600);
    once(&mut world, "slow");
    let mut live = Live::start(world, Work::Stubborn);
    live.pass(5).await;
    live.world.door.break_all("renew", Fault::Broken);
    live.shut_down();
    let ended = tokio::time::timeout(Duration::from_secs(60), &mut live.node).await;
    assert!(ended.expect("it does not wait").unwrap().is_err());
}

#[tokio::test(start_paused = true)]
async fn joining_is_tried_again_until_the_store_answers() {
    let mut world = World::at("08:59:59");
    let id = once(&mut world, "quick");
    world.door.break_all("join", Fault::Refused);
    let mut live = Live::start(world, Work::Succeeds);
    live.pass(120).await;
    assert!(!live.node.is_finished() && live.world.starts(id).is_empty());
    assert!(live.world.door.calls() < 12, "it rests longer each time: {} calls", live.world.door.calls());
    live.world.door.repair();
    live.pass(60).await;
    assert_eq!(live.world.starts(id).len(), 1);
    live.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_cannot_join_yet_can_be_stopped() {
    let world = World::at("08:59:59");
    world.door.break_all("join", Fault::Refused);
    let mut live = Live::start(world, Work::Succeeds);
    live.pass(50).await;
    assert!(live.stop().await <= 1);
}

#[tokio::test(start_paused = true)]
async fn joining_that_fails_for_a_lasting_reason_ends_the_node() {
    for fault in [Fault::Lasting, Fault::Broken, Fault::Panics] {
        let world = World::at("08:59:59");
        world.door.break_all("join", fault);
        let mut live = Live::start(world, Work::Succeeds);
        let ended = tokio::time::timeout(Duration::from_secs(30), &mut live.node).await;
        assert!(ended.unwrap_or_else(|_| panic!("{fault:?}: the node goes on")).unwrap().is_err());
    }
}

//! A store that refuses something for a lasting reason: what it refuses holds up none of the others, and is not tried for ever.

use jiff::Timestamp;
use punctual_core::ScheduleId;
use punctual_core::journal::{Attempt, Body};
use punctual_core::run::Report;
use serde_json::json;

use crate::node::{Live, Work, once};
use crate::support::{Refused, Way, World, hours, minutes, seconds};

fn poison() -> Report {
    Report { summary: Some("poison".to_owned()), ..Report::default() }
}

/// The attempts of a schedule that have ended.
fn attempts(world: &World, id: ScheduleId) -> Vec<Attempt> {
    let ended = world.entries().into_iter().filter_map(|entry| match entry.body {
        Body::AttemptEnded(attempt) if attempt.schedule == Some(id) => Some(*attempt),
        _ => None,
    });
    ended.collect()
}

fn hourly(world: &mut World, agent: &str) -> ScheduleId {
    world.create(json!({"trigger": {"cron": [{"expression": "0 * * * *"}]}, "work": {"agent": {"agent": agent}}}))
}

#[tokio::test(start_paused = true)]
async fn a_report_that_is_refused_is_a_failure_that_says_so_and_holds_up_nobody() {
    let mut world = World::at("08:59:59");
    let (poisonous, other) = (once(&mut world, "slow"), once(&mut world, "quick"));
    let later = world.create(json!({"trigger": {"at": "2026-01-05T09:00:20Z"}, "work": {"agent": {"agent": "quick"}}}));
    world.door.refuse(Refused::Summary("poison"));
    let mut live = Live::start(world, Work::Reports(poison));
    live.pass(10).await;
    assert_eq!(live.world.story(poisonous), ["09:00 failed(error)"]);
    assert_eq!(live.world.story(other), ["09:00 succeeded"]);
    let ended = attempts(&live.world, poisonous);
    let error = ended[0].report.error.as_ref().unwrap();
    assert_eq!((ended.len(), error.code.as_str()), (1, "report_refused"));
    assert!(error.message.contains("Summary"), "it says why: {}", error.message);
    live.pass(60).await;
    assert_eq!(live.world.starts(poisonous).len(), 1, "what was done is not done again");
    assert_eq!(live.world.story(later), ["09:00:20 succeeded"]);
    assert!(live.stop().await <= 1);
}

#[tokio::test(start_paused = true)]
async fn a_run_of_which_nothing_can_be_reported_rests_and_holds_up_nobody() {
    let mut world = World::at("08:59:59");
    let (stuck, other) = (once(&mut world, "slow"), once(&mut world, "quick"));
    let later = world.create(json!({"trigger": {"at": "2026-01-05T09:00:20Z"}, "work": {"agent": {"agent": "quick"}}}));
    world.door.refuse(Refused::Reports(world.runs(stuck)[0].id));
    let mut live = Live::start(world, Work::Succeeds);
    live.pass(60).await;
    assert_eq!(live.world.story(stuck), ["09:00 running"]);
    assert_eq!(
        (live.world.story(other), live.world.story(later)),
        (vec!["09:00 succeeded".to_owned()], vec!["09:00:20 succeeded".to_owned()])
    );
    live.world.door.accept_all();
    live.pass(40).await;
    assert_eq!(live.world.story(stuck), ["09:00 succeeded"], "nothing of it was lost");
    live.stop().await;
}

#[tokio::test(start_paused = true)]
async fn whatever_a_runner_reports_is_brought_to_what_stores_keep() {
    let hostile = || Report {
        summary: Some("a\0b".to_owned()),
        facts: json!({"k\0": ["\0"]}).as_object().unwrap().clone(),
        next_run_at: Some("2027-01-01T00:00:00.123456789Z".parse().unwrap()),
        output: "\0".to_owned(),
        ..Report::default()
    };
    let mut world = World::at("08:59:59");
    let id = world.create(json!({"work": {"agent": {"agent": "slow"}}}));
    let mut live = Live::start(world, Work::Reports(hostile));
    live.pass(10).await;
    let said = attempts(&live.world, id).remove(0).report;
    assert_eq!((said.summary.as_deref(), said.output.as_str()), (Some("a\u{2400}b"), "\u{2400}"));
    assert_eq!(json!(said.facts), json!({"k\u{2400}": ["\u{2400}"]}));
    let next = live.world.runs(id).into_iter().find(|run| !run.key.is_slot()).unwrap();
    let kept: Timestamp = "2027-01-01T00:00:00.123456Z".parse().unwrap();
    assert_eq!((next.scheduled_at, said.next_run_at), (kept, Some(kept)));
    live.stop().await;
}

#[test]
fn a_claim_that_is_refused_holds_up_its_own_agent_at_most() {
    let mut world = World::at("08:59");
    let (stuck, other) = (hourly(&mut world, "slow"), hourly(&mut world, "quick"));
    world.door.refuse(Refused::Claim("slow"));
    world.node("a");
    world.advance_to("10:30");
    assert_eq!(world.starts(other).len(), 2);
    assert_eq!(world.starts(stuck).len(), 0);
    world.door.accept_all();
    world.advance_to("10:31");
    assert_ne!(world.starts(stuck).len(), 0);
}

#[test]
fn a_start_that_is_refused_rests_and_holds_up_nobody() {
    let mut world = World::at("08:59");
    let (stuck, other) = (once(&mut world, "slow"), once(&mut world, "quick"));
    world.door.refuse(Refused::Start("slow"));
    world.node("a");
    world.advance_to("09:05");
    assert_eq!(world.story(other), ["09:00 succeeded"]);
    assert_eq!(world.story(stuck), ["09:00 planned"], "it has gone back, and no attempt is counted");
    world.door.accept_all();
    world.advance_to("09:11");
    assert_eq!(world.story(stuck), ["09:00 succeeded"]);
}

#[test]
fn a_plan_that_is_refused_holds_up_no_other_schedule() {
    for refuses_all in [false, true] {
        let mut world = World::at("08:59");
        let (stuck, other) = (hourly(&mut world, "slow"), hourly(&mut world, "quick"));
        world.node("a");
        world.settle();
        world.door.refuse(if refuses_all { Refused::AllPlans(stuck) } else { Refused::Plan(stuck) });
        world.advance(hours(30));
        assert_eq!(world.every_slot_has_one_answer(other), 30);
        assert!(world.starts(stuck).len() < 30, "it has no runs beyond the first day");
        world.door.accept_all();
        world.advance(minutes(20));
        assert_eq!(world.every_slot_has_one_answer(stuck), 31, "refuses all: {refuses_all}");
    }
}

#[test]
fn a_dead_node_that_cannot_be_removed_keeps_no_other_from_it() {
    let mut world = World::at("08:59");
    world.work("slow", Way::Stays);
    let id = once(&mut world, "slow");
    world.node("a");
    world.node("b");
    world.advance(minutes(2));
    assert_eq!(world.count_held(), 1);
    let holder = if world.node("a").held.is_empty() { "b" } else { "a" };
    let idle = if holder == "a" { "b" } else { "a" };
    let refused = world.node(idle).id;
    world.node("c").claims = false;
    world.settle();
    world.door.refuse(Refused::Burial(refused));
    world.kill("a");
    world.kill("b");
    world.node("c").claims = true;
    world.advance(seconds(60));
    assert!(world.story(id)[0].starts_with("09:00 r"), "{:?}", world.story(id));
    let left = world.look(|state| state.nodes.keys().copied().collect::<Vec<_>>());
    assert_eq!(left, [refused, world.node("c").id], "the others are removed");
    world.door.accept_all();
    world.advance(seconds(30));
    assert_eq!(world.look(|state| state.nodes.len()), 1);
}

//! Caps: how many runs may be at work, and which of those that wait go first.

use std::collections::BTreeMap;

use punctual_core::ScheduleId;
use punctual_core::plan::Limits;
use serde_json::{Value, json};

use crate::support::{MINUTE, SECOND, Way, World, minutes, seconds};

/// Six schedules are due at once and their work goes on: how many of them are at work on two nodes, and as one ends, how many
/// then.
fn check(limits: Limits, fields: &[Value], at_work: usize) {
    let mut world = World::at("08:59");
    world.limit(limits.clone());
    world.node("a");
    world.node("b");
    ["reporter", "quick", "slow"].into_iter().for_each(|agent| world.work(agent, Way::Stays));
    let ids: Vec<ScheduleId> = fields.iter().map(|fields| world.create(fields.clone())).collect();
    world.advance_to("09:00");
    assert_eq!(world.count_held(), at_work, "{limits:?}");
    // As each ends, another begins, and never more.
    for _ in 0..fields.len() {
        let running = ids.iter().flat_map(|id| world.runs(*id)).find(|run| run.owner().is_some());
        let Some(run) = running else { break };
        world.finish(run.id);
        world.advance(SECOND);
        assert!(world.count_held() <= at_work, "{limits:?}");
    }
    let done = ids.iter().filter(|id| world.story(**id)[0] == "09:00 succeeded").count();
    assert_eq!(done, fields.len(), "{limits:?}");
}

fn six(fields: Value) -> Vec<Value> {
    vec![fields; 6]
}

fn only(agents: &[(&str, u32)], projects: &[(&str, u32)], global: Option<u32>) -> Limits {
    let map = |caps: &[(&str, u32)]| -> BTreeMap<String, u32> {
        caps.iter().map(|(name, max)| ((*name).to_owned(), *max)).collect()
    };
    Limits { agents: map(agents), projects: map(projects), global }
}

#[test]
fn an_agent_runs_as_many_as_its_schedule_and_the_agent_both_allow() {
    for (schedule, agent, at_work) in [(1, None, 1), (3, None, 3), (3, Some(2), 2), (2, Some(5), 2), (9, Some(4), 4)] {
        let agents: Vec<(&str, u32)> = agent.map(|max| ("reporter", max)).into_iter().collect();
        check(only(&agents, &[], None), &six(json!({"policy": {"max_concurrent": schedule}})), at_work);
    }
}

#[test]
fn an_agents_cap_counts_its_runs_of_all_projects() {
    let fields: Vec<Value> =
        (0..6).map(|n| json!({"project": format!("p{n}"), "policy": {"max_concurrent": 2}})).collect();
    check(Limits::default(), &fields, 2);
}

#[test]
fn a_project_runs_as_many_as_it_may() {
    let fields: Vec<Value> = ["reporter", "quick", "slow"]
        .into_iter()
        .flat_map(|agent| [json!({"agent": {"agent": agent}}), json!({"agent": {"agent": agent}})])
        .map(|work| json!({"work": work, "project": "house", "policy": {"max_concurrent": 9}}))
        .collect();
    check(only(&[], &[("house", 2)], None), &fields, 2);
    check(only(&[], &[("other", 2)], None), &fields, 6);
}

#[test]
fn a_key_is_shared_across_agents_and_projects() {
    let fields: Vec<Value> = ["reporter", "quick", "slow", "reporter", "quick", "slow"]
        .into_iter()
        .enumerate()
        .map(|(n, agent)| {
            json!({
                "work": {"agent": {"agent": agent}},
                "project": format!("p{n}"),
                "policy": {"max_concurrent": 9, "concurrency": {"key": "account", "max": 2}},
            })
        })
        .collect();
    check(Limits::default(), &fields, 2);
}

#[test]
fn all_together_run_as_many_as_may_in_all() {
    check(only(&[], &[], Some(4)), &six(json!({"policy": {"max_concurrent": 9}})), 4);
    check(only(&[("reporter", 3)], &[], Some(4)), &six(json!({"policy": {"max_concurrent": 9}})), 3);
}

#[test]
fn a_node_runs_as_many_as_it_has_places() {
    let mut world = World::at("08:59");
    world.settings.places = 2;
    world.node("a");
    world.work("reporter", Way::Stays);
    let ids = [0; 6].map(|_| world.create(json!({"policy": {"max_concurrent": 9}})));
    world.advance_to("09:00");
    assert_eq!(world.node("a").held.len(), 2);
    world.node("b");
    world.settle();
    assert_eq!((world.node("b").held.len(), world.count_held()), (2, 4));
    world.work("reporter", Way::Succeeds);
    let held: Vec<_> = world.node("a").held.keys().copied().collect();
    held.into_iter().for_each(|run| world.finish(run));
    assert!(ids.iter().all(|id| world.story(*id)[0] != "09:00 planned"));
}

#[test]
fn a_waiting_run_takes_no_place() {
    let mut world = World::at("08:59");
    world.node("a");
    world.work("reporter", Way::Stays);
    let [first, second] = [0; 2].map(|_| world.create(json!({})));
    world.advance_to("09:00");
    let run = world.at_work(first);
    world.put_to_wait(run, punctual_core::run::WaitFor::Callback, minutes(30));
    assert_eq!([&world.story(first)[0], &world.story(second)[0]], ["09:00 waiting", "09:00 running"]);
}

#[test]
fn a_slow_agent_does_not_delay_another() {
    let mut world = World::at("08:30");
    world.settings.places = 4;
    world.node("a");
    world.work("slow", Way::Takes(minutes(50)));
    let work = |agent: &str| json!({"agent": {"agent": agent}});
    for _ in 0..20 {
        world.create(json!({
            "trigger": {"at": "2026-01-05T08:30:00Z"},
            "work": work("slow"),
            "policy": {"max_concurrent": 3, "priority": 10},
        }));
    }
    let quick = world.create(json!({
        "work": work("quick"),
        "trigger": {"cron": [{"expression": "* 9 * * *"}]},
        "policy": {"priority": 1},
    }));
    world.advance_to("10:00");
    let late: Vec<String> = world
        .starts(quick)
        .into_iter()
        .filter(|start| {
            let (slot, began) = start.split_once(" at ").unwrap();
            slot != began
        })
        .collect();
    assert_eq!(late, Vec::<String>::new());
    assert_eq!(world.every_slot_has_one_answer(quick), 60);
}

#[test]
fn a_higher_priority_goes_first() {
    let mut world = World::at("08:59");
    world.node("a");
    let ids: Vec<_> = (1..=10).map(|priority| world.create(json!({"policy": {"priority": priority}}))).collect();
    world.advance_to("09:00");
    let order = order_of_starts(&world, &ids);
    assert_eq!(order, [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
}

#[test]
fn what_a_person_asks_for_goes_before_what_a_clock_asks_for() {
    let mut world = World::at("08:59");
    world.node("a");
    world.work("reporter", Way::Stays);
    let busy = world.create(json!({"trigger": {"at": "2026-01-05T08:59:00Z"}}));
    let id = world.create(json!({"policy": {"overlap": "allow"}}));
    world.advance_to("09:00:30");
    let asked = world.trigger(id);
    world.settle();
    let run = world.at_work(busy);
    world.finish(run);
    assert_eq!((world.state(asked).as_str(), world.story(id)[0].as_str()), ("running", "09:00 planned"));
}

#[test]
fn who_waits_long_enough_goes_before_a_higher_priority() {
    // One level is worth ten minutes: what is due eleven minutes earlier goes before what is one level higher.
    for (minutes_earlier, first) in [(9, 1), (11, 0)] {
        let mut world = World::at("08:30");
        world.node("a");
        world.work("reporter", Way::Stays);
        let busy = world.create(json!({"trigger": {"at": "2026-01-05T08:30:00Z"}}));
        let early = world.now + minutes(30);
        let late = early + minutes(minutes_earlier);
        let ids = [
            world.create(json!({"trigger": {"at": early}, "policy": {"priority": 5}})),
            world.create(json!({"trigger": {"at": late}, "policy": {"priority": 6}})),
        ];
        world.advance(minutes(60));
        let run = world.at_work(busy);
        world.finish(run);
        assert_eq!(world.state(world.runs(ids[first])[0].id), "running", "{minutes_earlier} minutes earlier");
    }
}

#[test]
fn whoever_floods_the_queue_waits_for_himself() {
    let mut world = World::at("08:30");
    world.limit(only(&[], &[], Some(1)));
    world.node("a");
    for agent in ["slow", "quick"] {
        world.work(agent, Way::Takes(SECOND));
    }
    let work = |agent: &str| json!({"agent": {"agent": agent}});
    let mut once = |agent| {
        world.create(json!({
            "trigger": {"at": "2026-01-05T09:00:00Z"},
            "work": work(agent),
            "policy": {"max_concurrent": 9},
        }))
    };
    let many: Vec<_> = (0..60).map(|_| once("slow")).collect();
    let few = ["quick"; 3].map(once);
    world.advance_to("09:00:10");
    // They take turns: the three are done within the first six.
    assert!(few.iter().all(|id| world.story(*id)[0] == "09:00 succeeded"));
    world.advance(MINUTE + seconds(10));
    assert!(many.iter().all(|id| world.story(*id)[0] == "09:00 succeeded"));
}

/// Which schedule's run began first, second, and so on.
fn order_of_starts(world: &World, ids: &[ScheduleId]) -> Vec<usize> {
    let mut order = vec![];
    for entry in world.entries() {
        if let punctual_core::journal::Body::RunsStarted { runs } = entry.body {
            let of = |run| ids.iter().position(|id| world.find_run(run).and_then(|run| run.schedule) == Some(*id));
            order.extend(runs.into_iter().filter_map(of));
        }
    }
    order
}

//! Claims about limits: what is at work never exceeds one, at any commit.
#![expect(missing_docs, reason = "the names are the claims")]

use punctual_core::ScheduleId;
use punctual_core::run::{Run, RunEvent, WaitFor};
use serde_json::{Value, json};

use super::bench::{ALL, Bench, at};
use super::block_on;
use crate::Decision;

/// Plans `count` runs that have been due since 08:00, a second apart.
fn backlog(bench: &mut Bench, fields: Value, count: i64) -> ScheduleId {
    let schedule = bench.add(fields);
    let times: Vec<String> =
        (0..count).map(|n| (at("08:00:00") + jiff::SignedDuration::from_secs(n)).to_string()).collect();
    bench.plan(schedule, &times.iter().map(String::as_str).collect::<Vec<_>>());
    schedule
}

/// Claims all there is, one by one and at once, ends some, claims again: never more than `max` are held that count.
fn check_held(bench: &mut Bench, max: usize, counts: impl Fn(&Run) -> bool) {
    let node = bench.join("a");
    let mut ended = 0;
    for round in 0..6 {
        let claimed = bench.claim(node, if round % 2 == 0 { ALL } else { 1 });
        let held: Vec<Run> = bench.all_runs().into_iter().filter(|run| run.owner().is_some()).collect();
        let counted: Vec<&Run> = held.iter().filter(|run| counts(run)).collect();
        assert_eq!(counted.len(), max, "round {round}");
        for run in claimed.iter().filter(|run| !counts(run)) {
            bench.settle(run, Decision::Start);
        }
        // One place becomes free, each time in another way.
        let run = counted[0].clone();
        match round % 4 {
            0 => drop(bench.settle(&run, Decision::Skip(punctual_core::run::SkipReason::Overlap))),
            1 => drop(block_on(bench.store.cancel(bench.now, run.id, None)).unwrap()),
            2 => {
                bench.settle(&run, Decision::Start);
                bench.finish(&run, RunEvent::Succeeded);
            }
            _ => drop(bench.settle(&run, Decision::Wait { on: WaitFor::Approval, wait_until: at("12:00:00") })),
        }
        ended += 1;
        let is_held = |run: &Run| run.owner().is_some() && counts(run);
        assert_eq!(bench.all_runs().iter().filter(|run| is_held(run)).count(), max - 1, "after {ended}");
    }
}

pub fn an_agent_has_its_limit_over_all_projects(bench: &mut Bench) {
    backlog(bench, json!({"project": "p"}), 5);
    backlog(bench, json!({"project": "q", "policy": {"priority": 9}}), 5);
    backlog(bench, json!({"agent": "reader"}), 5);
    bench.limits.agents.insert("reporter".to_owned(), 3);
    check_held(bench, 3, |run| run.terms.work.agent() == "reporter");
}

pub fn a_schedule_lets_its_runs_start_only_below_its_own_limit(bench: &mut Bench) {
    backlog(bench, json!({"policy": {"max_concurrent": 2}}), 12);
    bench.limits.agents.insert("reporter".to_owned(), 3);
    check_held(bench, 2, |_| true);
}

pub fn the_smaller_of_the_schedules_and_the_agents_limit_counts(bench: &mut Bench) {
    // Seven of another schedule may run; those of the careful one start only while fewer than 2 of the agent do.
    let careful = backlog(bench, json!({"policy": {"max_concurrent": 2, "priority": 9}}), 4);
    backlog(bench, json!({"policy": {"max_concurrent": 7}}), 9);
    let node = bench.join("a");
    bench.limits.agents.insert("reporter".to_owned(), 5);
    let claimed = bench.claim(node, ALL);
    assert_eq!(claimed.len(), 5);
    assert_eq!(claimed.iter().filter(|run| run.schedule == Some(careful)).count(), 1, "then the others had their turn");
    let others: Vec<&Run> = claimed.iter().filter(|run| run.schedule != Some(careful)).collect();
    for run in claimed.iter().filter(|run| run.schedule == Some(careful)).chain(others[..2].iter().copied()) {
        bench.settle(run, Decision::Start);
        bench.finish(run, RunEvent::Succeeded);
    }
    // Two of the agent are at work: the careful one has no place, the other has three.
    let claimed = bench.claim(node, ALL);
    assert_eq!(claimed.len(), 3);
    assert!(claimed.iter().all(|run| run.schedule != Some(careful)));
}

pub fn a_project_has_its_limit(bench: &mut Bench) {
    backlog(bench, json!({"project": "p"}), 5);
    backlog(bench, json!({"project": "p", "agent": "reader"}), 5);
    backlog(bench, json!({"project": "q"}), 3);
    backlog(bench, json!({}), 3);
    bench.limits.projects.insert("p".to_owned(), 2);
    check_held(bench, 2, |run| run.terms.project.as_deref() == Some("p"));
    // What is in no project, or in another, has no limit here.
    assert!(bench.all_runs().iter().all(|run| run.terms.project.as_deref() == Some("p") || run.has_started));
}

pub fn runs_with_one_key_share_its_limit(bench: &mut Bench) {
    let key = |agent: &str, max: u32| json!({"agent": agent, "policy": {"concurrency": {"key": "db", "max": max}}});
    backlog(bench, key("reporter", 2), 5);
    backlog(bench, key("reader", 2), 5);
    backlog(bench, json!({"policy": {"concurrency": {"key": "other", "max": 9}}}), 3);
    check_held(bench, 2, |run| run.terms.concurrency.as_ref().is_some_and(|it| it.key == "db"));
}

pub fn there_is_a_limit_over_all(bench: &mut Bench) {
    backlog(bench, json!({"agent": "reader"}), 6);
    backlog(bench, json!({"agent": "writer", "project": "p"}), 6);
    bench.limits.global = Some(4);
    check_held(bench, 4, |_| true);
}

pub fn a_limit_of_none_at_all_lets_nothing_start(bench: &mut Bench) {
    backlog(bench, json!({"project": "p"}), 2);
    let node = bench.join("a");
    bench.limits.global = Some(0);
    assert!(bench.claim(node, ALL).is_empty());
    bench.limits.global = None;
    bench.limits.agents.insert("reporter".to_owned(), 0);
    assert!(bench.claim(node, ALL).is_empty());
    bench.limits.agents.clear();
    bench.limits.projects.insert("p".to_owned(), 0);
    assert!(bench.claim(node, ALL).is_empty());
    bench.limits.projects.clear();
    assert_eq!(bench.claim(node, ALL).len(), 2);
}

pub fn a_full_lane_does_not_stand_in_the_way_of_others(bench: &mut Bench) {
    backlog(bench, json!({"agent": "reader", "policy": {"max_concurrent": 1, "priority": 10}}), 50);
    backlog(bench, json!({"agent": "writer"}), 3);
    let node = bench.join("a");
    let agents: Vec<String> = bench.claim(node, ALL).iter().map(|run| run.terms.work.agent().to_owned()).collect();
    assert_eq!(agents, ["reader", "writer", "writer", "writer"]);
}

pub fn what_waits_holds_no_place(bench: &mut Bench) {
    backlog(bench, json!({"policy": {"max_concurrent": 1}}), 2);
    let node = bench.join("a");
    let first = bench.start_one(node);
    assert!(bench.claim(node, ALL).is_empty());
    bench.finish(&first, RunEvent::Waits { on: WaitFor::Callback, wait_until: at("12:00:00") });
    bench.start_one(node);
    // Going on needs a place like everybody else.
    block_on(bench.store.resume(bench.now, first.id, None, None)).unwrap();
    assert!(bench.claim(node, ALL).is_empty());
}

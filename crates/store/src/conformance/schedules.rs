//! Claims about schedules: reading them, and what edits and deletes do to their runs.
#![expect(missing_docs, reason = "the names are the claims")]

use punctual_core::run::{RunEvent, Terms};
use punctual_core::schedule::{Pause, PauseKind, Priority, Schedule, ScheduleState};
use punctual_core::{RunId, ScheduleId};
use serde_json::json;
use uuid::Uuid;

use super::bench::{ALL, Bench, at, change, change_of, failed, plan_entry};
use super::block_on;
use crate::{Decision, Expected, PlanWrite, RunWritten, ScheduleChange, StoreError, Written};

pub fn schedules_are_listed_by_id_page_by_page(bench: &mut Bench) {
    let ids: Vec<ScheduleId> = (0..5).map(|_| bench.add(json!({}))).collect();
    let page = |after, limit| {
        let schedules = block_on(bench.store.schedules(after, limit)).unwrap();
        schedules.iter().map(|schedule| schedule.id).collect::<Vec<_>>()
    };
    assert_eq!(page(None, 2), ids[..2]);
    assert_eq!(page(Some(ids[1]), 2), ids[2..4]);
    assert_eq!(page(Some(ids[3]), 2), ids[4..]);
    assert_eq!(page(None, ALL), ids);
    assert_eq!(page(Some(ids[4]), ALL), []);
    assert_eq!(block_on(bench.store.count_schedules()).unwrap(), 5);
    assert!(block_on(bench.store.schedule(ScheduleId(Uuid::nil()))).unwrap().is_none());
}

pub fn a_schedule_is_kept_as_it_was_written(bench: &mut Bench) {
    let schedule = bench.draft(json!({
        "name": "päivä \u{1f4c5} '; --",
        "project": "p",
        "zone": "Europe/Helsinki",
        "calendar": "office",
        "jitter": "30s",
        "bounds": {"start_at": "2026-01-01T00:00:00.000000001Z", "end_at": "9999-12-30T22:00:00Z", "max_runs": 9},
        "work": {"agent": {"agent": "reporter", "prompt": "say \"hi\"\n", "inputs": {"n": [1, 2.5, null, "\u{0}"]}}},
        "cursor": {"at": "2026-01-05T09:00:00.123456Z", "reached": {"Europe/Helsinki": "2026-01-05T11:00:00"}},
        "policy": {"priority": 10, "concurrency": {"key": "k", "max": 2}, "max_delay": {"duration": "5m"}},
    }));
    let write = PlanWrite {
        plan: Some(plan_entry(&schedule)),
        ..super::bench::change(ScheduleChange::Put(Box::new(schedule.clone())))
    };
    assert_eq!(bench.write(write), Written::Done);
    assert_eq!(bench.schedule(schedule.id), schedule);
}

pub fn an_edit_changes_the_terms_of_what_nobody_has_touched_and_nothing_else(bench: &mut Bench) {
    let schedule = bench.add(json!({}));
    let other = bench.due_run(json!({}));
    let node = bench.join("a");
    let times = ["08:00:00", "08:01:00", "08:02:00", "08:03:00", "08:04:00", "08:05:00"];
    let runs = bench.plan(schedule, &times);
    let manual = bench.manual_run(schedule);
    assert!(block_on(bench.store.ask(bench.now, manual.clone(), None)).unwrap());
    let claimed = bench.claim(node, 5);
    assert!(claimed.iter().zip(&runs).all(|(claimed, run)| claimed.id == *run));
    let handed_back = |parks| Decision::HandBack { due_at: bench.now, parks };
    bench.settle(&claimed[0], Decision::Start);
    bench.settle(&claimed[1], Decision::Start);
    bench.finish(&claimed[1], failed(bench.now));
    bench.settle(&claimed[3], handed_back(false));
    bench.settle(&claimed[4], handed_back(true));
    let before = bench.all_runs();

    bench.edit(schedule, |schedule| schedule.policy.priority = Priority::new(9).expect("it is in range"));
    let terms = Terms::of(&bench.schedule(schedule));
    let is_new = |id: RunId| {
        let run = bench.run(id);
        (run.version, *run.terms == terms)
    };
    // At work, in retry, claimed, handed back, parked, never claimed.
    assert_eq!(runs.iter().map(|run| is_new(*run).0).collect::<Vec<_>>(), [1, 1, 1, 2, 1, 2]);
    assert!(runs.iter().all(|run| is_new(*run).1 == (is_new(*run).0 == 2)));
    assert_eq!(is_new(manual.id), (1, false), "a person's request stays as it was asked");
    assert_eq!(is_new(other), (1, false));
    let after = bench.all_runs();
    assert!(before.iter().zip(&after).all(|(before, after)| before.state == after.state && before.id == after.id));
}

pub fn an_edit_keeps_the_count_of_runs_that_started(bench: &mut Bench) {
    let schedule = bench.add(json!({}));
    let node = bench.join("a");
    bench.plan(schedule, &["09:00:00", "09:00:01"]);
    bench.start_one(node);
    // What a client sends knows nothing of the count.
    bench.edit(schedule, |schedule| schedule.runs_started = 77);
    assert_eq!(bench.schedule(schedule).runs_started, 1);
    bench.pass(1);
    bench.start_one(node);
    assert_eq!(bench.schedule(schedule).runs_started, 2);
}

pub fn an_edit_is_a_conflict_for_who_read_the_version_before(bench: &mut Bench) {
    let schedule = bench.add(json!({}));
    let (late, _) = bench.plan_write(schedule, &["10:00:00"]);
    let before = bench.schedule(schedule);
    bench.edit(schedule, |schedule| schedule.name = Some("new".to_owned()));
    assert_eq!(bench.changes_nothing("a plan too late", |bench| bench.write(late)), Written::Conflict);
    let mut lost = before.clone();
    lost.version = 2;
    let lost = change_of(&before, ScheduleChange::Put(Box::new(lost)));
    assert_eq!(bench.changes_nothing("an edit too late", |bench| bench.write(lost)), Written::Conflict);
    assert_eq!(bench.schedule(schedule).name.as_deref(), Some("new"));
}

pub fn a_pause_is_an_edit_that_can_be_taken_back(bench: &mut Bench) {
    let schedule = bench.add(json!({}));
    let runs = bench.plan(schedule, &["17:00:00"]);
    let before = bench.schedule(schedule);
    let (kind, at, source) = (PauseKind::Paused, bench.now, "a person".to_owned());
    let mut paused = before.clone();
    paused.version = 2;
    paused.state =
        ScheduleState::Paused(Box::new(Pause { kind, at, source, reason: Some("holiday".to_owned()), until: None }));
    let mut plan = plan_entry(&paused);
    plan.withdrawn = runs;
    let write = PlanWrite { plan: Some(plan), ..change_of(&before, ScheduleChange::Put(Box::new(paused.clone()))) };
    assert_eq!(bench.write(write), Written::Done);
    assert_eq!(bench.schedule(schedule), paused);
    bench.edit(schedule, |schedule| schedule.state = ScheduleState::Active);
    let again = bench.plan(schedule, &["17:00:00"]);
    assert_eq!(bench.run(again[0]).version, 3);
}

pub fn deleting_withdraws_what_is_planned_and_lets_the_rest_end(bench: &mut Bench) {
    let schedule = bench.add(json!({}));
    let node = bench.join("a");
    let runs = bench.plan(schedule, &["08:00:00", "08:01:00", "17:00:00"]);
    let failing = bench.start_one(node);
    let waiting = bench.start_one(node);
    let seq = bench.seq();
    bench.delete(schedule, &runs[2..]);
    assert_eq!(bench.kinds_since(seq), ["planned", "schedule_deleted"]);
    assert!(block_on(bench.store.schedule(schedule)).unwrap().is_none());
    assert_eq!(block_on(bench.store.count_schedules()).unwrap(), 0);
    assert!(block_on(bench.store.zone_days()).unwrap().is_empty());
    assert!(bench.find(runs[2]).is_none());
    // The terms are the run's own: it is tried again, and ends.
    assert!(matches!(bench.finish(&failing, failed(bench.now)), RunWritten::Done(_)));
    assert!(matches!(bench.finish(&waiting, RunEvent::Succeeded), RunWritten::Done(_)));
    bench.pass(60);
    let claimed = bench.claimed(node, 1).runs.pop().expect("the retry is due");
    assert_eq!((claimed.run.id, claimed.schedule), (runs[0], None));
    bench.settle(&claimed.run, Decision::Start);
    assert!(matches!(bench.finish(&claimed.run, RunEvent::Succeeded), RunWritten::Done(_)));
}

pub fn a_deleted_schedule_takes_no_more_runs(bench: &mut Bench) {
    let schedule = bench.add(json!({}));
    let (late, _) = bench.plan_write(schedule, &["10:00:00"]);
    let manual = bench.manual_run(schedule);
    bench.delete(schedule, &[]);
    assert_eq!(bench.changes_nothing("a plan too late", |bench| bench.write(late)), Written::Conflict);
    let asked = bench.changes_nothing("a request too late", |bench| block_on(bench.store.ask(bench.now, manual, None)));
    assert!(matches!(asked, Err(StoreError::Journal(_))), "{asked:?}");
}

pub fn a_run_counts_for_its_schedule_once(bench: &mut Bench) {
    let schedule = bench.add(json!({}));
    let node = bench.join("a");
    bench.plan(schedule, &["09:00:00", "12:00:00"]);
    let count = |bench: &Bench| bench.schedule(schedule).runs_started;
    let claimed = bench.claim_one(node);
    assert_eq!(count(bench), 0, "a claim is no start");
    bench.settle(&claimed, Decision::HandBack { due_at: bench.now, parks: false });
    let first = bench.start_one(node);
    assert_eq!(count(bench), 1);
    bench.finish(&first, failed(bench.now));
    bench.pass(60);
    let second = bench.start_one(node);
    assert_eq!((second.id, count(bench)), (first.id, 1), "a retry is the same run");
    bench.finish(&second, RunEvent::Waits { on: punctual_core::run::WaitFor::Callback, wait_until: at("11:00:00") });
    block_on(bench.store.resume(bench.now, first.id, None, None)).unwrap();
    bench.start_one(node);
    assert_eq!(count(bench), 1, "going on is the same run");
    bench.go("12:00:00");
    bench.start_one(node);
    assert_eq!(count(bench), 2);
}

pub fn a_name_belongs_to_one_schedule_of_a_project(bench: &mut Bench) {
    let first = bench.add(json!({"name": "digest", "project": "news"}));
    let others = bench.draft(json!({"name": "digest"}));
    let written = |bench: &Bench, schedule: &Schedule| {
        let plan = Some(plan_entry(schedule));
        bench.write(PlanWrite {
            expected: Expected::New,
            plan,
            ..change(ScheduleChange::Put(Box::new(schedule.clone())))
        })
    };
    assert_eq!(written(bench, &others), Written::Done, "it has no project");
    for fields in [json!({"name": "digest", "project": "news"}), json!({"name": "digest"})] {
        let taken = bench.draft(fields);
        let refused = bench.changes_nothing("a name that is taken", |bench| written(bench, &taken));
        assert_eq!(refused, Written::Conflict);
    }
    let second = bench.add(json!({"name": "weekly", "project": "news"}));
    let mut renamed = bench.write_for(second);
    let mut schedule = bench.schedule(second);
    (schedule.name, schedule.version) = (Some("digest".to_owned()), 2);
    (renamed.change, renamed.plan) = (ScheduleChange::Put(Box::new(schedule.clone())), None);
    assert_eq!(bench.write(renamed.clone()), Written::Conflict);
    bench.edit(first, |schedule| schedule.name = Some("daily".to_owned()));
    assert_eq!(bench.write(renamed), Written::Done, "the name is free again");
    bench.delete(second, &[]);
    bench.add(json!({"name": "digest", "project": "news"}));
}

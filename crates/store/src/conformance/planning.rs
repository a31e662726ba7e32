//! Claims about the role [`crate::Plan`]: writing what planning decides.
#![expect(missing_docs, reason = "the names are the claims")]

use jiff::civil::date;
use punctual_core::ScheduleId;
use punctual_core::journal::{Body, SkipEntry};
use punctual_core::run::{Outcome, RunState, SkipReason};
use punctual_core::schedule::Cursor;
use serde_json::json;
use uuid::Uuid;

use super::bench::{ALL, Bench, ZONE_DATA, at, change, change_of, plan_entry, slot_key};
use super::block_on;
use crate::{Decision, Expected, PlanWrite, ScheduleChange, Written, ZONE_SHIFT_MAX};

pub fn planning_twice_from_one_cursor_plans_once(bench: &mut Bench) {
    let schedule = bench.add(json!({}));
    let (first, runs) = bench.plan_write(schedule, &["10:00:00", "11:00:00"]);
    // Another node has read the same cursor and made other ids.
    let (second, others) = bench.plan_write(schedule, &["10:00:00", "11:00:00"]);
    assert_eq!(bench.writes(vec![first, second]), [Written::Done, Written::Conflict]);
    assert!(runs.iter().all(|run| bench.state(*run) == "planned"));
    assert!(others.iter().all(|run| bench.find(*run).is_none()));
    assert_eq!(bench.schedule(schedule).cursor.at, at("11:00:00"));
}

pub fn a_conflict_changes_nothing(bench: &mut Bench) {
    let schedule = bench.add(json!({}));
    let node = bench.join("a");
    let runs = bench.plan(schedule, &["09:00:00", "10:00:00"]);
    bench.start_one(node);
    let other = bench.add(json!({}));
    let others = bench.plan(other, &["12:00:00"])[0];
    let fresh = bench.write_for(schedule);
    let plan = fresh.plan.clone().expect("it has a plan");
    let as_it_is = bench.schedule(schedule);
    let (new_run, _) = bench.plan_write(schedule, &["11:00:00"]);
    let new_runs = new_run.plan.clone().expect("it has a plan").runs;
    let missing = ScheduleId(Uuid::nil());

    let with_plan = |edit: &dyn Fn(&mut punctual_core::journal::PlanEntry)| {
        let mut plan = plan.clone();
        plan.runs = new_runs.clone();
        edit(&mut plan);
        PlanWrite { plan: Some(plan), ..fresh.clone() }
    };
    let expecting = |version, cursor_at: &str| {
        let cursor = punctual_core::schedule::Cursor::starting(at(cursor_at));
        PlanWrite {
            expected: Expected::At { schedule, version, cursor, early: Default::default(), outage: None },
            ..new_run.clone()
        }
    };
    let moved_at = |run, time: &str| punctual_core::journal::PlannedRun {
        id: run,
        scheduled_at: at(time),
        due_at: at(time),
        ..new_runs[0].clone()
    };
    let cases = [
        ("another version", expecting(2, "10:00:00")),
        ("another cursor", expecting(1, "09:59:59")),
        ("a schedule that exists as new", change(ScheduleChange::Put(Box::new(as_it_is.clone())))),
        (
            "a schedule that does not exist",
            change_of(&punctual_core::schedule::Schedule { id: missing, ..as_it_is.clone() }, ScheduleChange::None),
        ),
        ("a run for a slot that has one", with_plan(&|plan| plan.runs[0].key = slot_key(at("10:00:00")))),
        ("a run with an id that exists", with_plan(&|plan| plan.runs[0].id = runs[1])),
        ("one slot twice", with_plan(&|plan| plan.runs.push(moved_at(punctual_core::RunId(Uuid::max()), "12:00:00")))),
        ("a run at work withdrawn", with_plan(&|plan| plan.withdrawn = vec![runs[1], runs[0]])),
        ("a run at work moved", with_plan(&|plan| plan.moved = vec![moved_at(runs[0], "09:30:00")])),
        ("a run that is gone withdrawn", with_plan(&|plan| plan.withdrawn = vec![punctual_core::RunId(Uuid::max())])),
        ("a run at work cancelled", PlanWrite { cancelled: vec![runs[1], runs[0]], ..new_run.clone() }),
        (
            "a run that is gone cancelled",
            PlanWrite { cancelled: vec![punctual_core::RunId(Uuid::max())], ..new_run.clone() },
        ),
        (
            "a run withdrawn and moved",
            with_plan(&|plan| {
                (plan.withdrawn, plan.moved) = (vec![runs[1]], vec![moved_at(runs[1], "12:00:00")]);
            }),
        ),
        ("another schedule's run withdrawn", with_plan(&|plan| plan.withdrawn = vec![others])),
        ("another schedule's run moved", with_plan(&|plan| plan.moved = vec![moved_at(others, "12:30:00")])),
        ("another schedule's run cancelled", PlanWrite { cancelled: vec![others], ..new_run.clone() }),
        ("another schedule's plan", with_plan(&|plan| plan.schedule = other)),
        (
            "another schedule",
            PlanWrite { change: ScheduleChange::Put(Box::new(bench.schedule(other))), ..fresh.clone() },
        ),
        ("a plan of another version", with_plan(&|plan| plan.version = 7)),
        (
            "deleting and withdrawing what is at work",
            PlanWrite {
                change: ScheduleChange::Delete { withdrawn: vec![runs[1], runs[0]], next_gone: None },
                plan: None,
                ..fresh.clone()
            },
        ),
        (
            "deleting and planning",
            PlanWrite { change: ScheduleChange::Delete { withdrawn: vec![], next_gone: None }, ..fresh.clone() },
        ),
    ];
    for (what, write) in cases {
        let written = bench.changes_nothing(what, |bench| bench.write(write));
        assert_eq!(written, Written::Conflict, "{what}");
        assert_eq!(bench.schedule(schedule), as_it_is, "{what}");
    }
    assert_eq!(bench.write(new_run), Written::Done);
}

pub fn each_write_of_a_batch_is_whole_or_not_at_all(bench: &mut Bench) {
    let (one, two) = (bench.add(json!({})), bench.add(json!({})));
    let (good, first) = bench.plan_write(one, &["10:00:00"]);
    let (mut bad, second) = bench.plan_write(two, &["10:00:00"]);
    bad.plan.as_mut().expect("it has a plan").withdrawn = first.clone();
    bad.cancelled = vec![punctual_core::RunId(Uuid::max())];
    let (good_again, third) = bench.plan_write(two, &["11:00:00"]);
    assert_eq!(bench.writes(vec![good, bad, good_again]), [Written::Done, Written::Conflict, Written::Done]);
    assert_eq!(bench.state(first[0]), "planned");
    assert!(bench.find(second[0]).is_none());
    assert_eq!(bench.state(third[0]), "planned");
    assert_eq!(bench.schedule(two).cursor.at, at("11:00:00"));
}

pub fn a_later_write_of_a_batch_sees_the_earlier_ones(bench: &mut Bench) {
    let schedule = bench.draft(json!({}));
    let put =
        PlanWrite { plan: Some(plan_entry(&schedule)), ..change(ScheduleChange::Put(Box::new(schedule.clone()))) };
    let mut plan = plan_entry(&schedule);
    plan.cursor.at = at("10:00:00");
    let planned = PlanWrite { plan: Some(plan), ..change_of(&schedule, ScheduleChange::None) };
    assert_eq!(bench.writes(vec![put, planned]), [Written::Done, Written::Done]);
    assert_eq!(bench.schedule(schedule.id).cursor.at, at("10:00:00"));
}

pub fn an_edit_reaches_what_was_planned_just_before_in_the_same_batch(bench: &mut Bench) {
    let schedule = bench.add(json!({}));
    let (mut planned, runs) = bench.plan_write(schedule, &["10:00:00"]);
    let before = bench.schedule(schedule);
    planned.plan.as_mut().expect("it has a plan").cursor = before.cursor.clone();
    let mut after = before.clone();
    (after.version, after.project) = (2, Some("p".to_owned()).into());
    let plan = Some(plan_entry(&after));
    let edited = PlanWrite { plan, ..change_of(&before, ScheduleChange::Put(Box::new(after))) };
    assert_eq!(bench.writes(vec![planned, edited]), [Written::Done, Written::Done]);
    let run = bench.run(runs[0]);
    assert_eq!((run.version, run.terms.project.as_deref()), (2, Some("p")));
}

pub fn a_plan_is_one_transaction_with_its_entries(bench: &mut Bench) {
    let schedule = bench.add(json!({}));
    let [early, late] = bench.plan(schedule, &["10:00:00", "11:00:00"])[..] else { panic!("two runs") };
    let seq = bench.seq();
    let (mut write, new) = bench.plan_write(schedule, &["12:00:00"]);
    let skip = |version, reason| SkipEntry {
        schedule,
        version,
        agent: "reporter".to_owned(),
        project: None,
        first: slot_key(at("11:10:00")),
        first_at: at("11:10:00"),
        last: slot_key(at("11:50:00")),
        last_at: at("11:50:00"),
        count: 5,
        reason,
        pause: None,
        workflow: None,
    };
    let mut edited = bench.schedule(schedule);
    edited.version = 2;
    write.change = ScheduleChange::Put(Box::new(edited));
    write.skips = vec![skip(2, SkipReason::Calendar), skip(1, SkipReason::Paused)];
    write.cancelled = vec![early];
    let plan = write.plan.as_mut().expect("it has a plan");
    (plan.version, plan.withdrawn) = (2, vec![late]);
    assert_eq!(bench.write(write), Written::Done);
    // What was skipped under the version before stands before the new one.
    assert_eq!(bench.kinds_since(seq), ["skipped", "schedule_changed", "skipped", "planned", "run_changed"]);
    let reasons: Vec<_> = bench
        .entries()
        .into_iter()
        .filter_map(|entry| match entry.body {
            Body::Skipped(skip) => Some((skip.version, skip.reason)),
            _ => None,
        })
        .collect();
    assert_eq!(reasons, [(1, SkipReason::Paused), (2, SkipReason::Calendar)]);
    assert!(matches!(bench.run(early).state, RunState::Finished { outcome: Outcome::Cancelled, .. }));
    assert!(bench.find(late).is_none());
    assert_eq!(bench.state(new[0]), "planned");
    assert!(bench.entries().iter().skip(seq as usize).all(|entry| entry.at == bench.now));
}

pub fn a_withdrawn_slot_may_come_back(bench: &mut Bench) {
    let schedule = bench.add(json!({}));
    let runs = bench.plan(schedule, &["10:00:00", "11:00:00"]);
    // In the same write, and in a later one.
    let (mut write, again) = bench.plan_write(schedule, &["10:00:00"]);
    write.plan.as_mut().expect("it has a plan").withdrawn = runs.clone();
    assert_eq!(bench.write(write), Written::Done);
    assert!(runs.iter().all(|run| bench.find(*run).is_none()));
    assert_eq!(bench.state(again[0]), "planned");
    let later = bench.plan(schedule, &["11:00:00"]);
    assert_eq!(bench.state(later[0]), "planned");
}

pub fn a_cancelled_slot_lies_behind_the_cursor_and_stays_answered(bench: &mut Bench) {
    let schedule = bench.add(json!({}));
    let (again, _) = bench.plan_write(schedule, &["10:00:00"]);
    let run = bench.plan(schedule, &["10:00:00"])[0];
    block_on(bench.store.cancel(bench.now, run, None)).unwrap();
    // Whoever knew the cursor of before decides about the slot no more.
    let written = bench.changes_nothing("an answered slot", |bench| bench.write(again));
    assert_eq!(written, Written::Conflict);
    let mut withdraw = bench.write_for(schedule);
    withdraw.plan.as_mut().expect("it has a plan").withdrawn = vec![run];
    assert_eq!(bench.write(withdraw), Written::Conflict, "a cancelled run is not withdrawn");
    assert_eq!(bench.state(run), "cancelled");
}

pub fn a_slot_that_has_its_run_has_no_other_whatever_it_is_called(bench: &mut Bench) {
    let schedule = bench.add(json!({}));
    let node = bench.join("a");
    bench.plan(schedule, &["09:00:00", "10:00:00", "11:00:00"]);
    bench.start_one(node);
    for slot in ["09:00:00", "10:00:00", "11:00:00"] {
        let (again, _) = bench.plan_write(schedule, &[slot]);
        assert_eq!(bench.changes_nothing("a slot with a run", |bench| bench.write(again)), Written::Conflict, "{slot}");
    }
}

pub fn a_planned_run_moves_and_a_retry_keeps_its_time(bench: &mut Bench) {
    let schedule = bench.add(json!({}));
    let node = bench.join("a");
    let runs = bench.plan(schedule, &["09:00:00", "10:00:00"]);
    let running = bench.start_one(node);
    bench.finish(&running, super::bench::failed(bench.now));
    let mut write = bench.write_for(schedule);
    let mut moved = vec![bench.planned_run(schedule, at("09:30:00")), bench.planned_run(schedule, at("10:30:00"))];
    (moved[0].id, moved[1].id) = (runs[0], runs[1]);
    (moved[0].expires_at, moved[1].expires_at) = (Some(at("09:40:00")), Some(at("11:00:00")));
    write.plan.as_mut().expect("it has a plan").moved = moved;
    assert_eq!(bench.write(write), Written::Done);
    let untouched = bench.run(runs[1]);
    assert_eq!(untouched.key, slot_key(at("10:00:00")), "the slot is the same");
    assert_eq!(untouched.scheduled_at, at("10:30:00"));
    assert_eq!(untouched.due_at, at("10:30:00"));
    assert_eq!(untouched.planned_for(), Some(at("10:30:00")));
    assert_eq!(untouched.expires_at, Some(at("11:00:00")));
    let retry = bench.run(runs[0]);
    assert_eq!(retry.scheduled_at, at("09:30:00"));
    assert_eq!(retry.planned_for(), Some(at("09:01:00")), "a retry rests as long as its policy says");
    assert_eq!(retry.state.tally().attempt, 1);
    assert_eq!(retry.expires_at, None, "what has begun once is never too late any more");
}

pub fn what_has_been_touched_is_not_withdrawn_and_not_cancelled_with_its_plan(bench: &mut Bench) {
    let schedule = bench.add(json!({}));
    let node = bench.join("a");
    let runs = bench.plan(schedule, &["08:00:00", "08:10:00"]);
    let failing = bench.start_one(node);
    bench.finish(&failing, super::bench::failed(bench.now));
    let parked = bench.claim_one(node);
    bench.settle(&parked, Decision::HandBack { due_at: bench.now, parks: true });
    for run in runs {
        let mut write = bench.write_for(schedule);
        write.plan.as_mut().expect("it has a plan").withdrawn = vec![run];
        assert_eq!(bench.changes_nothing("withdrawing it", |bench| bench.write(write)), Written::Conflict);
        let write = PlanWrite { cancelled: vec![run], ..bench.write_for(schedule) };
        assert_eq!(bench.changes_nothing("cancelling it", |bench| bench.write(write)), Written::Conflict);
    }
}

pub fn what_planning_has_to_do_comes_earliest_first(bench: &mut Bench) {
    let ids: Vec<ScheduleId> = ["10:00:00", "08:00:00", "09:00:00"]
        .map(|time| {
            let id = bench.add(json!({}));
            let mut write = bench.write_for(id);
            write.plan.as_mut().expect("it has a plan").plan_at = Some(at(time));
            assert_eq!(bench.write(write), Written::Done);
            id
        })
        .into();
    let idle = bench.add(json!({}));
    let to_plan = |bench: &Bench, zone_data: &str, limit| {
        let tasks = block_on(bench.store.to_plan(bench.now, zone_data, limit)).unwrap();
        tasks.iter().map(|task| task.record.schedule.id).collect::<Vec<_>>()
    };
    assert_eq!(to_plan(bench, ZONE_DATA, ALL), [ids[1], ids[2]]);
    assert_eq!(to_plan(bench, ZONE_DATA, 1), [ids[1]]);
    assert_eq!(block_on(bench.store.next_plan_at()).unwrap(), Some(at("08:00:00")));
    // With other zone data every plan is to be looked at; what has no time of its own comes first.
    assert_eq!(to_plan(bench, "2026b", ALL), [idle, ids[1], ids[2], ids[0]]);
    let node = bench.join("a");
    block_on(bench.store.note_outage(bench.now, node, at("08:30:00"))).unwrap();
    // An outage is for those that have a slot in it, or whose next one is not known.
    assert_eq!(to_plan(bench, ZONE_DATA, ALL), [idle, ids[1], ids[2]]);
}

pub fn a_new_schedule_is_to_be_planned_at_once(bench: &mut Bench) {
    let schedule = bench.draft(json!({}));
    let id = schedule.id;
    assert_eq!(bench.write(change(ScheduleChange::Put(Box::new(schedule)))), Written::Done);
    let tasks = block_on(bench.store.to_plan(bench.now, ZONE_DATA, ALL)).unwrap();
    assert_eq!(tasks.len(), 1);
    assert_eq!((tasks[0].record.schedule.id, tasks[0].record.plan_at), (id, Some(bench.now)));
    assert_eq!(*tasks[0].record.zone_data, "");
}

pub fn a_schedule_at_rest_is_planned_again_when_a_run_starts_or_ends(bench: &mut Bench) {
    let run = bench.due_run(json!({}));
    let node = bench.join("a");
    assert_eq!(block_on(bench.store.next_plan_at()).unwrap(), None);
    let running = bench.start_one(node);
    assert_eq!(block_on(bench.store.next_plan_at()).unwrap(), Some(bench.now), "there may be room for another");
    let schedule = bench.run(run).schedule.unwrap();
    assert_eq!(bench.write(bench.write_for(schedule)), Written::Done);
    assert_eq!(block_on(bench.store.next_plan_at()).unwrap(), None);
    bench.pass(5);
    bench.finish(&running, punctual_core::run::RunEvent::Succeeded);
    assert_eq!(block_on(bench.store.next_plan_at()).unwrap(), Some(bench.now), "after run {run}");
}

pub fn a_task_counts_what_waits_and_what_lives(bench: &mut Bench) {
    let schedule = bench.add(json!({}));
    bench.add(json!({}));
    let node = bench.join("a");
    let runs = bench.plan(schedule, &["09:00:00", "09:00:01", "09:00:02", "09:00:03", "12:00:00"]);
    bench.pass(3);
    let counts = |bench: &Bench| {
        let subject = block_on(bench.store.subject(schedule, bench.now)).unwrap().expect("it exists");
        (subject.task.waiting, subject.task.live)
    };
    assert_eq!(counts(bench), (5, 5));
    let running = bench.start_one(node);
    assert_eq!(counts(bench), (4, 5));
    bench.claim_one(node);
    assert_eq!(counts(bench), (4, 5), "what is claimed and not begun waits");
    bench.finish(&running, super::bench::failed(bench.now));
    assert_eq!(counts(bench), (4, 5), "a retry has started once");
    block_on(bench.store.cancel(bench.now, runs[3], None)).unwrap();
    assert_eq!(counts(bench), (3, 4));
}

pub fn a_subject_has_what_is_planned_and_what_is_at_work_for_slots_ahead(bench: &mut Bench) {
    let schedule = bench.add(json!({}));
    let node = bench.join("a");
    let runs = bench.plan(schedule, &["08:00:00", "08:30:00", "12:00:00", "11:00:00"]);
    let finished = bench.start_one(node);
    bench.finish(&finished, punctual_core::run::RunEvent::Succeeded);
    bench.start_one(node);
    block_on(bench.store.cancel(bench.now, runs[2], None)).unwrap();
    let subject = |bench: &Bench, now| {
        let subject = block_on(bench.store.subject(schedule, now)).unwrap().expect("it exists");
        subject.runs.iter().map(|run| run.id).collect::<Vec<_>>()
    };
    assert_eq!(
        subject(bench, bench.now),
        [runs[1], runs[3]],
        "by due time; what is over is history; zone data may move what is past into the future"
    );
    let first = block_on(bench.store.subject(schedule, bench.now)).unwrap().expect("it exists").runs[0].clone();
    assert_eq!(first, bench.run(runs[1]));
    bench.edit(schedule, |schedule| schedule.cursor = Cursor::starting(at("08:30:00") + ZONE_SHIFT_MAX));
    assert_eq!(subject(bench, at("13:00:00")), [runs[1], runs[3]], "the time of either says how far it reaches");
    let much_later = at("13:00:00") + ZONE_SHIFT_MAX;
    assert_eq!(subject(bench, much_later), [runs[3]], "no zone data moves what is at work that far");
    assert!(block_on(bench.store.subject(ScheduleId(Uuid::nil()), bench.now)).unwrap().is_none());
}

pub fn a_day_begins_once_in_each_zone(bench: &mut Bench) {
    bench.add(json!({"zone": "Europe/Paris"}));
    bench.add(json!({"zone": "Asia/Tokyo"}));
    bench.add(json!({"zone": "Europe/Paris"}));
    let begin =
        |bench: &Bench, zone, day| block_on(bench.store.begin_day(bench.now, zone, date(2026, 1, day))).unwrap();
    assert!(begin(bench, "Europe/Paris", 5));
    for day in [5, 4] {
        assert!(!bench.changes_nothing("a day again", |bench| begin(bench, "Europe/Paris", day)), "{day}");
    }
    let days = block_on(bench.store.zone_days()).unwrap();
    let days: Vec<_> = days.iter().map(|day| (day.zone.as_str(), day.begun)).collect();
    assert_eq!(days, [("Asia/Tokyo", None), ("Europe/Paris", Some(date(2026, 1, 5)))]);
    assert!(begin(bench, "Asia/Tokyo", 5));
    assert!(begin(bench, "Europe/Paris", 6));
}

pub fn a_plan_whose_run_is_claimed_in_between_is_a_conflict(bench: &mut Bench) {
    let schedule = bench.add(json!({}));
    let node = bench.join("a");
    let runs = bench.plan(schedule, &["09:00:00"]);
    let mut write = bench.write_for(schedule);
    write.plan.as_mut().expect("it has a plan").withdrawn = runs;
    let claimed = bench.claim_one(node);
    assert_eq!(bench.write(write.clone()), Written::Conflict);
    // Handed back, nothing has happened to it: now it goes.
    bench.settle(&claimed, Decision::HandBack { due_at: bench.now, parks: false });
    assert_eq!(bench.write(write), Written::Done);
}

//! Claims about the role [`crate::Journal`]: what happened, in order, and how much of it is kept.
#![expect(missing_docs, reason = "the names are the claims")]

use jiff::Timestamp;
use punctual_core::journal::{Body, EndedRun, Entry, World};
use punctual_core::run::{Run, RunEvent, RunState, WaitFor};
use punctual_core::schedule::Priority;
use serde_json::json;
use uuid::Uuid;

use super::bench::{ALL, Bench, at, failed, said};
use super::block_on;
use crate::memory::MemoryStore;
use crate::{
    Decision, Head, HistoryFilter, HistoryItem, Journal, Nodes, RunFilter, RunWritten, Runs, Schedules, transfer,
};

/// A bit of everything: runs that end in several ways, one that waits, one in retry, one planned.
fn story(bench: &mut Bench) {
    let schedule = bench.add(json!({}));
    let known = block_on(bench.store.nodes()).unwrap().first().map(|node| node.id);
    let node = known.unwrap_or_else(|| bench.join("a"));
    let runs = bench.plan(schedule, &["08:00:00", "08:01:00", "08:02:00", "08:03:00", "12:00:00", "13:00:00"]);
    for event in [RunEvent::Succeeded, failed(bench.now)] {
        let run = bench.start_one(node);
        bench.report(&run, event, said("done"));
        bench.pass(1);
    }
    let skipped = bench.claim_one(node);
    bench.settle(&skipped, Decision::Skip(punctual_core::run::SkipReason::Budget));
    let waiting = bench.claim_one(node);
    bench.settle(&waiting, Decision::Wait { on: WaitFor::Approval, wait_until: at("20:00:00") });
    block_on(bench.store.cancel(bench.now, runs[4], None)).unwrap();
    block_on(bench.store.begin_day(bench.now, "UTC", jiff::civil::date(2026, 1, 5))).unwrap();
}

fn head(bench: &Bench) -> Head {
    block_on(bench.store.head()).unwrap()
}

fn prune(bench: &Bench, before: Timestamp) -> u64 {
    block_on(bench.store.prune(before)).unwrap()
}

fn verified(bench: &Bench) -> Vec<String> {
    block_on(bench.store.verify()).unwrap()
}

pub fn entries_are_numbered_without_gaps_in_the_order_of_writes(bench: &mut Bench) {
    assert_eq!(head(bench), Head::default());
    assert_eq!(bench.entries(), []);
    story(bench);
    let entries = bench.entries();
    assert!(entries.iter().enumerate().all(|(index, entry)| entry.seq == index as u64 + 1));
    assert!(entries.windows(2).all(|pair| pair[0].at <= pair[1].at));
    assert_eq!(head(bench).seq, entries.len() as u64);
    let part = |after, limit| block_on(bench.store.entries(after, limit)).unwrap();
    assert_eq!(part(3, 4), entries[3..7]);
    assert_eq!(part(entries.len() as u64, ALL), []);
    assert_eq!(part(u64::MAX, ALL), []);
}

pub fn the_head_is_the_checksum_over_all_entries(bench: &mut Bench) {
    story(bench);
    let chain = |before, entry: &Entry| entry.checksum(before);
    assert_eq!(head(bench).checksum, bench.entries().iter().fold(0, chain));
    let before = head(bench);
    bench.pass(60);
    assert_eq!(prune(bench, bench.now), before.seq);
    // What went is still in the sum.
    assert_eq!(head(bench).checksum, bench.entries().iter().fold(before.checksum, chain));
}

/// What entries come to behind a base.
fn fold(base: World, entries: &[Entry]) -> World {
    let mut world = base;
    entries.iter().for_each(|entry| world.apply(entry).unwrap());
    world
}

fn live_runs(bench: &Bench) -> Vec<Run> {
    block_on(bench.store.runs(&RunFilter { only_live: true, limit: ALL, ..RunFilter::default() })).unwrap()
}

fn history(bench: &Bench) -> Vec<HistoryItem> {
    block_on(bench.store.history(&HistoryFilter { limit: ALL, ..HistoryFilter::default() })).unwrap()
}

fn base(bench: &Bench) -> World {
    block_on(bench.store.base()).unwrap()
}

/// Everything of the present is what the base and the entries behind it come to.
fn check_fold(bench: &Bench) {
    let (base, entries) = (base(bench), bench.entries());
    assert_eq!(entries.first().map_or(bench.seq(), |entry| entry.seq - 1), base.seq, "entries begin behind the base");
    let world = fold(base, &entries);
    let mut runs: Vec<_> = world.live_runs().cloned().collect();
    runs.sort_by_key(|run| (run.scheduled_at, run.id));
    assert_eq!(live_runs(bench), runs);
    let schedules: Vec<_> = world.schedules.into_values().map(|record| record.schedule).collect();
    assert_eq!(block_on(bench.store.schedules(None, ALL)).unwrap(), schedules);
    assert_eq!(verified(bench), [""; 0]);
}

pub fn the_present_is_what_the_journal_folds_to(bench: &mut Bench) {
    story(bench);
    assert_eq!(base(bench), World::default());
    check_fold(bench);
    // What is over is no part of it: its last entries say what it came to.
    let ended: Vec<_> =
        bench.entries().iter().filter_map(EndedRun::of).map(|ended| (ended.id, ended.state())).collect();
    let over: Vec<_> = bench.all_runs().into_iter().filter(|run| run.ended_at.is_some()).collect();
    assert_eq!(ended.len(), 3);
    assert_eq!(over.len(), ended.len());
    assert!(over.iter().all(|run| ended.contains(&(run.id, run.state))));
}

pub fn the_base_is_what_went_and_the_rest_stands_on_it(bench: &mut Bench) {
    story(bench);
    let (first, all) = (bench.seq(), bench.entries());
    bench.pass(60);
    assert_eq!(prune(bench, at("09:00:00")), 0, "nothing is as old as that");
    assert_eq!(base(bench), World::default());
    let early = all.iter().take_while(|entry| entry.at < at("09:00:01")).count();
    assert_eq!(prune(bench, at("09:00:01")), early as u64);
    assert_eq!(base(bench), fold(World::default(), &all[..early]));
    assert_eq!(bench.entries(), all[early..]);
    check_fold(bench);
    story(bench);
    check_fold(bench);
    bench.pass(60);
    assert_eq!(prune(bench, bench.now - jiff::SignedDuration::from_secs(62)), first - early as u64);
    assert_eq!(base(bench), fold(World::default(), &all));
    check_fold(bench);
    let rest = bench.entries().len() as u64;
    assert_eq!(prune(bench, bench.now), rest);
    assert_eq!((bench.entries(), base(bench).seq), (vec![], bench.seq()));
    check_fold(bench);
    let kept = base(bench);
    assert_eq!(prune(bench, bench.now), 0, "there is nothing left to let go");
    assert_eq!(base(bench), kept);
}

/// What planning, nodes and people are told of the present.
fn present(bench: &Bench) -> impl PartialEq + std::fmt::Debug + use<> {
    let store = &*bench.store;
    let schedules = block_on(store.schedules(None, ALL)).unwrap();
    let subjects: Vec<_> = schedules.iter().map(|it| block_on(store.subject(it.id, bench.now)).unwrap()).collect();
    (
        (live_runs(bench), block_on(store.live_counts(bench.now)).unwrap()),
        (block_on(store.to_plan(bench.now, "2026b", ALL)).unwrap(), block_on(store.next_plan_at()).unwrap()),
        (block_on(store.zone_days()).unwrap(), block_on(store.nodes()).unwrap()),
        (schedules, subjects, block_on(store.tokens()).unwrap(), bench.seq()),
    )
}

pub fn pruning_changes_nothing_of_the_present(bench: &mut Bench) {
    story(bench);
    bench.pass(600);
    let before = present(bench);
    prune(bench, at("09:00:01"));
    assert_eq!(present(bench), before);
    prune(bench, bench.now);
    assert_eq!(present(bench), before);
    assert_eq!((bench.entries(), history(bench)), (vec![], vec![]));
}

pub fn everything_goes_on_when_all_entries_are_gone(bench: &mut Bench) {
    story(bench);
    let node = block_on(bench.store.nodes()).unwrap()[0].id;
    let runs = live_runs(bench);
    let [retry, waiting, planned] = &runs[..] else { panic!("three runs live: {runs:?}") };
    let schedule = planned.schedule.unwrap();
    bench.pass(600);
    prune(bench, bench.now);
    // A retry is claimed, started and ended; a wait goes on; what nobody has taken follows an edit.
    let running = bench.start_one(node);
    assert_eq!((running.id, running.state.tally().attempt, running.epoch()), (retry.id, 2, 2));
    prune(bench, bench.now + crate::MOMENT);
    assert!(matches!(bench.finish(&running, RunEvent::Succeeded), RunWritten::Done(_)));
    assert_eq!((bench.state(retry.id), bench.schedule(schedule).runs_started), ("succeeded", 2));
    bench.edit(schedule, |schedule| schedule.policy.priority = Priority::new(9).expect("it is in range"));
    assert_eq!((bench.run(planned.id).version, bench.run(planned.id).terms.priority.get()), (2, 9));
    prune(bench, bench.now + crate::MOMENT);
    assert!(matches!(
        block_on(bench.store.resume(bench.now, waiting.id, None, None)).unwrap(),
        RunWritten::Done(RunState::Planned { resumes: true, .. })
    ));
    assert_eq!(bench.start_one(node).id, waiting.id);
    bench.plan(schedule, &["15:00:00"]);
    block_on(bench.store.cancel(bench.now, planned.id, None)).unwrap();
    check_fold(bench);
    bench.pass(1);
    prune(bench, bench.now);
    check_fold(bench);
    bench.delete(schedule, &[]);
    check_fold(bench);
}

pub fn history_of_the_kept_part_stays(bench: &mut Bench) {
    story(bench);
    let first = history(bench);
    bench.pass(60);
    prune(bench, at("08:00:00"));
    assert_eq!(history(bench), first);
    story(bench);
    let both = history(bench);
    assert_eq!(both.len(), 2 * first.len());
    bench.pass(60);
    prune(bench, bench.now - jiff::SignedDuration::from_secs(62));
    let last = first.iter().map(|item| item.seq).max();
    let later: Vec<_> = both.into_iter().filter(|item| last < Some(item.seq)).collect();
    assert_eq!(history(bench), later, "the later half");
    prune(bench, bench.now);
    assert_eq!(history(bench), []);
}

pub fn an_empty_store_can_be_pruned(bench: &mut Bench) {
    for _ in 0..2 {
        assert_eq!(prune(bench, bench.now), 0);
        assert_eq!((base(bench), bench.seq()), (World::default(), 0));
    }
    check_fold(bench);
    story(bench);
    check_fold(bench);
}

pub fn a_large_world_is_pruned(bench: &mut Bench) {
    let schedule = bench.add(json!({}));
    let node = bench.join("a");
    let times: Vec<String> =
        (0..1_200).map(|n| (at("08:00:00") + jiff::SignedDuration::from_secs(n)).to_string()).collect();
    bench.plan(schedule, &times.iter().map(String::as_str).collect::<Vec<_>>());
    for run in bench.claim(node, 700) {
        bench.settle(&run, Decision::Skip(punctual_core::run::SkipReason::Budget));
    }
    let seq = bench.seq();
    bench.pass(1);
    assert_eq!(prune(bench, bench.now), seq);
    assert_eq!((base(bench).runs.len(), bench.all_runs().len()), (500, 500));
    check_fold(bench);
}

pub fn what_was_asked_for_and_happened_is_found_by_what_it_is_about(bench: &mut Bench) {
    let (schedule, other) = (bench.add(json!({})), bench.add(json!({})));
    let node = bench.join("a");
    bench.edit(schedule, |schedule| schedule.description = Some("once".to_owned()).into());
    bench.edit(schedule, |schedule| schedule.description = Some("twice".to_owned()).into());
    let slot = bench.plan(schedule, &["09:00:00"])[0];
    let skipped = bench.plan(schedule, &["09:00:01"])[0];
    let running = bench.start_one(node);
    assert_eq!(running.id, slot);
    bench.finish(&running, RunEvent::Waits { on: WaitFor::Callback, wait_until: at("20:00:00") });
    block_on(bench.store.resume(bench.now, slot, None, None)).unwrap();
    let running = bench.start_one(node);
    block_on(bench.store.cancel(bench.now, slot, None)).unwrap();
    bench.finish(&running, RunEvent::Cancelled);
    bench.pass(1);
    let claimed = bench.claim_one(node);
    bench.settle(&claimed, Decision::Skip(punctual_core::run::SkipReason::Late));
    let requested = bench.manual_run(schedule);
    block_on(bench.store.ask(bench.now, requested.clone(), None)).unwrap();
    block_on(bench.store.cancel(bench.now, requested.id, None)).unwrap();
    bench.delete(schedule, &[]);

    let about = |bench: &Bench, subjects: &[Uuid], each: usize, whose: Uuid| -> Vec<String> {
        let entries = block_on(bench.store.about(subjects, each)).unwrap();
        let mut its: Vec<&Entry> = entries.iter().filter(|entry| entry.body.subject() == Some(whose)).collect();
        assert!(its.is_sorted_by(|a, b| b.seq < a.seq), "the latest comes first");
        its.reverse();
        let word = |body: &Body| match body {
            Body::RunChanged(change) => change.event.name().to_owned(),
            body => body.kind().to_owned(),
        };
        its.iter().map(|entry| word(&entry.body)).collect()
    };
    let ids = [schedule.0, other.0, slot.0, skipped.0, requested.id.0, Uuid::nil()];
    let changed = "schedule_changed";
    for (whose, words) in [
        (schedule.0, &[changed, changed, changed, "schedule_deleted"][..]),
        (other.0, &[changed]),
        (slot.0, &["put to wait", "resumed", "asked to stop"]),
        (skipped.0, &[]),
        (requested.id.0, &["run_asked", "cancelled"]),
        (Uuid::nil(), &[]),
    ] {
        assert_eq!(about(bench, &ids, ALL, whose), words);
        assert_eq!(about(bench, &[whose], ALL, whose), words);
        let last = words.len().saturating_sub(2);
        assert_eq!(about(bench, &ids, 2, whose), words[last..], "so many for each");
        assert_eq!(about(bench, &ids, 0, whose), [""; 0]);
    }
    assert_eq!(block_on(bench.store.about(&[], ALL)).unwrap(), []);
    bench.pass(1);
    prune(bench, bench.now);
    assert_eq!(block_on(bench.store.about(&ids, ALL)).unwrap(), [], "what went is not told");
}

/// Everything that a store exports, and another takes in.
fn moved(bench: &Bench) -> MemoryStore {
    let mut file = vec![];
    let mut last = (0, 0);
    let count = block_on(transfer::export(&*bench.store, &mut file, |done, total| last = (done, total))).unwrap();
    assert_eq!(last.0, last.1, "progress comes to its end");
    let (new, imported) = MemoryStore::import(&mut &file[..], bench.now).unwrap();
    assert_eq!(imported, count);
    new
}

pub fn an_export_has_everything(bench: &mut Bench) {
    assert_eq!(block_on(moved(bench).verify()).unwrap(), [""; 0], "also when nothing has happened");
    story(bench);
    for _ in 0..3 {
        let new = moved(bench);
        let (before, after) = (bench.entries(), block_on(new.entries(0, ALL)).unwrap());
        assert_eq!(after[..before.len()], before[..], "the journal goes on where it was");
        assert!(matches!(after[before.len()].body, Body::Restored { .. }));
        assert_eq!(block_on(new.base()).unwrap(), base(bench));
        assert_eq!(block_on(new.schedules(None, ALL)).unwrap(), block_on(bench.store.schedules(None, ALL)).unwrap());
        let all = RunFilter { limit: ALL, ..RunFilter::default() };
        let (old_runs, new_runs) = (bench.all_runs(), block_on(new.runs(&all)).unwrap());
        assert_eq!(old_runs.len(), new_runs.len());
        for (old, new) in old_runs.iter().zip(&new_runs) {
            assert_eq!((old.id, &old.key, &old.terms), (new.id, &new.key, &new.terms));
            assert!(new.owner().is_none(), "nobody holds anything in the new house");
            assert!(if old.state.is_final() { old == new } else { old.epoch() < new.epoch() });
        }
        assert_eq!(block_on(new.verify()).unwrap(), [""; 0]);
        assert_eq!(block_on(new.nodes()).unwrap(), []);
        bench.pass(2);
        prune(bench, bench.now - jiff::SignedDuration::from_secs(3));
    }
}

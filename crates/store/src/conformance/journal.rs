//! Claims about the role [`crate::Journal`]: what happened, in order, and how much of it is kept.
#![expect(missing_docs, reason = "the names are the claims")]

use jiff::Timestamp;
use punctual_core::journal::{Body, Entry, World, checksum};
use punctual_core::run::{RunEvent, WaitFor};
use serde_json::json;

use super::bench::{ALL, Bench, at, failed, said};
use super::block_on;
use crate::{Decision, Head};

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
    block_on(bench.store.prune(bench.now, before)).unwrap()
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
    let chain = |before, entry: &Entry| {
        checksum(before, entry.seq, entry.at, &serde_json::to_string(&entry.body).expect("an entry is plain data"))
    };
    assert_eq!(head(bench).checksum, bench.entries().iter().fold(0, chain));
    let before = head(bench);
    bench.pass(60);
    assert_eq!(prune(bench, bench.now), before.seq);
    // What went is still in the sum.
    assert_eq!(head(bench).checksum, bench.entries().iter().fold(before.checksum, chain));
}

pub fn the_rows_are_what_the_journal_folds_to(bench: &mut Bench) {
    story(bench);
    let mut world = World::default();
    for entry in bench.entries() {
        world.apply(&entry).unwrap();
    }
    let mut runs: Vec<_> = world.runs.into_values().collect();
    runs.sort_by_key(|run| (run.scheduled_at, run.id));
    assert_eq!(bench.all_runs(), runs);
    let schedules: Vec<_> = world.schedules.values().map(|record| (*record.schedule).clone()).collect();
    assert_eq!(block_on(bench.store.schedules(None, ALL)).unwrap(), schedules);
    assert_eq!(verified(bench), [""; 0]);
}

pub fn runs_that_ended_long_ago_are_forgotten(bench: &mut Bench) {
    story(bench);
    let over = |bench: &Bench| bench.all_runs().iter().filter(|run| run.ended_at.is_some()).count();
    assert_eq!((bench.all_runs().len(), over(bench)), (6, 3));
    let forget = |bench: &Bench, before: &str| block_on(bench.store.forget_runs(bench.now, at(before))).unwrap();
    assert_eq!(bench.changes_nothing("nothing to forget", |bench| forget(bench, "09:00:00")), 0);
    let seq = bench.seq();
    assert_eq!(forget(bench, "09:00:01"), 1, "the one that ended at 09:00:00");
    assert_eq!(bench.kinds_since(seq), ["runs_forgotten"]);
    assert_eq!(forget(bench, "20:00:00"), 2);
    assert_eq!((bench.all_runs().len(), over(bench)), (3, 0), "what lives stays");
    assert_eq!(verified(bench), [""; 0]);
    let attempts = block_on(bench.store.history(&crate::HistoryFilter { limit: ALL, ..Default::default() })).unwrap();
    assert_eq!(attempts.len(), 4, "what happened is still told");
}

pub fn pruning_keeps_what_the_rows_need(bench: &mut Bench) {
    story(bench);
    let before = (bench.all_runs(), bench.seq());
    bench.pass(60);
    let first = bench.now;
    assert_eq!(prune(bench, first - crate::MOMENT), 0, "there is no checkpoint as old as that");
    assert_eq!(bench.entries()[0].seq, 1);
    story(bench);
    let seq = bench.seq();
    bench.pass(60);
    // Up to the checkpoint that was written then, and not to the one that is written now.
    assert_eq!(prune(bench, bench.now - jiff::SignedDuration::from_secs(1)), before.1);
    let entries = bench.entries();
    assert_eq!(entries[0].seq, before.1 + 1);
    assert!(matches!(entries[0].body, Body::Checkpoint(_)));
    assert!(entries.windows(2).all(|pair| pair[0].seq + 1 == pair[1].seq));
    assert!(seq < entries.last().expect("there are some").seq);
    assert_eq!(bench.all_runs().len(), 2 * before.0.len());
    assert_eq!(verified(bench), [""; 0]);
    let mut world = World::beginning_at(entries[0].seq);
    entries.iter().for_each(|entry| world.apply(entry).unwrap());
    let mut runs: Vec<_> = world.runs.into_values().collect();
    runs.sort_by_key(|run| (run.scheduled_at, run.id));
    assert_eq!(bench.all_runs(), runs, "the checkpoint is what went");
}

pub fn history_of_the_kept_part_stays(bench: &mut Bench) {
    let history = |bench: &Bench| {
        let filter = crate::HistoryFilter { limit: ALL, ..Default::default() };
        block_on(bench.store.history(&filter)).unwrap()
    };
    story(bench);
    let first = history(bench);
    bench.pass(60);
    prune(bench, at("08:00:00"));
    assert_eq!(history(bench), first);
    story(bench);
    let both = history(bench);
    assert_eq!(both.len(), 2 * first.len());
    bench.pass(60);
    prune(bench, bench.now - jiff::SignedDuration::from_secs(1));
    let last = first.iter().map(|item| item.seq).max();
    let later: Vec<_> = both.into_iter().filter(|item| last < Some(item.seq)).collect();
    assert_eq!(history(bench), later, "the later half");
    prune(bench, bench.now);
    assert_eq!(history(bench), []);
}

pub fn an_empty_store_can_be_pruned(bench: &mut Bench) {
    assert_eq!(prune(bench, bench.now), 0);
    assert_eq!(bench.kinds_since(0), ["checkpoint"]);
    assert_eq!(prune(bench, bench.now), 1);
    assert_eq!(verified(bench), [""; 0]);
    story(bench);
    assert_eq!(verified(bench), [""; 0]);
}

pub fn a_large_world_is_pruned_in_parts(bench: &mut Bench) {
    let schedule = bench.add(json!({}));
    let times: Vec<String> =
        (0..1_200).map(|n| (at("10:00:00") + jiff::SignedDuration::from_secs(n)).to_string()).collect();
    bench.plan(schedule, &times.iter().map(String::as_str).collect::<Vec<_>>());
    let seq = bench.seq();
    assert_eq!(prune(bench, bench.now), seq);
    assert_eq!(bench.kinds_since(0), ["checkpoint"; 4], "one with the schedule, three with runs");
    assert_eq!(verified(bench), [""; 0]);
    assert_eq!(prune(bench, bench.now), 4);
}

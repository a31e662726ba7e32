//! Backup and restore: a copy is one state of the database, and whoever held a run before it holds it no more.

mod sqlite_support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use punctual_core::journal::Body;
use punctual_core::run::{RunEvent, RunState};
use punctual_store::conformance::bench::at;
use punctual_store::conformance::{Bench, block_on};
use punctual_store::sqlite::{Restore, SqliteStore, restore};
use punctual_store::{Decision, Journal, RunWritten, StoreError};
use serde_json::json;
use sqlite_support::{Folder, assert_clean, findings, open, play};

#[test]
fn a_backup_of_a_store_in_use_is_one_state_of_it() {
    let folder = Folder::new();
    let store = Arc::new(open(&folder.database()));
    let ends = Arc::new(AtomicBool::new(false));
    let writer = {
        let (shared, ends) = (Arc::clone(&store), Arc::clone(&ends));
        std::thread::spawn(move || {
            let mut day = 1;
            while !ends.load(Ordering::Relaxed) {
                let date = jiff::civil::date(2026, 1, 1).checked_add(jiff::Span::new().days(day)).expect("a day");
                block_on(punctual_store::Plan::begin_day(&*shared, at("09:00:00"), "UTC", date)).expect("it writes");
                day += 1;
            }
            day
        })
    };
    for number in 0..3 {
        let copy = folder.path(&format!("copy-{number}.db"));
        let before = block_on(store.head()).expect("it reads");
        let mut told = vec![];
        store.backup(&copy, |done, total| told.push((done, total))).expect("a backup can be made");
        let after = block_on(store.head()).expect("it reads");
        assert!(told.last().is_some_and(|(done, total)| done == total && 0 < *total), "{told:?}");
        assert!(findings(&copy).is_empty());
        let reader = SqliteStore::open_read_only(&copy).expect("it opens");
        let head = block_on(reader.head()).expect("it reads");
        assert!(before.seq <= head.seq && head.seq <= after.seq);
        assert!(!folder.path(&format!("copy-{number}.db.part")).exists());
    }
    ends.store(true, Ordering::Relaxed);
    assert!(1 < writer.join().expect("it writes to the end"));
    assert_clean(&store);
}

#[test]
fn a_backup_overwrites_nothing() {
    let folder = Folder::new();
    let store = open(&folder.database());
    let copy = folder.path("copy.db");
    std::fs::write(&copy, "precious").expect("it can be written");
    assert!(store.backup(&copy, |_, _| {}).is_err());
    assert_eq!(std::fs::read_to_string(&copy).expect("it is there"), "precious");
}

#[test]
fn a_reader_can_make_a_backup_too() {
    let folder = Folder::new();
    play(&mut Bench::new(Box::new(open(&folder.database()))), 2, |_| {});
    let reader = SqliteStore::open_read_only(folder.database()).expect("it opens");
    reader.backup(folder.path("copy.db"), |_, _| {}).expect("a backup can be made");
    assert!(findings(&folder.path("copy.db")).is_empty());
}

#[test]
fn a_damaged_database_gives_no_backup() {
    let folder = Folder::new();
    let path = folder.database();
    play(&mut Bench::new(Box::new(open(&path))), 2, |_| {});
    let sqlite = rusqlite::Connection::open(&path).expect("it opens");
    sqlite.execute("UPDATE history SET agent = 'somebody'", []).expect("it can be changed");
    drop(sqlite);
    let reader = SqliteStore::open_read_only(&path).expect("it opens");
    let error = reader.backup(folder.path("copy.db"), |_, _| {}).expect_err("the copy does not verify");
    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
    assert!(!folder.path("copy.db").exists());
}

#[test]
fn whoever_held_a_run_before_a_restore_holds_it_no_more() {
    let folder = Folder::new();
    let (path, copy) = (folder.database(), folder.path("copy.db"));
    let mut bench = Bench::new(Box::new(open(&path)));
    let node = bench.join("a");
    bench.due_run(json!({"policy": {"after_loss": "retry"}}));
    bench.due_run(json!({"policy": {"after_loss": "retry"}}));
    let running = bench.start_one(node);
    let claimed = bench.claim_one(node);
    let reader = SqliteStore::open_read_only(&path).expect("it opens");
    reader.backup(&copy, |_, _| {}).expect("a backup can be made");
    drop(reader);
    // Time goes on behind the backup: the run is finished, and claimed by others.
    bench.finish(&running, RunEvent::Succeeded);
    let order = Restore { from: copy.clone(), to: path.clone(), now: at("10:00:00"), overwrites: true };
    let served = restore(&order, |_, _| {}).expect_err("the target is served");
    assert!(matches!(served, StoreError::InUse { .. }), "{served}");
    drop(bench);
    let there = restore(&Restore { overwrites: false, ..order.clone() }, |_, _| {}).expect_err("the target is there");
    assert!(!matches!(there, StoreError::InUse { .. }), "{there}");

    restore(&order, |_, _| {}).expect("it can be put back");
    assert!(findings(&path).is_empty());
    assert!(findings(&folder.path("punctual.db.replaced")).is_empty(), "what was there is kept");
    let mut bench = Bench::new(Box::new(open(&path)));
    bench.now = at("10:00:00");
    let floor = at("10:00:00").as_millisecond() as u64;
    for run in [&running, &claimed] {
        let found = bench.run(run.id);
        assert!(matches!(found.state, RunState::Planned { .. }), "{:?}", found.state);
        assert!(floor <= found.epoch());
        assert_eq!(bench.finish(run, RunEvent::Succeeded), RunWritten::Stale);
        assert_eq!(bench.settle(run, Decision::Start), RunWritten::Stale);
    }
    let entries = bench.entries();
    let is_restored = |body: &Body| matches!(body, Body::Restored { epoch_floor } if *epoch_floor == floor);
    assert!(entries.iter().any(|entry| is_restored(&entry.body)));
    let node = bench.join("b");
    let again = bench.claim_one(node);
    assert!(floor < again.epoch());
}

#[test]
fn a_restore_makes_a_database_where_there_is_none() {
    let folder = Folder::new();
    play(&mut Bench::new(Box::new(open(&folder.database()))), 2, |_| {});
    let to = folder.path("new.db");
    let order = Restore { from: folder.database(), to: to.clone(), now: at("12:00:00"), overwrites: false };
    let mut told = 0;
    restore(&order, |_, _| told += 1).expect("it can be put back");
    assert!(0 < told);
    assert_clean(&open(&to));
}

#[test]
fn a_damaged_copy_is_not_put_back() {
    let folder = Folder::new();
    let (path, copy) = (folder.database(), folder.path("copy.db"));
    play(&mut Bench::new(Box::new(open(&path))), 2, |_| {});
    open(&path).backup(&copy, |_, _| {}).expect("a backup can be made");
    let sqlite = rusqlite::Connection::open(&copy).expect("it opens");
    sqlite
        .execute("UPDATE journal SET detail = detail || ' ' WHERE first = (SELECT max(first) FROM journal)", [])
        .expect("it can be changed");
    drop(sqlite);
    let head = block_on(open(&path).head()).expect("it reads");
    let order = Restore { from: copy, to: path.clone(), now: at("12:00:00"), overwrites: true };
    assert!(matches!(restore(&order, |_, _| {}), Err(StoreError::Damaged { .. })));
    assert_eq!(block_on(open(&path).head()).expect("it reads"), head, "the database is as it was");
}

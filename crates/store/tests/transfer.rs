//! Moving house: what one store exports, every other one takes in, and it is the same.

mod postgres_support;
mod sqlite_support;

use std::io::BufReader;

use jiff::Timestamp;
use punctual_core::journal::{Body, Entry};
use punctual_core::run::RunState;
use punctual_store::conformance::{Bench, block_on};
use punctual_store::postgres::{self, PostgresStore};
use punctual_store::sqlite::{self, SqliteStore};
use punctual_store::{Journal, RunFilter, Store, StoreError, transfer};
use sqlite_support::{Folder, play};

const ALL: usize = 1_000_000;

fn exported(store: &dyn Store) -> Vec<u8> {
    let mut file = vec![];
    let mut last = (0, 0);
    let entries = block_on(transfer::export(store, &mut file, |done, total| last = (done, total))).unwrap();
    assert_eq!(last, (entries, entries), "progress comes to its end");
    file
}

fn entries(store: &dyn Store) -> Vec<Entry> {
    block_on(store.entries(0, ALL)).unwrap()
}

fn later(store: &dyn Store) -> Timestamp {
    entries(store).last().unwrap().at + jiff::SignedDuration::from_secs(60)
}

/// What is the same in both houses: all but who holds what, and under which epoch.
fn check_same(old: &dyn Store, new: &dyn Store) {
    let before = entries(old);
    let after = entries(new);
    assert_eq!(after[..before.len()], before[..], "the journal goes on where it was");
    assert!(matches!(after[before.len()].body, Body::Restored { .. }));
    assert_eq!(block_on(old.schedules(None, ALL)).unwrap(), block_on(new.schedules(None, ALL)).unwrap());
    let filter = RunFilter { limit: ALL, ..RunFilter::default() };
    let (old_runs, new_runs) = (block_on(old.runs(&filter)).unwrap(), block_on(new.runs(&filter)).unwrap());
    assert_eq!(old_runs.len(), new_runs.len());
    for (old, new) in old_runs.iter().zip(&new_runs) {
        assert_eq!((old.id, &old.key, old.scheduled_at), (new.id, &new.key, new.scheduled_at));
        assert!(new.owner().is_none(), "nobody holds anything in the new house");
        match old.state {
            RunState::Finished { .. } => assert_eq!(old, new),
            _ => assert!(old.epoch() < new.epoch() || new.state.is_final()),
        }
    }
    assert_eq!(block_on(new.verify()).unwrap(), [] as [String; 0]);
    assert!(block_on(new.nodes()).unwrap().is_empty());
}

#[test]
fn everything_moves_from_sqlite_to_postgres_and_back() {
    for rounds in [7, 20] {
        let folder = Folder::new();
        let path = folder.database();
        play(&mut Bench::new(Box::new(sqlite_support::open(&path))), rounds, |_| {});
        let old = SqliteStore::open(&path).unwrap();
        let file = exported(&old);
        let address = postgres_support::fresh_schema();
        postgres::import(&mut BufReader::new(&file[..]), &address, later(&old), |_, _| {}).unwrap();
        let new = PostgresStore::open(&address).unwrap();
        check_same(&old, &new);

        let file = exported(&new);
        let back = Folder::new();
        let path = back.database();
        sqlite::import(&mut BufReader::new(&file[..]), &path, later(&new), |_, _| {}).unwrap();
        check_same(&new, &SqliteStore::open(&path).unwrap());
    }
}

#[test]
fn a_journal_that_stands_on_a_base_moves_too() {
    let folder = Folder::new();
    let path = folder.database();
    let mut bench = Bench::new(Box::new(sqlite_support::open(&path)));
    play(&mut bench, 9, |_| {});
    let all = entries(&*bench.store);
    block_on(bench.store.prune(all[all.len() / 2].at)).unwrap();
    assert!(1 < entries(&*bench.store)[0].seq);
    let file = exported(&*bench.store);
    let address = postgres_support::fresh_schema();
    postgres::import(&mut BufReader::new(&file[..]), &address, later(&*bench.store), |_, _| {}).unwrap();
    check_same(&*bench.store, &PostgresStore::open(&address).unwrap());
}

#[test]
fn what_has_data_already_is_not_imported_into() {
    let folder = Folder::new();
    let path = folder.database();
    play(&mut Bench::new(Box::new(sqlite_support::open(&path))), 7, |_| {});
    let old = SqliteStore::open(&path).unwrap();
    let (file, now) = (exported(&old), later(&old));
    drop(old);
    let again = sqlite::import(&mut BufReader::new(&file[..]), &path, now, |_, _| {}).unwrap_err();
    assert!(format!("{again:?}").contains("exists already"), "{again:?}");
    let address = postgres_support::fresh_schema();
    postgres::import(&mut BufReader::new(&file[..]), &address, now, |_, _| {}).unwrap();
    let again = postgres::import(&mut BufReader::new(&file[..]), &address, now, |_, _| {}).unwrap_err();
    assert!(again.to_string().contains("has data already"), "{again}");
}

#[test]
fn a_file_that_is_not_whole_leaves_nothing_behind() {
    let folder = Folder::new();
    let path = folder.database();
    play(&mut Bench::new(Box::new(sqlite_support::open(&path))), 7, |_| {});
    let old = SqliteStore::open(&path).unwrap();
    let (file, now) = (exported(&old), later(&old));
    let text = String::from_utf8(file).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let without_end = lines[..lines.len() - 1].join("\n");
    let cut = lines[..lines.len() / 2].join("\n");
    let without_one = [&lines[..5], &lines[6..]].concat().join("\n");
    let cases = [
        ("", "no export"),
        ("{}\n", "no export"),
        (&*without_end, "cut off"),
        (&*cut, "ends after"),
        (&*without_one, "line 6"),
    ];
    let address = postgres_support::fresh_schema();
    for (text, why) in cases {
        let other = Folder::new();
        let to = other.database();
        let told = |error: StoreError| format!("{error} {error:?}");
        let refused = told(sqlite::import(&mut BufReader::new(text.as_bytes()), &to, now, |_, _| {}).unwrap_err());
        assert!(refused.contains(why), "{why}: {refused}");
        assert!(!to.exists());
        let refused =
            told(postgres::import(&mut BufReader::new(text.as_bytes()), &address, now, |_, _| {}).unwrap_err());
        assert!(refused.contains(why), "{why}: {refused}");
    }
    let new = PostgresStore::open(&address).unwrap();
    assert_eq!(block_on(new.head()).unwrap().seq, 0);
    // What failed once is not in the way of the next try.
    drop(new);
    postgres::import(&mut BufReader::new(text.as_bytes()), &address, now, |_, _| {}).unwrap();
}

#[test]
fn a_store_in_which_nothing_has_happened_moves_too() {
    let file = exported(&postgres_support::fresh_store());
    let folder = Folder::new();
    let path = folder.database();
    let now = "2026-01-05T09:00:00Z".parse().unwrap();
    assert_eq!(sqlite::import(&mut BufReader::new(&file[..]), &path, now, |_, _| {}).unwrap(), 0);
    assert_eq!(block_on(SqliteStore::open(&path).unwrap().verify()).unwrap(), [] as [String; 0]);
}

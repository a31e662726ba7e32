//! Sums of history in a file: exact at every moment, for every reader and after every crash.

mod sqlite_support;

use std::path::Path;

use punctual_core::run::RunEvent;
use punctual_store::conformance::bench::at;
use punctual_store::conformance::{Bench, block_on};
use punctual_store::sqlite::SqliteStore;
use punctual_store::{History, HistoryFilter};
use serde_json::json;
use sqlite_support::{Folder, assert_clean, copy_files, findings, open};

/// Lets so many runs succeed.
fn succeed(bench: &mut Bench, runs: usize) {
    let node = bench.join("a");
    for _ in 0..runs {
        bench.due_run(json!({"project": "p"}));
        let run = bench.start_one(node);
        bench.pass(1);
        bench.finish(&run, RunEvent::Succeeded);
    }
}

/// How many runs the sums know, and how many the history.
fn counted(store: &SqliteStore) -> (u64, u64) {
    let totals = block_on(store.totals(&HistoryFilter::default())).expect("it can be read");
    let counted = block_on(store.count_history(&HistoryFilter::default())).expect("it can be read");
    (totals.iter().map(|total| total.runs).sum(), counted)
}

/// Brings the snapshot to the end of the journal: nothing is as old as what is to go.
fn follow(bench: &Bench) {
    assert_eq!(block_on(bench.store.prune(at("2020-01-01T00:00:00Z"))).expect("it can be asked"), 0);
}

fn summed(path: &Path) -> i64 {
    let connection = rusqlite::Connection::open(path).expect("it opens");
    connection.query_row("SELECT ifnull(sum(marks), 0) FROM sums", [], |row| row.get(0)).expect("it can be read")
}

#[test]
fn what_the_sums_have_not_got_yet_is_added_and_nothing_twice() {
    let folder = Folder::new();
    let (path, copy) = (folder.database(), folder.path("copy.db"));
    let mut bench = Bench::new(Box::new(open(&path)));
    for round in 1..4 {
        succeed(&mut bench, 5);
        follow(&bench);
        assert_eq!(summed(&path), 5 * round * 2 - 5, "the sums have what the snapshot has");
        succeed(&mut bench, 5);
        let all = 10 * round.unsigned_abs();
        // A reader beside the server, and one of what a crash has left.
        assert_eq!(counted(&SqliteStore::open_read_only(&path).expect("it opens")), (all, all));
        copy_files(&path, &copy);
        assert_eq!(counted(&SqliteStore::open_read_only(&copy).expect("it opens")), (all, all));
        assert_eq!(findings(&copy), [""; 0]);
        let mut after = Bench::new(Box::new(open(&copy)));
        after.now = bench.now;
        // Its ids are none that the first has given.
        for _ in 0..1_000 {
            after.id();
        }
        succeed(&mut after, 1);
        drop(after);
        assert_eq!(summed(&copy), all.cast_signed() + 1, "who stops has the snapshot follow");
        let store = open(&copy);
        assert_eq!(counted(&store), (all + 1, all + 1));
        assert_clean(&store);
        follow(&bench);
    }
}

#[test]
fn sums_of_what_is_gone_are_gone() {
    let folder = Folder::new();
    let path = folder.database();
    let mut bench = Bench::new(Box::new(open(&path)));
    succeed(&mut bench, 300);
    assert!(0 < block_on(bench.store.prune(bench.now)).expect("it can be pruned"));
    bench.pass(1);
    assert!(0 < block_on(bench.store.prune(bench.now)).expect("it can be pruned"));
    let connection = rusqlite::Connection::open(&path).expect("it opens");
    for table in ["sums", "schedule_sums"] {
        let sql = format!("SELECT count(*) FROM {table}");
        assert_eq!(connection.query_row(&sql, [], |row| row.get::<_, i64>(0)).expect("it reads"), 0, "{table}");
    }
}

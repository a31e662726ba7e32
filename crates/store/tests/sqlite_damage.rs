//! Damage: a flipped bit is found, or it changes nothing.

mod sqlite_support;

use std::path::Path;

use punctual_store::conformance::bench::ALL;
use punctual_store::conformance::{Bench, block_on};
use punctual_store::sqlite::SqliteStore;
use punctual_store::{History, HistoryFilter, Journal, RunFilter, Runs, Schedules, StoreError};
use sqlite_support::{Folder, beside, copy_files, findings, open, play};

/// Everything that the journal answers for, as text.
fn dump(store: &SqliteStore) -> Result<String, StoreError> {
    block_on(async {
        let runs = store.runs(&RunFilter { limit: ALL, ..RunFilter::default() }).await?;
        let schedules = store.schedules(None, ALL).await?;
        let history = store.history(&HistoryFilter { limit: ALL, ..HistoryFilter::default() }).await?;
        Ok(format!("{runs:?}{schedules:?}{history:?}{:?}{:?}", store.entries(0, ALL).await?, store.head().await?))
    })
}

/// Numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

fn flip(path: &Path, bit: u64) {
    let mut bytes = std::fs::read(path).expect("it can be read");
    bytes[bit as usize / 8] ^= 1 << (bit % 8);
    std::fs::write(path, bytes).expect("it can be written");
}

/// Whether a flipped bit is found. If not, everything must be as it was.
fn is_found(copy: &Path, whole: &str, what: &str) -> bool {
    if !findings(copy).is_empty() {
        return true;
    }
    let store = match SqliteStore::open(copy) {
        Ok(store) => store,
        Err(_) => return true,
    };
    let seen = dump(&store).expect("what verifies can be read");
    assert!(seen == whole, "{what} changed an answer, and nothing has said so");
    false
}

#[test]
fn a_flipped_bit_of_the_database_is_found_or_changes_nothing() {
    let folder = Folder::new();
    let path = folder.database();
    play(&mut Bench::new(Box::new(open(&path))), 8, |_| {});
    let whole = dump(&open(&path)).expect("it can be read");
    let copy = folder.path("copy.db");
    let bits = std::fs::metadata(&path).expect("it is there").len() * 8;
    let mut dice = Dice(1);
    let mut found = 0;
    for _ in 0..150 {
        copy_files(&path, &copy);
        let bit = dice.roll(bits);
        flip(&copy, bit);
        found += u32::from(is_found(&copy, &whole, &format!("bit {bit}")));
    }
    assert!(20 < found, "only {found} of 150 flips were found: most pages are in use");
}

#[test]
fn a_changed_body_of_an_entry_is_found_by_its_checksum() {
    let folder = Folder::new();
    let path = folder.database();
    play(&mut Bench::new(Box::new(open(&path))), 4, |_| {});
    let sqlite = rusqlite::Connection::open(&path).expect("it can be opened");
    let sql = "UPDATE journal SET change = replace(change, 'agent', 'agend') WHERE first = 2";
    sqlite.execute(sql, []).expect("it can be changed");
    drop(sqlite);
    let found = findings(&path);
    assert!(
        found.iter().any(|what| what.contains("entries 2 to") && what.contains("are not what their checksum says")),
        "{found:?}"
    );
    // The end of the journal is looked at before anything is served.
    let error = SqliteStore::open(&path).expect_err("it is damaged");
    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
}

#[test]
fn a_missing_entry_and_a_missing_end_are_found() {
    let folder = Folder::new();
    let path = folder.database();
    play(&mut Bench::new(Box::new(open(&path))), 4, |_| {});
    for (sql, told) in [
        ("DELETE FROM journal WHERE first = (SELECT min(first) FROM journal WHERE 4 < first)", "follows entry"),
        ("DELETE FROM journal WHERE first = (SELECT max(first) FROM journal)", "and should end with entry"),
        ("UPDATE head SET seq = seq - 1, checksum = 7", "and should end with entry"),
    ] {
        let copy = folder.path("copy.db");
        copy_files(&path, &copy);
        rusqlite::Connection::open(&copy).expect("it opens").execute(sql, []).expect("it can be changed");
        let found = findings(&copy);
        assert!(found.iter().any(|what| what.contains(told)), "{sql}: {found:?}");
        assert!(matches!(SqliteStore::open(&copy), Err(StoreError::Damaged { .. })), "{sql}");
    }
}

#[test]
fn every_row_that_is_not_what_the_journal_says_is_found() {
    let folder = Folder::new();
    let path = folder.database();
    play(&mut Bench::new(Box::new(open(&path))), 7, |_| {});
    for sql in [
        "UPDATE runs SET body = json_set(body, '$.scheduled_at', '2026-01-01T00:00:00Z')",
        "UPDATE runs SET body = json_set(body, '$.version', 77)",
        "DELETE FROM runs WHERE id = (SELECT max(id) FROM runs)",
        "UPDATE progress SET progress = json_set(progress, '$.runs_started', 1000)",
        "UPDATE progress SET progress = json_set(progress, '$.plan_at', '2026-01-01T00:00:00Z')",
        "DELETE FROM progress WHERE id = (SELECT max(id) FROM progress)",
        "UPDATE schedules SET definition = json_set(definition, '$.policy.priority', 9)",
        "INSERT OR REPLACE INTO rest VALUES (1, '{\"days\":{\"UTC\":\"2026-01-01\"},\"epoch_floor\":0,\"tokens\":{}}')",
        "INSERT OR REPLACE INTO rest VALUES (1, '{\"days\":{},\"epoch_floor\":5,\"tokens\":{}}')",
        "UPDATE snapshot SET seq = seq - 1",
        "UPDATE history SET agent = 'somebody'",
        "UPDATE history SET duration_ms = 77 WHERE duration_ms IS NOT NULL",
        "DELETE FROM history WHERE seq = (SELECT max(seq) FROM history)",
        "INSERT INTO history (seq, verdict, is_final, agent, shown_at) VALUES (1, 'failed', 1, 'a', 0)",
        "UPDATE sums SET attempts = attempts + 1",
        "UPDATE sums SET late_10ms = 7",
        "DELETE FROM sums",
        "UPDATE schedule_sums SET shown_at = shown_at + 86400000000",
        "UPDATE schedule_sums SET duration_ms = duration_ms + 1 WHERE attempts = 1",
        "INSERT INTO sums VALUES (0, 'a', '', 'failed', 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)",
        "DELETE FROM subjects WHERE seq = (SELECT max(seq) FROM subjects)",
        "UPDATE subjects SET subject = x'00000000000000000000000000000001' WHERE seq = (SELECT max(seq) FROM subjects)",
        "INSERT INTO subjects VALUES (x'00000000000000000000000000000001', 1000000)",
    ] {
        let copy = folder.path("copy.db");
        copy_files(&path, &copy);
        let changed = rusqlite::Connection::open(&copy).expect("it opens").execute(sql, []).expect("it can be changed");
        assert!(0 < changed, "{sql} changes nothing");
        assert!(!findings(&copy).is_empty(), "{sql} is not found");
    }
}

#[test]
fn a_flipped_bit_of_the_log_is_found_or_changes_nothing() {
    let folder = Folder::new();
    let path = folder.database();
    let copy = folder.path("copy.db");
    let store = open(&path);
    let reader = rusqlite::Connection::open(&path).expect("it can be read");
    reader.execute_batch("BEGIN; SELECT * FROM head;").expect("it can be read");
    let mut bench = Bench::new(Box::new(store));
    play(&mut bench, 4, |_| {});
    let bits = std::fs::metadata(beside(&path, "-wal")).expect("it is there").len() * 8;
    copy_files(&path, &copy);
    let whole = dump(&open(&copy)).expect("it can be read");
    let mut dice = Dice(2);
    let mut found = 0;
    for _ in 0..100 {
        copy_files(&path, &copy);
        std::fs::copy(beside(&path, ".lock"), beside(&copy, ".lock")).expect("it can be copied");
        let bit = dice.roll(bits);
        flip(&beside(&copy, "-wal"), bit);
        found += u32::from(is_found(&copy, &whole, &format!("bit {bit}")));
    }
    assert!(50 < found, "only {found} of 100 flips were found");
}

#[test]
fn a_file_that_is_no_database_is_refused() {
    let folder = Folder::new();
    let path = folder.database();
    std::fs::write(&path, "this is a letter to a friend, and a long one at that: ".repeat(100)).expect("it is written");
    assert!(matches!(SqliteStore::open(&path), Err(StoreError::Damaged { .. })));
    let other = folder.path("other.db");
    let sqlite = rusqlite::Connection::open(&other).expect("it opens");
    sqlite.execute_batch("CREATE TABLE letters (text)").expect("it is written");
    let error = SqliteStore::open(&other).expect_err("it is somebody else's");
    let source = std::error::Error::source(&error).expect("it says why").to_string();
    assert!(source.contains("not one of Punctual"), "{source}");
}

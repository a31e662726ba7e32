//! What the tests of files share: a folder of their own, and a script of writes.

#![expect(dead_code, reason = "each test file uses what it needs")]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use punctual_core::run::{Run, RunEvent};
use punctual_store::conformance::bench::failed;
use punctual_store::conformance::{Bench, block_on};
use punctual_store::sqlite::SqliteStore;
use punctual_store::{Decision, Head, Journal};
use serde_json::json;

/// A folder that is removed at the end of a test.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Folder {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("punctual-test-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).expect("a folder can be made");
        Folder(folder)
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.0.join("punctual.db")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// A file beside a database.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    PathBuf::from(format!("{}{suffix}", path.display()))
}

pub(crate) fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(path).expect("the database can be opened")
}

/// Copies a database and its write-ahead log as they are now, under another name.
pub(crate) fn copy_files(from: &Path, to: &Path) {
    for suffix in ["", "-wal"] {
        let old = beside(to, suffix);
        drop(std::fs::remove_file(&old));
        if beside(from, suffix).exists() {
            std::fs::copy(beside(from, suffix), old).expect("it can be copied");
        }
    }
    for suffix in ["-shm", ".lock"] {
        drop(std::fs::remove_file(beside(to, suffix)));
    }
}

/// Opens a file read-only and verifies it. An error is a finding, too.
pub(crate) fn findings(path: &Path) -> Vec<String> {
    let found = SqliteStore::open_read_only(path).and_then(|store| block_on(store.verify()));
    found.unwrap_or_else(|error| vec![format!("{error}: {:?}", std::error::Error::source(&error))])
}

pub(crate) fn assert_clean(store: &SqliteStore) {
    let found = block_on(store.verify()).expect("it can be verified");
    assert!(found.is_empty(), "{found:#?}");
}

/// Plays many kinds of writes, and calls `after` behind each that was acknowledged.
pub(crate) fn play(bench: &mut Bench, rounds: usize, mut after: impl FnMut(Head)) {
    let mut note = |bench: &Bench| after(block_on(bench.store.head()).expect("the head can be read"));
    let node = bench.join("a");
    note(bench);
    for round in 0..rounds {
        bench.pass(60);
        let fields = match round % 3 {
            0 => json!({"agent": "a", "policy": {"overlap": "queue", "max_delay": "day"}}),
            1 => json!({"agent": "b", "project": "p", "policy": {"concurrency": {"key": "k", "max": 1}}}),
            _ => json!({"agent": "c", "policy": {"overlap": "skip", "priority": 8}}),
        };
        let schedule = bench.add(fields);
        note(bench);
        let times: Vec<String> =
            (0..5).map(|index| (bench.now + jiff::SignedDuration::from_secs(index)).to_string()).collect();
        bench.plan(schedule, &times.iter().map(String::as_str).collect::<Vec<_>>());
        note(bench);
        bench.pass(10);
        let claimed: Vec<Run> = bench.claim(node, 3);
        note(bench);
        for (index, run) in claimed.iter().enumerate() {
            bench.settle(run, Decision::Start);
            note(bench);
            let event = if index == 0 { failed(bench.now) } else { RunEvent::Succeeded };
            bench.finish(run, event);
            note(bench);
        }
        if round % 5 == 4 {
            bench.edit(schedule, |schedule| {
                schedule.work = punctual_core::schedule::Work::Agent {
                    agent: "a".into(),
                    prompt: "edited".into(),
                    inputs: serde_json::Map::new(),
                    inputs_policy: Default::default(),
                }
            });
            note(bench);
        }
    }
}

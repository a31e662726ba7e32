//! Disks that are full or fail, files that are in use, callers that go away.

mod sqlite_support;

use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::Command;
use std::sync::Arc;
use std::task::{Context, Waker};

use punctual_core::RunId;
use punctual_core::run::Run;
use punctual_core::time::SlotKey;
use punctual_store::conformance::bench::{asked_run, at};
use punctual_store::conformance::{Bench, block_on};
use punctual_store::sqlite::SqliteStore;
use punctual_store::{Journal, RunFilter, Runs, Schedules, StoreError};
use serde_json::json;
use sqlite_support::{Folder, assert_clean, findings, open, play};
use uuid::Uuid;

/// A run of its own, without a schedule.
fn request(number: u128) -> Run {
    let mut bench = Bench::new(Box::new(punctual_store::memory::MemoryStore::new()));
    let schedule = bench.draft(json!({}));
    let id = RunId(Uuid::from_u128(number));
    Run { schedule: None, ..asked_run(id, SlotKey::manual(id), &schedule, at("09:00:00")) }
}

/// A small file system of its own.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// None where nobody may mount: the test says so, loudly.
    fn mount(folder: &Folder) -> Option<SmallDisk> {
        let path = folder.path("disk");
        std::fs::create_dir_all(&path).expect("a folder can be made");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=8m", "tmpfs"]).arg(&path).status();
        if mounted.is_ok_and(|status| status.success()) {
            return Some(SmallDisk(path));
        }
        eprintln!("SKIPPED: a full disk needs the right to mount a tmpfs");
        None
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg("--lazy").arg(&self.0).status();
        assert!(unmounted.is_ok_and(|status| status.success()), "the small disk stays mounted");
    }
}

/// Fills what is left of a disk.
fn fill(path: &Path) {
    use std::io::Write;
    let mut file = std::fs::File::create(path).expect("a file can be made");
    while file.write_all(&[0; 4096]).is_ok() {}
    while file.write_all(&[0]).is_ok() {}
}

#[test]
fn a_full_disk_refuses_writes_and_goes_on_by_itself_when_there_is_space() {
    let folder = Folder::new();
    let Some(disk) = SmallDisk::mount(&folder) else { return };
    let path = disk.0.join("punctual.db");
    let store = open(&path);
    for number in 1..=50 {
        assert!(block_on(store.ask(at("09:00:00"), request(number), None)).expect("there is space"));
    }
    for round in 0..3 {
        let ballast = disk.0.join("ballast");
        fill(&ballast);
        let head = block_on(store.head()).expect("the head can be read");
        let mut acknowledged = head.seq;
        let mut refused = 0;
        for number in 0..60 {
            match block_on(store.ask(at("09:00:00"), request(1_000 * (round + 1) + number), None)) {
                // The log may have pages left that it uses again.
                Ok(is_new) => acknowledged += u64::from(is_new),
                Err(StoreError::DiskFull) => refused += 1,
                Err(error) => panic!("{error}: {:?}", std::error::Error::source(&error)),
            }
        }
        assert!(0 < refused, "the disk was never full");
        assert_eq!(block_on(store.head()).expect("reading works").seq, acknowledged);
        assert_eq!(block_on(store.count_schedules()).expect("reading works"), 0);
        std::fs::remove_file(&ballast).expect("space can be made");
        for number in 0..10 {
            let number = 1_000 * (round + 1) + 500 + number;
            assert!(block_on(store.ask(at("09:00:00"), request(number), None)).expect("there is space again"));
        }
        assert_clean(&store);
    }
    drop(store);
    assert_clean(&open(&path));
}

#[test]
fn a_second_server_is_refused_and_told_who_has_the_file() {
    let folder = Folder::new();
    let path = folder.database();
    let first = open(&path);
    let error = SqliteStore::open(&path).expect_err("it is in use");
    assert!(matches!(error, StoreError::InUse { .. }));
    let holder = format!("(pid {}, since 2", std::process::id());
    assert!(error.to_string().contains(&holder), "{error}");
    // Whoever only reads is welcome, before and after.
    let reader = SqliteStore::open_read_only(&path).expect("reading is allowed");
    assert!(block_on(first.ask(at("09:00:00"), request(1), None)).expect("it writes"));
    assert_eq!(block_on(reader.runs(&RunFilter { limit: 10, ..RunFilter::default() })).expect("it reads").len(), 1);
    assert!(findings(&path).is_empty());
    assert!(block_on(reader.ask(at("09:00:00"), request(2), None)).is_err());
    drop(first);
    drop(open(&path));
}

#[test]
fn a_reader_of_a_file_that_is_not_there_is_told_so() {
    let folder = Folder::new();
    let error = SqliteStore::open_read_only(folder.database()).expect_err("there is nothing");
    assert!(matches!(error, StoreError::NotFound { .. }), "{error}");
    assert!(!folder.database().exists());
}

#[test]
fn the_file_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let path = folder.database();
    play(&mut Bench::new(Box::new(open(&path))), 1, |_| {});
    let store = open(&path);
    for entry in std::fs::read_dir(path.parent().expect("it has one")).expect("it can be listed") {
        let entry = entry.expect("it can be listed");
        let mode = entry.metadata().expect("it is there").permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{}", entry.path().display());
    }
    drop(store);
}

#[test]
fn many_callers_share_commits_and_one_that_fails_fails_alone() {
    let folder = Folder::new();
    let store = Arc::new(open(&folder.database()));
    let callers: Vec<_> = (0..16_u128)
        .map(|caller| {
            let store = Arc::clone(&store);
            std::thread::spawn(move || {
                for number in 0..20 {
                    let mut run = request(1_000 * (caller + 1) + number);
                    let is_wrong = number % 5 == 4;
                    if is_wrong {
                        run.schedule = Some(punctual_core::ScheduleId(Uuid::nil()));
                    }
                    let asked = block_on(store.ask(at("09:00:00"), run, None));
                    assert_eq!(asked.is_err(), is_wrong, "{asked:?}");
                }
            })
        })
        .collect();
    callers.into_iter().for_each(|caller| caller.join().expect("no caller fails"));
    let runs = block_on(store.runs(&RunFilter { limit: 1_000, ..RunFilter::default() })).expect("it reads");
    assert_eq!(runs.len(), 16 * 16);
    assert_eq!(block_on(store.head()).expect("it reads").seq, 16 * 16);
    assert_clean(&store);
}

#[test]
fn what_a_caller_asked_for_is_done_whole_when_it_has_gone_away() {
    let folder = Folder::new();
    let store = open(&folder.database());
    let mut context = Context::from_waker(Waker::noop());
    for number in 1..=200 {
        let asked = store.ask(at("09:00:00"), request(number), None);
        // Polled once, so that it is in the queue; then dropped.
        drop(pin!(asked).as_mut().poll(&mut context));
    }
    drop(store);
    let store = open(&folder.database());
    let runs = block_on(store.runs(&RunFilter { limit: 1_000, ..RunFilter::default() })).expect("it reads");
    assert_eq!(runs.len(), 200, "what was in the queue is carried out before the file is closed");
    assert_clean(&store);
}

/// Not a test of its own: the process whose disk fails.
#[test]
fn a_child_whose_disk_fails() {
    let Some(path) = std::env::var_os("PUNCTUAL_TEST_CHILD") else { return };
    let store = SqliteStore::open(path).expect("the database can be opened");
    for number in 1..=200 {
        match block_on(store.ask(at("09:00:00"), request(number), None)) {
            Ok(_) => println!("acknowledged {number}"),
            Err(StoreError::Broken { .. }) => {
                println!("broken {number}");
                for number in 1_000..1_010 {
                    let again = block_on(store.ask(at("09:00:00"), request(number), None));
                    assert!(matches!(again, Err(StoreError::Broken { .. })), "{again:?}");
                }
                assert!(block_on(store.head()).is_ok(), "reading goes on");
                println!("refused");
                return;
            }
            Err(error) => panic!("{error}: {:?}", std::error::Error::source(&error)),
        }
    }
}

#[test]
fn after_a_failed_sync_nothing_more_is_acknowledged_and_a_restart_finds_everything() {
    let myself = std::env::current_exe().expect("a test knows its own file");
    if Command::new("strace").arg("-V").output().is_err() {
        eprintln!("SKIPPED: a failing disk needs strace");
        return;
    }
    for fails_at in [3, 12, 25] {
        let folder = Folder::new();
        let path = folder.database();
        drop(open(&path));
        let inject = format!("inject=fsync,fdatasync:error=EIO:when={fails_at}");
        let child = Command::new("strace")
            .args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=fsync,fdatasync", "-e", &inject])
            .arg(&myself)
            .args(["--exact", "a_child_whose_disk_fails", "--nocapture"])
            .env("PUNCTUAL_TEST_CHILD", &path)
            .output()
            .expect("strace can be started");
        let said = String::from_utf8_lossy(&child.stdout);
        if String::from_utf8_lossy(&child.stderr).contains("ptrace") {
            eprintln!("SKIPPED: a failing disk needs the right to trace: {}", String::from_utf8_lossy(&child.stderr));
            return;
        }
        assert!(child.status.success(), "{said}{}", String::from_utf8_lossy(&child.stderr));
        assert!(said.contains("broken") && said.contains("refused"), "the disk did not fail: {said}");
        let acknowledged = said.lines().filter(|line| line.contains("acknowledged")).count();
        let store = open(&path);
        let runs = block_on(store.runs(&RunFilter { limit: 1_000, ..RunFilter::default() })).expect("it reads");
        // The one that failed may be there or not; none behind it is.
        assert!((acknowledged..=acknowledged + 1).contains(&runs.len()), "{acknowledged} were acknowledged");
        assert_clean(&store);
    }
}

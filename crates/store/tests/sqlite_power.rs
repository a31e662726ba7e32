//! Power cuts and kills: what was acknowledged is there, what was not is there whole or not at all.

mod sqlite_support;

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use punctual_store::conformance::{Bench, block_on};
use punctual_store::sqlite::SqliteStore;
use punctual_store::{Head, Journal};
use sqlite_support::{Folder, assert_clean, beside, copy_files, open, play};

/// A header of the write-ahead log, and one frame: 24 bytes and a page.
const WAL_HEADER: u64 = 32;
const FRAME: u64 = 24 + 4096;

fn wal_length(path: &std::path::Path) -> u64 {
    std::fs::metadata(beside(path, "-wal")).map_or(0, |file| file.len())
}

#[test]
fn a_power_cut_at_any_length_of_the_log_keeps_what_was_acknowledged_before() {
    let folder = Folder::new();
    let path = folder.database();
    let mut bench = Bench::new(Box::new(open(&path)));
    // Whoever reads keeps the log from being emptied, so that all of it is there to be cut.
    let reader = rusqlite::Connection::open(&path).expect("it can be read");
    reader.execute_batch("BEGIN; SELECT * FROM head;").expect("it can be read");
    let mut acknowledged: Vec<(u64, Head)> = vec![];
    play(&mut bench, 6, |head| acknowledged.push((wal_length(&path), head)));
    let grows = acknowledged.windows(2).all(|pair| pair[0].0 <= pair[1].0);
    assert!(grows, "the log was emptied in the middle");
    let copy = folder.path("cut.db");
    let end = wal_length(&path);
    let mut cuts: Vec<u64> = (0..end).step_by(FRAME as usize).map(|frame| frame + WAL_HEADER).collect();
    // In the middle of a header, of a frame's own header, of a page; and just before and behind each acknowledgement.
    cuts.extend([0, 1, 31, 40, WAL_HEADER + FRAME / 2]);
    cuts.extend(acknowledged.iter().flat_map(|(length, _)| [length - 1, *length, length + 13]));
    for cut in cuts.into_iter().filter(|cut| *cut <= end) {
        copy_files(&path, &copy);
        let log = std::fs::OpenOptions::new().write(true).open(beside(&copy, "-wal")).expect("the log is there");
        log.set_len(cut).expect("it can be cut");
        let store = SqliteStore::open(&copy).unwrap_or_else(|error| panic!("cut at {cut} of {end}: {error:?}"));
        assert_clean(&store);
        let head = block_on(store.head()).expect("the head can be read");
        let due = acknowledged.iter().rfind(|(length, _)| *length <= cut).map_or(Head::default(), |(_, head)| *head);
        assert!(due.seq <= head.seq, "cut at {cut}: entry {} was acknowledged, {} is the last", due.seq, head.seq);
        if head.seq == due.seq {
            assert_eq!(head, due, "cut at {cut}");
        }
        let is_whole = acknowledged.iter().any(|(_, known)| *known == head) || head == Head::default();
        assert!(is_whole, "cut at {cut}: half of a transaction is there");
    }
}

#[test]
fn a_log_that_ends_too_early_is_told_from_one_that_was_cut_off_by_a_crash() {
    let folder = Folder::new();
    let path = folder.database();
    let copy = folder.path("copy.db");
    {
        let mut bench = Bench::new(Box::new(open(&path)));
        play(&mut bench, 2, |_| {});
        copy_files(&path, &copy);
        std::fs::copy(beside(&path, ".lock"), beside(&copy, ".lock")).expect("it can be copied");
    }
    std::fs::remove_file(beside(&copy, "-wal")).expect("the log is there");
    let error = SqliteStore::open(&copy).expect_err("committed entries are gone");
    assert!(error.to_string().contains("had been committed"), "{error}");
    assert!(error.is_fatal());
}

#[test]
fn the_index_of_the_log_may_be_damaged_or_gone() {
    let folder = Folder::new();
    let path = folder.database();
    let mut bench = Bench::new(Box::new(open(&path)));
    play(&mut bench, 3, |_| {});
    let head = block_on(bench.store.head()).expect("the head can be read");
    let copy = folder.path("copy.db");
    for bytes in [None, Some(0), Some(100), Some(32_768)] {
        copy_files(&path, &copy);
        if let Some(bytes) = bytes {
            std::fs::write(beside(&copy, "-shm"), vec![0x5a; bytes]).expect("it can be written");
        }
        let store = open(&copy);
        assert_eq!(block_on(store.head()).expect("the head can be read"), head);
        assert_clean(&store);
    }
}

/// Not a test of its own: the process that the next one kills.
#[test]
fn a_child_that_writes_until_it_is_killed() {
    let Some(path) = std::env::var_os("PUNCTUAL_TEST_CHILD") else { return };
    let store = SqliteStore::open(path).expect("the database can be opened");
    let mut bench = Bench::new(Box::new(store));
    // Ids must be new in every life.
    let skip: usize = std::env::var("PUNCTUAL_TEST_ROUND").map_or(0, |round| round.parse().expect("a number"));
    for _ in 0..skip * 100_000 {
        bench.id();
    }
    play(&mut bench, usize::MAX, |head| println!("acknowledged {}", head.seq));
}

#[test]
fn a_server_that_is_killed_loses_nothing_that_it_acknowledged() {
    let folder = Folder::new();
    let path = folder.database();
    let myself = std::env::current_exe().expect("a test knows its own file");
    let mut seed = 12_345_u64;
    for round in 0..8_u32 {
        let mut child = Command::new(&myself)
            .args(["--exact", "a_child_that_writes_until_it_is_killed", "--nocapture"])
            .env("PUNCTUAL_TEST_CHILD", &path)
            .env("PUNCTUAL_TEST_ROUND", round.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a child can be started");
        let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let kill_after = 5 + (seed >> 33) % 60;
        let mut last = 0;
        let mut acknowledged = lines
            .map_while(Result::ok)
            .filter_map(|line| line.split_once("acknowledged ").and_then(|(_, seq)| seq.trim().parse::<u64>().ok()));
        for _ in 0..kill_after {
            last = acknowledged.next().expect("the child writes until it is killed");
        }
        child.kill().expect("the child lives");
        // What it still said before it died counts as well.
        last = acknowledged.last().unwrap_or(last);
        child.wait().expect("the child ends");
        let store = open(&path);
        let head = block_on(store.head()).expect("the head can be read");
        assert!(last <= head.seq, "entry {last} was acknowledged, {} is the last", head.seq);
        assert_clean(&store);
    }
}

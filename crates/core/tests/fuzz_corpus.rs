//! The fuzz targets as ordinary tests: over the kept corpus, and over small changes of it that are the same on every
//! machine.
//!
//! Coverage-guided fuzzing needs a nightly compiler (`cargo xtask fuzz`); this needs nothing and runs with every
//! change.

mod fuzz_bodies;

use std::fs;
use std::path::Path;

/// So many changed inputs are tried for each target.
const MUTATIONS: usize = 20_000;

/// What is put into an input: pieces of the grammars, and what parsers trip over.
const PIECES: [&str; 40] = [
    " ",
    "*",
    ",",
    "-",
    "/",
    "?",
    "#",
    "L",
    "W",
    "LW",
    "0",
    "1",
    "7",
    "31",
    "59",
    "60",
    "99999999999999999999",
    "MON",
    "feb",
    "@daily",
    "P",
    "T",
    "ms",
    "w",
    ":",
    "24:00",
    "{",
    "}",
    "[",
    "]",
    "\"",
    "null",
    "\u{0}",
    "\n",
    "é",
    "\u{202e}",
    "\n@ ",
    "2100",
    "9999-12-30T22:00:00.999999999Z",
    "America/New_York",
];

#[test]
fn cron_is_total() {
    check("cron", fuzz_bodies::cron);
}

#[test]
fn duration_is_total() {
    check("duration", fuzz_bodies::duration);
}

#[test]
fn trigger_is_total() {
    check("trigger", fuzz_bodies::trigger);
}

#[test]
fn at_is_total() {
    check("at", fuzz_bodies::at);
}

#[test]
fn calendar_is_total() {
    check("calendar", fuzz_bodies::calendar);
}

fn check(target: &str, body: fn(&[u8])) {
    let corpus = corpus(target);
    for (name, data) in &corpus {
        tell_input(name, data, body);
    }
    let mut random = fuzz_bodies::Random::new(fuzz_bodies::hash(target.as_bytes()));
    for _ in 0..MUTATIONS {
        let (name, mut data) = corpus[random.below(corpus.len() as u64) as usize].clone();
        let (_, other) = &corpus[random.below(corpus.len() as u64) as usize];
        for _ in 0..=random.below(4) {
            mutate(&mut data, other, &mut random);
        }
        tell_input(&format!("a change of {name}"), &data, body);
    }
}

/// The kept inputs of a target, in the order of their names. An empty corpus would prove nothing.
fn corpus(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let mut files: Vec<_> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{} is empty", folder.display());
    files.into_iter().map(|file| (file.file_name().unwrap().display().to_string(), fs::read(&file).unwrap())).collect()
}

/// Names the input of a body that panics, so that it can be kept.
fn tell_input(name: &str, data: &[u8], body: fn(&[u8])) {
    if let Err(panic) = std::panic::catch_unwind(|| body(data)) {
        eprintln!("the input was {name}: {:?}", String::from_utf8_lossy(data));
        std::panic::resume_unwind(panic);
    }
}

/// One small change: a byte, a piece of a grammar, a cut, a repetition, or the end of another input.
fn mutate(data: &mut Vec<u8>, other: &[u8], random: &mut fuzz_bodies::Random) {
    let at = random.below(data.len() as u64 + 1) as usize;
    let end = (at + 1 + random.below(8) as usize).min(data.len());
    match random.below(7) {
        0 if at < data.len() => data[at] = random.below(256) as u8,
        1 if at < data.len() => data[at] = b' ' + random.below(95) as u8,
        2 => drop(data.drain(at..end)),
        3 => data.truncate(at),
        4 => {
            let repeated = data[at..end].to_vec();
            data.splice(at..at, repeated);
        }
        5 => {
            let from = random.below(other.len() as u64 + 1) as usize;
            data.truncate(at);
            data.extend_from_slice(&other[from..]);
        }
        _ => {
            let piece = PIECES[random.below(PIECES.len() as u64) as usize];
            data.splice(at..at, piece.bytes());
        }
    }
}

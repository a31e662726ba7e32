//! A few seeds for every change; `cargo xtask test` adds more, `cargo xtask sim` as many as there is time for.

use std::ops::Range;

use punctual_sim::{Fault, Report, simulate};

/// The seeds. Few, but enough for every kind of fault.
const SAMPLE: Range<u64> = 0..16;

#[test]
fn the_sample_holds_every_rule_under_every_fault() {
    let mut report = Report::default();
    SAMPLE.map(|seed| simulate(seed, false)).for_each(|history| report.add(history));
    let failures: Vec<String> = report.failures.iter().map(ToString::to_string).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    for fault in Fault::ALL {
        assert!(0 < report.faults.of(fault), "{fault:?} has never struck: take more seeds, or others");
    }
    assert!(0 < report.runs && 0 < report.starts && !report.lasted.is_zero(), "nothing happened");
}

#[test]
fn a_seed_gives_the_same_history_again_printed_or_not() {
    let [first, again, printed] = [false, false, true].map(|is_printed| simulate(SAMPLE.start, is_printed));
    assert_eq!(first.trace_hash, again.trace_hash);
    assert_eq!(first.trace_hash, printed.trace_hash);
    assert_eq!(
        (first.runs, first.starts, first.acks, &first.faults),
        (again.runs, again.starts, again.acks, &again.faults)
    );
    assert_eq!(first.last_lines, printed.last_lines);
}

#[test]
fn another_seed_gives_another_history() {
    assert_ne!(simulate(SAMPLE.start, false).trace_hash, simulate(SAMPLE.start + 1, false).trace_hash);
}

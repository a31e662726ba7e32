//! The trace: what happened, as lines; all of them as a hash, the last ones as text.

use std::collections::VecDeque;
use std::fmt;

/// How many lines a failure shows.
const SHOWN: usize = 30;

/// What happened so far.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    hash: u64,
    count: u64,
    last: VecDeque<String>,
    /// Whether lines are printed as they come.
    is_printed: bool,
}

impl Trace {
    pub(crate) fn new(is_printed: bool) -> Trace {
        Trace { is_printed, ..Trace::default() }
    }

    pub(crate) fn line(&mut self, line: fmt::Arguments<'_>) {
        let mut text = if SHOWN <= self.last.len() { self.last.pop_front().unwrap_or_default() } else { String::new() };
        text.clear();
        fmt::Write::write_fmt(&mut text, line).expect("writing to a string does not fail");
        self.hash = text
            .bytes()
            .fold(self.hash ^ self.count, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        self.count += 1;
        if self.is_printed {
            println!("{text}");
        }
        self.last.push_back(text);
    }

    /// The same for the same history, and hardly ever for another.
    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    pub(crate) fn last(&self) -> impl Iterator<Item = &str> {
        self.last.iter().map(String::as_str)
    }
}

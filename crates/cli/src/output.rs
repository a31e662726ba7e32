//! Printing.

use std::io::{self, Write};

use anyhow::Context;
use serde_json::Value;

/// Whoever reads no further, like `head`, has had enough: that is no error.
pub(crate) fn unless_closed(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// Prints to standard output.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    unless_closed(out.write_all(text.as_bytes()).and_then(|()| out.flush())).context("printing")
}

/// Prints JSON for programs, and for people who look over their shoulder.
pub(crate) fn print_json(value: &Value) -> anyhow::Result<()> {
    print(&format!("{value:#}\n"))
}

/// A table of whole texts, however wide the screen is: for what must not be cut. [`crate::table`] has those that fit.
pub(crate) fn table(header: &[&'static str], rows: impl Iterator<Item = Vec<String>>) -> String {
    crate::table::unfitted(header, rows)
}

/// So many of something.
pub(crate) fn plural(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// Words with what they mean, one a line.
pub(crate) fn facts(facts: &[(&str, String)]) -> String {
    let width = facts.iter().map(|(word, _)| word.len()).max().unwrap_or(0);
    let shown = facts.iter().filter(|(_, text)| !text.is_empty());
    shown.map(|(word, text)| format!("{word:width$}  {}\n", clean(text))).collect()
}

/// Text of others without what would steer a terminal.
pub(crate) fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

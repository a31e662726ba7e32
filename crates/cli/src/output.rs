//! Printing.

use std::io::{self, Write};

use anyhow::Context;
use comfy_table::{ContentArrangement, Table, presets};
use serde_json::Value;

/// The longest text in a cell of a table.
const CELL_MAX: usize = 60;

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

/// A table without frames: columns that line up, and nothing that is hard to copy.
pub(crate) fn table(header: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header.iter().copied());
    for row in rows {
        table.add_row(row.iter().map(|cell| clean(cell.lines().next().unwrap_or_default())));
    }
    table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
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

/// The first line, short enough for a table.
pub(crate) fn one_line(text: &str) -> String {
    let line = clean(text.lines().next().unwrap_or_default());
    if line.chars().count() <= CELL_MAX { line } else { line.chars().take(CELL_MAX - 1).chain(['…']).collect() }
}

/// How wide the terminal is.
pub(crate) fn width() -> usize {
    const UNKNOWN: usize = 100;
    let told = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    let asked = || rustix::termios::tcgetwinsize(io::stdout()).ok().map(|size| usize::from(size.ws_col));
    told.or_else(asked).filter(|width| 0 < *width).unwrap_or(UNKNOWN)
}

/// Whether the terminal knows more than ASCII.
pub(crate) fn is_utf8() -> bool {
    let named = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .find_map(|name| std::env::var(name).ok().filter(|it| !it.is_empty()));
    named.is_some_and(|locale| locale.to_ascii_lowercase().replace('-', "").contains("utf8"))
}

//! Printing.

use std::io::{self, Write};

use anyhow::Context;
use comfy_table::{ContentArrangement, Table, presets};

/// Whoever reads no further, like `head`, has had enough: that is no error.
pub(crate) fn unless_closed(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// Prints to standard output.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    unless_closed(io::stdout().write_all(text.as_bytes())).context("printing")
}

/// A table without frames: columns that line up, and nothing that is hard to copy.
pub(crate) fn table(header: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header.iter().copied());
    for row in rows {
        table.add_row(row);
    }
    table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

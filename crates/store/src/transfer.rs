//! Moving house: everything that a store has, as a file that every other one can take in.
//!
//! The journal is everything: rows are what it folds to. So a file is its entries, one a line, between a line that says what it
//! is and one that says that it is whole. Who takes it in writes the entries, folds them, and writes the rows; then every
//! epoch is raised, since nobody holds anything in the new house.

use std::collections::BTreeSet;
use std::io::{BufRead, Write};

use jiff::Timestamp;
use punctual_core::NodeId;
use punctual_core::journal::{Body, Entry, World};
use serde::{Deserialize, Serialize};

use crate::error::{Result, StoreError};
use crate::roles::Journal;
use punctual_kernel::fold::Fold;
use punctual_kernel::types::Planner;

/// How many entries are read or written at a time.
const PAGE: usize = 1_000;

/// The format of the file.
const FORMAT: u32 = 1;

/// The first line of a file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Beginning {
    punctual_export: u32,
    first_seq: u64,
    entries: u64,
}

/// The last line of a file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Ending {
    entries: u64,
}

fn failed(doing: &'static str, why: impl Into<crate::error::BoxError>) -> StoreError {
    StoreError::Database { doing, source: why.into() }
}

/// Writes everything that a store has, as it is when this is called, also beside running servers. `progress` gets the entries
/// that are written, and how many there are. How many there were.
pub async fn export(
    store: &(impl Journal + ?Sized),
    to: &mut (dyn Write + Send),
    mut progress: impl FnMut(u64, u64) + Send,
) -> Result<u64> {
    const DOING: &str = "writing the export";
    let write = |to: &mut (dyn Write + Send), line: &str| writeln!(to, "{line}").map_err(|error| failed(DOING, error));
    let head = store.head().await?;
    let mut page = store.entries(0, PAGE).await?;
    let first_seq = page.first().map_or(head.seq + 1, |entry| entry.seq);
    let entries = (head.seq + 1).saturating_sub(first_seq);
    let beginning = Beginning { punctual_export: FORMAT, first_seq, entries };
    write(to, &crate::columns::to_json(&beginning))?;
    let mut next = first_seq;
    while next <= head.seq {
        for entry in page.iter().take_while(|entry| entry.seq <= head.seq) {
            if entry.seq != next {
                return Err(failed(DOING, "old entries were let go meanwhile: try again"));
            }
            write(to, &crate::columns::to_json(entry))?;
            next += 1;
        }
        progress(next - first_seq, entries);
        page = store.entries(next - 1, PAGE).await?;
        if page.is_empty() && next <= head.seq {
            return Err(failed(DOING, format!("entry {next} of the journal is missing")));
        }
    }
    write(to, &crate::columns::to_json(&Ending { entries }))?;
    to.flush().map_err(|error| failed(DOING, error))?;
    Ok(entries)
}

/// Who takes a file in. Nothing of it counts before [`Importing::end`].
pub(crate) trait Importing {
    /// Takes in entries, in order; the first of all is `first_seq`.
    fn page(&mut self, entries: &[Entry]) -> Result<()>;

    /// Takes in what they come to, and makes it count.
    fn end(self: Box<Self>, imported: Imported) -> Result<()>;
}

/// What a file comes to.
pub(crate) struct Imported {
    pub(crate) world: World,
    /// Nodes that had not left.
    pub(crate) nodes: BTreeSet<NodeId>,
    /// Who planned last, and until when, as far as the journal knows: from then on nobody has.
    pub(crate) planner: Option<Planner>,
    pub(crate) now: Timestamp,
}

/// Reads a file, and has it taken in. How many entries there were.
pub(crate) fn import(
    from: &mut dyn BufRead,
    now: Timestamp,
    begin: impl FnOnce(u64) -> Result<Box<dyn Importing>>,
    mut progress: impl FnMut(u64, u64),
) -> Result<u64> {
    const DOING: &str = "reading the export";
    let mut lines = from.lines();
    let mut line = || lines.next().transpose().map_err(|error| failed(DOING, error));
    let damaged = |what: String| StoreError::Damaged { what };
    let first = line()?.unwrap_or_default();
    let beginning: Beginning = serde_json::from_str(&first).map_err(|error| {
        failed(DOING, format!("this is no export of Punctual: its first line says otherwise ({error})"))
    })?;
    if beginning.punctual_export != FORMAT {
        let why = format!("the export has format {}, this binary knows {FORMAT}", beginning.punctual_export);
        return Err(failed(DOING, why));
    }
    let mut importing = begin(beginning.first_seq)?;
    let mut fold = Fold::beginning_at(beginning.first_seq);
    let mut nodes = BTreeSet::new();
    let mut planner: Option<Planner> = None;
    let mut page: Vec<Entry> = vec![];
    let mut last_at = Timestamp::MIN;
    for done in 0..beginning.entries {
        let cut = || damaged(format!("the export ends after {done} of {} entries", beginning.entries));
        let text = line()?.ok_or_else(cut)?;
        let entry: Entry = serde_json::from_str(&text)
            .map_err(|error| damaged(format!("line {} of the export cannot be read: {error}", done + 2)))?;
        fold.apply(&entry).map_err(|error| damaged(format!("line {} of the export: {error}", done + 2)))?;
        match &entry.body {
            Body::NodeJoined { node, .. } => drop(nodes.insert(*node)),
            Body::NodeLeft { node, .. } => drop(nodes.remove(node)),
            Body::PlannerTaken { node, epoch, .. } => {
                planner = Some(Planner { node: *node, until: entry.at, epoch: *epoch });
            }
            _ => {}
        }
        last_at = last_at.max(entry.at);
        page.push(entry);
        if page.len() == PAGE {
            importing.page(&page)?;
            page.clear();
            progress(done + 1, beginning.entries);
        }
    }
    importing.page(&page)?;
    let ending: Option<Ending> = line()?.and_then(|text| serde_json::from_str(&text).ok());
    if ending.is_none_or(|ending| ending.entries != beginning.entries) {
        return Err(damaged("the export has no end: it was cut off".to_owned()));
    }
    let world = fold.into_world();
    // Runs name their owners also where the journal no longer has their coming.
    nodes.extend(world.runs.values().filter_map(|run| run.owner()));
    // Whoever planned did so as long as anything happened.
    let planner = planner.map(|planner| Planner { until: last_at, ..planner });
    importing.end(Imported { world, nodes, planner, now })?;
    progress(beginning.entries, beginning.entries);
    Ok(beginning.entries)
}

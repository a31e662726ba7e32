//! Moving house: everything that a store has, as a file that every other one can take in.
//!
//! The journal is everything, together with the base that it stands on. So a file is the base and the entries, one thing a line,
//! between a line that says what it is and one that says that it is whole. A store that takes it in writes both, folds them, and
//! writes the snapshot; then every epoch is raised, since nobody holds anything in the new house.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{BufRead, Write};
use std::sync::Arc;

use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};
use punctual_core::journal::{Body, Entry, NotedOutage, ScheduleRecord, World};
use punctual_core::run::Run;
use punctual_core::{NodeId, Token};
use punctual_kernel::state::State;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::error::{Result, StoreError};
use crate::roles::Journal;
use punctual_kernel::transaction::event_key;
use punctual_kernel::types::{Answered, Planner};

/// How many entries are read or written at a time.
const PAGE: usize = 1_000;

/// How long before the end of a file events are known again in the new house: their keys are no part of the journal.
const EVENTS_KNOWN: SignedDuration = SignedDuration::from_hours(24);

/// The format of the file.
const FORMAT: u32 = 2;

/// The first line of a file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Beginning {
    punctual_export: u32,
    first_seq: u64,
    entries: u64,
    /// How many lines the base has.
    base: u64,
}

/// A line of the base.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum BaseLine {
    Schedule(Box<ScheduleRecord>),
    Run(Box<Run>),
    Day(String, Date),
    Outage(Box<NotedOutage>),
    Token(Box<Token>),
    EpochFloor(u64),
}

impl BaseLine {
    fn all(world: &World) -> impl Iterator<Item = BaseLine> {
        let floor = Some(BaseLine::EpochFloor(world.epoch_floor)).filter(|_| 0 < world.epoch_floor);
        let schedules = world.schedules.values().map(|record| BaseLine::Schedule(Box::new(record.clone())));
        let runs = world.live_runs().map(|run| BaseLine::Run(Box::new(run.clone())));
        let days = world.days.iter().map(|(zone, date)| BaseLine::Day(zone.clone(), *date));
        let tokens = world.tokens.values().map(|token| BaseLine::Token(Box::new(token.clone())));
        let outages = world.outages.after(0).map(|noted| BaseLine::Outage(Box::new(*noted)));
        floor.into_iter().chain(schedules).chain(runs).chain(days).chain(outages).chain(tokens)
    }

    fn put(self, world: &mut World) {
        match self {
            BaseLine::Schedule(record) => drop(world.schedules.insert(record.schedule.id, *record)),
            BaseLine::Run(run) => drop(world.runs.insert(run.id, Arc::new(*run))),
            BaseLine::Day(zone, date) => drop(world.days.insert(zone, date)),
            BaseLine::Outage(noted) => Arc::make_mut(&mut world.outages).note(*noted),
            BaseLine::Token(token) => drop(Arc::make_mut(&mut world.tokens).insert(token.id, *token)),
            BaseLine::EpochFloor(floor) => world.epoch_floor = floor,
        }
    }
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
    let base = store.base().await?;
    let head = store.head().await?;
    let first_seq = base.seq + 1;
    let entries = (head.seq + 1).saturating_sub(first_seq);
    let lines = BaseLine::all(&base).count() as u64;
    let beginning = Beginning { punctual_export: FORMAT, first_seq, entries, base: lines };
    write(to, &crate::columns::to_json(&beginning))?;
    BaseLine::all(&base).try_for_each(|line| write(to, &crate::columns::to_json(&line)))?;
    let mut next = first_seq;
    let mut page = store.entries(base.seq, PAGE).await?;
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
    /// Takes in what the entries stand on.
    fn base(&mut self, base: &World) -> Result<()>;

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
    /// The runs that events have had lately, by their keys.
    pub(crate) answers: BTreeMap<String, Answered>,
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
    let mut base = World { seq: beginning.first_seq.saturating_sub(1), ..World::default() };
    for done in 0..beginning.base {
        let text = line()?.ok_or_else(|| damaged("the export ends before its first entry".to_owned()))?;
        let read: BaseLine = serde_json::from_str(&text)
            .map_err(|error| damaged(format!("line {} of the export cannot be read: {error}", done + 2)))?;
        read.put(&mut base);
    }
    importing.base(&base)?;
    let mut state = State::new(base);
    let first_line = beginning.base + 2;
    let mut nodes = BTreeSet::new();
    let mut planner: Option<Planner> = None;
    let mut events: VecDeque<(String, Answered)> = VecDeque::new();
    let mut page: Vec<Entry> = vec![];
    let mut last_at = Timestamp::MIN;
    for done in 0..beginning.entries {
        let cut = || damaged(format!("the export ends after {done} of {} entries", beginning.entries));
        let text = line()?.ok_or_else(cut)?;
        let entry: Entry = serde_json::from_str(&text)
            .map_err(|error| damaged(format!("line {} of the export cannot be read: {error}", done + first_line)))?;
        state.follow(&entry).map_err(|error| damaged(format!("line {} of the export: {error}", done + first_line)))?;
        match &entry.body {
            Body::NodeJoined { node, .. } => drop(nodes.insert(*node)),
            Body::NodeLeft { node, .. } => drop(nodes.remove(node)),
            Body::PlannerTaken { node, epoch, .. } => {
                planner = Some(Planner { node: *node, until: entry.at, epoch: *epoch });
            }
            Body::RunAsked { run, .. } => {
                let answered = Answered { digest: 0, subject: run.id.0, at: entry.at };
                events.extend(event_key(run).map(|key| (key, answered)));
            }
            _ => {}
        }
        last_at = last_at.max(entry.at);
        let is_old = |(_, event): &(String, Answered)| EVENTS_KNOWN < last_at.duration_since(event.at);
        while events.front().is_some_and(is_old) {
            events.pop_front();
        }
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
    let world = state.world().clone();
    // Runs name their owners also where the journal no longer has their coming.
    nodes.extend(world.live_runs().filter_map(|run| run.owner()));
    // Somebody has planned, also where the journal no longer has who; and did so as long as anything happened.
    let somebody = Planner { node: NodeId(Uuid::nil()), until: last_at, epoch: 0 };
    let planner = planner.or_else(|| (1 < beginning.first_seq && 0 < beginning.entries).then_some(somebody));
    let planner = planner.map(|planner| Planner { until: last_at, ..planner });
    importing.end(Imported { world, nodes, planner, answers: events.into_iter().collect(), now })?;
    progress(beginning.entries, beginning.entries);
    Ok(beginning.entries)
}

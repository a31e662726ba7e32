//! `limit`: what plain SQL does with the same facts, durable, with one writer and nothing of Punctual.
//!
//! A run costs it a place in two journal rows, one for the starts of a batch and one for the ends, and one narrow row of history
//! with the columns by which history is searched today and the indexes for that. The ends of a batch and the starts of the next share
//! a commit. There is no queue, no limit, no order, no lease, and nobody reads.
//!
//! Its runs belong to as many schedules and projects as those of `drain`: entries of the index by schedule lie scattered, and cost
//! SQLite more than everything else together. Without schedules it would be three times as fast, and a measure of nothing.

mod postgres;
mod sqlite;

use std::fmt::Write;
use std::time::Duration;

use jiff::Timestamp;
use punctual_engine::clock;
use uuid::Uuid;

use crate::database::{Database, Place};
use crate::measure::Stopwatch;
use crate::node::AGENT;
use crate::seed::{SCHEDULES, project};

/// Runs of a commit.
pub(crate) const BATCH: usize = 500;

/// Runs of a commit when a thousand are due at one instant.
const BATCH_LATE: usize = 100;

/// What a journal row for a batch says.
struct JournalRow {
    /// The number of its first entry.
    number: i64,
    /// How many entries it holds.
    entries: i64,
    /// What applying it needs.
    change: Vec<u8>,
}

/// One ended run, as history finds it.
struct HistoryRow {
    /// The number of the entry of its end.
    number: i64,
    /// The number of the entry of its start.
    start_number: i64,
    run: Uuid,
    schedule: Uuid,
    project: String,
    shown_at: Timestamp,
}

/// Makes the rows of a batch.
struct Writer {
    /// The last entry's number.
    number: i64,
    schedules: Vec<Uuid>,
    /// How many runs have started.
    started: usize,
}

impl Default for Writer {
    fn default() -> Writer {
        let now = clock::now();
        Writer { number: 0, schedules: (0..SCHEDULES).map(|_| new_id(now)).collect(), started: 0 }
    }
}

/// A batch under way.
struct Batch {
    runs: Vec<Uuid>,
    /// How many runs had started before its own.
    before: usize,
    first_start: i64,
    started_at: Timestamp,
}

impl Writer {
    /// The runs of a batch start.
    fn start(&mut self, count: usize, now: Timestamp) -> (Batch, JournalRow) {
        let runs: Vec<Uuid> = (0..count).map(|_| new_id(now)).collect();
        let mut change = String::with_capacity(count * 112);
        for run in &runs {
            // Each about as long as what a start has to say: which run, for when, under which epoch, for which owner.
            let (at, owner) = (now.as_microsecond(), 17);
            write!(change, r#"{{"run":"{run}","due":{at},"attempt":1,"epoch":1,"owner":{owner}}},"#).ok();
        }
        let row = self.row(count, change);
        let before = self.started;
        self.started += count;
        (Batch { runs, before, first_start: row.number, started_at: now }, row)
    }

    /// The runs of a batch end.
    fn end(&mut self, batch: &Batch, now: Timestamp) -> (JournalRow, Vec<HistoryRow>) {
        let count = batch.runs.len();
        let mut change = String::with_capacity(count * 120);
        for run in &batch.runs {
            let at = now.as_microsecond();
            write!(change, r#"{{"run":"{run}","epoch":1,"end":"succeeded","at":{at},"ms":0,"report":{{}}}},"#).ok();
        }
        let row = self.row(count, change);
        let history = batch.runs.iter().enumerate().map(|(index, run)| HistoryRow {
            number: row.number + index as i64,
            start_number: batch.first_start + index as i64,
            run: *run,
            schedule: self.schedules[(batch.before + index) % self.schedules.len()],
            project: project(batch.before + index),
            shown_at: batch.started_at,
        });
        let history = history.collect();
        (row, history)
    }

    fn row(&mut self, count: usize, change: String) -> JournalRow {
        let entries = count as i64;
        let row = JournalRow { number: self.number + 1, entries, change: change.into_bytes() };
        self.number += entries;
        row
    }
}

fn new_id(now: Timestamp) -> Uuid {
    use punctual_engine::ids::{Ids, RandomIds};
    RandomIds.next(now)
}

/// A database that plain SQL writes.
enum Plain {
    Sqlite(sqlite::Plain),
    Postgres(postgres::Plain),
}

impl Plain {
    async fn open(database: &Database) -> anyhow::Result<Plain> {
        Ok(match database {
            Database::Sqlite(path) => Plain::Sqlite(sqlite::Plain::open(path)?),
            Database::Postgres(address) => Plain::Postgres(postgres::Plain::open(address).await?),
        })
    }

    async fn commit(&mut self, rows: &[JournalRow], history: &[HistoryRow], now: Timestamp) -> anyhow::Result<()> {
        match self {
            Plain::Sqlite(plain) => tokio::task::block_in_place(|| plain.commit(rows, history, now)),
            Plain::Postgres(plain) => plain.commit(rows, history, now).await,
        }
    }
}

/// How long plain SQL takes to start and end so many runs.
pub(crate) async fn drain(place: &Place, count: usize) -> anyhow::Result<Duration> {
    let scratch = place.fresh().await?;
    let mut plain = Plain::open(&scratch.database).await?;
    let mut writer = Writer::default();
    let watch = Stopwatch::start();
    let (mut at_work, mut left): (Option<Batch>, usize) = (None, count);
    while 0 < left || at_work.is_some() {
        let now = clock::now();
        let (mut rows, mut history) = (vec![], vec![]);
        if let Some(batch) = at_work.take() {
            let (row, ended) = writer.end(&batch, now);
            rows.push(row);
            history = ended;
        }
        let size = left.min(BATCH);
        if 0 < size {
            let (batch, row) = writer.start(size, now);
            rows.push(row);
            at_work = Some(batch);
            left -= size;
        }
        plain.commit(&rows, &history, now).await?;
    }
    let took = watch.elapsed();
    drop(plain);
    scratch.remove().await?;
    Ok(took)
}

/// When plain SQL has started each of so many runs that are due at one instant, from that instant, in milliseconds.
pub(crate) async fn late(place: &Place, count: usize) -> anyhow::Result<Vec<f64>> {
    let scratch = place.fresh().await?;
    let mut plain = Plain::open(&scratch.database).await?;
    let mut writer = Writer::default();
    // The first commit makes pages and plans; it is not what is measured.
    let (_, row) = writer.start(1, clock::now());
    plain.commit(&[row], &[], clock::now()).await?;
    let (watch, mut late, mut left) = (Stopwatch::start(), vec![], count);
    while 0 < left {
        let size = left.min(BATCH_LATE);
        let (_, row) = writer.start(size, clock::now());
        plain.commit(&[row], &[], clock::now()).await?;
        late.extend(std::iter::repeat_n(crate::report::ms(watch.elapsed()), size));
        left -= size;
    }
    drop(plain);
    scratch.remove().await?;
    Ok(late)
}

/// How long plain SQL takes to write definitions of schedules, given as JSON, in rows of the journal of at most 64 KiB, one commit for
/// each batch.
pub(crate) async fn insert(place: &Place, definitions: &[String]) -> anyhow::Result<Duration> {
    const ROW_MAX: usize = 64 * 1024;
    let scratch = place.fresh().await?;
    let mut plain = Plain::open(&scratch.database).await?;
    let mut writer = Writer::default();
    let watch = Stopwatch::start();
    for batch in definitions.chunks(BATCH) {
        let (mut rows, mut change, mut entries) = (vec![], String::new(), 0);
        for definition in batch {
            if ROW_MAX < change.len() + definition.len() && 0 < entries {
                rows.push(writer.row(std::mem::take(&mut entries), std::mem::take(&mut change)));
            }
            change.push_str(definition);
            entries += 1;
        }
        rows.push(writer.row(entries, change));
        plain.commit(&rows, &[], clock::now()).await?;
    }
    let took = watch.elapsed();
    drop(plain);
    scratch.remove().await?;
    Ok(took)
}

/// The columns that history has besides its numbers, the same for every run here.
const RESULT: &str = "succeeded";
const OF_AGENT: &str = AGENT;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn runs_take_turns_among_schedules_and_every_entry_has_its_own_number() {
        let (mut writer, now) = (Writer::default(), clock::now());
        let (mut schedules, mut numbers) = (BTreeSet::new(), BTreeSet::new());
        for _ in 0..SCHEDULES / BATCH {
            let (batch, starts) = writer.start(BATCH, now);
            let (ends, history) = writer.end(&batch, now);
            assert_eq!((starts.entries, ends.entries, history.len()), (BATCH as i64, BATCH as i64, BATCH));
            for row in history {
                assert!(schedules.insert(row.schedule), "a batch has no schedule twice");
                assert!(numbers.insert(row.number) && numbers.insert(row.start_number));
            }
        }
        assert_eq!(numbers.last(), Some(&(2 * SCHEDULES as i64)));
    }

    #[test]
    fn a_row_of_the_journal_holds_a_batch_within_64_kib() {
        let (mut writer, now) = (Writer::default(), clock::now());
        let (batch, starts) = writer.start(BATCH, now);
        let (ends, _) = writer.end(&batch, now);
        for row in [starts, ends] {
            assert!((40_000..=65_536).contains(&row.change.len()), "{}", row.change.len());
        }
    }
}

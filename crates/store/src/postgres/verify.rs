//! Verifying: what base and journal add up to, against the snapshot and history, in one state of the database.

use punctual_core::journal::World;
use punctual_kernel::compare::{differences, told};
use punctual_kernel::state::State;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row};

use super::copies::{BASE, SNAPSHOT};
use super::fault::Done;
use super::journal::read_row;
use super::load::base_head;
use super::save::HistoryRow;
use super::sums::read_all;
use super::values::At;
use crate::columns::{count, from_word, signed};
use crate::journal_rows::{Chain, JournalRow};
use crate::sums::Sums;

/// How many rows of the journal are read at a time.
const PAGE: i64 = 256;

/// Everything that is wrong with the state of the database that is being read, in words.
pub(super) async fn verify(client: &Client) -> Done<Vec<String>> {
    let base = base_head(client).await?;
    let mut world = BASE.read(client, |_, _| {}).await?;
    world.seq = base.seq;
    let mut snapshot = SNAPSHOT.read(client, |_, _| {}).await?;
    snapshot.seq = count(client.query_typed_one("SELECT seq FROM snapshot", &[]).await?.get(0));
    let (summed, mut sums) = (snapshot.seq, Sums::default());
    let mut fold = Fold { state: State::new(world), chain: Chain(base), snapshot: Some(snapshot), found: vec![] };
    fold.compare();
    loop {
        let (after, rows) = (fold.chain.0.seq, read_page(client, fold.chain.0.seq).await?);
        if rows.is_empty() {
            break;
        }
        let mut history = vec![];
        for row in &rows {
            if !fold.take_in(row, &mut history)? {
                return Ok(told(fold.found));
            }
        }
        history.iter().filter(|row| row.seq <= summed).for_each(|row| sums.count(row.schedule, &row.mark()));
        let kept = read_history(client, after, fold.chain.0.seq).await?;
        fold.found.extend(differences_of_history(&history, &kept));
    }
    fold.end();
    fold.found.extend(sums.differences(&read_all(client).await?));
    fold.found.extend(find_other_history(client, base.seq, fold.chain.0.seq).await?);
    Ok(told(fold.found))
}

/// The journal, as far as it has been read.
struct Fold {
    state: State,
    chain: Chain,
    /// What is to be compared when the journal has come as far.
    snapshot: Option<World>,
    found: Vec<String>,
}

impl Fold {
    /// Goes on over a row, and notes what of it is history. Whether more can be said.
    fn take_in(&mut self, row: &JournalRow, history: &mut Vec<HistoryRow>) -> Done<bool> {
        if let Err(what) = self.chain.check(row) {
            self.found.push(what);
            return Ok(false);
        }
        for entry in row.entries()? {
            if let Err(error) = self.state.follow(&entry) {
                self.found.push(format!("entry {} of the journal cannot have happened: {error}", entry.seq));
                return Ok(false);
            }
            history.extend(HistoryRow::of_entry(&entry));
        }
        self.compare();
        Ok(true)
    }

    /// Compares with the snapshot, if this is where it stands.
    fn compare(&mut self) {
        if let Some(snapshot) = self.snapshot.take_if(|snapshot| snapshot.seq == self.state.seq()) {
            self.found.extend(differences(self.state.world(), &snapshot));
        }
    }

    /// Here the journal ends.
    fn end(&mut self) {
        if let Some(snapshot) = &self.snapshot {
            let seq = snapshot.seq;
            self.found.push(format!("the snapshot is at entry {seq}, with which no commit of the journal ends"));
        }
    }
}

async fn read_page(client: &Client, after: u64) -> Done<Vec<JournalRow>> {
    let sql = "SELECT first, last, at, checksum, change, detail FROM journal WHERE $1 < first ORDER BY first LIMIT $2";
    let params: [(&(dyn ToSql + Sync), Type); 2] = [(&signed(after), Type::INT8), (&PAGE, Type::INT8)];
    client.query_typed(sql, &params).await?.iter().map(read_row).collect()
}

async fn read_history(client: &Client, after: u64, until: u64) -> Done<Vec<HistoryRow>> {
    let sql =
        "SELECT seq, run_id, schedule_id, verdict, is_final, agent, project, shown_at, duration_ms, late_ms, tokens, cost_micros
        FROM history WHERE $1 < seq AND seq <= $2 ORDER BY seq";
    let params: [(&(dyn ToSql + Sync), Type); 2] = [(&signed(after), Type::INT8), (&signed(until), Type::INT8)];
    client.query_typed(sql, &params).await?.iter().map(read_history_row).collect()
}

fn read_history_row(row: &Row) -> Done<HistoryRow> {
    let number = |column: usize| row.get::<_, Option<i64>>(column).map(count);
    Ok(HistoryRow {
        seq: count(row.get(0)),
        run: row.get(1),
        schedule: row.get(2),
        verdict: from_word(row.get(3), "a verdict")?,
        is_final: row.get(4),
        agent: row.get(5),
        project: row.get(6),
        shown_at: row.get::<_, At>(7).0,
        duration_ms: number(8),
        late_ms: number(9),
        tokens: number(10),
        cost_micros: number(11),
    })
}

fn differences_of_history(folded: &[HistoryRow], kept: &[HistoryRow]) -> Vec<String> {
    let is_in = |rows: &[HistoryRow], row: &HistoryRow| {
        rows.binary_search_by_key(&row.seq, |it| it.seq).is_ok_and(|index| rows[index] == *row)
    };
    let missing = folded.iter().filter(|row| !is_in(kept, row));
    let missing = missing.map(|row| format!("entry {} is not in history as the journal has it", row.seq));
    let others = kept.iter().filter(|row| folded.binary_search_by_key(&row.seq, |it| it.seq).is_err());
    missing.chain(others.map(|row| format!("entry {} is in history and is none", row.seq))).collect()
}

/// History of entries that the journal does not have.
async fn find_other_history(client: &Client, before: u64, last: u64) -> Done<Option<String>> {
    let sql = "SELECT count(*) FROM history WHERE seq <= $1 OR $2 < seq";
    let params: [(&(dyn ToSql + Sync), Type); 2] = [(&signed(before), Type::INT8), (&signed(last), Type::INT8)];
    let others = count(client.query_typed_one(sql, &params).await?.get(0));
    Ok((0 < others).then(|| format!("history has {others} rows of entries that the journal does not have")))
}

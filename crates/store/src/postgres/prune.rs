//! Retention: the oldest rows of the journal become part of the base, and go.

use jiff::Timestamp;
use punctual_core::journal::Entry;
use punctual_kernel::change::Wants;
use tokio::sync::oneshot;
use tokio_postgres::Client;
use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

use super::PostgresStore;
use super::connect::Connections;
use super::copies::{BASE, CopyRows};
use super::fault::{Done, Fault};
use super::journal::read_changes;
use super::look::Question;
use super::statement::{Statement, send};
use super::sums;
use super::values::At;
use crate::columns::count;
use crate::error::{Result, StoreError};
use crate::journal_rows::ChangeRow;
use crate::kept::Kept;

const DOING: &str = "pruning the journal";

/// How many entries go at a time, at least if there are as many.
const PIECE: usize = 1_000;

/// How many rows are looked at for them.
const ROWS_MAX: i64 = 64;

/// Nobody waits for ever. The pen is taken with the last statement only.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = '5s'; \
    SET LOCAL statement_timeout = '60s'; SET LOCAL idle_in_transaction_session_timeout = '30s'";

/// Lets go of the entries that were written before an instant, piece by piece. How many.
pub(super) async fn prune(store: &PostgresStore, before: Timestamp) -> Result<u64> {
    let mut pruned = 0;
    let mut is_saved = false;
    loop {
        let connections = store.connections.clone();
        match store.read_on(DOING, async move { prune_piece(&connections, before).await }).await? {
            Pruned::Entries(count) => (pruned, is_saved) = (pruned + count, false),
            // The snapshot has to be as far as that first: what it is followed from must stay.
            Pruned::BehindSnapshot if !is_saved => {
                save_snapshot(store).await?;
                is_saved = true;
            }
            Pruned::BehindSnapshot | Pruned::Nothing => return Ok(pruned),
        }
    }
}

/// What became of one piece.
enum Pruned {
    /// So many entries are gone.
    Entries(u64),
    /// There are old ones that the snapshot does not have yet.
    BehindSnapshot,
    /// There are none.
    Nothing,
}

/// Has the snapshot brought to the end of the journal.
async fn save_snapshot(store: &PostgresStore) -> Result<()> {
    let (reply, saved) = oneshot::channel();
    let gone = |why: &'static str| StoreError::Unavailable { doing: DOING, source: why.into() };
    store.look("looking at the end of the journal", |_| ()).await?;
    store.questions.send(Question::Save(reply)).map_err(|_| gone("the store has stopped"))?;
    saved.await.map_err(|_| gone("the snapshot cannot be written now"))
}

async fn prune_piece(connections: &Connections, before: Timestamp) -> Done<Pruned> {
    connections
        .with(async |client: &Client| {
            client.batch_execute(BEGIN).await?;
            // One prunes at a time, and the sums stay where they are: who brings the snapshot further comes again.
            client.query_typed_one("SELECT 1 FROM base_rest CROSS JOIN snapshot FOR UPDATE", &[]).await?;
            let pruned = prune_locked(client, before).await?;
            if !matches!(pruned, Pruned::Entries(_)) {
                client.batch_execute("ROLLBACK").await?;
            }
            Ok(pruned)
        })
        .await
}

async fn prune_locked(client: &Client, before: Timestamp) -> Done<Pruned> {
    let sql = "SELECT first, last, at, checksum, change, snapshot.seq
        FROM snapshot CROSS JOIN (SELECT * FROM journal ORDER BY first LIMIT $1) AS oldest ORDER BY first";
    let params: [(&(dyn ToSql + Sync), Type); 1] = [(&ROWS_MAX, Type::INT8)];
    let (mut entries, mut last): (Vec<Entry>, Option<ChangeRow>) = (vec![], None);
    for row in &client.query_typed(sql, &params).await? {
        let (journal_row, snapshot) = (read_changes(row)?, count(row.get(5)));
        let is_old = At(journal_row.at) <= At::before(before);
        if !is_old || PIECE <= entries.len() {
            break;
        }
        if snapshot < journal_row.last {
            if last.is_none() {
                return Ok(Pruned::BehindSnapshot);
            }
            break;
        }
        entries.extend(journal_row.bare_entries()?);
        last = Some(journal_row);
    }
    let Some(last) = last else { return Ok(Pruned::Nothing) };
    let mut statements = move_base(client, &entries).await?;
    let before = entries.first().map_or(0, |entry| entry.seq - 1);
    statements.extend(sums::take_out(before, last.last));
    statements.extend(forget(&entries, &last));
    send(client, &statements, "COMMIT").await?;
    Ok(Pruned::Entries(entries.len() as u64))
}

/// What takes entries into the base.
async fn move_base(client: &Client, entries: &[Entry]) -> Done<Vec<Statement>> {
    let mut wants = Wants::default();
    entries.iter().for_each(|entry| wants.extend(Wants::of_entry(&entry.body)));
    let mut before = BASE.read_some(client, &wants).await?;
    before.seq = entries.first().map_or(0, |entry| entry.seq - 1);
    let mut after = before.clone();
    for entry in entries {
        let differs =
            |error| Fault::Damaged(format!("entry {} of the journal cannot have happened: {error}", entry.seq));
        after.apply(entry).map_err(differs)?;
    }
    Ok(BASE.put(&CopyRows::of_base_change(&before, &after)))
}

/// What lets go of entries up to the last of a row. The pen comes last: whoever writes waits for that alone.
fn forget(entries: &[Entry], last: &ChangeRow) -> Vec<Statement> {
    let subjects: Vec<(Uuid, u64)> =
        entries.iter().filter_map(|entry| Some((entry.body.subject()?, entry.seq))).collect();
    let gone = |sql: &str| Statement::new(sql).number(last.last);
    vec![
        gone("DELETE FROM journal WHERE last <= $1 AND first <= $1"),
        gone("DELETE FROM history WHERE seq <= $1"),
        gone("DELETE FROM records WHERE seq <= $1"),
        Statement::new(
            "DELETE FROM subjects USING unnest($1, $2) AS gone (id, number) WHERE subject = gone.id AND seq = gone.number",
        )
        .uuids(subjects.iter().map(|(id, _)| *id))
        .numbers(subjects.iter().map(|(_, seq)| *seq)),
        Statement::new("UPDATE pen SET first_seq = $1, checksum_before = $2")
            .number(last.last + 1)
            .number(last.checksum),
    ]
}

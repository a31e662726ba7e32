//! Loading: the state as the snapshot has it, and what commands need that it does not have.

use std::time::Duration;

use punctual_core::journal::{EndedRun, Entry};
use punctual_kernel::state::State;
use punctual_kernel::transaction::{Found, Needs};
use tokio::time::Instant;
use tokio_postgres::Client;
use tokio_postgres::types::Type;
use tracing::info;
use uuid::Uuid;

use super::connect::Connections;
use super::copies::SNAPSHOT;
use super::fault::{Done, Fault};
use super::journal::{entries_of, of_rows};
use super::tail::{self, Known};
use super::values::At;
use crate::columns::{count, signed};
use crate::requests::{Answered, Head};

/// How often somebody is told how far it has come.
const TELL_EVERY: Duration = Duration::from_secs(3);

/// How long one look at the journal may take.
pub(super) const FOLLOW_MAX: Duration = Duration::from_secs(5);

/// A state, and the entry that the snapshot was at from which it was read.
pub(super) struct Loaded {
    pub(super) known: Known,
    pub(super) snapshot: u64,
}

/// Reads the snapshot, in pages and while others write, and follows the journal to its end. However long that takes.
pub(super) async fn load(connections: &Connections) -> Done<Loaded> {
    loop {
        let mut loaded = load_snapshot(connections).await?;
        match follow_to_end(connections, &mut loaded.known).await {
            // Retention was faster, and the snapshot is further by now.
            Err(Fault::Behind(_)) => {}
            followed => return followed.map(|()| loaded),
        }
    }
}

async fn load_snapshot(connections: &Connections) -> Done<Loaded> {
    connections
        .in_one_state(async |client: &Client| {
            let seq = client.query_typed_one("SELECT seq FROM snapshot", &[]).await?;
            let head = head_at(client, count(seq.get(0))).await?;
            let mut told_at = Instant::now();
            let mut world = SNAPSHOT
                .read(client, |schedules, runs| {
                    if TELL_EVERY <= told_at.elapsed() {
                        told_at = Instant::now();
                        info!("opening the database: {schedules} schedules and {runs} runs are read");
                    }
                })
                .await?;
            world.seq = head.seq;
            Ok(Loaded { known: Known { state: State::new(world), head, undo: None }, snapshot: head.seq })
        })
        .await
}

async fn follow_to_end(connections: &Connections, known: &mut Known) -> Done<()> {
    let mut told_at = Instant::now();
    loop {
        let tail = follow(connections, known.head).await?;
        known.take_in(&tail)?;
        if tail.is_whole {
            return Ok(());
        }
        if TELL_EVERY <= told_at.elapsed() {
            told_at = Instant::now();
            info!("opening the database: entry {} of the journal is read", known.head.seq);
        }
    }
}

/// Reads what was written behind an entry, without the pen.
pub(super) async fn follow(connections: &Connections, known: Head) -> Done<tail::Tail> {
    let read = connections.with(async |client: &Client| tail::read(client, known).await);
    tokio::time::timeout(FOLLOW_MAX, read).await.unwrap_or(Err(Fault::Slow(FOLLOW_MAX.as_secs())))
}

/// The entry of a number, which must be the last of a commit, or stand before the first that is kept.
pub(super) async fn head_at(client: &Client, seq: u64) -> Done<Head> {
    let sql = "SELECT last, checksum FROM journal WHERE first <= $1 ORDER BY first DESC LIMIT 1";
    let row = client.query_typed_opt(sql, &[(&signed(seq), Type::INT8)]).await?;
    let head = row.as_ref().map_or_else(Head::default, |row| head(row.get(0), row.get(1)));
    let head = if row.is_some() { head } else { base_head(client).await? };
    if head.seq == seq {
        return Ok(head);
    }
    Err(Fault::Damaged(format!(
        "the snapshot is at entry {seq}, which the journal does not have as the end of a commit"
    )))
}

/// The entry before the first that is kept.
pub(super) async fn base_head(client: &Client) -> Done<Head> {
    let row = client.query_typed_one("SELECT first_seq - 1, checksum_before FROM pen", &[]).await?;
    Ok(head(row.get(0), row.get(1)))
}

/// The last entry.
pub(super) async fn read_head(client: &Client) -> Done<Head> {
    let last = client.query_typed_opt("SELECT last, checksum FROM journal ORDER BY first DESC LIMIT 1", &[]).await?;
    match last {
        Some(row) => Ok(head(row.get(0), row.get(1))),
        None => base_head(client).await,
    }
}

fn head(seq: i64, checksum: i64) -> Head {
    Head { seq: count(seq), checksum: checksum.cast_unsigned() }
}

/// Reads what commands need and the state does not have.
pub(super) async fn find(client: &Client, state: &State, needs: &Needs) -> Done<Found> {
    let mut found = Found::default();
    let missing: Vec<Uuid> = needs.runs.iter().filter(|id| state.run(**id).is_none()).map(|id| id.0).collect();
    if !missing.is_empty() {
        for ended in last_of_runs(client, &missing).await?.iter().filter_map(EndedRun::of) {
            found.ended.insert(ended.id, ended);
        }
    }
    if !needs.keys.is_empty() {
        let sql = "SELECT key, digest, subject, at FROM answers WHERE key = ANY($1)";
        for row in client.query_typed(sql, &[(&needs.keys, Type::TEXT_ARRAY)]).await? {
            let (digest, at) = (row.get::<_, i64>(1).cast_unsigned(), row.get::<_, At>(3).0);
            found.answers.insert(row.get(0), Answered { digest, subject: row.get(2), at });
        }
    }
    Ok(found)
}

/// The last entry of history about each of these runs.
async fn last_of_runs(client: &Client, runs: &[Uuid]) -> Done<Vec<Entry>> {
    let sql =
        "SELECT (SELECT seq FROM history WHERE run_id = run ORDER BY seq DESC LIMIT 1) AS seq FROM unnest($1) AS run";
    let rows = client.query_typed(&of_rows(sql), &[(&runs, Type::UUID_ARRAY)]).await?;
    entries_of(&rows)
}

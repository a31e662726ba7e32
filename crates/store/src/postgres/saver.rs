//! The snapshot follows: what has changed in the state is written in pieces, beside the writer and never under the pen.
//!
//! Every process follows the whole journal, so any of them can bring the snapshot further, and one of them is enough: who finds
//! that another does it waits a while with each piece, and lets go of those that have become the past by then. A piece says what
//! has changed since an entry; it may be put on a snapshot at that entry or behind it, and only if the journal has what it is at.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use punctual_core::ScheduleId;
use punctual_core::schedule::Schedule;
use punctual_kernel::state::{SnapshotPiece, State};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_postgres::Client;
use tokio_postgres::types::{ToSql, Type};
use tracing::debug;

use super::connect::Connections;
use super::copies::{CopyRows, SNAPSHOT};
use super::fault::{Done, Fault};
use super::statement::{Statement, send};
use super::sums;
use super::tail::Known;
use crate::columns::{count, signed};
use crate::requests::Head;

/// How often a piece is written while something changes.
const EVERY: Duration = Duration::from_secs(1);

/// When so much has changed, it is written at once.
const UNSAVED_MAX: usize = 5_000;

/// How long a piece waits for another process to do it.
const PATIENCE: Duration = Duration::from_secs(3);

/// How long writing a piece may take.
const WRITE_MAX: Duration = Duration::from_secs(60);

/// Nobody waits for a lock or a statement for ever, nor for a client that is gone. The isolation is what it has to be, whatever is
/// usual on the server.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = '5s'; \
    SET LOCAL statement_timeout = '30s'; SET LOCAL idle_in_transaction_session_timeout = '10s'";

/// Who writes the snapshot of a process.
pub(super) struct Saver {
    connections: Connections,
    /// The entry that the next piece counts from.
    from: u64,
    /// How far the snapshot is known to be.
    saved: u64,
    /// Whether nobody else has written it, as far as is known.
    is_alone: bool,
    /// A piece that is not written yet, and when it is time to.
    piece: Option<(Arc<Piece>, Instant)>,
    writing: Option<Writing>,
    next_at: Instant,
    /// Who waits for the snapshot to be as far as an entry.
    asked: Vec<(u64, oneshot::Sender<()>)>,
}

/// A piece that is being written. It ends with whoever waits for it.
struct Writing(JoinHandle<Done<Written>>);

impl Drop for Writing {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What brings the snapshot from an entry to another.
struct Piece {
    from: u64,
    head: Head,
    piece: SnapshotPiece,
    /// The schedules of its runs.
    schedules: HashMap<ScheduleId, Arc<Schedule>>,
}

/// What became of a piece.
#[derive(Debug, Clone, Copy)]
enum Written {
    /// The snapshot is at this entry, which it was brought to by this process alone, or not.
    At { seq: u64, is_alone: bool },
    /// Another process is at it.
    Busy,
}

impl Piece {
    fn of(from: u64, known: &Known) -> Piece {
        let (state, piece): (&State, _) = (&known.state, known.state.snapshot_piece());
        let runs = piece.runs.iter().filter_map(|(_, run)| run.as_ref());
        let schedules = runs.filter_map(|run| Some((run.schedule?, state.schedule_of(run)?))).collect();
        Piece { from, head: known.head, piece, schedules }
    }

    /// Writes it, if it is still wanted.
    async fn write(&self, connections: &Connections) -> Done<Written> {
        connections
            .with(async |client: &Client| {
                client.batch_execute(BEGIN).await?;
                let (written, statements) = self.decide(client).await?;
                let last = if statements.is_empty() { "ROLLBACK" } else { "COMMIT" };
                send(client, &statements, last).await?;
                Ok(written)
            })
            .await
    }

    /// What becomes of it, and what is to be written for that.
    async fn decide(&self, client: &Client) -> Done<(Written, Vec<Statement>)> {
        let row = client.query_typed_opt("SELECT seq FROM snapshot FOR UPDATE SKIP LOCKED", &[]).await?;
        let Some(seq) = row.map(|row| count(row.get(0))) else { return Ok((Written::Busy, vec![])) };
        if self.head.seq <= seq {
            return Ok((Written::At { seq, is_alone: false }, vec![]));
        }
        let sql = "SELECT last = $1 AND checksum = $2 FROM journal WHERE first <= $1 ORDER BY first DESC LIMIT 1";
        let head: [(&(dyn ToSql + Sync), Type); 2] =
            [(&signed(self.head.seq), Type::INT8), (&signed(self.head.checksum), Type::INT8)];
        let has_entry = client.query_typed_opt(sql, &head).await?.is_some_and(|row| row.get(0));
        if seq < self.from || !has_entry {
            return Err(Fault::Lost(self.head.seq));
        }
        let mut rows = CopyRows::of(&self.piece, |id| self.schedules.get(&id).cloned());
        if self.from < seq {
            // What has come and gone since was not too short for the other one.
            rows.also_gone(&self.piece.passed_schedules, &self.piece.passed_runs);
        }
        let mut statements = SNAPSHOT.put(&rows);
        statements.extend(sums::add(seq, self.head.seq));
        statements.push(Statement::new("UPDATE snapshot SET seq = $1").number(self.head.seq));
        Ok((Written::At { seq: self.head.seq, is_alone: seq == self.from }, statements))
    }
}

impl Saver {
    pub(super) fn new(connections: Connections) -> Saver {
        Saver {
            connections,
            from: 0,
            saved: 0,
            is_alone: true,
            piece: None,
            writing: None,
            next_at: Instant::now(),
            asked: vec![],
        }
    }

    /// The state was read anew, from a snapshot at this entry.
    pub(super) fn begin_at(&mut self, seq: u64) {
        (self.from, self.saved) = (seq, seq);
        (self.piece, self.writing) = (None, None);
        self.asked.clear();
    }

    /// Somebody waits for the snapshot to have everything that is known.
    pub(super) fn ask(&mut self, known: &Known, reply: oneshot::Sender<()>) {
        self.asked.push((known.head.seq, reply));
        self.tell();
        if let Some((_, write_at)) = &mut self.piece {
            *write_at = Instant::now();
        }
    }

    /// Waits until there is something to do ([`Saver::go_on`]), for a state of which so much is unsaved.
    pub(super) async fn due(&mut self, unsaved: usize) -> Option<Outcome> {
        if let Some(writing) = &mut self.writing {
            let written = (&mut writing.0).await;
            self.writing = None;
            return Some(Outcome(written.unwrap_or(Ok(Written::Busy))));
        }
        match &self.piece {
            Some((_, write_at)) => tokio::time::sleep_until(*write_at).await,
            None if !self.asked.is_empty() || UNSAVED_MAX <= unsaved => {}
            None if unsaved == 0 => std::future::pending().await,
            None => tokio::time::sleep_until(self.next_at).await,
        }
        None
    }

    /// Does what is due.
    pub(super) fn go_on(&mut self, outcome: Option<Outcome>, known: &mut Known) {
        let now = Instant::now();
        if let Some(Outcome(written)) = outcome {
            return self.note(written, now);
        }
        let waits = !self.is_alone && self.asked.is_empty();
        let (piece, write_at) = self.piece.get_or_insert_with(|| {
            let piece = Piece::of(self.from, known);
            known.state.note_saved();
            (self.from, self.next_at) = (known.head.seq, now + EVERY);
            (Arc::new(piece), if waits { now + PATIENCE } else { now })
        });
        if *write_at <= now {
            let (piece, connections) = (Arc::clone(piece), self.connections.clone());
            let write = async move {
                let slow = |_| Err(Fault::Slow(WRITE_MAX.as_secs()));
                tokio::time::timeout(WRITE_MAX, piece.write(&connections)).await.unwrap_or_else(slow)
            };
            self.writing = Some(Writing(tokio::spawn(write)));
        }
    }

    /// Brings the snapshot to where the state is, as far as that can be done: nothing more comes.
    pub(super) async fn finish(&mut self, known: &mut Known) {
        self.ask(known, oneshot::channel().0);
        while !self.asked.is_empty() {
            let outcome = self.due(known.state.unsaved()).await;
            self.go_on(outcome, known);
        }
    }

    fn note(&mut self, written: Done<Written>, now: Instant) {
        match written {
            Ok(Written::At { seq, is_alone }) => {
                (self.saved, self.is_alone) = (self.saved.max(seq), is_alone);
                self.piece = None;
                self.tell();
                return;
            }
            Ok(Written::Busy) => {}
            Err(fault) => {
                debug!("the snapshot stays where it is for now: {fault}");
                // Whoever waits may ask again.
                self.asked.clear();
            }
        }
        let rest = if self.asked.is_empty() { EVERY } else { EVERY / 10 };
        if let Some((_, write_at)) = &mut self.piece {
            *write_at = now + rest;
        }
    }

    /// Tells those who wait for what is there.
    fn tell(&mut self) {
        let saved = self.saved;
        let (told, waiting) = std::mem::take(&mut self.asked).into_iter().partition(|(seq, _)| *seq <= saved);
        self.asked = waiting;
        let told: Vec<(u64, oneshot::Sender<()>)> = told;
        // Whoever has gone away does not want to know.
        told.into_iter().for_each(|(_, reply)| reply.send(()).unwrap_or_default());
    }
}

/// What became of a piece that was being written.
pub(super) struct Outcome(Done<Written>);

//! What runs print.

use async_trait::async_trait;
use jiff::Timestamp;
use punctual_core::RunId;
use rusqlite::params;

use super::SqliteStore;

use super::values::{At, Id, count, from_word, micros_before, rows_max, signed};
use crate::columns::to_word;
use crate::error::Result;
use crate::requests::{Piece, PrintedPiece};
use crate::roles::Output;

#[async_trait]
impl Output for SqliteStore {
    async fn print(&self, pieces: Vec<Piece>, keep: u64) -> Result<()> {
        let Some(_now) = pieces.iter().map(|piece| piece.at).max() else { return Ok(()) };
        self.write("keeping output", move |connection| {
            let add = "INSERT OR IGNORE INTO output (run_id, epoch, attempt, stream, at, ends_at, text)
                VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
            let mut add = connection.prepare_cached(add)?;
            let cut = "DELETE FROM output WHERE run_id = ?1 AND epoch = ?2 AND ends_at <= ?3";
            let mut cut = connection.prepare_cached(cut)?;
            for piece in &pieces {
                let Piece { run, epoch, attempt, stream, at, ends_at, text } = piece;
                let (run, epoch) = (Id(run.0), signed(*epoch));
                add.execute(params![run, epoch, attempt, to_word(stream), At(*at), signed(*ends_at), text])?;
                if let Some(end @ 1..) = ends_at.checked_sub(keep) {
                    cut.execute(params![run, epoch, signed(end)])?;
                }
            }
            Ok(())
        })
        .await
    }

    async fn printed(&self, run: RunId, after: u64, limit: usize) -> Result<Vec<PrintedPiece>> {
        self.read("reading output", move |connection| {
            let sql = "SELECT seq, epoch, attempt, stream, at, ends_at, text FROM output
                WHERE run_id = ?1 AND ?2 < seq ORDER BY seq LIMIT ?3";
            let mut statement = connection.prepare_cached(sql)?;
            let mut rows = statement.query(params![Id(run.0), signed(after), rows_max(limit)])?;
            let mut printed = vec![];
            while let Some(row) = rows.next()? {
                let piece = Piece {
                    run,
                    epoch: count(row.get(1)?),
                    attempt: row.get(2)?,
                    stream: from_word(&row.get::<_, String>(3)?, "a stream")?,
                    at: row.get::<_, At>(4)?.0,
                    ends_at: count(row.get(5)?),
                    text: row.get(6)?,
                };
                printed.push(PrintedPiece { seq: count(row.get(0)?), piece });
            }
            Ok(printed)
        })
        .await
    }

    async fn forget_output(&self, before: Timestamp) -> Result<usize> {
        self.write("forgetting output", move |connection| {
            let sql = "DELETE FROM output WHERE at <= ?1";
            Ok(connection.prepare_cached(sql)?.execute([micros_before(before)])?)
        })
        .await
    }
}

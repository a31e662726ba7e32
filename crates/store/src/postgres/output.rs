//! What runs print. It has nothing to do with the journal, and so it needs no pen.

use async_trait::async_trait;
use jiff::Timestamp;
use punctual_core::RunId;
use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

use super::PostgresStore;
use super::values::At;
use crate::columns::{count, from_word, signed, to_word};
use crate::error::Result;
use crate::requests::{Piece, PrintedPiece};
use crate::roles::Output;

#[async_trait]
impl Output for PostgresStore {
    async fn print(&self, pieces: Vec<Piece>, keep: u64) -> Result<()> {
        let connections = self.connections.clone();
        self.read_on("keeping output", async move {
            let runs: Vec<Uuid> = pieces.iter().map(|it| it.run.0).collect();
            let numbers = |of: fn(&Piece) -> u64| pieces.iter().map(|it| signed(of(it))).collect::<Vec<i64>>();
            let (epochs, attempts) = (numbers(|it| it.epoch), numbers(|it| it.attempt.into()));
            let ends = numbers(|it| it.ends_at);
            let streams: Vec<String> = pieces.iter().map(|it| to_word(&it.stream)).collect();
            let times: Vec<At> = pieces.iter().map(|it| At(it.at)).collect();
            let texts: Vec<&str> = pieces.iter().map(|it| it.text.as_str()).collect();
            let sql = "INSERT INTO output (run_id, epoch, attempt, stream, at, ends_at, text)
                SELECT run_id, epoch, attempt, stream, at, ends_at, text
                FROM unnest($1, $2, $3, $4, $5, $6, $7)
                    WITH ORDINALITY AS new (run_id, epoch, attempt, stream, at, ends_at, text, place)
                ORDER BY place
                ON CONFLICT DO NOTHING";
            let params: [(&(dyn ToSql + Sync), Type); 7] = [
                (&runs, Type::UUID_ARRAY),
                (&epochs, Type::INT8_ARRAY),
                (&attempts, Type::INT8_ARRAY),
                (&streams, Type::TEXT_ARRAY),
                (&times, Type::TIMESTAMPTZ_ARRAY),
                (&ends, Type::INT8_ARRAY),
                (&texts, Type::TEXT_ARRAY),
            ];
            connections.query(sql, &params).await?;
            if pieces.iter().any(|piece| keep < piece.ends_at) {
                let sql = "DELETE FROM output USING (
                        SELECT run_id, epoch, max(ends_at) AS ends_at FROM unnest($1, $2, $3) AS new (run_id, epoch, ends_at)
                        GROUP BY run_id, epoch
                    ) AS last
                    WHERE output.run_id = last.run_id AND output.epoch = last.epoch AND output.ends_at <= last.ends_at - $4";
                let params: [(&(dyn ToSql + Sync), Type); 4] = [
                    (&runs, Type::UUID_ARRAY),
                    (&epochs, Type::INT8_ARRAY),
                    (&ends, Type::INT8_ARRAY),
                    (&signed(keep), Type::INT8),
                ];
                connections.query(sql, &params).await?;
            }
            Ok(())
        })
        .await
    }

    async fn printed(&self, run: RunId, after: u64, limit: usize) -> Result<Vec<PrintedPiece>> {
        let connections = self.connections.clone();
        self.read("reading output", async move {
            let sql = "SELECT seq, epoch, attempt, stream, at, ends_at, text FROM output
                WHERE run_id = $1 AND $2 < seq ORDER BY seq LIMIT $3";
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let params: [(&(dyn ToSql + Sync), Type); 3] =
                [(&run.0, Type::UUID), (&signed(after), Type::INT8), (&limit, Type::INT8)];
            let mut printed = vec![];
            for row in &connections.query(sql, &params).await? {
                let piece = Piece {
                    run,
                    epoch: count(row.get(1)),
                    attempt: u32::try_from(row.get::<_, i64>(2)).unwrap_or(u32::MAX),
                    stream: from_word(row.get(3), "a stream")?,
                    at: row.get::<_, At>(4).0,
                    ends_at: count(row.get(5)),
                    text: row.get(6),
                };
                printed.push(PrintedPiece { seq: count(row.get(0)), piece });
            }
            Ok(printed)
        })
        .await
    }

    async fn forget_output(&self, before: Timestamp) -> Result<usize> {
        let connections = self.connections.clone();
        self.read_on("forgetting output", async move {
            let sql = "WITH gone AS (DELETE FROM output WHERE at <= $1 RETURNING 1) SELECT count(*) FROM gone";
            let rows = connections.query(sql, &[(&At::before(before), Type::TIMESTAMPTZ)]).await?;
            Ok(count(rows[0].get(0)) as usize)
        })
        .await
    }
}

//! Plain SQL on PostgreSQL.

use std::time::SystemTime;

use jiff::Timestamp;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Statement};
use uuid::Uuid;

use super::{HistoryRow, JournalRow, OF_AGENT, RESULT};
use crate::database::connect;

/// A connection that is the only writer.
pub(super) struct Plain {
    client: Client,
    journal: Statement,
    history: Statement,
}

impl Plain {
    pub(super) async fn open(address: &str) -> anyhow::Result<Plain> {
        let client = connect(address).await?;
        client.batch_execute(include_str!("postgres.sql")).await?;
        let journal = client
            .prepare(
                "INSERT INTO journal SELECT seq, $4, entries, change
                 FROM unnest($1::bigint[], $2::bigint[], $3::bytea[]) AS it (seq, entries, change)",
            )
            .await?;
        let history = client
            .prepare(
                "INSERT INTO history (seq, start_seq, run_id, schedule_id, project, result, is_final, agent, shown_at, duration_ms)
                 SELECT seq, start_seq, run_id, schedule_id, project, $7, true, $8, shown_at, 0
                 FROM unnest($1::bigint[], $2::bigint[], $3::uuid[], $4::uuid[], $5::text[], $6::timestamptz[])
                     AS it (seq, start_seq, run_id, schedule_id, project, shown_at)",
            )
            .await?;
        Ok(Plain { client, journal, history })
    }

    /// One transaction, all of it sent before the first answer.
    pub(super) async fn commit(
        &self,
        rows: &[JournalRow],
        history: &[HistoryRow],
        now: Timestamp,
    ) -> anyhow::Result<()> {
        let numbers: Vec<i64> = rows.iter().map(|row| row.number).collect();
        let entries: Vec<i64> = rows.iter().map(|row| row.entries).collect();
        let changes: Vec<&[u8]> = rows.iter().map(|row| row.change.as_slice()).collect();
        let at = SystemTime::from(now);
        let journal: [&(dyn ToSql + Sync); 4] = [&numbers, &entries, &changes, &at];
        let ends: Vec<i64> = history.iter().map(|row| row.number).collect();
        let starts: Vec<i64> = history.iter().map(|row| row.start_number).collect();
        let runs: Vec<Uuid> = history.iter().map(|row| row.run).collect();
        let times: Vec<SystemTime> = history.iter().map(|row| row.shown_at.into()).collect();
        let schedules: Vec<Uuid> = history.iter().map(|row| row.schedule).collect();
        let projects: Vec<&str> = history.iter().map(|row| row.project.as_str()).collect();
        let past: [&(dyn ToSql + Sync); 8] = [&ends, &starts, &runs, &schedules, &projects, &times, &RESULT, &OF_AGENT];
        if history.is_empty() {
            // One statement is a transaction of its own.
            self.client.execute(&self.journal, &journal).await?;
            return Ok(());
        }
        let (began, journalled, kept, committed) = tokio::join!(
            self.client.batch_execute("BEGIN"),
            self.client.execute(&self.journal, &journal),
            self.client.execute(&self.history, &past),
            self.client.batch_execute("COMMIT"),
        );
        began?;
        journalled?;
        kept?;
        Ok(committed?)
    }
}

//! Runs, as people see and touch them.

use async_trait::async_trait;
use jiff::Timestamp;
use punctual_core::run::Run;
use punctual_core::{By, RunId};
use tokio_postgres::types::{ToSql, Type};

use super::PostgresStore;
use super::rows::{RUN_COLUMNS, read_runs};
use super::values::At;
use crate::columns::{count, to_word};
use crate::commands;
use crate::error::Result;
use crate::requests::{Cancellation, LiveCounts, RunFilter, RunWritten};
use crate::roles::Runs;

#[async_trait]
impl Runs for PostgresStore {
    async fn run(&self, id: RunId) -> Result<Option<Run>> {
        let connections = self.connections.clone();
        self.read("reading a run", async move {
            let sql = format!("SELECT {RUN_COLUMNS} FROM runs JOIN terms ON terms.id = terms_id WHERE runs.id = $1");
            let rows = connections.query(&sql, &[(&id.0, Type::UUID)]).await?;
            Ok(read_runs(&rows)?.pop())
        })
        .await
    }

    async fn live_counts(&self, now: Timestamp) -> Result<LiveCounts> {
        let connections = self.connections.clone();
        self.read("counting runs", async move {
            let sql = "SELECT state, count(*), count(*) FILTER (WHERE ready_at <= $1), min(ready_at) FROM runs
                WHERE ended_at IS NULL GROUP BY state";
            let rows = connections.query(sql, &[(&At::up_to(now), Type::TIMESTAMPTZ)]).await?;
            let mut counts = LiveCounts::default();
            for row in &rows {
                let (number, due) = (count(row.get(1)), count(row.get(2)));
                match row.get(0) {
                    "planned" => {
                        (counts.planned, counts.due) = (number, due);
                        counts.due_since = row.get::<_, Option<At>>(3).map(|at| at.0).filter(|_| 0 < due);
                    }
                    "claimed" => counts.claimed = number,
                    "running" => counts.running = number,
                    _ => counts.waiting = number,
                }
            }
            Ok(counts)
        })
        .await
    }

    async fn runs(&self, filter: &RunFilter) -> Result<Vec<Run>> {
        let connections = self.connections.clone();
        let filter = filter.clone();
        self.read("reading runs", async move {
            let mut sql = format!("SELECT {RUN_COLUMNS} FROM runs JOIN terms ON terms.id = terms_id WHERE true");
            let mut params: Vec<(&(dyn ToSql + Sync), Type)> = vec![];
            let schedule = filter.schedule.map(|id| id.0);
            let wait = filter.waits_for.as_ref().map(to_word);
            let (from, until) = (filter.from.map(At::before), filter.until.map(At::before));
            let limit = i64::try_from(filter.limit).unwrap_or(i64::MAX);
            for (condition, value, kind) in [
                ("schedule_id = ", schedule.as_ref().map(|it| it as &(dyn ToSql + Sync)), Type::UUID),
                ("state = 'waiting' AND wait_for = ", wait.as_ref().map(|it| it as _), Type::TEXT),
                ("scheduled_at > ", from.as_ref().map(|it| it as _), Type::TIMESTAMPTZ),
                ("scheduled_at <= ", until.as_ref().map(|it| it as _), Type::TIMESTAMPTZ),
            ] {
                if let Some(value) = value {
                    params.push((value, kind));
                    sql += &format!(" AND {condition}${}", params.len());
                }
            }
            if filter.only_live {
                sql += " AND ended_at IS NULL";
            }
            params.push((&limit, Type::INT8));
            sql += &format!(" ORDER BY scheduled_at, runs.id LIMIT ${}", params.len());
            read_runs(&connections.query(&sql, &params).await?)
        })
        .await
    }

    async fn ask(&self, now: Timestamp, run: Run, by: Option<By>) -> Result<bool> {
        commands::ask(self, now, run, by).await
    }

    async fn cancel(&self, now: Timestamp, id: RunId, by: Option<By>) -> Result<Cancellation> {
        commands::cancel(self, now, id, by).await
    }

    async fn resume(&self, now: Timestamp, id: RunId, epoch: Option<u64>, by: Option<By>) -> Result<RunWritten> {
        commands::resume(self, now, id, epoch, by).await
    }
}

//! Runs, as people see and touch them.

use async_trait::async_trait;
use jiff::Timestamp;
use punctual_core::run::Run;
use punctual_core::{By, RunId};
use rusqlite::params;

use super::SqliteStore;
use super::plan::rows_max;
use super::rows::{TermsRead, read_runs};
use super::values::{At, Id, count, micros_before, micros_up_to};
use crate::columns::to_word;
use crate::commands;
use crate::error::Result;
use crate::requests::{Cancellation, LiveCounts, RunFilter, RunWritten};
use crate::roles::Runs;

#[async_trait]
impl Runs for SqliteStore {
    async fn run(&self, id: RunId) -> Result<Option<Run>> {
        self.read("reading a run", move |connection| {
            let sql = "SELECT * FROM runs WHERE id = ?1";
            Ok(read_runs(connection, &mut TermsRead::default(), sql, [Id(id.0)])?.pop())
        })
        .await
    }

    async fn live_counts(&self, now: Timestamp) -> Result<LiveCounts> {
        self.read("counting runs", move |connection| {
            let sql = "SELECT state, count(*), ifnull(sum(ready_at <= ?1), 0), min(ready_at) FROM runs
                WHERE ended_at IS NULL GROUP BY state";
            let mut statement = connection.prepare_cached(sql)?;
            let mut rows = statement.query([micros_up_to(now)])?;
            let mut counts = LiveCounts::default();
            while let Some(row) = rows.next()? {
                let (number, due, first) = (count(row.get(1)?), count(row.get(2)?), row.get::<_, Option<At>>(3)?);
                match row.get::<_, String>(0)?.as_str() {
                    "planned" => {
                        (counts.planned, counts.due) = (number, due);
                        counts.due_since = first.map(|at| at.0).filter(|_| 0 < due);
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
        let filter = filter.clone();
        self.read("reading runs", move |connection| {
            let after = filter.from.map_or(i64::MIN, micros_before);
            let last = filter.until.map_or(i64::MAX, micros_before);
            let limit = rows_max(filter.limit);
            let terms = &mut TermsRead::default();
            if let Some(wait) = filter.waits_for {
                let schedule = filter.schedule.map(|id| Id(id.0));
                let params = params![after, last, schedule, limit, to_word(&wait)];
                return read_runs(connection, terms, include_str!("sql/runs_waiting.sql"), params);
            }
            match filter.schedule {
                None => {
                    let params = params![after, last, filter.only_live, limit];
                    read_runs(connection, terms, include_str!("sql/runs_by_time.sql"), params)
                }
                Some(schedule) => {
                    let params = params![after, last, filter.only_live, limit, Id(schedule.0)];
                    read_runs(connection, terms, include_str!("sql/runs_of_schedule.sql"), params)
                }
            }
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

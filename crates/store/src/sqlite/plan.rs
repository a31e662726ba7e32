//! Schedules and their plan.

use async_trait::async_trait;
use jiff::Timestamp;
use jiff::civil::Date;
use punctual_core::journal::ScheduleRecord;
use punctual_core::schedule::Schedule;
use punctual_core::{RunId, ScheduleId};
use rusqlite::{Connection, params};

use super::SqliteStore;
use super::fault::{Done, Fault};
use super::records::find_schedules;
use super::rows::{TermsRead, read_runs, read_schedule, read_schedules};
use super::values::{At, Id, count, micros_up_to};
use crate::commands;
use crate::error::Result;
use crate::requests::{PlanSubject, PlanTask, PlanWrite, ScheduleFilter, SchedulePage, Written, ZoneDay, subject_from};
use crate::roles::{Plan, Schedules};

#[async_trait]
impl Schedules for SqliteStore {
    async fn schedule(&self, id: ScheduleId) -> Result<Option<Schedule>> {
        self.read("reading a schedule", move |connection| Ok(read_schedule(connection, id)?.map(unshare))).await
    }

    async fn schedule_of_slot(&self, run: RunId) -> Result<Option<Schedule>> {
        if run.slot_id().is_none() {
            return Ok(None);
        }
        self.read("reading the schedule of a slot", move |connection| {
            let sql = "SELECT * FROM schedules WHERE substr(id, 9) = ?1";
            let mut found = read_schedules(connection, sql, params![&run.0.as_bytes()[8..]])?;
            Ok(found.pop().map(unshare))
        })
        .await
    }

    async fn schedules(&self, after: Option<ScheduleId>, limit: usize) -> Result<Vec<Schedule>> {
        self.read("reading schedules", move |connection| {
            // Every id lies behind nothing at all.
            let after = after.map_or(vec![], |id| id.0.as_bytes().to_vec());
            let sql = "SELECT * FROM schedules WHERE ?1 < id ORDER BY id LIMIT ?2";
            let records = read_schedules(connection, sql, params![after, rows_max(limit)])?;
            Ok(records.into_iter().map(unshare).collect())
        })
        .await
    }

    async fn count_schedules(&self) -> Result<u64> {
        self.read("counting schedules", |connection| {
            Ok(count(connection.query_row("SELECT count(*) FROM schedules", [], |row| row.get(0))?))
        })
        .await
    }

    async fn find_schedules(&self, filter: &ScheduleFilter) -> Result<SchedulePage> {
        let filter = filter.clone();
        self.read("finding schedules", move |connection| find_schedules(connection, &filter)).await
    }
}

#[async_trait]
impl Plan for SqliteStore {
    async fn to_plan(&self, now: Timestamp, zone_data: &str, limit: usize) -> Result<Vec<PlanTask>> {
        let zone_data = zone_data.to_owned();
        self.read("reading what is to be planned", move |connection| {
            let params = params![micros_up_to(now), zone_data, rows_max(limit)];
            let records = read_schedules(connection, include_str!("sql/to_plan.sql"), params)?;
            records.into_iter().map(|record| task(connection, record)).collect()
        })
        .await
    }

    async fn next_plan_at(&self) -> Result<Option<Timestamp>> {
        self.read("reading when to plan", |connection| {
            let sql = "SELECT min(plan_at) FROM schedules WHERE plan_at IS NOT NULL";
            let at: Option<At> = connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
            Ok(at.map(|at| at.0))
        })
        .await
    }

    async fn subject(&self, id: ScheduleId, now: Timestamp) -> Result<Option<PlanSubject>> {
        self.read("reading a schedule and its runs", move |connection| {
            let Some(record) = read_schedule(connection, id)? else { return Ok(None) };
            let task = task(connection, record)?;
            let frontier = micros_up_to(subject_from(&task.record, now));
            let sql = include_str!("sql/subject.sql");
            let runs = read_runs(connection, &mut TermsRead::default(), sql, params![Id(id.0), frontier])?;
            Ok(Some(PlanSubject { task, runs }))
        })
        .await
    }

    async fn plan(&self, now: Timestamp, writes: Vec<PlanWrite>) -> Result<Vec<Written>> {
        commands::plan(self, now, writes).await
    }

    async fn zone_days(&self) -> Result<Vec<ZoneDay>> {
        self.read("reading the days of zones", |connection| {
            let mut statement = connection.prepare_cached(include_str!("sql/zone_days.sql"))?;
            let days: Vec<(String, Option<String>)> =
                statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<rusqlite::Result<_>>()?;
            let day = |(zone, date): (String, Option<String>)| {
                Ok(ZoneDay { zone, begun: date.as_deref().map(read_date).transpose()? })
            };
            days.into_iter().map(day).collect()
        })
        .await
    }

    async fn begin_day(&self, now: Timestamp, zone: &str, date: Date) -> Result<bool> {
        commands::begin_day(self, now, zone, date).await
    }
}

fn task(connection: &Connection, record: ScheduleRecord) -> Done<PlanTask> {
    let mut statement = connection.prepare_cached(include_str!("sql/count_live.sql"))?;
    let (live, waiting): (i64, i64) =
        statement.query_row([Id(record.schedule.id.0)], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(PlanTask { record, waiting: count(waiting) as usize, live: count(live) as usize })
}

fn unshare(record: ScheduleRecord) -> Schedule {
    std::sync::Arc::unwrap_or_clone(record.schedule)
}

/// As many rows as the caller can take in, in a column's own numbers.
pub(super) fn rows_max(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

pub(super) fn read_date(text: &str) -> Done<Date> {
    text.parse().map_err(|error| Fault::damaged(format!("a day cannot be read: {error}")))
}

//! Schedules and their plan.

use async_trait::async_trait;
use jiff::Timestamp;
use jiff::civil::Date;
use punctual_core::schedule::Schedule;
use punctual_core::{RunId, ScheduleId};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row};
use uuid::Uuid;

use super::PostgresStore;
use super::fault::{Done, Fault};
use super::records::of_schedules;
use super::rows::{RUN_COLUMNS, SCHEDULE_COLUMNS, read_runs, read_schedule};
use super::values::At;
use crate::columns::count;
use crate::commands;
use crate::error::Result;
use crate::requests::{PlanSubject, PlanTask, PlanWrite, ScheduleFilter, SchedulePage, Written, ZoneDay, subject_from};
use crate::roles::{Plan, Schedules};

/// How many runs of a schedule are not over, and how many of them have never started.
const COUNTS: &str = "(SELECT count(*) FROM runs WHERE schedule_id = schedules.id AND ended_at IS NULL),
    (SELECT count(*) FROM runs WHERE schedule_id = schedules.id AND ended_at IS NULL AND NOT has_started)";

#[async_trait]
impl Schedules for PostgresStore {
    async fn schedule(&self, id: ScheduleId) -> Result<Option<Schedule>> {
        let connections = self.connections.clone();
        self.read("reading a schedule", async move {
            let sql = format!("SELECT {SCHEDULE_COLUMNS} FROM schedules WHERE id = $1");
            let rows = connections.query(&sql, &[(&id.0, Type::UUID)]).await?;
            rows.first().map(plain_schedule).transpose()
        })
        .await
    }

    async fn schedule_of_slot(&self, run: RunId) -> Result<Option<Schedule>> {
        if run.slot_id().is_none() {
            return Ok(None);
        }
        let connections = self.connections.clone();
        self.read("reading the schedule of a slot", async move {
            let sql =
                format!("SELECT {SCHEDULE_COLUMNS} FROM schedules WHERE substring(uuid_send(id) FROM 9) = $1 LIMIT 1");
            let tail = run.0.as_bytes()[8..].to_vec();
            let rows = connections.query(&sql, &[(&tail, Type::BYTEA)]).await?;
            rows.first().map(plain_schedule).transpose()
        })
        .await
    }

    async fn schedules(&self, after: Option<ScheduleId>, limit: usize) -> Result<Vec<Schedule>> {
        let connections = self.connections.clone();
        self.read("reading schedules", async move {
            let behind = if after.is_some() { "$1 < id" } else { "$1 <= id" };
            let sql = format!("SELECT {SCHEDULE_COLUMNS} FROM schedules WHERE {behind} ORDER BY id LIMIT $2");
            let after = after.map_or(Uuid::nil(), |id| id.0);
            let params: [(&(dyn ToSql + Sync), Type); 2] = [(&after, Type::UUID), (&rows_max(limit), Type::INT8)];
            let rows = connections.query(&sql, &params).await?;
            rows.iter().map(plain_schedule).collect()
        })
        .await
    }

    async fn count_schedules(&self) -> Result<u64> {
        let connections = self.connections.clone();
        self.read("counting schedules", async move {
            let rows = connections.query("SELECT count(*) FROM schedules", &[]).await?;
            Ok(count(rows[0].get(0)))
        })
        .await
    }

    async fn find_schedules(&self, filter: &ScheduleFilter) -> Result<SchedulePage> {
        let connections = self.connections.clone();
        let conditions = of_schedules(filter);
        let direction = if filter.is_reversed { "DESC" } else { "ASC" };
        let by_name = if filter.is_by_name { format!("name COLLATE \"C\" {direction}, ") } else { String::new() };
        let (limit, offset) = (filter.limit, filter.offset);
        self.read("finding schedules", async move {
            let sql = format!("SELECT count(*) FROM schedules WHERE {}", conditions.sql);
            let total = count(connections.query(&sql, &conditions.borrowed()).await?[0].get(0));
            let (conditions, page) = conditions.paged(limit, offset);
            let sql = format!(
                "SELECT {SCHEDULE_COLUMNS} FROM schedules WHERE {} ORDER BY {by_name}id {direction} {page}",
                conditions.sql
            );
            let rows = connections.query(&sql, &conditions.borrowed()).await?;
            Ok(SchedulePage { total, schedules: rows.iter().map(plain_schedule).collect::<Done<_>>()? })
        })
        .await
    }
}

#[async_trait]
impl Plan for PostgresStore {
    async fn to_plan(&self, now: Timestamp, zone_data: &str, limit: usize) -> Result<Vec<PlanTask>> {
        let connections = self.connections.clone();
        let zone_data = zone_data.to_owned();
        self.read("reading what is to be planned", async move {
            // What has no time of its own to be planned at comes first: an outage or new zone data waits for nothing.
            let sql = format!(
                "SELECT {SCHEDULE_COLUMNS}, {COUNTS} FROM schedules
                WHERE plan_at <= $1 OR outage_until IS NOT NULL OR zone_data < $2 OR $2 < zone_data
                ORDER BY plan_at NULLS FIRST, id LIMIT $3"
            );
            let params: [(&(dyn ToSql + Sync), Type); 3] =
                [(&At::up_to(now), Type::TIMESTAMPTZ), (&zone_data, Type::TEXT), (&rows_max(limit), Type::INT8)];
            let rows = connections.query(&sql, &params).await?;
            rows.iter().map(task).collect()
        })
        .await
    }

    async fn next_plan_at(&self) -> Result<Option<Timestamp>> {
        let connections = self.connections.clone();
        self.read("reading when to plan", async move {
            let sql = "SELECT min(plan_at) FROM schedules WHERE plan_at IS NOT NULL";
            let rows = connections.query(sql, &[]).await?;
            Ok(rows[0].get::<_, Option<At>>(0).map(|at| at.0))
        })
        .await
    }

    async fn subject(&self, id: ScheduleId, now: Timestamp) -> Result<Option<PlanSubject>> {
        let connections = self.connections.clone();
        self.read("reading a schedule and its runs", async move {
            connections.in_one_state(async |client: &Client| read_subject(client, id, now).await).await
        })
        .await
    }

    async fn plan(&self, now: Timestamp, writes: Vec<PlanWrite>) -> Result<Vec<Written>> {
        commands::plan(self, now, writes).await
    }

    async fn zone_days(&self) -> Result<Vec<ZoneDay>> {
        let connections = self.connections.clone();
        self.read("reading the days of zones", async move {
            let sql = include_str!("sql/zone_days.sql");
            let rows = connections.query(sql, &[]).await?;
            let day = |row: &Row| {
                let date = row.get::<_, Option<&str>>(1).map(str::parse).transpose();
                let begun = date.map_err(|error| Fault::Damaged(format!("a day cannot be read: {error}")))?;
                Ok(ZoneDay { zone: row.get(0), begun })
            };
            rows.iter().map(day).collect()
        })
        .await
    }

    async fn begin_day(&self, now: Timestamp, zone: &str, date: Date) -> Result<bool> {
        commands::begin_day(self, now, zone, date).await
    }
}

async fn read_subject(client: &Client, id: ScheduleId, now: Timestamp) -> Done<Option<PlanSubject>> {
    let sql = format!("SELECT {SCHEDULE_COLUMNS}, {COUNTS} FROM schedules WHERE id = $1");
    let row = client.query_typed_opt(&sql, &[(&id.0, Type::UUID)]).await?;
    let Some(task) = row.as_ref().map(task).transpose()? else { return Ok(None) };
    let frontier = At::up_to(subject_from(&task.record, now));
    let sql = format!(
        "SELECT {RUN_COLUMNS} FROM runs JOIN terms ON terms.id = terms_id
        WHERE schedule_id = $1 AND (state = 'planned' AND ended_at IS NULL OR $2 < scheduled_at)
        ORDER BY due_at, runs.id"
    );
    let params: [(&(dyn ToSql + Sync), Type); 2] = [(&id.0, Type::UUID), (&frontier, Type::TIMESTAMPTZ)];
    let runs = read_runs(&client.query_typed(&sql, &params).await?)?;
    Ok(Some(PlanSubject { task, runs }))
}

/// Reads the columns of a schedule, and its counts.
fn task(row: &Row) -> Done<PlanTask> {
    let record = read_schedule(row)?;
    let number = |column: usize| count(row.get(row.len() - column)) as usize;
    Ok(PlanTask { record, live: number(2), waiting: number(1) })
}

fn plain_schedule(row: &Row) -> Done<Schedule> {
    Ok(std::sync::Arc::unwrap_or_clone(read_schedule(row)?.schedule))
}

/// As many rows as the caller can take in, in a column's own numbers.
pub(super) fn rows_max(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

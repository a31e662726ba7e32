//! What became of workflows that schedules had started.

use async_trait::async_trait;
use punctual_core::{RunId, ScheduleId};
use rusqlite::{Connection, Row, ToSql, params, params_from_iter};

use super::SqliteStore;
use super::fault::Done;
use super::values::{At, Id, count, from_word, micros_before, micros_up_to, rows_max, to_json};
use crate::error::Result;
use crate::kept::live_records;
use crate::records::page;
use crate::requests::{Direction, Keep, RecordFilter, RecordItem, RecordOrder, RecordPage};
use crate::roles::Records;

#[async_trait]
impl Records for SqliteStore {
    async fn records(&self, filter: &RecordFilter) -> Result<RecordPage> {
        let asked = filter.clone();
        let kept = self.read_long("reading records", move |connection| kept_records(connection, &asked)).await?;
        let live = live_records(self).await?;
        Ok(page(filter, kept, live.into_iter()))
    }

    async fn archive(&self, schedules: Option<&[ScheduleId]>, keep: Keep) -> Result<usize> {
        let named = schedules.map(<[ScheduleId]>::to_vec);
        let found = self.read("looking for old records", move |connection| crowded(connection, named, keep)).await?;
        if found.is_empty() {
            return Ok(0);
        }
        self.write("letting go of old records", move |connection| {
            let mut gone = 0;
            for id in &found {
                // All but the latest.
                let sql = "DELETE FROM records WHERE schedule_id = ?1
                    AND seq NOT IN (SELECT seq FROM records WHERE schedule_id = ?1 ORDER BY seq DESC LIMIT ?2)";
                gone += connection.prepare_cached(sql)?.execute(params![Id(id.0), rows_max(keep.max)])?;
            }
            Ok(gone)
        })
        .await
    }
}

/// The first records that are kept, as many as the page and what comes before it have, and how many there are.
fn kept_records(connection: &Connection, filter: &RecordFilter) -> Done<RecordPage> {
    let conditions = of_records(filter);
    let sql = format!("SELECT count(*) FROM records WHERE {}", conditions.sql);
    let total =
        count(connection.prepare_cached(&sql)?.query_row(params_from_iter(&conditions.params), |row| row.get(0))?);
    let sql = format!(
        "SELECT seq, schedule_id, run_id, project, schedule, workflow, workflow_id, state, note, scheduled_at, executed_at
        FROM records WHERE {} ORDER BY {}seq DESC LIMIT ?",
        conditions.sql,
        order(&filter.sort)
    );
    let mut params = conditions.params;
    params.push(Box::new(rows_max(filter.offset.saturating_add(filter.limit))));
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params_from_iter(params))?;
    let mut records = vec![];
    while let Some(row) = rows.next()? {
        records.push(read_record(row)?);
    }
    Ok(RecordPage { total, records })
}

/// Schedules that have too many records.
fn crowded(connection: &Connection, named: Option<Vec<ScheduleId>>, keep: Keep) -> Done<Vec<ScheduleId>> {
    let threshold = rows_max(keep.threshold);
    if let Some(named) = named {
        let sql = "SELECT count(*) FROM records WHERE schedule_id = ?1";
        let mut statement = connection.prepare_cached(sql)?;
        let mut found = vec![];
        for id in named {
            let records: i64 = statement.query_row([Id(id.0)], |row| row.get(0))?;
            found.extend((threshold < records).then_some(id));
        }
        return Ok(found);
    }
    let sql = "SELECT schedule_id FROM records WHERE schedule_id IS NOT NULL GROUP BY schedule_id HAVING ?1 < count(*)";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([threshold], |row| Ok(ScheduleId(row.get::<_, Id>(0)?.0)))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn read_record(row: &Row<'_>) -> Done<RecordItem> {
    Ok(RecordItem {
        seq: row.get::<_, Option<i64>>(0)?.map(count),
        schedule_id: row.get::<_, Option<Id>>(1)?.map(|id| ScheduleId(id.0)),
        run: row.get::<_, Option<Id>>(2)?.map(|id| RunId(id.0)),
        project: row.get(3)?,
        schedule: row.get(4)?,
        workflow: row.get(5)?,
        workflow_id: row.get(6)?,
        state: from_word(&row.get::<_, String>(7)?, "the state of a record")?,
        note: row.get(8)?,
        scheduled_at: row.get::<_, At>(9)?.0,
        executed_at: row.get::<_, Option<At>>(10)?.map(|at| at.0),
    })
}

/// What a filter asks for. The text is made of constants: what people say is in the parameters.
struct Conditions {
    sql: String,
    params: Vec<Box<dyn ToSql>>,
}

impl Conditions {
    fn new() -> Conditions {
        Conditions { sql: "true".to_owned(), params: vec![] }
    }

    fn add(mut self, condition: &'static str, params: Option<Vec<Box<dyn ToSql>>>) -> Conditions {
        if let Some(params) = params {
            self.sql += condition;
            self.params.extend(params);
        }
        self
    }

    fn is(self, condition: &'static str, param: Option<impl ToSql + 'static>) -> Conditions {
        self.add(condition, param.map(|param| vec![Box::new(param) as Box<dyn ToSql>]))
    }

    /// One of the columns has a text in it.
    fn has(self, condition: &'static str, part: Option<&String>) -> Conditions {
        let places = condition.matches('?').count();
        let repeated = |part: &String| {
            let part = part.to_ascii_lowercase();
            (0..places).map(|_| Box::new(part.clone()) as Box<dyn ToSql>).collect()
        };
        self.add(condition, part.map(repeated))
    }

    fn of_projects(self, projects: Option<&Vec<Option<String>>>) -> Conditions {
        let condition = " AND ifnull(project, '') IN (SELECT ifnull(value, '') FROM json_each(?))";
        self.is(condition, projects.map(to_json))
    }
}

fn of_records(filter: &RecordFilter) -> Conditions {
    let states = |all: &Vec<_>| to_json(all);
    Conditions::new()
        .of_projects(filter.projects.as_ref())
        .is(" AND schedule IN (SELECT value FROM json_each(?))", filter.schedules.as_ref().map(to_json))
        .is(" AND state IN (SELECT value FROM json_each(?))", filter.states.as_ref().map(states))
        .is(" AND workflow IN (SELECT value FROM json_each(?))", filter.workflows.as_ref().map(to_json))
        .has(" AND instr(lower(workflow), ?)", filter.workflow_part.as_ref())
        .is(" AND run_id = ?", filter.run.map(|id| Id(id.0)))
        .is(" AND ? < scheduled_at", filter.after.map(micros_up_to))
        .is(" AND scheduled_at <= ?", filter.before.map(micros_before))
        .has(
            " AND (instr(lower(schedule), ?) OR instr(lower(workflow), ?) OR instr(lower(workflow_id), ?) \
             OR instr(lower(note), ?) OR instr(lower(hex(run_id)), replace(?, '-', '')))",
            filter.text.as_ref(),
        )
}

fn order(sort: &[(RecordOrder, Direction)]) -> String {
    let by = |(order, direction): &(RecordOrder, Direction)| {
        let column = match order {
            RecordOrder::ScheduledAt => "scheduled_at",
            RecordOrder::ExecutedAt => "ifnull(executed_at, scheduled_at)",
            RecordOrder::Schedule => "schedule",
            RecordOrder::Workflow => "workflow",
            RecordOrder::State => "state",
        };
        format!("{column} {}, ", if *direction == Direction::Down { "DESC" } else { "ASC" })
    };
    sort.iter().map(by).collect()
}

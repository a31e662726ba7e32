//! What became of workflows that schedules had started.

use async_trait::async_trait;
use punctual_core::{RunId, ScheduleId};
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

use super::PostgresStore;
use super::fault::Done;
use super::values::{At, rows_max};
use crate::columns::{count, from_word};
use crate::error::Result;
use crate::kept::live_records;
use crate::records;
use crate::requests::{Direction, Keep, RecordFilter, RecordItem, RecordOrder, RecordPage};
use crate::roles::Records;

type Param = (Box<dyn ToSql + Sync + Send>, Type);

#[async_trait]
impl Records for PostgresStore {
    async fn records(&self, filter: &RecordFilter) -> Result<RecordPage> {
        let connections = self.connections.clone();
        let (conditions, order) = (of_records(filter), order(&filter.sort));
        let rows = filter.offset.saturating_add(filter.limit);
        let kept = self.read_long("reading records", async move {
            let sql = format!("SELECT count(*) FROM records WHERE {}", conditions.sql);
            let total = count(connections.query(&sql, &conditions.borrowed()).await?[0].get(0));
            let (conditions, limit) = conditions.limited(rows);
            let sql = format!(
                "SELECT seq, schedule_id, run_id, project, schedule, workflow, workflow_id, state, note, scheduled_at, executed_at
                FROM records WHERE {} ORDER BY {order}seq DESC {limit}",
                conditions.sql
            );
            let rows = connections.query(&sql, &conditions.borrowed()).await?;
            Ok(RecordPage { total, records: rows.iter().map(read_record).collect::<Done<_>>()? })
        });
        let kept = kept.await?;
        let live = live_records(self).await?;
        Ok(records::page(filter, kept, live.into_iter()))
    }

    async fn archive(&self, schedules: Option<&[ScheduleId]>, keep: Keep) -> Result<usize> {
        let connections = self.connections.clone();
        let named: Option<Vec<Uuid>> = schedules.map(|those| those.iter().map(|id| id.0).collect());
        // It has nothing to do with the journal, and so it needs no pen.
        self.read_on("letting go of old records", async move {
            let sql = include_str!("sql/archive.sql");
            let params: [(&(dyn ToSql + Sync), Type); 3] = [
                (&named, Type::UUID_ARRAY),
                (&rows_max(keep.max), Type::INT8),
                (&rows_max(keep.threshold), Type::INT8),
            ];
            let rows = connections.query(sql, &params).await?;
            Ok(count(rows[0].get(0)) as usize)
        })
        .await
    }
}

fn read_record(row: &Row) -> Done<RecordItem> {
    Ok(RecordItem {
        seq: row.get::<_, Option<i64>>(0).map(count),
        schedule_id: row.get::<_, Option<Uuid>>(1).map(ScheduleId),
        run: row.get::<_, Option<Uuid>>(2).map(RunId),
        project: row.get(3),
        schedule: row.get(4),
        workflow: row.get(5),
        workflow_id: row.get(6),
        state: from_word(row.get(7), "the state of a record")?,
        note: row.get(8),
        scheduled_at: row.get::<_, At>(9).0,
        executed_at: row.get::<_, Option<At>>(10).map(|at| at.0),
    })
}

/// What a filter asks for. The text is made of constants: what people say is in the parameters.
struct Conditions {
    sql: String,
    params: Vec<Param>,
}

impl Conditions {
    fn new() -> Conditions {
        Conditions { sql: "true".to_owned(), params: vec![] }
    }

    /// Adds a condition in which `?` stands for a parameter, as often as it comes.
    fn is(
        mut self,
        condition: &'static str,
        param: Option<impl ToSql + Sync + Send + 'static>,
        kind: Type,
    ) -> Conditions {
        if let Some(param) = param {
            self.params.push((Box::new(param), kind));
            self.sql += " AND ";
            self.sql += &condition.replace('?', &format!("${}", self.params.len()));
        }
        self
    }

    fn has(self, condition: &'static str, part: Option<&String>) -> Conditions {
        self.is(condition, part.map(|part| part.to_ascii_lowercase()), Type::TEXT)
    }

    fn one_of(self, condition: &'static str, words: Option<Vec<String>>) -> Conditions {
        self.is(condition, words, Type::TEXT_ARRAY)
    }

    fn of_projects(self, projects: Option<&Vec<Option<String>>>) -> Conditions {
        let named = |projects: &Vec<Option<String>>| projects.iter().map(|it| it.clone().unwrap_or_default()).collect();
        self.one_of("coalesce(project, '') = ANY(?)", projects.map(named))
    }

    /// With the number of rows behind them, and the words for it.
    fn limited(mut self, rows: usize) -> (Conditions, String) {
        self.params.push((Box::new(rows_max(rows)), Type::INT8));
        let limit = format!("LIMIT ${}", self.params.len());
        (self, limit)
    }

    fn borrowed(&self) -> Vec<(&(dyn ToSql + Sync), Type)> {
        self.params.iter().map(|(value, kind)| (&**value as &(dyn ToSql + Sync), kind.clone())).collect()
    }
}

fn of_records(filter: &RecordFilter) -> Conditions {
    let states = filter.states.as_ref();
    Conditions::new()
        .of_projects(filter.projects.as_ref())
        .one_of("schedule = ANY(?)", filter.schedules.clone())
        .one_of("state = ANY(?)", states.map(|all| all.iter().map(|it| it.as_str().to_owned()).collect()))
        .one_of("workflow = ANY(?)", filter.workflows.clone())
        .has("strpos(lower(workflow), ?) > 0", filter.workflow_part.as_ref())
        .is("run_id = ?", filter.run.map(|id| id.0), Type::UUID)
        .is("? < scheduled_at", filter.after.map(At::up_to), Type::TIMESTAMPTZ)
        .is("scheduled_at <= ?", filter.before.map(At::before), Type::TIMESTAMPTZ)
        .has(
            "(strpos(lower(schedule), ?) > 0 OR strpos(lower(workflow), ?) > 0 OR strpos(lower(workflow_id), ?) > 0 \
             OR strpos(lower(note), ?) > 0 OR strpos(run_id::text, ?) > 0)",
            filter.text.as_ref(),
        )
}

fn order(sort: &[(RecordOrder, Direction)]) -> String {
    let by = |(order, direction): &(RecordOrder, Direction)| {
        let column = match order {
            RecordOrder::ScheduledAt => "scheduled_at",
            RecordOrder::ExecutedAt => "coalesce(executed_at, scheduled_at)",
            RecordOrder::Schedule => "schedule",
            RecordOrder::Workflow => "workflow",
            RecordOrder::State => "state",
        };
        format!("{column} {}, ", if *direction == Direction::Down { "DESC" } else { "ASC" })
    };
    sort.iter().map(by).collect()
}

//! What became of runs and slots, for people.

use async_trait::async_trait;
use tokio_postgres::types::{ToSql, Type};

use super::PostgresStore;
use super::journal::{entries_of, of_rows};
use super::sums::{bounded, read_sum};
use super::values::{At, rows_max};
use crate::columns::{count, from_word};
use crate::error::Result;
use crate::requests::{HistoryFilter, HistoryItem, Totals};
use crate::roles::History;
use crate::sums::{self, WIDTH};

type Param = (Box<dyn ToSql + Sync + Send>, Type);

#[async_trait]
impl History for PostgresStore {
    async fn history(&self, filter: &HistoryFilter) -> Result<Vec<HistoryItem>> {
        let connections = self.connections.clone();
        let mut params = vec![];
        let conditions = conditions(filter, &mut params);
        params.push((Box::new(rows_max(filter.limit)), Type::INT8));
        params.push((Box::new(rows_max(filter.offset)), Type::INT8));
        let work = async move {
            let (limit, offset) = (params.len() - 1, params.len());
            let sql = format!(
                "SELECT seq FROM history WHERE {conditions}
                ORDER BY shown_at DESC, seq DESC LIMIT ${limit} OFFSET ${offset}"
            );
            let rows = connections.query(&of_rows(&sql), &borrowed(&params)).await?;
            Ok(entries_of(&rows)?.iter().filter_map(HistoryItem::of).collect())
        };
        let doing = "reading the history";
        if filter.is_of_one_run() { self.read(doing, work).await } else { self.read_long(doing, work).await }
    }

    async fn count_history(&self, filter: &HistoryFilter) -> Result<u64> {
        let connections = self.connections.clone();
        let mut params = vec![];
        let found = sums::query(filter, "", 1, |filter| conditions(filter, &mut params));
        self.read_long("counting the history", async move {
            let sql = format!("SELECT coalesce(sum(marks), 0)::bigint FROM ({found}) AS found");
            let rows = connections.query(&sql, &borrowed(&params)).await?;
            Ok(count(rows[0].get(0)))
        })
        .await
    }

    async fn totals(&self, filter: &HistoryFilter) -> Result<Vec<Totals>> {
        let connections = self.connections.clone();
        let mut params = vec![];
        let columns = "agent, verdict, is_final, ";
        let found = sums::query(filter, columns, WIDTH, |filter| conditions(filter, &mut params));
        self.read_long("summing up the history", async move {
            let numbers = bounded("sum").join(", ");
            let sql = format!("SELECT {columns}{numbers} FROM ({found}) AS found GROUP BY agent, verdict, is_final");
            let rows = connections.query(&sql, &borrowed(&params)).await?;
            let mut found = vec![];
            for row in &rows {
                found.push((row.get(0), from_word(row.get(1), "a verdict")?, row.get(2), read_sum(row, 3)));
            }
            Ok(sums::totals(found.into_iter()))
        })
        .await
    }
}

/// What a filter asks for. The text is made of constants: what people say is in the parameters.
fn conditions(filter: &HistoryFilter, params: &mut Vec<Param>) -> String {
    let mut sql = "true".to_owned();
    let mut add = |condition: &'static str, behind: &'static str, param: Option<Param>| {
        if let Some(param) = param {
            params.push(param);
            sql += &format!(" AND {condition}${}{behind}", params.len());
        }
    };
    add("schedule_id = ", "", filter.schedule.map(|id| (Box::new(id.0) as _, Type::UUID)));
    add("run_id = ", "", filter.run.map(|id| (Box::new(id.0) as _, Type::UUID)));
    add("agent = ", "", filter.agent.clone().map(|agent| (Box::new(agent) as _, Type::TEXT)));
    add("project = ANY(", ")", filter.projects.clone().map(|it| (Box::new(it) as _, Type::TEXT_ARRAY)));
    add("verdict = ", "", filter.verdict.map(|verdict| (Box::new(verdict.as_str()) as _, Type::TEXT)));
    add("is_final = ", "", filter.only_final.then(|| (Box::new(true) as _, Type::BOOL)));
    add("shown_at > ", "", filter.from.map(|from| (Box::new(At::before(from)) as _, Type::TIMESTAMPTZ)));
    add("shown_at <= ", "", filter.until.map(|until| (Box::new(At::before(until)) as _, Type::TIMESTAMPTZ)));
    sql
}

fn borrowed(params: &[Param]) -> Vec<(&(dyn ToSql + Sync), Type)> {
    params.iter().map(|(value, kind)| (&**value as &(dyn ToSql + Sync), kind.clone())).collect()
}

//! What became of runs and slots, for people.

use async_trait::async_trait;
use punctual_core::RunId;
use punctual_core::journal::Entry;
use rusqlite::{Connection, Params, ToSql, params, params_from_iter};

use super::SqliteStore;
use super::fault::{Done, Fault};
use super::journal::entries_of;
use super::sums::read_sum;
use super::values::{Id, count, from_word, micros_before, rows_max, to_json};
use crate::error::Result;
use crate::kept::EndedBetween;
use crate::requests::{HistoryFilter, HistoryItem, Totals};
use crate::roles::History;
use crate::sums::{self, WIDTH};

#[async_trait]
impl History for SqliteStore {
    async fn history(&self, filter: &HistoryFilter) -> Result<Vec<HistoryItem>> {
        let filter = filter.clone();
        let (doing, is_quick) = ("reading the history", filter.is_of_one_run());
        let work = move |connection: &Connection| history(connection, &filter);
        if is_quick { self.read(doing, work).await } else { self.read_long(doing, work).await }
    }

    async fn count_history(&self, filter: &HistoryFilter) -> Result<u64> {
        let filter = filter.clone();
        self.read_long("counting the history", move |connection| {
            let mut params = vec![];
            let found = sums::query(&filter, "", 1, |filter| conditions(filter, &mut params));
            let mut statement = connection.prepare_cached(&format!("SELECT sum(marks) FROM ({found})"))?;
            let marks: Option<i64> = statement.query_row(params_from_iter(params), |row| row.get(0))?;
            Ok(count(marks.unwrap_or(0)))
        })
        .await
    }

    async fn totals(&self, filter: &HistoryFilter) -> Result<Vec<Totals>> {
        let filter = filter.clone();
        self.read_long("summing up the history", move |connection| totals(connection, &filter)).await
    }
}

fn history(connection: &Connection, filter: &HistoryFilter) -> Done<Vec<HistoryItem>> {
    let mut params = vec![];
    let conditions = conditions(filter, &mut params);
    params.extend([Box::new(rows_max(filter.limit)) as Box<dyn ToSql>, Box::new(rows_max(filter.offset))]);
    let sql = format!("SELECT seq FROM history WHERE {conditions} ORDER BY shown_at DESC, seq DESC LIMIT ? OFFSET ?");
    let seqs = read_seqs(connection, &sql, params_from_iter(params))?;
    Ok(entries_of(connection, &seqs)?.iter().filter_map(HistoryItem::of).collect())
}

fn read_seqs(connection: &Connection, sql: &str, params: impl Params) -> Done<Vec<u64>> {
    let mut statement = connection.prepare_cached(sql)?;
    let seqs = statement.query_map(params, |row| Ok(count(row.get(0)?)))?;
    Ok(seqs.collect::<rusqlite::Result<_>>()?)
}

/// The last entries of history about a run, latest first.
pub(super) fn past_of_run(connection: &Connection, run: RunId, limit: usize) -> Done<Vec<Entry>> {
    let sql = "SELECT seq FROM history WHERE run_id = ?1 ORDER BY seq DESC LIMIT ?2";
    entries_of(connection, &read_seqs(connection, sql, params![Id(run.0), rows_max(limit)])?)
}

/// The entries that ended runs, by their ids.
pub(super) fn ends_between(connection: &Connection, ended: &EndedBetween) -> Done<Vec<Entry>> {
    let sql = "SELECT seq FROM history INDEXED BY history_of_run
        WHERE ?1 <= run_id AND run_id < ?2 AND is_final = 1 AND (?3 IS NULL OR schedule_id = ?3)
            AND (?4 = 0 OR verdict <> 'succeeded')
        ORDER BY run_id LIMIT ?5";
    let schedule = ended.schedule.map(|id| Id(id.0));
    let params = params![Id(ended.from.0), Id(ended.until.0), schedule, ended.except_succeeded, rows_max(ended.limit)];
    entries_of(connection, &read_seqs(connection, sql, params)?)
}

fn totals(connection: &Connection, filter: &HistoryFilter) -> Done<Vec<Totals>> {
    let mut params = vec![];
    let sql = sums::query(filter, "agent, verdict, is_final, ", WIDTH, |filter| conditions(filter, &mut params));
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params_from_iter(params))?;
    let mut found = vec![];
    while let Some(row) = rows.next()? {
        let verdict = from_word(row.get_ref(1)?.as_str().map_err(Fault::damaged)?, "a verdict")?;
        found.push((row.get(0)?, verdict, row.get(2)?, read_sum(row, 3)?));
    }
    Ok(sums::totals(found.into_iter()))
}

/// What a filter asks for. The text is made of constants: what people say is in the parameters.
pub(super) fn conditions(filter: &HistoryFilter, params: &mut Vec<Box<dyn ToSql>>) -> String {
    let mut sql = "true".to_owned();
    let mut add = |condition: &'static str, param: Option<Box<dyn ToSql>>| {
        if let Some(param) = param {
            sql += condition;
            params.push(param);
        }
    };
    add(" AND schedule_id = ?", filter.schedule.map(|id| Box::new(Id(id.0)) as _));
    add(" AND run_id = ?", filter.run.map(|id| Box::new(Id(id.0)) as _));
    add(" AND agent = ?", filter.agent.clone().map(|agent| Box::new(agent) as _));
    let projects = filter.projects.as_ref();
    add(" AND project IN (SELECT value FROM json_each(?))", projects.map(|it| Box::new(to_json(it)) as _));
    add(" AND verdict = ?", filter.verdict.map(|verdict| Box::new(verdict.as_str()) as _));
    add(" AND is_final = ?", filter.only_final.then(|| Box::new(true) as _));
    add(" AND shown_at > ?", filter.from.map(|from| Box::new(micros_before(from)) as _));
    add(" AND shown_at <= ?", filter.until.map(|until| Box::new(micros_before(until)) as _));
    sql
}

#[cfg(test)]
mod tests {
    use punctual_core::journal::Verdict;

    use super::super::migrate::{MIGRATIONS, migrate};
    use super::*;

    #[test]
    fn sums_end_where_the_numbers_do() {
        let mut connection = Connection::open_in_memory().expect("memory is there");
        migrate(&mut connection, MIGRATIONS).expect("the migrations work");
        let sql = "INSERT INTO history (seq, verdict, agent, shown_at, is_final, duration_ms, tokens, cost_micros)
            VALUES (?1, 'succeeded', 'a', 0, 1, 1, ?2, ?3)";
        let most = i64::MAX;
        for (seq, tokens, cost) in
            [(1, Some(most), Some(most)), (2, Some(most), Some(3)), (3, None, None), (4, Some(1), None)]
        {
            connection.execute(sql, (seq, tokens, cost)).expect("a row");
        }
        let totals = totals(&connection, &HistoryFilter::default()).expect("sums");
        let expected = Totals {
            agent: "a".to_owned(),
            verdict: Verdict::Succeeded,
            attempts: 4,
            runs: 4,
            duration_ms: 4,
            tokens: most as u64,
            cost_micros: most as u64,
            late: [0; 7],
        };
        assert_eq!(totals, [expected]);
    }
}

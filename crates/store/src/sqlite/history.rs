//! What became of runs and slots, for people.

use async_trait::async_trait;
use punctual_core::RunId;
use punctual_core::journal::Entry;
use rusqlite::{Connection, Params, ToSql, params, params_from_iter};

use super::SqliteStore;
use super::fault::Done;
use super::journal::entries_of;
use super::values::{Id, count, from_word, micros_before, rows_max, to_json};
use crate::error::Result;
use crate::kept::EndedBetween;
use crate::requests::{HistoryFilter, HistoryItem, Totals};
use crate::roles::History;

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
            let (conditions, params) = conditions(&filter);
            let sql = format!("SELECT count(*) FROM history WHERE {conditions}");
            let mut statement = connection.prepare_cached(&sql)?;
            Ok(count(statement.query_row(params_from_iter(params), |row| row.get(0))?))
        })
        .await
    }

    async fn totals(&self, filter: &HistoryFilter) -> Result<Vec<Totals>> {
        let filter = filter.clone();
        self.read_long("summing up the history", move |connection| totals(connection, &filter)).await
    }
}

fn history(connection: &Connection, filter: &HistoryFilter) -> Done<Vec<HistoryItem>> {
    let (conditions, mut params) = conditions(filter);
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
    let (conditions, params) = conditions(filter);
    // `sum` fails where the numbers end. `total` is a float, which the cast ends there; below 2^53 both are exact.
    let sql = format!(
        "SELECT agent, verdict, count(*), CAST(total(duration_ms) AS INTEGER), CAST(total(tokens) AS INTEGER),
            CAST(total(cost_micros) AS INTEGER), sum(is_final)
        FROM history WHERE {conditions} AND duration_ms IS NOT NULL GROUP BY agent, verdict ORDER BY agent, verdict"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params_from_iter(params))?;
    let mut totals = vec![];
    while let Some(row) = rows.next()? {
        let number = |column| Ok::<u64, rusqlite::Error>(count(row.get(column)?));
        totals.push(Totals {
            agent: row.get(0)?,
            verdict: from_word(&row.get::<_, String>(1)?, "a verdict")?,
            attempts: number(2)?,
            duration_ms: number(3)?,
            tokens: number(4)?,
            cost_micros: number(5)?,
            runs: number(6)?,
        });
    }
    // By the order of verdicts, not of their words.
    totals.sort_by(|a, b| (&a.agent, a.verdict).cmp(&(&b.agent, b.verdict)));
    Ok(totals)
}

/// What a filter asks for. The text is made of constants: what people say is in the parameters.
fn conditions(filter: &HistoryFilter) -> (String, Vec<Box<dyn ToSql>>) {
    let mut sql = "true".to_owned();
    let mut params: Vec<Box<dyn ToSql>> = vec![];
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
    (sql, params)
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
        };
        assert_eq!(totals, [expected]);
    }
}

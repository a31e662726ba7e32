//! The sums follow the history: with the snapshot they come to its entry, and what is pruned is taken out of them.
//!
//! The row of the snapshot is locked while they are written, so that one process does at a time.

use tokio_postgres::types::Type;
use tokio_postgres::{Client, Row};

use super::fault::Done;
use super::statement::Statement;
use super::values::At;
use crate::columns::from_word;
use crate::sums::{COLUMNS, COUNTED, Sum, SumKey, Sums, WIDTH};

/// The two tables, each with its key, and the history that it is of.
const TABLES: [(&str, &str, &str); 2] = [
    ("sums", "shown_at, agent, project, verdict, is_final", "true"),
    ("schedule_sums", "shown_at, agent, project, verdict, is_final, schedule_id", "schedule_id IS NOT NULL"),
];

/// What adds the history after one entry up to another.
pub(super) fn add(after: u64, until: u64) -> Vec<Statement> {
    TABLES.iter().map(|table| put(*table, 1, after, until)).collect()
}

/// What takes the history after one entry up to another out again. What comes to nothing has no row.
pub(super) fn take_out(after: u64, until: u64) -> Vec<Statement> {
    let nothing = |(table, ..): &(&str, &str, &str)| {
        let sql = format!(
            "DELETE FROM {table} WHERE marks = 0 AND shown_at IN
                (SELECT date_trunc('day', shown_at, 'UTC') FROM history WHERE $1 < seq AND seq <= $2)"
        );
        Statement::new(sql).number(after).number(until)
    };
    TABLES.iter().flat_map(|table| [put(*table, -1, after, until), nothing(table)]).collect()
}

fn put((table, key, which): (&str, &str, &str), sign: i64, after: u64, until: u64) -> Statement {
    let day = key.replace("shown_at", "date_trunc('day', shown_at, 'UTC')").replace("project", "coalesce(project, '')");
    let numbers = COLUMNS.join(", ");
    let counted = COUNTED.map(|number| format!("$3 * sum({number})")).join(", ");
    let groups: Vec<String> = (1..=key.split(", ").count()).map(|place| place.to_string()).collect();
    let more = COLUMNS.map(|name| format!("{name} = {table}.{name} + excluded.{name}")).join(", ");
    let sql = format!(
        "INSERT INTO {table} ({key}, {numbers})
        SELECT {day}, {counted} FROM history WHERE $1 < seq AND seq <= $2 AND {which} GROUP BY {}
        ON CONFLICT ({key}) DO UPDATE SET {more}",
        groups.join(", ")
    );
    Statement::new(sql).number(after).number(until).with(sign, Type::INT8)
}

/// All sums that are kept.
pub(super) async fn read_all(client: &Client) -> Done<Sums> {
    let numbers = bounded("").join(", ");
    let sql = format!(
        "SELECT shown_at, schedule_id, agent, project, verdict, is_final, {numbers} FROM schedule_sums
        UNION ALL SELECT shown_at, NULL, agent, project, verdict, is_final, {numbers} FROM sums"
    );
    let mut sums = Sums::default();
    for row in &client.query_typed(&sql, &[]).await? {
        let key = SumKey {
            day: row.get::<_, At>(0).0,
            schedule: row.get(1),
            agent: row.get(2),
            project: row.get(3),
            verdict: from_word(row.get(4), "a verdict")?,
            is_final: row.get(5),
        };
        sums.0.insert(key, read_sum(row, 6));
    }
    Ok(sums)
}

/// The numbers of a sum, or those of many put together, as far as a column's own go.
pub(super) fn bounded(sum: &str) -> [String; WIDTH] {
    COLUMNS.map(|name| format!("least({sum}({name}), {})::bigint", i64::MAX))
}

/// Reads the numbers of a sum, from a column on.
pub(super) fn read_sum(row: &Row, from: usize) -> Sum {
    Sum(std::array::from_fn(|place| row.get(from + place)))
}

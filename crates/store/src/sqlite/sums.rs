//! The sums follow the history: with the snapshot they come to its entry, and what is pruned is taken out of them.

use punctual_core::journal::Mark;
use rusqlite::types::Value;
use rusqlite::{Connection, Row, params, params_from_iter};

use super::fault::{Done, Fault};
use super::values::{At, Id, from_word, signed};
use crate::sums::{COLUMNS, Sum, SumKey, Sums, WIDTH};

/// Adds the history after one entry up to another.
pub(super) fn add(connection: &Connection, after: u64, until: u64) -> Done<()> {
    fold(connection, after, until)?.0.iter().try_for_each(|(key, sum)| put(connection, key, sum))
}

/// Takes the history after one entry up to another out again. What comes to nothing has no row.
pub(super) fn take_out(connection: &Connection, after: u64, until: u64) -> Done<()> {
    for (key, sum) in &fold(connection, after, until)?.0 {
        put(connection, key, &Sum(sum.0.map(|number| -number)))?;
        let (table, columns, values) = place(key);
        let places = vec!["?"; values.len()].join(", ");
        let sql = format!("DELETE FROM {table} WHERE ({columns}) = ({places}) AND marks = 0");
        connection.prepare_cached(&sql)?.execute(params_from_iter(values))?;
    }
    Ok(())
}

/// What the history after one entry up to another comes to.
fn fold(connection: &Connection, after: u64, until: u64) -> Done<Sums> {
    let sql =
        "SELECT schedule_id, agent, project, verdict, is_final, shown_at, duration_ms, late_ms, tokens, cost_micros
        FROM history WHERE ?1 < seq AND seq <= ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params![signed(after), signed(until)])?;
    let mut sums = Sums::default();
    while let Some(row) = rows.next()? {
        let number = |column| Ok::<_, Fault>(row.get::<_, Option<i64>>(column)?.map(i64::cast_unsigned));
        let mark = Mark {
            agent: row.get_ref(1)?.as_str().map_err(Fault::damaged)?,
            project: row.get_ref(2)?.as_str_or_null().map_err(Fault::damaged)?,
            verdict: from_word(row.get_ref(3)?.as_str().map_err(Fault::damaged)?, "a verdict")?,
            is_final: row.get(4)?,
            shown_at: row.get::<_, At>(5)?.0,
            duration_ms: number(6)?,
            late_ms: number(7)?,
            tokens: number(8)?,
            cost_micros: number(9)?,
        };
        sums.count(row.get::<_, Option<Id>>(0)?.map(|id| id.0), &mark);
    }
    Ok(sums)
}

/// The table of a sum, the columns of its key, and their values.
fn place(key: &SumKey) -> (&'static str, &'static str, Vec<Value>) {
    let SumKey { day, schedule, agent, project, verdict, is_final } = key;
    let mut values = vec![
        Value::Integer(if *day == jiff::Timestamp::MAX { i64::MAX } else { day.as_microsecond() }),
        agent.clone().into(),
        project.clone().into(),
        verdict.as_str().to_owned().into(),
        (*is_final).into(),
    ];
    match schedule {
        None => ("sums", "shown_at, agent, project, verdict, is_final", values),
        Some(id) => {
            values.push(id.as_bytes().to_vec().into());
            ("schedule_sums", "shown_at, agent, project, verdict, is_final, schedule_id", values)
        }
    }
}

/// Adds to a sum. Where the numbers end, it stays.
fn put(connection: &Connection, key: &SumKey, sum: &Sum) -> Done<()> {
    let (table, columns, mut values) = place(key);
    values.extend(sum.0.map(Value::Integer));
    let places = vec!["?"; values.len()].join(", ");
    let more = COLUMNS.map(|name| format!("{name} = CAST({name} + excluded.{name} AS INTEGER)")).join(", ");
    let numbers = COLUMNS.join(", ");
    let sql = format!(
        "INSERT INTO {table} ({columns}, {numbers}) VALUES ({places}) ON CONFLICT ({columns}) DO UPDATE SET {more}"
    );
    connection.prepare_cached(&sql)?.execute(params_from_iter(values))?;
    Ok(())
}

/// All sums that are kept.
pub(super) fn read_all(connection: &Connection) -> Done<Sums> {
    let numbers = COLUMNS.join(", ");
    let sql = format!(
        "SELECT shown_at, schedule_id, agent, project, verdict, is_final, {numbers} FROM schedule_sums
        UNION ALL SELECT shown_at, NULL, agent, project, verdict, is_final, {numbers} FROM sums"
    );
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.query([])?;
    let mut sums = Sums::default();
    while let Some(row) = rows.next()? {
        let key = SumKey {
            day: row.get::<_, At>(0)?.0,
            schedule: row.get::<_, Option<Id>>(1)?.map(|id| id.0),
            agent: row.get(2)?,
            project: row.get(3)?,
            verdict: from_word(row.get_ref(4)?.as_str().map_err(Fault::damaged)?, "a verdict")?,
            is_final: row.get(5)?,
        };
        sums.0.insert(key, read_sum(row, 6)?);
    }
    Ok(sums)
}

/// Reads the numbers of a sum, from a column on.
pub(super) fn read_sum(row: &Row<'_>, from: usize) -> rusqlite::Result<Sum> {
    let mut sum = [0; WIDTH];
    for (place, number) in sum.iter_mut().enumerate() {
        *number = row.get(from + place)?;
    }
    Ok(Sum(sum))
}

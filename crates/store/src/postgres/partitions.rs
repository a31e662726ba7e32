//! Partitions: a day of the journal is a table of its own, and retention drops whole ones.

use tokio_postgres::Client;
use tokio_postgres::types::Type;
use tracing::info;

use super::fault::Done;
use crate::columns::signed;

/// Makes the partition of a day, in whose first entry is `first_seq`. It is made beside the journal and attached, so that
/// nobody who reads has to wait.
pub(super) async fn add(client: &Client, day: i32, first_seq: u64) -> Done<()> {
    let name = format!("journal_{day}");
    let (from, until) = (format!("date '1970-01-01' + {day}"), format!("date '1970-01-01' + {}", day + 1));
    client
        .batch_execute(&format!(
            "CREATE TABLE {name} (LIKE journal INCLUDING ALL);
            ALTER TABLE journal ATTACH PARTITION {name} FOR VALUES FROM ({from}) TO ({until})"
        ))
        .await?;
    let sql = "INSERT INTO journal_days VALUES (date '1970-01-01' + $1, $2)";
    client.execute_typed(sql, &[(&day, Type::INT4), (&signed(first_seq), Type::INT8)]).await?;
    Ok(())
}

/// Drops the partitions in which no entry counts any more. How many.
///
/// That needs a moment in which nobody reads the journal: if it does not come soon, another time will do.
pub(super) async fn drop_old(client: &Client) -> Done<usize> {
    let sql = "SELECT day - date '1970-01-01' FROM journal_days AS old
        WHERE (SELECT min(next.first_seq) FROM journal_days AS next WHERE old.day < next.day) <= (SELECT first_seq FROM pen)
        ORDER BY day";
    let days = client.query_typed(sql, &[]).await?;
    let mut dropped = 0;
    for day in days.iter().map(|row| row.get::<_, i32>(0)) {
        let name = format!("journal_{day}");
        let sql = format!(
            "BEGIN; SET LOCAL lock_timeout = '1s'; DROP TABLE {name};
            DELETE FROM journal_days WHERE day = date '1970-01-01' + {day}; COMMIT"
        );
        if let Err(error) = client.batch_execute(&sql).await {
            client.batch_execute("ROLLBACK").await?;
            info!("{name} of the journal is not dropped now: {error}");
            return Ok(dropped);
        }
        dropped += 1;
    }
    Ok(dropped)
}

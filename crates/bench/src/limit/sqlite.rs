//! Plain SQL on SQLite.

use std::path::Path;

use jiff::Timestamp;
use rusqlite::{Connection, params};

use super::{HistoryRow, JournalRow, OF_AGENT, RESULT};

/// The pages in the write-ahead log after which a commit empties it.
const CHECKPOINT_PAGES: i64 = 1_000;

/// A file with one writer.
pub(super) struct Plain(Connection);

impl Plain {
    pub(super) fn open(path: &Path) -> anyhow::Result<Plain> {
        let connection = Connection::open(path)?;
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
        connection.pragma_update(None, "cache_size", -64 * 1_024)?;
        connection.execute_batch(include_str!("sqlite.sql"))?;
        Ok(Plain(connection))
    }

    pub(super) fn commit(&mut self, rows: &[JournalRow], history: &[HistoryRow], now: Timestamp) -> anyhow::Result<()> {
        let transaction = self.0.transaction()?;
        {
            let mut insert =
                transaction.prepare_cached("INSERT INTO journal (seq, at, entries, change) VALUES (?1, ?2, ?3, ?4)")?;
            for row in rows {
                insert.execute(params![row.number, now.as_microsecond(), row.entries, row.change])?;
            }
            let mut insert = transaction.prepare_cached(
                "INSERT INTO history (seq, start_seq, run_id, schedule_id, project, result, is_final, agent, shown_at, duration_ms)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, 1, ?7, ?8, 0)",
            )?;
            for row in history {
                let shown_at = row.shown_at.as_microsecond();
                insert.execute(params![
                    row.number,
                    row.start_number,
                    row.run.as_bytes(),
                    row.schedule.as_bytes(),
                    row.project,
                    RESULT,
                    OF_AGENT,
                    shown_at
                ])?;
            }
        }
        Ok(transaction.commit()?)
    }
}

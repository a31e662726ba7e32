//! Retention: the oldest entries are folded into the base, and go.

use jiff::Timestamp;
use punctual_core::journal::Entry;
use punctual_kernel::change::Wants;
use punctual_kernel::state::Rest;
use rusqlite::{Connection, params};

use super::fault::{Done, Fault};
use super::journal::{changes_after, read_first};
use super::snapshot::{BASE, snapshot_seq};
use super::sums;
use super::values::signed;
use crate::requests::Head;
use crate::snapshot_rows::{changed_runs, changed_schedules};

/// How many entries one piece folds, or a little more: the writer waits for it.
const PIECE: usize = 100;

/// Folds some of the oldest entries into the base and lets go of them, if they were written before an instant. How many.
///
/// The snapshot has to be behind them: a state is opened from it and the entries after it.
pub(super) fn prune_piece(connection: &Connection, before: Timestamp) -> Done<u64> {
    let (base, snapshot) = (read_first(connection)?, snapshot_seq(connection)?);
    let (mut entries, mut last): (Vec<Entry>, Option<Head>) = (vec![], None);
    changes_after(connection, base.seq, |row| {
        if before <= row.at || snapshot < row.last {
            return Ok(false);
        }
        entries.extend(row.bare_entries()?);
        last = Some(Head { seq: row.last, checksum: row.checksum });
        Ok(entries.len() < PIECE)
    })?;
    let Some(last) = last else { return Ok(0) };
    fold(connection, base, &entries)?;
    sums::take_out(connection, base.seq, last.seq)?;
    for sql in [
        "DELETE FROM journal WHERE first <= ?1",
        "DELETE FROM history WHERE seq <= ?1",
        "DELETE FROM subjects WHERE seq <= ?1",
        "DELETE FROM records WHERE seq <= ?1",
    ] {
        connection.prepare_cached(sql)?.execute([signed(last.seq)])?;
    }
    let sql = "UPDATE head SET first_seq = ?1, checksum_before = ?2";
    connection.prepare_cached(sql)?.execute(params![signed(last.seq + 1), signed(last.checksum)])?;
    Ok(last.seq - base.seq)
}

/// Brings the base behind entries that come next.
fn fold(connection: &Connection, base: Head, entries: &[Entry]) -> Done<()> {
    let mut wants = Wants::default();
    entries.iter().for_each(|entry| wants.extend(Wants::of_entry(&entry.body)));
    let before = BASE.piece(connection, base.seq, &wants)?;
    let mut after = before.clone();
    for entry in entries {
        let refused =
            |error| Fault::damaged(format!("entry {} of the journal cannot have happened: {error}", entry.seq));
        after.apply(entry).map_err(refused)?;
    }
    for (id, record) in changed_schedules(&before, &after) {
        match record {
            Some(record) => BASE.put_schedule(connection, record, true)?,
            None => BASE.delete_schedule(connection, id)?,
        }
    }
    for (id, run) in changed_runs(&before, &after) {
        // Each has its own terms: its schedule may change without it.
        BASE.put_run(connection, id, run.as_deref(), None)?;
    }
    let rest = Rest::of(&after);
    if Rest::of(&before) != rest {
        BASE.put_rest(connection, &rest)?;
    }
    Ok(())
}

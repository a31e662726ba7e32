//! The session of the one writer: its connection, and the state that commands decide on.
//!
//! Invariant: between two transactions, the state is what the file says.

use jiff::Timestamp;
use punctual_kernel::state::{State, Undo};
use punctual_kernel::transaction::{Changes, Cluster, Found, Transaction};
use rusqlite::{Connection, OptionalExtension, params};

use super::fault::{Done, Fault};
use super::load;
use super::values::{count, signed};
use crate::requests::Head;

/// What the writer works with.
pub(super) struct Session {
    pub(super) connection: Connection,
    pub(super) state: State,
    pub(super) cluster: Cluster,
    /// The last entry that is committed.
    pub(super) head: Head,
}

impl Session {
    pub(super) fn new(connection: Connection) -> Done<Session> {
        let (state, cluster, head) = load::everything_live(&connection)?;
        Ok(Session { connection, state, cluster, head })
    }

    /// Forgets everything, and reads again what the file says.
    pub(super) fn read_again(&mut self) -> Done<()> {
        (self.state, self.cluster, self.head) = load::everything_live(&self.connection)?;
        Ok(())
    }

    /// Takes back what has been decided and was not committed.
    pub(super) fn take_back(&mut self, undo: Undo) -> Done<()> {
        self.state.undo(undo);
        (self.head, _) = read_head(&self.connection)?;
        self.cluster = load::read_cluster(&self.connection)?;
        Ok(())
    }

    /// Decides something and writes what came of it, in the SQL transaction that the connection is in. If that fails, the session
    /// has to be read again.
    pub(super) fn write(&mut self, found: Found, work: impl FnOnce(&mut Transaction<'_>)) -> Done<()> {
        let cluster = std::mem::take(&mut self.cluster);
        let mut transaction = Transaction::new(&mut self.state, self.head, cluster, found);
        work(&mut transaction);
        let Transaction { head, changes, cluster, .. } = transaction;
        self.cluster = cluster;
        self.save(&changes)?;
        self.put_head(head, &changes)
    }

    /// Writes how far the journal goes: the last statement of a transaction.
    pub(super) fn put_head(&mut self, head: Head, changes: &Changes) -> Done<()> {
        if head != self.head || changes.epoch_floor.is_some() {
            let sql = "UPDATE head SET seq = ?1, checksum = ?2, epoch_floor = ?3";
            let params = params![signed(head.seq), signed(head.checksum), signed(self.state.epoch_floor())];
            self.connection.prepare_cached(sql)?.execute(params)?;
            self.head = head;
        }
        Ok(())
    }

    /// Makes a copy fit to be served, as a command of its own: no node holds anything, and every epoch is higher than any that
    /// was given before.
    pub(super) fn begin_anew(&mut self, now: Timestamp) -> Done<()> {
        let mut begun = Ok(());
        self.write(Found::default(), |transaction| begun = transaction.begin_anew(now, 0))?;
        begun.map_err(|error| Fault::other(error.to_string()))?;
        let nodes: Vec<_> = self.cluster.nodes.keys().copied().collect();
        self.write(Found::default(), |transaction| {
            nodes.iter().for_each(|node| transaction.remove_node(*node, now, true));
        })
    }
}

/// How far the journal goes, and the epoch floor.
pub(super) fn read_head(connection: &Connection) -> Done<(Head, u64)> {
    let sql = "SELECT seq, checksum, epoch_floor FROM head";
    let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?));
    let found = connection.prepare_cached(sql)?.query_row([], read).optional()?;
    let (seq, checksum, floor) = found.ok_or_else(|| Fault::damaged("the head of the journal is gone"))?;
    Ok((Head { seq: count(seq), checksum: checksum.cast_unsigned() }, count(floor)))
}

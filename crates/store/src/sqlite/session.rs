//! The session of the one writer: its connection, and the state that commands decide on.
//!
//! Invariant: between two transactions, the state is what the file says.

use jiff::Timestamp;
use punctual_kernel::state::{State, Undo};
use punctual_kernel::transaction::{Cluster, Found, Transaction};
use rusqlite::{Connection, params};

use super::fault::{Done, Fault};
use super::journal::read_head;
use super::values::signed;
use super::{load, save, snapshot};
use crate::requests::Head;

/// What the writer works with.
pub(super) struct Session {
    pub(super) connection: Connection,
    pub(super) state: State,
    pub(super) cluster: Cluster,
    /// The last entry that is committed.
    pub(super) head: Head,
    /// The entry that the snapshot was written at.
    pub(super) snapshot_seq: u64,
}

impl Session {
    pub(super) fn new(connection: Connection) -> Done<Session> {
        let snapshot_seq = snapshot::snapshot_seq(&connection)?;
        let (state, head) = load::state(&connection)?;
        let cluster = load::read_cluster(&connection)?;
        Ok(Session { connection, state, cluster, head, snapshot_seq })
    }

    /// Forgets everything, and reads again what the file says.
    pub(super) fn read_again(&mut self) -> Done<()> {
        (self.state, self.head) = load::state(&self.connection)?;
        self.cluster = load::read_cluster(&self.connection)?;
        self.snapshot_seq = snapshot::snapshot_seq(&self.connection)?;
        Ok(())
    }

    /// Whether the snapshot is what the state is.
    pub(super) fn is_saved(&self) -> bool {
        self.snapshot_seq == self.state.seq()
    }

    /// Takes in what another process has written: for a session that only reads.
    pub(super) fn follow(&mut self) -> Done<()> {
        load::follow(&self.connection, &mut self.state)
    }

    /// Takes back what has been decided and was not committed.
    pub(super) fn take_back(&mut self, undo: Undo) -> Done<()> {
        self.state.undo(undo);
        self.head = read_head(&self.connection)?;
        self.cluster = load::read_cluster(&self.connection)?;
        Ok(())
    }

    /// Decides something and appends what came of it, in the SQL transaction that the connection is in. If that fails, the session
    /// has to be read again.
    pub(super) fn write(&mut self, found: Found, work: impl FnOnce(&mut Transaction<'_>)) -> Done<()> {
        let cluster = std::mem::take(&mut self.cluster);
        let mut transaction = Transaction::new(&mut self.state, self.head, cluster, found);
        work(&mut transaction);
        let Transaction { head, changes, cluster, .. } = transaction;
        self.cluster = cluster;
        save::append(&self.connection, &changes)?;
        self.put_head(head)
    }

    /// Writes how far the journal goes: the last statement of a transaction.
    pub(super) fn put_head(&mut self, head: Head) -> Done<()> {
        if head != self.head {
            let sql = "UPDATE head SET seq = ?1, checksum = ?2";
            self.connection.prepare_cached(sql)?.execute(params![signed(head.seq), signed(head.checksum)])?;
            self.head = head;
        }
        Ok(())
    }

    /// Brings the snapshot to where the state is, in the SQL transaction that the connection is in.
    pub(super) fn write_snapshot(&self) -> Done<()> {
        snapshot::write(&self.connection, &self.state.snapshot_piece(), self.state.world())
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

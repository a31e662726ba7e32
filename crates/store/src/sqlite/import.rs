//! Taking in an export: a new file, which has its name when it is whole.

use std::io::BufRead;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use punctual_core::journal::{Entry, World};
use punctual_kernel::state::{SnapshotPiece, State};
use punctual_kernel::transaction::{Changes, Cluster, Found, Transaction};
use rusqlite::{Connection, OpenFlags};

use super::backup::{create_private, fresh_part, put_in_place, refuse_differences};
use super::fault::{Done, Fault};
use super::lock::Lock;
use super::migrate::{self, MIGRATIONS};
use super::session::Session;
use super::snapshot::BASE;
use super::values::signed;
use super::{save, snapshot};
use crate::error::{Result, StoreError};
use crate::transfer::{self, Imported, Importing};

const DOING: &str = "importing";

/// Makes a database from an export. It must not exist yet. How many entries it has. Blocks.
pub fn import(from: &mut dyn BufRead, to: &Path, now: Timestamp, progress: impl FnMut(u64, u64)) -> Result<u64> {
    let begin = |first_seq| {
        let import = Import::begin(to, first_seq).map_err(|fault| fault.while_doing(DOING))?;
        Ok(Box::new(import) as Box<dyn Importing>)
    };
    transfer::import(from, now, begin, progress)
}

struct Import {
    to: PathBuf,
    part: PathBuf,
    lock: Lock,
    session: Session,
}

impl Import {
    fn begin(to: &Path, first_seq: u64) -> Done<Import> {
        let lock = Lock::take(to)?;
        if to.exists() {
            return Err(Fault::other(format!("{} exists already: an import makes a new database", to.display())));
        }
        let part = fresh_part(to)?;
        create_private(&part)?;
        let mut connection = Connection::open_with_flags(&part, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        migrate::migrate(&mut connection, MIGRATIONS)?;
        let mut session = Session::new(connection)?;
        session.connection.execute_batch("BEGIN IMMEDIATE")?;
        session.head.seq = first_seq.saturating_sub(1);
        session.connection.execute("UPDATE head SET first_seq = ?1", [signed(first_seq)])?;
        Ok(Import { to: to.to_owned(), part, lock, session })
    }

    fn base(&mut self, base: &World) -> Done<()> {
        let connection = &self.session.connection;
        base.schedules.values().try_for_each(|record| BASE.put_schedule(connection, record, true))?;
        base.live_runs().try_for_each(|run| BASE.put_run(connection, run.id, Some(run), None))?;
        if let Some(rest) = SnapshotPiece::of(base).rest {
            BASE.put_rest(connection, &rest)?;
        }
        Ok(())
    }

    fn finish(mut self, imported: Imported) -> Done<()> {
        let Imported { world, nodes, planner, answers, now } = imported;
        let session = &mut self.session;
        let rows = Changes { planner, answers, ..Changes::default() };
        save::append(&session.connection, &rows)?;
        snapshot::write(&session.connection, &SnapshotPiece::of(&world), &world)?;
        session.state = State::new(world);
        session.cluster = Cluster { planner, ..Cluster::default() };
        session.begin_anew(now)?;
        session.write(Found::default(), |transaction| {
            nodes.iter().for_each(|node| transaction.remove_node(*node, now, true));
        })?;
        session.write_snapshot()?;
        session.connection.execute_batch("COMMIT")?;
        self.session.connection.close().map_err(|(_, error)| error)?;
        refuse_differences(&self.part)?;
        put_in_place(&self.lock, &self.part, &self.to)
    }

    fn page(&mut self, entries: &[Entry]) -> Done<()> {
        // Nothing but the number of the last entry: what entries come to is written at the end.
        let mut state = State::new(World { seq: self.session.head.seq, ..World::default() });
        let mut transaction = Transaction::new(&mut state, self.session.head, Cluster::default(), Found::default());
        for entry in entries {
            transaction.append(entry.at, entry.body.clone()).map_err(StoreError::from)?;
        }
        let Transaction { head, changes, .. } = transaction;
        save::append(&self.session.connection, &changes)?;
        self.session.put_head(head)
    }
}

impl Importing for Import {
    fn base(&mut self, base: &World) -> Result<()> {
        Import::base(self, base).map_err(|fault| fault.while_doing(DOING))
    }

    fn page(&mut self, entries: &[Entry]) -> Result<()> {
        Import::page(self, entries).map_err(|fault| fault.while_doing(DOING))
    }

    fn end(self: Box<Self>, imported: Imported) -> Result<()> {
        (*self).finish(imported).map_err(|fault| fault.while_doing(DOING))
    }
}

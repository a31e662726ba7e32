//! Taking in an export: a new file, which has its name when it is whole.

use std::io::BufRead;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use punctual_core::journal::{Entry, World};
use rusqlite::{Connection, OpenFlags, params};

use super::backup::{create_private, fresh_part, put_in_place, refuse_differences};
use super::fault::{Done, Fault};
use super::lock::Lock;
use super::migrate::{self, MIGRATIONS};
use super::session::Session;
use super::values::{At, Id, signed};
use crate::change::Draft;
use crate::error::Result;
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

    fn finish(mut self, imported: &Imported) -> Done<()> {
        let Imported { world, nodes, planner, now } = imported;
        let session = &mut self.session;
        let draft = Draft::new(world.clone(), *now);
        session.epoch_floor = world.epoch_floor;
        session.save(&World::beginning_at(1), &draft)?;
        session.settle_derived(*now)?;
        session.raise_epochs(*now)?;
        for node in nodes {
            session.remove_node(*node, *now, true)?;
        }
        if let Some(planner) = planner {
            let sql = "INSERT INTO planner VALUES (1, ?1, ?2, ?3)";
            let params = params![Id(planner.node.0), At(planner.until), signed(planner.epoch)];
            session.connection.execute(sql, params)?;
        }
        session.settle_derived(*now)?;
        session.write_head()?;
        session.connection.execute_batch("COMMIT")?;
        self.session.connection.close().map_err(|(_, error)| error)?;
        refuse_differences(&self.part)?;
        put_in_place(&self.lock, &self.part, &self.to)
    }
}

impl Importing for Import {
    fn page(&mut self, entries: &[Entry]) -> Result<()> {
        self.session.append_all(entries).map_err(|fault| fault.while_doing(DOING))
    }

    fn end(self: Box<Self>, imported: Imported) -> Result<()> {
        (*self).finish(&imported).map_err(|fault| fault.while_doing(DOING))
    }
}

//! Taking in an export: one transaction into an empty database.

use std::io::BufRead;

use jiff::Timestamp;
use punctual_core::journal::{Entry, World};
use punctual_kernel::state::State;
use punctual_kernel::transaction::{Cluster, Found, Transaction};
use tokio::runtime::{Builder, Runtime};

use super::connect::{Address, Lent};
use super::copies::{BASE, CopyRows, SNAPSHOT};
use super::fault::Fault;
use super::migrate::{MIGRATIONS, migrate};
use super::statement::{Statement, send};
use super::{save, sums, tls, verify};
use crate::error::{Result, StoreError};
use crate::requests::Head;
use crate::transfer::{self, Imported, Importing};

const DOING: &str = "importing";

/// Fills an empty database from an export. How many entries it has. Blocks.
pub fn import(from: &mut dyn BufRead, address: &str, now: Timestamp, progress: impl FnMut(u64, u64)) -> Result<u64> {
    let begin = |first_seq| {
        let import = Import::begin(address, first_seq)?;
        Ok(Box::new(import) as Box<dyn Importing>)
    };
    transfer::import(from, now, begin, progress)
}

struct Import {
    runtime: Runtime,
    connection: Lent,
    /// Counts the entries while they come, and is what they come to in the end.
    state: State,
    head: Head,
}

impl Import {
    fn begin(address: &str, first_seq: u64) -> Result<Import> {
        tls::install_provider();
        let address = Address::parse(address)?;
        let failed = |error: std::io::Error| StoreError::Unavailable { doing: DOING, source: error.into() };
        // The connection has a task of its own, which must go on while a page is being read.
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().map_err(failed)?;
        let begin = async {
            let connection = address.usual_connections()?.get().await?;
            migrate(&connection, MIGRATIONS).await?;
            connection.batch_execute("BEGIN").await?;
            connection.query_typed_one("SELECT 1 FROM pen FOR UPDATE", &[]).await?;
            let sql = "SELECT EXISTS (SELECT 1 FROM journal) OR (SELECT 1 < first_seq FROM pen)";
            if connection.query_typed_one(sql, &[]).await?.get(0) {
                let why = "it has data already: an import fills an empty database".to_owned();
                return Err(Fault::from(StoreError::BadAddress { why }));
            }
            Ok(connection)
        };
        let connection = runtime.block_on(begin).map_err(|fault: Fault| fault.while_doing(DOING))?;
        let head = Head { seq: first_seq.saturating_sub(1), checksum: 0 };
        let state = State::new(World { seq: head.seq, ..World::default() });
        Ok(Import { runtime, connection, state, head })
    }

    fn send(&self, statements: &[Statement]) -> Result<()> {
        let sent = self.runtime.block_on(send(&self.connection, statements, "SELECT 1"));
        sent.map_err(|fault| fault.while_doing(DOING))
    }

    /// Writes some of the journal.
    fn write(&mut self, fill: impl FnOnce(&mut Transaction<'_>) -> punctual_kernel::Result<()>) -> Result<()> {
        let mut writing = Transaction::new(&mut self.state, self.head, Cluster::default(), Found::default());
        fill(&mut writing)?;
        let Transaction { head, changes, .. } = writing;
        self.send(&save::statements(&changes).map_err(|fault| fault.while_doing(DOING))?)?;
        self.head = head;
        Ok(())
    }
}

impl Importing for Import {
    fn base(&mut self, base: &World) -> Result<()> {
        self.send(&BASE.put(&CopyRows::of_base(base)))?;
        let sql = "UPDATE pen SET first_seq = $1, checksum_before = 0";
        self.send(&[Statement::new(sql).number(base.seq + 1)])
    }

    fn page(&mut self, entries: &[Entry]) -> Result<()> {
        self.write(|writing| entries.iter().try_for_each(|entry| writing.append(entry.at, entry.body.clone())))
    }

    fn end(mut self: Box<Self>, imported: Imported) -> Result<()> {
        let Imported { world, nodes, planner, answers, now } = imported;
        self.state = State::new(world);
        self.write(|writing| {
            writing.begin_anew(now, 0)?;
            nodes.iter().for_each(|node| writing.remove_node(*node, now, true));
            (writing.changes.planner, writing.changes.answers) = (planner, answers);
            Ok(())
        })?;
        self.send(&SNAPSHOT.put(&CopyRows::of_snapshot(self.state.world())))?;
        self.send(&sums::add(0, self.head.seq))?;
        self.send(&[Statement::new("UPDATE snapshot SET seq = $1").number(self.head.seq)])?;
        let Import { runtime, connection, .. } = *self;
        let end = async {
            let differences = verify::verify(&connection).await?;
            if let Some(first) = differences.first() {
                return Err(Fault::Damaged(first.clone()));
            }
            connection.batch_execute("COMMIT").await?;
            connection.give_back();
            Ok(())
        };
        runtime.block_on(end).map_err(|fault| fault.while_doing(DOING))
    }
}

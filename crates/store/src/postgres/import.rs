//! Taking in an export: one transaction into an empty database.

use std::io::BufRead;

use jiff::Timestamp;
use punctual_core::journal::{Body, Entry, World};
use tokio::runtime::{Builder, Runtime};

use super::connect::{Address, Lent};
use super::fault::{Done, Fault};
use super::migrate::{MIGRATIONS, migrate};
use super::values::day_of;
use super::{partitions, save, tls, verify};
use crate::error::{Result, StoreError};
use crate::requests::Head;
use crate::transfer::{self, Imported, Importing};
use punctual_kernel::change::raised_floor;
use punctual_kernel::state::State as Mirror;
use punctual_kernel::transaction::{Changes, Cluster, Found, Row, Transaction};

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
    mirror: Mirror,
    first_seq: u64,
    head: Head,
    day: Option<i32>,
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
            let sql = "SELECT EXISTS (SELECT 1 FROM journal) OR EXISTS (SELECT 1 FROM schedules) OR EXISTS (SELECT 1 FROM runs)";
            if connection.query_typed_one(sql, &[]).await?.get(0) {
                let why = "it has data already: an import fills an empty database".to_owned();
                return Err(Fault::from(StoreError::BadAddress { why }));
            }
            Ok(connection)
        };
        let connection = runtime.block_on(begin).map_err(|fault: Fault| fault.while_doing(DOING))?;
        let head = Head { seq: first_seq.saturating_sub(1), checksum: 0 };
        let mut world = World::beginning_at(1);
        world.seq = head.seq;
        Ok(Import { runtime, connection, mirror: Mirror::new(world), first_seq, head, day: None })
    }

    /// Writes some of it.
    fn write(&mut self, fill: impl FnOnce(&mut Transaction<'_>) -> punctual_kernel::Result<()>) -> Result<()> {
        let mut writing = Transaction::new(&mut self.mirror, self.head, Cluster::default(), Found::default());
        fill(&mut writing)?;
        let Transaction { head, changes, .. } = writing;
        let sent = self.runtime.block_on(send(&self.connection, &changes, &mut self.day));
        sent.map_err(|fault| fault.while_doing(DOING))?;
        self.head = head;
        Ok(())
    }
}

/// Sends changes, day by day: each has a partition of its own.
async fn send(connection: &Lent, changes: &Changes, day: &mut Option<i32>) -> Done<()> {
    let mut rest = changes.lines.as_slice();
    while let Some(first) = rest.first() {
        let today = day.map_or(day_of(first.at), |day| day.max(day_of(first.at)));
        if *day != Some(today) {
            partitions::add(connection, today, first.seq).await?;
            *day = Some(today);
        }
        let until = rest.iter().position(|line| today < day_of(line.at)).unwrap_or(rest.len());
        let lines = Changes { lines: rest[..until].to_vec(), ..Changes::default() };
        save::send(connection, &save::statements(&lines, today), "SELECT 1").await?;
        rest = &rest[until..];
    }
    let rows = Changes { lines: vec![], ..changes.clone() };
    save::send(connection, &save::statements(&rows, 0), "SELECT 1").await
}

impl Importing for Import {
    fn page(&mut self, entries: &[Entry]) -> Result<()> {
        self.write(|writing| entries.iter().try_for_each(|entry| writing.append(entry.at, entry.body.clone())))
    }

    fn end(mut self: Box<Self>, imported: Imported) -> Result<()> {
        let Imported { mut world, nodes, planner, now } = imported;
        let epoch_floor = raised_floor(world.epoch_floor, now);
        let body = Body::Restored { epoch_floor };
        world.apply(&Entry { seq: self.head.seq + 1, at: now, body: body.clone() })?;
        let first = Head { seq: self.first_seq, checksum: 0 };
        let rows = world.clone();
        self.write(|writing| {
            writing.append(now, body)?;
            writing.changes.schedules = rows.schedules.into_iter().map(|(id, record)| (id, Row::new(record))).collect();
            writing.changes.runs = rows.runs.into_iter().map(|(id, run)| (id, Row::new(run))).collect();
            (writing.changes.days, writing.changes.planner) = (rows.days, planner);
            writing.changes.tokens = rows.tokens.iter().map(|(id, token)| (*id, Some(token.clone()))).collect();
            (writing.changes.epoch_floor, writing.changes.first) = (Some(epoch_floor), Some(first));
            Ok(())
        })?;
        self.mirror = Mirror::new(world);
        self.write(|writing| {
            nodes.iter().for_each(|node| writing.remove_node(*node, now, true));
            Ok(())
        })?;
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

//! Snapshot and base: schedules and live runs as they were at one entry, as rows.
//!
//! The snapshot follows the state, the base follows the beginning of the journal; both have tables of the same shape.

use std::collections::BTreeSet;
use std::sync::Arc;

use punctual_core::journal::{ScheduleRecord, World};
use punctual_core::run::Run;
use punctual_core::schedule::Schedule;
use punctual_core::{RunId, ScheduleId};
use punctual_kernel::change::Wants;
use punctual_kernel::state::{Rest, SnapshotPiece};
use rusqlite::{Connection, OptionalExtension, Params, Row, params};

use super::fault::{Done, Fault};
use super::sums;
use super::values::{Id, count, micros_up_to, signed};
use crate::columns::to_json;
use crate::snapshot_rows::{DefinitionRow, ProgressRow, RunReader, RunRow, among, read_rest, read_schedule};

/// Tables that have the state at one entry.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tables {
    put_schedule: &'static str,
    put_progress: &'static str,
    put_run: &'static str,
    put_rest: &'static str,
    delete_schedule: &'static str,
    delete_progress: &'static str,
    delete_run: &'static str,
    schedules: &'static str,
    runs: &'static str,
    rest: &'static str,
}

macro_rules! tables {
    ($prefix:literal) => {
        Tables {
            put_schedule: concat!(
                "INSERT OR REPLACE INTO ",
                $prefix,
                "schedules (id, version, name, project, definition) VALUES (?1, ?2, ?3, ?4, ?5)"
            ),
            put_progress: concat!(
                "INSERT OR REPLACE INTO ",
                $prefix,
                "progress (id, plan_at, progress) VALUES (?1, ?2, ?3)"
            ),
            put_run: concat!(
                "INSERT OR REPLACE INTO ",
                $prefix,
                "runs (id, schedule_id, state, body, terms) VALUES (?1, ?2, ?3, ?4, ?5)"
            ),
            put_rest: concat!("INSERT OR REPLACE INTO ", $prefix, "rest (one, body) VALUES (1, ?1)"),
            delete_schedule: concat!("DELETE FROM ", $prefix, "schedules WHERE id = ?1"),
            delete_progress: concat!("DELETE FROM ", $prefix, "progress WHERE id = ?1"),
            delete_run: concat!("DELETE FROM ", $prefix, "runs WHERE id = ?1"),
            schedules: concat!(
                "SELECT definition, progress FROM ",
                $prefix,
                "schedules AS it JOIN ",
                $prefix,
                "progress AS its ON its.id = it.id"
            ),
            runs: concat!("SELECT body, terms FROM ", $prefix, "runs AS it"),
            rest: concat!("SELECT body FROM ", $prefix, "rest"),
        }
    };
}

/// Those of the snapshot.
pub(super) const SNAPSHOT: Tables = tables!("");

/// Those of the base.
pub(super) const BASE: Tables = tables!("base_");

impl Tables {
    /// A schedule is this now; its definition is written if it may be another.
    pub(super) fn put_schedule(&self, connection: &Connection, record: &ScheduleRecord, defines: bool) -> Done<()> {
        if defines {
            let row = DefinitionRow::of(&record.schedule);
            let params = params![Id(row.id), signed(row.version), row.name, row.project, row.definition];
            connection.prepare_cached(self.put_schedule)?.execute(params)?;
        }
        let row = ProgressRow::of(record);
        let params = params![Id(row.id), row.plan_at.map(micros_up_to), row.progress];
        connection.prepare_cached(self.put_progress)?.execute(params)?;
        Ok(())
    }

    /// A schedule is gone.
    pub(super) fn delete_schedule(&self, connection: &Connection, id: ScheduleId) -> Done<()> {
        for sql in [self.delete_schedule, self.delete_progress] {
            connection.prepare_cached(sql)?.execute([Id(id.0)])?;
        }
        Ok(())
    }

    /// A run is this now, or is over; `schedule` is its schedule in the same tables.
    pub(super) fn put_run(
        &self,
        connection: &Connection,
        id: RunId,
        run: Option<&Run>,
        schedule: Option<&Schedule>,
    ) -> Done<()> {
        let Some(run) = run else {
            connection.prepare_cached(self.delete_run)?.execute([Id(id.0)])?;
            return Ok(());
        };
        let row = RunRow::of(run, schedule);
        let params = params![Id(row.id), row.schedule.map(Id), row.state, row.body, row.terms];
        connection.prepare_cached(self.put_run)?.execute(params)?;
        Ok(())
    }

    pub(super) fn put_rest(&self, connection: &Connection, rest: &Rest) -> Done<()> {
        connection.prepare_cached(self.put_rest)?.execute([to_json(rest)])?;
        Ok(())
    }

    /// Everything, as it was at an entry.
    pub(super) fn world(&self, connection: &Connection, seq: u64) -> Done<World> {
        let mut world = self.rest(connection, seq)?;
        self.read_schedules(connection, &mut world, self.schedules, [])?;
        self.read_runs(connection, &mut world, &mut RunReader::default(), self.runs, [])?;
        Ok(world)
    }

    fn rest(&self, connection: &Connection, seq: u64) -> Done<World> {
        let mut world = World { seq, ..World::default() };
        let rest: Option<String> = connection.query_row(self.rest, [], |row| row.get(0)).optional()?;
        rest.map_or(Ok(()), |rest| read_rest(&rest, &mut world))?;
        Ok(world)
    }

    fn read_schedules(&self, connection: &Connection, into: &mut World, sql: &str, params: impl Params) -> Done<()> {
        let mut statement = connection.prepare_cached(sql)?;
        let mut rows = statement.query(params)?;
        while let Some(row) = rows.next()? {
            let record = read_schedule(text(row, 0)?, text(row, 1)?)?;
            into.schedules.insert(record.schedule.id, record);
        }
        Ok(())
    }

    /// Reads runs. Their schedules must be there.
    fn read_runs(
        &self,
        connection: &Connection,
        into: &mut World,
        reader: &mut RunReader,
        sql: &str,
        params: impl Params,
    ) -> Done<()> {
        let mut statement = connection.prepare_cached(sql)?;
        let mut rows = statement.query(params)?;
        while let Some(row) = rows.next()? {
            let terms = row.get_ref(1)?.as_str_or_null().map_err(Fault::damaged)?;
            let run = reader.read(text(row, 0)?, terms, among(&into.schedules))?;
            into.runs.insert(run.id, Arc::new(run));
        }
        Ok(())
    }

    /// What some entries want, as it was at an entry.
    pub(super) fn piece(&self, connection: &Connection, seq: u64, wants: &Wants) -> Done<World> {
        let mut piece = self.rest(connection, seq)?;
        let by_id = format!("{} WHERE it.id = ?1", self.schedules);
        // A run needs its schedule, for its terms: so all schedules come first.
        let mut schedules: BTreeSet<ScheduleId> = wants.schedules.clone();
        let run_ids: Vec<RunId> = self.run_ids(connection, wants)?;
        for id in &run_ids {
            let sql = self.runs.replace("SELECT body, terms", "SELECT schedule_id") + " WHERE id = ?1";
            let of: Option<Option<Id>> =
                connection.prepare_cached(&sql)?.query_row([Id(id.0)], |row| row.get(0)).optional()?;
            schedules.extend(of.flatten().map(|id| ScheduleId(id.0)));
        }
        for id in schedules {
            self.read_schedules(connection, &mut piece, &by_id, [Id(id.0)])?;
        }
        let (sql, mut reader) = (format!("{} WHERE id = ?1", self.runs), RunReader::default());
        for id in run_ids {
            self.read_runs(connection, &mut piece, &mut reader, &sql, [Id(id.0)])?;
        }
        Ok(piece)
    }

    fn run_ids(&self, connection: &Connection, wants: &Wants) -> Done<Vec<RunId>> {
        let ids = self.runs.replace("SELECT body, terms", "SELECT id");
        let read = |sql: &str, params: &[&dyn rusqlite::ToSql]| -> Done<Vec<RunId>> {
            let mut statement = connection.prepare_cached(sql)?;
            let found = statement.query_map(params, |row| Ok(RunId(row.get::<_, Id>(0)?.0)))?;
            Ok(found.collect::<rusqlite::Result<_>>()?)
        };
        if wants.all_runs {
            return read(&ids, &[]);
        }
        let mut found: BTreeSet<RunId> = wants.runs.clone();
        for schedule in &wants.planned_of {
            found.extend(read(&format!("{ids} WHERE schedule_id = ?1"), &[&Id(schedule.0)])?);
        }
        Ok(found.into_iter().collect())
    }
}

fn text<'a>(row: &'a Row<'_>, column: usize) -> Done<&'a str> {
    row.get_ref(column)?.as_str().map_err(Fault::damaged)
}

/// The entry that the snapshot was written at.
pub(super) fn snapshot_seq(connection: &Connection) -> Done<u64> {
    Ok(count(connection.prepare_cached("SELECT seq FROM snapshot")?.query_row([], |row| row.get(0))?))
}

/// Brings the snapshot to where a piece ends, in the transaction that the connection is in.
pub(super) fn write(connection: &Connection, piece: &SnapshotPiece, state: &World) -> Done<()> {
    for (id, record) in &piece.schedules {
        match record {
            Some(record) => SNAPSHOT.put_schedule(connection, record, !piece.same_definition.contains(id))?,
            None => SNAPSHOT.delete_schedule(connection, *id)?,
        }
    }
    for (id, run) in &piece.runs {
        let schedule = run.as_ref().and_then(|run| run.schedule).and_then(|id| state.schedules.get(&id));
        SNAPSHOT.put_run(connection, *id, run.as_deref(), schedule.map(|record| &*record.schedule))?;
    }
    if let Some(rest) = &piece.rest {
        SNAPSHOT.put_rest(connection, rest)?;
    }
    sums::add(connection, snapshot_seq(connection)?, piece.seq)?;
    connection.prepare_cached("UPDATE snapshot SET seq = ?1")?.execute([signed(piece.seq)])?;
    Ok(())
}

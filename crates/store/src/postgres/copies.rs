//! Copies of the state in tables: the snapshot, which follows the journal, and the base, on which it stands.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use punctual_core::journal::World;
use punctual_core::schedule::Schedule;
use punctual_core::{RunId, ScheduleId};
use punctual_kernel::change::Wants;
use punctual_kernel::state::{Rest, SnapshotPiece};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row};
use uuid::Uuid;

use super::fault::{Done, Fault};
use super::statement::Statement;
use crate::columns::to_json;
use crate::snapshot_rows::{
    DefinitionRow, ProgressRow, RunReader, RunRow, among, changed_runs, changed_schedules, read_rest, read_schedule,
};

/// How many rows are read or written at a time.
const PAGE: usize = 5_000;

/// How long reading one page may take.
const PAGE_MAX: Duration = Duration::from_secs(60);

/// One of the two copies, by how its tables are called.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tables(&'static str);

/// Everything as it was a moment ago.
pub(super) const SNAPSHOT: Tables = Tables("");

/// Everything as it was before the first entry that is kept.
pub(super) const BASE: Tables = Tables("base_");

impl Tables {
    fn rest(self) -> String {
        format!("SELECT body FROM {}rest", self.0)
    }

    fn schedules(self) -> String {
        format!(
            "SELECT id, definition, progress FROM {0}schedules AS schedules LEFT JOIN {0}progress USING (id)",
            self.0
        )
    }

    fn runs(self) -> String {
        format!("SELECT id, schedule_id, body, terms FROM {}runs", self.0)
    }

    /// Reads all of it, in pages, within the transaction that the client is in. `world.seq` is the caller's to know. `progress` hears
    /// how many schedules and runs there are so far.
    pub(super) async fn read(self, client: &Client, mut progress: impl FnMut(usize, usize)) -> Done<World> {
        let mut world = World::default();
        let rest = in_time(client.query_typed_one(&self.rest(), &[])).await?;
        read_rest(get(&rest, 0)?, &mut world)?;
        let (sql, mut after) = (paged(&self.schedules()), None);
        loop {
            let rows = page(client, &sql, after).await?;
            put_schedules(&mut world, &rows)?;
            progress(world.schedules.len(), 0);
            let Some(last) = rows.last().filter(|_| rows.len() == PAGE) else { break };
            after = Some(get(last, 0)?);
        }
        let (sql, mut after, mut reader) = (paged(&self.runs()), None, RunReader::default());
        loop {
            let rows = page(client, &sql, after).await?;
            put_runs(&mut world, &rows, &mut reader)?;
            progress(world.schedules.len(), world.runs.len());
            let Some(last) = rows.last().filter(|_| rows.len() == PAGE) else { return Ok(world) };
            after = Some(get(last, 0)?);
        }
    }

    /// Reads what entries want to be there.
    pub(super) async fn read_some(self, client: &Client, wants: &Wants) -> Done<World> {
        let mut world = World::default();
        let rest = client.query_typed_one(&self.rest(), &[]).await?;
        read_rest(get(&rest, 0)?, &mut world)?;
        let ids = Statement::new(format!("{} WHERE $1 OR id = ANY($2) OR schedule_id = ANY($3)", self.runs()))
            .with(wants.all_runs, Type::BOOL)
            .uuids(wants.runs.iter().map(|id| id.0))
            .uuids(wants.planned_of.iter().map(|id| id.0));
        let runs = ids.query(client).await?;
        let mut schedules: BTreeSet<Uuid> = wants.schedules.iter().map(|id| id.0).collect();
        for row in &runs {
            schedules.extend(get::<Option<Uuid>>(row, 1)?);
        }
        let ids = Statement::new(format!("{} WHERE id = ANY($1)", self.schedules())).uuids(schedules.into_iter());
        put_schedules(&mut world, &ids.query(client).await?)?;
        put_runs(&mut world, &runs, &mut RunReader::default())?;
        Ok(world)
    }

    /// What puts rows into it.
    pub(super) fn put(self, rows: &CopyRows) -> Vec<Statement> {
        let Tables(prefix) = self;
        let mut statements = vec![];
        for gone in rows.gone_schedules.chunks(PAGE) {
            for table in ["schedules", "progress"] {
                let sql = format!("DELETE FROM {prefix}{table} WHERE id = ANY($1)");
                statements.push(Statement::new(sql).uuids(gone.iter().copied()));
            }
        }
        for gone in rows.gone_runs.chunks(PAGE) {
            let sql = format!("DELETE FROM {prefix}runs WHERE id = ANY($1)");
            statements.push(Statement::new(sql).uuids(gone.iter().copied()));
        }
        statements.extend(rows.definitions.chunks(PAGE).map(|rows| put_definitions(prefix, rows)));
        statements.extend(rows.progress.chunks(PAGE).map(|rows| put_progress(prefix, rows)));
        statements.extend(rows.runs.chunks(PAGE).map(|rows| put_run_rows(prefix, rows)));
        statements.extend(
            rows.rest.iter().map(|rest| {
                Statement::new(format!("UPDATE {prefix}rest SET body = $1")).with(rest.clone(), Type::TEXT)
            }),
        );
        statements
    }
}

/// Rows that are put into a copy, and those that go.
#[derive(Debug, Default)]
pub(super) struct CopyRows {
    definitions: Vec<DefinitionRow>,
    progress: Vec<ProgressRow>,
    runs: Vec<RunRow>,
    gone_schedules: Vec<Uuid>,
    gone_runs: Vec<Uuid>,
    rest: Option<String>,
}

impl CopyRows {
    /// The rows of a piece; `schedule` is a schedule as it is behind it.
    pub(super) fn of(piece: &SnapshotPiece, schedule: impl Fn(ScheduleId) -> Option<Arc<Schedule>>) -> CopyRows {
        let mut rows = CopyRows { rest: piece.rest.as_ref().map(to_json), ..CopyRows::default() };
        for (id, record) in &piece.schedules {
            match record {
                None => rows.gone_schedules.push(id.0),
                Some(record) => {
                    rows.progress.push(ProgressRow::of(record));
                    if !piece.same_definition.contains(id) {
                        rows.definitions.push(DefinitionRow::of(&record.schedule));
                    }
                }
            }
        }
        for (id, run) in &piece.runs {
            match run {
                None => rows.gone_runs.push(id.0),
                Some(run) => rows.runs.push(RunRow::of(run, run.schedule.and_then(&schedule).as_deref())),
            }
        }
        rows
    }

    /// The rows of a whole snapshot.
    pub(super) fn of_snapshot(world: &World) -> CopyRows {
        CopyRows::of(&SnapshotPiece::of(world), among(&world.schedules))
    }

    /// The rows of a whole base. Each run has its own terms: its schedule may change without it.
    pub(super) fn of_base(world: &World) -> CopyRows {
        CopyRows::of(&SnapshotPiece::of(world), |_| None)
    }

    /// The rows in which a base differs from what it was.
    pub(super) fn of_base_change(before: &World, after: &World) -> CopyRows {
        let is_same = |id: &ScheduleId| {
            let (before, after) = (before.schedules.get(id), after.schedules.get(id));
            before.zip(after).is_some_and(|(before, after)| before.schedule.is_defined_as(&after.schedule))
        };
        let schedules: Vec<_> = changed_schedules(before, after).map(|(id, record)| (id, record.cloned())).collect();
        let piece = SnapshotPiece {
            seq: after.seq,
            same_definition: schedules.iter().map(|(id, _)| *id).filter(is_same).collect(),
            schedules,
            runs: changed_runs(before, after).collect(),
            rest: Some(Rest::of(after)).filter(|rest| *rest != Rest::of(before)),
            ..SnapshotPiece::default()
        };
        CopyRows::of(&piece, |_| None)
    }

    /// These go, too.
    pub(super) fn also_gone(&mut self, schedules: &[ScheduleId], runs: &[RunId]) {
        self.gone_schedules.extend(schedules.iter().map(|id| id.0));
        self.gone_runs.extend(runs.iter().map(|id| id.0));
    }
}

/// The same, behind an id and so many at a time.
fn paged(sql: &str) -> String {
    format!("{sql} WHERE $1::uuid IS NULL OR $1 < id ORDER BY id LIMIT {PAGE}")
}

async fn page(client: &Client, sql: &str, after: Option<Uuid>) -> Done<Vec<Row>> {
    let params: [(&(dyn ToSql + Sync), Type); 1] = [(&after, Type::UUID)];
    in_time(client.query_typed(sql, &params)).await
}

/// Waits for an answer, but not for ever.
async fn in_time<T>(answer: impl Future<Output = Result<T, tokio_postgres::Error>>) -> Done<T> {
    let slow = |_| Fault::Slow(PAGE_MAX.as_secs());
    Ok(tokio::time::timeout(PAGE_MAX, answer).await.map_err(slow)??)
}

/// A column of a row.
fn get<'a, T: tokio_postgres::types::FromSql<'a>>(row: &'a Row, column: usize) -> Done<T> {
    row.try_get(column).map_err(|error| Fault::Damaged(format!("a row of the state cannot be read: {error}")))
}

fn put_schedules(world: &mut World, rows: &[Row]) -> Done<()> {
    for row in rows {
        let record = read_schedule(get(row, 1)?, get(row, 2)?)?;
        world.schedules.insert(record.schedule.id, record);
    }
    Ok(())
}

fn put_runs(world: &mut World, rows: &[Row], reader: &mut RunReader) -> Done<()> {
    for row in rows {
        let run = reader.read(get(row, 2)?, get(row, 3)?, among(&world.schedules))?;
        world.runs.insert(run.id, Arc::new(run));
    }
    Ok(())
}

fn put_definitions(prefix: &str, rows: &[DefinitionRow]) -> Statement {
    let sql = format!(
        "INSERT INTO {prefix}schedules (id, version, name, project, definition)
        SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::text[], $4::text[], $5::text[])
        ON CONFLICT (id) DO UPDATE
        SET version = excluded.version, name = excluded.name, project = excluded.project, definition = excluded.definition"
    );
    Statement::new(sql)
        .uuids(rows.iter().map(|row| row.id))
        .numbers(rows.iter().map(|row| row.version))
        .maybe_texts(rows.iter().map(|row| row.name.clone()))
        .maybe_texts(rows.iter().map(|row| row.project.clone()))
        .texts(rows.iter().map(|row| row.definition.clone()))
}

fn put_progress(prefix: &str, rows: &[ProgressRow]) -> Statement {
    let sql = format!(
        "INSERT INTO {prefix}progress (id, plan_at, progress)
        SELECT * FROM unnest($1::uuid[], $2::timestamptz[], $3::text[])
        ON CONFLICT (id) DO UPDATE
        SET plan_at = excluded.plan_at, progress = excluded.progress"
    );
    Statement::new(sql)
        .uuids(rows.iter().map(|row| row.id))
        .maybe_times(rows.iter().map(|row| row.plan_at))
        .texts(rows.iter().map(|row| row.progress.clone()))
}

fn put_run_rows(prefix: &str, rows: &[RunRow]) -> Statement {
    let sql = format!(
        "INSERT INTO {prefix}runs (id, schedule_id, state, body, terms)
        SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[])
        ON CONFLICT (id) DO UPDATE
        SET schedule_id = excluded.schedule_id, state = excluded.state, body = excluded.body, terms = excluded.terms"
    );
    Statement::new(sql)
        .uuids(rows.iter().map(|row| row.id))
        .maybe_uuids(rows.iter().map(|row| row.schedule))
        .texts(rows.iter().map(|row| row.state.to_owned()))
        .texts(rows.iter().map(|row| row.body.clone()))
        .maybe_texts(rows.iter().map(|row| row.terms.clone()))
}

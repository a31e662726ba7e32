//! Verifying: what the journal adds up to, against what the rows say, and everything that follows from rows.
//!
//! One state of the database is read from end to end, on a connection and a thread of its own: beside a running server, or
//! on a file that nobody serves.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use punctual_core::journal::{Body, World};
use punctual_core::plan::Lane;
use punctual_core::run::{Run, Terms};
use punctual_core::{RunId, ScheduleId};
use rusqlite::{Connection, Row};
use tokio::sync::oneshot;

use super::SqliteStore;
use super::fault::{Done, Fault, Severity};
use super::gates::{Kind, Shared, gates_of};
use super::journal::{read_days, read_entry};
use super::lanes::read_lane;
use super::lock::noted_beside;
use super::open::{connect_to_read, lost};
use super::readers::{in_one_state, read_error};
use super::rows::{RunRow, TermsRead, read_schedules};
use super::session::read_head;
use super::tokens::read_tokens;
use super::values::{At, Id, count, to_word};
use crate::chain::Chain;
use crate::compare::{differences, told};
use crate::error::{Result, StoreError};
use crate::fold::Fold;
use crate::requests::Head;

impl SqliteStore {
    pub(super) async fn verify_all(&self) -> Result<Vec<String>> {
        const DOING: &str = "verifying the database";
        let path = self.path.clone();
        let (reply, answer) = oneshot::channel();
        let work = move || drop(reply.send(verify(&path)));
        let failed = |source| StoreError::Database { doing: DOING, source };
        std::thread::Builder::new()
            .name("sqlite-verify".to_owned())
            .spawn(work)
            .map_err(|error| failed(error.into()))?;
        let found = answer.await.map_err(|_| failed("a panic".into()))?;
        found.map_err(|fault| read_error(fault, DOING))
    }
}

/// Everything that is wrong with a database, in words.
pub(super) fn verify(path: &Path) -> Done<Vec<String>> {
    let mut found = vec![];
    // Noted before the state is chosen that is read: a server may go on meanwhile.
    let noted = noted_beside(path);
    let read = connect_to_read(path).and_then(|connection| in_one_state(&connection, |it| look(it, noted, &mut found)));
    match read {
        Ok(()) => Ok(told(found)),
        // What cannot be read is wrong, too.
        Err(fault) if fault.severity() == Severity::Fatal && !is_io(&fault) => {
            found.push(fault.to_string());
            Ok(found)
        }
        Err(fault) => Err(fault),
    }
}

fn is_io(fault: &Fault) -> bool {
    matches!(fault, Fault::Sql(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::SystemIoFailure))
}

fn look(connection: &Connection, noted: Option<Head>, found: &mut Vec<String>) -> Done<()> {
    check_pages(connection, found)?;
    let (head, _) = read_head(connection)?;
    found.extend(noted.and_then(|noted| lost(head, noted)));
    if !found.is_empty() {
        return Ok(());
    }
    let folded = fold(connection, found)?;
    let (rows, kept) = read_world(connection)?;
    if let Some(folded) = folded {
        found.extend(differences(&folded, &rows));
    }
    check_terms(connection, &kept, found)?;
    check_runs(connection, &rows, &kept, found)?;
    check_lanes(connection, &rows, &kept, found)?;
    check_overlapping(connection, &rows, found)?;
    check_held(connection, &rows, found)
}

fn check_pages(connection: &Connection, found: &mut Vec<String>) -> Done<()> {
    let mut statement = connection.prepare("PRAGMA integrity_check")?;
    let lines = statement.query_map([], |row| row.get::<_, String>(0))?;
    for line in lines {
        let line = line?;
        if line != "ok" {
            found.push(format!("the file: {line}"));
        }
    }
    let mut statement = connection.prepare("PRAGMA foreign_key_check")?;
    let broken = statement.query_map([], |row| row.get::<_, String>(0))?.count();
    if 0 < broken {
        found.push(format!("{broken} rows refer to rows that are not there"));
    }
    Ok(())
}

/// Follows the chain of checksums and folds the entries. No world if they cannot be folded.
fn fold(connection: &Connection, found: &mut Vec<String>) -> Done<Option<World>> {
    let (head, _) = read_head(connection)?;
    let (first, before): (i64, i64) =
        connection
            .query_row("SELECT first_seq, checksum_before FROM head", [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut chain = Chain { seq: count(first) - 1, checksum: before.cast_unsigned() };
    let mut folded = Fold::beginning_at(count(first));
    let sql = "SELECT seq, at, body, checksum, kind, schedule_id, run_id FROM journal WHERE ?1 <= seq ORDER BY seq";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([first])?;
    while let Some(row) = rows.next()? {
        let entry = read_entry(row)?;
        if let Err(what) = chain.check(&entry) {
            found.push(what);
            return Ok(None);
        }
        let entry = entry.into_entry()?;
        if !is_indexed_as(&entry.body, row)? {
            found.push(format!("entry {} of the journal is indexed as another", entry.seq));
        }
        if let Err(error) = folded.apply(&entry) {
            found.push(format!("entry {} of the journal cannot have happened: {error}", entry.seq));
            return Ok(None);
        }
    }
    if let Err(what) = chain.check_head(head) {
        found.push(what);
    }
    Ok(Some(folded.into_world()))
}

fn is_indexed_as(body: &Body, row: &Row<'_>) -> Done<bool> {
    let (schedule, run) = (row.get::<_, Option<Id>>(5)?, row.get::<_, Option<Id>>(6)?);
    Ok(row.get::<_, String>(4)? == body.kind()
        && schedule.map(|id| id.0) == body.schedule().map(|id| id.0)
        && run.map(|id| id.0) == body.run().map(|id| id.0))
}

/// What the row of a run keeps besides the run.
struct Kept {
    terms_id: i64,
    lane_id: Option<i64>,
    overlap: String,
    is_blocked: bool,
}

fn read_world(connection: &Connection) -> Done<(World, BTreeMap<RunId, Kept>)> {
    let (head, epoch_floor) = read_head(connection)?;
    let mut world = World::beginning_at(1);
    (world.seq, world.epoch_floor, world.days) = (head.seq, epoch_floor, read_days(connection)?);
    world.tokens = Arc::new(read_tokens(connection)?);
    let records = read_schedules(connection, "SELECT * FROM schedules", [])?;
    world.schedules = records.into_iter().map(|record| (record.schedule.id, record)).collect();
    let mut kept = BTreeMap::new();
    let mut terms = TermsRead::default();
    let mut statement = connection.prepare("SELECT * FROM runs")?;
    for row in statement.query_map([], RunRow::read)? {
        let row = row?;
        let RunRow { terms_id, lane_id, is_blocked, .. } = row;
        kept.insert(row.id, Kept { terms_id, lane_id, overlap: row.overlap.clone(), is_blocked });
        let terms = terms.get(connection, terms_id)?;
        let run = row.into_run(terms)?;
        world.runs.insert(run.id, run);
    }
    Ok((world, kept))
}

fn check_terms(connection: &Connection, kept: &BTreeMap<RunId, Kept>, found: &mut Vec<String>) -> Done<()> {
    let mut uses: BTreeMap<i64, i64> = BTreeMap::new();
    for it in kept.values() {
        *uses.entry(it.terms_id).or_default() += 1;
    }
    let mut statement = connection.prepare("SELECT id, uses FROM terms")?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let counted: BTreeMap<i64, i64> = rows.collect::<rusqlite::Result<_>>()?;
    if counted != uses {
        found.push("the uses of terms are not counted as they are".to_owned());
    }
    Ok(())
}

/// Checks what each run's row keeps for claiming.
fn check_runs(
    connection: &Connection,
    world: &World,
    kept: &BTreeMap<RunId, Kept>,
    found: &mut Vec<String>,
) -> Done<()> {
    let lanes = read_lanes(connection)?;
    let schedules = Representatives::of(world);
    for (id, run) in &world.runs {
        let kept = &kept[id];
        let lane = kept.lane_id.and_then(|id| lanes.get(&id)).map(|row| &row.lane);
        let expected = run.planned_for().map(|_| Lane::of(&run.terms));
        if lane != expected.as_ref() {
            found.push(format!("run {id} is in another lane than its own"));
        }
        if kept.overlap != to_word(&run.terms.overlap) {
            found.push(format!("run {id} does not meet others of its schedule as its terms say"));
        }
        let is_blocked = run.planned_for().is_some() && schedules.around(world, run).is_blocked(run);
        if kept.is_blocked != is_blocked {
            let (is, should) = if is_blocked { ("open", "blocked") } else { ("blocked", "open") };
            found.push(format!("run {id} is {is} and should be {should}"));
        }
    }
    Ok(())
}

/// One run at work and the first that waits, by schedule: whoever they do not block, none does.
#[derive(Default)]
struct Representatives {
    active: BTreeMap<ScheduleId, RunId>,
    first: BTreeMap<ScheduleId, RunId>,
}

impl Representatives {
    fn of(world: &World) -> Representatives {
        let mut of = Representatives::default();
        let place = |id: &RunId| (world.runs[id].planned_for(), *id);
        for run in world.runs.values() {
            let Some(schedule) = run.schedule else { continue };
            if run.is_active() {
                of.active.insert(schedule, run.id);
            }
            if run.planned_for().is_some() && !world.waits_for_start(run) {
                let first = of.first.entry(schedule).or_insert(run.id);
                *first = if place(&run.id) < place(first) { run.id } else { *first };
            }
        }
        of
    }

    /// A world with what can block a run.
    fn around(&self, world: &World, run: &Run) -> World {
        let of_schedule = |of: &BTreeMap<ScheduleId, RunId>| run.schedule.and_then(|id| of.get(&id).copied());
        let shown = [of_schedule(&self.active), of_schedule(&self.first), run.follows];
        let mut around = World::beginning_at(1);
        around.runs = shown.into_iter().flatten().filter_map(|id| Some((id, world.runs.get(&id)?.clone()))).collect();
        around
    }
}

/// Checks which run of each schedule is the first that will find another at work.
fn check_overlapping(connection: &Connection, world: &World, found: &mut Vec<String>) -> Done<()> {
    let schedules = Representatives::of(world);
    let mut expected: BTreeMap<ScheduleId, (jiff::Timestamp, RunId)> = BTreeMap::new();
    let is_asked = |run: &&Run| run.terms.overlap.answers_at_once() && run.planned_for().is_some();
    for run in world.runs.values().filter(is_asked).filter(|run| schedules.around(world, run).overlaps(run)) {
        let (Some(schedule), Some(ready_at)) = (run.schedule, run.planned_for()) else { continue };
        let first = expected.entry(schedule).or_insert((ready_at, run.id));
        *first = (*first).min((ready_at, run.id));
    }
    let mut statement = connection.prepare("SELECT schedule_id, ready_at, run_id FROM overlapping")?;
    let rows = statement.query_map([], |row| {
        let (schedule, run) = (ScheduleId(row.get::<_, Id>(0)?.0), RunId(row.get::<_, Id>(2)?.0));
        Ok((schedule, (row.get::<_, At>(1)?.0, run)))
    })?;
    let kept: BTreeMap<ScheduleId, (jiff::Timestamp, RunId)> = rows.collect::<rusqlite::Result<_>>()?;
    if kept != expected {
        found.push("the runs that find another at work are not kept as they are".to_owned());
    }
    Ok(())
}

struct LaneRow {
    lane: Lane,
    gate_id: i64,
    planned: i64,
    turn_at: Option<At>,
    head_due_at: Option<At>,
    rank: Option<At>,
    is_due: bool,
}

fn read_lanes(connection: &Connection) -> Done<BTreeMap<i64, LaneRow>> {
    let sql = "SELECT id, gate_id, planned, turn_at, head_due_at, rank, is_due,
        agent, project, key, key_max, max_concurrent, priority FROM lanes";
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map([], |row| {
        let lane = LaneRow {
            gate_id: row.get(1)?,
            planned: row.get(2)?,
            turn_at: row.get(3)?,
            head_due_at: row.get(4)?,
            rank: row.get(5)?,
            is_due: row.get(6)?,
            lane: read_lane(row, 7)?,
        };
        Ok((row.get(0)?, lane))
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

struct GateRow {
    shared: Shared,
    max: Option<u32>,
    lanes: i64,
    best_rank: Option<At>,
    next_due_at: Option<At>,
}

fn read_gates(connection: &Connection) -> Done<BTreeMap<i64, GateRow>> {
    let sql = "SELECT id, kind, name, max, lanes, best_rank, next_due_at FROM gates";
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map([], |row| {
        let shared = Shared { kind: Kind::from_str(&row.get::<_, String>(1)?), name: row.get(2)? };
        let (best_rank, next_due_at) = (row.get(5)?, row.get(6)?);
        Ok((row.get(0)?, GateRow { shared, max: row.get(3)?, lanes: row.get(4)?, best_rank, next_due_at }))
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn check_lanes(
    connection: &Connection,
    world: &World,
    kept: &BTreeMap<RunId, Kept>,
    found: &mut Vec<String>,
) -> Done<()> {
    let (lanes, gates) = (read_lanes(connection)?, read_gates(connection)?);
    let mut planned: BTreeMap<i64, i64> = BTreeMap::new();
    let mut heads: BTreeMap<i64, jiff::Timestamp> = BTreeMap::new();
    for (id, run) in &world.runs {
        let (Some(ready_at), Some(lane)) = (run.planned_for(), kept[id].lane_id) else { continue };
        *planned.entry(lane).or_default() += 1;
        if !kept[id].is_blocked {
            let head = heads.entry(lane).or_insert(ready_at);
            *head = ready_at.min(*head);
        }
    }
    let names: BTreeSet<&Lane> = lanes.values().map(|row| &row.lane).collect();
    if names.len() != lanes.len() {
        found.push("a lane is there twice".to_owned());
    }
    for (id, row) in &lanes {
        let head = heads.get(id).copied();
        let rank = head.map(|head| row.lane.rank(head, row.turn_at.map(|at| at.0)));
        let is_right = row.planned == planned.get(id).copied().unwrap_or(0)
            && 0 < row.planned
            && row.head_due_at == head.map(At)
            && row.rank == rank.map(At);
        if !is_right {
            found.push(format!("the lane {:?} does not say what its runs are", row.lane));
        }
        let gate = gates.get(&row.gate_id);
        if gate.is_none_or(|gate| !gates_of(&row.lane).contains(&(gate.shared.clone(), gate.max))) {
            found.push(format!("the lane {:?} stands behind a gate that is not its own", row.lane));
        }
    }
    for (id, gate) in &gates {
        let behind = || lanes.values().filter(|row| row.gate_id == *id);
        let best = behind().filter(|row| row.is_due).filter_map(|row| row.rank).map(|at| at.0).min();
        let next = behind().filter(|row| !row.is_due).filter_map(|row| row.head_due_at).map(|at| at.0).min();
        let is_right = gate.lanes == behind().count() as i64
            && 0 < gate.lanes
            && gate.best_rank == best.map(At)
            && gate.next_due_at == next.map(At);
        if !is_right {
            found.push(format!("the gate {:?} does not say what its lanes are", gate.shared));
        }
    }
    Ok(())
}

fn check_held(connection: &Connection, world: &World, found: &mut Vec<String>) -> Done<()> {
    let mut held: BTreeMap<Shared, i64> = BTreeMap::new();
    let mut shared_by: BTreeMap<*const Terms, Vec<Shared>> = BTreeMap::new();
    for run in world.runs.values().filter(|run| run.owner().is_some()) {
        let all = || Shared::all_of(&Lane::of(&run.terms)).collect();
        for shared in shared_by.entry(Arc::as_ptr(&run.terms)).or_insert_with(all) {
            *held.entry(shared.clone()).or_default() += 1;
        }
    }
    let mut statement = connection.prepare("SELECT kind, name, runs FROM held")?;
    let rows = statement.query_map([], |row| {
        Ok((Shared { kind: Kind::from_str(&row.get::<_, String>(0)?), name: row.get(1)? }, row.get(2)?))
    })?;
    let counted: BTreeMap<Shared, i64> = rows.collect::<rusqlite::Result<_>>()?;
    if counted != held {
        found.push("the runs that hold a place are not counted as they are".to_owned());
    }
    Ok(())
}

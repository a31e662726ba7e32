//! Loading: the state that commands decide on, and rows that it does not have.

use std::sync::Arc;

use jiff::Timestamp;
use punctual_core::journal::World;
use punctual_core::time::SlotKey;
use punctual_core::{NodeId, RunId, ScheduleId};
use punctual_kernel::state::State;
use punctual_kernel::transaction::{Cluster, Found, Needs};
use rusqlite::{Connection, OptionalExtension, params};

use super::fault::{Done, Fault};
use super::journal::read_days;
use super::nodes::read_nodes;
use super::rows::{TermsRead, read_runs, read_schedules};
use super::session::read_head;
use super::tokens::read_tokens;
use super::values::{At, Id, count, micros_before, micros_up_to};
use crate::requests::{Answered, Head, Planner};

/// The state of a database: schedules, runs that are not over, nodes, and the end of the journal.
pub(super) fn everything_live(connection: &Connection) -> Done<(State, Cluster, Head)> {
    let (head, _) = read_head(connection)?;
    let world = read_world(connection, "SELECT * FROM runs WHERE ended_at IS NULL")?;
    Ok((State::new(world), read_cluster(connection)?, head))
}

/// The rows as the journal should have them, with the runs that a query of `SELECT * FROM runs` finds.
pub(super) fn read_world(connection: &Connection, runs: &str) -> Done<World> {
    let (head, epoch_floor) = read_head(connection)?;
    let mut world = World::beginning_at(1);
    (world.seq, world.epoch_floor, world.days) = (head.seq, epoch_floor, read_days(connection)?);
    world.tokens = Arc::new(read_tokens(connection)?);
    let records = read_schedules(connection, "SELECT * FROM schedules", [])?;
    world.schedules = records.into_iter().map(|record| (record.schedule.id, record)).collect();
    let runs = read_runs(connection, &mut TermsRead::default(), runs, [])?;
    world.runs = runs.into_iter().map(|run| (run.id, run)).collect();
    Ok(world)
}

/// Nodes and leases. The time is each node's own.
pub(super) fn read_cluster(connection: &Connection) -> Done<Cluster> {
    let mut statement = connection.prepare_cached("SELECT agent, seen_at FROM agents_seen")?;
    let seen = statement.query_map([], |row| Ok((row.get(0)?, row.get::<_, At>(1)?.0)))?;
    let agents_seen = seen.collect::<rusqlite::Result<_>>()?;
    let sql = "SELECT node, lease_until, epoch FROM planner";
    let planner = connection.prepare_cached(sql)?.query_row([], |row| {
        let (node, until) = (NodeId(row.get::<_, Id>(0)?.0), row.get::<_, At>(1)?.0);
        Ok(Planner { node, until, epoch: count(row.get(2)?) })
    });
    let nodes = read_nodes(connection)?.into_iter().map(|node| (node.id, node)).collect();
    Ok(Cluster { now: None, nodes, planner: planner.optional()?, agents_seen })
}

/// Reads what commands need and the state does not have.
pub(super) fn find(connection: &Connection, state: &State, needs: &Needs) -> Done<Found> {
    let mut found = Found::default();
    let terms = &mut TermsRead::default();
    for id in needs.wants.runs.iter().filter(|id| state.run(**id).is_none()) {
        let runs = read_runs(connection, terms, "SELECT * FROM runs WHERE id = ?1", [Id(id.0)])?;
        found.runs.extend(runs.into_iter().map(|run| (run.id, run)));
    }
    for (schedule, key) in &needs.wants.slots {
        find_slot(connection, state, terms, (*schedule, key), &mut found)?;
    }
    for key in &needs.keys {
        let sql = "SELECT digest, subject, at FROM answers WHERE key = ?1";
        let answered = connection.prepare_cached(sql)?.query_row([key], |row| {
            let digest = row.get::<_, i64>(0)?.cast_unsigned();
            Ok(Answered { digest, subject: row.get::<_, Id>(1)?.0, at: row.get::<_, At>(2)?.0 })
        });
        found.answers.extend(answered.optional()?.map(|answered| (key.clone(), answered)));
    }
    if let Some(before) = needs.old_before {
        let mut statement = connection.prepare_cached(include_str!("sql/old_runs.sql"))?;
        let old = statement.query_map([micros_before(before)], |row| Ok(RunId(row.get::<_, Id>(0)?.0)))?;
        found.old = old.collect::<rusqlite::Result<_>>()?;
    }
    if let Some(until) = needs.checkpoint_until {
        found.everything = Some(read_world(connection, "SELECT * FROM runs")?);
        (found.first, found.start) = find_start(connection, until)?;
    }
    Ok(found)
}

fn find_slot(
    connection: &Connection,
    state: &State,
    terms: &mut TermsRead,
    (schedule, key): (ScheduleId, &SlotKey),
    found: &mut Found,
) -> Done<()> {
    let sql = "SELECT * FROM runs WHERE schedule_id = ?1 AND slot_key = ?2";
    for run in read_runs(connection, terms, sql, params![Id(schedule.0), key.as_str()])? {
        found.slots.insert((schedule, key.clone()), run.id);
        if state.run(run.id).is_none() {
            found.runs.insert(run.id, run);
        }
    }
    Ok(())
}

/// The first entry that counts, and the last checkpoint that is old enough: each with the checksum of the entry before it.
fn find_start(connection: &Connection, until: Timestamp) -> Done<(Head, Option<Head>)> {
    let sql = "SELECT first_seq, checksum_before FROM head";
    let head = |seq: i64, checksum: i64| Head { seq: count(seq), checksum: checksum.cast_unsigned() };
    let first = connection.query_row(sql, [], |row| Ok(head(row.get(0)?, row.get(1)?)))?;
    let sql = include_str!("sql/journal_start.sql");
    let start: Option<i64> =
        connection.prepare_cached(sql)?.query_row([micros_up_to(until)], |row| row.get(0)).optional()?;
    let Some(start) = start.filter(|start| first.seq < count(*start)) else { return Ok((first, None)) };
    let sql = "SELECT checksum FROM journal WHERE seq = ?1";
    let checksum = connection.prepare_cached(sql)?.query_row([start - 1], |row| row.get(0)).optional()?;
    let missing = || Fault::damaged(format!("entry {} of the journal is missing", start - 1));
    Ok((first, Some(head(start, checksum.ok_or_else(missing)?))))
}

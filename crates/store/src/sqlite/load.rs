//! Loading: the state, from the snapshot and the entries after it; and what commands need that it does not have.

use jiff::Timestamp;
use punctual_core::NodeId;
use punctual_core::journal::EndedRun;
use punctual_kernel::state::State;
use punctual_kernel::transaction::{Cluster, Found, Needs};
use rusqlite::{Connection, OptionalExtension, params};

use super::fault::{Done, Fault};
use super::history::past_of_run;
use super::journal::{changes_after, read_head};
use super::nodes::read_nodes;
use super::snapshot::{SNAPSHOT, snapshot_seq};
use super::values::{At, Id, count};
use crate::requests::{Answered, Head, Planner};

/// The pages that are kept in memory while the state is read, in KiB: each is read once, and what they say is in the state then.
const CACHE_KIB: i64 = 2 * 1024;

/// The state: the snapshot, and the entries after it.
pub(super) fn state(connection: &Connection) -> Done<(State, Head)> {
    let cache_size: i64 = connection.pragma_query_value(None, "cache_size", |row| row.get(0))?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    let loaded = snapshot_and_tail(connection);
    connection.pragma_update(None, "cache_size", cache_size)?;
    loaded
}

fn snapshot_and_tail(connection: &Connection) -> Done<(State, Head)> {
    let mut state = State::new(SNAPSHOT.world(connection, snapshot_seq(connection)?)?);
    follow(connection, &mut state)?;
    Ok((state, read_head(connection)?))
}

/// Takes in the entries after those that a state has.
pub(super) fn follow(connection: &Connection, state: &mut State) -> Done<()> {
    changes_after(connection, state.seq(), |row| {
        let mut entries = row.bare_entries()?;
        // A row may have been taken in half: it is read from the middle.
        entries.retain(|entry| state.seq() < entry.seq);
        let refused =
            |error| Fault::damaged(format!("the journal cannot have happened after entry {}: {error}", row.first - 1));
        state.follow_all(&entries).map_err(refused)?;
        Ok(true)
    })
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
    let now: Option<Timestamp> = None;
    Ok(Cluster { now, nodes, planner: planner.optional()?, agents_seen })
}

/// Reads what commands need and the state does not have.
pub(super) fn find(connection: &Connection, state: &State, needs: &Needs) -> Done<Found> {
    let mut found = Found::default();
    for id in needs.runs.iter().filter(|id| state.run(**id).is_none()) {
        let past = past_of_run(connection, *id, 1)?;
        found.ended.extend(past.first().and_then(EndedRun::of).map(|ended| (*id, ended)));
    }
    for key in &needs.keys {
        let sql = "SELECT digest, subject, at FROM answers WHERE key = ?1";
        let answered = connection.prepare_cached(sql)?.query_row(params![key], |row| {
            let digest = row.get::<_, i64>(0)?.cast_unsigned();
            Ok(Answered { digest, subject: row.get::<_, Id>(1)?.0, at: row.get::<_, At>(2)?.0 })
        });
        found.answers.extend(answered.optional()?.map(|answered| (key.clone(), answered)));
    }
    Ok(found)
}

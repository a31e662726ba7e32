//! Nodes, their leases, and the planner's.

use std::collections::BTreeSet;

use async_trait::async_trait;
use jiff::Timestamp;
use punctual_core::journal::Body;
use punctual_core::plan::Outage;
use punctual_core::{Elapsed, NodeId, RunId};
use rusqlite::{Connection, OptionalExtension, params};

use super::SqliteStore;
use super::fault::Done;
use super::session::Session;
use super::values::{At, Id, count, from_json, signed, to_json};
use crate::change::{self, Wants};
use crate::error::{Result, StoreError};
use crate::requests::{About, NodeLease, NodeRecord, PlannerLease, Renewal, Sign};
use crate::roles::Nodes;

#[async_trait]
impl Nodes for SqliteStore {
    fn is_exclusive(&self) -> bool {
        true
    }

    async fn join(&self, sign: &Sign) -> Result<Renewal> {
        let sign = sign.clone();
        self.write("joining", sign.now, move |session| session.join(&sign)).await
    }

    async fn renew(&self, sign: &Sign) -> Result<Renewal> {
        let sign = sign.clone();
        self.write_urgently("renewing a lease", sign.now, move |session| session.renew(&sign)).await
    }

    async fn leave(&self, now: Timestamp, node: NodeId) -> Result<()> {
        self.write("leaving", now, move |session| session.leave(now, node)).await
    }

    async fn bury(&self, now: Timestamp, dead: Vec<NodeLease>) -> Result<usize> {
        self.write("taking runs from dead nodes", now, move |session| {
            let dead: Vec<_> = session.nodes()?.into_iter().filter(|node| dead.contains(&node.lease())).collect();
            dead.iter().try_for_each(|node| session.remove_node(node.id, now, true))?;
            Ok(dead.len())
        })
        .await
    }

    async fn nodes(&self) -> Result<Vec<NodeRecord>> {
        self.read("reading the nodes", read_nodes).await
    }

    async fn take_planner(&self, sign: &Sign) -> Result<PlannerLease> {
        let sign = sign.clone();
        self.write_urgently("taking over the planning", sign.now, move |session| session.take_planner(&sign)).await
    }

    async fn note_outage(&self, now: Timestamp, node: NodeId, from: Timestamp) -> Result<()> {
        self.write("noting an outage", now, move |session| {
            let epoch = session.planner()?.map_or(0, |planner| planner.epoch);
            session.mark_outage(node, epoch, Some(Outage { from, until: now, kept: None }), now)
        })
        .await
    }
}

/// Who plans, and until when.
struct Planner {
    node: NodeId,
    until: Timestamp,
    epoch: u64,
}

impl Session {
    pub(super) fn nodes(&self) -> Done<Vec<NodeRecord>> {
        read_nodes(&self.connection)
    }

    /// Whether a node lives, as far as its lease says.
    pub(super) fn has_lease(&self, node: NodeId, now: Timestamp) -> Done<bool> {
        let sql = "SELECT lease_until FROM nodes WHERE id = ?1";
        let until: Option<At> =
            self.connection.prepare_cached(sql)?.query_row([Id(node.0)], |row| row.get(0)).optional()?;
        Ok(until.is_some_and(|until| now <= until.0))
    }

    fn join(&mut self, sign: &Sign) -> Done<Renewal> {
        // The file has one server: every earlier node is dead.
        for node in self.nodes()?.into_iter().filter(|node| node.id != sign.node) {
            self.remove_node(node.id, sign.now, true)?;
        }
        self.append(sign.now, &Body::NodeJoined { node: sign.node, name: sign.name.clone() })?;
        let sql = "INSERT OR REPLACE INTO nodes VALUES (?1, ?2, ?3, ?3, ?4, ?5, ?6)";
        let lease = sign.lease.milliseconds();
        let (agents, about) = (to_json(&sign.agents), to_json(&sign.about));
        let params = params![Id(sign.node.0), sign.name, At(sign.now), lease, agents, about];
        self.connection.prepare_cached(sql)?.execute(params)?;
        self.renew(sign)
    }

    fn renew(&mut self, sign: &Sign) -> Done<Renewal> {
        let lease_until = sign.now + sign.lease.duration();
        let sql = "UPDATE nodes SET lease_until = ?2, lease = ?3, agents = ?4, about = ?5 WHERE id = ?1";
        let (agents, about) = (to_json(&sign.agents), to_json(&sign.about));
        let params = params![Id(sign.node.0), At(lease_until), sign.lease.milliseconds(), agents, about];
        if self.connection.prepare_cached(sql)?.execute(params)? == 0 {
            return Err(StoreError::LeaseEnded.into());
        }
        let sql = "INSERT INTO agents_seen VALUES (?1, ?2) ON CONFLICT DO UPDATE SET seen_at = excluded.seen_at";
        let mut statement = self.connection.prepare_cached(sql)?;
        for agent in sign.agents.iter() {
            statement.execute(params![agent, At(sign.now)])?;
        }
        let owned = self.owned(sign.node)?;
        let foreign = self.nodes()?.into_iter().filter(|node| node.id != sign.node);
        Ok(Renewal {
            at: sign.now,
            lease_until,
            cancelling: owned.iter().filter(|(.., is_cancelling)| *is_cancelling).map(|(id, ..)| *id).collect(),
            owned: owned.iter().map(|(id, epoch, _)| (*id, *epoch)).collect(),
            others: foreign.map(|node| node.lease()).collect(),
        })
    }

    fn leave(&mut self, now: Timestamp, node: NodeId) -> Done<()> {
        if self.nodes()?.iter().any(|record| record.id == node) {
            self.remove_node(node, now, false)?;
        }
        // Whoever comes next plans at once; if nobody does, that is where the outage begins.
        let sql = "UPDATE planner SET lease_until = min(lease_until, ?2) WHERE node = ?1";
        self.connection.prepare_cached(sql)?.execute(params![Id(node.0), At(now)])?;
        Ok(())
    }

    /// The runs of a node by id, each with its epoch and whether somebody has called it off.
    fn owned(&self, node: NodeId) -> Done<Vec<(RunId, u64, bool)>> {
        let sql = "SELECT id, epoch, is_cancelling FROM runs WHERE owner = ?1 ORDER BY id";
        let mut statement = self.connection.prepare_cached(sql)?;
        let owned = statement
            .query_map([Id(node.0)], |row| Ok((RunId(row.get::<_, Id>(0)?.0), count(row.get(1)?), row.get(2)?)))?;
        Ok(owned.collect::<rusqlite::Result<_>>()?)
    }

    pub(super) fn remove_node(&mut self, node: NodeId, now: Timestamp, is_lost: bool) -> Done<()> {
        let owned: Vec<RunId> = self.owned(node)?.into_iter().map(|(id, ..)| id).collect();
        let wants = Wants::runs(owned.iter().copied());
        self.change(&wants, now, |draft| change::take_away(draft, node, &owned, is_lost))?;
        self.connection.prepare_cached("DELETE FROM nodes WHERE id = ?1")?.execute([Id(node.0)])?;
        Ok(())
    }

    /// Whether claims wait for planning.
    pub(super) fn awaits_planning(&self, now: Timestamp) -> Done<bool> {
        let sql =
            "SELECT max(outage_until) FROM schedules INDEXED BY schedules_after_outage WHERE outage_until IS NOT NULL";
        let last_outage: Option<At> = self.connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
        let planned_until = self.planner()?.map(|planner| planner.until);
        Ok(change::awaits_planning(planned_until, last_outage.map(|at| at.0), now))
    }

    fn planner(&self) -> Done<Option<Planner>> {
        let sql = "SELECT node, lease_until, epoch FROM planner";
        let read = |row: &rusqlite::Row<'_>| {
            let (node, until) = (NodeId(row.get::<_, Id>(0)?.0), row.get::<_, At>(1)?.0);
            Ok(Planner { node, until, epoch: count(row.get(2)?) })
        };
        Ok(self.connection.prepare_cached(sql)?.query_row([], read).optional()?)
    }

    fn take_planner(&mut self, sign: &Sign) -> Done<PlannerLease> {
        let now = sign.now;
        if !self.has_lease(sign.node, now)? {
            return Err(StoreError::LeaseEnded.into());
        }
        let until = now + sign.lease.duration();
        let before = self.planner()?;
        let ended_at = before.as_ref().map(|planner| planner.until);
        if let Some(planner) = &before {
            let is_node = self.nodes()?.iter().any(|node| node.id == planner.node);
            let is_alive = now <= planner.until && is_node;
            if is_alive && planner.node != sign.node {
                return Ok(PlannerLease { is_held: false, until: planner.until, outage: None });
            }
            if is_alive {
                self.connection.prepare_cached("UPDATE planner SET lease_until = ?1")?.execute([At(until)])?;
                return Ok(PlannerLease { is_held: true, until, outage: None });
            }
        }
        let outage = change::outage(ended_at, now);
        let epoch = before.map_or(1, |planner| planner.epoch + 1);
        self.mark_outage(sign.node, epoch, outage, now)?;
        let sql = "INSERT OR REPLACE INTO planner VALUES (1, ?1, ?2, ?3)";
        self.connection.prepare_cached(sql)?.execute(params![Id(sign.node.0), At(until), signed(epoch)])?;
        Ok(PlannerLease { is_held: true, until, outage })
    }

    /// Marks every schedule, in one statement: what an outage and an earlier one make is `Outage::and`.
    fn mark_outage(&mut self, node: NodeId, epoch: u64, outage: Option<Outage>, now: Timestamp) -> Done<()> {
        if let Some(outage) = outage {
            let params = params![At(outage.from), At(outage.until)];
            self.connection.prepare_cached(include_str!("sql/mark_outage.sql"))?.execute(params)?;
        }
        self.append(now, &Body::PlannerTaken { node, epoch, outage })
    }
}

fn read_nodes(connection: &Connection) -> Done<Vec<NodeRecord>> {
    let sql = "SELECT id, name, joined_at, lease_until, lease, agents, about FROM nodes ORDER BY id";
    let mut statement = connection.prepare_cached(sql)?;
    let nodes = statement.query_map([], |row| {
        let record = NodeRecord {
            id: NodeId(row.get::<_, Id>(0)?.0),
            name: row.get(1)?,
            joined_at: row.get::<_, At>(2)?.0,
            lease_until: row.get::<_, At>(3)?.0,
            lease: Elapsed::from_milliseconds(row.get(4)?).unwrap_or_default(),
            agents: BTreeSet::new(),
            about: About::default(),
        };
        Ok((record, row.get::<_, String>(5)?, row.get::<_, String>(6)?))
    })?;
    let with_the_rest = |found: rusqlite::Result<(NodeRecord, String, String)>| {
        let (record, agents, about) = found?;
        let (agents, about) = (from_json(&agents, "the agents of a node")?, from_json(&about, "a node")?);
        Ok(NodeRecord { agents, about, ..record })
    };
    nodes.map(with_the_rest).collect()
}

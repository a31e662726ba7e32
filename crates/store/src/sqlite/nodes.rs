//! Nodes, their leases, and the planner's.

use std::collections::BTreeSet;

use async_trait::async_trait;
use jiff::Timestamp;
use punctual_core::{Elapsed, NodeId};
use rusqlite::Connection;

use super::SqliteStore;
use super::fault::Done;
use super::values::{At, Id, from_json};
use crate::commands;
use crate::error::Result;
use crate::requests::{About, NodeLease, NodeRecord, PlannerLease, Renewal, Sign};
use crate::roles::Nodes;

#[async_trait]
impl Nodes for SqliteStore {
    fn is_exclusive(&self) -> bool {
        true
    }

    async fn join(&self, sign: &Sign) -> Result<Renewal> {
        commands::join_alone(self, sign).await
    }

    async fn renew(&self, sign: &Sign) -> Result<Renewal> {
        commands::renew(self, sign).await
    }

    async fn leave(&self, now: Timestamp, node: NodeId) -> Result<()> {
        commands::leave(self, now, node).await
    }

    async fn bury(&self, now: Timestamp, dead: Vec<NodeLease>) -> Result<usize> {
        commands::bury(self, now, dead).await
    }

    async fn nodes(&self) -> Result<Vec<NodeRecord>> {
        self.read("reading the nodes", read_nodes).await
    }

    async fn take_planner(&self, sign: &Sign) -> Result<PlannerLease> {
        commands::take_planner(self, sign).await
    }

    async fn planned_until(&self) -> Result<Option<Timestamp>> {
        commands::planned_until(self).await
    }

    async fn note_outage(&self, now: Timestamp, node: NodeId, from: Timestamp) -> Result<()> {
        commands::note_outage(self, now, node, from).await
    }
}

pub(super) fn read_nodes(connection: &Connection) -> Done<Vec<NodeRecord>> {
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

//! Nodes, their leases, and the planner's.

use jiff::Timestamp;
use punctual_core::NodeId;
use punctual_core::RunId;
use punctual_core::journal::Body;
use punctual_core::plan::Outage;

use super::Transaction;
use crate::change::{self, Wants};
use crate::error::{KernelError, Result};
use crate::types::Planner;
use crate::types::{NodeLease, NodeRecord, PlannerLease, Renewal, Sign};

impl Transaction<'_> {
    /// Whether a node lives, as far as its lease says.
    pub(super) fn has_lease(&self, node: NodeId, now: Timestamp) -> bool {
        self.cluster.nodes.get(&node).is_some_and(|node| now <= node.lease_until)
    }

    /// A node comes to life, with a lease, where no other can be alive: every earlier one has lost its runs.
    pub fn join_alone(&mut self, sign: &Sign) -> Result<Renewal> {
        let others: Vec<NodeId> = self.cluster.nodes.keys().copied().filter(|node| *node != sign.node).collect();
        others.into_iter().for_each(|node| self.remove_node(node, sign.now, true));
        self.join(sign)
    }

    /// Renews a node's lease.
    pub fn renew(&mut self, sign: &Sign) -> Result<Renewal> {
        let node = self.cluster.nodes.get(&sign.node).ok_or(KernelError::LeaseEnded)?;
        let joined_at = node.joined_at;
        Ok(self.lease(sign, joined_at))
    }

    /// A node comes to life, with a lease.
    pub fn join(&mut self, sign: &Sign) -> Result<Renewal> {
        self.append(sign.now, Body::NodeJoined { node: sign.node, name: sign.name.clone() })?;
        Ok(self.lease(sign, sign.now))
    }

    /// Gives a node its lease.
    fn lease(&mut self, sign: &Sign, joined_at: Timestamp) -> Renewal {
        let lease_until = sign.now + sign.lease.duration();
        let agents = (*sign.agents).clone();
        let (name, lease) = (sign.name.clone(), sign.lease);
        let node = NodeRecord { id: sign.node, name, joined_at, lease_until, lease, agents, about: sign.about.clone() };
        for agent in sign.agents.iter() {
            self.cluster.agents_seen.insert(agent.clone(), sign.now);
            self.changes.agents_seen.insert(agent.clone(), sign.now);
        }
        self.cluster.nodes.insert(sign.node, node.clone());
        self.changes.nodes.insert(sign.node, Some(node));
        let owned = || self.mirror.owned(sign.node);
        Renewal {
            at: self.cluster.now.unwrap_or(sign.now),
            lease_until,
            owned: owned().map(|run| (run.id, run.epoch())).collect(),
            cancelling: owned().filter(|run| run.is_cancelling).map(|run| run.id).collect(),
            others: self.cluster.nodes.values().filter(|node| node.id != sign.node).map(NodeRecord::lease).collect(),
        }
    }

    /// A node stops: what it has not begun goes back, what it works on is lost to it.
    pub fn leave(&mut self, now: Timestamp, node: NodeId) {
        if self.cluster.nodes.contains_key(&node) {
            self.remove_node(node, now, false);
        }
        // Whoever comes next plans at once; if nobody does, that is where the outage begins.
        if let Some(planner) = self.cluster.planner.filter(|planner| planner.node == node) {
            self.put_planner(Planner { until: planner.until.min(now), ..planner });
        }
    }

    /// Takes their runs from nodes whose leases are still the ones that were seen to end. How many nodes.
    pub fn bury(&mut self, now: Timestamp, dead: &[NodeLease]) -> usize {
        let is_dead = |node: &&NodeRecord| dead.contains(&node.lease());
        let dead: Vec<NodeId> = self.cluster.nodes.values().filter(is_dead).map(|node| node.id).collect();
        dead.iter().for_each(|node| self.remove_node(*node, now, true));
        dead.len()
    }

    /// Takes the runs of a node away from it: it is dead, or it stops.
    pub fn remove_node(&mut self, node: NodeId, now: Timestamp, is_lost: bool) {
        let owned: Vec<RunId> = self.mirror.owned(node).map(|run| run.id).collect();
        let wants = Wants::runs(owned.iter().copied());
        self.change(&wants, now, |draft| change::take_away(draft, node, &owned, is_lost));
        self.cluster.nodes.remove(&node);
        self.changes.nodes.insert(node, None);
    }

    /// Takes or renews the planner's lease, if it is free or the node's own.
    pub fn take_planner(&mut self, sign: &Sign) -> Result<PlannerLease> {
        let now = sign.now;
        if !self.has_lease(sign.node, now) {
            return Err(KernelError::LeaseEnded);
        }
        let until = now + sign.lease.duration();
        let before = self.cluster.planner;
        if let Some(planner) = before {
            let is_alive = now <= planner.until && self.cluster.nodes.contains_key(&planner.node);
            if is_alive && planner.node != sign.node {
                return Ok(PlannerLease { is_held: false, until: planner.until, outage: None });
            }
            if is_alive {
                self.put_planner(Planner { until, ..planner });
                return Ok(PlannerLease { is_held: true, until, outage: None });
            }
        }
        let outage = change::outage(before.map(|planner| planner.until), now);
        let epoch = before.map_or(1, |planner| planner.epoch + 1);
        self.note(sign.node, epoch, outage, now)?;
        self.put_planner(Planner { node: sign.node, until, epoch });
        Ok(PlannerLease { is_held: true, until, outage })
    }

    /// Notes an outage that no lease shows.
    pub fn note_outage(&mut self, now: Timestamp, node: NodeId, from: Timestamp) -> Result<()> {
        let epoch = self.cluster.planner.map_or(0, |planner| planner.epoch);
        self.note(node, epoch, Some(Outage { from, until: now, kept: None }), now)
    }

    fn note(&mut self, node: NodeId, epoch: u64, outage: Option<Outage>, now: Timestamp) -> Result<()> {
        Ok(self.change(&Wants::default(), now, |draft| draft.add(Body::PlannerTaken { node, epoch, outage }))?)
    }

    fn put_planner(&mut self, planner: Planner) {
        self.cluster.planner = Some(planner);
        self.changes.planner = Some(planner);
    }
}

//! Nodes, their leases, and the planner's.

use async_trait::async_trait;
use jiff::Timestamp;
use punctual_core::journal::Body;
use punctual_core::plan::Outage;
use punctual_core::{NodeId, RunId};

use super::{MemoryStore, State};
use crate::error::{Result, StoreError};
use crate::requests::{NodeLease, NodeRecord, Planner, PlannerLease, Renewal, Sign};
use crate::roles::Nodes;
use punctual_kernel::change::{self, Wants};

#[async_trait]
impl Nodes for MemoryStore {
    fn is_exclusive(&self) -> bool {
        self.is_exclusive
    }

    async fn join(&self, sign: &Sign) -> Result<Renewal> {
        let mut state = self.state();
        if self.is_exclusive {
            let earlier: Vec<NodeId> = state.nodes.keys().copied().filter(|node| *node != sign.node).collect();
            earlier.into_iter().for_each(|node| state.remove_node(node, sign.now, true));
        }
        let mut draft = state.draft(&Wants::default(), sign.now);
        draft.add(Body::NodeJoined { node: sign.node, name: sign.name.clone() })?;
        state.save(draft, &Wants::default());
        let record = NodeRecord {
            id: sign.node,
            name: sign.name.clone(),
            joined_at: sign.now,
            lease_until: sign.now,
            lease: sign.lease,
            agents: (*sign.agents).clone(),
            about: sign.about.clone(),
        };
        state.nodes.insert(sign.node, record);
        Ok(state.renew(sign, self.time(sign.now)).expect("it has just joined"))
    }

    async fn renew(&self, sign: &Sign) -> Result<Renewal> {
        self.state().renew(sign, self.time(sign.now)).ok_or(StoreError::LeaseEnded)
    }

    async fn leave(&self, now: Timestamp, node: NodeId) -> Result<()> {
        let mut state = self.state();
        if state.nodes.contains_key(&node) {
            state.remove_node(node, now, false);
        }
        // Whoever comes next plans at once; if nobody does, that is where the outage begins.
        if let Some(planner) = &mut state.planner
            && planner.node == node
        {
            planner.until = planner.until.min(now);
        }
        Ok(())
    }

    async fn bury(&self, now: Timestamp, dead: Vec<NodeLease>) -> Result<usize> {
        let mut state = self.state();
        let is_dead = |node: &&NodeRecord| dead.contains(&node.lease());
        let dead: Vec<NodeId> = state.nodes.values().filter(is_dead).map(|node| node.id).collect();
        dead.iter().for_each(|node| state.remove_node(*node, now, true));
        Ok(dead.len())
    }

    async fn nodes(&self) -> Result<Vec<NodeRecord>> {
        Ok(self.state().nodes.values().cloned().collect())
    }

    async fn take_planner(&self, sign: &Sign) -> Result<PlannerLease> {
        let mut state = self.state();
        let now = sign.now;
        if !state.has_lease(sign.node, now) {
            return Err(StoreError::LeaseEnded);
        }
        let until = now + sign.lease.duration();
        let before = state.planner;
        let ended_at = before.map(|planner| planner.until);
        if let Some(planner) = before {
            let is_alive = now <= planner.until && state.nodes.contains_key(&planner.node);
            if is_alive && planner.node != sign.node {
                return Ok(PlannerLease { is_held: false, until: planner.until, outage: None });
            }
            if is_alive {
                state.planner = Some(Planner { until, ..planner });
                return Ok(PlannerLease { is_held: true, until, outage: None });
            }
        }
        let outage = change::outage(ended_at, now);
        let epoch = before.map_or(1, |planner| planner.epoch + 1);
        state.note(sign.node, epoch, outage, now);
        state.planner = Some(Planner { node: sign.node, until, epoch });
        Ok(PlannerLease { is_held: true, until, outage })
    }

    async fn planned_until(&self) -> Result<Option<Timestamp>> {
        Ok(self.state().planner.map(|planner| planner.until))
    }

    async fn note_outage(&self, now: Timestamp, node: NodeId, from: Timestamp) -> Result<()> {
        let mut state = self.state();
        let epoch = state.planner.map_or(0, |planner| planner.epoch);
        state.note(node, epoch, Some(Outage { from, until: now, kept: None }), now);
        Ok(())
    }
}

impl State {
    /// Whether a node lives, as far as its lease says.
    pub(super) fn has_lease(&self, node: NodeId, now: Timestamp) -> bool {
        self.nodes.get(&node).is_some_and(|node| now <= node.lease_until)
    }

    fn owned(&self, node: NodeId) -> Vec<RunId> {
        self.world.live_runs().filter(|run| run.owner() == Some(node)).map(|run| run.id).collect()
    }

    pub(super) fn remove_node(&mut self, node: NodeId, now: Timestamp, is_lost: bool) {
        let owned = self.owned(node);
        let wants = Wants::runs(owned.iter().copied());
        let mut draft = self.draft(&wants, now);
        change::take_away(&mut draft, node, &owned, is_lost);
        self.save(draft, &wants);
        self.nodes.remove(&node);
    }

    fn renew(&mut self, sign: &Sign, at: Timestamp) -> Option<Renewal> {
        let lease_until = sign.now + sign.lease.duration();
        let record = self.nodes.get_mut(&sign.node)?;
        (record.lease_until, record.lease) = (lease_until, sign.lease);
        record.agents.clone_from(&sign.agents);
        record.about.clone_from(&sign.about);
        for agent in sign.agents.iter() {
            self.agents_seen.insert(agent.clone(), sign.now);
        }
        let owned = self.owned(sign.node);
        let is_cancelling = |id: &&RunId| self.world.runs[id].is_cancelling;
        Some(Renewal {
            at,
            lease_until,
            cancelling: owned.iter().filter(is_cancelling).copied().collect(),
            owned: owned.iter().map(|id| (*id, self.world.runs[id].epoch())).collect(),
            others: self.nodes.values().filter(|node| node.id != sign.node).map(NodeRecord::lease).collect(),
        })
    }

    fn note(&mut self, node: NodeId, epoch: u64, outage: Option<Outage>, now: Timestamp) {
        let wants = Wants::default();
        let mut draft = self.draft(&wants, now);
        draft.add(Body::PlannerTaken { node, epoch, outage }).expect("planning may be taken over at any time");
        self.save(draft, &wants);
    }
}

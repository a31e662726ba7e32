//! Nodes, their leases, and the planner's.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use punctual_core::NodeId;

use super::PostgresStore;
use super::heart::Beat;
use super::rows::{NODE_COLUMNS, read_node};
use crate::commands;
use crate::error::Result;
use crate::kept::Kept;
use crate::requests::{About, Hint, NodeLease, NodeRecord, PlannerLease, Renewal, SharedTime, Sign};
use crate::roles::Nodes;

#[async_trait]
impl Nodes for PostgresStore {
    fn is_exclusive(&self) -> bool {
        false
    }

    fn shared_time(&self) -> Option<SharedTime> {
        self.time.last()
    }

    fn tell(&self, told: Arc<dyn Fn(Hint) + Send + Sync>) {
        self.listeners.add(told);
    }

    async fn join(&self, sign: &Sign) -> Result<Renewal> {
        let about = About { skew: self.time.skew(), ..sign.about.clone() };
        let sign = Sign { about, ..sign.clone() };
        commands::join(self, &sign).await
    }

    async fn renew(&self, sign: &Sign) -> Result<Renewal> {
        let Beat { at, others } = self.heart.beat(sign).await?;
        // What others have called off is in the journal: it is read now, if that does not take long.
        self.catch_up().await;
        let owned = self.ownership.of(sign.node);
        Ok(Renewal {
            at,
            lease_until: sign.now + sign.lease.duration(),
            cancelling: owned.iter().filter(|(.., is_cancelling)| *is_cancelling).map(|(id, ..)| *id).collect(),
            owned: owned.iter().map(|(id, epoch, _)| (*id, *epoch)).collect(),
            others,
        })
    }

    async fn leave(&self, now: Timestamp, node: NodeId) -> Result<()> {
        commands::leave(self, now, node).await
    }

    async fn bury(&self, now: Timestamp, dead: Vec<NodeLease>) -> Result<usize> {
        commands::bury(self, now, dead).await
    }

    async fn nodes(&self) -> Result<Vec<NodeRecord>> {
        let connections = self.connections.clone();
        self.read("reading the nodes", async move {
            let sql = format!("SELECT {NODE_COLUMNS} FROM nodes ORDER BY id");
            let rows = connections.query(&sql, &[]).await?;
            rows.iter().map(read_node).collect()
        })
        .await
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

impl PostgresStore {
    /// Waits until the state has what others have written, for a second at most.
    async fn catch_up(&self) {
        const WAIT_MAX: std::time::Duration = std::time::Duration::from_secs(1);
        let caught_up = self.look("catching up", |_| ());
        let (done, waited) = tokio::sync::oneshot::channel::<()>();
        self.threads.runtime().spawn(async move {
            tokio::time::sleep(WAIT_MAX).await;
            drop(done);
        });
        futures_util::future::select(Box::pin(caught_up), waited).await;
    }
}

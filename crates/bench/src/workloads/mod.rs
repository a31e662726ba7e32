//! What is measured, one file each.

pub(crate) mod drain;
pub(crate) mod hold;
pub(crate) mod insert;
pub(crate) mod join;
pub(crate) mod late;
pub(crate) mod list;
pub(crate) mod restart;
pub(crate) mod retention;
pub(crate) mod scaling;
pub(crate) mod schedules;
pub(crate) mod steady;

use std::sync::Arc;

use crate::args::Args;
use crate::database::{Database, Scratch};
use crate::node::{Agency, Node, Starts};
use crate::report::Measurement;

/// A database of its own with one open node, or several.
pub(crate) struct World {
    /// The database.
    pub(crate) scratch: Scratch,
    /// The nodes; none is started.
    pub(crate) nodes: Vec<Node>,
    /// What they have started.
    pub(crate) starts: Arc<Starts>,
}

impl World {
    /// A fresh database, with as many nodes as were asked for.
    pub(crate) async fn open(args: &Args, agency: &Agency) -> anyhow::Result<World> {
        let scratch = args.database.fresh().await?;
        let starts = Arc::<Starts>::default();
        let mut nodes = vec![];
        for number in 0..args.nodes {
            nodes.push(open_node(&scratch.database, number, agency, &starts).await?);
        }
        Ok(World { scratch, nodes, starts })
    }

    /// The first node.
    pub(crate) fn node(&self) -> &Node {
        &self.nodes[0]
    }

    /// Stops all nodes and removes the database.
    pub(crate) async fn close(self) -> anyhow::Result<()> {
        for node in self.nodes {
            node.stop().await?;
        }
        self.scratch.remove().await
    }
}

async fn open_node(database: &Database, number: u16, agency: &Agency, starts: &Arc<Starts>) -> anyhow::Result<Node> {
    Node::open(database, &format!("bench-{number}"), agency, starts).await
}

/// Before the clock runs, nodes that are paused have started nothing: otherwise the rate would be too good.
pub(crate) fn none_started(world: &World) -> anyhow::Result<()> {
    let started = world.starts.count();
    anyhow::ensure!(started == 0, "{started} runs started while the nodes were paused: nothing is measured");
    Ok(())
}

/// A measurement of a workload, without figures.
pub(crate) fn measurement(args: &Args, workload: &str, runs: usize) -> Measurement {
    Measurement {
        workload: workload.to_owned(),
        database: args.database.kind().to_owned(),
        nodes: args.nodes.into(),
        runs: runs as u64,
        ..Measurement::default()
    }
}

//! The pen: who holds it writes, and knows everything that was written before.

use punctual_core::{Elapsed, NodeId};
use punctual_kernel::transaction::Cluster;
use punctual_kernel::types::Planner;
use tokio_postgres::Client;
use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

use super::fault::Done;
use super::tail::{Answer, ROWS_MAX_AT_ONCE, Tail};
use super::values::At;
use crate::columns::{count, from_json, signed};
use crate::requests::{Head, NodeRecord};

/// Whatever is usual on the server, what is read behind the pen is what was written before it was free. The limits of the
/// transaction are set by `take_pen`.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";

/// Begins a transaction and waits for the pen. What was written after an entry that is known, nodes and leases. If that is
/// more than a few commits, it is not whole: most of it may be known when the wait is over, and is read again for nothing.
pub(super) async fn take(client: &Client, known: Head, locks_nodes: bool) -> Done<(Tail, Cluster)> {
    let params: [(&(dyn ToSql + Sync), Type); 3] =
        [(&signed(known.seq), Type::INT8), (&(ROWS_MAX_AT_ONCE as i64), Type::INT8), (&locks_nodes, Type::BOOL)];
    let (_, taken) = tokio::try_join!(biased;
        client.batch_execute(BEGIN),
        client.query_typed_one("SELECT * FROM take_pen($1, $2, $3)", &params),
    )?;
    let taken = Answer(taken);
    let agents: Vec<String> = taken.list("agents")?;
    let cluster = Cluster {
        now: Some(taken.get::<At>("now")?.0),
        nodes: nodes(&taken)?.into_iter().map(|node| (node.id, node)).collect(),
        planner: planner(&taken)?,
        agents_seen: agents.into_iter().zip(taken.list::<At>("agents_seen_at")?.iter().map(|at| at.0)).collect(),
    };
    Ok((taken.tail(known, ROWS_MAX_AT_ONCE)?, cluster))
}

fn nodes(taken: &Answer) -> Done<Vec<NodeRecord>> {
    let ids: Vec<Uuid> = taken.list("node_ids")?;
    let names: Vec<String> = taken.list("node_names")?;
    let (joined_at, until): (Vec<At>, Vec<At>) = (taken.list("nodes_joined_at")?, taken.list("nodes_until")?);
    let leases: Vec<i64> = taken.list("node_leases")?;
    let (agents, about): (Vec<&str>, Vec<&str>) = (taken.list("node_agents")?, taken.list("nodes_about")?);
    let node = |(index, name): (usize, String)| {
        Ok(NodeRecord {
            id: NodeId(ids[index]),
            name,
            joined_at: joined_at[index].0,
            lease_until: until[index].0,
            lease: Elapsed::from_milliseconds(leases[index]).unwrap_or_default(),
            agents: from_json(agents[index], "the agents of a node")?,
            about: from_json(about[index], "a node")?,
        })
    };
    names.into_iter().enumerate().map(node).collect()
}

fn planner(taken: &Answer) -> Done<Option<Planner>> {
    let Some(node) = taken.get::<Option<Uuid>>("planner_node")? else { return Ok(None) };
    let (until, epoch) = (taken.get::<At>("planner_until")?.0, count(taken.get("planner_epoch")?));
    Ok(Some(Planner { node: NodeId(node), until, epoch }))
}

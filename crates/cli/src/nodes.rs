//! `punctual nodes`: who serves the database.

use clap::Args;
use punctual_engine::clock::now;

use crate::client::{ClientArgs, Query, read};
use crate::ids;
use crate::output::{print, print_json};
use crate::table::{Cell, Column, table};
use crate::times::span;
use crate::views::Node;

/// Its columns, with their turn to give way.
const COLUMNS: [Column; 9] = [
    Column::text("NAME", 0, 12),
    Column::whole("RELEASE", 3),
    Column::whole("LEASE", 0),
    Column::whole("LOAD", 0),
    Column::whole("CLOCK", 4),
    Column::whole("ZONE DATA", 1),
    Column::text("AGENTS", 5, 12),
    Column::whole("ADDRESS", 6),
    Column::whole("ID", 2),
];

/// Show the nodes that serve the database.
///
/// Each with its name, release, lease, load, clock, zone data, agents and the address under which it can be reached. A node whose
/// lease has ended is taken for dead two seconds later, and its runs are taken over by the others.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  punctual nodes --database postgres://punctual@db.example/punctual")]
pub(crate) struct NodesArgs {
    #[command(flatten)]
    client: ClientArgs,
}

pub(crate) async fn run(args: NodesArgs) -> anyhow::Result<()> {
    let body = args.client.look().await?.get("/api/nodes", &Query::default()).await?;
    if args.client.json {
        return print_json(&body);
    }
    let nodes: Vec<Node> = read(&body)?;
    if nodes.is_empty() {
        return print("No node serves this database: `punctual up` starts one.\n");
    }
    print(&table(&COLUMNS, nodes.into_iter().map(row)))
}

fn row(node: Node) -> Vec<Cell> {
    let left = node.lease_until.duration_since(now());
    let lease = if left.is_negative() { format!("ended {} ago", span(left)) } else { span(left) };
    let paused = if node.paused == Some(true) { ", paused" } else { "" };
    vec![
        node.name.into(),
        node.version.into(),
        lease.into(),
        format!("{} of {}{paused}", node.running, node.places).into(),
        format!("{:+} ms", node.skew_ms).into(),
        node.zone_data.into(),
        node.agents.join(", ").into(),
        node.url.unwrap_or_else(|| "-".to_owned()).into(),
        ids::shown(node.node_id).into(),
    ]
}

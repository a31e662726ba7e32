//! `punctual nodes`: who serves the database.

use clap::Args;
use punctual_engine::clock::now;

use crate::client::{ClientArgs, Query, read};
use crate::output::{print, print_json, table};
use crate::times::span;
use crate::views::Node;

/// Show the nodes that serve the database.
///
/// Each with its name, release, lease, load, clock, zone data, agents and the address under which it can be reached. A node whose lease has ended is taken for dead two seconds later, and its runs are taken over by the others.
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
    let header = ["NAME", "RELEASE", "LEASE", "LOAD", "CLOCK", "ZONE DATA", "AGENTS", "ADDRESS", "ID"];
    print(&table(&header, nodes.into_iter().map(row)))
}

fn row(node: Node) -> Vec<String> {
    let left = node.lease_until.duration_since(now());
    let lease = if left.is_negative() { format!("ended {} ago", span(left)) } else { span(left) };
    let paused = if node.paused == Some(true) { ", paused" } else { "" };
    vec![
        node.name,
        node.version,
        lease,
        format!("{} of {}{paused}", node.running, node.places),
        format!("{:+} ms", node.skew_ms),
        node.zone_data,
        node.agents.join(", "),
        node.url.unwrap_or_else(|| "-".to_owned()),
        node.node_id.to_string(),
    ]
}

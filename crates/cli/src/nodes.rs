//! `punctual nodes`: who serves the database.

use anyhow::Context;
use clap::Args;
use jiff::Timestamp;
use punctual_engine::clock::{Clock, StoreClock};
use punctual_store::NodeRecord;
use serde_json::{Value, json};

use crate::database::{DatabaseArgs, wait};
use crate::output::{print, table};

/// Show the nodes that serve the database: name, release, lease, load, clock, agents and zone data.
///
/// A node whose lease has ended is taken for dead two seconds later, and its runs are taken over by the others.
#[derive(Debug, Args)]
pub(crate) struct NodesArgs {
    #[command(flatten)]
    database: DatabaseArgs,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &NodesArgs) -> anyhow::Result<()> {
    let store = args.database.read()?;
    let nodes = wait(store.nodes())?.context("reading the nodes")?;
    let now = StoreClock::new(store).now();
    if args.json {
        let list: Vec<Value> = nodes.iter().map(|node| view(node, now)).collect();
        return print(&format!("{:#}\n", Value::from(list)));
    }
    if nodes.is_empty() {
        return print("No node serves this database: `punctual up` starts one.\n");
    }
    let header = ["NAME", "RELEASE", "LEASE", "LOAD", "CLOCK", "ZONE DATA", "AGENTS", "ID"];
    print(&table(&header, nodes.iter().map(|node| row(node, now))))
}

fn row(node: &NodeRecord, now: Timestamp) -> Vec<String> {
    let agents: Vec<&str> = node.agents.iter().map(String::as_str).collect();
    let about = &node.about;
    vec![
        node.name.clone(),
        about.version.clone(),
        lease(node, now),
        format!("{} of {}", about.running, about.places),
        format!("{:+} ms", about.skew),
        about.zone_data.clone(),
        agents.join(", "),
        node.id.to_string(),
    ]
}

fn lease(node: &NodeRecord, now: Timestamp) -> String {
    let left = node.lease_until.duration_since(now).as_secs();
    if left < 0 { format!("ended {} s ago", -left) } else { format!("{left} s") }
}

fn view(node: &NodeRecord, now: Timestamp) -> Value {
    json!({
        "node": node.id,
        "name": node.name,
        "version": node.about.version,
        "joined_at": node.joined_at,
        "lease_until": node.lease_until,
        "is_alive": now <= node.lease_until,
        "places": node.about.places,
        "running": node.about.running,
        "skew_ms": node.about.skew,
        "zone_data": node.about.zone_data,
        "agents": node.agents,
    })
}

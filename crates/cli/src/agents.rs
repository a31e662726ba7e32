//! `punctual agents`: what can be run.

use clap::Args;

use crate::client::{ClientArgs, Query, read};
use crate::output::{print, print_json};
use crate::table::{Column, table};
use crate::times::span_of_ms;
use crate::views::Agent;

/// Its columns, with their turn to give way.
const COLUMNS: [Column; 7] = [
    Column::text("AGENT", 0, 12),
    Column::whole("RUNNER", 3),
    Column::whole("RISK", 0),
    Column::whole("APPROVAL", 5),
    Column::whole("AT ONCE", 2),
    Column::whole("TIMEOUT", 1),
    Column::text("NODES", 4, 8),
];

/// Show the agents that schedules may start.
///
/// They are defined in the configuration, and nowhere else.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  punctual agents --json")]
pub(crate) struct AgentsArgs {
    #[command(flatten)]
    client: ClientArgs,
}

pub(crate) async fn run(args: AgentsArgs) -> anyhow::Result<()> {
    let body = args.client.look().await?.get("/api/agents", &Query::default()).await?;
    if args.client.json {
        return print_json(&body);
    }
    let agents: Vec<Agent> = read(&body)?;
    if agents.is_empty() {
        return print("There is no agent: write an [agents.NAME] section into punctual.toml.\n");
    }
    let dash = || "-".to_owned();
    let rows = agents.into_iter().map(|it| {
        vec![
            it.agent_id.into(),
            it.runner.unwrap_or_else(dash).into(),
            it.risk.unwrap_or_else(dash).into(),
            it.approval.unwrap_or_else(dash).into(),
            it.max_concurrent.map_or_else(dash, |max| max.to_string()).into(),
            it.timeout_ms.map_or_else(dash, span_of_ms).into(),
            it.nodes.join(", ").into(),
        ]
    });
    print(&table(&COLUMNS, rows))
}

//! `punctual agents`: what can be run.

use clap::Args;

use crate::client::{ClientArgs, Query, read};
use crate::output::{print, print_json, table};
use crate::times::span_of_ms;
use crate::views::Agent;

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
            it.agent_id,
            it.runner.unwrap_or_else(dash),
            it.risk.unwrap_or_else(dash),
            it.approval.unwrap_or_else(dash),
            it.max_concurrent.map_or_else(dash, |max| max.to_string()),
            it.timeout_ms.map_or_else(dash, span_of_ms),
            it.nodes.join(", "),
        ]
    });
    print(&table(&["AGENT", "RUNNER", "RISK", "APPROVAL", "AT ONCE", "TIMEOUT", "NODES"], rows))
}

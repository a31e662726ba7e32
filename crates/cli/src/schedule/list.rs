//! `punctual schedule list`.

use clap::Args;
use serde_json::Value;

use crate::client::{ClientArgs, every_face, read_all};
use crate::output::{one_line, print, print_json, table};
use crate::times::ZoneArgs;
use crate::views::Schedule;

/// List schedules, oldest first.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  punctual schedule list --agent reporter")]
pub(super) struct ListArgs {
    /// Only those of this agent
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,

    /// Only those of this project
    #[arg(long, value_name = "PROJECT")]
    project: Option<String>,

    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    limit: usize,

    #[command(flatten)]
    zone: ZoneArgs,

    #[command(flatten)]
    client: ClientArgs,
}

pub(super) async fn run(args: ListArgs) -> anyhow::Result<()> {
    let client = args.client.look().await?;
    let query = every_face().with("agentId", args.agent.as_ref()).with("projectId", args.project.as_ref());
    let list = client.list("/api/schedules", &query, args.limit).await?;
    if args.client.json {
        return print_json(&Value::from(list));
    }
    let schedules: Vec<Schedule> = read_all(&list)?;
    if schedules.is_empty() {
        return print("There is no schedule: `punctual schedule add --help` shows how to make one.\n");
    }
    let wall = args.zone.wall()?;
    let rows = schedules.iter().map(|it| {
        vec![
            it.shown_name(),
            it.agent_id.clone(),
            it.project_id.clone().unwrap_or_else(|| "-".to_owned()),
            one_line(&it.description),
            it.next_execution_at.map_or_else(|| "-".to_owned(), |at| wall.date_time(at)),
            one_line(&it.shown_state()),
            it.schedule_id.to_string(),
        ]
    });
    let text = table(&["NAME", "AGENT", "PROJECT", "WHEN", "NEXT", "STATE", "ID"], rows);
    print(&format!("{text}\n{}", wall.named()))
}

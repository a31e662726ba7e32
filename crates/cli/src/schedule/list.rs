//! `punctual schedule list`.

use clap::Args;
use serde_json::Value;

use crate::client::{self, ClientArgs, every_face, read_all};
use crate::ids;
use crate::output::{print, print_json};
use crate::table::{Cell, Column, table};
use crate::times::ZoneArgs;
use crate::views::Schedule;

/// Its columns, with their turn to give way.
const COLUMNS: [Column; 7] = [
    Column::text("NAME", 0, 12),
    Column::text("AGENT", 3, 8),
    Column::text("PROJECT", 2, 8),
    Column::text("WHEN", 4, 16),
    Column::whole("NEXT", 0),
    Column::text("STATE", 0, 9),
    Column::whole("ID", 1),
];

/// List schedules, oldest first.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  punctual schedule list --agent reporter")]
pub(super) struct ListArgs {
    /// Only those of this agent
    #[arg(long, value_name = "AGENT", add = crate::completions::agents())]
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
        let unknown = client::about_agent(&client, args.agent.as_deref()).await;
        let text = "There is no schedule: `punctual schedule add --help` shows how to make one.\n";
        return print(&format!("{text}{unknown}"));
    }
    let wall = args.zone.wall()?;
    let rows = schedules.iter().map(|it| {
        vec![
            it.shown_name().into(),
            it.agent_id.clone().into(),
            it.project_id.clone().unwrap_or_else(|| "-".to_owned()).into(),
            it.description.clone().into(),
            it.next_execution_at.map_or_else(|| "-".to_owned(), |at| wall.date_time(at)).into(),
            Cell::state(it.shown_state()),
            ids::shown(it.schedule_id).into(),
        ]
    });
    let text = table(&COLUMNS, rows);
    print(&format!("{text}\n{}", wall.named()))
}

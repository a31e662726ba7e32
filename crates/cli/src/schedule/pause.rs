//! `punctual schedule pause` and `punctual schedule resume`.

use clap::Args;
use serde_json::{Value, json};

use super::path;
use crate::client::{self, ClientArgs, Query, read};
use crate::output::{clean, print, print_json};
use crate::times::ZoneArgs;
use crate::views::Schedule;

/// Pause a schedule until it is resumed.
///
/// What it would have run meanwhile is recorded as skipped.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  punctual schedule pause morning-report --reason \"the target is down\"")]
pub(super) struct PauseArgs {
    /// The schedule, by name, id or either end of its id
    #[arg(value_name = "SCHEDULE", add = crate::completions::schedules())]
    schedule: String,

    /// Why, for whoever reads it later
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,

    #[command(flatten)]
    client: ClientArgs,
}

/// Let a paused schedule go on.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  punctual schedule resume morning-report")]
pub(super) struct ResumeArgs {
    /// The schedule, by name, id or either end of its id
    #[arg(value_name = "SCHEDULE", add = crate::completions::schedules())]
    schedule: String,

    #[command(flatten)]
    client: ClientArgs,
}

pub(super) async fn pause(args: PauseArgs) -> anyhow::Result<()> {
    ask(&args.client, &args.schedule, "pause", &json!({ "reason": args.reason })).await
}

pub(super) async fn resume(args: ResumeArgs) -> anyhow::Result<()> {
    ask(&args.client, &args.schedule, "resume", &json!({})).await
}

async fn ask(args: &ClientArgs, schedule: &str, verb: &str, body: &Value) -> anyhow::Result<()> {
    let client = args.server().await?;
    let found: Schedule = read(&client::schedule(&client, schedule).await?)?;
    let answer = client.post(&format!("{}/{verb}", path(&found)), &Query::default(), body).await?;
    if args.json {
        return print_json(&answer);
    }
    let schedule: Schedule = read(&answer)?;
    let next = match schedule.next_execution_at {
        Some(at) => {
            let wall = ZoneArgs::default_wall()?;
            format!("runs next at {} {}", wall.date_time(at), wall.zone.name())
        }
        None => "runs no more".to_owned(),
    };
    print(&format!("{} is {}, and {next}.\n", clean(&schedule.shown_name()), clean(&schedule.shown_state())))
}

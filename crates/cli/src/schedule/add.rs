//! `punctual schedule add`.

use clap::Args;
use serde_json::Value;

use super::fields::{FieldArgs, OPTIONS};
use super::{difference, fire, warnings};
use crate::client::{ClientArgs, Query, read};
use crate::output::{clean, print, print_json};
use crate::times::ZoneArgs;
use crate::views::{Preview, Schedule};

/// How many of the next times are told.
const TOLD: usize = 3;

/// Make a schedule, and show when it fires next.
///
/// With --dry-run nothing is made: the runs of the next seven days are shown.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  punctual schedule add --agent reporter --name morning-report --cron \"0 9 * * MON-FRI\" \\
      --zone Europe/Paris --prompt \"What changed since yesterday?\"
  punctual schedule add --agent cleaner --every 6h --dry-run")]
pub(super) struct AddArgs {
    /// The agent that it starts: one of `punctual agents`
    #[arg(long, value_name = "AGENT", add = crate::completions::agents())]
    agent: String,

    #[command(flatten)]
    fields: FieldArgs,

    /// Only show what would be planned
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    client: ClientArgs,
}

pub(super) async fn run(args: AddArgs) -> anyhow::Result<()> {
    args.fields.must_say_when()?;
    let body = Value::from(args.fields.body(Some(&args.agent))?);
    let client = args.client.server().await?;
    let wall = ZoneArgs::default_wall()?;
    if args.dry_run {
        let answer = client.post("/api/schedules", &Query::default().with("dryRun", Some(true)), &body).await;
        let answer = answer.map_err(|failure| failure.naming(&OPTIONS))?;
        if args.client.json {
            return print_json(&answer);
        }
        return print(&difference(&read(&answer)?, &wall));
    }
    let answer = client.post("/api/schedules", &Query::default(), &body).await;
    let answer = answer.map_err(|failure| failure.naming(&OPTIONS))?;
    if args.client.json {
        return print_json(&answer);
    }
    let schedule: Schedule = read(&answer)?;
    // What is there now is asked about, not what was asked for: the server has filled in the rest.
    let preview = client.post("/api/schedules/preview", &Query::default(), &body).await;
    let next = preview.and_then(|preview| read::<Preview>(&preview)).map(|preview| preview.next).unwrap_or_default();
    let mut text = format!(
        "{} is there: {} ({}).\n",
        clean(&schedule.shown_name()),
        clean(&schedule.description),
        schedule.schedule_id
    );
    if !next.is_empty() {
        text += "It fires next:\n";
        text += &next.iter().take(TOLD).map(|it| fire(it, &schedule.timezone, &wall)).collect::<String>();
    }
    print(&(text + &warnings(&schedule.warnings)))
}

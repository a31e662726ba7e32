//! `punctual schedule rm`.

use clap::Args;

use super::{difference, path};
use crate::client::{self, ClientArgs, Query, read};
use crate::confirm::Irreversible;
use crate::output::{clean, print, print_json};
use crate::times::ZoneArgs;
use crate::views::Schedule;

/// Delete a schedule.
///
/// Its planned runs go with it, what is at work goes on, its history stays. On a terminal a yes is asked for; without one it needs
/// --yes.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  punctual schedule rm morning-report --yes")]
pub(super) struct RmArgs {
    /// The schedule, by name, id or either end of its id
    #[arg(value_name = "SCHEDULE", add = crate::completions::schedules())]
    schedule: String,

    /// Do not ask
    #[arg(long, short)]
    yes: bool,

    /// Only show what would change
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    client: ClientArgs,
}

pub(super) async fn run(args: RmArgs) -> anyhow::Result<()> {
    let client = args.client.server().await?;
    let found = client::schedule(&client, &args.schedule).await?;
    let schedule: Schedule = read(&found)?;
    let name = clean(&schedule.shown_name());
    if args.dry_run {
        let answer = client.delete(&path(&schedule), &Query::default().with("dryRun", Some(true))).await?;
        if args.client.json {
            return print_json(&answer);
        }
        return print(&difference(&read(&answer)?, &ZoneArgs::default_wall()?));
    }
    let question = format!("Delete {name} ({}, {})?", clean(&schedule.description), schedule.schedule_id);
    Irreversible { shown: "", question: &question, declined: "Nothing was deleted." }.confirm(args.yes)?;
    client.delete(&path(&schedule), &Query::default()).await?;
    // The API has nothing to say of what is gone: this is what it was.
    if args.client.json { print_json(&found) } else { print(&format!("{name} is deleted.\n")) }
}

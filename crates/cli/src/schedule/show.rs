//! `punctual schedule show`.

use clap::Args;

use crate::client::{self, ClientArgs, read};
use crate::output::{print, print_json};
use crate::times::ZoneArgs;

/// Show everything about a schedule.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  punctual schedule show morning-report")]
pub(super) struct ShowArgs {
    /// The schedule, by name, id or either end of its id
    #[arg(value_name = "SCHEDULE", add = crate::completions::schedules())]
    schedule: String,

    #[command(flatten)]
    zone: ZoneArgs,

    #[command(flatten)]
    client: ClientArgs,
}

pub(super) async fn run(args: ShowArgs) -> anyhow::Result<()> {
    let client = args.client.look().await?;
    let body = client::schedule(&client, &args.schedule).await?;
    if args.client.json {
        return print_json(&body);
    }
    print(&super::shown(&body, &read(&body)?, &args.zone.wall()?))
}

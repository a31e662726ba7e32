//! `punctual why`: why something ran, waits, was late, was skipped or did not run.

use std::process::ExitCode;

use clap::Args;

use crate::client::{self, ClientArgs, Query, read};
use crate::output::{clean, print, print_json};
use crate::times::ZoneArgs;
use crate::views::{Schedule, Why};

/// Say why something ran, waits, was late, was skipped or did not run.
///
/// That something is a run, or a schedule at a time. With --at the exit code is 1 if no run answers that time.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  punctual why 0198c5d2-7d3e-7c7a-9a57-000000000000
  punctual why morning-report                            # its run at work, or its last one
  punctual why morning-report --at 2026-03-09T09:00:00")]
pub(crate) struct WhyArgs {
    /// The run, by id or the beginning of its id; or a schedule
    #[arg(value_name = "RUN|SCHEDULE")]
    what: String,

    /// The time of the schedule that is meant: an instant, or a local time in its zone
    #[arg(long, value_name = "TIME")]
    at: Option<String>,

    #[command(flatten)]
    zone: ZoneArgs,

    #[command(flatten)]
    client: ClientArgs,
}

pub(crate) async fn run(args: WhyArgs) -> anyhow::Result<ExitCode> {
    let client = args.client.look().await?;
    let body = match &args.at {
        Some(at) => {
            let schedule: Schedule = read(&client::schedule(&client, &args.what).await?)?;
            let query = Query::default().with("at", Some(at));
            client.get(&format!("/api/schedules/{}/why", schedule.schedule_id), &query).await?
        }
        None => {
            let run = client::run(&client, &args.what).await?;
            client.get(&format!("/api/executions/{run}/why"), &Query::default()).await?
        }
    };
    let why: Why = read(&body)?;
    if args.client.json {
        print_json(&body)?;
    } else {
        let wall = args.zone.wall()?;
        let mut text = String::new();
        if let Some(run) = why.execution_id {
            text += &format!("Run {run}");
            text += &why.scheduled_at.map(|at| format!(", scheduled for {}", wall.date_time(at))).unwrap_or_default();
            text += ":\n";
        }
        for cause in &why.causes {
            text += &format!("  {} ({})\n", clean(&cause.sentence), cause.code);
        }
        print(&text)?;
    }
    let is_answered = args.at.is_none() || why.execution_id.is_some();
    Ok(if is_answered { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

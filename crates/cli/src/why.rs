//! `punctual why`: why something ran, waits, was late, was skipped or did not run.

use std::process::ExitCode;

use clap::Args;
use serde_json::Value;

use crate::client::{self, Client, ClientArgs, Failure, Kind, Query, read};
use crate::output::{clean, print, print_json};
use crate::times::{Wall, ZoneArgs};
use crate::views::{Cause, Schedule, Why};

/// Say why something ran, waits, was late, was skipped or did not run.
///
/// That something is a run, or a schedule: its run that is at work, waits or is due, else its last one, and whether it is paused, over
/// or has not run yet. With --at the exit code is 1 if no run answers that time.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  punctual why 0198c5d2-7d3e-7c7a-9a57-000000000000
  punctual why morning-report                            # its run at work, waiting or due, or its last one
  punctual why morning-report --at 2026-03-09T09:00:00")]
pub(crate) struct WhyArgs {
    /// The run, by id or the beginning of its id; or a schedule; or an agent
    #[arg(value_name = "RUN|SCHEDULE|AGENT")]
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
    let wall = args.zone.wall()?;
    let client = args.client.look().await?;
    let body = ask(&client, &args, &wall).await?;
    let why: Why = read(&body)?;
    if args.client.json {
        print_json(&body)?;
    } else {
        let mut text = told(&why.schedule_causes, "");
        if let Some(run) = why.execution_id {
            text += &format!("Run {run}");
            let at = why.scheduled_at.map(|at| format!(", scheduled for {} {}", wall.date_time(at), wall.zone.name()));
            text += &format!("{}:\n", at.unwrap_or_default());
        }
        print(&(text + &told(&why.causes, "  ")))?;
    }
    let is_answered = args.at.is_none() || why.execution_id.is_some();
    Ok(if is_answered { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn ask(client: &Client, args: &WhyArgs, wall: &Wall) -> Result<Value, Failure> {
    let query = Query::default().with("zone", Some(wall.zone.name()));
    let of_run = async |run| client.get(&format!("/api/executions/{run}/why"), &query).await;
    if args.at.is_none()
        && let Some(run) = client::run_by_id(client, &args.what).await?
    {
        return of_run(run).await;
    }
    match client::schedule(client, &args.what).await {
        Ok(found) => {
            let schedule: Schedule = read(&found)?;
            let path = format!("/api/schedules/{}/why", schedule.schedule_id);
            client.get(&path, &query.clone().with("at", args.at.as_ref())).await
        }
        Err(failure) if failure.kind == Kind::NotFound && args.at.is_none() => {
            of_run(client::run_of_agent(client, &args.what).await?).await
        }
        Err(failure) => Err(failure),
    }
}

fn told(causes: &[Cause], indent: &str) -> String {
    causes.iter().map(|cause| format!("{indent}{} ({})\n", clean(&cause.sentence), cause.code)).collect()
}

//! `punctual why`: why something ran, waits, was late, was skipped or did not run.

use std::process::ExitCode;

use clap::Args;
use serde_json::Value;

use crate::client::{self, Client, ClientArgs, Failure, Kind, Query, read};
use crate::ids;
use crate::moment::{Moment, Side};
use crate::output::{clean, print, print_json};
use crate::times::{Wall, ZoneArgs};
use crate::views::{Cause, Schedule, Why};

/// What the API says of a time at which nothing is scheduled.
const NO_SLOT: &str = "no_slot";

/// Say why something ran, waits, was late, was skipped or did not run.
///
/// That something is a run, or a schedule: its run that is at work, waits or is due, else its last one, and whether it is paused, over
/// or has not run yet. With a TIME the exit code is 1 if no run answers that time.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  punctual why 0e7c946f
  punctual why morning-report                            # its run at work, waiting or due, or its last one
  punctual why morning-report \"2026-03-09 09:00:00\"
  punctual why morning-report 09:00                      # of today")]
pub(crate) struct WhyArgs {
    /// The run, by id or either end of its id; or a schedule; or an agent
    #[arg(value_name = "RUN|SCHEDULE|AGENT", add = crate::completions::runs())]
    what: String,

    /// The time of the schedule that is meant. A local time is by the clock that is shown, or by the schedule's own if it has no
    /// slot then
    #[arg(value_name = "TIME")]
    time: Option<Moment>,

    /// The same, as an option
    #[arg(long, value_name = "TIME", conflicts_with = "time")]
    at: Option<Moment>,

    #[command(flatten)]
    zone: ZoneArgs,

    #[command(flatten)]
    client: ClientArgs,
}

impl WhyArgs {
    fn time(&self) -> Option<&Moment> {
        self.time.as_ref().or(self.at.as_ref())
    }
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
            text += &format!("Run {}", ids::shown(run));
            let at = why.scheduled_at.map(|at| format!(", scheduled for {} {}", wall.date_time(at), wall.zone.name()));
            text += &format!("{}:\n", at.unwrap_or_default());
        }
        print(&(text + &told(&why.causes, "  ")))?;
    }
    let is_answered = args.time().is_none() || why.execution_id.is_some();
    Ok(if is_answered { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn ask(client: &Client, args: &WhyArgs, wall: &Wall) -> Result<Value, Failure> {
    let query = Query::default().with("zone", Some(wall.zone.name()));
    let of_run = async |run| client.get(&format!("/api/executions/{run}/why"), &query).await;
    if args.time().is_none()
        && let Some(run) = client::run_by_id(client, &args.what).await?
    {
        return of_run(run).await;
    }
    match client::schedule(client, &args.what).await {
        Ok(found) => {
            let schedule: Schedule = read(&found)?;
            let path = format!("/api/schedules/{}/why", schedule.schedule_id);
            let Some(time) = args.time() else { return client.get(&path, &query).await };
            of_time(client, &path, &query, time, wall).await
        }
        Err(failure) if failure.kind == Kind::NotFound && args.time().is_none() => {
            of_run(client::run_of_agent(client, &args.what).await?).await
        }
        Err(failure) => Err(failure),
    }
}

/// What is known of a time. One that our clock shows is perhaps meant by the schedule's own clock: that is asked about if nothing
/// is scheduled at ours.
async fn of_time(client: &Client, path: &str, query: &Query, time: &Moment, wall: &Wall) -> Result<Value, Failure> {
    let ours = time.instant(wall, Side::Today).map_err(|problem| Failure::input(format!("TIME: {problem}")))?;
    let answer = client.get(path, &query.clone().with("at", Some(ours))).await?;
    let is_slot =
        |answer: &Value| answer["causes"].as_array().is_none_or(|it| it.iter().all(|it| it["code"] != NO_SLOT));
    if let (Moment::Local(local, None), false) = (time, is_slot(&answer)) {
        let theirs = client.get(path, &query.clone().with("at", Some(local))).await?;
        if is_slot(&theirs) {
            return Ok(theirs);
        }
    }
    Ok(answer)
}

fn told(causes: &[Cause], indent: &str) -> String {
    causes.iter().map(|cause| format!("{indent}{} ({})\n", clean(&cause.sentence), cause.code)).collect()
}

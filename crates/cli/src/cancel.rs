//! `punctual cancel`: ends runs before or while they run.

use clap::Args;
use serde_json::{Value, json};

use crate::client::{self, Client, ClientArgs, Failure, Kind, Query, read};
use crate::confirm::Irreversible;
use crate::ids;
use crate::output::{clean, plural, print, print_json};
use crate::times::{Wall, ZoneArgs};
use crate::views::Execution;

/// Cancel a run.
///
/// Of a schedule or an agent it is the run in progress, else the next one of today; if several are in progress they are listed, and
/// nothing is done without --all. A run that is running is stopped only with --force: it is asked to end, and killed if it does
/// not. Schedules go on. On a terminal a yes is asked for; without one it needs --yes, or --force.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  punctual cancel morning-report           # its run in progress, else its next one of today
  punctual cancel reporter --all           # every run of an agent that is planned for today or waits
  punctual cancel 0e7c946f --force         # a run that is running")]
pub(crate) struct CancelArgs {
    /// The run, by id or either end of its id; or a schedule; or an agent
    #[arg(value_name = "RUN|SCHEDULE|AGENT", add = crate::completions::runs())]
    what: String,

    /// Stop it if it is running, and do not ask
    #[arg(long)]
    force: bool,

    /// Do not ask
    #[arg(long, short)]
    yes: bool,

    /// All runs of the schedule or agent that are not over
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    zone: ZoneArgs,

    #[command(flatten)]
    client: ClientArgs,
}

pub(crate) async fn run(args: CancelArgs) -> anyhow::Result<()> {
    let wall = args.zone.wall()?;
    let client = args.client.server().await?;
    let runs = client::live_runs(&client, &args.what, args.all).await?;
    // One that cannot be cancelled is no question; what is cancelled already stays so.
    if !args.all {
        runs.iter().try_for_each(|run| refuse(run, args.force))?;
    }
    let is_harmless = args.force || args.yes || runs.iter().all(Execution::is_over);
    let question = match &runs[..] {
        [run] => format!("Cancel {}?", named(run, &wall)),
        _ => format!("Cancel {} of {}?", plural(runs.len(), "run"), clean(&args.what)),
    };
    Irreversible { shown: "", question: &question, declined: "Nothing was cancelled." }.confirm(is_harmless)?;
    let (mut answers, mut refused) = (vec![], None);
    for run in &runs {
        match cancel(&client, run, args.force).await {
            Ok(answer) => {
                if !args.client.json {
                    print(&told(&read(&answer)?, &wall))?;
                }
                answers.push(answer);
            }
            // One that cannot be cancelled does not keep the others.
            Err(failure) if args.all => {
                eprintln!("error: {failure}");
                refused = Some(failure.kind);
            }
            Err(failure) => return Err(failure.into()),
        }
    }
    if args.client.json {
        print_json(&if args.all {
            Value::from(answers.clone())
        } else {
            answers.first().cloned().unwrap_or_default()
        })?;
    }
    match refused {
        Some(kind) => {
            Err(Failure::new(kind, format!("{} of {} were cancelled", answers.len(), plural(runs.len(), "run"))).into())
        }
        None => Ok(()),
    }
}

async fn cancel(client: &Client, run: &Execution, is_forced: bool) -> Result<Value, Failure> {
    refuse(run, is_forced)?;
    let query = Query::default().with("force", is_forced.then_some(true));
    client.post(&format!("/api/executions/future/{}/cancel", run.execution_id), &query, &json!({})).await
}

/// What was done.
fn told(run: &Execution, wall: &Wall) -> String {
    let what = if run.is_over() { "is cancelled" } else { "is at work, and asked to stop" };
    format!("R{}, {what}.\n", &named(run, wall)[1..])
}

fn named(run: &Execution, wall: &Wall) -> String {
    let at = format!("{} {}", wall.date_time(run.scheduled_at), wall.zone.name());
    format!("run {} of {}, scheduled for {at}", ids::shown(run.execution_id), clean(&run.label()))
}

/// What the server would say no to, in words.
fn refuse(run: &Execution, is_forced: bool) -> Result<(), Failure> {
    let id = ids::shown(run.execution_id);
    let problem = match run.outcome.as_deref() {
        None if run.is_at_work() && !is_forced => format!("run {id} is at work; --force stops it"),
        None | Some("cancelled") => return Ok(()),
        Some(outcome) => format!("run {id} is over already: it {outcome}", outcome = ended(outcome)),
    };
    Err(Failure::new(Kind::Conflict, problem))
}

fn ended(outcome: &str) -> &str {
    match outcome {
        "skipped" => "was skipped",
        "unknown" => "has ended, and nobody knows how",
        other => other,
    }
}

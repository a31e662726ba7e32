//! `punctual cancel`: a run, called off.

use clap::Args;
use serde_json::{Value, json};

use crate::client::{self, ClientArgs, Failure, Kind, Query, read};
use crate::confirm::Irreversible;
use crate::output::{clean, print, print_json};
use crate::times::ZoneArgs;
use crate::views::Execution;

/// Call a run off.
///
/// One that is at work is only stopped with --force: it is asked to end, and killed if it does not. Its schedule goes on. On a
/// terminal a yes is asked for; without one it needs --yes, or --force.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  punctual cancel morning-report           its next run of today; asks on a terminal
  punctual cancel 0192f0c1 --force         a run that is at work")]
pub(crate) struct CancelArgs {
    /// The run, by id or the beginning of its id; or a schedule, whose run at work is meant, else the next one of today
    #[arg(value_name = "RUN")]
    run: String,

    /// Stop it if it is at work, and do not ask
    #[arg(long)]
    force: bool,

    /// Do not ask
    #[arg(long, short)]
    yes: bool,

    #[command(flatten)]
    client: ClientArgs,
}

pub(crate) async fn run(args: CancelArgs) -> anyhow::Result<()> {
    let client = args.client.server().await?;
    let run = client::live_run(&client, &args.run).await?;
    refuse(&run, args.force)?;
    let wall = ZoneArgs::default_wall()?;
    let named = |run: &Execution| {
        let at = format!("{} {}", wall.date_time(run.scheduled_at), wall.zone.name());
        format!("run {} of {}, scheduled for {at}", run.execution_id, clean(&run.shown_name()))
    };
    // What is cancelled already stays so: there is nothing to lose.
    let is_harmless = args.force || args.yes || run.is_over();
    let question = format!("Cancel {}?", named(&run));
    Irreversible { shown: "", question: &question, declined: "Nothing was cancelled." }.confirm(is_harmless)?;
    let query = Query::default().with("force", args.force.then_some(true));
    let path = format!("/api/executions/future/{}/cancel", run.execution_id);
    let answer: Value = client.post(&path, &query, &json!({})).await?;
    if args.client.json {
        return print_json(&answer);
    }
    let run: Execution = read(&answer)?;
    let what = if run.is_over() { "is cancelled" } else { "is at work, and asked to stop" };
    print(&format!("R{}, {what}.\n", &named(&run)[1..]))
}

/// What the server would say no to, in words.
fn refuse(run: &Execution, is_forced: bool) -> Result<(), Failure> {
    let id = run.execution_id;
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

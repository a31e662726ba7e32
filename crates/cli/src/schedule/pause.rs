//! `punctual pause` and `punctual resume`, which are also `punctual schedule pause` and `resume`.

use clap::Args;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::path;
use crate::client::{self, Client, ClientArgs, Failure, Query, every_face, read, read_all};
use crate::moment::{Moment, Side};
use crate::output::{clean, plural, print, print_json};
use crate::times::{Wall, ZoneArgs, span_read};
use crate::views::Schedule;

/// What of the API stands for which option.
const OPTIONS: [(&str, &str); 3] = [("forSeconds", "--for"), ("until", "--until"), ("reason", "--reason")];

/// Pause a schedule until it is resumed, or for a time.
///
/// What it would have run meanwhile is recorded as skipped. A pause with --for or --until is ended by the server: nothing here has
/// to wait for it. Pausing a schedule that is paused already changes only when the pause ends.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  punctual pause morning-report --reason \"the target is down\"
  punctual pause morning-report --for 2h
  punctual pause --all --until tomorrow")]
pub(crate) struct PauseArgs {
    #[command(flatten)]
    which: WhichArgs,

    /// How long, like 30m, 2h or 3d [default: until it is resumed]
    #[arg(long = "for", value_name = "DURATION", value_parser = length)]
    length: Option<u64>,

    /// Until when: 18:00 (the next one), tomorrow, 2026-12-24 18:00:00
    #[arg(long, value_name = "TIME", conflicts_with = "length")]
    until: Option<Moment>,

    /// Why, for whoever reads it later
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,

    #[command(flatten)]
    zone: ZoneArgs,

    #[command(flatten)]
    client: ClientArgs,
}

/// Let a paused schedule go on.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  punctual resume morning-report\n  punctual resume --all")]
pub(crate) struct ResumeArgs {
    #[command(flatten)]
    which: WhichArgs,

    #[command(flatten)]
    zone: ZoneArgs,

    #[command(flatten)]
    client: ClientArgs,
}

/// Which schedules.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct WhichArgs {
    /// The schedule, by name, id or either end of its id
    #[arg(value_name = "SCHEDULE", add = crate::completions::schedules())]
    schedule: Option<String>,

    /// All schedules that the token reaches
    #[arg(long)]
    all: bool,
}

/// What is asked for.
struct Asked<'a> {
    verb: &'a str,
    body: Value,
    /// Whether a schedule of `--all` is one that it is asked for.
    concerns: fn(&Schedule) -> bool,
}

pub(crate) async fn pause(args: PauseArgs) -> anyhow::Result<()> {
    let wall = args.zone.wall()?;
    let until: Option<Timestamp> = args.until.map(|it| it.instant(&wall, Side::Future)).transpose().map_err(wrong)?;
    let body = json!({ "reason": args.reason, "forSeconds": args.length, "until": until });
    let asked = Asked { verb: "pause", body, concerns: |it| it.state == "active" };
    ask(&args.client, &args.which, &asked, &wall).await
}

pub(crate) async fn resume(args: ResumeArgs) -> anyhow::Result<()> {
    let is_paused = |it: &Schedule| it.pause.as_ref().is_some_and(|pause| pause.kind == "paused");
    let asked = Asked { verb: "resume", body: json!({}), concerns: is_paused };
    ask(&args.client, &args.which, &asked, &args.zone.wall()?).await
}

fn wrong(problem: String) -> Failure {
    Failure::input(format!("--until: {problem}"))
}

/// A length of time in whole seconds.
fn length(text: &str) -> Result<u64, String> {
    let seconds = span_read(text).and_then(|it| u64::try_from(it.as_secs()).ok());
    seconds.filter(|seconds| 0 < *seconds).ok_or_else(|| "use a duration, like 30m, 2h or 3d".to_owned())
}

async fn ask(args: &ClientArgs, which: &WhichArgs, asked: &Asked<'_>, wall: &Wall) -> anyhow::Result<()> {
    let client = args.server().await?;
    let Some(name) = &which.schedule else { return ask_all(args, &client, asked, wall).await };
    let found: Schedule = read(&client::schedule(&client, name).await?)?;
    let answer = ask_one(&client, &found, asked).await?;
    if args.json { print_json(&answer) } else { print(&told(&read(&answer)?, wall)) }
}

/// All that it concerns, one after another: one that refuses does not keep the others.
async fn ask_all(args: &ClientArgs, client: &Client, asked: &Asked<'_>, wall: &Wall) -> anyhow::Result<()> {
    let all: Vec<Schedule> = read_all(&client.list("/api/schedules", &every_face(), usize::MAX).await?)?;
    let concerned: Vec<&Schedule> = all.iter().filter(|it| (asked.concerns)(it)).collect();
    let (mut answers, mut refused) = (vec![], None);
    for schedule in &concerned {
        match ask_one(client, schedule, asked).await {
            Ok(answer) => {
                if !args.json {
                    print(&told(&read(&answer)?, wall))?;
                }
                answers.push(answer);
            }
            Err(failure) => {
                eprintln!("error: {}: {failure}", clean(&schedule.shown_name()));
                refused = Some(failure.kind);
            }
        }
    }
    let count = answers.len();
    if args.json {
        print_json(&Value::from(answers))?;
    }
    match refused {
        Some(kind) => {
            let text = format!("{}: {count} of {}", asked.verb, plural(concerned.len(), "schedule"));
            Err(Failure::new(kind, text).into())
        }
        None if concerned.is_empty() && !args.json => print(&format!("There is no schedule to {}.\n", asked.verb)),
        None => Ok(()),
    }
}

async fn ask_one(client: &Client, schedule: &Schedule, asked: &Asked<'_>) -> Result<Value, Failure> {
    let answer = client.post(&format!("{}/{}", path(schedule), asked.verb), &Query::default(), &asked.body).await;
    answer.map_err(|failure| failure.naming(&OPTIONS))
}

/// What it is now.
fn told(schedule: &Schedule, wall: &Wall) -> String {
    let next = match schedule.next_execution_at {
        Some(at) => format!("runs next at {} {}", wall.date_time(at), wall.zone.name()),
        None => "runs no more".to_owned(),
    };
    format!("{} is {}, and {next}.\n", clean(&schedule.shown_name()), clean(&schedule.shown_state(wall)))
}

//! `punctual schedule`: what is to run, and when.

mod add;
mod edit;
mod fields;
mod list;
mod pause;
mod rm;
mod show;

pub(crate) use fields::object;

use clap::{Args, Subcommand};
use serde_json::Value;

use crate::output::{clean, facts};
use crate::times::Wall;
use crate::views::{Difference, Fire, Schedule};

/// Make, look at and change schedules.
#[derive(Debug, Args)]
pub(crate) struct ScheduleArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Add(Box<add::AddArgs>),
    List(list::ListArgs),
    Show(show::ShowArgs),
    Edit(Box<edit::EditArgs>),
    Pause(pause::PauseArgs),
    Resume(pause::ResumeArgs),
    Rm(rm::RmArgs),
}

pub(crate) async fn run(args: ScheduleArgs) -> anyhow::Result<()> {
    match args.command {
        Command::Add(args) => add::run(*args).await,
        Command::List(args) => list::run(args).await,
        Command::Show(args) => show::run(args).await,
        Command::Edit(args) => edit::run(*args).await,
        Command::Pause(args) => pause::pause(args).await,
        Command::Resume(args) => pause::resume(args).await,
        Command::Rm(args) => rm::run(args).await,
    }
}

/// Where a schedule is asked for.
fn path(schedule: &Schedule) -> String {
    format!("/api/schedules/{}", schedule.schedule_id)
}

/// A schedule with everything that is worth a line.
fn shown(body: &Value, schedule: &Schedule, wall: &Wall) -> String {
    let text = |key: &str| match &body[key] {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let policy = |key: &str| body["executorPolicy"][key].to_string();
    let inputs = body["inputs"].as_object().filter(|inputs| !inputs.is_empty());
    let next = schedule.next_execution_at.map(|at| format!("{} (in {})", wall.day_time(at), wall.left(at)));
    let paused = schedule.pause.as_ref().map(|pause| format!("{} by {}", wall.date_time(pause.at), pause.source));
    facts(&[
        ("name", schedule.shown_name()),
        ("id", schedule.schedule_id.to_string()),
        ("agent", schedule.agent_id.clone()),
        ("project", schedule.project_id.clone().unwrap_or_default()),
        ("when", schedule.description.clone()),
        ("zone", schedule.timezone.clone()),
        ("state", schedule.shown_state()),
        ("paused", paused.unwrap_or_default()),
        ("next", next.unwrap_or_default()),
        ("started", format!("{} runs", schedule.runs_started)),
        ("prompt", text("prompt")),
        ("inputs", inputs.map(|_| text("inputs")).unwrap_or_default()),
        ("overlap", text("overlap")),
        ("catch up", text("catchUp")),
        ("tries", format!("{}, {} ms apart", policy("maxAttempts"), policy("retryBackoffMs"))),
        ("priority", policy("priority")),
        ("kept by", text("origin")),
        ("version", schedule.version.to_string()),
    ])
}

/// A time of a schedule, by its own clock.
fn fire(fire: &Fire, zone: &str, wall: &Wall) -> String {
    let local: Option<jiff::civil::DateTime> = fire.local_time.parse().ok();
    let local = local.map_or_else(|| fire.local_time.clone(), |it| it.strftime("%a %Y-%m-%d %H:%M:%S").to_string());
    let mut line = format!("  {local} {zone} (in {})", wall.left(fire.scheduled_at));
    if let Some(reason) = &fire.skipped {
        line += &format!(", skipped: {reason}");
    }
    if let Some(note) = &fire.note {
        line += &format!(", {note}");
    }
    clean(&line) + "\n"
}

/// What a change would change.
fn difference(difference: &Difference, zone: &str, wall: &Wall) -> String {
    const SHOWN: usize = 10;
    let mut text = String::new();
    for (sign, word, fires) in [('-', "fewer", &difference.removed), ('+', "more", &difference.added)] {
        for it in fires.iter().take(SHOWN) {
            text += &format!("{sign}{}", fire(it, zone, wall));
        }
        if SHOWN < fires.len() {
            text += &format!("{sign} and {} {word}\n", fires.len() - SHOWN);
        }
    }
    let more = if difference.more { " at least" } else { "" };
    text += &format!(
        "In the next 7 days{more}: {} runs more, {} fewer, {} stay. Nothing was changed.\n",
        difference.added.len(),
        difference.removed.len(),
        difference.kept
    );
    text + &warnings(&difference.warnings)
}

fn warnings(warnings: &[String]) -> String {
    warnings.iter().map(|warning| format!("warning: {}\n", clean(warning))).collect()
}

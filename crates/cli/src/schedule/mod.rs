//! `punctual schedule`: what is to run, and when.

mod add;
mod edit;
mod fields;
mod list;
mod pause;
mod rm;
mod show;

pub(crate) use fields::object;
pub(crate) use pause::{PauseArgs, ResumeArgs, pause, resume};

use clap::{Args, Subcommand};
use serde_json::Value;

use crate::output::{clean, facts, plural};
use crate::times::{Wall, span_of_ms};
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
    Pause(PauseArgs),
    Resume(ResumeArgs),
    Rm(rm::RmArgs),
}

pub(crate) async fn run(args: ScheduleArgs) -> anyhow::Result<()> {
    match args.command {
        Command::Add(args) => add::run(*args).await,
        Command::List(args) => list::run(args).await,
        Command::Show(args) => show::run(args).await,
        Command::Edit(args) => edit::run(*args).await,
        Command::Pause(args) => pause(args).await,
        Command::Resume(args) => resume(args).await,
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
    let apart = span_of_ms(body["executorPolicy"]["retryBackoffMs"].as_i64().unwrap_or_default());
    let inputs = body["inputs"].as_object().filter(|inputs| !inputs.is_empty());
    let next =
        schedule.next_execution_at.map(|at| format!("{} {} ({})", wall.day_time(at), wall.zone.name(), wall.until(at)));
    let paused = schedule
        .pause
        .as_ref()
        .map(|pause| format!("{} {} by {}", wall.date_time(pause.at), wall.zone.name(), pause.source));
    facts(&[
        ("name", schedule.shown_name()),
        ("id", schedule.schedule_id.to_string()),
        ("agent", schedule.agent_id.clone()),
        ("project", schedule.project_id.clone().unwrap_or_default()),
        ("when", schedule.description.clone()),
        ("zone", schedule.timezone.clone()),
        ("state", schedule.shown_state(wall)),
        ("paused", paused.unwrap_or_default()),
        ("next", next.unwrap_or_default()),
        ("started", plural(schedule.runs_started as usize, "run")),
        ("prompt", text("prompt")),
        ("inputs", inputs.map(|_| text("inputs")).unwrap_or_default()),
        ("overlap", text("overlap")),
        ("catch up", text("catchUp")),
        ("tries", format!("{}, {} apart", policy("maxAttempts"), apart)),
        ("priority", policy("priority")),
        ("kept by", text("origin")),
        ("version", schedule.version.to_string()),
    ])
}

/// A time of a schedule, by its own clock.
fn fire(fire: &Fire, zone: &str, wall: &Wall) -> String {
    let local: Option<jiff::civil::DateTime> = fire.local_time.parse().ok();
    let local = local.map_or_else(|| fire.local_time.clone(), |it| it.strftime("%a %Y-%m-%d %H:%M:%S").to_string());
    let mut line = format!("  {local} {zone} ({})", wall.until(fire.scheduled_at));
    if let Some(reason) = &fire.skipped {
        line += &format!(", skipped: {reason}");
    }
    if let Some(note) = &fire.note {
        line += &format!(", {note}");
    }
    clean(&line) + "\n"
}

/// What a change would change.
fn difference(difference: &Difference, wall: &Wall) -> String {
    const SHOWN: usize = 10;
    let zone = difference.timezone.as_str();
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
        "In the next 7 days{more}: {} more, {} fewer, {} stay. Nothing was changed.\n",
        plural(difference.added.len(), "run"),
        difference.removed.len(),
        difference.kept
    );
    text + &warnings(&difference.warnings)
}

fn warnings(warnings: &[String]) -> String {
    warnings.iter().map(|warning| format!("warning: {}\n", clean(warning))).collect()
}

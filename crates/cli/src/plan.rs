//! `punctual plan`: what is to run, and what has become of it.

use anyhow::Context;
use clap::Args;
use jiff::Timestamp;
use jiff::civil::Date;
use punctual_core::run::{Run, RunState};
use punctual_core::time::Zone;
use punctual_core::time::Zones;
use punctual_engine::clock::now;
use punctual_store::RunFilter;
use serde_json::{Value, json};

use crate::database::{DatabaseArgs, wait};
use crate::names::Names;
use crate::output::{print, table};

/// The most runs that are shown.
const SHOWN_MAX: usize = 10_000;

/// Show the runs of a day: what is planned, what is at work, what has become of the rest.
///
/// Reads the database beside a running server, or without one.
#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    database: DatabaseArgs,

    /// The day, like 2026-03-09 [default: today]
    #[arg(long, value_name = "DATE")]
    day: Option<Date>,

    /// The zone whose day and clock are meant
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    zone: String,

    /// Only this schedule, by name or id
    #[arg(long, value_name = "SCHEDULE")]
    schedule: Option<String>,

    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: usize,

    /// Only runs that are not over
    #[arg(long)]
    live: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: PlanArgs) -> anyhow::Result<()> {
    let zone = Zones::bundled().get(&args.zone)?;
    let day = args.day.unwrap_or_else(|| zone.day_of(now()));
    let store = args.database.read()?;
    let (names, runs) = wait(async {
        let names = Names::read(&*store).await?;
        let schedule = args.schedule.as_deref().map(|text| names.find(text)).transpose()?;
        let filter = RunFilter {
            schedule,
            from: Some(zone.day_start(day)),
            until: Some(zone.day_end(day)),
            only_live: args.live,
            limit: args.limit.min(SHOWN_MAX),
            ..RunFilter::default()
        };
        let runs = store.runs(&filter).await.context("reading the plan")?;
        anyhow::Ok((names, runs))
    })??;
    if args.json {
        let list: Vec<Value> = runs.iter().map(|run| view(run, &names)).collect();
        return print(&format!("{:#}\n", Value::from(list)));
    }
    if runs.is_empty() {
        return print(&format!("Nothing is planned for {day} ({}).\n", zone.name()));
    }
    let rows = runs.iter().map(|run| row(run, &names, &zone));
    let mut text = table(&["TIME", "SCHEDULE", "AGENT", "STATE", "NOTE"], rows);
    if runs.len() == args.limit {
        text += &format!("\nThe first {} are shown; --limit shows more.\n", runs.len());
    }
    print(&text)
}

fn row(run: &Run, names: &Names, zone: &Zone) -> Vec<String> {
    vec![
        clock_time(run.scheduled_at, zone),
        names.of(run.schedule),
        run.terms.work.agent().to_owned(),
        run.state.name().to_owned(),
        note(run, zone),
    ]
}

/// What the clock of a zone shows.
pub(crate) fn clock_time(at: Timestamp, zone: &Zone) -> String {
    let offset = jiff::tz::Offset::from_seconds(zone.offset_at(at)).unwrap_or(jiff::tz::Offset::UTC);
    offset.to_datetime(at).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

fn note(run: &Run, zone: &Zone) -> String {
    let tally = run.state.tally();
    match run.state {
        RunState::Planned { due_at, .. } if 0 < tally.attempt => {
            format!("try {} of {} at {}", tally.attempt + 1, run.terms.retry.max_attempts, clock_time(due_at, zone))
        }
        RunState::Planned { due_at, .. } if due_at != run.scheduled_at => format!("due {}", clock_time(due_at, zone)),
        RunState::Planned { .. } => String::new(),
        RunState::Claimed { .. } | RunState::Running { .. } => format!("try {}", tally.attempt),
        RunState::Waiting { on, wait_until, .. } => {
            format!("waits for {on:?} until {}", clock_time(wait_until, zone)).to_lowercase()
        }
        RunState::Finished { outcome, .. } => match outcome {
            punctual_core::run::Outcome::Skipped(reason) => reason.to_string(),
            _ if 1 < tally.attempt => format!("after {} tries", tally.attempt),
            _ => String::new(),
        },
    }
}

fn view(run: &Run, names: &Names) -> Value {
    json!({
        "run": run.id,
        "schedule": run.schedule,
        "schedule_name": names.of(run.schedule),
        "agent": run.terms.work.agent(),
        "project": run.terms.project,
        "key": run.key,
        "scheduled_at": run.scheduled_at,
        "due_at": run.planned_for().unwrap_or(run.due_at),
        "state": run.state.name(),
        "outcome": match run.state {
            RunState::Finished { outcome, .. } => json!(outcome),
            _ => Value::Null,
        },
        "attempt": run.state.tally().attempt,
        "epoch": run.epoch(),
        "node": run.owner(),
        "ended_at": run.ended_at,
    })
}

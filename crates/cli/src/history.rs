//! `punctual history`: what became of runs and slots.

use anyhow::Context;
use clap::Args;
use punctual_core::run::RunEvent;
use punctual_core::time::{Zone, Zones};
use punctual_store::{HistoryFilter, HistoryItem, HistoryWhat};
use serde_json::{Value, json};

use crate::database::{DatabaseArgs, wait};
use crate::names::Names;
use crate::output::{print, table};
use crate::plan::clock_time;

/// Show what has happened, latest first: attempts with their result, and slots that were skipped with their reason.
///
/// Reads the database beside a running server, or without one.
#[derive(Debug, Args)]
pub(crate) struct HistoryArgs {
    #[command(flatten)]
    database: DatabaseArgs,

    /// Only this schedule, by name or id
    #[arg(long, value_name = "SCHEDULE")]
    schedule: Option<String>,

    /// Only this run
    #[arg(long, value_name = "ID")]
    run: Option<uuid::Uuid>,

    /// The zone whose clock is shown
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    zone: String,

    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: HistoryArgs) -> anyhow::Result<()> {
    let zone = Zones::bundled().get(&args.zone)?;
    let store = args.database.read()?;
    let (names, items) = wait(async {
        let names = Names::read(&*store).await?;
        let schedule = args.schedule.as_deref().map(|text| names.find(text)).transpose()?;
        let run = args.run.map(punctual_core::RunId);
        let filter = HistoryFilter { schedule, run, limit: args.limit.min(10_000), ..HistoryFilter::default() };
        let items = store.history(&filter).await.context("reading the history")?;
        anyhow::Ok((names, items))
    })??;
    if args.json {
        let list: Vec<Value> = items.iter().map(|item| view(item, &names)).collect();
        return print(&format!("{:#}\n", Value::from(list)));
    }
    if items.is_empty() {
        return print("Nothing has happened yet.\n");
    }
    let rows = items.iter().map(|item| row(item, &names, &zone));
    print(&table(&["ENDED", "SCHEDULE", "SCHEDULED", "RESULT", "TRY", "TOOK", "WHAT"], rows))
}

fn row(item: &HistoryItem, names: &Names, zone: &Zone) -> Vec<String> {
    let ended = clock_time(item.at, zone);
    match &item.what {
        HistoryWhat::Attempt(attempt) => {
            let took = attempt.started_at.map(|started_at| format!("{:#}", round(item.at.duration_since(started_at))));
            let report = &attempt.report;
            let what = report.error.as_ref().map(|error| error.message.clone()).or_else(|| report.summary.clone());
            vec![
                ended,
                names.of(attempt.schedule),
                clock_time(attempt.scheduled_at, zone),
                attempt.event.name().to_owned(),
                attempt.attempt.to_string(),
                took.unwrap_or_default(),
                one_line(&what.unwrap_or_default()),
            ]
        }
        HistoryWhat::RunEnded(change) => {
            let (result, what) = match change.event {
                RunEvent::Skipped(reason) => ("skipped", reason.to_string()),
                event => (event.name(), String::new()),
            };
            let (name, at) = (names.of(change.schedule), clock_time(change.scheduled_at, zone));
            vec![ended, name, at, result.to_owned(), String::new(), String::new(), what]
        }
        HistoryWhat::Skipped(skip) => {
            let what = match skip.count {
                1 => skip.reason.to_string(),
                count => format!("{}: {count} slots until {}", skip.reason, clock_time(skip.last_at, zone)),
            };
            let (name, at) = (names.of(Some(skip.schedule)), clock_time(skip.first_at, zone));
            vec![ended, name, at, "skipped".to_owned(), String::new(), String::new(), what]
        }
    }
}

fn view(item: &HistoryItem, names: &Names) -> Value {
    let mut view = match &item.what {
        HistoryWhat::Attempt(attempt) => {
            json!({ "kind": "attempt", "result": attempt.event.name(), "schedule_name": names.of(attempt.schedule), "attempt": attempt })
        }
        HistoryWhat::RunEnded(change) => {
            json!({ "kind": "run", "result": change.event.name(), "schedule_name": names.of(change.schedule), "run": change })
        }
        HistoryWhat::Skipped(skip) => {
            json!({ "kind": "skip", "result": "skipped", "schedule_name": names.of(Some(skip.schedule)), "skip": skip })
        }
    };
    view["seq"] = item.seq.into();
    view["at"] = item.at.to_string().into();
    view
}

fn round(took: jiff::SignedDuration) -> jiff::SignedDuration {
    jiff::SignedDuration::from_millis(took.as_millis() as i64)
}

/// The first line, without control characters, short enough for a table.
fn one_line(text: &str) -> String {
    const SHOWN: usize = 60;
    let line = text.lines().next().unwrap_or_default();
    let clean: String = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if clean.chars().count() <= SHOWN { clean } else { clean.chars().take(SHOWN - 1).chain(['…']).collect() }
}

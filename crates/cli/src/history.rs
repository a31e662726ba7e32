//! `punctual history`: what became of runs and slots.

use clap::Args;
use clap::builder::PossibleValuesParser;
use jiff::Timestamp;
use serde_json::Value;
use uuid::Uuid;

use crate::client::{self, Client, ClientArgs, Failure, Kind, PAGE, Query, read, read_all};
use crate::ids;
use crate::moment::{Moment, Side};
use crate::output::{print, print_json};
use crate::table::{Cell, Column, table};
use crate::times::{Wall, ZoneArgs, span_of_ms};
use crate::views::{Past, Schedule};

/// Its columns, with their turn to give way.
const COLUMNS: [Column; 11] = [
    Column::whole("TIME", 0),
    Column::whole("SLOT", 2),
    Column::whole("ENDED", 1),
    Column::text("SCHEDULE", 0, 12),
    Column::text("AGENT", 4, 8),
    Column::whole("RESULT", 0),
    Column::whole("TRY", 3),
    Column::whole("TOOK", 6),
    Column::whole("COST", 5),
    Column::text("WHAT", 7, 16),
    Column::whole("RUN", 0),
];

/// What of the API stands for which option.
const OPTIONS: [(&str, &str); 6] = [
    ("from", "--since"),
    ("to", "--until"),
    ("size", "--limit"),
    ("agentId", "--agent"),
    ("projectId", "--project"),
    ("resultStatus", "--status"),
];

/// Show what has happened, latest first.
///
/// Each attempt comes with its result, each skipped slot with its reason. History is sorted by TIME: when an attempt began, or the
/// slot of what never began. Asks the running server, or reads the database if no server runs.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  punctual history --schedule morning-report --status failed
  punctual history --since 2d --agent reporter --limit 200
  punctual history --since \"2026-11-18 00:12:00\" --until 00:30")]
pub(crate) struct HistoryArgs {
    /// Only this schedule, by name, id or either end of its id
    #[arg(long, value_name = "SCHEDULE", add = crate::completions::schedules())]
    schedule: Option<String>,

    /// Only this agent
    #[arg(long, value_name = "AGENT", add = crate::completions::agents())]
    agent: Option<String>,

    /// Only this project
    #[arg(long, value_name = "PROJECT")]
    project: Option<String>,

    /// Only this run, by id or either end of its id
    #[arg(long, value_name = "RUN", add = crate::completions::runs())]
    run: Option<String>,

    /// Only what ended so
    #[arg(long, value_name = "STATUS", value_parser = PossibleValuesParser::new(["succeeded", "failed", "cancelled", "skipped"]))]
    status: Option<String>,

    /// Only from here on: 2026-03-09, 2026-03-09 15:00:00, 15:00 (the last one), yesterday, or how long ago, like 10m or 2d
    #[arg(long, value_name = "TIME")]
    since: Option<Moment>,

    /// Only up to here, a day included
    #[arg(long, value_name = "TIME")]
    until: Option<Moment>,

    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,

    #[command(flatten)]
    zone: ZoneArgs,

    #[command(flatten)]
    client: ClientArgs,
}

pub(crate) async fn run(args: HistoryArgs) -> anyhow::Result<()> {
    let wall = args.zone.wall()?;
    let client = args.client.look().await?;
    let query = query(&args, &client, &wall).await?;
    if args.client.json {
        return print_json(&page(&client, &query, args.limit).await.map_err(|failure| failure.naming(&OPTIONS))?);
    }
    let past = client.history(&query, args.limit).await.map_err(|failure| failure.naming(&OPTIONS))?;
    let past: Vec<Past> = read_all(&past)?;
    if past.is_empty() {
        let unknown = client::about_agent(&client, args.agent.as_deref()).await;
        return print(&format!("Nothing has happened, as far as these filters see.\n{unknown}"));
    }
    let mut text = table(&COLUMNS, past.iter().map(|it| row(it, &wall)));
    text += "\nTIME is when it began, or the slot of what never began. ";
    text += &wall.named();
    if past.iter().any(|it| !it.warnings.is_empty()) {
        text += "Warnings are told by `punctual why RUN`.\n";
    }
    if past.len() == args.limit {
        text += &format!("The latest {} are shown; --limit shows more.\n", past.len());
    }
    print(&text)
}

/// The first page, as the API has it. One that is longer than the API's are is put together.
async fn page(client: &Client, query: &Query, limit: usize) -> Result<Value, Failure> {
    let size = limit.clamp(1, PAGE);
    let mut page = client.get("/api/executions/past", &query.clone().with("size", Some(size))).await?;
    if PAGE < limit && page["last"] == false {
        let items = client.history(query, limit).await?;
        let total = page["totalElements"].as_u64().unwrap_or_default();
        page["totalPages"] = total.div_ceil(limit as u64).into();
        page["last"] = (total <= limit as u64).into();
        (page["size"], page["numberOfElements"]) = (limit.into(), items.len().into());
        page["content"] = items.into();
    }
    Ok(page)
}

async fn query(args: &HistoryArgs, client: &Client, wall: &Wall) -> Result<Query, Failure> {
    let schedule = match &args.schedule {
        Some(text) => Some(schedule(client, text).await?),
        None => None,
    };
    let run = match &args.run {
        Some(text) => Some(client::run(client, text).await?),
        None => None,
    };
    let status = args.status.as_deref().map(|status| match status {
        "succeeded" => "SUCCESS",
        "failed" => "FAIL",
        "cancelled" => "CANCELLED",
        _ => "SKIPPED",
    });
    Ok(Query::default()
        .with("scheduleId", schedule)
        .with("agentId", args.agent.as_ref())
        .with("projectId", args.project.as_ref())
        .with("executionId", run)
        .with("resultStatus", status)
        .with("from", args.since.as_ref().map(|it| said("--since", it.instant(wall, Side::Past))).transpose()?)
        .with("to", args.until.as_ref().map(|it| said("--until", it.end(wall, Side::Past))).transpose()?))
}

/// The schedule that is meant. One that was deleted is found by its id.
async fn schedule(client: &Client, text: &str) -> Result<Uuid, Failure> {
    if let Ok(id) = text.parse() {
        return Ok(id);
    }
    let found = client::schedule(client, text).await.map_err(|failure| match failure.kind {
        Kind::NotFound => Failure::not_found(format!(
            "{failure}; the history of one that was deleted is found by its id, which `punctual history --json` has"
        )),
        _ => failure,
    })?;
    Ok(read::<Schedule>(&found)?.schedule_id)
}

/// A time, or why it is none, under the name of its option.
fn said(option: &str, at: Result<Timestamp, String>) -> Result<Timestamp, Failure> {
    at.map_err(|problem| Failure::input(format!("{option}: {problem}")))
}

fn row(past: &Past, wall: &Wall) -> Vec<Cell> {
    vec![
        wall.date_time(past.at()).into(),
        wall.beside(past.scheduled_at, past.at()).into(),
        wall.beside(past.ended_at, past.at()).into(),
        past.shown_name().into(),
        past.agent_id.clone().into(),
        Cell::state(past.result()),
        past.attempt.map(|attempt| attempt.to_string()).unwrap_or_default().into(),
        past.duration_ms.map(span_of_ms).unwrap_or_default().into(),
        past.cost().map(|cost| format!("${cost:.4}")).unwrap_or_default().into(),
        past.what().into(),
        past.execution_id.map_or_else(|| "-".to_owned(), ids::shown).into(),
    ]
}

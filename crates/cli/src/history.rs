//! `punctual history`: what became of runs and slots.

use clap::Args;
use clap::builder::PossibleValuesParser;
use serde_json::Value;
use uuid::Uuid;

use crate::client::{self, Client, ClientArgs, Failure, Kind, PAGE, Query, read, read_all};
use crate::output::{one_line, print, print_json, table};
use crate::times::{Wall, ZoneArgs, span_of_ms, span_read};
use crate::views::{Past, Schedule};

/// Show what has happened, latest first.
///
/// It is sorted by TIME: when an attempt began, or was scheduled if it never began. /// Attempts come with their result, and slots that were skipped with their reason. Asks the running server, or reads the database if none runs.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  punctual history --schedule morning-report --status failed
  punctual history --since 2d --agent reporter --limit 200")]
pub(crate) struct HistoryArgs {
    /// Only this schedule, by name, id or the beginning of its id
    #[arg(long, value_name = "SCHEDULE")]
    schedule: Option<String>,

    /// Only this agent
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,

    /// Only this project
    #[arg(long, value_name = "PROJECT")]
    project: Option<String>,

    /// Only this run, by id or the beginning of its id
    #[arg(long, value_name = "RUN")]
    run: Option<String>,

    /// Only what ended so
    #[arg(long, value_name = "STATUS", value_parser = PossibleValuesParser::new(["succeeded", "failed", "stopped", "cancelled", "skipped"]))]
    status: Option<String>,

    /// Only how runs ended: no attempt that was followed by another
    #[arg(long = "final")]
    is_final: bool,

    /// Only runs that have failed for good: the same as --status failed --final
    #[arg(long, conflicts_with = "status")]
    failed: bool,

    /// Only from here on: a day, an instant, or how long ago, like 2026-03-09, 2026-03-09T15:00:00Z, yesterday or 2d
    #[arg(long, value_name = "TIME")]
    since: Option<String>,

    /// Only up to here, a day included
    #[arg(long, value_name = "TIME")]
    until: Option<String>,

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
        return print_json(&page(&client, &query, args.limit).await?);
    }
    let past: Vec<Past> = read_all(&client.history(&query, args.limit).await?)?;
    if past.is_empty() {
        return print("Nothing has happened, as far as these filters see.\n");
    }
    let rows = past.iter().map(|it| row(it, &wall));
    let mut text =
        table(&["TIME", "SLOT", "ENDED", "SCHEDULE", "AGENT", "RESULT", "TRY", "TOOK", "COST", "WHAT", "RUN"], rows);
    text += "\nTIME is when it began, or the slot of what never began. ";
    text += &wall.named();
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
    let status = args.status.as_deref().or(args.failed.then_some("failed"));
    let status = status.map(|status| match status {
        "succeeded" => "SUCCESS",
        "failed" => "FAIL",
        "cancelled" => "CANCELLED",
        "stopped" => "STOPPED",
        _ => "SKIPPED",
    });
    Ok(Query::default()
        .with("scheduleId", schedule)
        .with("agentId", args.agent.as_ref())
        .with("projectId", args.project.as_ref())
        .with("executionId", run)
        .with("resultStatus", status)
        .with("final", (args.is_final || args.failed).then_some(true))
        .with("from", args.since.as_deref().map(|text| bound("--since", text, wall)).transpose()?)
        .with("to", args.until.as_deref().map(|text| bound("--until", text, wall)).transpose()?))
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

/// A time as the API takes it; how long ago becomes an instant, and a word a day.
fn bound(flag: &str, text: &str, wall: &Wall) -> Result<String, Failure> {
    let today = wall.zone.day_of(wall.now);
    match text {
        "today" => return Ok(today.to_string()),
        "yesterday" => return Ok(today.yesterday().unwrap_or(today).to_string()),
        _ => {}
    }
    if let Some(ago) = span_read(text) {
        return Ok(wall.now.checked_sub(ago).unwrap_or(wall.now).to_string());
    }
    if text.parse::<jiff::Timestamp>().is_ok() || text.parse::<jiff::civil::Date>().is_ok() {
        return Ok(text.to_owned());
    }
    let fix = "use 2026-03-09, 2026-03-09T15:00:00Z, today, yesterday, or how long ago, like 2d";
    Err(Failure::input(format!("{flag}: {text:?} is no time; {fix}")))
}

fn row(past: &Past, wall: &Wall) -> Vec<String> {
    vec![
        wall.date_time(past.at()),
        wall.beside(past.scheduled_at, past.at()),
        wall.beside(past.ended_at, past.at()),
        past.shown_name(),
        past.agent_id.clone(),
        past.result().to_owned(),
        past.attempt.map(|attempt| attempt.to_string()).unwrap_or_default(),
        past.duration_ms.map(span_of_ms).unwrap_or_default(),
        past.cost().map(|cost| format!("${cost:.4}")).unwrap_or_default(),
        one_line(&past.what()),
        past.execution_id.map_or_else(|| "-".to_owned(), |id| id.to_string()),
    ]
}

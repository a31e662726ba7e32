//! `punctual show`: everything about a run on one page.

use clap::Args;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::client::{self, Client, ClientArgs, Failure, Kind, Query, read, read_all};
use crate::output::{clean, facts, print, print_json};
use crate::screen::{Paint, Screen};
use crate::table::{Cell, Column, table};
use crate::times::{Wall, ZoneArgs, span_of_ms};
use crate::views::{Execution, Output, Past, Why};

/// The columns of its attempts, with their turn to give way.
const COLUMNS: [Column; 7] = [
    Column::whole("TRY", 0),
    Column::whole("STARTED", 0),
    Column::whole("ENDED", 1),
    Column::whole("TOOK", 3),
    Column::whole("RESULT", 0),
    Column::whole("COST", 2),
    Column::text("WHAT", 0, 16),
];

/// How many attempts are told, the latest ones.
const ATTEMPTS_MAX: usize = 100;

/// How many lines of what it printed are shown, and of how many pages.
const LINES: usize = 20;
const PAGES_MAX: usize = 100;

/// Show everything about a run.
///
/// Its times, attempts, state and why, what it cost, what it was asked and given, and the end of what it printed. Of a run that was
/// deleted by retention, what history still has.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  punctual show 0e7c946f                  # either end of an id will do
  punctual show morning-report            # its run in progress or due, or its last one")]
pub(crate) struct ShowArgs {
    /// The run, by id or either end of its id; or a schedule; or an agent
    #[arg(value_name = "RUN|SCHEDULE|AGENT", add = crate::completions::runs())]
    what: String,

    #[command(flatten)]
    zone: ZoneArgs,

    #[command(flatten)]
    client: ClientArgs,
}

/// What the run itself says, besides what lists show.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Details {
    project_id: Option<String>,
    timezone: Option<String>,
    priority: Option<u8>,
    lock_owner: Option<String>,
    lease_until: Option<Timestamp>,
    started_at: Option<Timestamp>,
    ended_at: Option<Timestamp>,
    cancelling: bool,
    prompt: Option<String>,
    inputs: Option<Map<String, Value>>,
}

/// A run, from all that the API says of it.
struct Page {
    id: Uuid,
    /// None if retention has deleted it.
    execution: Option<Value>,
    /// Attempts and what became of it, the latest first.
    past: Vec<Value>,
    why: Value,
    /// The end of what it printed.
    output: String,
}

pub(crate) async fn run(args: ShowArgs) -> anyhow::Result<()> {
    let wall = args.zone.wall()?;
    let client = args.client.look().await?;
    let id = client::run(&client, &args.what).await?;
    let page = read_page(&client, id, &wall).await?;
    if args.client.json {
        return print_json(&json!({
            "executionId": page.id,
            "execution": page.execution,
            "past": page.past,
            "why": page.why,
            "output": page.output,
        }));
    }
    print(&shown(&page, &wall)?)
}

async fn read_page(client: &Client, id: Uuid, wall: &Wall) -> Result<Page, Failure> {
    let none = Query::default();
    let execution = match client.get(&format!("/api/executions/{id}"), &none).await {
        Ok(execution) => Some(execution),
        Err(failure) if failure.kind == Kind::NotFound => None,
        Err(failure) => return Err(failure),
    };
    let mut past = client.history(&Query::default().with("executionId", Some(id)), ATTEMPTS_MAX).await?;
    // Where one line is asked for alone, it has more to say.
    if let Some(last) = past.first_mut()
        && let Some(line) = last["pastExecutionId"].as_str()
        && let Ok(whole) = client.get(&format!("/api/executions/past/{line}"), &none).await
    {
        *last = whole;
    }
    // This refuses what is not there at all.
    let zone = Query::default().with("zone", Some(wall.zone.name()));
    let why = client.get(&format!("/api/executions/{id}/why"), &zone).await?;
    let printed = if execution.is_some() { printed(client, id).await? } else { String::new() };
    let kept = past.first().and_then(|last| last["output"].as_str()).unwrap_or_default();
    let output = tail(if printed.is_empty() { kept } else { &printed });
    Ok(Page { id, execution, past, why, output })
}

/// What it printed at last, from as many pages as it takes to get there.
async fn printed(client: &Client, id: Uuid) -> Result<String, Failure> {
    let path = format!("/api/executions/{id}/output");
    let (mut text, mut after) = (String::new(), None);
    for _ in 0..PAGES_MAX {
        let body = client.get(&path, &Query::default().with("after", after)).await?;
        let items: Vec<Output> = read(&body["items"])?;
        let Some(last) = items.last() else { break };
        after = Some(last.seq);
        text += &items.iter().map(|item| item.text.as_str()).collect::<String>();
        text = tail(&text);
        if body["isOver"] == true {
            break;
        }
    }
    Ok(text)
}

/// The last lines of a text.
fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    lines[lines.len().saturating_sub(LINES)..].concat()
}

fn shown(page: &Page, wall: &Wall) -> Result<String, Failure> {
    let execution: Option<Execution> = page.execution.as_ref().map(read).transpose()?;
    let details: Details = page.execution.as_ref().map(read).transpose()?.unwrap_or_default();
    let past: Vec<Past> = read_all(&page.past)?;
    let why: Why = read(&page.why)?;
    let mut text = head(page.id, execution.as_ref(), &details, &past, wall);
    if !past.is_empty() {
        text += &format!("\n{}", table(&COLUMNS, past.iter().rev().map(|it| row(it, wall))));
    }
    text += "\nwhy\n";
    text += &why.causes.iter().map(|it| format!("  {} ({})\n", clean(&it.sentence), it.code)).collect::<String>();
    let notes: Vec<&str> = page.past.iter().rev().flat_map(warnings).collect();
    if !notes.is_empty() {
        text += "\nwarnings\n";
        text += &notes.iter().map(|note| format!("  {}\n", clean(note))).collect::<String>();
    }
    for (word, said) in [("prompt", details.prompt.as_deref().unwrap_or_default()), ("output", page.output.as_str())] {
        if !said.is_empty() {
            text += &format!("\n{word}\n{}", indented(said));
        }
    }
    if let Some(inputs) = details.inputs {
        text += &format!("\ninputs\n{}", indented(&format!("{:#}", Value::from(inputs))));
    }
    Ok(text)
}

fn head(id: Uuid, run: Option<&Execution>, details: &Details, past: &[Past], wall: &Wall) -> String {
    let time = |at: Timestamp| format!("{} {}", wall.day_time(at), wall.zone.name());
    let optional = |at: Option<Timestamp>| at.map(time).unwrap_or_default();
    let last = past.first();
    let first_started = past.iter().rev().find_map(|it| it.started_at);
    let name = run.map(Execution::shown_name).or(last.map(Past::shown_name)).unwrap_or_default();
    let agent = run.map(|it| it.agent_id.clone()).or(last.map(|it| it.agent_id.clone())).unwrap_or_default();
    let scheduled = run.map(|it| it.scheduled_at).or(last.map(|it| it.scheduled_at));
    let state = state(run, details, last, wall);
    let state = Paint::of_state(&state).on(&state, Screen::get());
    let cost: f64 = past.iter().filter_map(Past::cost).sum();
    let tries = run.map(|it| format!("{} of {}", it.attempt, it.max_attempts));
    let node = details.lock_owner.clone().map(|owner| match details.lease_until {
        Some(at) => format!("{owner}, lease until {}", wall.time(at)),
        None => owner,
    });
    let lines = [
        ("schedule", name),
        ("agent", agent),
        ("project", details.project_id.clone().unwrap_or_default()),
        ("scheduled", optional(scheduled)),
        ("planned", optional(planned_at(id))),
        ("started", optional(first_started.or(details.started_at))),
        ("ended", optional(details.ended_at.or(last.filter(|_| run.is_none()).map(|it| it.ended_at)))),
        ("tries", tries.unwrap_or_default()),
        ("cost", if 0.0 < cost { format!("${cost:.4}") } else { String::new() }),
        ("node", node.unwrap_or_default()),
        ("priority", details.priority.map(|it| it.to_string()).unwrap_or_default()),
        ("zone", details.timezone.clone().unwrap_or_default()),
    ];
    // The state is painted behind `facts`, which cleans what others wrote.
    let width = lines.iter().map(|(word, _)| word.len()).max().unwrap_or(0);
    format!("{:width$}  {}\n{:width$}  {state}\n{}", "run", id, "state", facts(&lines))
}

/// Where it is in its life, in the words of the other commands.
fn state(run: Option<&Execution>, details: &Details, last: Option<&Past>, wall: &Wall) -> String {
    let Some(run) = run else { return last.map(|it| it.result().to_owned()).unwrap_or_default() };
    match (run.exec_status.as_str(), &run.waiting_for, &run.outcome) {
        (_, _, Some(outcome)) => match run.reason.as_deref().filter(|reason| reason != outcome) {
            Some(reason) => clean(&format!("{outcome}: {reason}")),
            None => outcome.clone(),
        },
        (_, Some(what), None) => format!("waiting for {what}"),
        ("READY", ..) => format!("planned, due {}", wall.until(run.scheduled_at)),
        ("PENDING", ..) => "taken".to_owned(),
        ("RUNNING", ..) if details.cancelling => "running, asked to stop".to_owned(),
        ("RUNNING", ..) => "running".to_owned(),
        ("FAILED_RETRYABLE", ..) => match run.next_attempt_at {
            Some(at) => format!("retrying {}", wall.until(at)),
            None => "retrying".to_owned(),
        },
        (other, ..) => clean(other),
    }
}

/// When the run was made: its id says so, if it is one that begins with its time.
fn planned_at(id: Uuid) -> Option<Timestamp> {
    let (seconds, nanoseconds) = id.get_timestamp()?.to_unix();
    Timestamp::new(i64::try_from(seconds).ok()?, i32::try_from(nanoseconds).ok()?).ok()
}

/// What could not be understood of what an attempt reported.
fn warnings(past: &Value) -> impl Iterator<Item = &str> {
    past["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

fn row(past: &Past, wall: &Wall) -> Vec<Cell> {
    vec![
        past.attempt.map_or_else(|| "-".to_owned(), |attempt| attempt.to_string()).into(),
        past.started_at.map_or_else(|| "-".to_owned(), |at| wall.date_time(at)).into(),
        wall.beside(past.ended_at, past.at()).into(),
        past.duration_ms.map(span_of_ms).unwrap_or_default().into(),
        Cell::state(past.result()),
        past.cost().map(|cost| format!("${cost:.4}")).unwrap_or_default().into(),
        past.what().into(),
    ]
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {}\n", clean(line))).collect()
}

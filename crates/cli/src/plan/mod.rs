//! `punctual plan`: a day, as a strip and as a table.

mod line;
mod strip;

use clap::Args;
use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::client::{self, Client, ClientArgs, Failure, Query, read, read_all};
use crate::output::{is_utf8, one_line, print, print_json, table, width};
use crate::times::{Wall, ZoneArgs};
use crate::views::{Execution, Past, Schedule};
use line::Line;
use strip::{Look, Strip};

/// The most of a day that is read.
const READ_MAX: usize = 10_000;

/// Show a day: what is planned, what is at work, what has become of the rest.
///
/// Above the table the day is drawn from midnight to midnight, a row for each schedule, with the present marked. Asks the
/// running server, or reads the database if none runs. Runs are planned to the end of the day: other days have what there is.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  punctual plan
  punctual plan --live --agent reporter --zone Europe/Paris")]
pub(crate) struct PlanArgs {
    /// The day, like 2026-03-09, yesterday or tomorrow [default: today]
    #[arg(long, value_name = "DATE", value_parser = Which::read)]
    day: Option<Which>,

    /// Only this schedule, by name, id or the beginning of its id
    #[arg(long, value_name = "SCHEDULE")]
    schedule: Option<String>,

    /// Only this agent
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,

    /// Only this project
    #[arg(long, value_name = "PROJECT")]
    project: Option<String>,

    /// Only runs that are not over
    #[arg(long)]
    live: bool,

    /// At most so many rows of the table
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: usize,

    /// Draw with plain letters [default: as the locale says]
    #[arg(long)]
    ascii: bool,

    #[command(flatten)]
    zone: ZoneArgs,

    #[command(flatten)]
    client: ClientArgs,
}

/// Which day is meant.
#[derive(Debug, Clone, Copy)]
enum Which {
    /// By its date.
    Date(Date),
    /// So many days from today.
    Away(i32),
}

impl Which {
    fn read(text: &str) -> Result<Which, String> {
        match text {
            "yesterday" => Ok(Which::Away(-1)),
            "today" => Ok(Which::Away(0)),
            "tomorrow" => Ok(Which::Away(1)),
            date => date
                .parse()
                .map(Which::Date)
                .map_err(|_| "use a date like 2026-03-09, yesterday, today or tomorrow".to_owned()),
        }
    }

    fn from(self, today: Date) -> Date {
        match self {
            Which::Date(date) => date,
            Which::Away(days) => today.saturating_add(jiff::Span::new().days(days)),
        }
    }
}

/// What is to be said of a day that has not begun.
fn later(day: &Day, today: Date) -> &'static str {
    if day.date <= today {
        return "";
    }
    "\nA day is planned when it begins: most runs of later days are not there yet. `punctual timers` tells what is next, and \
     `punctual preview` what a trigger fires at.\n"
}

/// A day, from midnight to midnight.
struct Day {
    date: Date,
    from: Timestamp,
    until: Timestamp,
}

impl Day {
    fn has(&self, at: Timestamp) -> bool {
        self.from <= at && at < self.until
    }
}

pub(crate) async fn run(args: PlanArgs) -> anyhow::Result<()> {
    let wall = args.zone.wall()?;
    let today = wall.zone.day_of(wall.now);
    let date = args.day.unwrap_or(Which::Away(0)).from(today);
    let day = Day { date, from: wall.zone.day_start(date), until: wall.zone.day_end(date) };
    let client = args.client.look().await?;
    let query = query(&args, &client).await?;
    let future = future(&client, &query, &day, args.live).await?;
    let past = if args.live { vec![] } else { past(&client, &query, &day).await? };
    if args.client.json {
        return print_json(&json!({ "day": day.date, "zone": wall.zone.name(), "future": future, "past": past }));
    }
    let (future, past): (Vec<Execution>, Vec<Past>) = (read_all(&future)?, read_all(&past)?);
    let lines = line::merge(&future, &past, &wall);
    if lines.is_empty() {
        let text = format!("Nothing is planned for {} ({}).\n", day.date, wall.zone.name());
        return print(&(text + later(&day, today)));
    }
    print(&(drawn(&lines, &day, &wall, &args) + later(&day, today)))
}

async fn query(args: &PlanArgs, client: &Client) -> Result<Query, Failure> {
    let schedule = match &args.schedule {
        Some(text) => Some(read::<Schedule>(&client::schedule(client, text).await?)?.schedule_id),
        None => None,
    };
    Ok(Query::default()
        .with("scheduleId", schedule)
        .with("agentId", args.agent.as_ref())
        .with("projectId", args.project.as_ref()))
}

/// The queue of a day. The API goes by the day of each run's own zone, which may be the one before or behind ours.
async fn future(client: &Client, query: &Query, day: &Day, only_live: bool) -> Result<Vec<Value>, Failure> {
    let mut all = vec![];
    let dates = [day.date.yesterday().ok(), Some(day.date), day.date.tomorrow().ok()];
    for date in dates.into_iter().flatten() {
        let query = query.clone().with("dateKey", Some(date));
        for item in client.list("/api/executions/future", &query, READ_MAX).await? {
            let run: Execution = read(&item)?;
            if day.has(run.scheduled_at) && !(only_live && run.is_over()) {
                all.push(item);
            }
        }
    }
    Ok(all)
}

/// The history of a day. It goes by beginnings: what was scheduled for the day may have begun later.
async fn past(client: &Client, query: &Query, day: &Day) -> Result<Vec<Value>, Failure> {
    let to = day.until.checked_add(SignedDuration::from_hours(48)).unwrap_or(day.until);
    let query = query.clone().with("from", Some(day.from)).with("to", Some(to));
    let mut all = vec![];
    for item in client.history(&query, READ_MAX).await? {
        let past: Past = read(&item)?;
        if day.has(past.scheduled_at) {
            all.push(item);
        }
    }
    Ok(all)
}

fn drawn(lines: &[Line], day: &Day, wall: &Wall, args: &PlanArgs) -> String {
    let look = if args.ascii || !is_utf8() { Look::Ascii } else { Look::Unicode };
    let strip = Strip { from: day.from, until: day.until, wall, look, width: width() };
    let mut text = format!("{} ({})\n\n", day.date.strftime("%A, %Y-%m-%d"), wall.zone.name());
    text += &strip.draw(lines);
    text.push('\n');
    let rows = lines.iter().take(args.limit).map(|line| {
        vec![
            wall.time(line.at),
            line.name.clone(),
            line.agent.clone(),
            line.state.clone(),
            one_line(&line.note),
            line.run.map_or_else(|| "-".to_owned(), |id| id.to_string()),
        ]
    });
    text += &table(&["TIME", "SCHEDULE", "AGENT", "STATE", "NOTE", "RUN"], rows);
    if args.limit < lines.len() {
        text += &format!("\nThe first {} of {} are shown; --limit shows more.\n", args.limit, lines.len());
    }
    text
}

//! `punctual plan`: a day, as a strip and as a table.

mod line;
mod strip;

use clap::Args;
use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::client::{self, Client, ClientArgs, Failure, Query, read, read_all};
use crate::ids;
use crate::moment::Moment;
use crate::output::{plural, print, print_json};
use crate::screen::{Screen, is_utf8, width};
use crate::table::{Cell, Column, table};
use crate::times::{Wall, ZoneArgs};
use crate::views::{Execution, Past, Schedule};
use line::Line;
use strip::{Look, Strip};

/// Its columns, with their turn to give way.
const COLUMNS: [Column; 6] = [
    Column::whole("TIME", 0),
    Column::text("SCHEDULE", 0, 12),
    Column::text("AGENT", 1, 8),
    Column::whole("STATE", 0),
    Column::text("NOTE", 2, 12),
    Column::whole("RUN", 0),
];

/// How many rows of the table are shown, unless somebody asks for more.
const ROWS: usize = 20;

/// The most of a day that is read.
const READ_MAX: usize = 10_000;

/// Show a day: what is planned, what is at work, what has become of the rest.
///
/// The day is drawn from midnight to midnight, a row for each schedule, with the present marked. Below are the next 20 runs:
/// what is in progress and what comes; --all also has what is over. Asks the running server, or reads the database if no server
/// runs. Runs are planned to the end of the day: other days have what there is.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  punctual plan
  punctual plan yesterday --all
  punctual plan --live --agent reporter --zone Europe/Paris")]
pub(crate) struct PlanArgs {
    /// The day, like 2026-03-09, yesterday or tomorrow [default: today]
    #[arg(value_name = "DATE", value_parser = day)]
    date: Option<Moment>,

    /// The same, as an option
    #[arg(long, value_name = "DATE", value_parser = day, conflicts_with = "date")]
    day: Option<Moment>,

    /// Only this schedule, by name, id or either end of its id
    #[arg(long, value_name = "SCHEDULE", add = crate::completions::schedules())]
    schedule: Option<String>,

    /// Only this agent
    #[arg(long, value_name = "AGENT", add = crate::completions::agents())]
    agent: Option<String>,

    /// Only this project
    #[arg(long, value_name = "PROJECT")]
    project: Option<String>,

    /// Only runs that are not over
    #[arg(long)]
    live: bool,

    /// All runs of the day in the table, also those that are over
    #[arg(long)]
    all: bool,

    /// At most so many rows of the table [default: 20, or all with --all]
    #[arg(long, value_name = "N")]
    limit: Option<usize>,

    /// Draw with plain letters [default: as the locale says]
    #[arg(long)]
    ascii: bool,

    #[command(flatten)]
    zone: ZoneArgs,

    #[command(flatten)]
    client: ClientArgs,
}

/// A time that is a day.
fn day(text: &str) -> Result<Moment, String> {
    let read: Option<Moment> = text.parse().ok();
    read.filter(|it| matches!(it, Moment::Day(_) | Moment::DaysAway(_)))
        .ok_or_else(|| "use a date like 2026-03-09, yesterday, today or tomorrow".to_owned())
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
    let asked = args.date.as_ref().or(args.day.as_ref());
    let date = asked.and_then(|asked| asked.day(&wall)).unwrap_or(today);
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
        let unknown = client::about_agent(&client, args.agent.as_deref()).await;
        return print(&(text + later(&day, today) + &unknown));
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
    let strip = Strip { from: day.from, until: day.until, wall, look, width: width(), screen: Screen::get() };
    let mut text = format!("{} ({})\n\n", day.date.strftime("%A, %Y-%m-%d"), wall.zone.name());
    text += &strip.draw(lines);
    text.push('\n');
    let asked: Vec<&Line> = lines.iter().filter(|line| args.all || !day.has(wall.now) || !line.is_over()).collect();
    let limit = args.limit.unwrap_or(if args.all { usize::MAX } else { ROWS });
    let rows = asked.iter().take(limit).map(|line| {
        vec![
            wall.time(line.at).into(),
            line.name.clone().into(),
            line.agent.clone().into(),
            Cell::state(line.state.as_str()),
            line.note.clone().into(),
            line.run.map_or_else(|| "-".to_owned(), ids::shown).into(),
        ]
    });
    text += &match asked.is_empty() {
        true => "Nothing more is planned for today.\n".to_owned(),
        false => table(&COLUMNS, rows),
    };
    text + &left_out(lines.len() - asked.len(), asked.len().saturating_sub(limit), args.all)
}

/// What the table does not have.
fn left_out(over: usize, later: usize, all: bool) -> String {
    let option = if all { "--limit" } else { "--all" };
    let over = (0 < over)
        .then(|| format!("{} of this day {} over", plural(over, "run"), if over == 1 { "is" } else { "are" }));
    let later = (0 < later).then(|| format!("{later} more come later"));
    match [over, later].into_iter().flatten().collect::<Vec<_>>() {
        parts if parts.is_empty() => String::new(),
        parts => format!("\n{}: {option} shows them.\n", parts.join(", ")),
    }
}

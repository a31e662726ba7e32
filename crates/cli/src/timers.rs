//! `punctual timers`: which schedule is next, as `systemctl list-timers` shows it.

use std::collections::BTreeMap;

use clap::Args;
use jiff::Timestamp;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::client::{Client, ClientArgs, Failure, Query, every_face, read_all};
use crate::output::{plural, print, print_json};
use crate::table::{Cell, Column, table};
use crate::times::ZoneArgs;
use crate::views::{Past, Schedule};

/// Its columns, with their turn to give way.
const COLUMNS: [Column; 7] = [
    Column::whole("NEXT", 0),
    Column::whole("LEFT", 3),
    Column::whole("LAST", 1),
    Column::whole("PASSED", 2),
    Column::text("SCHEDULE", 0, 12),
    Column::text("AGENT", 4, 8),
    Column::text("STATE", 0, 9),
];

/// How much of the history is looked through before schedules are asked about one by one.
const LOOKED_AT: usize = 1_000;

/// Show schedules by the time of their next run, with the last one.
///
/// Paused schedules come last, with who paused them and until when.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  punctual timers --zone Europe/Paris")]
pub(crate) struct TimersArgs {
    /// Also those that run no more: disabled and ended
    #[arg(long, short)]
    all: bool,

    #[command(flatten)]
    zone: ZoneArgs,

    #[command(flatten)]
    client: ClientArgs,
}

pub(crate) async fn run(args: TimersArgs) -> anyhow::Result<()> {
    let client = args.client.look().await?;
    let list = client.list("/api/schedules", &every_face(), usize::MAX).await?;
    let mut schedules: Vec<Schedule> = read_all(&list)?;
    schedules.retain(|it| args.all || it.next_execution_at.is_some() || it.state == "paused");
    schedules.sort_by_key(|it| (it.next_execution_at.unwrap_or(Timestamp::MAX), it.shown_name()));
    let last = last_runs(&client, &schedules).await?;
    if args.client.json {
        let view = |it: &Schedule| {
            json!({
                "scheduleId": it.schedule_id,
                "scheduleName": it.name,
                "agentId": it.agent_id,
                "nextExecutionAt": it.next_execution_at,
                "lastStartedAt": last.get(&it.schedule_id),
                "state": it.state,
                "pause": it.pause,
            })
        };
        return print_json(&Value::from(schedules.iter().map(view).collect::<Vec<_>>()));
    }
    if schedules.is_empty() {
        return print("No schedule has a next run: `punctual timers --all` shows the others.\n");
    }
    let wall = args.zone.wall()?;
    let dash = || "-".to_owned();
    let rows = schedules.iter().map(|it| {
        let last = last.get(&it.schedule_id).copied();
        vec![
            it.next_execution_at.map_or_else(dash, |at| wall.day_time(at)).into(),
            it.next_execution_at.map_or_else(dash, |at| wall.left(at)).into(),
            last.map_or_else(dash, |at| wall.day_time(at)).into(),
            last.map_or_else(dash, |at| wall.passed(at)).into(),
            it.shown_name().into(),
            it.agent_id.clone().into(),
            Cell::state(it.shown_state()),
        ]
    });
    let text = table(&COLUMNS, rows);
    print(&format!("{text}\n{}. {}", plural(schedules.len(), "schedule"), wall.named()))
}

/// When each schedule last began a run.
async fn last_runs(client: &Client, schedules: &[Schedule]) -> Result<BTreeMap<Uuid, Timestamp>, Failure> {
    let mut last = BTreeMap::new();
    let recent: Vec<Past> = read_all(&client.history(&Query::default(), LOOKED_AT).await?)?;
    note(&mut last, &recent);
    for schedule in schedules.iter().filter(|it| 0 < it.runs_started) {
        if !last.contains_key(&schedule.schedule_id) {
            let query = Query::default().with("scheduleId", Some(schedule.schedule_id));
            note(&mut last, &read_all(&client.history(&query, 20).await?)?);
        }
    }
    Ok(last)
}

/// Notes beginnings, of which the first of each schedule is the latest.
fn note(last: &mut BTreeMap<Uuid, Timestamp>, past: &[Past]) {
    for it in past {
        if let (Some(schedule), Some(started_at)) = (it.schedule_id, it.started_at) {
            last.entry(schedule).or_insert(started_at);
        }
    }
}

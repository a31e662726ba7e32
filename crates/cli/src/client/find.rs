//! What people mean when they name a schedule, a run or a token: one finder for all commands.

use serde_json::Value;
use uuid::Uuid;

use super::failure::{Failure, Kind};
use super::{Client, Query, read, read_all};
use crate::views::{Execution, Past, Schedule, Token, Why};

/// Shorter beginnings of ids are more likely slips.
const PREFIX_MIN: usize = 4;

/// How many of something are looked through for the beginning of an id.
const LOOKED_AT: usize = 100_000;

/// How much of the history is looked through for a run.
const HISTORY_LOOKED_AT: usize = 1_000;

/// The most candidates that are told.
const TOLD_MAX: usize = 10;

/// Schedules of every face: whoever sits at the server looks at all of them.
pub(crate) fn every_face() -> Query {
    Query::default().with("face", Some("all"))
}

/// The schedule that a name, an id or the unique beginning of an id means, as the API has it.
pub(crate) async fn schedule(client: &Client, text: &str) -> Result<Value, Failure> {
    if let Ok(id) = text.parse::<Uuid>() {
        return client.get(&format!("/api/schedules/{id}"), &Query::default()).await;
    }
    let named = client.list("/api/schedules", &every_face().with("name", Some(text)), LOOKED_AT).await?;
    let found = if named.is_empty() && is_prefix(text) {
        let all = client.list("/api/schedules", &every_face(), LOOKED_AT).await?;
        all.into_iter().filter(|it| begins_with(&it["scheduleId"], text)).collect()
    } else {
        named
    };
    one("schedule", text, found, |it| {
        let schedule: Option<Schedule> = read(it).ok();
        schedule.map_or_else(String::new, |it| {
            let project = it.project_id.as_deref().map(|project| format!(" in project {project}")).unwrap_or_default();
            format!("{} {}{project}", it.schedule_id, it.shown_name())
        })
    })
}

/// The id of the run that an id, the unique beginning of one, the name of a schedule or that of an agent means: the run that is at
/// work, waits or is due, else the last one.
pub(crate) async fn run(client: &Client, text: &str) -> Result<Uuid, Failure> {
    if let Some(id) = run_by_id(client, text).await? {
        return Ok(id);
    }
    match schedule(client, text).await {
        Ok(found) => {
            let schedule: Schedule = read(&found)?;
            let why = format!("/api/schedules/{}/why", schedule.schedule_id);
            let why: Why = read(&client.get(&why, &Query::default()).await?)?;
            let causes: Vec<&str> = why.schedule_causes.iter().map(|cause| cause.sentence.as_str()).collect();
            why.execution_id
                .ok_or_else(|| Failure::not_found(format!("schedule {text:?} has no run: {}", causes.join("; "))))
        }
        Err(failure) if failure.kind == Kind::NotFound => run_of_agent(client, text).await,
        Err(failure) => Err(failure),
    }
}

/// The run that an id or the unique beginning of one means; none, if it is no such thing.
pub(crate) async fn run_by_id(client: &Client, text: &str) -> Result<Option<Uuid>, Failure> {
    if let Ok(id) = text.parse() {
        return Ok(Some(id));
    }
    if !is_prefix(text) {
        return Ok(None);
    }
    let queue: Vec<Execution> = read_all(&client.list("/api/executions/future", &Query::default(), LOOKED_AT).await?)?;
    let past: Vec<Past> = read_all(&client.history(&Query::default(), HISTORY_LOOKED_AT).await?)?;
    let ids = queue.iter().map(|run| run.execution_id).chain(past.iter().filter_map(|it| it.execution_id));
    let mut ids: Vec<Value> = ids.map(|id| id.to_string()).filter(|id| id.starts_with(text)).map(Value::from).collect();
    ids.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
    ids.dedup();
    if ids.is_empty() {
        return Ok(None);
    }
    let id = one("run", text, ids, |id| id.as_str().unwrap_or_default().to_owned())?;
    read(&id).map(Some)
}

/// The run of an agent that is at work, else its last one.
pub(crate) async fn run_of_agent(client: &Client, text: &str) -> Result<Uuid, Failure> {
    let of_agent = Query::default().with("agentId", Some(text));
    let queue: Vec<Execution> = read_all(&client.list("/api/executions/future", &of_agent, LOOKED_AT).await?)?;
    if let Some(run) = queue.iter().find(|run| run.is_at_work()) {
        return Ok(run.execution_id);
    }
    let past: Vec<Past> = read_all(&client.history(&of_agent, TOLD_MAX).await?)?;
    past.iter().find_map(|it| it.execution_id).ok_or_else(|| {
        Failure::not_found(format!(
            "there is no run and no schedule {text:?}, and no agent of that name has run; `punctual history` and `punctual \
             schedule list` show them"
        ))
    })
}

/// The run that is to be called off: by its id or the unique beginning of one, or the run of a schedule that is at work, else its
/// next one.
pub(crate) async fn live_run(client: &Client, text: &str) -> Result<Execution, Failure> {
    if let Ok(id) = text.parse::<Uuid>() {
        return read(&client.get(&format!("/api/executions/{id}"), &Query::default()).await?);
    }
    let query = Query::default();
    let mut found = vec![];
    if is_prefix(text) {
        let queue = client.list("/api/executions/future", &query, LOOKED_AT).await?;
        found.extend(queue.into_iter().filter(|it| begins_with(&it["executionId"], text)));
    }
    if found.is_empty() {
        let schedule: Schedule = read(&schedule(client, text).await?)?;
        let query = query.with("scheduleId", Some(schedule.schedule_id));
        let queue: Vec<Execution> = read_all(&client.list("/api/executions/future", &query, LOOKED_AT).await?)?;
        let mut live: Vec<Execution> = queue.into_iter().filter(|run| !run.is_over()).collect();
        live.sort_by_key(|run| (!run.is_at_work(), run.scheduled_at));
        let first = live.into_iter().next();
        return first.ok_or_else(|| Failure::not_found(format!("schedule {text:?} has no more runs today")));
    }
    read(&one("run", text, found, |it| text_of(&it["executionId"]).to_owned())?)
}

/// The token that a name, an id or the unique beginning of an id means.
pub(crate) async fn token(client: &Client, text: &str) -> Result<Token, Failure> {
    let Value::Array(all) = client.get("/api/tokens", &Query::default()).await? else {
        return Err(Failure::not_found("there are no tokens"));
    };
    let is_meant = |it: &&Value| it["name"] == text || is_prefix(text) && begins_with(&it["tokenId"], text);
    let found = all.iter().filter(is_meant).cloned().collect();
    let label = |it: &Value| format!("{} {}", text_of(&it["tokenId"]), text_of(&it["name"]));
    read(&one("token", text, found, label)?)
}

/// The only candidate, or an error that lists them.
fn one(what: &str, text: &str, mut found: Vec<Value>, label: impl Fn(&Value) -> String) -> Result<Value, Failure> {
    match found.len() {
        0 => Err(Failure::not_found(format!("there is no {what} {text:?}"))),
        1 => Ok(found.remove(0)),
        count => {
            let mut list: String = found.iter().take(TOLD_MAX).map(|it| format!("\n  {}", label(it))).collect();
            if TOLD_MAX < count {
                list += &format!("\n  and {} more", count - TOLD_MAX);
            }
            Err(Failure::input(format!("{text:?} may be any of {count} {what}s; use the id of one:{list}")))
        }
    }
}

fn is_prefix(text: &str) -> bool {
    PREFIX_MIN <= text.len() && text.chars().all(|it| it.is_ascii_hexdigit() || it == '-')
}

fn begins_with(id: &Value, text: &str) -> bool {
    text_of(id).starts_with(&text.to_ascii_lowercase())
}

fn text_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

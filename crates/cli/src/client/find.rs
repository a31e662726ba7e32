//! What people mean when they name a schedule, a run or a token: one finder for all commands.

use punctual_engine::clock::now;
use serde_json::Value;
use uuid::Uuid;

use super::failure::{Failure, Kind};
use super::{Client, Query, read, read_all};
use crate::ids;
use crate::output::clean;
use crate::suggest::nearest;
use crate::views::{Agent, Execution, Past, Schedule, Token, Why};

/// How many of something are looked through for a piece of an id.
const LOOKED_AT: usize = 100_000;

/// How much of the history is looked through for a run: what was shown lately, and then as much as is worth the wait.
const HISTORY_LOOKED_AT: [usize; 2] = [1_000, 10_000];

/// How many names are compared with one that is unknown.
const COMPARED: usize = 10_000;

/// The most candidates that are told.
const TOLD_MAX: usize = 10;

/// Schedules of every face: whoever sits at the server looks at all of them.
pub(crate) fn every_face() -> Query {
    Query::default().with("face", Some("all"))
}

/// The schedule that a name, an id or a piece of an id means, as the API has it.
pub(crate) async fn schedule(client: &Client, text: &str) -> Result<Value, Failure> {
    if let Ok(id) = text.parse::<Uuid>() {
        return client.get(&format!("/api/schedules/{id}"), &Query::default()).await;
    }
    let mut found = named(client, text).await?;
    if found.is_empty() {
        let all = client.list("/api/schedules", &every_face(), LOOKED_AT).await?;
        let meant = nearest_name(text, &schedule_names(&all));
        found = all.into_iter().filter(|it| ids::has_piece(text_of(&it["scheduleId"]), text)).collect();
        if found.is_empty() {
            return Err(Failure::not_found(format!("there is no schedule {text:?}{meant}")));
        }
    }
    one("schedule", text, found, |it| {
        let schedule: Option<Schedule> = read(it).ok();
        schedule.map_or_else(String::new, |it| {
            let project = it.project_id.as_deref().map(|project| format!(" in project {project}")).unwrap_or_default();
            format!("{} {}{project}", it.schedule_id, clean(&it.shown_name()))
        })
    })
}

/// The schedules of exactly this name: one in each project at most.
async fn named(client: &Client, text: &str) -> Result<Vec<Value>, Failure> {
    client.list("/api/schedules", &every_face().with("name", Some(text)), LOOKED_AT).await
}

/// The agents that there are.
async fn agents(client: &Client) -> Result<Vec<String>, Failure> {
    let agents: Vec<Agent> = read(&client.get("/api/agents", &Query::default()).await?)?;
    Ok(agents.into_iter().map(|agent| agent.agent_id).collect())
}

/// Whether there is an agent of this name.
async fn is_agent(client: &Client, text: &str) -> Result<bool, Failure> {
    Ok(agents(client).await?.iter().any(|agent| agent == text))
}

/// The end of a sentence about a name that nothing has: the one that was probably meant, of schedules and agents.
pub(crate) async fn meant(client: &Client, text: &str) -> String {
    let schedules = client.list("/api/schedules", &every_face(), COMPARED).await.unwrap_or_default();
    let mut names = schedule_names(&schedules);
    names.extend(agents(client).await.unwrap_or_default());
    nearest_name(text, &names)
}

/// What is to be said of a filter that found nothing: perhaps there is no such agent.
pub(crate) async fn about_agent(client: &Client, agent: Option<&str>) -> String {
    let (Some(agent), Ok(known)) = (agent, agents(client).await) else { return String::new() };
    if known.iter().any(|it| it == agent) {
        return String::new();
    }
    format!("There is no agent {agent:?} now{}.\n", nearest_name(agent, &known))
}

fn schedule_names(schedules: &[Value]) -> Vec<String> {
    let named = schedules.iter().take(COMPARED).filter_map(|it| it["name"].as_str());
    named.map(str::to_owned).collect()
}

fn nearest_name(text: &str, names: &[String]) -> String {
    let nearest = nearest(text, names.iter().map(String::as_str));
    nearest.map(|name| format!("; did you mean {:?}?", clean(name))).unwrap_or_default()
}

/// The id of the run that an id, a piece of one, the name of a schedule or that of an agent means: the run that is at
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

/// The run that an id or a piece of one means; none, if it is no such thing. A name goes before a piece that looks like it.
pub(crate) async fn run_by_id(client: &Client, text: &str) -> Result<Option<Uuid>, Failure> {
    if let Ok(id) = text.parse() {
        return Ok(Some(id));
    }
    if !ids::is_piece(text) || !named(client, text).await?.is_empty() || is_agent(client, text).await? {
        return Ok(None);
    }
    let queue: Vec<Execution> = read_all(&client.list("/api/executions/future", &Query::default(), LOOKED_AT).await?)?;
    for looked_at in HISTORY_LOOKED_AT {
        let past: Vec<Past> = read_all(&client.history(&Query::default(), looked_at).await?)?;
        let ids = queue.iter().map(|run| run.execution_id).chain(past.iter().filter_map(|it| it.execution_id));
        let mut ids: Vec<String> = ids.map(|id| id.to_string()).filter(|id| ids::has_piece(id, text)).collect();
        ids.sort();
        ids.dedup();
        if !ids.is_empty() {
            let ids = ids.into_iter().map(Value::from).collect();
            let id = one("run", text, ids, |id| id.as_str().unwrap_or_default().to_owned())?;
            return read(&id).map(Some);
        }
        if past.len() < looked_at {
            break;
        }
    }
    Ok(None)
}

/// The run of an agent that is in progress or is due, else its last one.
pub(crate) async fn run_of_agent(client: &Client, text: &str) -> Result<Uuid, Failure> {
    let of_agent = Query::default().with("agentId", Some(text));
    let queue: Vec<Execution> = read_all(&client.list("/api/executions/future", &of_agent, LOOKED_AT).await?)?;
    let live = || queue.iter().filter(|run| !run.is_over() && run.scheduled_at <= now());
    if let Some(run) = live().find(|run| run.is_in_progress()).or(live().next()) {
        return Ok(run.execution_id);
    }
    let past: Vec<Past> = read_all(&client.history(&of_agent, TOLD_MAX).await?)?;
    if let Some(id) = past.iter().find_map(|it| it.execution_id) {
        return Ok(id);
    }
    let piece = match ids::is_piece(text) {
        true => {
            format!(" (of the history, the latest {} are looked through for a piece of an id)", HISTORY_LOOKED_AT[1])
        }
        false => String::new(),
    };
    if is_agent(client, text).await? {
        return Err(Failure::not_found(format!("agent {text:?} has no run: it has not run yet")));
    }
    Err(Failure::not_found(format!(
        "there is no run and no schedule {text:?}, and no agent of that name has run{piece}; `punctual history` and `punctual \
         schedule list` show them{}",
        meant(client, text).await
    )))
}

/// The runs that are to be cancelled: one by its id or a piece of it; or those of a schedule or an agent, which is the one in
/// progress, else the next one, or with `all` every one of today that is not over.
pub(crate) async fn live_runs(client: &Client, text: &str, all: bool) -> Result<Vec<Execution>, Failure> {
    let query = Query::default();
    if let Ok(id) = text.parse::<Uuid>() {
        return Ok(vec![read(&client.get(&format!("/api/executions/{id}"), &query).await?)?]);
    }
    let schedule: Option<Schedule> = match schedule(client, text).await {
        Ok(found) => Some(read(&found)?),
        Err(failure) if failure.kind == Kind::NotFound => None,
        Err(failure) => return Err(failure),
    };
    let query = match &schedule {
        Some(schedule) => query.with("scheduleId", Some(schedule.schedule_id)),
        None => query.with("agentId", Some(text)),
    };
    let queue: Vec<Execution> = read_all(&client.list("/api/executions/future", &query, LOOKED_AT).await?)?;
    let mut live: Vec<Execution> = queue.into_iter().filter(|run| !run.is_over()).collect();
    live.sort_by_key(|run| (!run.is_in_progress(), run.scheduled_at));
    if !live.is_empty() {
        return if all { Ok(live) } else { the_one_in_progress(text, live) };
    }
    if schedule.is_some() || is_agent(client, text).await? {
        let what = if schedule.is_some() { "schedule" } else { "agent" };
        return Err(Failure::not_found(format!("{what} {text:?} has no more runs today")));
    }
    if ids::is_piece(text) {
        let queue = client.list("/api/executions/future", &Query::default(), LOOKED_AT).await?;
        let is_meant = |it: &Value| ids::has_piece(text_of(&it["executionId"]), text);
        let found: Vec<Value> = queue.into_iter().filter(is_meant).collect();
        if !found.is_empty() {
            let run = one("run", text, found, |it| text_of(&it["executionId"]).to_owned())?;
            return Ok(vec![read(&run)?]);
        }
    }
    Err(Failure::not_found(format!(
        "there is no schedule {text:?}, no agent and no run of today{}",
        meant(client, text).await
    )))
}

/// The only run in progress, else the next one. Several are a question.
fn the_one_in_progress(text: &str, mut live: Vec<Execution>) -> Result<Vec<Execution>, Failure> {
    let in_progress: Vec<&Execution> = live.iter().filter(|run| run.is_in_progress()).collect();
    if in_progress.len() < 2 {
        live.truncate(1);
        return Ok(live);
    }
    let label = |run: &&Execution| format!("\n  {} {}", run.execution_id, clean(&run.label()));
    let mut list: String = in_progress.iter().take(TOLD_MAX).map(label).collect();
    if TOLD_MAX < in_progress.len() {
        list += &format!("\n  and {} more", in_progress.len() - TOLD_MAX);
    }
    let count = in_progress.len();
    Err(Failure::input(format!("{text:?} has {count} runs in progress; use the id of one, or --all:{list}")))
}

/// The token that a name, an id or a piece of an id means.
pub(crate) async fn token(client: &Client, text: &str) -> Result<Token, Failure> {
    let Value::Array(all) = client.get("/api/tokens", &Query::default()).await? else {
        return Err(Failure::not_found("there are no tokens"));
    };
    let is_meant = |it: &&Value| it["name"] == text || ids::has_piece(text_of(&it["tokenId"]), text);
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

fn text_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

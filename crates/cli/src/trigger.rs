//! `punctual trigger`: a run, now.

use std::process::ExitCode;

use clap::Args;
use jiff::SignedDuration;
use punctual_engine::clock::{Clock, SystemClock, now};
use serde_json::{Map, Value, json};

use crate::client::{self, Client, ClientArgs, Failure, Kind, Query, read};
use crate::ids;
use crate::output::{clean, print, print_json};
use crate::times::{span, span_of_ms};
use crate::views::{Agent, Execution, Past, Schedule};

/// The rest between two looks at a run that is waited for.
const REST: SignedDuration = SignedDuration::from_millis(300);

/// What of the API stands for which option.
const OPTIONS: [(&str, &str); 3] = [("projectId", "--project"), ("prompt", "--prompt"), ("inputs", "--inputs")];

/// Run a schedule or an agent now.
///
/// A schedule's own times do not move, and a pause does not matter.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  punctual trigger morning-report
  punctual trigger reporter --prompt \"Summarise the week\" --wait")]
pub(crate) struct TriggerArgs {
    /// The schedule, by name, id or either end of its id; or an agent
    #[arg(value_name = "SCHEDULE|AGENT", add = crate::completions::schedules_and_agents())]
    what: String,

    /// What the agent is asked to do, instead of what its schedule says
    #[arg(long, value_name = "TEXT")]
    prompt: Option<String>,

    /// What the agent is given: a JSON object
    #[arg(long, value_name = "JSON", value_parser = crate::schedule::object)]
    inputs: Option<Map<String, Value>>,

    /// The project that a run of an agent belongs to
    #[arg(long, value_name = "PROJECT")]
    project: Option<String>,

    /// Wait until it is over; exits with 1 if it did not succeed
    #[arg(long)]
    wait: bool,

    #[command(flatten)]
    client: ClientArgs,
}

pub(crate) async fn run(args: TriggerArgs) -> anyhow::Result<ExitCode> {
    let client = args.client.server().await?;
    let (mut body, may_wait) = whom(&client, &args.what).await?;
    body["prompt"] = json!(args.prompt);
    body["inputs"] = json!(args.inputs);
    body["projectId"] = json!(args.project);
    let answer = client.post("/api/executions/trigger", &Query::default(), &body).await;
    let answer = answer.map_err(|failure| failure.naming(&OPTIONS))?;
    let run: Execution = read(&answer)?;
    if !args.wait {
        if args.client.json {
            print_json(&answer)?;
        } else {
            let (id, what) = (ids::shown(run.execution_id), clean(&args.what));
            let asks = format!(" It may wait for an approval: `punctual approve {id}`.");
            let asks = if may_wait { asks } else { String::new() };
            print(&format!("Run {id} of {what} is due now; `punctual logs {id} -f` follows it.{asks}\n"))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    if !args.client.json {
        eprintln!("run {} is due now, waiting for its end", ids::shown(run.execution_id));
    }
    let (body, past) = end(&client, &run, args.client.json).await?;
    if args.client.json {
        print_json(&body)?;
    } else {
        let tries = past.attempt.filter(|attempt| 1 < *attempt).map(|it| format!(" at try {it}")).unwrap_or_default();
        let took = past.duration_ms.map(|took| format!(" in {}", span_of_ms(took))).unwrap_or_default();
        let what = Some(past.what()).filter(|what| !what.is_empty()).map(|it| format!(": {it}")).unwrap_or_default();
        print(&format!("{}{tries}{took}{}\n", past.result(), clean(&what)))?;
    }
    Ok(if past.result_status == "SUCCESS" { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A schedule if there is one of that name, else an agent; and whether somebody may have to approve its runs.
async fn whom(client: &Client, text: &str) -> Result<(Value, bool), Failure> {
    match client::schedule(client, text).await {
        Ok(found) => {
            let schedule: Schedule = read(&found)?;
            let asks = found["executorPolicy"]["riskGate"] == true;
            let may_wait = asks || agents(client).await?.iter().any(|it| it.agent_id == schedule.agent_id && it.asks());
            Ok((json!({ "scheduleId": schedule.schedule_id }), may_wait))
        }
        Err(failure) if failure.kind == Kind::NotFound => {
            if let Some(agent) = agents(client).await?.iter().find(|agent| agent.agent_id == text) {
                return Ok((json!({ "agentId": text }), agent.asks()));
            }
            let meant = client::meant(client, text).await;
            let text = format!(
                "there is no schedule and no agent {text:?}; `punctual schedule list` and `punctual agents` show them{meant}"
            );
            Err(Failure::not_found(text))
        }
        Err(failure) => Err(failure),
    }
}

async fn agents(client: &Client) -> Result<Vec<Agent>, Failure> {
    read(&client.get("/api/agents", &Query::default()).await?)
}

/// The end of a run: the last line of its history, once nothing more becomes of it. Meanwhile it is told what it waits for.
async fn end(client: &Client, run: &Execution, is_silent: bool) -> Result<(Value, Past), Failure> {
    let mut told = (String::new(), 0);
    let of_run = Query::default().with("executionId", Some(run.execution_id));
    let path = format!("/api/executions/{}", run.execution_id);
    loop {
        // The run first: what is over has its line in the history already.
        let found: Execution = read(&client.get(&path, &Query::default()).await?)?;
        if found.is_over()
            && let Some(last) = client.history(&of_run, 1).await?.pop()
        {
            let past = read(&last)?;
            return Ok((last, past));
        }
        let state = (found.exec_status.clone(), found.attempt);
        if state != told && !is_silent {
            waits(&found).iter().for_each(|news| eprintln!("{}", clean(news)));
        }
        told = state;
        SystemClock.sleep_until(SystemClock.now() + REST).await;
    }
}

/// What a run that is not over waits for, if that may take a while.
fn waits(run: &Execution) -> Option<String> {
    if let Some(what) = &run.waiting_for {
        return Some(format!("it waits for {what}; `punctual approve {}` lets it begin", ids::shown(run.execution_id)));
    }
    if run.exec_status == "FAILED_RETRYABLE" {
        let again = run.next_attempt_at.map(|at| format!(", again in {}", span(at.duration_since(now()))));
        return Some(format!("try {} of {} has failed{}", run.attempt, run.max_attempts, again.unwrap_or_default()));
    }
    None
}

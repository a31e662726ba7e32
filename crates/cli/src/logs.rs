//! `punctual logs`: what a run has printed, and prints.

use std::io::{IsTerminal, Write};

use anyhow::Context;
use clap::Args;
use jiff::SignedDuration;
use punctual_engine::clock::{Clock, SystemClock};
use serde_json::Value;
use uuid::Uuid;

use crate::client::{self, Client, ClientArgs, Failure, Kind, Query, read};
use crate::output::{print_json, unless_closed};
use crate::views::Output;

/// The rest before a stream that broke is opened again.
const REST: SignedDuration = SignedDuration::from_millis(500);

/// How often it is opened again before it is given up.
const TRIES: usize = 20;

/// Show what a run has printed.
///
/// What went to standard output there goes to standard output here, and errors to errors. When it is not kept any more, or did not come
/// along with an import, this is the end of each try, as history has it, and a note says so.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  punctual logs morning-report            # of its run at work, or of its last one
  punctual logs 0e7c946f -f               # and what comes, until the run is over")]
pub(crate) struct LogsArgs {
    /// The run, by id or either end of its id; or a schedule; or an agent
    #[arg(value_name = "RUN|SCHEDULE|AGENT", add = crate::completions::runs())]
    what: String,

    /// Go on until the run is over
    #[arg(long, short)]
    follow: bool,

    /// Only this attempt
    #[arg(long, value_name = "N")]
    attempt: Option<u32>,

    #[command(flatten)]
    client: ClientArgs,
}

pub(crate) async fn run(args: LogsArgs) -> anyhow::Result<()> {
    let client = if args.follow { args.client.server().await? } else { args.client.look().await? };
    let run = client::run(&client, &args.what).await?;
    if args.follow && follow(&client, run, &args).await? {
        return Ok(());
    }
    let body = all(&client, run).await?;
    if args.client.json {
        return print_json(&body);
    }
    if body["isFromHistory"] == true {
        eprintln!(
            "note: the output itself is not kept any more, or was not imported; this is the end of each try, as history has it"
        );
    } else if body["isCut"] == true {
        eprintln!("note: only the end is kept");
    }
    let items: Vec<Output> = read(&body["items"])?;
    let is_asked_for = |item: &Output| args.attempt.is_none_or(|attempt| attempt == item.attempt);
    if !items.iter().any(is_asked_for) {
        let what = match args.attempt {
            Some(attempt) => format!("run {run} has no output of try {attempt}"),
            None => format!("run {run} has printed nothing"),
        };
        // A try that never was is not there; a run that is silent is.
        if args.attempt.is_some() {
            return Err(Failure::not_found(what).into());
        }
        eprintln!("note: {what}; `punctual why {run}` says how it is");
    }
    let mut printed = None;
    for item in items.iter().filter(|item| is_asked_for(item)) {
        announce(&mut printed, item);
        show(item, &args)?;
    }
    Ok(())
}

/// Says where another try begins.
fn announce(printed: &mut Option<u32>, item: &Output) {
    let before = printed.replace(item.attempt);
    if before.is_some_and(|before| before != item.attempt) || before.is_none() && 1 < item.attempt {
        eprintln!("-- try {} --", item.attempt);
    }
}

/// All that is kept of what a run has printed, put together from as many pages as there are.
async fn all(client: &Client, run: Uuid) -> Result<Value, Failure> {
    let path = format!("/api/executions/{run}/output");
    let mut all = client.get(&path, &Query::default()).await?;
    // What history has is one page, and not numbered like the rest.
    if all["isFromHistory"] == true {
        return Ok(all);
    }
    while let Some(last) = all["items"].as_array().and_then(|items| items.last()?["seq"].as_u64()) {
        let mut more = client.get(&path, &Query::default().with("after", Some(last))).await?;
        all["isOver"] = more["isOver"].take();
        match (&mut all["items"], more["items"].take()) {
            // A server that does not get on would be asked for ever.
            (Value::Array(items), Value::Array(found))
                if found.iter().all(|it| Some(last) < it["seq"].as_u64()) && !found.is_empty() =>
            {
                items.extend(found);
            }
            _ => break,
        }
    }
    Ok(all)
}

/// Shows what comes until the run is over. A stream that breaks is taken up where it broke. Whether anything came.
async fn follow(client: &Client, run: Uuid, args: &LogsArgs) -> anyhow::Result<bool> {
    let path = format!("/api/executions/{run}/output/stream");
    let (mut after, mut broken): (Option<String>, usize) = (None, 0);
    let mut printed = None;
    loop {
        let opened = client.stream(&path, after.as_deref()).await;
        match opened {
            Ok(mut events) => {
                while let Some(event) = events.next().await {
                    broken = 0;
                    match event.kind.as_str() {
                        "over" => return Ok(after.is_some()),
                        "output" => {
                            let body: Value = serde_json::from_str(&event.data).context("reading an event")?;
                            let item: Output = read(&body)?;
                            after = Some(event.id.unwrap_or_else(|| item.seq.to_string()));
                            if args.client.json {
                                // One object a line: there is no end to close a list at.
                                crate::output::print(&format!("{body}\n"))?;
                            } else {
                                announce(&mut printed, &item);
                                show(&item, args)?;
                            }
                        }
                        _ => {}
                    }
                }
            }
            // A server that restarts is back soon; one that was never there is not waited for.
            Err(failure) if failure.kind != Kind::NoServer || after.is_none() => return Err(failure.into()),
            Err(_) => {}
        }
        broken += 1;
        if TRIES < broken {
            return Err(
                Failure::new(Kind::NoServer, "the stream has broken off, and the server does not come back").into()
            );
        }
        SystemClock.sleep_until(SystemClock.now() + REST).await;
    }
}

fn show(item: &Output, args: &LogsArgs) -> anyhow::Result<()> {
    if args.attempt.is_some_and(|attempt| attempt != item.attempt) {
        return Ok(());
    }
    let (mut out, mut err) = (std::io::stdout().lock(), std::io::stderr().lock());
    let (to, is_terminal): (&mut dyn Write, bool) = match item.stream.as_str() {
        "stderr" => (&mut err, std::io::stderr().is_terminal()),
        _ => (&mut out, std::io::stdout().is_terminal()),
    };
    // What an agent prints does not steer our terminal; a file or a pipe gets it as it is.
    let text = if is_terminal { harmless(&item.text) } else { item.text.clone() };
    unless_closed(to.write_all(text.as_bytes()).and_then(|()| to.flush())).context("printing")
}

fn harmless(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && !matches!(c, '\n' | '\t') { '\u{fffd}' } else { c }).collect()
}

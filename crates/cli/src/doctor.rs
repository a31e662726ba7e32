//! `punctual doctor`: is everything well here? The server, the token, the clocks, and what protects runs.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use jiff::Timestamp;
use punctual_agents::process::{Protection, Strength, protections};
use punctual_engine::clock::now;
use serde::Serialize;
use serde_json::{Value, json};

use crate::client::{Alive, ClientArgs, Http, Query, read};
use crate::config::{Config, DEFAULT_FILE};
use crate::output::{plural, print, print_json, table};
use crate::views::Node;

/// Clocks that differ by more are worth a word. The server's comes to the second, and a request takes its time.
const SKEW_MAX_MS: i64 = 3_000;

/// Show whether all is well: server, token, clocks, configuration, protections.
///
/// Does a server answer, is the token good, do the clocks agree? Is the configuration of this folder right, and are the programs, folders and
/// secrets here that it names? And which protections do this machine and this user give to the runs of process agents, and which are missing? The exit
/// code is 1 if the server, the token, a clock or the configuration is not good.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  punctual doctor --server https://punctual.example")]
pub(crate) struct DoctorArgs {
    /// The configuration to look at [default: punctual.toml, if there is one]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    #[command(flatten)]
    client: ClientArgs,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Check {
    name: &'static str,
    /// `yes`, `no` or `unknown`.
    good: &'static str,
    meaning: String,
}

impl Check {
    fn new(name: &'static str, is_good: Option<bool>, meaning: impl Into<String>) -> Check {
        let good = match is_good {
            Some(true) => "yes",
            Some(false) => "no",
            None => "unknown",
        };
        Check { name, good, meaning: meaning.into() }
    }
}

pub(crate) async fn run(args: DoctorArgs) -> anyhow::Result<ExitCode> {
    let mut checks = match args.client.http().await {
        Ok(server) => checks(&args.client, server).await,
        Err(failure) => no_server(failure.to_string(), args.client.token_found_in()),
    };
    checks.extend(configuration(args.config.as_deref()));
    let is_well = checks.iter().all(|check| check.good != "no");
    show(&args, &checks)?;
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn show(args: &DoctorArgs, checks: &[Check]) -> anyhow::Result<()> {
    let all = protections();
    if args.client.json {
        let view = |it: &Protection| json!({ "name": it.name, "strength": word(it.strength), "meaning": it.meaning });
        let all: Vec<Value> = all.iter().map(view).collect();
        return print_json(&json!({ "checks": checks, "protections": all }));
    }
    let looked = checks.iter().map(|it| vec![it.name.to_owned(), it.good.to_owned(), it.meaning.clone()]);
    let rows = all.iter().map(|it| vec![it.name.to_owned(), word(it.strength).to_owned(), it.meaning.to_owned()]);
    let checked = table(&["CHECK", "GOOD", "MEANING"], looked);
    print(&format!("{checked}\n{}", table(&["PROTECTION", "HERE", "MEANING"], rows)))
}

async fn checks(args: &ClientArgs, server: Http) -> Vec<Check> {
    let alive = match server.alive().await {
        Ok(alive) => alive,
        Err(failure) => return no_server(failure.to_string(), server.token_found_in().to_owned()),
    };
    let here = now();
    let found = format!("{} answers, release {}", server.url(), alive.version);
    let is_ours = alive.version == env!("CARGO_PKG_VERSION");
    let found = if is_ours { found } else { format!("{found}, and this is {}", env!("CARGO_PKG_VERSION")) };
    let found_in = server.token_found_in().to_owned();
    let nodes =
        args.reached(server).get("/api/nodes", &Query::default()).await.and_then(|body| read::<Vec<Node>>(&body));
    let token = match &nodes {
        Ok(_) => Check::new("token", Some(true), found_in),
        Err(failure) => Check::new("token", Some(false), failure.to_string()),
    };
    let mut checks = vec![Check::new("server", Some(true), found), token, clock(&alive, here)];
    checks.extend(nodes.unwrap_or_default().iter().map(|node| {
        let is_good = node.skew_ms.abs() < SKEW_MAX_MS;
        Check::new("node clock", Some(is_good), format!("{} is {:+} ms from the others", node.name, node.skew_ms))
    }));
    checks
}

/// The configuration, and each of its agents. What only the server's environment can tell stays unknown.
fn configuration(file: Option<&Path>) -> Vec<Check> {
    let shown = file.unwrap_or(Path::new(DEFAULT_FILE));
    if file.is_none() && !shown.exists() {
        return vec![Check::new("configuration", None, format!("no {} here", shown.display()))];
    }
    let config = match Config::load(file) {
        Ok((config, _)) => config,
        Err(error) => return vec![Check::new("configuration", Some(false), one_line(&format!("{error:#}")))],
    };
    let missing = config.missing();
    let meaning = format!("{}: {}", shown.display(), plural(config.agents.len(), "agent"));
    let mut checks = vec![Check::new("configuration", Some(true), meaning)];
    checks.extend(missing.into_iter().map(|it| {
        let is_good = if it.is_certain { Some(false) } else { None };
        Check::new("configuration", is_good, format!("{}: {}; {}", it.key, it.problem, it.fix))
    }));
    checks
}

/// The table has one line for each check.
fn one_line(text: &str) -> String {
    text.lines().collect::<Vec<_>>().join("; ")
}

fn no_server(failure: String, token_found_in: String) -> Vec<Check> {
    vec![
        Check::new("server", Some(false), failure),
        Check::new("token", None, token_found_in),
        Check::new("clock", None, "nobody tells the time"),
    ]
}

fn clock(alive: &Alive, here: Timestamp) -> Check {
    let date =
        alive.date.as_deref().and_then(|date| jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(date).ok());
    let Some(there) = date else { return Check::new("clock", None, "the server does not tell the time") };
    let skew = there.duration_since(here);
    let is_good = skew.as_millis().abs() < i128::from(SKEW_MAX_MS);
    let meaning = format!("the server's clock is {:+} s from this one, to the second", skew.as_secs());
    Check::new("clock", Some(is_good), meaning)
}

fn word(strength: Strength) -> &'static str {
    match strength {
        Strength::Full => "yes",
        Strength::Partial => "partly",
        Strength::Missing => "missing",
        Strength::Unused => "not used",
    }
}

//! `punctual config`: is the configuration right, and what does it say?

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::error::ConfigError;
use super::here::{Missing, placed};
use super::{Config, DEFAULT_FILE};
use crate::output::print;

/// Check the configuration, or show every setting with its value.
///
/// Reads the file and the PUNCTUAL_* variables that stand in for its settings. Exits with 2 and all problems if something is wrong, and
/// with 1 if it is right but names a program, a folder or a secret that is not on this machine.
#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    /// The configuration [default: punctual.toml, if there is one]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Say whether it is right, and nothing else: what happens without options, too
    #[arg(long, conflicts_with = "print")]
    check: bool,

    /// Print every setting with its value, defaults included
    #[arg(long)]
    print: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: ConfigArgs) -> anyhow::Result<ExitCode> {
    let (text, missing) = match Config::load(args.config.as_deref()) {
        Ok((config, _)) => {
            let missing = if args.print { vec![] } else { missing(&config, &args) };
            (show(&config, &args, &missing), missing)
        }
        Err(error) => {
            // Programs read the problems from standard output; people from standard error, where they end up anyway.
            if let Some(problems) = error.downcast_ref::<ConfigError>().filter(|_| args.json) {
                print(&format!("{:#}\n", serde_json::to_value(problems)?))?;
            }
            return Err(error);
        }
    };
    print(&text)?;
    let file = file(&args);
    if !args.json {
        missing.iter().for_each(|it| eprintln!("{}", told(&file, it)));
    }
    Ok(if missing.iter().any(|it| it.is_certain) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn missing(config: &Config, args: &ConfigArgs) -> Vec<Missing> {
    let path = args.config.as_deref().unwrap_or(Path::new(DEFAULT_FILE));
    // Where it stands is nice to know, and no more.
    placed(config.missing(), &std::fs::read_to_string(path).unwrap_or_default())
}

fn told(file: &str, missing: &Missing) -> String {
    let Missing { position, key, problem, fix, is_certain, .. } = missing;
    let word = if *is_certain { "missing" } else { "note" };
    let at = position.map(|at| format!(":{}:{}", at.line, at.column)).unwrap_or_default();
    format!("{word}: {file}{at}: {key}: {problem}; {fix}")
}

fn file(args: &ConfigArgs) -> String {
    match &args.config {
        Some(file) => file.display().to_string(),
        None if Path::new(DEFAULT_FILE).exists() => DEFAULT_FILE.to_owned(),
        None => format!("no {DEFAULT_FILE} here"),
    }
}

fn show(config: &Config, args: &ConfigArgs, missing: &[Missing]) -> String {
    let file = file(args);
    let (agents, schedules) = (config.agents.len(), config.schedules.len());
    match (args.print, args.json) {
        (true, true) => format!("{:#}\n", config.to_json()),
        (true, false) => config.to_toml(),
        (false, true) => {
            format!("{}\n", json!({ "file": file, "agents": agents, "schedules": schedules, "missing": missing }))
        }
        (false, false) => format!("{file}: {}, {}\n", count(agents, "agent"), count(schedules, "schedule")),
    }
}

fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

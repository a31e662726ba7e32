//! `punctual config`: is the configuration right, and what does it say?

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use super::error::ConfigError;
use super::{Config, DEFAULT_FILE};
use crate::output::print;

/// Check the configuration, or show every setting with its value.
///
/// Reads the file and the PUNCTUAL_* variables that stand in for its settings. Exits with 2 and all problems if
/// something is wrong.
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

pub(crate) fn run(args: ConfigArgs) -> anyhow::Result<()> {
    let text = match Config::load(args.config.as_deref()) {
        Ok((config, _)) => show(&config, &args),
        Err(error) => {
            // Programs read the problems from standard output; people from standard error, where they end up anyway.
            if let Some(problems) = error.downcast_ref::<ConfigError>().filter(|_| args.json) {
                print(&format!("{:#}\n", serde_json::to_value(problems)?))?;
            }
            return Err(error);
        }
    };
    print(&text)
}

fn show(config: &Config, args: &ConfigArgs) -> String {
    let file = match &args.config {
        Some(file) => file.display().to_string(),
        None if Path::new(DEFAULT_FILE).exists() => DEFAULT_FILE.to_owned(),
        None => format!("no {DEFAULT_FILE} here"),
    };
    let (agents, schedules) = (config.agents.len(), config.schedules.len());
    match (args.print, args.json) {
        (true, true) => format!("{:#}\n", config.to_json()),
        (true, false) => config.to_toml(),
        (false, true) => format!("{}\n", json!({ "file": file, "agents": agents, "schedules": schedules })),
        (false, false) => format!("{file}: {}, {}\n", count(agents, "agent"), count(schedules, "schedule")),
    }
}

fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

//! The `punctual` binary: one file per subcommand.

mod clock;
mod config;
mod output;
mod preview;
mod zoned_cron;
mod zones;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use punctual_core::time::zone::bundled_version;

/// One durable scheduler for AI agents, workflows and commands.
#[derive(Debug, Parser)]
#[command(name = "punctual", version, long_version = long_version(), max_term_width = 110)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Config(config::ConfigArgs),
    Preview(Box<preview::PreviewArgs>),
}

/// `--version` also names the zone data that this binary carries.
fn long_version() -> String {
    format!("{}\nzone data: tzdata {} (bundled)", env!("CARGO_PKG_VERSION"), bundled_version())
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Config(args) => config::run(args),
        Command::Preview(args) => preview::run(*args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

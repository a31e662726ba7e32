//! The `punctual` binary: one file per subcommand.

mod clock;
mod preview;
mod zones;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// One durable scheduler for AI agents, workflows and commands.
#[derive(Debug, Parser)]
#[command(name = "punctual", version, max_term_width = 110)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Preview(Box<preview::PreviewArgs>),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
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

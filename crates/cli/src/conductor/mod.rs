//! `punctual conductor`: moving over from another scheduler.

mod import;
mod line;
mod next;
mod theirs;

use std::process::ExitCode;

use clap::{Args, Subcommand};

/// Move schedules over from a Conductor server.
#[derive(Debug, Args)]
pub(crate) struct ConductorArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Import(Box<import::ImportArgs>),
}

pub(crate) async fn run(args: ConductorArgs) -> anyhow::Result<ExitCode> {
    match args.command {
        Command::Import(args) => import::run(*args).await,
    }
}

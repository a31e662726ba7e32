//! The `punctual` binary: one file per subcommand.

mod backup;
mod config;
mod database;
mod doctor;
mod history;
mod names;
mod nodes;
mod output;
mod plan;
mod preview;
mod transfer;
mod up;
mod verify;
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
    Up(up::UpArgs),
    Plan(plan::PlanArgs),
    History(history::HistoryArgs),
    Nodes(nodes::NodesArgs),
    Verify(verify::VerifyArgs),
    Backup(backup::BackupArgs),
    Restore(backup::RestoreArgs),
    Export(transfer::ExportArgs),
    Import(transfer::ImportArgs),
    Preview(Box<preview::PreviewArgs>),
    Config(config::ConfigArgs),
    Doctor(doctor::DoctorArgs),
}

/// `--version` also names the zone data that this binary carries.
fn long_version() -> String {
    format!("{}\nzone data: tzdata {} (bundled)", env!("CARGO_PKG_VERSION"), bundled_version())
}

fn main() -> ExitCode {
    // A server starts this program once more for each run of a process agent.
    if let Some(code) = punctual_agents::process::supervise_if_asked() {
        return code;
    }
    let done = |result: anyhow::Result<()>| result.map(|()| ExitCode::SUCCESS);
    let result = match Cli::parse().command {
        Command::Up(args) => done(up::run(args)),
        Command::Plan(args) => done(plan::run(args)),
        Command::History(args) => done(history::run(args)),
        Command::Nodes(args) => done(nodes::run(&args)),
        Command::Verify(args) => verify::run(args),
        Command::Backup(args) => done(backup::backup(&args)),
        Command::Restore(args) => done(backup::restore(&args)),
        Command::Export(args) => done(transfer::export(&args)),
        Command::Import(args) => done(transfer::import(&args)),
        Command::Preview(args) => done(preview::run(*args)),
        Command::Config(args) => done(config::run(args)),
        Command::Doctor(args) => done(doctor::run(args)),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

//! `punctual import`: a database from an export, or agents and schedules from a crontab.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Subcommand};

use crate::database::DatabaseArgs;
use crate::{crontab, transfer};

/// Make a database from an export, or agents and schedules from a crontab.
///
/// An export: SQLite from PostgreSQL, PostgreSQL from SQLite, or a copy. The database must be empty, or not exist. Whoever held a run before
/// holds it no more, and slots since the export are decided by the schedules' catch-up. The result is verified before it counts.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "\
Examples:
  punctual import everything.jsonl --database postgres://punctual@db.example/punctual
  punctual import crontab                               # what would become of your crontab"
)]
pub(crate) struct SourceArgs {
    #[command(subcommand)]
    source: Option<Source>,

    /// The export
    #[arg(value_name = "FILE", required = true)]
    from: Option<PathBuf>,

    #[command(flatten)]
    database: DatabaseArgs,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Source {
    Crontab(crontab::CrontabArgs),
}

pub(crate) fn run(args: SourceArgs) -> anyhow::Result<ExitCode> {
    if let Some(Source::Crontab(args)) = args.source {
        return crontab::run(&args);
    }
    let from = args.from.context("there is nothing to import")?;
    transfer::import(&transfer::ImportArgs { from, database: args.database, json: args.json })?;
    Ok(ExitCode::SUCCESS)
}

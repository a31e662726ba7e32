//! `punctual-bench`: how fast Punctual is, beside plain SQL in the same run.
//!
//! It uses what users of the engine use, and nothing from inside a store: so it goes on measuring when that is replaced.

mod args;
mod database;
mod limit;
mod measure;
mod node;
mod report;
mod seed;
mod workloads;

use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Parser;
use tracing_subscriber::EnvFilter;

use args::{Args, Workload};
use database::Place;
use measure::Stopwatch;

/// The one that `punctual` has.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let since = Stopwatch::start();
    let args = Args::parse();
    // Warnings only: a log line for each run would be measured too.
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("error"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    match run(&args, since) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args, since: Stopwatch) -> anyhow::Result<()> {
    if 1 < args.nodes && matches!(args.database, Place::Sqlite(_)) {
        bail!("SQLite has one node; use --nodes with postgres://");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("starting threads")?;
    runtime.block_on(async {
        match args.workload {
            Workload::Limit => workloads::drain::limit(args).await,
            Workload::Drain => workloads::drain::drain(args).await,
            Workload::Late if args.cron => workloads::late::cron(args).await,
            Workload::Late => workloads::late::late(args).await,
            Workload::Steady => workloads::steady::steady(args).await,
            Workload::Schedules => match args.every {
                Some(interval) => workloads::schedules::at_interval(args, interval).await,
                None => workloads::schedules::daily(args).await,
            },
            Workload::Insert => workloads::insert::insert(args).await,
            Workload::Scaling => workloads::scaling::scaling(args).await,
            Workload::List => workloads::list::list(args).await,
            Workload::Restart => workloads::restart::restart(args).await,
            Workload::Join => workloads::join::join(args).await,
            Workload::Retention => workloads::retention::retention(args).await,
            Workload::Hold => workloads::hold::hold(args, since).await,
        }
    })
}

//! What the program can be asked.

use clap::{Parser, ValueEnum};
use punctual_core::Elapsed;

use crate::database::Place;

const AFTER_HELP: &str = "\
Examples:
  punctual-bench drain --database sqlite:/tmp/x.db
  punctual-bench drain --database postgres://postgres@127.0.0.1/postgres --nodes 4 --full
  punctual-bench late --cron --database sqlite:/tmp/x.db --count 10000
  punctual-bench schedules --every 5m --count 2000 --seconds 60 --database sqlite:/tmp/x.db

Every measurement is one line of JSON on standard output:
  workload, database, nodes, runs   what was done, and how often
  runs_per_s, limit_per_s, share    ours, plain SQL in the same run of the program, and the first by the second
  p50_ms, p99_ms, max_ms            lateness of starts, or how long requests took
  cpu_us_per_run, rss_mb            processor time and resident memory of this process (a PostgreSQL server's is not in it)
  also                              what only this workload tells
A figure without meaning is null. Databases are made for each measurement, beside FILE or on the server, and removed
afterwards; nothing that is there is touched. Commits wait for the disk. Compare figures of one run with each other:
another machine, or the same one at another hour, has others.";

/// Measures whole nodes whose work is nothing, beside plain SQL that writes the same facts
#[derive(Debug, Clone, Parser)]
#[command(name = "punctual-bench", after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// What to measure
    #[arg(value_enum, value_name = "WORKLOAD")]
    pub(crate) workload: Workload,

    /// Where databases are made: sqlite:FILE or postgres://USER@HOST:PORT/DATABASE
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) database: Place,

    /// How many runs [default: a number that takes seconds]
    #[arg(long, value_name = "N")]
    pub(crate) runs: Option<usize>,

    /// How many schedules, journal entries or agents, where the workload has them
    #[arg(long, value_name = "N")]
    pub(crate) count: Option<usize>,

    /// How many nodes share the database (PostgreSQL only)
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) nodes: u16,

    /// How long to go on, where the workload has no end of its own
    #[arg(long, value_name = "N")]
    pub(crate) seconds: Option<u64>,

    /// How often plain SQL and the workload take turns; medians are printed
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) rounds: u16,

    /// The sizes that the bars are about, instead of those that take seconds
    #[arg(long)]
    pub(crate) full: bool,

    /// With late: daily crons that fire on one minute, instead of one-shot schedules
    #[arg(long)]
    pub(crate) cron: bool,

    /// With schedules: not daily but at this interval, like 5m
    #[arg(long, value_name = "INTERVAL", value_parser = interval)]
    pub(crate) every: Option<Elapsed>,
}

fn interval(text: &str) -> Result<Elapsed, String> {
    Elapsed::parse(text).map_err(|error| error.to_string())
}

/// What can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Workload {
    /// Plain SQL alone: starts and ends, with nothing of Punctual
    Limit,
    /// Runs that are all due: how many a second, from the first claim to the last stored end
    Drain,
    /// A thousand runs due at one instant, and how late each starts
    Late,
    /// Two hundred runs a second, and how late each starts
    Steady,
    /// Schedules that do nothing: memory, processor, and how long a restart takes
    Schedules,
    /// Creating schedules: one caller, 64 callers, and as many as fit, beside plain SQL
    Insert,
    /// Starting runs beside many that wait, beside agents at their limit, behind a long history
    Scaling,
    /// The first page of a day's plan, while runs start
    List,
    /// Schedules spread over the day, a stop, and a start: until the first run, and what was skipped
    Restart,
    /// Another process joins a database with many schedules and live runs (PostgreSQL only)
    Join,
    /// Old journal entries are let go while runs start
    Retention,
    /// A node on a database that is there: what other workloads start as another process
    #[value(hide = true)]
    Hold,
}

impl Args {
    /// How many runs: what was asked for, or one of two sizes.
    pub(crate) fn runs_or(&self, small: usize, full: usize) -> usize {
        self.runs.unwrap_or(if self.full { full } else { small }).max(1)
    }

    /// The same for schedules and the like.
    pub(crate) fn count_or(&self, small: usize, full: usize) -> usize {
        self.count.unwrap_or(if self.full { full } else { small }).max(1)
    }

    /// The same for seconds.
    pub(crate) fn seconds_or(&self, small: u64, full: u64) -> u64 {
        self.seconds.unwrap_or(if self.full { full } else { small }).max(1)
    }
}

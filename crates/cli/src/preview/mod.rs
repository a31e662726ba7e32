//! `punctual preview`: when a trigger would fire, without a server.

mod request;
mod stdin;
mod table;

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Context;
use clap::{ArgGroup, Args, ValueEnum};
use jiff::Timestamp;
use punctual_core::ScheduleId;
use punctual_core::schedule::{GapPolicy, Pass, RepeatPolicy, ZonedCron};
use punctual_core::time::Dialect;

use crate::output::unless_closed;
use crate::zoned_cron;
use crate::zones::ZoneSource;
use request::{Refusal, Request};

/// Show when a trigger fires: local time, UTC, offset, and what clock changes do to it.
///
/// Give one trigger form (--cron, --time, --every, --at, --after, --immediate or --on-event). Nothing is stored and no
/// server is needed.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("trigger").required(true).args([
    "cron", "times", "every", "at", "after", "immediate", "on_event", "stdin",
]))]
#[command(after_help = "\
Examples:
  punctual preview --cron \"0 9 * * MON-FRI\" --zone America/New_York
  punctual preview --cron \"0 0 0 L * ?\" --zone Europe/Paris --json
  punctual preview --cron \"0 9 * * *;Europe/Paris\" --cron @hourly
  punctual preview --time 09:00 --time 17:30:15 --zone Africa/Cairo
  punctual preview --every 90m --from 2026-03-08T00:00:00Z
  punctual preview --stdin < requests.jsonl")]
pub(crate) struct PreviewArgs {
    /// A cron expression: 5 fields (minute first), 6 (second first) or 7 (year last), or a macro like @daily. Repeat it
    /// for several; `EXPRESSION;ZONE` gives one a zone of its own
    #[arg(long, value_name = "EXPRESSION")]
    cron: Vec<String>,

    /// How the cron's day fields are read [default: unix for 5 fields, spring for 6 and 7]
    #[arg(long, requires = "cron")]
    dialect: Option<DialectArg>,

    /// A time of day, HH:MM or HH:MM:SS, every day; repeat it for several
    #[arg(long = "time", value_name = "TIME", alias = "times", value_delimiter = ',')]
    times: Vec<String>,

    /// An interval of elapsed time, like 30m, 1h30m or PT15M
    #[arg(long, value_name = "DURATION")]
    every: Option<String>,

    /// Where --every counts from [default: the start of the day if it divides 24 h, else --from]
    #[arg(long, value_name = "INSTANT", requires = "every", value_parser = instant)]
    anchor: Option<Timestamp>,

    /// One instant: with Z or an offset, or local time in --zone
    #[arg(long, value_name = "TIME")]
    at: Option<String>,

    /// Which of two a local time of --at means when the clock shows it twice [default: first]
    #[arg(long, requires = "at")]
    pass: Option<PassArg>,

    /// A delay from --from, like 90s or 3d
    #[arg(long, value_name = "DURATION")]
    after: Option<String>,

    /// At once
    #[arg(long, alias = "now")]
    immediate: bool,

    /// An event; its runs are made by events, not by time
    #[arg(long, value_name = "EVENT")]
    on_event: Option<String>,

    /// How long after the event of --on-event
    #[arg(long, value_name = "DURATION", requires = "on_event")]
    delay: Option<String>,

    /// The IANA time zone [default: default_timezone of punctual.toml, else UTC]
    #[arg(long, default_value_t = default_zone(), hide_default_value = true)]
    zone: String,

    /// Show what comes after this instant [default: now]
    #[arg(long, value_name = "INSTANT", value_parser = instant)]
    from: Option<Timestamp>,

    /// Show what comes up to this instant
    #[arg(long, value_name = "INSTANT", value_parser = instant)]
    until: Option<Timestamp>,

    /// How many runs to show; skipped slots are shown but not counted [default: 10, or all up to --until]
    #[arg(long, short = 'n')]
    count: Option<usize>,

    /// What happens to a time of day that the clock jumps over
    #[arg(long, alias = "dst-gap", default_value = "after")]
    gap: GapArg,

    /// What happens to a time of day that the clock shows twice
    #[arg(long, alias = "dst-repeat", default_value = "once")]
    repeat: RepeatArg,

    /// No slot before this instant
    #[arg(long, value_name = "INSTANT", value_parser = instant)]
    start: Option<Timestamp>,

    /// No slot behind this instant
    #[arg(long, value_name = "INSTANT", value_parser = instant)]
    end: Option<Timestamp>,

    /// No more runs than this
    #[arg(long, value_name = "N")]
    max_runs: Option<u64>,

    /// Up to so much later, by schedule and slot
    #[arg(long, value_name = "DURATION")]
    jitter: Option<String>,

    /// The schedule whose jitter is shown
    #[arg(long, value_name = "UUID", requires = "jitter", value_parser = schedule_id)]
    schedule_id: Option<ScheduleId>,

    /// A calendar (JSON) outside of which slots are skipped
    #[arg(long, value_name = "FILE")]
    calendar: Option<PathBuf>,

    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,

    /// Read one JSON request per line from standard input, answer one JSON line each
    #[arg(long, conflicts_with_all = [
        "zone", "from", "until", "count", "gap", "repeat", "start", "end", "max_runs", "jitter", "calendar", "json",
    ])]
    stdin: bool,

    /// Zone data: newest (of bundled and system), bundled, system, or a zoneinfo folder
    #[arg(long, env = "PUNCTUAL_TZDB", default_value = "newest", value_name = "SOURCE")]
    tzdb: ZoneSource,
}

/// The zone of the configuration in this folder. One that cannot be read costs only that.
fn default_zone() -> String {
    crate::config::Config::load(None).map_or_else(|_| "UTC".to_owned(), |(config, _)| config.default_timezone)
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum DialectArg {
    Unix,
    Spring,
    Quartz,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum GapArg {
    After,
    Skip,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum RepeatArg {
    Once,
    Both,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum PassArg {
    First,
    Second,
}

pub(crate) fn run(args: PreviewArgs) -> anyhow::Result<()> {
    let zones = args.tzdb.open()?;
    if args.stdin {
        let answered = stdin::answer_lines(io::stdin().lock(), io::stdout().lock(), &zones);
        return unless_closed(answered).context("answering requests");
    }
    let as_json = args.json;
    let preview = request(args)?.answer(&zones)?;
    let text = if as_json { table::json(&preview, &zones)? } else { table::text(&preview, &zones) };
    unless_closed(io::stdout().write_all(text.as_bytes())).context("printing the preview")
}

fn request(args: PreviewArgs) -> anyhow::Result<Request> {
    let dialect = args.dialect.map(|dialect| match dialect {
        DialectArg::Unix => Dialect::Unix,
        DialectArg::Spring => Dialect::Spring,
        DialectArg::Quartz => Dialect::Quartz,
    });
    let calendar = match &args.calendar {
        None => None,
        Some(path) => {
            let text = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
            Some(serde_json::from_str(&text).with_context(|| format!("reading the calendar {}", path.display()))?)
        }
    };
    Ok(Request {
        cron: None,
        crons: args.cron.iter().map(|text| cron(text, dialect)).collect::<Result<_, Refusal>>()?,
        // Each of the crons has taken it in.
        dialect: dialect.filter(|_| args.cron.is_empty()),
        times: args.times,
        every: args.every,
        anchor: args.anchor,
        at: args.at,
        pass: args.pass.map(|pass| match pass {
            PassArg::First => Pass::First,
            PassArg::Second => Pass::Second,
        }),
        after: args.after,
        immediate: args.immediate,
        on_event: args.on_event,
        delay: args.delay,
        zone: args.zone,
        from: args.from.unwrap_or_else(punctual_engine::clock::now),
        until: args.until,
        count: args.count,
        gap: Some(match args.gap {
            GapArg::After => GapPolicy::After,
            GapArg::Skip => GapPolicy::Skip,
        }),
        repeat: Some(match args.repeat {
            RepeatArg::Once => RepeatPolicy::Once,
            RepeatArg::Both => RepeatPolicy::Both,
        }),
        start_at: args.start,
        end_at: args.end,
        max_runs: args.max_runs,
        jitter: args.jitter,
        schedule_id: args.schedule_id,
        calendar,
    })
}

fn cron(text: &str, dialect: Option<Dialect>) -> Result<ZonedCron, Refusal> {
    zoned_cron::parse(text, dialect).map_err(Refusal::of(text))
}

fn instant(text: &str) -> Result<Timestamp, String> {
    let read = text.parse().ok().filter(|_| !text.contains('['));
    read.ok_or_else(|| "use an instant with Z or an offset, like 2026-03-07T00:00:00Z".to_owned())
}

fn schedule_id(text: &str) -> Result<ScheduleId, String> {
    serde_json::from_value(text.into()).map_err(|_| "use a UUID".to_owned())
}

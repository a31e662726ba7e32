//! `cargo xtask bench`: every workload of `punctual-bench` on SQLite and on a throwaway PostgreSQL, beside the bars.

mod bars;
mod peers;
mod table;

pub(crate) use peers::peers;

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context, bail};
use punctual_lab::postgres::{Durability, Server};
use serde_json::{Value, json};

use crate::shell::{command, run, target};

/// What differs from a server as it comes out of the box; commits wait for the disk.
pub(crate) const SETTINGS: [&str; 2] = ["shared_buffers=512MB", "max_wal_size=4GB"];

/// A measurement that takes longer is ended, and its line says so.
const TIME_MAX: Duration = Duration::from_secs(30 * 60);

/// A workload with its options, and whether only PostgreSQL has it.
struct Case {
    args: &'static [&'static str],
    is_shared: bool,
}

const fn case(args: &'static [&'static str]) -> Case {
    Case { args, is_shared: false }
}

const fn shared(args: &'static [&'static str]) -> Case {
    Case { args, is_shared: true }
}

/// Everything that is measured, in this order.
const CASES: [Case; 13] = [
    case(&["drain"]),
    shared(&["drain", "--nodes", "4"]),
    case(&["late"]),
    case(&["late", "--cron"]),
    case(&["steady"]),
    case(&["schedules"]),
    case(&["schedules", "--every", "5m"]),
    case(&["insert"]),
    case(&["scaling"]),
    case(&["list"]),
    case(&["restart"]),
    shared(&["join"]),
    case(&["retention"]),
];

/// `cargo xtask bench [WORKLOAD…] [--full] [--sqlite|--postgres]`.
pub(crate) fn bench(args: &[&str]) -> anyhow::Result<()> {
    let (options, workloads): (Vec<&str>, Vec<&str>) = args.iter().partition(|arg| arg.starts_with("--"));
    if let Some(unknown) = options.iter().find(|option| !["--full", "--sqlite", "--postgres"].contains(option)) {
        bail!("unknown option {unknown}; use cargo xtask bench [WORKLOAD…] [--full] [--sqlite | --postgres]");
    }
    if let Some(unknown) = workloads.iter().find(|name| !CASES.iter().any(|case| case.args[0] == **name)) {
        let mut known: Vec<&str> = CASES.iter().map(|case| case.args[0]).collect();
        known.dedup();
        bail!("there is no workload {unknown}; there are {}", known.join(", "));
    }
    let has = |option: &str| options.contains(&option);
    let cases = CASES.iter().filter(|case| workloads.is_empty() || workloads.contains(&case.args[0]));
    let program = program()?;
    let folder = target().join("bench");
    std::fs::create_dir_all(&folder)?;
    let server = if has("--sqlite") { None } else { Some(Server::start_with(Durability::On, &SETTINGS)?) };
    let file = format!("sqlite:{}", folder.join("bench.db").display());
    let mut places = vec![];
    if !has("--postgres") {
        places.push(file);
    }
    places.extend(server.as_ref().map(Server::address));
    let mut lines = vec![];
    let mut kept = File::create(target().join("bench.jsonl")).context("making target/bench.jsonl")?;
    for case in cases {
        for place in &places {
            if case.is_shared && place.starts_with("sqlite:") {
                continue;
            }
            let mut args: Vec<&str> = case.args.to_vec();
            args.extend(has("--full").then_some("--full"));
            eprintln!("measuring {} on {}", case.args.join(" "), kind(place));
            for line in measure(&program, &args, place)? {
                writeln!(kept, "{line}")?;
                lines.push(line);
            }
        }
    }
    println!("{}", table::table(&lines, has("--full")));
    println!("the lines are in {}", target().join("bench.jsonl").display());
    Ok(())
}

/// Builds the program as it is shipped, and says where it is.
pub(crate) fn program() -> anyhow::Result<PathBuf> {
    run(&mut command("cargo", &["build", "--release", "--locked", "--quiet", "-p", "punctual-bench"]))?;
    Ok(target().join("release/punctual-bench"))
}

fn kind(place: &str) -> &'static str {
    if place.starts_with("sqlite:") { "sqlite" } else { "postgres" }
}

/// Runs a workload. One that fails or takes too long is a line as well.
pub(crate) fn measure(program: &Path, args: &[&str], place: &str) -> anyhow::Result<Vec<Value>> {
    let mut child = Command::new(program)
        .args(args)
        .args(["--database", place])
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("starting {}", program.display()))?;
    let output = child.stdout.take().context("it has an output")?;
    let (sender, receiver) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            // Whoever has stopped to listen has ended the program.
            sender.send(line).ok();
        }
    });
    let mut lines = vec![];
    let failed = loop {
        match receiver.recv_timeout(TIME_MAX) {
            Ok(line) => lines.push(serde_json::from_str(&line).with_context(|| format!("reading {line:?}"))?),
            Err(mpsc::RecvTimeoutError::Timeout) => {
                child.kill().ok();
                break Some(format!("nothing measured for {} minutes", TIME_MAX.as_secs() / 60));
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => break None,
        }
    };
    let status = child.wait()?;
    reader.join().ok();
    let failed = failed.or_else(|| (!status.success()).then(|| format!("ended with {status}")));
    if let Some(why) = failed {
        let workload = args.iter().filter(|arg| **arg != "--full").copied().collect::<Vec<_>>().join(" ");
        lines.push(json!({"workload": workload, "database": kind(place), "failed": why}));
    }
    Ok(lines)
}

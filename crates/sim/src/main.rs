//! `cargo xtask sim`: many seeds, or one with its whole trace.

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use punctual_sim::{Fault, Report, simulate};

/// The most failures that are told whole.
const TOLD_MAX: usize = 50;

const HELP: &str = "use cargo xtask sim [--seeds N] [--from SEED] [--seed SEED] [--json]";

struct Options {
    seeds: u64,
    from: u64,
    seed: Option<u64>,
    json: bool,
}

fn main() -> ExitCode {
    match options().map(|options| run(&options)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn options() -> anyhow::Result<Options> {
    let mut options = Options { seeds: 1_000, from: 0, seed: None, json: false };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut number = || -> anyhow::Result<u64> {
            let text = args.next().with_context(|| format!("{arg} needs a number; {HELP}"))?;
            text.parse().with_context(|| format!("{arg}: {text} is not a number"))
        };
        match arg.as_str() {
            "--seeds" => options.seeds = number()?,
            "--from" => options.from = number()?,
            "--seed" => options.seed = Some(number()?),
            "--json" => options.json = true,
            _ => bail!("unknown option {arg}; {HELP}"),
        }
    }
    Ok(options)
}

/// Whether all is well.
fn run(options: &Options) -> bool {
    // A panic of the engine is a violation, told with its seed.
    std::panic::set_hook(Box::new(|_| {}));
    if let Some(seed) = options.seed {
        let history = simulate(seed, !options.json);
        println!("{history}");
        return history.violation.is_none();
    }
    let (report, took) = run_many(options);
    if options.json {
        println!("{}", report.json(took));
    } else {
        report.failures.iter().take(TOLD_MAX).for_each(|history| println!("{history}\n"));
        let counts: Vec<String> =
            Fault::ALL.iter().map(|fault| format!("{fault:?} {}", report.faults.of(*fault))).collect();
        println!("{}", counts.join(", "));
        println!(
            "{} seeds, {} runs, {} starts, {} faults in {} simulated days: {} violations; {} seeds a minute",
            report.seeds,
            report.runs,
            report.starts,
            report.faults.total(),
            report.lasted.as_secs() / 86_400,
            report.failures.len(),
            report.per_minute(took),
        );
    }
    report.failures.is_empty()
}

/// All seeds, on all cores: each history is made by one thread alone.
#[expect(clippy::disallowed_methods, reason = "how fast the simulation is, is told by the machine's own clock")]
fn run_many(options: &Options) -> (Report, Duration) {
    let started_at = Instant::now();
    let next = AtomicU64::new(options.from);
    let end = options.from + options.seeds;
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let one_core = || {
        let mut report = Report::default();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if end <= seed {
                return report;
            }
            report.add(simulate(seed, false));
        }
    };
    let mut report = Report::default();
    thread::scope(|scope| {
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(one_core)).collect();
        for thread in threads {
            report.merge(thread.join().expect("a history does not end its thread"));
        }
    });
    (report, started_at.elapsed())
}

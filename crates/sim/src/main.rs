//! `cargo xtask sim`: many seeds, or one with its whole trace.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use punctual_sim::{Fault, Report, simulate};

/// The most failures that are told whole.
const TOLD_MAX: usize = 50;

const HELP: &str = "\
Whole histories of a few days, each made from one number, the seed: nodes die, freeze and lose their line, clocks are set
and differ, disks fill up, answers get lost, standbys that missed commits take over, people change their schedules. Every
commit is held against what must be true. The same seed gives the same history again, to the last line of its trace.

cargo xtask sim [--seeds N] [--from SEED] [--first] [--json]     many histories, on all cores
cargo xtask sim --seed SEED                                      one history, with its trace

  --seeds N     how many histories; 1000 unless told
  --from SEED   the first seed; 0 unless told
  --first       stop at the first seed that fails
  --seed SEED   this history alone, every line of it: the replay of a failure
  --json        one object for programs: {seeds, faults, violations, seeds_per_min, failures}
  --help        this text

It prints each seed that fails, with the rule that was broken, the last lines of its trace and the command that replays
it; then how often each fault has struck, and the sum of everything.

Exit codes: 0 all is well, 1 a rule was broken, 2 an option is wrong.
";

struct Options {
    from: u64,
    seeds: u64,
    is_first_enough: bool,
    /// Whether one seed was asked for by its number: people want to see what happens in it.
    is_replay: bool,
    json: bool,
}

fn main() -> ExitCode {
    match options(std::env::args().skip(1)) {
        Ok(Some(options)) if run(&options) => ExitCode::SUCCESS,
        Ok(Some(_)) => ExitCode::FAILURE,
        Ok(None) => {
            print!("{HELP}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error:#}; cargo xtask sim --help explains the options");
            ExitCode::from(2)
        }
    }
}

/// What was asked for; nothing, if it was for help.
fn options(mut args: impl Iterator<Item = String>) -> anyhow::Result<Option<Options>> {
    let mut options = Options { from: 0, seeds: 1_000, is_first_enough: false, is_replay: false, json: false };
    while let Some(arg) = args.next() {
        let mut number = || -> anyhow::Result<u64> {
            let text = args.next().with_context(|| format!("{arg} needs a number"))?;
            text.parse().ok().with_context(|| format!("{arg} needs a number, not {text:?}"))
        };
        match arg.as_str() {
            "--seeds" => options.seeds = number()?,
            "--from" => options.from = number()?,
            "--first" => options.is_first_enough = true,
            "--seed" => (options.from, options.seeds, options.is_replay) = (number()?, 1, true),
            "--json" => options.json = true,
            "--help" | "-h" => return Ok(None),
            _ => bail!("there is no option {arg}"),
        }
    }
    ensure!(0 < options.seeds, "--seeds 0 would prove nothing");
    ensure!(options.from.checked_add(options.seeds).is_some(), "the seeds from {} on are too few", options.from);
    Ok(Some(options))
}

/// Whether all is well.
fn run(options: &Options) -> bool {
    if options.is_replay && !options.json {
        let history = simulate(options.from, true);
        println!("{history}");
        return history.violation.is_none();
    }
    // A panic of the engine is a violation, told with its seed. Its replay says where it was.
    std::panic::set_hook(Box::new(|_| {}));
    let (report, took) = run_many(options);
    if options.json {
        println!("{}", report.json(took));
    } else {
        tell(&report, took);
    }
    report.failures.is_empty()
}

fn tell(report: &Report, took: Duration) {
    report.failures.iter().take(TOLD_MAX).for_each(|history| println!("{history}\n"));
    // Each has its command, also those of which nothing else is told.
    report.failures.iter().skip(TOLD_MAX).for_each(|history| println!("{}", history.replay()));
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

/// All seeds, on all cores: each history is made by one thread alone.
#[expect(clippy::disallowed_methods, reason = "how fast the simulation is, is told by the machine's own clock")]
fn run_many(options: &Options) -> (Report, Duration) {
    let started_at = Instant::now();
    let next = AtomicU64::new(options.from);
    let end = options.from + options.seeds;
    let is_over = AtomicBool::new(false);
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let one_core = || {
        let mut report = Report::default();
        // Seeds are taken in order and ended once taken: the lowest that fails is the same on any number of cores.
        while !is_over.load(Ordering::Relaxed) {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if end <= seed {
                break;
            }
            report.add(simulate(seed, false));
            if options.is_first_enough && !report.failures.is_empty() {
                is_over.store(true, Ordering::Relaxed);
            }
        }
        report
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

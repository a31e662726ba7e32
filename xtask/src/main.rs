//! The project's own commands. `cargo xtask help` lists them.

mod bench;
mod commands;
mod plant;
mod postgres;
mod shell;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask COMMAND

  test      everything that must hold: fmt, clippy, docs, tests, doctests, a sample of the simulation, dependency audit
            (what CI runs; with a PostgreSQL server of its own, and Conductor's public clients for Python and JavaScript)
  oracle    the full calendar sweep: every zone, every clock change from 2000 to 2037, against brute force
  differential  a million random operations, or as many as it is told, on the model and every store
  sim       whole histories under crashes, lost replies and clock jumps: cargo xtask sim [--seeds N] [--seed SEED] [--json];
            cargo xtask sim --help says more
  chaos     three real nodes on a real PostgreSQL, all killed, stopped, cut off and crashed for ten minutes, or as many
            seconds as it is told; PUNCTUAL_CHAOS_SEED is another course of events
  schemathesis  the long form of the test that holds the API against its description: both stores, 100 made-up cases for each
            operation, or as many as it is told; PUNCTUAL_SCHEMATHESIS_SEED is another set of cases
  fuzz      run the fuzz targets: cargo xtask fuzz [TARGET] [--seconds N]   (needs a nightly toolchain)
  bench     whole nodes beside plain SQL, on SQLite and on a PostgreSQL server of its own: cargo xtask bench [WORKLOAD…] [--full]
            [--sqlite | --postgres]; the lines are kept in target/bench.jsonl, and docs/performance.md says what they mean;
            cargo xtask bench peers: other schedulers in the same run; cargo xtask bench slots: next slot beside other crates
  postgres  a throwaway PostgreSQL server, for a command or until Ctrl-C: cargo xtask postgres [--durable] [-- COMMAND ARGS];
            the command finds it in PUNCTUAL_TEST_POSTGRES
  python    Conductor's public client for Python, and Schemathesis, in target/python, where tests that are run by themselves
            find them
  node      Conductor's public client for JavaScript in target/node, likewise
  plant     plant known bugs one by one in a copy and see each caught: cargo xtask plant [core|store|sums|seed|sim]
            [WORDS], where WORDS are of the bugs that are meant: these alone, without the trial of the copy as it is
  help      this text
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = |result: anyhow::Result<()>| result.map(|()| ExitCode::SUCCESS);
    let result = match args.as_slice() {
        ["test"] => done(commands::test()),
        ["oracle"] => done(commands::oracle()),
        ["fuzz", rest @ ..] => done(commands::fuzz(rest)),
        ["sim", rest @ ..] => commands::sim(rest),
        ["chaos"] => done(commands::chaos("600")),
        ["chaos", seconds] => done(commands::chaos(seconds)),
        ["schemathesis"] => done(commands::schemathesis("100")),
        ["schemathesis", cases] => done(commands::schemathesis(cases)),
        ["bench", "slots"] => done(commands::slots()),
        ["bench", "peers"] => done(bench::peers(false)),
        ["bench", "peers", "--full"] => done(bench::peers(true)),
        ["bench", rest @ ..] => done(bench::bench(rest)),
        ["differential"] => done(commands::differential("1000000")),
        ["differential", operations] => done(commands::differential(operations)),
        ["postgres", rest @ ..] => postgres::postgres(rest),
        ["python"] => done(commands::python()),
        ["node"] => done(commands::node()),
        ["plant"] => done(plant::plant(None, None)),
        ["plant", field] => done(plant::plant(Some(field), None)),
        ["plant", field, words] => done(plant::plant(Some(field), Some(words))),
        [] | ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            Ok(ExitCode::SUCCESS)
        }
        _ => {
            eprint!("error: unknown command: {}\n\n{HELP}", args.join(" "));
            Ok(ExitCode::from(2))
        }
    };
    result.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

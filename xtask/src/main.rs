//! The project's own commands. `cargo xtask help` lists them.

mod commands;
mod plant;
mod shell;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask COMMAND

  test      everything that must hold: fmt, clippy, docs, tests, doctests, dependency audit (what CI runs)
  oracle    the full calendar sweep: every zone, every clock change from 2000 to 2037, against brute force
  differential  a million random operations, or as many as it is told, on the model and every store
  fuzz      run the fuzz targets: cargo xtask fuzz [TARGET] [--seconds N]   (needs a nightly toolchain)
  bench     the speed tables: next slot against other crates, and a day plan for 100,000 schedules
  plant     plant known bugs one by one in a copy and see each caught by a test: cargo xtask plant [core|store]
  help      this text
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let result = match args.as_slice() {
        ["test"] => commands::test(),
        ["oracle"] => commands::oracle(),
        ["fuzz", rest @ ..] => commands::fuzz(rest),
        ["bench"] => commands::bench(),
        ["differential"] => commands::differential("1000000"),
        ["differential", operations] => commands::differential(operations),
        ["plant"] => plant::plant(None),
        ["plant", field] => plant::plant(Some(field)),
        [] | ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprint!("error: unknown command: {}\n\n{HELP}", args.join(" "));
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

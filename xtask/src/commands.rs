//! What each command does.

use std::process::ExitCode;

use anyhow::{Context, bail};
use punctual_lab::node::{self, MODULES};
use punctual_lab::postgres::{Durability, Server};
use punctual_lab::python::{self, INTERPRETER};
use punctual_lab::tools;

use crate::shell::{answers, command, exit_code, root, run, target};

/// The seeds whose histories are part of every test, from 0 on: about a minute on two cores.
pub(crate) const SIM_SEEDS: &str = "250";

/// The simulation, as an optimised program.
const SIM: [&str; 7] = ["run", "--release", "--locked", "--quiet", "-p", "punctual-sim", "--"];

/// Everything that must hold before a change lands.
pub(crate) fn test() -> anyhow::Result<()> {
    // First, although they are needed late: a machine without PostgreSQL, Python or Node is told so at once.
    tools::find_or_install()?;
    let python = python::find_or_install(&target().join("python"))?;
    let modules = node::find_or_install(&target().join("node"))?;
    let server = Server::start(Durability::Off)?;
    run(&mut command("cargo", &["fmt", "--all", "--check"]))?;
    run(&mut command("cargo", &["clippy", "--workspace", "--all-targets", "--locked", "--", "--deny", "warnings"]))?;
    run(command("cargo", &["doc", "--workspace", "--no-deps", "--document-private-items", "--locked"])
        .env("RUSTDOCFLAGS", "--deny warnings"))?;
    if answers("cargo", &["nextest", "--version"]) {
        let mut nextest = command("cargo", &["nextest", "run", "--workspace", "--locked"]);
        run(server.tell(nextest.env(INTERPRETER, &python).env(MODULES, &modules)))?;
    } else {
        // nextest only makes it faster: a machine without it runs the same tests.
        let mut tests = command("cargo", &["test", "--workspace", "--all-targets", "--locked"]);
        run(server.tell(tests.env(INTERPRETER, &python).env(MODULES, &modules)))?;
    }
    run(server.tell(&mut command("cargo", &["test", "--workspace", "--doc", "--locked"])))?;
    drop(server);
    run(&mut command("cargo", &[&SIM[..], &["--seeds", SIM_SEEDS]].concat()))?;
    if answers("cargo", &["deny", "--version"]) {
        // Advisories are not part of it: their database has to be cloned, and tests use the registry alone.
        run(&mut command("cargo", &["deny", "check", "bans", "licenses", "sources"]))?;
    } else {
        println!("\ncargo-deny is not installed: licences and duplicates are not checked here");
    }
    Ok(())
}

/// Conductor's public client for Python and Schemathesis, for tests that are run without `cargo xtask test`.
pub(crate) fn python() -> anyhow::Result<()> {
    let python = python::find_or_install(&target().join("python"))?;
    println!("{} has them, and tests find it there", python.display());
    Ok(())
}

/// Conductor's public client for JavaScript, for tests that are run without `cargo xtask test`.
pub(crate) fn node() -> anyhow::Result<()> {
    let modules = node::find_or_install(&target().join("node"))?;
    println!("{} has it, and tests find it there", modules.display());
    Ok(())
}

/// The long form of the test that holds the API against its description.
pub(crate) fn schemathesis(cases: &str) -> anyhow::Result<()> {
    let python = python::find_or_install(&target().join("python"))?;
    let args = ["test", "--locked", "-p", "punctual", "--test", "server", "--", "schemathesis", "--nocapture"];
    run(command("cargo", &args).env(INTERPRETER, &python).env("PUNCTUAL_SCHEMATHESIS_CASES", cases))
}

/// The sweep that is too long for every change.
pub(crate) fn oracle() -> anyhow::Result<()> {
    let args = ["test", "--release", "--locked", "-p", "punctual-core", "--test", "oracle", "--", "--nocapture"];
    run(command("cargo", &args).env("PUNCTUAL_ORACLE", "full"))
}

/// Random operations on the stores and the model, more than for every change.
pub(crate) fn differential(operations: &str) -> anyhow::Result<()> {
    let args = ["test", "--release", "--locked", "-p", "punctual-store", "--test", "differential", "--", "--nocapture"];
    let server = Server::start(Durability::Off)?;
    run(server.tell(command("cargo", &args).env("PUNCTUAL_DIFFERENTIAL_OPS", operations)))
}

/// Coverage-guided fuzzing of the parsers, over the kept corpus.
pub(crate) fn fuzz(args: &[&str]) -> anyhow::Result<()> {
    let (mut target, mut seconds) = (None, "60");
    let mut rest = args;
    loop {
        match rest {
            [] => break,
            ["--seconds", number, more @ ..] => (seconds, rest) = (number, more),
            [name, more @ ..] if !name.starts_with('-') => (target, rest) = (Some(*name), more),
            [unknown, ..] => {
                bail!("unknown option {unknown}; use cargo xtask fuzz [TARGET] [--seconds N]")
            }
        }
    }
    if !answers("cargo", &["+nightly", "--version"]) {
        bail!("fuzzing needs a nightly toolchain: rustup toolchain install nightly");
    }
    if !answers("cargo", &["fuzz", "--version"]) {
        run(&mut command("cargo", &["install", "--locked", "cargo-fuzz"]))?;
    }
    let folder = root().join("crates/core/fuzz");
    let mut targets: Vec<String> = std::fs::read_dir(folder.join("fuzz_targets"))?
        .filter_map(|entry| Some(entry.ok()?.path().file_stem()?.to_str()?.to_owned()))
        .collect();
    targets.sort();
    if let Some(target) = target {
        if !targets.iter().any(|known| known == target) {
            bail!("there is no fuzz target {target}; there are {}", targets.join(", "));
        }
        targets = vec![target.to_owned()];
    }
    for target in targets {
        // What the fuzzer finds goes to a scratch corpus; what is worth keeping is copied to `corpus/` by hand.
        let (found, kept) = (format!("target/corpus/{target}"), format!("corpus/{target}"));
        std::fs::create_dir_all(folder.join(&found))?;
        let limit = format!("-max_total_time={seconds}");
        let fuzz = ["+nightly", "fuzz", "run", &target, &found, &kept, "--", &limit, "-timeout=5", "-max_len=2048"];
        run(command("cargo", &fuzz).current_dir(&folder))?;
    }
    Ok(())
}

/// Histories from seeds, checked against every invariant. Ends as the simulation does, and prints nothing besides.
pub(crate) fn sim(args: &[&str]) -> anyhow::Result<ExitCode> {
    let status = command("cargo", &[&SIM, args].concat()).status().context("starting cargo")?;
    Ok(exit_code(status))
}

/// The long form of the test that kills, stops, cuts off and crashes nodes and database.
pub(crate) fn chaos(seconds: &str) -> anyhow::Result<()> {
    let args = ["test", "--locked", "-p", "punctual", "--test", "server", "--", "chaos", "--nocapture"];
    run(command("cargo", &args).env("PUNCTUAL_CHAOS_SECONDS", seconds))
}

/// The speed tables of the rules: next slot against other crates, a day plan for 100,000 schedules.
pub(crate) fn slots() -> anyhow::Result<()> {
    run(&mut command("cargo", &["bench", "--locked", "-p", "punctual-core"]))
}

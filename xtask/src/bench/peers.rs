//! `cargo xtask bench peers`: other schedulers that keep their jobs in PostgreSQL, on the same throwaway server, in one run with ours.
//!
//! The comparison is of what users get, not of what is done: the peers keep no journal and no history of what ended.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use punctual_lab::postgres::{Durability, Server};
use punctual_lab::shell::{answers, run};
use serde_json::Value;

use super::{SETTINGS, measure, program};
use crate::shell::{root, target};

/// The release of Node that the peers ask for.
const NODE_MIN: u32 = 22;

/// A scheduler, and how many jobs it drains: one that is slow gets fewer, so that all take seconds.
struct Peer {
    name: &'static str,
    script: &'static str,
    jobs: [&'static str; 2],
}

const PEERS: [Peer; 3] = [
    Peer { name: "graphile-worker", script: "graphile.mjs", jobs: ["5000", "100000"] },
    Peer { name: "pg-boss", script: "pgboss.mjs", jobs: ["5000", "100000"] },
    Peer { name: "procrastinate", script: "procrastinate_peer.py", jobs: ["1000", "5000"] },
];

/// How often ours and the peers take turns.
const ROUNDS: usize = 3;

/// How many jobs are due at one instant.
const LATE: &str = "1000";

/// Measures ours and the peers in turns, and prints how they compare.
pub(crate) fn peers(is_full: bool) -> anyhow::Result<()> {
    let tools = Tools::find_or_install()?;
    let program = program()?;
    let server = Server::start_with(Durability::On, &SETTINGS)?;
    let size = usize::from(is_full);
    let mut kept = File::create(target().join("bench-peers.jsonl")).context("making target/bench-peers.jsonl")?;
    for workload in ["drain", "late"] {
        let mut ours = vec![];
        let mut theirs: Vec<Vec<Value>> = PEERS.iter().map(|_| vec![]).collect();
        for _ in 0..ROUNDS {
            let runs = if workload == "late" { LATE } else { ["5000", "100000"][size] };
            ours.extend(measure(&program, &[workload, "--runs", runs, "--rounds", "1"], &server.address())?);
            for (peer, lines) in PEERS.iter().zip(&mut theirs) {
                let jobs = if workload == "late" { LATE } else { peer.jobs[size] };
                eprintln!("measuring {workload} of {} jobs by {}", jobs, peer.name);
                lines.extend(tools.measure(peer, workload, jobs, &server)?);
            }
        }
        for line in ours.iter().chain(theirs.iter().flatten()) {
            writeln!(kept, "{line}")?;
        }
        print(workload, &ours, &theirs);
    }
    println!("the lines are in {}", target().join("bench-peers.jsonl").display());
    Ok(())
}

/// The figure that a workload is about, and whether more of it is better.
fn figure(workload: &str) -> (&'static str, bool) {
    if workload == "drain" { ("runs_per_s", true) } else { ("p99_ms", false) }
}

fn print(workload: &str, ours: &[Value], theirs: &[Vec<Value>]) {
    let (key, more_is_better) = figure(workload);
    let own = middle(ours, key);
    println!("\n{workload}, {key} (medians of {ROUNDS} rounds, in turns)");
    println!("  {:<20} {:>12}", "punctual", own.map_or("failed".to_owned(), |own| format!("{own:.1}")));
    for (peer, lines) in PEERS.iter().zip(theirs) {
        let Some((own, other)) = own.zip(middle(lines, key)) else {
            println!("  {:<20} {:>12}", peer.name, "failed");
            continue;
        };
        let ratio = if more_is_better { own / other } else { other / own };
        println!("  {:<20} {other:>12.1}   punctual is {ratio:.2} times as good", peer.name);
    }
}

/// The median of a figure; none if no line has it.
fn middle(lines: &[Value], key: &str) -> Option<f64> {
    let mut figures: Vec<f64> = lines.iter().filter_map(|line| line[key].as_f64()).collect();
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied()
}

/// What the peers run with.
struct Tools {
    scripts: PathBuf,
    node: PathBuf,
    python: PathBuf,
}

impl Tools {
    /// Installs the peers in `target/peers`, once for each list of them.
    fn find_or_install() -> anyhow::Result<Tools> {
        let (from, folder) = (root().join("crates/bench/peers"), target().join("peers"));
        fs::create_dir_all(&folder)?;
        let mut wanted = String::new();
        for entry in ["package.json", "requirements.txt"] {
            wanted += &fs::read_to_string(from.join(entry))?;
        }
        for entry in fs::read_dir(&from)? {
            let entry = entry?;
            fs::copy(entry.path(), folder.join(entry.file_name()))?;
        }
        // Node finds modules beside the scripts, so those lie here as well.
        let installed = folder.join("installed.txt");
        if fs::read_to_string(&installed).unwrap_or_default() != wanted {
            println!("the peers are installed in {}, once", folder.display());
            install_modules(&folder)?;
            run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(folder.join("venv")))?;
            let mut pip = Command::new(folder.join("venv/bin/python"));
            pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"]);
            run(pip.arg(folder.join("requirements.txt")))?;
            fs::write(&installed, &wanted)?;
        }
        Ok(Tools { node: node_in(&folder), python: folder.join("venv/bin/python"), scripts: folder })
    }

    /// One measurement of a peer, in a schema of its own. One that fails says why, and has no line.
    fn measure(&self, peer: &Peer, workload: &str, jobs: &str, server: &Server) -> anyhow::Result<Vec<Value>> {
        let interpreter = if peer.script.ends_with(".py") { &self.python } else { &self.node };
        let mut command = Command::new(interpreter);
        command.arg(self.scripts.join(peer.script)).args([workload, jobs]);
        let output = command.env("PEER_DATABASE", server.address()).output().context("starting a peer")?;
        if !output.status.success() {
            eprintln!("{} failed: {}", peer.name, String::from_utf8_lossy(&output.stderr));
            return Ok(vec![]);
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let lines = text.lines().filter(|line| line.starts_with('{'));
        lines.map(|line| serde_json::from_str(line).with_context(|| format!("reading {line:?}"))).collect()
    }
}

/// Whether the machine's own Node is new enough.
fn has_node() -> bool {
    let check = format!("process.exit({NODE_MIN} <= parseInt(process.versions.node) ? 0 : 1)");
    answers("node", &["-e", &check])
}

/// The package that has Node for this machine, as a registry calls it.
fn node_package() -> String {
    let system = if cfg!(target_os = "macos") { "darwin" } else { "linux" };
    let processor = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    format!("node-{system}-{processor}")
}

fn node_in(folder: &Path) -> PathBuf {
    if has_node() { "node".into() } else { folder.join("node_modules").join(node_package()).join("bin/node") }
}

fn install_modules(folder: &Path) -> anyhow::Result<()> {
    if !answers("npm", &["--version"]) {
        bail!("the peers need npm: install Node, whatever its release");
    }
    // Nothing that is downloaded is run while it is installed.
    let quietly = ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel", "error"];
    run(Command::new("npm").args(quietly).current_dir(folder))?;
    if has_node() {
        return Ok(());
    }
    let package = format!("{}@{NODE_MIN}", node_package());
    run(Command::new("npm").args(quietly).args(["--no-save", &package]).current_dir(folder))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_middle_of_the_lines_that_have_a_figure_counts() {
        let lines = [json!({"p99_ms": 3.0}), json!({"failed": "x"}), json!({"p99_ms": 1.0}), json!({"p99_ms": 2.0})];
        assert_eq!(middle(&lines, "p99_ms"), Some(2.0));
        assert_eq!(middle(&lines, "runs_per_s"), None);
    }
}

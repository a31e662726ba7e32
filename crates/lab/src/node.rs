//! Conductor's public client for JavaScript, in a folder of its own: what is installed elsewhere is neither used nor changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};

use crate::apt;
use crate::shell::{answers, run};

/// Tests find the modules here.
pub const MODULES: &str = "PUNCTUAL_TEST_NODE_MODULES";

/// The client and what it needs, pinned: what it calls is part of what is tested. It names no registry: npm knows one.
const FILES: [(&str, &str); 2] = [
    ("package.json", include_str!("../../cli/tests/javascript/package.json")),
    ("package-lock.json", include_str!("../../cli/tests/javascript/package-lock.json")),
];

/// What to do where it is not done for you.
const ADVICE: &str = "\
Tests drive the server with Conductor's public client for JavaScript, and need Node 18 or newer with npm:
  Debian, Ubuntu   apt-get install nodejs npm   (done for you when you are root)
  Fedora           dnf install nodejs npm
  macOS            brew install node
Then `cargo xtask node` installs the client in target/node. To use one that you have installed yourself, name its folder
node_modules in PUNCTUAL_TEST_NODE_MODULES";

/// The modules that have the client: those that the environment names, or those in `folder`.
pub fn find(folder: &Path) -> anyhow::Result<PathBuf> {
    if let Some(named) = std::env::var_os(MODULES) {
        let named = PathBuf::from(named);
        ensure!(has_client(&named), "{} of {MODULES} has not the client.\n{ADVICE}", named.display());
        return Ok(named);
    }
    let modules = folder.join("node_modules");
    ensure!(is_current(folder), "Conductor's client for JavaScript is not here: run `cargo xtask node`.\n{ADVICE}");
    Ok(modules)
}

/// Finds them, or installs them in `folder`, which keeps them for the next time.
pub fn find_or_install(folder: &Path) -> anyhow::Result<PathBuf> {
    if std::env::var_os(MODULES).is_some() || is_current(folder) {
        return find(folder);
    }
    if !has_node() && apt::is_possible() {
        println!("\nNo Node that has npm is here: it is installed.");
        apt::install(&["nodejs", "npm"])?;
    }
    if !has_node() {
        bail!("no Node 18 or newer with npm is on this machine.\n{ADVICE}");
    }
    println!("\nConductor's client for JavaScript is installed in {}, once.", folder.display());
    fs::create_dir_all(folder)?;
    // What is installed counts once its lock lies beside it.
    let lock = folder.join(INSTALLED);
    fs::remove_file(&lock).ok();
    for (name, text) in FILES {
        fs::write(folder.join(name), text)?;
    }
    // Nothing that is downloaded is run.
    let mut npm = Command::new("npm");
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel", "error"]).current_dir(folder);
    run(&mut npm).with_context(|| format!("the client cannot be installed.\n{ADVICE}"))?;
    fs::write(lock, FILES[1].1)?;
    find(folder)
}

/// The lock of what is installed.
const INSTALLED: &str = "installed.json";

/// Whether a folder has what the lock of today says.
fn is_current(folder: &Path) -> bool {
    let installed = fs::read_to_string(folder.join(INSTALLED)).unwrap_or_default();
    installed == FILES[1].1 && has_client(&folder.join("node_modules"))
}

fn has_client(modules: &Path) -> bool {
    let check = format!("require({:?})", modules.join("@io-orkes/conductor-javascript"));
    answers("node", &["-e", &check])
}

fn has_node() -> bool {
    answers("node", &["-e", "process.exit(18 <= parseInt(process.versions.node) ? 0 : 1)"])
        && answers("npm", &["--version"])
}

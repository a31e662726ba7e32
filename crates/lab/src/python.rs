//! What tests need of Python: Conductor's public client, and Schemathesis, which tries an API against its description. They are
//! in an environment of their own: what is installed elsewhere is neither used nor changed.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};

use crate::apt;
use crate::shell::{answers, run};

/// Tests find the interpreter that has the packages here.
pub const INTERPRETER: &str = "PUNCTUAL_TEST_PYTHON";

/// The packages, pinned: what the client calls is part of what is tested, and what Schemathesis tries has to be the same each
/// time, for which Hypothesis is pinned, too.
const PACKAGES: [&str; 3] = ["conductor-python==2.0.0", "schemathesis==4.32.5", "hypothesis==6.170.15"];

/// What to do where it is not done for you.
const ADVICE: &str = "\
Tests drive the server with Conductor's public client for Python and with Schemathesis, and need Python 3.10 or newer with
its module venv:
  Debian, Ubuntu   apt-get install python3-venv   (done for you when you are root)
  Fedora           dnf install python3
  macOS            brew install python3
Then `cargo xtask python` installs both in target/python. To use those that you have installed yourself, name their
interpreter in PUNCTUAL_TEST_PYTHON";

/// The interpreter that has the packages: the one that the environment names, or the one in `folder`.
pub fn find(folder: &Path) -> anyhow::Result<PathBuf> {
    if let Some(named) = std::env::var_os(INTERPRETER) {
        let named = PathBuf::from(named);
        ensure!(has_packages(&named), "{} of {INTERPRETER} has not {}.\n{ADVICE}", named.display(), names());
        return Ok(named);
    }
    let interpreter = interpreter_in(folder);
    ensure!(has_packages(&interpreter), "{} are not here: run `cargo xtask python`.\n{ADVICE}", names());
    Ok(interpreter)
}

/// Finds it, or makes an environment in `folder`, which keeps it for the next time.
pub fn find_or_install(folder: &Path) -> anyhow::Result<PathBuf> {
    let interpreter = interpreter_in(folder);
    if std::env::var_os(INTERPRETER).is_some() || has_packages(&interpreter) {
        return find(folder);
    }
    if !can_make_environments() && apt::is_possible() {
        println!("\nNo Python that can make environments is here: it is installed.");
        apt::install(&["python3-venv"])?;
    }
    if !can_make_environments() {
        bail!("no Python 3 that can make environments is on this machine.\n{ADVICE}");
    }
    println!("\n{} are installed in {}, once.", names(), folder.display());
    // Over what somebody has begun and not ended.
    run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(folder))?;
    let mut pip = Command::new(&interpreter);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(PACKAGES);
    run(&mut pip).with_context(|| format!("{} cannot be installed.\n{ADVICE}", names()))?;
    find(folder)
}

fn interpreter_in(folder: &Path) -> PathBuf {
    folder.join("bin/python")
}

/// Debian has a `venv` that cannot put pip into what it makes.
fn can_make_environments() -> bool {
    answers("python3", &["-c", "import ensurepip, venv"])
}

fn names() -> String {
    PACKAGES.join(", ").replace("==", " ")
}

fn has_packages(interpreter: &Path) -> bool {
    let check = format!(
        "import importlib.metadata, conductor.client.orkes.orkes_scheduler_client, schemathesis\n\
         for package in '{}'.split():\n  \
           name, version = package.split('==')\n  \
           assert importlib.metadata.version(name) == version",
        PACKAGES.join(" ")
    );
    interpreter.to_str().is_some_and(|interpreter| answers(interpreter, &["-c", &check]))
}

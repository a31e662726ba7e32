//! Conductor's public client for Python, in an environment of its own: what is installed elsewhere is neither used nor changed.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};

use crate::apt;
use crate::shell::{answers, run};

/// Tests find the interpreter that has the client here.
pub const INTERPRETER: &str = "PUNCTUAL_TEST_PYTHON";

/// The client, pinned: what it calls is part of what is tested.
const CLIENT: &str = "conductor-python";
const VERSION: &str = "2.0.0";

/// What to do where it is not done for you.
const ADVICE: &str = "\
Tests drive the server with Conductor's public client for Python, and need Python 3.10 or newer with its module venv:
  Debian, Ubuntu   apt-get install python3-venv   (done for you when you are root)
  Fedora           dnf install python3
  macOS            brew install python3
Then `cargo xtask python` installs the client in target/python. To use one that you have installed yourself, name its
interpreter in PUNCTUAL_TEST_PYTHON";

/// The interpreter that has the client: the one that the environment names, or the one in `folder`.
pub fn find(folder: &Path) -> anyhow::Result<PathBuf> {
    if let Some(named) = std::env::var_os(INTERPRETER) {
        let named = PathBuf::from(named);
        ensure!(has_client(&named), "{} of {INTERPRETER} has no {CLIENT} {VERSION}.\n{ADVICE}", named.display());
        return Ok(named);
    }
    let interpreter = interpreter_in(folder);
    ensure!(has_client(&interpreter), "{CLIENT} {VERSION} is not here: run `cargo xtask python`.\n{ADVICE}");
    Ok(interpreter)
}

/// Finds it, or makes an environment in `folder`, which keeps it for the next time.
pub fn find_or_install(folder: &Path) -> anyhow::Result<PathBuf> {
    let interpreter = interpreter_in(folder);
    if std::env::var_os(INTERPRETER).is_some() || has_client(&interpreter) {
        return find(folder);
    }
    if !can_make_environments() && apt::is_possible() {
        println!("\nNo Python that can make environments is here: it is installed.");
        apt::install(&["python3-venv"])?;
    }
    if !can_make_environments() {
        bail!("no Python 3 that can make environments is on this machine.\n{ADVICE}");
    }
    println!("\n{CLIENT} {VERSION} is installed in {}, once.", folder.display());
    // Over what somebody has begun and not ended.
    run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(folder))?;
    let mut pip = Command::new(&interpreter);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", &format!("{CLIENT}=={VERSION}")]);
    run(&mut pip).with_context(|| format!("{CLIENT} cannot be installed.\n{ADVICE}"))?;
    find(folder)
}

fn interpreter_in(folder: &Path) -> PathBuf {
    folder.join("bin/python")
}

/// Debian has a `venv` that cannot put pip into what it makes.
fn can_make_environments() -> bool {
    answers("python3", &["-c", "import ensurepip, venv"])
}

fn has_client(interpreter: &Path) -> bool {
    let check = format!(
        "import importlib.metadata, conductor.client.orkes.orkes_scheduler_client\n\
         assert importlib.metadata.version('{CLIENT}') == '{VERSION}'"
    );
    interpreter.to_str().is_some_and(|interpreter| answers(interpreter, &["-c", &check]))
}

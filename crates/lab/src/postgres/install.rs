//! Installing PostgreSQL's programs, without a server that runs.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

use anyhow::Context;

use crate::apt;

/// What to do where it is not done for you.
pub(super) const ADVICE: &str = "\
Install its server programs, no server needs to run:
  Debian, Ubuntu   apt-get install postgresql   (done for you when you are root)
  Fedora           dnf install postgresql-server
  macOS            brew install postgresql@17
Anywhere else, put the folder with initdb, postgres and pg_ctl into PATH";

/// Debian reads it when it installs a server.
const SETTINGS: &str = "/etc/postgresql-common/createcluster.conf";

/// Without it, installing the programs would also start a server that nobody asked for.
const NO_SERVER: &str = "create_main_cluster = false";

/// Installs the programs, and says how. No server is created or started.
pub(super) fn install() -> anyhow::Result<()> {
    println!("\nNo PostgreSQL that is new enough is here: its programs are installed, without a server that runs.");
    forgo_server(Path::new(SETTINGS)).with_context(|| format!("writing {SETTINGS}"))?;
    apt::install(&["postgresql"])
}

fn forgo_server(settings: &Path) -> anyhow::Result<()> {
    let before = fs::read_to_string(settings).unwrap_or_default();
    if before.lines().any(|line| line.trim() == NO_SERVER) {
        return Ok(());
    }
    println!("{NO_SERVER:?} is added to {}", settings.display());
    fs::create_dir_all(settings.parent().context("a file has a folder")?)?;
    let mut file = OpenOptions::new().create(true).append(true).open(settings)?;
    Ok(writeln!(file, "# By `cargo xtask`, which needs the programs alone.\n{NO_SERVER}")?)
}
